/* SPDX-License-Identifier: Apache-2.0 */

#include "client/proxy/id_set.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/bytes.h"

enum {
    STACK_SLOTS = 256 /* lists of half as many ids need no allocation */
};

/* Ids are hashes already, but test and foreign ids may count up: mix before masking. */
static uint64_t
hash_id(const struct uc_block_id *id)
{
    uint64_t hash = uc_get_le64(id->bytes) ^ uc_get_le64(id->bytes + 8) * 0x9e3779b97f4a7c15ull;

    hash ^= hash >> 32;
    hash *= 0xd6e8feb86659fd93ull;
    return hash ^ hash >> 32;
}

/* Slots hold position + 1; 0 is empty. slot_count is a power of two above count. */
static enum uc_status
check_in_table(const struct uc_block_id *ids, size_t count, uint32_t *slots, size_t slot_count)
{
    for (size_t idx = 0; idx < count; idx++) {
        size_t slot = (size_t)hash_id(&ids[idx]) & (slot_count - 1);

        while (slots[slot] != 0) {
            size_t earlier = slots[slot] - 1;

            if (memcmp(&ids[earlier], &ids[idx], sizeof(ids[0])) == 0) {
                return uc_error(UC_ERR_INVALID_PARAM,
                        "block ids %zu and %zu of the list are equal: a block is written once",
                        earlier, idx);
            }
            slot = (slot + 1) & (slot_count - 1);
        }
        slots[slot] = (uint32_t)(idx + 1);
    }

    return UC_OK;
}

enum uc_status
uc_id_set_check_distinct(const struct uc_block_id *ids, size_t count)
{
    uint32_t stack_slots[STACK_SLOTS] = {0};
    size_t slot_count = STACK_SLOTS;
    uint32_t *slots;
    enum uc_status status;

    if (count <= STACK_SLOTS / 2) {
        return check_in_table(ids, count, stack_slots, STACK_SLOTS);
    }
    if (count >= UINT32_MAX) {
        return uc_error(UC_ERR_INVALID_PARAM, "%zu block ids are too many for one call", count);
    }
    while (slot_count / 2 < count) {
        slot_count *= 2;
    }

    slots = calloc(slot_count, sizeof(slots[0]));
    if (slots == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "no memory to compare %zu block ids", count);
    }
    status = check_in_table(ids, count, slots, slot_count);
    free(slots);
    return status;
}
