/* SPDX-License-Identifier: Apache-2.0 */

#include "client/stores/posix/assembly.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/stores/posix/op.h"
#include "core/base/bytes.h"

void
uc_posix_assemblies_init(struct uc_posix_assemblies *assemblies, struct uc_posix_roots *roots)
{
    assemblies->roots = roots;
    assemblies->count = 0;
    for (size_t idx = 0; idx < UC_POSIX_ASSEMBLY_BUCKETS; idx++) {
        uc_list_init(&assemblies->buckets[idx]);
    }
}

static void
destroy(struct uc_posix_assemblies *assemblies, struct uc_posix_assembly *assembly)
{
    if (assembly->has_temp) {
        (void)unlinkat(
                uc_posix_root_of(assemblies->roots, &assembly->id)->owner_fd, assembly->temp, 0);
    }
    uc_list_remove(&assembly->link);
    uc_range_set_fini(&assembly->written);
    free(assembly);
    assemblies->count--;
}

void
uc_posix_assemblies_fini(struct uc_posix_assemblies *assemblies)
{
    uc_posix_assemblies_expire(assemblies, UINT64_MAX);
}

/* Ids are hashes already. */
static struct uc_list *
bucket_of(struct uc_posix_assemblies *assemblies, const struct uc_block_id *id)
{
    return &assemblies->buckets[uc_get_le32(id->bytes) % UC_POSIX_ASSEMBLY_BUCKETS];
}

static struct uc_posix_assembly *
find_or_add(struct uc_posix_assemblies *assemblies, const struct uc_block_id *id)
{
    struct uc_list *bucket = bucket_of(assemblies, id);
    struct uc_posix_assembly *assembly;

    uc_list_for_each (node, bucket) {
        assembly = uc_list_entry(node, struct uc_posix_assembly, link);
        if (memcmp(&assembly->id, id, sizeof(*id)) == 0) {
            return assembly;
        }
    }

    assembly = calloc(1, sizeof(*assembly));
    if (assembly == NULL) {
        return NULL;
    }
    assembly->id = *id;
    uc_list_init(&assembly->waiting);
    uc_posix_temp_name(assemblies->roots, assembly->temp);
    uc_list_add(bucket, &assembly->link);
    assemblies->count++;
    return assembly;
}

enum uc_status
uc_posix_assembly_enter(struct uc_posix_assemblies *assemblies, struct uc_posix_op *op,
        uint64_t now_ms, bool *entered_out)
{
    struct uc_posix_assembly *assembly = find_or_add(assemblies, &op->id);

    if (assembly == NULL) {
        return UC_ERR_OUT_OF_MEMORY;
    }

    op->assembly = assembly;
    assembly->used_ms = now_ms;
    if (assembly->is_busy) {
        uc_list_add(&assembly->waiting, &op->link);
        *entered_out = false;
    } else {
        assembly->is_busy = true;
        *entered_out = true;
    }
    return UC_OK;
}

struct uc_posix_op *
uc_posix_assembly_leave(
        struct uc_posix_assemblies *assemblies, struct uc_posix_op *op, uint64_t now_ms)
{
    struct uc_posix_assembly *assembly = op->assembly;
    struct uc_list *node = uc_list_take(&assembly->waiting);

    op->assembly = NULL;
    assembly->used_ms = now_ms;
    if (node != NULL) {
        return uc_list_entry(node, struct uc_posix_op, link);
    }

    assembly->is_busy = false;
    if (!assembly->has_temp) {
        destroy(assemblies, assembly); /* published, or nothing was written */
    }
    return NULL;
}

void
uc_posix_assemblies_expire(struct uc_posix_assemblies *assemblies, uint64_t before_ms)
{
    for (size_t idx = 0; idx < UC_POSIX_ASSEMBLY_BUCKETS && assemblies->count > 0; idx++) {
        uc_list_for_each_safe (node, following, &assemblies->buckets[idx]) {
            struct uc_posix_assembly *assembly =
                    uc_list_entry(node, struct uc_posix_assembly, link);

            if (!assembly->is_busy && assembly->used_ms < before_ms) {
                destroy(assemblies, assembly);
            }
        }
    }
}
