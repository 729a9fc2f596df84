/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file store.h
 * What a store provides: the base operations (section 5 of core/CONTRACT.md) and two optional facets
 * (sections 6 and 7), each an operations table.
 *
 * Threads: control operations (setup, lookups, touch, pin, unpin, alloc, commit,
 * prepare/complete prefetch, forget) come from one thread at a time, data operations (load, dump,
 * prefetch, get_finished, wait, register, deregister) from one thread at a time; one of each in
 * parallel is safe. health and describe may be called from any thread.
 *
 * Call a store through the uc_store_ functions below: they check arguments, fill in what an absent
 * optional slot means, and honour struct_size. `*_out` is written on UC_OK only.
 */

#ifndef UC_STORE_H
#define UC_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/block.h>
#include <ucm/compiler.h>
#include <ucm/dict.h>
#include <ucm/request.h>
#include <ucm/status.h>
#include <ucm/token.h>

#define UC_STORE_ABI_VERSION 1u

struct uc_store_ops;
struct uc_token_addressed_ops;
struct uc_prefetchable_ops;

/** Every instance starts with this. */
struct uc_store {
    const struct uc_store_ops *ops;
};

/** Base operations. "Mandatory" slots are checked once, when a store is adopted or loaded. */
struct uc_store_ops {
    uint32_t abi_version; /* UC_STORE_ABI_VERSION */
    uint32_t struct_size; /* sizeof(struct uc_store_ops) of the plugin */

    /** Mandatory, once, before anything else. May block. */
    enum uc_status (*setup)(struct uc_store *store, const struct uc_dict *config);
    /** Mandatory. hits_out[i] = 1 where ids[i] can be loaded now. */
    enum uc_status (*lookup)(
            struct uc_store *store, const struct uc_block_id *ids, size_t count, uint8_t *hits_out);
    /** Optional: derived from lookup. Last index of the present prefix, −1 if none. */
    enum uc_status (*lookup_on_prefix)(struct uc_store *store, const struct uc_block_id *ids,
            size_t count, int64_t *index_out);
    /** Optional: derived from lookup. Largest present index, −1 if none. */
    enum uc_status (*lookup_on_reverse)(struct uc_store *store, const struct uc_block_id *ids,
            size_t count, int64_t *index_out);
    /** Optional: no effect.. @p context may be NULL */
    enum uc_status (*touch)(struct uc_store *store, const struct uc_block_id *ids, size_t count,
            const struct uc_request_context *context);
    /** Mandatory. Start storage → memory; the job is borrowed for the call only. */
    enum uc_status (*load)(
            struct uc_store *store, uint64_t job_id, const struct uc_job_descriptor *job);
    /** Mandatory. Start memory → storage. */
    enum uc_status (*dump)(
            struct uc_store *store, uint64_t job_id, const struct uc_job_descriptor *job);
    /** Mandatory, never blocks. The caller releases the results. */
    enum uc_status (*get_finished)(struct uc_store *store, struct uc_io_result *results,
            size_t capacity, size_t *count_out);
    /** Mandatory. Writes results and count on UC_ERR_TIMEOUT too. */
    enum uc_status (*wait)(struct uc_store *store, const uint64_t *job_ids, size_t job_count,
            int64_t timeout_ms, struct uc_io_result *results, size_t capacity, size_t *count_out);
    /** Optional: NULL slot or NULL result = no such facet. Same pointer each time. */
    const struct uc_token_addressed_ops *(*as_token_addressed)(struct uc_store *store);
    const struct uc_prefetchable_ops *(*as_prefetchable)(struct uc_store *store);
    /** Optional: registration not needed. Index chosen by the caller. */
    enum uc_status (*register_memory)(struct uc_store *store, uint32_t region_idx, void *address,
            uint64_t length_bytes, enum uc_memory_kind kind);
    /** Optional, together with the one above. */
    enum uc_status (*deregister_memory)(struct uc_store *store, uint32_t region_idx);
    /** Optional: Ok. */
    enum uc_status (*health)(struct uc_store *store);
    /** Optional: nothing. Adds keys to @p description. */
    enum uc_status (*describe)(struct uc_store *store, struct uc_dict *description);
    /** Optional: −1. Readable while get_finished has something; owned by the store. */
    int (*event_fd)(struct uc_store *store);
};

/** TokenAddressed facet. All slots mandatory. */
struct uc_token_addressed_ops {
    uint32_t struct_size;
    uint32_t reserved;

    /** Protect blocks from eviction; all or nothing. */
    enum uc_status (*pin)(struct uc_store *store, const struct uc_block_id *ids, size_t count,
            struct uc_token **token_out);
    /** Conclude a read token; idempotent, never fails. */
    void (*unpin)(struct uc_store *store, const struct uc_token *token);
    /** Reserve room; all or nothing.. @p context may be NULL */
    enum uc_status (*alloc)(struct uc_store *store, const struct uc_block_id *ids, size_t count,
            const struct uc_request_context *context, struct uc_token **token_out);
    /**
     * Conclude a write token. The verdict of key i is mask[i] != 0, or @p success if @p mask is NULL:
     * true = make visible, false = release.
     */
    enum uc_status (*commit)(struct uc_store *store, const struct uc_token *token,
            const uint8_t *mask, bool success);
    /** As the base versions, addressed by the token; `job` covers token keys [first_key, + count). */
    enum uc_status (*load)(struct uc_store *store, uint64_t job_id,
            const struct uc_job_descriptor *job, const struct uc_token *token, size_t first_key);
    enum uc_status (*dump)(struct uc_store *store, uint64_t job_id,
            const struct uc_job_descriptor *job, const struct uc_token *token, size_t first_key);
};

/** Prefetchable facet. All slots mandatory but forget. */
struct uc_prefetchable_ops {
    uint32_t struct_size;
    uint32_t reserved;

    /** Lookups that may signal: then *prefetch_needed_out = true and nothing else is written. 7.1 */
    enum uc_status (*lookup)(struct uc_store *store, const char *request_id,
            const struct uc_block_id *ids, size_t count, uint8_t *hits_out,
            bool *prefetch_needed_out);
    enum uc_status (*lookup_on_prefix)(struct uc_store *store, const char *request_id,
            const struct uc_block_id *ids, size_t count, int64_t *index_out,
            bool *prefetch_needed_out);
    enum uc_status (*lookup_on_reverse)(struct uc_store *store, const char *request_id,
            const struct uc_block_id *ids, size_t count, int64_t *index_out,
            bool *prefetch_needed_out);
    enum uc_status (*prepare_prefetch)(struct uc_store *store, const char *request_id,
            const struct uc_request_context *context, struct uc_token **plan_out);
    enum uc_status (*prefetch)(
            struct uc_store *store, uint64_t job_id, const struct uc_token *plan);
    enum uc_status (*complete_prefetch)(
            struct uc_store *store, const struct uc_token *plan, bool success);
    /** Optional. */
    void (*forget)(struct uc_store *store, const char *request_id);
};

/**
 * Check a table before first use: version and size are UC_ERR_UNSUPPORTED, a null mandatory
 * slot UC_ERR_INVALID_PARAM, a null table UC_ERR_GENERAL.
 */
UC_API UC_MUST_CHECK enum uc_status uc_store_check(const struct uc_store *store);

/* Base operations, same meaning as the slots. */
UC_API UC_MUST_CHECK enum uc_status uc_store_setup(
        struct uc_store *store, const struct uc_dict *config);
UC_API UC_MUST_CHECK enum uc_status uc_store_lookup(
        struct uc_store *store, const struct uc_block_id *ids, size_t count, uint8_t *hits_out);
UC_API UC_MUST_CHECK enum uc_status uc_store_lookup_on_prefix(
        struct uc_store *store, const struct uc_block_id *ids, size_t count, int64_t *index_out);
UC_API UC_MUST_CHECK enum uc_status uc_store_lookup_on_reverse(
        struct uc_store *store, const struct uc_block_id *ids, size_t count, int64_t *index_out);
UC_API enum uc_status uc_store_touch(struct uc_store *store, const struct uc_block_id *ids,
        size_t count, const struct uc_request_context *context);
UC_API UC_MUST_CHECK enum uc_status uc_store_load(
        struct uc_store *store, uint64_t job_id, const struct uc_job_descriptor *job);
UC_API UC_MUST_CHECK enum uc_status uc_store_dump(
        struct uc_store *store, uint64_t job_id, const struct uc_job_descriptor *job);
UC_API UC_MUST_CHECK enum uc_status uc_store_get_finished(
        struct uc_store *store, struct uc_io_result *results, size_t capacity, size_t *count_out);
UC_API UC_MUST_CHECK enum uc_status uc_store_wait(struct uc_store *store, const uint64_t *job_ids,
        size_t job_count, int64_t timeout_ms, struct uc_io_result *results, size_t capacity,
        size_t *count_out);
UC_API UC_MUST_CHECK enum uc_status uc_store_register_memory(struct uc_store *store,
        uint32_t region_idx, void *address, uint64_t length_bytes, enum uc_memory_kind kind);
UC_API UC_MUST_CHECK enum uc_status uc_store_deregister_memory(
        struct uc_store *store, uint32_t region_idx);
UC_API UC_MUST_CHECK enum uc_status uc_store_health(struct uc_store *store);
UC_API UC_MUST_CHECK enum uc_status uc_store_describe(
        struct uc_store *store, struct uc_dict *description);
UC_API int uc_store_event_fd(struct uc_store *store);

/** @return the facet's table, checked, or NULL. Ask once and keep it. */
UC_API const struct uc_token_addressed_ops *uc_store_as_token_addressed(struct uc_store *store);
UC_API const struct uc_prefetchable_ops *uc_store_as_prefetchable(struct uc_store *store);

/**
 * The null store: plain, keeps blocks in heap memory of this process; the reference implementation
 * of the table. Key `block_bytes` as. For tests and as a pattern.
 *
 * @return a new, unconfigured instance, or NULL without memory
 */
UC_API struct uc_store *uc_null_store_create(void);
UC_API void uc_null_store_destroy(struct uc_store *store);

#endif /* UC_STORE_H */
