/* SPDX-License-Identifier: Apache-2.0 */

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <ucm/log.h>

#include "client/proxy/peer_internal.h"

enum {
    NAME_LIST_BYTES = 512
};

static const char *const known_keys[] = {"type", "branches", "routing"};
static const char *const routing_keys[] = {"strategy", "config"};

/* Peers do not nest, so this one is the root and its routing has no path in front. */
#define ROUTING_PATH "routing"

static enum uc_status
check_routing(const struct uc_build *build, const struct uc_dict *config, const char *path)
{
    const struct uc_dict *routing = NULL;
    const struct uc_dict *inner = NULL;
    const char *name = "";
    char names[NAME_LIST_BYTES];
    enum uc_status status = uc_dict_get_dict(config, "routing", &routing);

    if (status != UC_OK) {
        return uc_node_error(UC_ERR_INVALID_PARAM, path, "routing",
                "%s: it holds the name of a strategy and its config",
                status == UC_ERR_NOT_FOUND ? "is missing" : "must be a dictionary");
    }
    status = uc_node_check_keys(
            routing, ROUTING_PATH, routing_keys, sizeof(routing_keys) / sizeof(routing_keys[0]));
    if (status != UC_OK) {
        return status;
    }
    uc_routing_names(&build->routing, names, sizeof(names));
    status = uc_dict_get_string(routing, "strategy", &name);
    if (status != UC_OK || name[0] == '\0') {
        return uc_node_error(UC_ERR_INVALID_PARAM, ROUTING_PATH, "strategy",
                "%s: known strategies are %s",
                status == UC_OK              ? "is empty"
                : status == UC_ERR_NOT_FOUND ? "is missing"
                                             : "must be a text",
                names);
    }
    if (uc_routing_find(&build->routing, name) == NULL) {
        return uc_node_error(UC_ERR_INVALID_PARAM, ROUTING_PATH, "strategy",
                "'%.64s' is unknown: known strategies are %s", name, names);
    }
    status = uc_dict_get_dict(routing, "config", &inner);
    if (status != UC_OK && status != UC_ERR_NOT_FOUND) {
        return uc_node_error(UC_ERR_INVALID_PARAM, ROUTING_PATH, "config", "must be a dictionary");
    }

    return UC_OK;
}

static enum uc_status
check_branch(const struct uc_build *build, const struct uc_dict *branch, const char *path)
{
    const char *type = NULL;

    if (uc_dict_get_string(branch, "type", &type) == UC_OK && strcmp(type, "peer") == 0) {
        return uc_node_error(UC_ERR_INVALID_PARAM, path, "type",
                "is 'peer': peers do not nest; flatten it: put its branches into the list of a "
                "wider peer");
    }

    return uc_node_check(build, branch, path);
}

enum uc_status
uc_node_check_peer(const struct uc_build *build, const struct uc_dict *config, const char *path)
{
    size_t count = 0;
    enum uc_status status = uc_node_check_keys(
            config, path, known_keys, sizeof(known_keys) / sizeof(known_keys[0]));

    if (status != UC_OK) {
        return status;
    }
    status = uc_node_check_children(config, path, "branches", "branch", &count);
    for (size_t idx = 0; status == UC_OK && idx < count; idx++) {
        const struct uc_dict *branch = NULL;
        char branch_path[UC_NODE_PATH_BYTES];

        uc_node_child_path(path, "branches", idx, branch_path);
        status = uc_dict_get_dict_at(config, "branches", idx, &branch);
        if (status == UC_OK) {
            status = check_branch(build, branch, branch_path);
        }
    }

    return status == UC_OK ? check_routing(build, config, path) : status;
}

/* `routing.config` goes to the strategy as it is. */
static enum uc_status
create_routing(struct uc_peer *self, const struct uc_build *build, const struct uc_dict *config)
{
    const struct uc_routing_ops *ops;
    const struct uc_dict *parameters = NULL;
    const struct uc_dict *routing = NULL;
    struct uc_dict *empty = NULL;
    const char *name = "";
    enum uc_status status = uc_dict_get_dict(config, "routing", &routing);

    if (status == UC_OK) {
        status = uc_dict_get_string(routing, "strategy", &name);
    }
    if (status == UC_OK) {
        status = uc_dict_create(&empty);
    }
    if (status != UC_OK) {
        return status;
    }

    if (uc_dict_get_dict(routing, "config", &parameters) != UC_OK) {
        parameters = empty;
    }
    ops = uc_routing_find(&build->routing, name);
    assert(ops != NULL); /* checked */
    status = ops->create(parameters, self->branch_count, &self->routing);
    if (status == UC_OK) {
        self->routing_ops = ops;
    } else {
        status = uc_node_prefix_error(status, ROUTING_PATH, "config");
    }
    uc_dict_destroy(empty);
    return status;
}

/* The slot is optional, and an older table does not have it. */
static void
destroy_routing(struct uc_peer *self)
{
    const struct uc_routing_ops *ops = self->routing_ops;

    if (ops != NULL &&
            ops->struct_size >= offsetof(struct uc_routing_ops, destroy) + sizeof(ops->destroy) &&
            ops->destroy != NULL) {
        ops->destroy(self->routing);
    }
}

/* Of whatever is there yet: open windows are concluded by the branches, each with its own record. */
static void
destroy_peer(struct uc_node *node)
{
    struct uc_peer *self = (struct uc_peer *)node;

    if (self->data.jobs.count != 0) {
        uc_log_warn("peer: destroyed with %zu jobs in flight: wait for them first",
                self->data.jobs.count);
    }
    uc_peer_data_fini(&self->data);
    uc_request_table_destroy(self->requests);
    for (size_t idx = 0; self->branches != NULL && idx < self->branch_count; idx++) {
        uc_node_destroy(self->branches[idx]);
    }
    free(self->branches);
    destroy_routing(self);
    free(self);
}

static enum uc_status
create_branches(struct uc_peer *self, const struct uc_build *build, const struct uc_dict *config,
        const char *path)
{
    self->branches = calloc(self->branch_count, sizeof(struct uc_node *));
    if (self->branches == NULL) {
        return uc_error(
                UC_ERR_OUT_OF_MEMORY, "%s: no memory for %zu branches", path, self->branch_count);
    }

    for (size_t idx = 0; idx < self->branch_count; idx++) {
        const struct uc_dict *branch = NULL;
        char branch_path[UC_NODE_PATH_BYTES];
        enum uc_status status = uc_dict_get_dict_at(config, "branches", idx, &branch);

        uc_node_child_path(path, "branches", idx, branch_path);
        if (status == UC_OK) {
            status = uc_node_create(build, branch, branch_path, &self->branches[idx]);
        }
        if (status != UC_OK) {
            return status;
        }
    }

    return UC_OK;
}

enum uc_status
uc_node_create_peer(const struct uc_build *build, const struct uc_dict *config, const char *path,
        struct uc_node **node_out)
{
    struct uc_peer *self = calloc(1, sizeof(*self));
    enum uc_status status;

    if (self == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "%s: no memory for a peer", path);
    }
    uc_peer_data_init(&self->data);
    status = uc_dict_get_list_count(config, "branches", &self->branch_count);
    if (status == UC_OK) {
        status = create_routing(self, build, config);
    }
    if (status == UC_OK) {
        status = uc_request_table_create(&self->requests);
    }
    if (status == UC_OK) {
        status = create_branches(self, build, config, path);
    }
    if (status != UC_OK) {
        destroy_peer(&self->node);
        return status;
    }

    self->scheduler.ops = &uc_peer_scheduler_ops;
    self->worker.ops = &uc_peer_worker_ops;
    self->node.scheduler = &self->scheduler;
    self->node.worker = &self->worker;
    self->node.destroy = destroy_peer;
    *node_out = &self->node;
    return UC_OK;
}
