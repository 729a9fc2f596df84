/* SPDX-License-Identifier: Apache-2.0 */

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <ucm/assembler.h>

#include "client/device/device.h"
#include "client/proxy/node.h"

struct uc_assembler {
    struct uc_build build; /* borrowed by the nodes */
    struct uc_node *root;
};

/* what the host leaves out, a device answers that this process uses: handles are its events then. */
static void
add_device_hook(struct uc_prerequisite *prerequisite)
{
    const struct uc_device_ops *device = uc_device_find(UC_MEMORY_CUDA);

    if (prerequisite->poll == NULL && device != NULL && device->has_events()) {
        prerequisite->poll = device->event_poll;
        prerequisite->context = NULL;
    }
}

/* Members beyond the caller's struct_size are absent. */
static enum uc_status
read_options(const struct uc_assembler_options *options, struct uc_build *build_out)
{
    struct uc_assembler_options known = {.role = UC_ROLE_BOTH};
    size_t known_bytes;

    if (options != NULL) {
        if (options->struct_size < sizeof(options->struct_size)) {
            return uc_error(UC_ERR_INVALID_PARAM,
                    "assembler options: struct_size %u is too small: set it to the size of the struct",
                    options->struct_size);
        }
        known_bytes = options->struct_size < sizeof(known) ? options->struct_size : sizeof(known);
        memcpy(&known, options, known_bytes);
    }
    if (known.role != UC_ROLE_BOTH && known.role != UC_ROLE_SCHEDULER &&
            known.role != UC_ROLE_WORKER) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "assembler options: role %d is not both, scheduler or worker", (int)known.role);
    }

    *build_out = (struct uc_build){
            .role = known.role,
            .prerequisite = {.poll = known.prerequisite_hook,
                    .context = known.prerequisite_context},
            .routing = {.tables = known.routing_tables, .count = known.routing_table_count},
    };
    add_device_hook(&build_out->prerequisite);
    return uc_routing_check_extra(&build_out->routing);
}

enum uc_status
uc_assembler_create(const struct uc_dict *config, const struct uc_assembler_options *options,
        struct uc_assembler **assembler_out)
{
    struct uc_assembler *assembler;
    enum uc_status status;

    if (config == NULL || assembler_out == NULL) {
        return uc_error(UC_ERR_INVALID_PARAM, "assembler: %s is null",
                config == NULL ? "config" : "assembler_out");
    }
    assembler = calloc(1, sizeof(*assembler));
    if (assembler == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "no memory for an assembler");
    }

    status = read_options(options, &assembler->build);
    if (status != UC_OK) {
        goto err_free_assembler;
    }
    status = uc_node_check(&assembler->build, config, UC_NODE_ROOT_PATH);
    if (status != UC_OK) {
        goto err_free_assembler;
    }
    status = uc_node_create(&assembler->build, config, UC_NODE_ROOT_PATH, &assembler->root);
    if (status != UC_OK) {
        goto err_free_assembler;
    }

    *assembler_out = assembler;
    return UC_OK;

err_free_assembler:
    free(assembler);
    return status;
}

void
uc_assembler_destroy(struct uc_assembler *assembler)
{
    if (assembler == NULL) {
        return;
    }

    uc_node_destroy(assembler->root);
    free(assembler);
}

enum uc_status
uc_assembler_scheduler(struct uc_assembler *assembler, struct uc_scheduler **scheduler_out)
{
    if (assembler == NULL || scheduler_out == NULL) {
        return uc_error(UC_ERR_INVALID_PARAM, "assembler: %s is null",
                assembler == NULL ? "assembler" : "scheduler_out");
    }
    if (assembler->build.role == UC_ROLE_WORKER) {
        return uc_error(UC_ERR_UNSUPPORTED,
                "assembler: it was made with role worker, which has no scheduler");
    }

    *scheduler_out = assembler->root->scheduler;
    return UC_OK;
}

enum uc_status
uc_assembler_worker(struct uc_assembler *assembler, struct uc_worker **worker_out)
{
    if (assembler == NULL || worker_out == NULL) {
        return uc_error(UC_ERR_INVALID_PARAM, "assembler: %s is null",
                assembler == NULL ? "assembler" : "worker_out");
    }
    if (assembler->build.role == UC_ROLE_SCHEDULER) {
        return uc_error(UC_ERR_UNSUPPORTED,
                "assembler: it was made with role scheduler, which has no worker");
    }

    *worker_out = assembler->root->worker;
    return UC_OK;
}
