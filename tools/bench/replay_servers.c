/* SPDX-License-Identifier: Apache-2.0 */

#include "tools/bench/replay_servers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/target.h"

enum {
    ADDRESS_BYTES = 320,
    STAT_TIMEOUT_MS = 10000,
};

static struct uc_target
target_of(const struct uc_replay_servers *servers, const char *server)
{
    return (struct uc_target){
            .server = server,
            .name_space = servers->options->namespace_name,
            .credential = servers->options->credential,
            .fabric = servers->options->fabric,
            .client = "ucm-bench",
    };
}

static enum uc_status
spawn_servers(struct uc_replay_servers *servers)
{
    const struct uc_replay_options *options = servers->options;
    struct uc_spawn_options spawn = {
            .address = options->address,
            .fabric = options->fabric,
            .policy = options->policy,
            .name_space = options->namespace_name,
            .block_bytes = options->block_bytes,
            .capacity_blocks = options->capacity_blocks,
    };

    servers->spawned = calloc(options->server_count, sizeof(servers->spawned[0]));
    if (servers->spawned == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "replay: no memory for the servers");
    }

    for (size_t idx = 0; idx < options->server_count; idx++) {
        char address[ADDRESS_BYTES];
        enum uc_status status = uc_server_spawn(&spawn, &servers->spawned[idx]);

        if (status != UC_OK) {
            return status;
        }
        servers->spawned_count++;
        (void)snprintf(address, sizeof(address), "%s:%u", options->address,
                (unsigned)servers->spawned[idx].rpc_port);
        status = uc_dict_append_string(servers->config, "servers", address);
        if (status != UC_OK) {
            return status;
        }
    }
    return UC_OK;
}

/* "HOST:PORT,HOST:PORT" as a list. */
static enum uc_status
split_servers(struct uc_replay_servers *servers)
{
    const char *at = servers->options->server;
    enum uc_status status = UC_OK;

    while (at != NULL && status == UC_OK) {
        size_t length = strcspn(at, ",");
        char address[ADDRESS_BYTES];

        (void)snprintf(address, sizeof(address), "%.*s", (int)length, at);
        status = uc_dict_append_string(servers->config, "servers", address);
        at = at[length] == ',' ? at + length + 1 : NULL;
    }
    return status;
}

enum uc_status
uc_replay_servers_open(struct uc_replay_servers *servers, const struct uc_replay_options *options)
{
    enum uc_status status = uc_dict_create(&servers->config);

    servers->options = options;
    if (status == UC_OK) {
        status = options->spawn_server ? spawn_servers(servers) : split_servers(servers);
    }
    if (status == UC_OK && !options->spawn_server && options->server == NULL) {
        return UC_OK; /* a topology that does without */
    }
    if (status == UC_OK) {
        status = uc_server_list_read(servers->config, "servers", &servers->list);
    }
    if (status != UC_OK) {
        return status;
    }

    servers->before = calloc(servers->list.count, sizeof(servers->before[0]));
    if (servers->before == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "replay: no memory for the counters of the servers");
    }
    for (size_t idx = 0; idx < servers->list.count && status == UC_OK; idx++) {
        struct uc_target target = target_of(servers, servers->list.servers[idx].name);

        status = uc_target_stat(&target, STAT_TIMEOUT_MS, &servers->before[idx]);
    }
    return status;
}

enum uc_status
uc_replay_servers_topology(const struct uc_replay_servers *servers, struct uc_dict *config,
        struct uc_dict **topology_out)
{
    size_t count = servers->list.count;
    const char *text = "";
    enum uc_status status = UC_OK;
    struct uc_target target;

    /* The last is appended with the rest of what the target is. */
    for (size_t idx = 0; idx < count && status == UC_OK; idx++) {
        status = uc_dict_get_string_at(servers->config, "servers", idx, &text);
        if (status == UC_OK && idx + 1 < count) {
            status = uc_dict_append_string(config, "servers", text);
        }
    }
    if (status != UC_OK) {
        return status;
    }

    target = target_of(servers, text);
    return uc_target_topology(&target, config, topology_out);
}

enum uc_status
uc_replay_servers_count(const struct uc_replay_servers *servers, struct uc_stat_reply *sum_out)
{
    struct uc_stat_reply first = {0};
    struct uc_stat_reply sum = {0};

    for (size_t idx = 0; idx < servers->list.count; idx++) {
        struct uc_target target = target_of(servers, servers->list.servers[idx].name);
        const struct uc_stat_reply *before = &servers->before[idx];
        struct uc_stat_reply now;
        enum uc_status status = uc_target_stat(&target, STAT_TIMEOUT_MS, &now);

        if (status != UC_OK) {
            return status;
        }
#define ADD_(field)                                                                   \
    if (strstr(#field, "_total") != NULL && now.incarnation == before->incarnation) { \
        now.field -= before->field;                                                   \
    }                                                                                 \
    sum.field += now.field;
        UC_STAT_MAP(ADD_)
#undef ADD_
        if (idx == 0) {
            first = now;
        }
    }

    sum.block_bytes = first.block_bytes;
    sum.slot_bytes = first.slot_bytes;
    sum.uptime_ms = first.uptime_ms;
    sum.incarnation = first.incarnation;
    *sum_out = sum;
    return UC_OK;
}

void
uc_replay_servers_kill(struct uc_replay_servers *servers)
{
    for (size_t idx = 0; idx < servers->spawned_count; idx++) {
        uc_server_kill(&servers->spawned[idx]);
    }
    servers->spawned_count = 0;
}

enum uc_status
uc_replay_servers_close(struct uc_replay_servers *servers)
{
    enum uc_status first = UC_OK;

    for (size_t idx = 0; idx < servers->spawned_count; idx++) {
        enum uc_status status = uc_server_stop(&servers->spawned[idx]);

        first = first == UC_OK ? status : first;
    }
    free(servers->spawned);
    free(servers->before);
    uc_server_list_fini(&servers->list);
    uc_dict_destroy(servers->config);
    *servers = (struct uc_replay_servers){0};
    return first;
}
