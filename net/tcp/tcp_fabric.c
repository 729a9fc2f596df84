/* SPDX-License-Identifier: Apache-2.0 */

#include "net/tcp/tcp_fabric.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <ucm/clock.h>
#include <ucm/log.h>

#include "net/tcp/tcp_client.h"
#include "net/tcp/tcp_target.h"

enum {
    EVENT_COUNT = 64,
};

const struct uc_fabric_caps uc_tcp_caps = {
        .needs_registration = false,
        .feeds_bytes = true,
        .checks_generation = true,
        .max_piece_count = 65536,
        .max_op_bytes = UC_TCP_MAX_OP_BYTES,
};

void
uc_tcp_source_wake(struct uc_tcp_source *source)
{
    if (uc_list_is_empty(&source->turn_node)) {
        uc_list_add(&source->fabric->turns, &source->turn_node);
    }
}

void
uc_tcp_source_set_deadline(struct uc_tcp_source *source, uint64_t deadline_ms)
{
    source->deadline_ms = deadline_ms;
    uc_list_remove(&source->timed_node);
    uc_list_add(&source->fabric->timed, &source->timed_node);
}

bool
uc_tcp_fabric_may_warn(struct uc_fabric *fabric)
{
    return uc_warn_gate_pass(&fabric->warn_gate, uc_clock_now_ms(&fabric->clock), UC_WARN_PAUSE_MS);
}

static void
mortal_free(struct uc_tcp_mortal *mortal)
{
    free(mortal->memory);
    free(mortal);
}

void
uc_tcp_bury(struct uc_fabric *fabric, struct uc_tcp_mortal *mortal)
{
    if (!fabric->is_polling) {
        mortal_free(mortal);
        return;
    }

    uc_list_add(&fabric->dead, &mortal->node);
}

static void
free_dead(struct uc_fabric *fabric)
{
    struct uc_list *node;

    while ((node = uc_list_take(&fabric->dead)) != NULL) {
        mortal_free(uc_list_entry(node, struct uc_tcp_mortal, node));
    }
}

/* @return UC_OK if that many streams per endpoint can be had; 0: one, more gain nothing on one host */
static enum uc_status
set_lane_count(struct uc_fabric *fabric, const struct uc_fabric_config *config)
{
    uint32_t count = config == NULL || config->connections == 0 ? 1 : config->connections;

    if (count > UC_TCP_LANES_MAX) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "tcp: %" PRIu32 " connections per endpoint; ask for %d at most", count,
                UC_TCP_LANES_MAX);
    }

    fabric->lane_count = count;
    return UC_OK;
}

static enum uc_status
tcp_open(const struct uc_fabric_config *config, struct uc_fabric **fabric_out)
{
    struct uc_fabric *fabric = calloc(1, sizeof(*fabric));
    enum uc_status status;

    if (fabric == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "tcp: no memory for the fabric; free some");
    }

    fabric->clock = uc_clock_monotonic();
    uc_list_init(&fabric->turns);
    uc_list_init(&fabric->timed);
    uc_list_init(&fabric->dead);
    uc_list_init(&fabric->joinable);
    status = set_lane_count(fabric, config);
    if (status != UC_OK) {
        goto err_free_fabric;
    }
    if (config != NULL && config->address != NULL) {
        fabric->name = strdup(config->address);
        if (fabric->name == NULL) {
            status = uc_error(UC_ERR_OUT_OF_MEMORY, "tcp: no memory for the address; free some");
            goto err_free_fabric;
        }
        status = uc_tcp_fabric_look_up(fabric, fabric->name);
        if (status != UC_OK) {
            goto err_free_name;
        }
    }

    fabric->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (fabric->epoll_fd < 0) {
        status = uc_log_errno(errno, "tcp: epoll_create1");
        goto err_free_name;
    }

    *fabric_out = fabric;
    return UC_OK;

err_free_name:
    free(fabric->name);
err_free_fabric:
    free(fabric);
    return status;
}

static void
tcp_close(struct uc_fabric *fabric)
{
    if (fabric == NULL) {
        return;
    }

    assert(!fabric->is_polling);
    assert(fabric->endpoint_count == 0);
    assert(fabric->listener_count == 0);
    assert(fabric->domain_count == 0);
    (void)close(fabric->epoll_fd);
    free(fabric->name);
    free(fabric);
}

static void
tcp_caps(const struct uc_fabric *fabric, struct uc_fabric_caps *caps_out)
{
    (void)fabric;
    *caps_out = uc_tcp_caps;
}

static void
tcp_fence(struct uc_fabric_endpoint *endpoint)
{
    if (endpoint->kind == UC_TCP_LANE) {
        uc_tcp_client_close((struct uc_tcp_client *)endpoint);
    } else {
        uc_tcp_group_close((struct uc_tcp_group *)endpoint);
    }
}

static void
tcp_disconnect(struct uc_fabric_endpoint *endpoint)
{
    if (endpoint == NULL) {
        return;
    }

    tcp_fence(endpoint);
    if (endpoint->kind == UC_TCP_TARGET) {
        uc_tcp_group_bury((struct uc_tcp_group *)endpoint);
        return;
    }

    endpoint->domain->endpoint_count--;
    endpoint->fabric->endpoint_count--;
    uc_tcp_bury(endpoint->fabric, &endpoint->mortal);
}

/* Turn events into what each source may do, and give those sources a turn. */
static void
fetch_events(struct uc_fabric *fabric)
{
    struct epoll_event events[EVENT_COUNT];
    int count = epoll_wait(fabric->epoll_fd, events, EVENT_COUNT, 0);

    for (int idx = 0; idx < count; idx++) {
        struct uc_tcp_source *source = events[idx].data.ptr;
        uint32_t flags = events[idx].events;

        if ((flags & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) {
            source->is_hung_up = true;
            source->readable = true;
        }
        if ((flags & EPOLLIN) != 0) {
            source->readable = true;
        }
        if ((flags & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0) {
            source->writable = true;
        }
        uc_tcp_source_wake(source);
    }
}

static struct uc_tcp_source *
first_due(struct uc_fabric *fabric, uint64_t now_ms)
{
    uc_list_for_each (node, &fabric->timed) {
        struct uc_tcp_source *source = uc_list_entry(node, struct uc_tcp_source, timed_node);

        if (source->deadline_ms <= now_ms) {
            return source;
        }
    }
    return NULL;
}

static size_t
expire(struct uc_fabric *fabric)
{
    struct uc_tcp_source *source;
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
        case UC_TCP_LISTENER:
            uc_tcp_listener_expire((struct uc_fabric_listener *)source);
            break;
        case UC_TCP_LANE:
            uc_tcp_lane_expire(uc_list_entry(source, struct uc_tcp_lane, stream.source));
            break;
        case UC_TCP_TARGET:
            uc_tcp_target_drop(uc_list_entry(source, struct uc_tcp_target, stream.source));
            break;
        }
    }
    return count;
}

static bool
source_turn(struct uc_tcp_source *source, size_t *budget)
{
    switch (source->kind) {
    case UC_TCP_LISTENER:
        return uc_tcp_listener_turn((struct uc_fabric_listener *)source, budget);
    case UC_TCP_LANE:
        return uc_tcp_lane_turn(uc_list_entry(source, struct uc_tcp_lane, stream.source), budget);
    case UC_TCP_TARGET:
        return uc_tcp_target_turn(
                uc_list_entry(source, struct uc_tcp_target, stream.source), budget);
    }
    return false;
}

static size_t
tcp_poll(struct uc_fabric *fabric, size_t budget)
{
    struct uc_list marker; /* behind it are those who get their turn in the next poll */
    struct uc_list *node;
    size_t left = budget;
    size_t expired;

    fabric->is_polling = true;
    fetch_events(fabric);
    expired = expire(fabric);

    uc_list_init(&marker);
    uc_list_add(&fabric->turns, &marker);
    while (left > 0 && (node = uc_list_take(&fabric->turns)) != &marker) {
        struct uc_tcp_source *source = uc_list_entry(node, struct uc_tcp_source, turn_node);

        if (source_turn(source, &left)) {
            uc_tcp_source_wake(source);
        }
    }
    uc_list_remove(&marker);

    fabric->is_polling = false;
    free_dead(fabric);
    if (left < budget) {
        fabric->spin_until_ns = uc_clock_now_ns() + (uint64_t)UC_TCP_SPIN_US * 1000;
    }
    return budget - left + expired;
}

static bool
tcp_arm(struct uc_fabric *fabric)
{
    /*
     * Events keep the epoll readable until poll fetches them; only turns are invisible to it. Whoever
     * just transferred is likely to go on: waking a thread costs more than polling that long.
     */
    return uc_list_is_empty(&fabric->turns) && uc_clock_now_ns() >= fabric->spin_until_ns;
}

static int
tcp_event_fd(const struct uc_fabric *fabric)
{
    return fabric->epoll_fd;
}

static uint64_t
tcp_next_deadline_ms(const struct uc_fabric *fabric)
{
    uint64_t deadline_ms = UC_TIME_NEVER_MS;

    uc_list_for_each (node, &fabric->timed) {
        const struct uc_tcp_source *source =
                uc_list_entry(node, const struct uc_tcp_source, timed_node);

        if (source->deadline_ms < deadline_ms) {
            deadline_ms = source->deadline_ms;
        }
    }
    return deadline_ms;
}

static const struct uc_fabric_ops tcp_ops = {
        .abi_version = UC_FABRIC_ABI_VERSION,
        .struct_size = sizeof(struct uc_fabric_ops),
        .name = "tcp",
        .open = tcp_open,
        .close = tcp_close,
        .caps = tcp_caps,
        .domain_open = uc_tcp_domain_open,
        .domain_close = uc_tcp_domain_close,
        .region_register = uc_tcp_region_register,
        .region_deregister = uc_tcp_region_deregister,
        .region_key = uc_tcp_region_key,
        .listen = uc_tcp_listen,
        .listener_port = uc_tcp_listener_port,
        .listener_close = uc_tcp_listener_close,
        .connect = uc_tcp_connect,
        .fence = tcp_fence,
        .disconnect = tcp_disconnect,
        .post = uc_tcp_post,
        .poll = tcp_poll,
        .arm = tcp_arm,
        .event_fd = tcp_event_fd,
        .next_deadline_ms = tcp_next_deadline_ms,
};

const struct uc_fabric_ops *
uc_tcp_fabric_ops(void)
{
    return &tcp_ops;
}
