/* SPDX-License-Identifier: Apache-2.0 */

#include "core/store/prefetch_query.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/list.h"
#include "core/base/text_map.h"

enum query_event {
    EVENT_SIGNAL,
    EVENT_ANSWER,
    EVENT_FAIL,
    EVENT_PREPARE,
    EVENT_PROGRESS,
    EVENT_NO_PROGRESS,
    EVENT_FORGET,
    EVENT_COUNT,
};

/* What a lookup with another list meets, and whether a lookup may signal. */
enum list_rule {
    LIST_ANY,     /* no list yet */
    LIST_SAME,    /* another one is refused */
    LIST_RESTART, /* another one starts a new query */
};

/* Short names for the tables below. */
enum {
    IDLE = UC_PREFETCH_IDLE,
    SIGNALLED = UC_PREFETCH_SIGNALLED,
    PREPARED = UC_PREFETCH_PREPARED,
    PROGRESSED = UC_PREFETCH_PROGRESSED,
    FAILED = UC_PREFETCH_FAILED,
};

static const struct {
    enum list_rule list_rule;
    bool may_signal; /* PROGRESSED: while rounds are left */
} lookup_rules[UC_PREFETCH_STATE_COUNT] = {
        [IDLE] = {LIST_ANY, true},
        [SIGNALLED] = {LIST_SAME, false},    /* */
        [PREPARED] = {LIST_SAME, false},     /* */
        [PROGRESSED] = {LIST_RESTART, true}, /* */
        [FAILED] = {LIST_RESTART, false},    /* */
};

/*
 * Section 7.2. Events that cannot happen in a state (a signal where none is allowed, a second prepare) are refused
 * before they get here and keep the state. A plan may end in a state other than PREPARED when a lookup failed or
 * the request was forgotten while it was out: that concerns the plan alone then.
 */
static const uint8_t next_states[UC_PREFETCH_STATE_COUNT][EVENT_COUNT] = {
        /* signal, answer, fail, prepare, progress, no progress, forget */
        [IDLE] = {SIGNALLED, IDLE, IDLE, PREPARED, IDLE, IDLE, IDLE},
        [SIGNALLED] = {SIGNALLED, IDLE, IDLE, PREPARED, SIGNALLED, SIGNALLED, IDLE},
        [PREPARED] = {PREPARED, PREPARED, IDLE, PREPARED, PROGRESSED, FAILED, IDLE},
        [PROGRESSED] = {SIGNALLED, IDLE, IDLE, PREPARED, PROGRESSED, PROGRESSED, IDLE},
        [FAILED] = {FAILED, IDLE, IDLE, PREPARED, FAILED, FAILED, IDLE},
};

struct query {
    struct uc_text_node node; /* by request id */
    enum uc_prefetch_state state;
    size_t rounds;           /* signals since the query began */
    bool has_list;           /* `ids` is the list of the query */
    struct uc_block_id *ids; /* owned: the list, then what the round lifts */
    size_t count;
    struct uc_prefetch_need need; /* points behind the list; meaningful while SIGNALLED */
    uint64_t plan_number;         /* 0 = none is out */
    void *plan;
    char request_id[];
};

struct uc_prefetch_queries {
    size_t tiers_below;
    uint64_t last_plan_number;
    struct uc_text_map by_request;
};

static struct query *
query_of(struct uc_text_node *node)
{
    return node == NULL ? NULL : uc_list_entry(node, struct query, node);
}

static struct query *
find(const struct uc_prefetch_queries *queries, const char *request_id)
{
    return query_of(uc_text_map_find(&queries->by_request, request_id));
}

/* plan_number 0: of any plan. */
static struct query *
find_by_plan(const struct uc_prefetch_queries *queries, uint64_t plan_number)
{
    struct uc_text_node *node = NULL;

    while ((node = uc_text_map_next(&queries->by_request, node)) != NULL) {
        struct query *query = query_of(node);

        if (query->plan_number != 0 && (plan_number == 0 || query->plan_number == plan_number)) {
            return query;
        }
    }

    return NULL;
}

/* The query of the request, made if there is none; NULL without memory. */
static struct query *
find_or_add(struct uc_prefetch_queries *queries, const char *request_id)
{
    struct query *query = find(queries, request_id);
    size_t id_bytes = strlen(request_id) + 1;

    if (query != NULL) {
        return query;
    }
    query = calloc(1, sizeof(*query) + id_bytes);
    if (query == NULL) {
        return NULL;
    }

    memcpy(query->request_id, request_id, id_bytes);
    uc_text_map_add(&queries->by_request, &query->node, query->request_id);
    return query;
}

static void
drop_list(struct query *query)
{
    free(query->ids);
    query->ids = NULL;
    query->count = 0;
    query->has_list = false;
    query->rounds = 0;
    query->need = (struct uc_prefetch_need){0};
}

static void
remove_query(struct uc_prefetch_queries *queries, struct query *query)
{
    uc_text_map_remove(&queries->by_request, &query->node);
    drop_list(query);
    free(query);
}

/* The query is gone afterwards if nothing of it is left to keep. */
static void
apply(struct uc_prefetch_queries *queries, struct query *query, enum query_event event)
{
    query->state = next_states[query->state][event];
    if (query->state != UC_PREFETCH_IDLE) {
        return;
    }

    drop_list(query);
    if (query->plan_number == 0) {
        remove_query(queries, query);
    }
}

enum uc_status
uc_prefetch_queries_create(size_t tiers_below, struct uc_prefetch_queries **queries_out)
{
    struct uc_prefetch_queries *queries = calloc(1, sizeof(*queries));

    if (queries == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "no memory for prefetch queries");
    }

    queries->tiers_below = tiers_below;
    uc_text_map_init(&queries->by_request);
    *queries_out = queries;
    return UC_OK;
}

void
uc_prefetch_queries_destroy(struct uc_prefetch_queries *queries)
{
    struct query *query;

    if (queries == NULL) {
        return;
    }

    while ((query = query_of(uc_text_map_next(&queries->by_request, NULL))) != NULL) {
        assert(query->plan_number == 0);
        remove_query(queries, query);
    }
    uc_text_map_fini(&queries->by_request);
    free(queries);
}

static bool
is_list(const struct query *query, const struct uc_block_id *ids, size_t count)
{
    return query->count == count &&
           (count == 0 || memcmp(query->ids, ids, count * sizeof(ids[0])) == 0);
}

enum uc_status
uc_prefetch_queries_begin(struct uc_prefetch_queries *queries, const char *request_id,
        const struct uc_block_id *ids, size_t count, bool *may_signal_out)
{
    struct query *query = find(queries, request_id);
    bool has_rounds = queries->tiers_below != 0;

    if (query == NULL) {
        *may_signal_out = has_rounds;
        return UC_OK;
    }
    if (!query->has_list || !is_list(query, ids, count)) {
        if (query->has_list && lookup_rules[query->state].list_rule == LIST_SAME) {
            return uc_error(UC_ERR_INVALID_PARAM,
                    "lookup: request %.64s has a query over another list of %zu blocks under way: "
                    "finish that first, or use another request",
                    request_id, query->count);
        }
        if (lookup_rules[query->state].list_rule == LIST_RESTART) {
            query->state = UC_PREFETCH_IDLE; /* */
            drop_list(query);
        }
    }
    if (query->state == UC_PREFETCH_PROGRESSED) {
        has_rounds = query->rounds < queries->tiers_below; /* */
    }

    *may_signal_out = lookup_rules[query->state].may_signal && has_rounds;
    return UC_OK;
}

/* List and need in one allocation that replaces the query's own; @p need may point into that. */
static enum uc_status
keep_lists(struct query *query, const struct uc_block_id *ids, size_t count,
        const struct uc_prefetch_need *need)
{
    struct uc_block_id *kept;

    if (count > SIZE_MAX / 2 / sizeof(ids[0]) || need->count > count) {
        return uc_error(UC_ERR_INVALID_PARAM, "prefetch: %zu of %zu blocks", need->count, count);
    }
    kept = malloc((count + need->count) * sizeof(ids[0]) + 1);
    if (kept == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "no memory for a query over %zu blocks", count);
    }

    if (count != 0) {
        memcpy(kept, ids, count * sizeof(ids[0]));
    }
    if (need->count != 0) {
        memcpy(kept + count, need->ids, need->count * sizeof(ids[0]));
    }
    free(query->ids);
    query->ids = kept;
    query->count = count;
    query->has_list = true;
    query->need = (struct uc_prefetch_need){
            .ids = kept + count, .count = need->count, .is_delegated = need->is_delegated};
    return UC_OK;
}

enum uc_status
uc_prefetch_queries_signal(struct uc_prefetch_queries *queries, const char *request_id,
        const struct uc_block_id *ids, size_t count, const struct uc_prefetch_need *need)
{
    struct query *query = find_or_add(queries, request_id);
    enum uc_status status;

    if (query == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "no memory for the query of %.64s", request_id);
    }
    status = keep_lists(query, ids, count, need);
    if (status != UC_OK) {
        apply(queries, query, EVENT_FAIL);
        return status;
    }

    query->rounds++;
    apply(queries, query, EVENT_SIGNAL);
    return UC_OK;
}

static void
apply_to(struct uc_prefetch_queries *queries, const char *request_id, enum query_event event)
{
    struct query *query = find(queries, request_id);

    if (query != NULL) {
        apply(queries, query, event);
    }
}

void
uc_prefetch_queries_answer(struct uc_prefetch_queries *queries, const char *request_id)
{
    apply_to(queries, request_id, EVENT_ANSWER);
}

void
uc_prefetch_queries_fail(struct uc_prefetch_queries *queries, const char *request_id)
{
    apply_to(queries, request_id, EVENT_FAIL);
}

enum uc_status
uc_prefetch_queries_begin_prepare(struct uc_prefetch_queries *queries, const char *request_id,
        struct uc_prefetch_need *need_out)
{
    struct query *query = find_or_add(queries, request_id);

    if (query == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "no memory for the query of %.64s", request_id);
    }
    if (query->plan_number != 0) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "prepare_prefetch: request %.64s has a plan that is not complete: complete it first",
                request_id);
    }

    *need_out = query->state == UC_PREFETCH_SIGNALLED ? query->need : (struct uc_prefetch_need){0};
    return UC_OK;
}

uint64_t
uc_prefetch_queries_prepared(
        struct uc_prefetch_queries *queries, const char *request_id, void *plan)
{
    struct query *query = find(queries, request_id);

    assert(query != NULL && query->plan_number == 0);
    query->plan_number = ++queries->last_plan_number;
    query->plan = plan;
    apply(queries, query, EVENT_PREPARE);
    return queries->last_plan_number;
}

enum uc_status
uc_prefetch_queries_find_plan(
        const struct uc_prefetch_queries *queries, uint64_t plan_number, void **plan_out)
{
    const struct query *query = plan_number == 0 ? NULL : find_by_plan(queries, plan_number);

    if (query == NULL) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "prefetch: plan %llu is not one of this store, or it is complete already",
                (unsigned long long)plan_number);
    }

    *plan_out = query->plan;
    return UC_OK;
}

void
uc_prefetch_queries_conclude(
        struct uc_prefetch_queries *queries, uint64_t plan_number, bool progressed)
{
    struct query *query = plan_number == 0 ? NULL : find_by_plan(queries, plan_number);

    if (query == NULL) {
        return;
    }

    query->plan_number = 0;
    query->plan = NULL;
    apply(queries, query, progressed ? EVENT_PROGRESS : EVENT_NO_PROGRESS);
}

void
uc_prefetch_queries_forget(struct uc_prefetch_queries *queries, const char *request_id)
{
    apply_to(queries, request_id, EVENT_FORGET);
}

uint64_t
uc_prefetch_queries_any_plan(const struct uc_prefetch_queries *queries)
{
    const struct query *query = find_by_plan(queries, 0);

    return query == NULL ? 0 : query->plan_number;
}

size_t
uc_prefetch_queries_count(const struct uc_prefetch_queries *queries)
{
    return queries->by_request.count;
}

enum uc_prefetch_state
uc_prefetch_queries_state(const struct uc_prefetch_queries *queries, const char *request_id)
{
    const struct query *query = find(queries, request_id);

    return query == NULL ? UC_PREFETCH_IDLE : query->state;
}
