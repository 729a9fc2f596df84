/* SPDX-License-Identifier: Apache-2.0 */

/* Making and unmaking of a server; the loop is in loop.c. */

#include "server/server.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <ucm/log.h>

#include "core/base/bytes.h"
#include "server/listener.h"
#include "server/loop.h"
#include "server/peer.h"
#include "server/secret.h"
#include "server/session.h"
#include "server/state.h"

enum {
    CONNECTIONS_MAX = 4096,
    /* For the fabric, logs and files: connections leave these descriptors alone. */
    DESCRIPTORS_SPARE = 64,
};

static enum uc_status
make_identity(struct uc_server *server)
{
    enum uc_status status = uc_secret_random(server->server_id, sizeof(server->server_id));

    while (status == UC_OK && server->incarnation == 0) {
        status = uc_secret_random(&server->incarnation, sizeof(server->incarnation));
    }
    return status;
}

static enum uc_status
make_region_lengths(struct uc_server *server)
{
    const struct uc_arena_layout *layout = &server->ns->layout;

    server->region_lengths = calloc(layout->region_count, sizeof(uint64_t));
    if (server->region_lengths == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "no memory for the region table");
    }
    for (uint32_t idx = 0; idx < layout->region_count; idx++) {
        uc_put_le64(server->region_lengths + idx * sizeof(uint64_t),
                uc_arena_layout_region_bytes(layout, idx));
    }
    return UC_OK;
}

static size_t
connection_limit(void)
{
    struct rlimit limit = {0};

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
            limit.rlim_cur >= CONNECTIONS_MAX + DESCRIPTORS_SPARE) {
        return CONNECTIONS_MAX;
    }
    return limit.rlim_cur > 2 * DESCRIPTORS_SPARE ? (size_t)limit.rlim_cur - DESCRIPTORS_SPARE
                                                  : DESCRIPTORS_SPARE;
}

static enum uc_status
open_everything(struct uc_server *server)
{
    char host[UC_FIELD_STRING_BYTES];
    enum uc_status status;

    status = uc_listener_bind(
            server->config->listen, host, sizeof(host), &server->listen_fd, &server->rpc_port);
    if (status != UC_OK) {
        return status;
    }
    status = uc_namespace_create(&server->config->name_space, &server->clock, &server->ns);
    if (status == UC_OK) {
        status = make_region_lengths(server);
    }
    if (status == UC_OK) {
        status = uc_fabric_thread_create(server->config, host, server->ns, &server->fabrics);
    }
    if (status == UC_OK) {
        status = uc_listener_start(server->listen_fd, server->config->listen);
    }
    if (status == UC_OK) {
        status = uc_loop_init(server);
    }
    return status;
}

enum uc_status
uc_server_create(const struct uc_server_config *config, const struct uc_clock *clock,
        struct uc_server **server_out)
{
    struct uc_server *server = calloc(1, sizeof(*server));
    enum uc_status status;

    if (server == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "no memory for the server");
    }

    server->config = config;
    server->clock = *clock;
    server->now_ms = uc_clock_now_ms(clock);
    server->started_ms = server->now_ms;
    server->epoll_fd = -1;
    server->listen_fd = -1;
    server->next_id = 1;
    server->peer_limit = connection_limit();
    uc_list_init(&server->peers);
    uc_list_init(&server->closing);
    uc_list_init(&server->sessions);
    status = make_identity(server);
    if (status == UC_OK) {
        status = open_everything(server);
    }
    if (status != UC_OK) {
        uc_server_destroy(server);
        return status;
    }

    uc_log_info("server: listens on %s (port %u), fabric %s, incarnation %016" PRIx64,
            config->listen, server->rpc_port, uc_fabric_thread_names(server->fabrics),
            server->incarnation);
    *server_out = server;
    return UC_OK;
}

void
uc_server_destroy(struct uc_server *server)
{
    if (server == NULL) {
        return;
    }

    uc_loop_close_all(server);
    /* Ends every endpoint and answers the fences, so that what groups held is released in order. */
    uc_fabric_thread_destroy(server->fabrics);
    assert(uc_list_is_empty(&server->sessions));
    if (server->listen_fd >= 0) {
        (void)close(server->listen_fd);
    }
    if (server->epoll_fd >= 0) {
        (void)close(server->epoll_fd);
    }
    uc_namespace_destroy(server->ns);
    uc_scratch_fini(&server->scratch);
    uc_rpc_buffer_fini(&server->reply);
    free(server->region_lengths);
    free(server);
}

uint16_t
uc_server_rpc_port(const struct uc_server *server)
{
    return server->rpc_port;
}

uint16_t
uc_server_fabric_port(const struct uc_server *server)
{
    return uc_fabric_thread_port(server->fabrics);
}
