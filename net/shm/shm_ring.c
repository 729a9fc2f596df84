/* SPDX-License-Identifier: Apache-2.0 */

#include "net/shm/shm_ring.h"

#include "net/region_table.h"

enum {
    WHAT_WORD, /* region index, and source in the upper half */
    OFFSET_WORD,
    LENGTH_WORD,
    GENERATION_WORD,
    SOURCE_OFFSET_WORD,
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
