/* SPDX-License-Identifier: Apache-2.0 */

#include "net/tcp/tcp_fabric.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <ucm/clock.h>

#include "net/tcp/tcp_client.h"
#include "net/tcp/tcp_target.h"

const struct uc_fabric_caps uc_tcp_caps = {
        .needs_registration = false,
        .feeds_bytes = true,
        .checks_generation = true,
        .max_piece_count = 65536,
        .max_op_bytes = UC_TCP_MAX_OP_BYTES,
};

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

    status = uc_turns_init(&fabric->turns, "tcp");
    if (status != UC_OK) {
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

    assert(fabric->endpoint_count == 0);
    assert(fabric->listener_count == 0);
    assert(fabric->domain_count == 0);
    uc_turns_fini(&fabric->turns);
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
    if (endpoint->is_initiator) {
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
    if (!endpoint->is_initiator) {
        uc_tcp_group_bury((struct uc_tcp_group *)endpoint);
        return;
    }

    endpoint->domain->endpoint_count--;
    endpoint->fabric->endpoint_count--;
    uc_turns_bury(&endpoint->fabric->turns, &endpoint->mortal);
}

static size_t
tcp_poll(struct uc_fabric *fabric, size_t budget)
{
    size_t done = uc_turns_poll(&fabric->turns, budget);

    if (done > 0) {
        fabric->spin_until_ns = uc_clock_now_ns() + (uint64_t)UC_TCP_SPIN_US * 1000;
    }
    return done;
}

static bool
tcp_arm(struct uc_fabric *fabric)
{
    /* Whoever just transferred is likely to go on: waking a thread costs more than polling that long. */
    return uc_turns_are_over(&fabric->turns) && uc_clock_now_ns() >= fabric->spin_until_ns;
}

static int
tcp_event_fd(const struct uc_fabric *fabric)
{
    return fabric->turns.epoll_fd;
}

static uint64_t
tcp_next_deadline_ms(const struct uc_fabric *fabric)
{
    return uc_turns_next_deadline_ms(&fabric->turns);
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
