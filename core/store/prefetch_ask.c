/* SPDX-License-Identifier: Apache-2.0 */

#include "core/store/prefetch_ask.h"

#include <stdlib.h>
#include <string.h>

/* The blocks of a list whose presence below could change the answer, and what is known of them. */
struct candidates {
    struct uc_block_id *ids; /* distinct, in the order of the list */
    uint8_t *hits;           /* of the lower tier */
    size_t count;
};

int64_t
uc_prefetch_last_of_prefix(const uint8_t *hits, size_t count)
{
    size_t idx = 0;

    while (idx < count && hits[idx] != 0) {
        idx++;
    }

    return (int64_t)idx - 1;
}

int64_t
uc_prefetch_last_of_any(const uint8_t *hits, size_t count)
{
    size_t idx = count;

    while (idx > 0 && hits[idx - 1] == 0) {
        idx--;
    }

    return (int64_t)idx - 1;
}

static uint64_t
hash_id(const struct uc_block_id *id)
{
    uint64_t halves[2];

    memcpy(halves, id->bytes, sizeof(halves)); /* a hash already */
    return (halves[0] ^ halves[1] >> 7) * 0x9e3779b97f4a7c15ull;
}

/*
 * Append an id that is not there yet. `places` has a power of two of places, at least twice as many as ids; a place
 * holds the position of an id, plus 1.
 */
static void
add_distinct(struct candidates *candidates, uint32_t *places, size_t place_count,
        const struct uc_block_id *id)
{
    size_t at = (size_t)(hash_id(id) >> 32) & (place_count - 1);

    while (places[at] != 0) {
        if (memcmp(&candidates->ids[places[at] - 1], id, sizeof(*id)) == 0) {
            return;
        }
        at = (at + 1) & (place_count - 1);
    }
    candidates->ids[candidates->count++] = *id;
    places[at] = (uint32_t)candidates->count;
}

static void
free_candidates(struct candidates *candidates)
{
    free(candidates->ids);
    free(candidates->hits);
}

/* Absent here, from where the answer here ends. */
static enum uc_status
collect(enum uc_prefetch_lookup kind, const struct uc_block_id *ids, size_t count,
        const uint8_t *hits, struct candidates *candidates)
{
    size_t first = kind == UC_PREFETCH_ON_REVERSE
                           ? (size_t)(uc_prefetch_last_of_any(hits, count) + 1)
                           : (size_t)(uc_prefetch_last_of_prefix(hits, count) + 1);
    size_t place_count = 1;
    uint32_t *places;

    *candidates = (struct candidates){0};
    if (first == count) {
        return UC_OK;
    }
    while (place_count < 2 * (count - first)) {
        place_count *= 2;
    }
    places = calloc(place_count, sizeof(places[0]));
    candidates->ids = malloc((count - first) * sizeof(ids[0]));
    candidates->hits = calloc(count - first, 1);
    if (places == NULL || candidates->ids == NULL || candidates->hits == NULL) {
        free(places);
        free_candidates(candidates);
        return uc_error(UC_ERR_OUT_OF_MEMORY, "lookup: no memory for %zu blocks", count);
    }

    for (size_t idx = first; idx < count; idx++) {
        if (hits[idx] == 0) {
            add_distinct(candidates, places, place_count, &ids[idx]);
        }
    }
    free(places);
    return UC_OK;
}

/* Ask the lower tier the same question about the candidates; @p last_out is its index for the two index lookups. */
static enum uc_status
ask_lower(const struct uc_prefetch_lower *lower, enum uc_prefetch_lookup kind,
        const char *request_id, struct candidates *candidates, int64_t *last_out, bool *signal_out)
{
    const struct uc_prefetchable_ops *facet = lower->facet;
    struct uc_store *store = lower->store;

    *signal_out = false;
    *last_out = -1;
    switch (kind) {
    case UC_PREFETCH_LOOKUP:
        return facet != NULL ? facet->lookup(store, request_id, candidates->ids, candidates->count,
                                       candidates->hits, signal_out)
                             : uc_store_lookup(
                                       store, candidates->ids, candidates->count, candidates->hits);
    case UC_PREFETCH_ON_PREFIX:
        return facet != NULL ? facet->lookup_on_prefix(store, request_id, candidates->ids,
                                       candidates->count, last_out, signal_out)
                             : uc_store_lookup_on_prefix(
                                       store, candidates->ids, candidates->count, last_out);
    case UC_PREFETCH_ON_REVERSE:
        return facet != NULL ? facet->lookup_on_reverse(store, request_id, candidates->ids,
                                       candidates->count, last_out, signal_out)
                             : uc_store_lookup_on_reverse(
                                       store, candidates->ids, candidates->count, last_out);
    }

    return uc_error(UC_ERR_GENERAL, "lookup: kind %d is unknown", (int)kind);
}

/* What the round lifts, as a part of the candidates. A delegated one is the lower tier's affair. */
static struct uc_prefetch_need
need_of(enum uc_prefetch_lookup kind, struct candidates *candidates, int64_t last)
{
    struct uc_prefetch_need need = {.ids = candidates->ids};

    switch (kind) {
    case UC_PREFETCH_LOOKUP:
        for (size_t idx = 0; idx < candidates->count; idx++) {
            if (candidates->hits[idx] != 0) {
                candidates->ids[need.count++] = candidates->ids[idx];
            }
        }
        break;
    case UC_PREFETCH_ON_PREFIX:
        need.count = last < 0 ? 0 : (size_t)last + 1;
        break;
    case UC_PREFETCH_ON_REVERSE:
        need.count = last < 0 ? 0 : 1;
        need.ids = last < 0 ? candidates->ids : candidates->ids + last;
        break;
    }

    return need;
}

/* Whether the query ends as a signal; the caller ends it otherwise. */
static enum uc_status
try_signal(struct uc_prefetch_queries *queries, const struct uc_prefetch_lower *lower,
        enum uc_prefetch_lookup kind, const char *request_id, const struct uc_block_id *ids,
        size_t count, const uint8_t *hits, bool *prefetch_needed_out)
{
    struct candidates candidates;
    struct uc_prefetch_need need;
    bool is_delegated = false;
    int64_t last = -1;
    enum uc_status status = collect(kind, ids, count, hits, &candidates);

    if (status != UC_OK || candidates.count == 0) {
        return status;
    }
    status = ask_lower(lower, kind, request_id, &candidates, &last, &is_delegated);
    if (status != UC_OK) {
        goto out_free;
    }
    if (last >= (int64_t)candidates.count) {
        status = uc_error(UC_ERR_GENERAL,
                "lookup: the lower tier answers index %lld for a list of %zu blocks",
                (long long)last, candidates.count);
        goto out_free;
    }

    need = is_delegated ? (struct uc_prefetch_need){.is_delegated = true}
                        : need_of(kind, &candidates, last);
    if (need.count != 0 || need.is_delegated) {
        status = uc_prefetch_queries_signal(queries, request_id, ids, count, &need);
        *prefetch_needed_out = status == UC_OK;
    }

out_free:
    free_candidates(&candidates);
    return status;
}

/* The slot is optional, and a table that is too short does not have it. */
static void
forget_below(const struct uc_prefetch_lower *lower, const char *request_id)
{
    const struct uc_prefetchable_ops *facet = lower->facet;

    if (facet != NULL &&
            facet->struct_size >=
                    offsetof(struct uc_prefetchable_ops, forget) + sizeof(facet->forget) &&
            facet->forget != NULL) {
        facet->forget(lower->store, request_id);
    }
}

enum uc_status
uc_prefetch_ask(struct uc_prefetch_queries *queries, const struct uc_prefetch_lower *lower,
        enum uc_prefetch_lookup kind, const char *request_id, const struct uc_block_id *ids,
        size_t count, const uint8_t *hits, bool *prefetch_needed_out)
{
    bool may_signal = false;
    bool signal = false;
    enum uc_status status = uc_prefetch_queries_begin(queries, request_id, ids, count, &may_signal);

    if (status != UC_OK) {
        return status;
    }
    if (may_signal && lower->store != NULL) {
        status = try_signal(queries, lower, kind, request_id, ids, count, hits, &signal);
    }
    if (signal) {
        *prefetch_needed_out = true;
        return UC_OK;
    }

    if (status != UC_OK) {
        uc_prefetch_queries_fail(queries, request_id);
        forget_below(lower, request_id);
        return status;
    }
    uc_prefetch_queries_answer(queries, request_id);
    /* A query that is over here is over below as well; a plan that is out may be the lower tier's. */
    if (uc_prefetch_queries_state(queries, request_id) == UC_PREFETCH_IDLE) {
        forget_below(lower, request_id);
    }
    *prefetch_needed_out = false;
    return UC_OK;
}

void
uc_prefetch_forget(struct uc_prefetch_queries *queries, const struct uc_prefetch_lower *lower,
        const char *request_id)
{
    uc_prefetch_queries_forget(queries, request_id);
    forget_below(lower, request_id);
}
