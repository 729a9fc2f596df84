/* SPDX-License-Identifier: Apache-2.0 */

#include "client/cluster/server_set.h"

#include <inttypes.h>
#include <stdlib.h>

#include <ucm/log.h>

static enum uc_status
start_all(const struct uc_server_list *servers, const struct uc_session_config *config,
        struct uc_server_set *set)
{
    for (size_t idx = 0; idx < servers->count; idx++) {
        struct uc_session_config one = *config;
        enum uc_status status;

        one.server = &servers->servers[idx];
        status = uc_session_start(&one, &set->sessions[idx]);
        if (status != UC_OK) {
            return status;
        }
        set->count++;
    }

    return UC_OK;
}

/* A wrong configuration shows now; a server that is away or about to leave is none. */
static bool
is_out_of_reach(enum uc_status status)
{
    return status == UC_ERR_UNHEALTHY || status == UC_ERR_DRAINING || status == UC_ERR_RETRY;
}

/* Whoever knows the size of the blocks can wait for the servers; the others have to learn it from one. */
static enum uc_status
await_all(const struct uc_server_set *set, bool can_wait, size_t *connected_out)
{
    enum uc_status first = UC_OK;
    size_t connected = 0;

    for (size_t idx = 0; idx < set->count; idx++) {
        enum uc_status status = uc_session_await(set->sessions[idx]);

        if (status == UC_OK) {
            connected++;
        } else if (!is_out_of_reach(status)) {
            return status;
        } else {
            first = status;
            if (set->count > 1 || can_wait) {
                uc_log_warn("%s; its blocks are missing until it can be reached", uc_last_error());
            }
        }
    }

    *connected_out = connected;
    return connected > 0 || can_wait ? UC_OK : first;
}

/* All servers of a namespace have blocks of one size, those that come later included. */
static enum uc_status
agree(const struct uc_server_list *servers, const struct uc_server_set *set,
        struct uc_hello_reply *hello_out)
{
    const char *first_name = NULL;

    for (size_t idx = 0; idx < set->count; idx++) {
        struct uc_session_info info;

        uc_session_info(set->sessions[idx], &info);
        if (info.epoch == 0) {
            continue;
        }
        if (first_name == NULL) {
            *hello_out = info.hello;
            first_name = servers->servers[idx].name;
        } else if (info.hello.block_bytes != hello_out->block_bytes) {
            return uc_error(UC_ERR_INVALID_PARAM,
                    "servers %s and %s have blocks of %" PRIu64 " and %" PRIu64
                    " bytes: give the namespace one block size on all servers",
                    first_name, servers->servers[idx].name, hello_out->block_bytes,
                    info.hello.block_bytes);
        }
    }
    for (size_t idx = 0; set->count > 1 && idx < set->count; idx++) {
        uc_session_require_block_bytes(set->sessions[idx], hello_out->block_bytes);
    }
    return UC_OK;
}

enum uc_status
uc_server_set_open(const struct uc_server_list *servers, const struct uc_session_config *config,
        struct uc_server_set *set_out, struct uc_hello_reply *hello_out)
{
    struct uc_server_set set = {.count = 0};
    size_t connected = 0;
    enum uc_status status;

    set.sessions = calloc(servers->count, sizeof(set.sessions[0]));
    if (set.sessions == NULL) {
        return uc_error(
                UC_ERR_OUT_OF_MEMORY, "no memory for sessions with %zu servers", servers->count);
    }

    status = start_all(servers, config, &set);
    if (status == UC_OK) {
        status = await_all(&set, config->block_bytes != 0, &connected);
    }
    if (status == UC_OK && connected > 0) {
        status = agree(servers, &set, hello_out);
    }
    if (status != UC_OK) {
        uc_server_set_close(&set);
        return status;
    }
    if (connected == 0) {
        *hello_out = (struct uc_hello_reply){.block_bytes = config->block_bytes};
    }

    if (connected < set.count) {
        uc_log_warn("%zu of %zu servers can be reached", connected, set.count);
    }
    *set_out = set;
    return UC_OK;
}

void
uc_server_set_close(struct uc_server_set *set)
{
    for (size_t idx = 0; idx < set->count; idx++) {
        uc_session_stop(set->sessions[idx]);
    }
    for (size_t idx = 0; idx < set->count; idx++) {
        uc_session_destroy(set->sessions[idx]);
    }
    free(set->sessions);
    set->sessions = NULL;
    set->count = 0;
}

bool
uc_server_set_is_usable(const struct uc_server_set *set)
{
    for (size_t idx = 0; idx < set->count; idx++) {
        if (uc_session_is_usable(set->sessions[idx])) {
            return true;
        }
    }

    return false;
}
