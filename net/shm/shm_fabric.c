/* SPDX-License-Identifier: Apache-2.0 */

#include "net/shm/shm_fabric.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "net/shm/shm_object.h"

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
uc_shm_endpoint_init(struct uc_fabric_endpoint *endpoint, struct uc_fabric *fabric,
        const struct uc_source_ops *ops)
{
    uc_source_init(&endpoint->source, &fabric->turns, ops);
    endpoint->fabric = fabric;
}

enum uc_status
uc_shm_endpoint_watch(struct uc_fabric_endpoint *endpoint, int fd)
{
    return uc_source_watch(&endpoint->source, fd, EPOLLIN | EPOLLRDHUP);
}

void
uc_shm_endpoint_event(struct uc_source *source, uint32_t events)
{
    (void)events;
    source->readable = true;
}

void
uc_shm_endpoint_bury(struct uc_fabric_endpoint *endpoint)
{
    assert(endpoint->source.fd < 0);
    if (endpoint->domain != NULL) {
        endpoint->domain->endpoint_count--;
    }
    endpoint->fabric->endpoint_count--;
    uc_turns_bury(&endpoint->fabric->turns, &endpoint->mortal);
}

void
uc_shm_ring_peer(struct uc_source *source, const _Atomic uint32_t *sleep_epoch, uint32_t *rung)
{
    if (uc_shm_must_wake(sleep_epoch, rung)) {
        struct uc_shm_packet packet = {.kind = UC_SHM_WAKE};
        uint8_t bytes[UC_SHM_PACKET_BYTES];
        size_t length = uc_shm_packet_put(bytes, &packet);

        /* Blocked: the peer has packets that it has not read, which wake it as well. Lost: an event tells. */
        (void)uc_shm_send(source->fd, bytes, length, NULL, 0);
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

    uc_list_init(&fabric->waiting);
    status = uc_turns_init(&fabric->turns, "shm");
    if (status != UC_OK) {
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

    assert(fabric->endpoint_count == 0);
    assert(fabric->listener_count == 0);
    assert(fabric->domain_count == 0);
    uc_turns_fini(&fabric->turns);
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
    if (endpoint->is_initiator) {
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

/* A server says in memory what it has done; nobody is woken for it while we poll. */
static void
look_at_waiting(struct uc_fabric *fabric)
{
    uc_list_for_each (node, &fabric->waiting) {
        uc_source_wake(&uc_list_entry(node, struct uc_shm_client, waiting_node)->base.source);
    }
}

static size_t
shm_poll(struct uc_fabric *fabric, size_t budget)
{
    look_at_waiting(fabric);
    return uc_turns_poll(&fabric->turns, budget);
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
    return !has_work && uc_turns_are_over(&fabric->turns);
}

static int
shm_event_fd(const struct uc_fabric *fabric)
{
    return fabric->turns.epoll_fd;
}

static uint64_t
shm_next_deadline_ms(const struct uc_fabric *fabric)
{
    return uc_turns_next_deadline_ms(&fabric->turns);
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
