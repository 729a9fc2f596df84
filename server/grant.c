/* SPDX-License-Identifier: Apache-2.0 */

#include "server/grant.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <ucm/request.h>

static struct uc_grant *
grant_create(uint64_t id, const struct uc_block_id *ids, size_t count, bool writes)
{
    size_t ids_bytes = count * sizeof(struct uc_block_id);
    size_t writes_bytes = writes ? count * sizeof(struct uc_grant_write) : 0;
    struct uc_grant *grant = calloc(1, sizeof(*grant) + writes_bytes + ids_bytes);

    if (grant == NULL) {
        (void)uc_error(UC_ERR_OUT_OF_MEMORY, "no memory for a grant of %zu keys", count);
        return NULL;
    }

    grant->node.id = id;
    uc_list_init(&grant->brackets);
    if (writes) {
        grant->writes = (void *)(grant + 1);
    }
    grant->ids = (void *)((uint8_t *)(grant + 1) + writes_bytes);
    memcpy(grant->ids, ids, ids_bytes);
    grant->count = count;
    return grant;
}

static void
grant_free(struct uc_grant *grant)
{
    for (size_t idx = 0; grant->writes != NULL && idx < grant->count; idx++) {
        uc_coverage_fini(&grant->writes[idx].coverage);
    }
    free(grant);
}

enum uc_status
uc_grant_pin(const struct uc_grant_scope *scope, uint64_t id, const struct uc_block_id *ids,
        size_t count, struct uc_grant **grant_out)
{
    struct uc_scratch *scratch = scope->scratch;
    struct uc_grant *grant;
    enum uc_status status;

    if (count == 0) {
        return uc_error(UC_ERR_INVALID_PARAM, "pin: no keys");
    }
    status = uc_scratch_reserve(scratch, count);
    if (status != UC_OK) {
        return status;
    }
    grant = grant_create(id, ids, count, false);
    if (grant == NULL) {
        return UC_ERR_OUT_OF_MEMORY;
    }
    status = uc_cache_buffer_pin(scope->ns->index, grant->ids, count, scratch->slots);
    if (status != UC_OK) {
        grant_free(grant);
        return status;
    }

    for (size_t idx = 0; idx < count; idx++) {
        const struct uc_cache_slot *slot = &scratch->slots[idx];
        struct uc_entry entry = uc_namespace_entry(
                scope->ns, slot->slot, slot->generation, scope->ns->slots[slot->slot].length_bytes);

        uc_entry_put(scratch->entries + idx * UC_ENTRY_BYTES, &entry);
    }
    scope->counters->pinned_keys += count;
    scope->counters->grants++;
    *grant_out = grant;
    return UC_OK;
}

void
uc_grant_unpin(const struct uc_grant_scope *scope, struct uc_grant *grant)
{
    uc_cache_buffer_unpin(scope->ns->index, grant->ids, grant->count);
    scope->counters->grants--;
    grant_free(grant);
}

static int
compare_ids(const void *left, const void *right)
{
    return memcmp(left, right, sizeof(struct uc_block_id));
}

/* Reserve finds an id that comes twice among its own; the shared ones it never sees. */
static bool
has_duplicate(struct uc_block_id *ids, size_t count)
{
    if (count < 2) {
        return false;
    }

    qsort(ids, count, sizeof(ids[0]), compare_ids);
    for (size_t idx = 1; idx < count; idx++) {
        if (compare_ids(&ids[idx - 1], &ids[idx]) == 0) {
            return true;
        }
    }
    return false;
}

/* Split the keys: pending ones are SHARED, the others go to scratch->ids, for reserve. */
static enum uc_status
split_shared(const struct uc_grant_scope *scope, struct uc_grant *grant, size_t *own_count_out)
{
    struct uc_scratch *scratch = scope->scratch;
    size_t own_count = 0;
    size_t shared_count = 0;

    for (size_t idx = 0; idx < grant->count; idx++) {
        struct uc_cache_info info = uc_cache_buffer_peek(scope->ns->index, &grant->ids[idx]);

        if (info.state == UC_CACHE_PENDING) {
            grant->writes[idx].role = UC_GRANT_SHARED;
            scratch->more_ids[shared_count++] = grant->ids[idx];
        } else {
            scratch->indices[own_count] = (uint32_t)idx;
            scratch->ids[own_count++] = grant->ids[idx];
        }
    }
    if (has_duplicate(scratch->more_ids, shared_count)) {
        return uc_error(UC_ERR_INVALID_PARAM, "alloc: a key is listed twice");
    }

    scope->counters->shared_keys += shared_count;
    *own_count_out = own_count;
    return UC_OK;
}

static enum uc_status
reserve_own(const struct uc_grant_scope *scope, struct uc_grant *grant, size_t own_count,
        const uint64_t *ttl_ms)
{
    struct uc_request_context context = uc_request_context_init("");
    struct uc_scratch *scratch = scope->scratch;
    size_t evicted_count = 0;
    enum uc_status status;

    if (own_count == 0) {
        return UC_OK;
    }
    if (ttl_ms != NULL) {
        context.present |= UC_REQUEST_TTL;
        context.ttl_ms = *ttl_ms;
    }
    /* more_ids has served: reserve may use it for the ids that it evicts. */
    status = uc_cache_buffer_reserve(scope->ns->index, scratch->ids, own_count, &context, NULL,
            scratch->slots, scratch->more_ids, &evicted_count);
    if (status != UC_OK) {
        return status;
    }

    for (size_t own = 0; own < own_count; own++) {
        const struct uc_cache_slot *slot = &scratch->slots[own];
        struct uc_grant_write *write = &grant->writes[scratch->indices[own]];

        assert(slot->admission != UC_CACHE_JOINED); /* pending ones were taken out */
        write->slot = slot->slot;
        write->generation = slot->generation;
        if (slot->admission == UC_CACHE_READMITTED) {
            write->role = UC_GRANT_PRESENT;
            scope->counters->present_keys++;
            continue;
        }
        write->role = UC_GRANT_NEWCOMER;
        scope->ns->slots[slot->slot].length_bytes = 0;
        uc_namespace_put_footer(scope->ns, slot->slot, UC_FOOTER_RESERVED, slot->generation,
                &scratch->ids[own], true);
    }
    return UC_OK;
}

static void
put_entries(const struct uc_grant_scope *scope, const struct uc_grant *grant)
{
    for (size_t idx = 0; idx < grant->count; idx++) {
        const struct uc_grant_write *write = &grant->writes[idx];
        struct uc_entry entry = {
                .flags = UC_ENTRY_SHARED, .length_bytes = scope->ns->layout.block_bytes};

        if (write->role != UC_GRANT_SHARED) {
            entry = uc_namespace_entry(
                    scope->ns, write->slot, write->generation, scope->ns->layout.block_bytes);
            entry.flags = write->role == UC_GRANT_PRESENT ? UC_ENTRY_PRESENT : 0;
        }
        uc_entry_put(scope->scratch->entries + idx * UC_ENTRY_BYTES, &entry);
    }
}

enum uc_status
uc_grant_alloc(const struct uc_grant_scope *scope, uint64_t id, const struct uc_block_id *ids,
        size_t count, const uint64_t *ttl_ms, struct uc_grant **grant_out)
{
    struct uc_grant *grant;
    size_t own_count = 0;
    enum uc_status status;

    if (count == 0) {
        return uc_error(UC_ERR_INVALID_PARAM, "alloc: no keys");
    }
    status = uc_scratch_reserve(scope->scratch, count);
    if (status != UC_OK) {
        return status;
    }
    /* Before anything is reserved, so that running out of memory leaves no trace. */
    grant = grant_create(id, ids, count, true);
    if (grant == NULL) {
        return UC_ERR_OUT_OF_MEMORY;
    }
    status = split_shared(scope, grant, &own_count);
    if (status == UC_OK) {
        status = reserve_own(scope, grant, own_count, ttl_ms);
    }
    if (status != UC_OK) {
        grant_free(grant);
        return status;
    }

    put_entries(scope, grant);
    uc_namespace_publish_footers(scope->ns);
    scope->counters->alloc_keys += count;
    scope->counters->grants++;
    *grant_out = grant;
    return UC_OK;
}

/* Whether a block may become visible: nobody writes any more and every byte has come. */
static bool
is_whole(const struct uc_grant_scope *scope, const struct uc_grant_write *write)
{
    if (write->open_brackets > 0) {
        return false;
    }
    if (!uc_coverage_is_complete(&write->coverage, write->announced_bytes)) {
        scope->counters->holes++;
        return false;
    }
    return true;
}

/*
 * Sort the keys into those that succeed (scratch->ids, indices) and those that fail (more_ids,
 * more_indices). @return how many were to succeed and cannot
 */
static size_t
judge(const struct uc_grant_scope *scope, const struct uc_grant *grant,
        const struct uc_grant_verdict *verdict, size_t *good_count_out, size_t *bad_count_out)
{
    struct uc_scratch *scratch = scope->scratch;
    size_t good_count = 0;
    size_t bad_count = 0;
    size_t refused_count = 0;

    for (size_t idx = 0; idx < grant->count; idx++) {
        const struct uc_grant_write *write = &grant->writes[idx];
        bool wanted = verdict->bitmap == NULL ? verdict->success
                                              : (verdict->bitmap[idx / 8] >> (idx % 8) & 1u) != 0;
        bool good = wanted;

        if (write->role == UC_GRANT_SHARED) {
            continue; /* only the writer's verdict counts */
        }
        if (wanted && write->role == UC_GRANT_NEWCOMER) {
            good = is_whole(scope, write);
            refused_count += !good;
        }
        if (good) {
            scratch->indices[good_count] = (uint32_t)idx;
            scratch->ids[good_count++] = grant->ids[idx];
        } else {
            scratch->more_indices[bad_count] = (uint32_t)idx;
            scratch->more_ids[bad_count++] = grant->ids[idx];
        }
    }

    *good_count_out = good_count;
    *bad_count_out = bad_count;
    return refused_count;
}

static void
put_state(const struct uc_grant_scope *scope, const struct uc_grant *grant, uint32_t idx,
        enum uc_footer_state state)
{
    const struct uc_grant_write *write = &grant->writes[idx];

    uc_namespace_put_footer(
            scope->ns, write->slot, state, write->generation, &grant->ids[idx], false);
}

/* @return how many newcomers did not become visible */
static size_t
commit_good(const struct uc_grant_scope *scope, const struct uc_grant *grant, size_t count)
{
    struct uc_scratch *scratch = scope->scratch;
    size_t refused_count = 0;

    if (count == 0) {
        return 0;
    }

    /* Footer and length first: a reader may be told of the block the moment it is visible. */
    for (size_t good = 0; good < count; good++) {
        const struct uc_grant_write *write = &grant->writes[scratch->indices[good]];

        if (write->role == UC_GRANT_NEWCOMER) {
            uc_namespace_settle_footer(scope->ns, write->slot, write->announced_bytes);
            put_state(scope, grant, scratch->indices[good], UC_FOOTER_COMMITTED);
            scope->ns->slots[write->slot].length_bytes = write->announced_bytes;
        }
    }
    uc_namespace_publish_footers(scope->ns);
    /* The outcomes say what the status sums up. */
    (void)!uc_cache_buffer_commit(scope->ns->index, scratch->ids, count, true, scratch->outcomes);
    for (size_t good = 0; good < count; good++) {
        uint32_t idx = scratch->indices[good];

        /* Expired at once (a ttl of 0) is committed all the same. */
        if (grant->writes[idx].role == UC_GRANT_NEWCOMER &&
                scratch->outcomes[good] != UC_CACHE_OUTCOME_VISIBLE &&
                scratch->outcomes[good] != UC_CACHE_OUTCOME_EXPIRED) {
            put_state(scope, grant, idx, UC_FOOTER_FREE);
            scope->counters->released_blocks++;
            refused_count++;
        }
    }
    return refused_count;
}

static void
commit_bad(const struct uc_grant_scope *scope, const struct uc_grant *grant, size_t count)
{
    struct uc_scratch *scratch = scope->scratch;

    if (count == 0) {
        return;
    }

    for (size_t bad = 0; bad < count; bad++) {
        uint32_t idx = scratch->more_indices[bad];

        if (grant->writes[idx].role == UC_GRANT_NEWCOMER) {
            put_state(scope, grant, idx, UC_FOOTER_FREE);
            scope->counters->released_blocks++;
        }
    }
    uc_namespace_publish_footers(scope->ns);
    (void)!uc_cache_buffer_commit(
            scope->ns->index, scratch->more_ids, count, false, scratch->outcomes);
}

enum uc_status
uc_grant_conclude(const struct uc_grant_scope *scope, struct uc_grant *grant,
        const struct uc_grant_verdict *verdict)
{
    size_t good_count;
    size_t bad_count;
    size_t refused_count;
    size_t key_count = grant->count;

    /* Alloc has reserved the scratch arrays for as many keys, and they never shrink. */
    assert(scope->scratch->capacity >= grant->count);
    assert(uc_list_is_empty(&grant->brackets));
    refused_count = judge(scope, grant, verdict, &good_count, &bad_count);
    refused_count += commit_good(scope, grant, good_count);
    commit_bad(scope, grant, bad_count);
    scope->counters->grants--;
    grant_free(grant);
    if (refused_count > 0) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "commit: %zu of %zu blocks were not written completely, or are still being "
                "written, and were dropped; send a write_end that covers the block before commit",
                refused_count, key_count);
    }

    return UC_OK;
}
