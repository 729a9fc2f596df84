/* SPDX-License-Identifier: Apache-2.0 */

#include "net/shm/shm_fabric.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <ucm/log.h>

#include "net/shm/shm_object.h"

enum {
    EVENT_COUNT = 64,
};

const struct uc_fabric_caps uc_shm_caps = {
        .needs_registration = false,
        .uses_registration = true,
        .feeds_bytes = true,
        .checks_generation = true,
        .reads_locally = true,
        .max_piece_count = 65536,
        .max_op_bytes = UC_SHM_MAX_OP_BYTES,
};

void
uc_shm_source_init(struct uc_shm_source *source, struct uc_fabric *fabric, enum uc_shm_kind kind)
{
    source->fabric = fabric;
    source->kind = kind;
    source->fd = -1;
    uc_list_init(&source->turn_node);
    uc_list_init(&source->timed_node);
}

enum uc_status
uc_shm_source_watch(struct uc_shm_source *source, int fd)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP | EPOLLET, .data.ptr = source};

    if (epoll_ctl(source->fabric->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0) {
        return uc_log_errno(errno, "shm: epoll_ctl");
    }

    source->fd = fd;
    source->readable = false;
    return UC_OK;
}

void
uc_shm_source_close(struct uc_shm_source *source)
{
    uc_list_remove(&source->turn_node);
    uc_list_remove(&source->timed_node);
    if (source->fd < 0) {
        return;
    }

    /* A process that was forked from this one may have the socket open as well: closing ours alone would end
       neither the connection nor the registration, whose events would then point to freed memory. */
    (void)epoll_ctl(source->fabric->epoll_fd, EPOLL_CTL_DEL, source->fd, NULL);
    (void)shutdown(source->fd, SHUT_RDWR);
    (void)close(source->fd);
    source->fd = -1;
    source->readable = false;
}

void
uc_shm_source_wake(struct uc_shm_source *source)
{
    if (uc_list_is_empty(&source->turn_node)) {
        uc_list_add(&source->fabric->turns, &source->turn_node);
    }
}

void
uc_shm_source_set_deadline(struct uc_shm_source *source, uint64_t deadline_ms)
{
    source->deadline_ms = deadline_ms;
    uc_list_remove(&source->timed_node);
    uc_list_add(&source->fabric->timed, &source->timed_node);
}

bool
uc_shm_fabric_may_warn(struct uc_fabric *fabric)
{
    return uc_warn_gate_pass(&fabric->warn_gate, uc_clock_now_ms(&fabric->clock), UC_WARN_PAUSE_MS);
}

void
uc_shm_endpoint_bury(struct uc_fabric_endpoint *endpoint)
{
    struct uc_fabric *fabric = endpoint->source.fabric;

    assert(endpoint->source.fd < 0);
    if (endpoint->domain != NULL) {
        endpoint->domain->endpoint_count--;
    }
    fabric->endpoint_count--;
    if (!fabric->is_polling) {
        free(endpoint);
        return;
    }

    /* A caller up the stack may still point to it. */
    uc_list_add(&fabric->dead, &endpoint->source.turn_node);
}

void
uc_shm_ring_peer(struct uc_shm_source *source, const _Atomic uint32_t *sleep_epoch, uint32_t *rung)
{
    if (uc_shm_must_wake(sleep_epoch, rung)) {
        struct uc_shm_packet packet = {.kind = UC_SHM_WAKE};
        uint8_t bytes[UC_SHM_PACKET_BYTES];
        size_t length = uc_shm_packet_put(bytes, &packet);

        /* Blocked: the peer has packets that it has not read, which wake it as well. Lost: an event tells. */
        (void)uc_shm_send(source->fd, bytes, length, NULL, 0);
    }
}

static void
free_dead(struct uc_fabric *fabric)
{
    struct uc_list *node;

    while ((node = uc_list_take(&fabric->dead)) != NULL) {
        free(uc_list_entry(node, struct uc_fabric_endpoint, source.turn_node));
    }
}

static enum uc_status
shm_open(const struct uc_fabric_config *config, struct uc_fabric **fabric_out)
{
    struct uc_fabric *fabric = calloc(1, sizeof(*fabric));
    enum uc_status status;

    (void)config;
    if (fabric == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "shm: no memory for the fabric; free some");
    }

    fabric->clock = uc_clock_monotonic();
    uc_list_init(&fabric->turns);
    uc_list_init(&fabric->timed);
    uc_list_init(&fabric->waiting);
    uc_list_init(&fabric->dead);
    fabric->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (fabric->epoll_fd < 0) {
        status = uc_log_errno(errno, "shm: epoll_create1");
        free(fabric);
        return status;
    }

    *fabric_out = fabric;
    return UC_OK;
}

static void
shm_close(struct uc_fabric *fabric)
{
    if (fabric == NULL) {
        return;
    }

    assert(!fabric->is_polling);
    assert(fabric->endpoint_count == 0);
    assert(fabric->listener_count == 0);
    assert(fabric->domain_count == 0);
    (void)close(fabric->epoll_fd);
    free(fabric);
}

static void
shm_caps(const struct uc_fabric *fabric, struct uc_fabric_caps *caps_out)
{
    (void)fabric;
    *caps_out = uc_shm_caps;
}

static void
shm_fence(struct uc_fabric_endpoint *endpoint)
{
    if (endpoint->source.kind == UC_SHM_CLIENT) {
        uc_shm_client_close((struct uc_shm_client *)endpoint);
    } else {
        uc_shm_target_close((struct uc_shm_target *)endpoint);
    }
}

static void
shm_disconnect(struct uc_fabric_endpoint *endpoint)
{
    if (endpoint == NULL) {
        return;
    }

    shm_fence(endpoint);
    uc_shm_endpoint_bury(endpoint);
}

/* Give every source that has an event a turn. */
static void
fetch_events(struct uc_fabric *fabric)
{
    struct epoll_event events[EVENT_COUNT];
    int count = epoll_wait(fabric->epoll_fd, events, EVENT_COUNT, 0);

    for (int idx = 0; idx < count; idx++) {
        struct uc_shm_source *source = events[idx].data.ptr;

        source->readable = true;
        uc_shm_source_wake(source);
    }
}

static struct uc_shm_source *
first_due(struct uc_fabric *fabric, uint64_t now_ms)
{
    uc_list_for_each (node, &fabric->timed) {
        struct uc_shm_source *source = uc_list_entry(node, struct uc_shm_source, timed_node);

        if (source->deadline_ms <= now_ms) {
            return source;
        }
    }
    return NULL;
}

static size_t
expire(struct uc_fabric *fabric)
{
    struct uc_shm_source *source;
    uint64_t now_ms;
    size_t count = 0;

    if (uc_list_is_empty(&fabric->timed)) {
        return 0;
    }

    now_ms = uc_clock_now_ms(&fabric->clock);
    /* From the start each time: a callback may have changed the ring. */
    while ((source = first_due(fabric, now_ms)) != NULL) {
        uc_list_remove(&source->timed_node);
        count++;
        switch (source->kind) {
        case UC_SHM_LISTENER:
            uc_shm_listener_expire((struct uc_fabric_listener *)source);
            break;
        case UC_SHM_CLIENT:
            uc_shm_client_expire((struct uc_shm_client *)source);
            break;
        case UC_SHM_TARGET:
            uc_shm_target_drop((struct uc_shm_target *)source);
            break;
        }
    }
    return count;
}

static bool
source_turn(struct uc_shm_source *source, size_t *budget)
{
    switch (source->kind) {
    case UC_SHM_LISTENER:
        return uc_shm_listener_turn((struct uc_fabric_listener *)source, budget);
    case UC_SHM_CLIENT:
        return uc_shm_client_turn((struct uc_shm_client *)source, budget);
    case UC_SHM_TARGET:
        return uc_shm_target_turn((struct uc_shm_target *)source, budget);
    }
    return false;
}

/* A server says in memory what it has done; nobody is woken for it while we poll. */
static void
look_at_waiting(struct uc_fabric *fabric)
{
    uc_list_for_each (node, &fabric->waiting) {
        uc_shm_source_wake(&uc_list_entry(node, struct uc_shm_client, waiting_node)->base.source);
    }
}

static size_t
shm_poll(struct uc_fabric *fabric, size_t budget)
{
    struct uc_list marker; /* behind it are those who get their turn in the next poll */
    struct uc_list *node;
    size_t left = budget;
    size_t expired;

    fabric->is_polling = true;
    fetch_events(fabric);
    expired = expire(fabric);
    look_at_waiting(fabric);

    uc_list_init(&marker);
    uc_list_add(&fabric->turns, &marker);
    while (left > 0 && (node = uc_list_take(&fabric->turns)) != &marker) {
        struct uc_shm_source *source = uc_list_entry(node, struct uc_shm_source, turn_node);

        if (source_turn(source, &left)) {
            uc_shm_source_wake(source);
        }
    }
    uc_list_remove(&marker);

    fabric->is_polling = false;
    free_dead(fabric);
    return budget - left + expired;
}

static bool
shm_arm(struct uc_fabric *fabric)
{
    bool has_work = false;

    /* Targets fall asleep by themselves as soon as they have nothing to do. */
    uc_list_for_each (node, &fabric->waiting) {
        has_work = uc_shm_client_arm(uc_list_entry(node, struct uc_shm_client, waiting_node)) ||
                   has_work;
    }
    /* Events keep the epoll readable until poll fetches them; only turns are invisible to it. */
    return !has_work && uc_list_is_empty(&fabric->turns);
}

static int
shm_event_fd(const struct uc_fabric *fabric)
{
    return fabric->epoll_fd;
}

static uint64_t
shm_next_deadline_ms(const struct uc_fabric *fabric)
{
    uint64_t deadline_ms = UC_TIME_NEVER_MS;

    uc_list_for_each (node, &fabric->timed) {
        const struct uc_shm_source *source =
                uc_list_entry(node, const struct uc_shm_source, timed_node);

        if (source->deadline_ms < deadline_ms) {
            deadline_ms = source->deadline_ms;
        }
    }
    return deadline_ms;
}

static const struct uc_fabric_ops shm_ops = {
        .abi_version = UC_FABRIC_ABI_VERSION,
        .struct_size = sizeof(struct uc_fabric_ops),
        .name = "shm",
        .open = shm_open,
        .close = shm_close,
        .caps = shm_caps,
        .domain_open = uc_shm_domain_open,
        .domain_close = uc_shm_domain_close,
        .region_register = uc_shm_region_register,
        .region_deregister = uc_shm_region_deregister,
        .region_key = uc_shm_region_key,
        .listen = uc_shm_listen,
        .listener_port = uc_shm_listener_port,
        .listener_address = uc_shm_listener_address,
        .listener_close = uc_shm_listener_close,
        .connect = uc_shm_connect,
        .fence = shm_fence,
        .disconnect = shm_disconnect,
        .post = uc_shm_post,
        .poll = shm_poll,
        .arm = shm_arm,
        .event_fd = shm_event_fd,
        .next_deadline_ms = shm_next_deadline_ms,
};

const struct uc_fabric_ops *
uc_shm_fabric_ops(void)
{
    return &shm_ops;
}
