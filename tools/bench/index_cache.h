/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file index_cache.h
 * The cache under measurement: full, with its order of eviction shuffled, and a record of what is in it. Each
 * measurement prepares its ids beforehand and counts the calls alone. One thread.
 */

#ifndef UC_BENCH_INDEX_CACHE_H
#define UC_BENCH_INDEX_CACHE_H

#include <stddef.h>
#include <stdint.h>

#include <ucm/compiler.h>
#include <ucm/status.h>

struct uc_index_cache;

/** @retval UC_ERR_INVALID_PARAM unknown policy @retval UC_ERR_OUT_OF_MEMORY */
UC_MUST_CHECK enum uc_status uc_index_cache_create(
        const char *policy, size_t blocks, struct uc_index_cache **cache_out);
void uc_index_cache_destroy(struct uc_index_cache *cache);

/** Bytes of index and policy. */
size_t uc_index_cache_memory_bytes(const struct uc_index_cache *cache);

/**
 * Measurements: some thousand blocks in calls of @p batch each.
 *
 * @param[out] ns_out     what the calls took
 * @param[out] count_out  blocks
 * @retval UC_ERR_GENERAL the cache gave a wrong answer
 */
typedef enum uc_status (*uc_index_measure_fn)(
        struct uc_index_cache *cache, size_t batch, uint64_t *ns_out, uint64_t *count_out);

UC_MUST_CHECK enum uc_status uc_index_lookup_hit(
        struct uc_index_cache *cache, size_t batch, uint64_t *ns_out, uint64_t *count_out);
UC_MUST_CHECK enum uc_status uc_index_lookup_miss(
        struct uc_index_cache *cache, size_t batch, uint64_t *ns_out, uint64_t *count_out);
/** Reserve and commit on slots that were freed in random order. */
UC_MUST_CHECK enum uc_status uc_index_alloc_commit(
        struct uc_index_cache *cache, size_t batch, uint64_t *ns_out, uint64_t *count_out);
/** Reserve and commit, each at the cost of a victim somewhere in memory. */
UC_MUST_CHECK enum uc_status uc_index_alloc_commit_evict(
        struct uc_index_cache *cache, size_t batch, uint64_t *ns_out, uint64_t *count_out);
UC_MUST_CHECK enum uc_status uc_index_pin_unpin(
        struct uc_index_cache *cache, size_t batch, uint64_t *ns_out, uint64_t *count_out);

#endif /* UC_BENCH_INDEX_CACHE_H */
