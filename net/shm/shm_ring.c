/* SPDX-License-Identifier: Apache-2.0 */

#include "net/shm/shm_ring.h"

#include "net/region_table.h"

enum {
    WHAT_WORD, /* region index, and source in the upper half */
    OFFSET_WORD,
    LENGTH_WORD,
    GENERATION_WORD,
    SOURCE_OFFSET_WORD,

    PART_WORDS = UC_SHM_PART_BYTES / sizeof(uint64_t),
};

void
uc_shm_entry_put(
        struct uc_shm_client_pages *pages, uint64_t number, const struct uc_shm_entry *entry)
{
    _Atomic uint64_t *words = pages->entries[number % UC_SHM_ENTRY_COUNT];
    uint64_t what = entry->region_idx | (uint64_t)entry->source << 32;

    atomic_store_explicit(&words[WHAT_WORD], what, memory_order_relaxed);
    atomic_store_explicit(&words[OFFSET_WORD], entry->offset_bytes, memory_order_relaxed);
    atomic_store_explicit(&words[LENGTH_WORD], entry->length_bytes, memory_order_relaxed);
    atomic_store_explicit(&words[GENERATION_WORD], entry->generation, memory_order_relaxed);
    atomic_store_explicit(
            &words[SOURCE_OFFSET_WORD], entry->source_offset_bytes, memory_order_relaxed);
}

void
uc_shm_entry_take(
        const struct uc_shm_client_pages *pages, uint64_t number, struct uc_shm_entry *entry_out)
{
    const _Atomic uint64_t *words = pages->entries[number % UC_SHM_ENTRY_COUNT];
    uint64_t what = atomic_load_explicit(&words[WHAT_WORD], memory_order_relaxed);

    entry_out->region_idx = (uint32_t)what;
    entry_out->source = (uint32_t)(what >> 32);
    entry_out->offset_bytes = atomic_load_explicit(&words[OFFSET_WORD], memory_order_relaxed);
    entry_out->length_bytes = atomic_load_explicit(&words[LENGTH_WORD], memory_order_relaxed);
    entry_out->generation = atomic_load_explicit(&words[GENERATION_WORD], memory_order_relaxed);
    entry_out->source_offset_bytes =
            atomic_load_explicit(&words[SOURCE_OFFSET_WORD], memory_order_relaxed);
}

void
uc_shm_part_put(struct uc_shm_client_pages *pages, uint64_t offset_bytes, size_t number,
        const struct uc_shm_part *part)
{
    _Atomic uint64_t *words =
            (_Atomic uint64_t *)(void *)&pages->staging[offset_bytes] + number * PART_WORDS;

    atomic_store_explicit(
            &words[0], part->slot | (uint64_t)part->length_bytes << 32, memory_order_relaxed);
    atomic_store_explicit(&words[1], part->offset_bytes, memory_order_relaxed);
}

static void
take_part(const struct uc_shm_client_pages *pages, uint64_t offset_bytes, struct uc_shm_part *part)
{
    const _Atomic uint64_t *words =
            (const _Atomic uint64_t *)(const void *)&pages->staging[offset_bytes];
    uint64_t what = atomic_load_explicit(&words[0], memory_order_relaxed);

    part->slot = (uint32_t)what;
    part->length_bytes = (uint32_t)(what >> 32);
    part->offset_bytes = atomic_load_explicit(&words[1], memory_order_relaxed);
}

enum uc_status
uc_shm_parts_take(const struct uc_shm_client_pages *pages, const struct uc_shm_entry *entry,
        struct uc_shm_part *parts_out, size_t *count_out)
{
    uint64_t offset = entry->source_offset_bytes;
    uint64_t rest = entry->length_bytes;
    size_t count = 0;

    for (; rest > 0; count++, offset += UC_SHM_PART_BYTES) {
        if (count == UC_SHM_PART_COUNT || offset % sizeof(uint64_t) != 0 ||
                !uc_region_range_fits(UC_SHM_STAGING_BYTES, offset, UC_SHM_PART_BYTES)) {
            return UC_ERR_INVALID_PARAM;
        }
        take_part(pages, offset, &parts_out[count]);
        if (parts_out[count].length_bytes == 0 || parts_out[count].length_bytes > rest) {
            return UC_ERR_INVALID_PARAM;
        }
        rest -= parts_out[count].length_bytes;
    }

    *count_out = count;
    return UC_OK;
}

enum uc_status
uc_shm_ring_waiting(const struct uc_shm_client_pages *pages, uint64_t done, uint64_t *count_out)
{
    uint64_t count = atomic_load_explicit(&pages->queued, memory_order_seq_cst) - done;

    if (count > UC_SHM_ENTRY_COUNT) {
        return UC_ERR_INVALID_PARAM;
    }

    *count_out = count;
    return UC_OK;
}

const uint8_t *
uc_shm_staging_at(
        const struct uc_shm_client_pages *pages, uint64_t offset_bytes, uint64_t length_bytes)
{
    if (!uc_region_range_fits(UC_SHM_STAGING_BYTES, offset_bytes, length_bytes)) {
        return NULL;
    }

    return &pages->staging[offset_bytes];
}
