/* SPDX-License-Identifier: Apache-2.0 */

/* What a peer says of itself and its branches. */

#include <stdio.h>
#include <string.h>

#include <ucm/store.h>

#include "client/proxy/peer_internal.h"

enum {
    TEXT_BYTES = 768
};

enum uc_status
uc_peer_health(const struct uc_peer *peer)
{
    char text[TEXT_BYTES] = "";
    size_t used = 0;

    for (size_t idx = 0; idx < peer->branch_count; idx++) {
        struct uc_worker *worker = peer->branches[idx]->worker;
        int written;

        if (worker->ops->health(worker) == UC_OK || used >= sizeof(text)) {
            continue;
        }
        written = snprintf(text + used, sizeof(text) - used, "%sbranch %zu: %s",
                used == 0 ? "" : "; ", idx, uc_last_error());
        used += written < 0 ? 0 : (size_t)written;
    }

    return used == 0 ? UC_OK : uc_error(UC_ERR_UNHEALTHY, "%s", text);
}

static enum uc_status
append_branch(const struct uc_peer *peer, size_t idx, struct uc_dict *description,
        bool *is_tokened_out, bool *is_prefetchable_out)
{
    struct uc_worker *worker = peer->branches[idx]->worker;
    struct uc_dict *branch = NULL;
    enum uc_status status = uc_dict_create(&branch);

    if (status != UC_OK) {
        return status;
    }
    status = worker->ops->describe(worker, branch);
    if (status == UC_OK) {
        status = uc_dict_get_bool(branch, "token_addressed", is_tokened_out);
    }
    if (status == UC_OK) {
        status = uc_dict_get_bool(branch, "prefetchable", is_prefetchable_out);
    }
    if (status == UC_OK) {
        status = uc_dict_append_dict(description, "branches", branch);
    }
    uc_dict_destroy(branch);
    return status;
}

static enum uc_status
describe_self(const struct uc_peer *peer, struct uc_dict *description)
{
    enum uc_status status = uc_dict_set_string(description, "name", "peer");

    if (status == UC_OK) {
        status = uc_dict_set_string(description, "version", "1");
    }
    if (status == UC_OK) {
        status = uc_dict_set_int(description, "abi_version", UC_STORE_ABI_VERSION);
    }
    if (status == UC_OK) {
        status = uc_dict_set_string(description, "node_path", UC_NODE_ROOT_PATH);
    }
    if (status == UC_OK) {
        status = uc_dict_set_string(description, "routing", peer->routing_ops->name);
    }
    return status == UC_OK ? uc_dict_set_list(description, "branches") : status;
}

enum uc_status
uc_peer_describe(const struct uc_peer *peer, struct uc_dict *description)
{
    bool all_tokened = true;
    bool any_prefetchable = false;
    enum uc_status status = describe_self(peer, description);

    for (size_t idx = 0; status == UC_OK && idx < peer->branch_count; idx++) {
        bool is_prefetchable = false;
        bool is_tokened = false;

        status = append_branch(peer, idx, description, &is_tokened, &is_prefetchable);
        all_tokened = all_tokened && is_tokened;
        any_prefetchable = any_prefetchable || is_prefetchable;
    }
    if (status == UC_OK) {
        status = uc_dict_set_bool(description, "token_addressed", all_tokened);
    }
    if (status == UC_OK) {
        status = uc_dict_set_bool(description, "prefetchable", any_prefetchable);
    }
    return status;
}
