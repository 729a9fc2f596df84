/* SPDX-License-Identifier: Apache-2.0 */

#include "tools/bench/block_writers.h"

#include <stdlib.h>

#include "core/base/block_map.h"
#include "tools/bench/block_content.h"

struct record {
    struct uc_block_id id;
    uint32_t node;
};

struct uc_block_writers {
    struct uc_block_map *map;
    struct record *records; /* `used` of `capacity` */
    size_t used;
    size_t capacity;
};

enum uc_status
uc_block_writers_create(size_t capacity, struct uc_block_writers **writers_out)
{
    struct uc_block_writers *writers = calloc(1, sizeof(*writers));
    enum uc_status status = UC_ERR_OUT_OF_MEMORY;

    if (writers == NULL) {
        return UC_ERR_OUT_OF_MEMORY;
    }

    writers->capacity = capacity;
    writers->records = calloc(capacity, sizeof(writers->records[0]));
    if (writers->records == NULL) {
        goto err_free;
    }
    status = uc_block_map_create(
            capacity, &writers->records[0].id, sizeof(writers->records[0]), &writers->map);
    if (status != UC_OK) {
        goto err_free;
    }

    *writers_out = writers;
    return UC_OK;

err_free:
    uc_block_writers_destroy(writers);
    return status;
}

void
uc_block_writers_destroy(struct uc_block_writers *writers)
{
    if (writers == NULL) {
        return;
    }

    uc_block_map_destroy(writers->map);
    free(writers->records);
    free(writers);
}

void
uc_block_writers_set(struct uc_block_writers *writers, uint64_t hash_id, uint32_t node)
{
    struct uc_block_id id = uc_block_id_from_hash(hash_id);
    uint32_t slot = uc_block_map_find(writers->map, &id);

    if (slot == UC_BLOCK_MAP_NONE) {
        if (writers->used == writers->capacity) {
            return;
        }
        slot = (uint32_t)writers->used++;
        writers->records[slot].id = id;
        uc_block_map_add(writers->map, slot);
    }
    writers->records[slot].node = node;
}

uint32_t
uc_block_writers_get(const struct uc_block_writers *writers, uint64_t hash_id)
{
    struct uc_block_id id = uc_block_id_from_hash(hash_id);
    uint32_t slot = uc_block_map_find(writers->map, &id);

    return slot == UC_BLOCK_MAP_NONE ? UINT32_MAX : writers->records[slot].node;
}
