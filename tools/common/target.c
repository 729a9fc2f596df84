/* SPDX-License-Identifier: Apache-2.0 */

#include "tools/common/target.h"

#include <ucm/log.h>

#include "client/cluster/server_stat.h"

static const char *
credential(const struct uc_target *target)
{
    return target->credential == NULL ? "" : target->credential;
}

enum uc_status
uc_target_session(const struct uc_target *target, uint64_t timeout_ms,
        struct uc_server_address *address_out, struct uc_session_config *config_out)
{
    enum uc_status status = uc_server_address_parse(target->server, address_out);

    if (status != UC_OK) {
        return status;
    }

    *config_out = (struct uc_session_config){
            .server = address_out,
            .name_space = target->name_space,
            .credential = credential(target),
            .client = target->client,
            .access = UC_ACCESS_RO,
            .connect_timeout_ms = timeout_ms,
            .rpc_timeout_ms = timeout_ms,
            .clock = uc_clock_monotonic(),
    };
    return UC_OK;
}

enum uc_status
uc_target_topology(
        const struct uc_target *target, struct uc_dict *config, struct uc_dict **topology_out)
{
    struct uc_dict *topology = NULL;

    if (uc_dict_create(&topology) != UC_OK ||
            uc_dict_append_string(config, "servers", target->server) != UC_OK ||
            uc_dict_set_string(config, "namespace", target->name_space) != UC_OK ||
            uc_dict_set_string(config, "credential", credential(target)) != UC_OK ||
            uc_dict_set_string(config, "fabric", target->fabric) != UC_OK ||
            uc_dict_set_string(topology, "type", "store") != UC_OK ||
            uc_dict_set_string(topology, "store", "remote") != UC_OK ||
            uc_dict_set_dict(topology, "config", config) != UC_OK) {
        uc_dict_destroy(topology);
        return uc_error(UC_ERR_OUT_OF_MEMORY, "no memory for the topology");
    }

    *topology_out = topology;
    return UC_OK;
}

enum uc_status
uc_target_stat(const struct uc_target *target, uint64_t timeout_ms, struct uc_stat_reply *stat_out)
{
    struct uc_server_address address;
    struct uc_session_config config;
    enum uc_status status = uc_target_session(target, timeout_ms, &address, &config);

    return status == UC_OK ? uc_server_stat(&config, stat_out) : status;
}
