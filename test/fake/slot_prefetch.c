/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The Prefetchable facet of a slot store over the tier below it (section 7 of core/CONTRACT.md). The query states
 * are core/store/prefetch_query.h's; what is here is how blocks get from below into slots.
 *
 * Plan payload: "SLP1", kind, number of the plan, then
 *     own round: length of the source token, that token, payload of the destination token
 *     delegated round: length of the lower tier's plan, that plan
 */

#include <stdlib.h>
#include <string.h>

#include <ucm/setup.h>

#include "core/base/bytes.h"
#include "test/fake/slot_store_internal.h"

enum {
    PLAN_HEADER_BYTES = 20, /* magic, kind, number, length of the first part */
    KIND_AT = 4,
    NUMBER_AT = 8,
    LENGTH_AT = 16,
    LOWER_TIMEOUT_MS = 30000
};

enum plan_kind {
    PLAN_EMPTY,
    PLAN_OWN,
    PLAN_DELEGATED,
};

#define LOWER_REGION_IDX (UINT32_C(1) << 31) /* a tier's own memory */

static const uint8_t plan_magic[4] = {'S', 'L', 'P', '1'};

/* What a plan holds until it is concluded; of the control side. */
struct plan {
    enum plan_kind kind;
    struct uc_token *lower;       /* read token of the sources, or the lower tier's plan */
    struct uc_token *destination; /* write token of this store; own rounds only */
};

enum uc_status
slot_prefetch_setup(struct slot_store *self, const struct uc_dict *config, bool moves_bytes)
{
    int64_t tiers_below = 0;
    void *lower = NULL;
    enum uc_status status = uc_dict_get_pointer(config, UC_SETUP_PIPED_LOWER_STORE, &lower);

    if (status == UC_ERR_NOT_FOUND) {
        return UC_OK;
    }
    if (status == UC_OK) {
        status = uc_dict_get_int(config, UC_SETUP_TIERS_BELOW, &tiers_below);
    }
    if (status == UC_OK) {
        status = uc_prefetch_queries_create((size_t)tiers_below, &self->queries);
    }
    if (status != UC_OK) {
        return status;
    }

    self->lower.store = lower;
    self->lower.facet = uc_store_as_prefetchable(lower);
    self->lower_tokened = uc_store_as_token_addressed(lower);
    if (!moves_bytes) {
        return UC_OK;
    }
    status = uc_store_register_memory(lower, LOWER_REGION_IDX, self->table.data,
            self->table.slot_count * self->table.block_bytes, UC_MEMORY_HOST);
    self->is_registered_below = status == UC_OK;
    return status;
}

/* ---- control side ---- */

static enum uc_status
facet_lookup(struct uc_store *store, const char *request_id, const struct uc_block_id *ids,
        size_t count, uint8_t *hits_out, bool *prefetch_needed_out)
{
    struct slot_store *self = slot_store_of(store);
    uint8_t *hits = calloc(1, count + 1); /* the output is untouched on a signal */
    enum uc_status status;

    if (hits == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "slot store: no memory for a lookup");
    }
    (void)slot_lookup(store, ids, count, hits);
    status = uc_prefetch_ask(self->queries, &self->lower, UC_PREFETCH_LOOKUP, request_id, ids,
            count, hits, prefetch_needed_out);
    if (status == UC_OK && !*prefetch_needed_out && count != 0) {
        memcpy(hits_out, hits, count);
    }
    free(hits);
    return status;
}

static enum uc_status
look_up_index(struct uc_store *store, enum uc_prefetch_lookup kind, const char *request_id,
        const struct uc_block_id *ids, size_t count, int64_t *index_out, bool *prefetch_needed_out)
{
    struct slot_store *self = slot_store_of(store);
    uint8_t *hits = calloc(1, count + 1);
    enum uc_status status;

    if (hits == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "slot store: no memory for a lookup");
    }
    (void)slot_lookup(store, ids, count, hits);
    status = uc_prefetch_ask(
            self->queries, &self->lower, kind, request_id, ids, count, hits, prefetch_needed_out);
    if (status == UC_OK && !*prefetch_needed_out) {
        *index_out = kind == UC_PREFETCH_ON_PREFIX ? uc_prefetch_last_of_prefix(hits, count)
                                                   : uc_prefetch_last_of_any(hits, count);
    }
    free(hits);
    return status;
}

static enum uc_status
facet_lookup_on_prefix(struct uc_store *store, const char *request_id,
        const struct uc_block_id *ids, size_t count, int64_t *index_out, bool *prefetch_needed_out)
{
    return look_up_index(
            store, UC_PREFETCH_ON_PREFIX, request_id, ids, count, index_out, prefetch_needed_out);
}

static enum uc_status
facet_lookup_on_reverse(struct uc_store *store, const char *request_id,
        const struct uc_block_id *ids, size_t count, int64_t *index_out, bool *prefetch_needed_out)
{
    return look_up_index(
            store, UC_PREFETCH_ON_REVERSE, request_id, ids, count, index_out, prefetch_needed_out);
}

/* Let go of what a plan holds. @return whether at least one destination was committed */
static bool
release_plan(struct slot_store *self, struct plan *plan, bool success, enum uc_status *status_out)
{
    bool progressed = false;

    *status_out = UC_OK;
    if (plan->kind == PLAN_DELEGATED) {
        *status_out = self->lower.facet->complete_prefetch(self->lower.store, plan->lower, success);
        progressed = success && *status_out == UC_OK;
    }
    for (size_t key = 0; plan->destination != NULL && key < plan->destination->key_count; key++) {
        uint32_t generation;
        struct slot *slot = slot_of_token(self, plan->destination, key, &generation);
        bool is_filled = success && slot != NULL &&
                         atomic_load_explicit(&slot->filled, memory_order_acquire) == generation;

        (void)slot_table_conclude(&self->table, &plan->destination->keys[key], is_filled);
        progressed = progressed || is_filled;
    }
    if (plan->kind == PLAN_OWN && plan->lower != NULL && self->lower_tokened != NULL) {
        self->lower_tokened->unpin(self->lower.store, plan->lower);
    }
    uc_token_destroy(plan->destination);
    uc_token_destroy(plan->lower);
    free(plan);
    return progressed;
}

/* Blocks that arrived by other ways since the signal are left out. */
static size_t
drop_present(struct slot_store *self, const struct uc_prefetch_need *need, struct uc_block_id *left)
{
    size_t count = 0;

    for (size_t idx = 0; idx < need->count; idx++) {
        if (!slot_is_visible(slot_table_find(&self->table, &need->ids[idx]))) {
            left[count++] = need->ids[idx];
        }
    }

    return count;
}

/* Pin below, reserve here; both or neither. */
static enum uc_status
hold_blocks(struct slot_store *self, struct plan *plan, const struct uc_prefetch_need *need,
        const struct uc_request_context *context)
{
    struct uc_block_id *left = malloc(need->count * sizeof(left[0]));
    enum uc_status status;
    size_t count;

    if (left == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "slot store: no memory for a plan");
    }
    count = drop_present(self, need, left);
    if (count == 0) {
        free(left);
        return UC_OK;
    }

    status = self->lower_tokened != NULL
                     ? self->lower_tokened->pin(self->lower.store, left, count, &plan->lower)
                     : uc_token_create(left, count, NULL, 0, &plan->lower);
    if (status == UC_OK) {
        plan->kind = PLAN_OWN;
        status = slot_alloc(&self->base, left, count, context, &plan->destination);
    }
    free(left);
    return status;
}

static enum uc_status
mint_plan(const struct plan *plan, uint64_t number, struct uc_token **plan_out)
{
    const struct uc_token *destination = plan->destination;
    size_t lower_bytes = plan->lower == NULL ? 0 : uc_token_serialized_bytes(plan->lower);
    size_t destination_bytes = destination == NULL ? 0 : destination->payload_bytes;
    size_t payload_bytes = PLAN_HEADER_BYTES + lower_bytes + destination_bytes;
    const struct uc_token *keys = destination != NULL ? destination : plan->lower;
    uint8_t *payload = calloc(1, payload_bytes);
    enum uc_status status;

    if (payload == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "slot store: no memory for a plan");
    }

    memcpy(payload, plan_magic, sizeof(plan_magic));
    uc_put_le32(payload + KIND_AT, plan->kind);
    uc_put_le64(payload + NUMBER_AT, number);
    uc_put_le32(payload + LENGTH_AT, (uint32_t)lower_bytes);
    if (plan->lower != NULL) {
        uc_token_serialize(plan->lower, payload + PLAN_HEADER_BYTES);
    }
    if (destination_bytes != 0) {
        memcpy(payload + PLAN_HEADER_BYTES + lower_bytes, destination->payload, destination_bytes);
    }
    status = uc_token_create(keys == NULL ? NULL : keys->keys, keys == NULL ? 0 : keys->key_count,
            payload, payload_bytes, plan_out);
    free(payload);
    return status;
}

static enum uc_status
prepare_prefetch(struct uc_store *store, const char *request_id,
        const struct uc_request_context *context, struct uc_token **plan_out)
{
    struct slot_store *self = slot_store_of(store);
    struct uc_prefetch_need need;
    enum uc_status ignored;
    struct plan *plan;
    uint64_t number;
    enum uc_status status = uc_prefetch_queries_begin_prepare(self->queries, request_id, &need);

    if (status != UC_OK) {
        return status;
    }
    plan = calloc(1, sizeof(*plan));
    if (plan == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "slot store: no memory for a plan");
    }
    if (need.is_delegated) {
        status = self->lower.facet->prepare_prefetch(
                self->lower.store, request_id, context, &plan->lower);
        plan->kind = status == UC_OK ? PLAN_DELEGATED : PLAN_EMPTY;
    } else if (need.count != 0) {
        status = hold_blocks(self, plan, &need, context);
    }
    if (status != UC_OK) {
        (void)release_plan(self, plan, false, &ignored);
        return status;
    }

    /* The number is in the payload, so it comes first; a token that cannot be made concludes the plan. */
    number = uc_prefetch_queries_prepared(self->queries, request_id, plan);
    status = mint_plan(plan, number, plan_out);
    if (status != UC_OK) {
        (void)release_plan(self, plan, false, &ignored);
        uc_prefetch_queries_conclude(self->queries, number, false);
    }
    return status;
}

static enum uc_status
read_header(const struct uc_token *token, enum plan_kind *kind_out, uint64_t *number_out,
        size_t *lower_bytes_out)
{
    uint32_t kind;
    uint32_t lower_bytes;

    if (token->payload_bytes < PLAN_HEADER_BYTES ||
            memcmp(token->payload, plan_magic, sizeof(plan_magic)) != 0) {
        return uc_error(UC_ERR_INVALID_PARAM, "slot store: the token is no plan");
    }
    kind = uc_get_le32(token->payload + KIND_AT);
    lower_bytes = uc_get_le32(token->payload + LENGTH_AT);
    if (kind > PLAN_DELEGATED || lower_bytes > token->payload_bytes - PLAN_HEADER_BYTES) {
        return uc_error(UC_ERR_INVALID_PARAM, "slot store: the plan is damaged");
    }

    *kind_out = (enum plan_kind)kind;
    *number_out = uc_get_le64(token->payload + NUMBER_AT);
    *lower_bytes_out = lower_bytes;
    return UC_OK;
}

static enum uc_status
complete_prefetch(struct uc_store *store, const struct uc_token *token, bool success)
{
    struct slot_store *self = slot_store_of(store);
    enum plan_kind kind = PLAN_EMPTY;
    size_t lower_bytes = 0;
    uint64_t number = 0;
    void *plan = NULL;
    bool progressed;
    enum uc_status status = read_header(token, &kind, &number, &lower_bytes);

    if (status == UC_OK) {
        status = uc_prefetch_queries_find_plan(self->queries, number, &plan);
    }
    if (status != UC_OK) {
        return status;
    }

    progressed = release_plan(self, plan, success, &status);
    uc_prefetch_queries_conclude(self->queries, number, progressed);
    return status;
}

static void
forget(struct uc_store *store, const char *request_id)
{
    struct slot_store *self = slot_store_of(store);

    uc_prefetch_forget(self->queries, &self->lower, request_id);
}

void
slot_prefetch_fini(struct slot_store *self)
{
    uint64_t number;

    while (self->queries != NULL && (number = uc_prefetch_queries_any_plan(self->queries)) != 0) {
        enum uc_status ignored;
        void *plan = NULL;

        if (uc_prefetch_queries_find_plan(self->queries, number, &plan) == UC_OK) {
            (void)release_plan(self, plan, false, &ignored);
        }
        uc_prefetch_queries_conclude(self->queries, number, false);
    }
    if (self->is_registered_below) {
        (void)!uc_store_deregister_memory(self->lower.store, LOWER_REGION_IDX);
    }
    uc_prefetch_queries_destroy(self->queries);
}

/* ---- data side ---- */

/* Run a job of the lower tier to its end: the slot store moves bytes in its calls, as everywhere. */
static enum uc_status
wait_below(struct slot_store *self, uint64_t job_id, struct uc_io_result *result_out)
{
    size_t count = 0;
    enum uc_status status =
            uc_store_wait(self->lower.store, &job_id, 1, LOWER_TIMEOUT_MS, result_out, 1, &count);

    return status == UC_OK && count != 1
                   ? uc_error(UC_ERR_GENERAL, "slot store: the lower tier lost a job")
                   : status;
}

struct round {
    struct uc_token *source;
    struct uc_token destination; /* keys of the plan, payload inside it */
    struct uc_block_payload *payloads;
    void **pointers;
    struct uc_job_descriptor job;
};

/* Where each block goes; every byte of the plan is foreign. */
static enum uc_status
aim(struct slot_store *self, struct round *round, const uint64_t *size)
{
    static const uint32_t region_idx = LOWER_REGION_IDX;

    for (size_t key = 0; key < round->destination.key_count; key++) {
        uint32_t generation;
        const struct slot *slot = slot_of_token(self, &round->destination, key, &generation);

        if (slot == NULL ||
                atomic_load_explicit(&slot->generation, memory_order_acquire) != generation) {
            return uc_error(UC_ERR_NOT_FOUND, "slot store: destination %zu is gone", key);
        }
        round->pointers[key] =
                self->table.data + (size_t)(slot - self->table.slots) * self->table.block_bytes;
        round->payloads[key] = (struct uc_block_payload){
                .pointers = &round->pointers[key],
                .sizes = size,
                .pointer_count = 1,
                .memory_region_indices = &region_idx,
                .memory_region_index_count = 1,
        };
    }

    return UC_OK;
}

static enum uc_status
open_round(struct slot_store *self, struct round *round, const struct uc_token *plan,
        size_t lower_bytes, const uint64_t *size)
{
    const uint8_t *lower = plan->payload + PLAN_HEADER_BYTES;
    size_t count = plan->key_count;
    enum uc_status status = uc_token_deserialize(lower, lower_bytes, &round->source);

    if (status != UC_OK) {
        return status;
    }
    round->destination = *plan;
    round->destination.payload = lower + lower_bytes;
    round->destination.payload_bytes = plan->payload_bytes - PLAN_HEADER_BYTES - lower_bytes;
    if (!slot_token_is_ours(self, &round->destination) || round->source->key_count != count ||
            memcmp(round->source->keys, plan->keys, count * sizeof(plan->keys[0])) != 0) {
        return uc_error(UC_ERR_INVALID_PARAM, "slot store: the plan is not one of this store");
    }
    round->payloads = calloc(count, sizeof(round->payloads[0]));
    round->pointers = calloc(count, sizeof(round->pointers[0]));
    if (round->payloads == NULL || round->pointers == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "slot store: no memory for a round");
    }

    round->job = (struct uc_job_descriptor){.block_ids = round->source->keys,
            .payloads = round->payloads,
            .count = count,
            .description = "prefetch"};
    return aim(self, round, size);
}

static void
close_round(struct round *round)
{
    free(round->payloads);
    free(round->pointers);
    uc_token_destroy(round->source);
}

/* Mark what arrived, for the control side to commit. */
static void
mark_filled(struct slot_store *self, const struct round *round, const struct uc_io_result *result)
{
    for (size_t key = 0; key < round->job.count; key++) {
        uint32_t generation;
        struct slot *slot = slot_of_token(self, &round->destination, key, &generation);

        if (uc_io_result_block_ok(result, key)) {
            atomic_store_explicit(&slot->filled, generation, memory_order_release);
        }
    }
}

static enum uc_status
run_round(struct slot_store *self, uint64_t job_id, const struct uc_token *plan, size_t lower_bytes)
{
    uint64_t lower_job_id = self->next_lower_job_id++;
    struct uc_io_result result = {0};
    struct round round = {0};
    enum uc_status status = open_round(self, &round, plan, lower_bytes, &self->table.block_bytes);

    if (status == UC_OK) {
        status = uc_completion_queue_begin(self->events, job_id, plan->key_count);
    }
    if (status != UC_OK) {
        close_round(&round);
        return status;
    }

    status = self->lower_tokened != NULL
                     ? self->lower_tokened->load(
                               self->lower.store, lower_job_id, &round.job, round.source, 0)
                     : uc_store_load(self->lower.store, lower_job_id, &round.job);
    if (status == UC_OK) {
        status = wait_below(self, lower_job_id, &result);
    }
    if (status == UC_OK) {
        mark_filled(self, &round, &result);
        status = result.code;
    }
    uc_completion_queue_finish(self->events, job_id, status, result.blocks);
    uc_io_results_release(&result, 1);
    close_round(&round);
    return UC_OK;
}

static enum uc_status
run_delegated(
        struct slot_store *self, uint64_t job_id, const struct uc_token *plan, size_t lower_bytes)
{
    uint64_t lower_job_id = self->next_lower_job_id++;
    struct uc_io_result result = {0};
    struct uc_token *lower = NULL;
    enum uc_status status;

    if (self->lower.facet == NULL) {
        return uc_error(UC_ERR_INVALID_PARAM, "slot store: no tier below that could prefetch");
    }
    status = uc_token_deserialize(plan->payload + PLAN_HEADER_BYTES, lower_bytes, &lower);
    if (status == UC_OK) {
        status = uc_completion_queue_begin(self->events, job_id, plan->key_count);
    }
    if (status != UC_OK) {
        uc_token_destroy(lower);
        return status;
    }

    status = self->lower.facet->prefetch(self->lower.store, lower_job_id, lower);
    if (status == UC_OK) {
        status = wait_below(self, lower_job_id, &result);
    }
    uc_completion_queue_finish(self->events, job_id, status == UC_OK ? result.code : status, NULL);
    uc_io_results_release(&result, 1);
    uc_token_destroy(lower);
    return UC_OK;
}

static enum uc_status
prefetch(struct uc_store *store, uint64_t job_id, const struct uc_token *plan)
{
    struct slot_store *self = slot_store_of(store);
    enum plan_kind kind = PLAN_EMPTY;
    size_t lower_bytes = 0;
    uint64_t number = 0;
    enum uc_status status = read_header(plan, &kind, &number, &lower_bytes);

    if (status != UC_OK) {
        return status;
    }
    switch (kind) {
    case PLAN_OWN:
        return run_round(self, job_id, plan, lower_bytes);
    case PLAN_DELEGATED:
        return run_delegated(self, job_id, plan, lower_bytes);
    case PLAN_EMPTY:
        break;
    }

    status = uc_completion_queue_begin(self->events, job_id, 0); /* done at once */
    if (status == UC_OK) {
        uc_completion_queue_finish(self->events, job_id, UC_OK, NULL);
    }
    return status;
}

const struct uc_prefetchable_ops slot_prefetch_ops = {
        .struct_size = sizeof(slot_prefetch_ops),
        .lookup = facet_lookup,
        .lookup_on_prefix = facet_lookup_on_prefix,
        .lookup_on_reverse = facet_lookup_on_reverse,
        .prepare_prefetch = prepare_prefetch,
        .prefetch = prefetch,
        .complete_prefetch = complete_prefetch,
        .forget = forget,
};
