/* SPDX-License-Identifier: Apache-2.0 */

#include "tools/bench/replay_topologies.h"

#include <stdlib.h>

#include "tools/bench/topology.h"

enum uc_status
uc_replay_topologies_read(
        struct uc_replay_topologies *topologies, const struct uc_replay_options *options)
{
    topologies->options = options;
    return options->config_path == NULL ? UC_OK
                                        : uc_topology_read(options->config_path, &topologies->file);
}

static enum uc_status
make_remote(const struct uc_replay_options *options, const struct uc_replay_servers *servers,
        struct uc_dict **topology_out)
{
    struct uc_dict *config = NULL;
    enum uc_status status = uc_dict_create(&config);

    if (status == UC_OK) {
        status = uc_dict_set_bool(config, "checksum", options->checksum);
    }
    if (status == UC_OK) {
        status = uc_dict_set_int(config, "block_bytes", (int64_t)options->block_bytes);
    }
    if (status == UC_OK) {
        status = uc_dict_set_int(config, "timeout_ms", (int64_t)options->timeout_ms);
    }
    if (status == UC_OK) {
        status = uc_replay_servers_topology(servers, config, topology_out);
    }
    uc_dict_destroy(config);
    return status;
}

enum uc_status
uc_replay_topologies_make(
        struct uc_replay_topologies *topologies, const struct uc_replay_servers *servers)
{
    const struct uc_replay_options *options = topologies->options;
    struct uc_topology_values values = {
            .servers = servers->config,
            .fabric = options->fabric,
            .block_bytes = options->block_bytes,
    };
    enum uc_status status = UC_OK;

    topologies->nodes = calloc(options->nodes, sizeof(topologies->nodes[0]));
    if (topologies->nodes == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "replay: no memory for the topologies");
    }
    topologies->node_count = (size_t)options->nodes;
    for (size_t idx = 0; idx < topologies->node_count && status == UC_OK; idx++) {
        values.node = idx;
        status = topologies->file == NULL
                         ? make_remote(options, servers, &topologies->nodes[idx])
                         : uc_topology_expand(topologies->file, options->config_path, &values,
                                   &topologies->nodes[idx]);
    }
    return status;
}

void
uc_replay_topologies_fini(struct uc_replay_topologies *topologies)
{
    for (size_t idx = 0; idx < topologies->node_count; idx++) {
        uc_dict_destroy(topologies->nodes[idx]);
    }
    free(topologies->nodes);
    uc_dict_destroy(topologies->file);
    *topologies = (struct uc_replay_topologies){0};
}
