/* SPDX-License-Identifier: Apache-2.0 */

/* The thread that alone calls the tier below, and what is handed to it. */

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <ucm/clock.h>
#include <ucm/log.h>

#include "client/stores/cache/lift_internal.h"
#include "client/stores/cache/plan.h"

#define FIRST_REGION (1u << 31) /* ours with the tier below */

enum {
    LOWER_WAIT_MS = 1,         /* between two looks at new work while transfers run */
    IDLE_NS = 5 * 1000 * 1000, /* between two looks for tasks */
    RESULTS = 16,
    BLOCKS_MAX = 1 << 20
};

/* ---- results of the lower tier ---- */

static void
take_result(struct uc_cache_lift *lift, const struct uc_io_result *result)
{
    for (struct uc_list *at = lift->active.next; at != &lift->active; at = at->next) {
        struct move *move = uc_list_entry(at, struct move, node);

        if (move->lower_job_id != result->job_id) {
            continue;
        }
        uc_list_remove(&move->node);
        if (!result->success && move->code == UC_OK) {
            move->code = result->code;
        }
        for (size_t idx = 0; idx < move->run_count; idx++) {
            size_t block = move->first + idx;

            if ((result->success || idx < result->block_count) &&
                    uc_io_result_block_ok(result, idx)) {
                move->blocks[block / 8] = (uint8_t)(move->blocks[block / 8] | 1u << block % 8);
            }
        }
        uc_cache_lift_go_on(lift, move);
        return;
    }
}

static void
poll_lower(struct uc_cache_lift *lift)
{
    const struct move *first = uc_list_entry(lift->active.next, struct move, node);
    uint64_t first_id = first->lower_job_id;
    struct uc_io_result results[RESULTS];
    size_t count = 0;

    /* Timeout delivers what is ready all the same. */
    (void)!uc_store_wait(lift->lower, &first_id, 1, LOWER_WAIT_MS, results, RESULTS, &count);
    do {
        for (size_t idx = 0; idx < count; idx++) {
            take_result(lift, &results[idx]);
        }
        uc_io_results_release(results, count);
        count = 0;
    } while (uc_store_get_finished(lift->lower, results, RESULTS, &count) == UC_OK && count > 0);
}

/* ---- thread ---- */

static void
sleep_locked(struct uc_cache_lift *lift)
{
    struct timespec until;

    if (!lift->write_through) {
        (void)pthread_cond_wait(&lift->wake, &lift->lock.native);
        return;
    }
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += IDLE_NS;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    (void)pthread_cond_timedwait(&lift->wake, &lift->lock.native, &until);
}

/* One call or a few of the lower tier. @return whether there was anything to do */
static bool
work(struct uc_cache_lift *lift, struct move *move, bool is_stopping)
{
    if (move != NULL) {
        uc_cache_lift_start_move(lift, move);
        return true;
    }
    if (lift->write_through && !is_stopping) {
        uc_cache_lift_take_tasks(lift);
    }
    if (uc_list_is_empty(&lift->active)) {
        return false;
    }
    poll_lower(lift);
    return true;
}

static void *
lift_main(void *argument)
{
    struct uc_cache_lift *lift = argument;

    uc_mutex_lock(&lift->lock);
    for (;;) {
        bool is_stopping = lift->is_stopping;
        struct move *move = NULL;
        bool did_something;

        if (lift->is_paused) {
            (void)pthread_cond_wait(&lift->wake, &lift->lock.native);
            continue;
        }
        if (!uc_list_is_empty(&lift->pending)) {
            move = uc_list_entry(uc_list_take(&lift->pending), struct move, node);
        }
        lift->is_calling = true;
        uc_mutex_unlock(&lift->lock);
        did_something = work(lift, move, is_stopping);
        uc_mutex_lock(&lift->lock);
        lift->is_calling = false;
        (void)pthread_cond_signal(&lift->quiet);
        if (did_something || !uc_list_is_empty(&lift->pending)) {
            continue;
        }
        if (is_stopping) {
            break;
        }
        if (!lift->is_stopping && !lift->is_paused) {
            sleep_locked(lift);
        }
    }
    uc_mutex_unlock(&lift->lock);
    return NULL;
}

void
uc_cache_lift_pause(struct uc_cache_lift *lift)
{
    if (lift == NULL) {
        return;
    }

    uc_mutex_lock(&lift->lock);
    lift->is_paused = true;
    while (lift->is_calling) {
        (void)pthread_cond_wait(&lift->quiet, &lift->lock.native);
    }
    uc_mutex_unlock(&lift->lock);
}

void
uc_cache_lift_resume(struct uc_cache_lift *lift)
{
    if (lift == NULL || !lift->is_paused) {
        return;
    }

    uc_mutex_lock(&lift->lock);
    lift->is_paused = false;
    (void)pthread_cond_signal(&lift->wake);
    uc_mutex_unlock(&lift->lock);
}

enum uc_status
uc_cache_lift_create(const struct uc_cache_store_config *config, struct uc_cache_plane *plane,
        struct uc_completion_queue *events, struct uc_cache_lift **lift_out)
{
    struct uc_cache_lift *lift = calloc(1, sizeof(*lift));
    pthread_condattr_t attributes;
    int reason;

    if (lift == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "cache store: no memory for the tier below");
    }

    uc_mutex_init(&lift->lock);
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&lift->wake, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    (void)pthread_cond_init(&lift->quiet, NULL);
    uc_list_init(&lift->pending);
    uc_list_init(&lift->active);
    lift->plane = plane;
    lift->events = events;
    lift->timeout_ms = config->timeout_ms;
    lift->write_through = config->write_through;
    lift->lower = config->lower;
    lift->lower_tokens = uc_store_as_token_addressed(config->lower);
    lift->lower_facet = uc_store_as_prefetchable(config->lower);
    lift->next_region = FIRST_REGION;
    reason = pthread_create(&lift->thread, NULL, lift_main, lift);
    if (reason != 0) {
        uc_cache_lift_destroy(lift);
        return uc_log_errno(reason, "cache store: start the thread for the tier below");
    }
    lift->is_running = true;
    *lift_out = lift;
    return UC_OK;
}

void
uc_cache_lift_destroy(struct uc_cache_lift *lift)
{
    if (lift == NULL) {
        return;
    }

    uc_mutex_lock(&lift->lock);
    lift->is_stopping = true;
    lift->is_paused = false;
    (void)pthread_cond_signal(&lift->wake);
    uc_mutex_unlock(&lift->lock);
    if (lift->is_running) {
        (void)pthread_join(lift->thread, NULL);
    }
    if (lift->registered != NULL) {
        (void)!uc_store_deregister_memory(lift->lower, lift->region_idx);
        uc_cache_plane_let_go(lift->plane, lift->registered);
    }
    (void)pthread_cond_destroy(&lift->wake);
    (void)pthread_cond_destroy(&lift->quiet);
    uc_mutex_fini(&lift->lock);
    free(lift);
}

/* ---- submit ---- */

static enum uc_status
fill_from_plan(struct uc_cache_lift *lift, const struct uc_token *token,
        const struct uc_cache_plan *plan, struct move *move)
{
    enum uc_status status = UC_OK;

    move->is_delegated = plan->is_delegated;
    if (plan->lower_bytes > 0) {
        status = uc_token_deserialize(plan->lower, plan->lower_bytes, &move->lower);
    }
    if (status != UC_OK || plan->is_delegated) {
        return status;
    }
    if (token->key_count > 0) {
        status = uc_cache_plane_attach(lift->plane, plan->destinations, plan->destinations_bytes,
                token->key_count, &move->attachment);
    }
    for (size_t idx = 0; status == UC_OK && idx < token->key_count; idx++) {
        move->ids[idx] = token->keys[idx];
        move->places[idx] = uc_cache_payload_key(plan->destinations, idx);
    }
    return status;
}

static enum uc_status
check_plan(const struct uc_cache_lift *lift, const struct uc_token *token,
        const struct uc_cache_plan *plan)
{
    bool needs_lower = plan->is_delegated || (token->key_count > 0 && lift->lower_tokens != NULL);

    if (token->key_count > BLOCKS_MAX || (plan->is_delegated && lift->lower_facet == NULL) ||
            needs_lower != (plan->lower_bytes > 0)) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "cache store: the plan was not made for this tier; use one configuration in all "
                "processes");
    }
    return UC_OK;
}

enum uc_status
uc_cache_lift_submit(struct uc_cache_lift *lift, uint64_t job_id, const struct uc_token *token)
{
    struct uc_cache_plan plan;
    struct move *move = NULL;
    enum uc_status status = uc_cache_plan_read(token, &plan);

    if (status == UC_OK) {
        status = check_plan(lift, token, &plan);
    }
    if (status != UC_OK) {
        return status;
    }
    move = uc_cache_lift_create_move(token->key_count);
    if (move == NULL) {
        return UC_ERR_OUT_OF_MEMORY;
    }
    move->job_id = job_id;
    status = fill_from_plan(lift, token, &plan, move);
    if (status == UC_OK && move->lower != NULL && move->lower->key_count != token->key_count) {
        status = uc_error(UC_ERR_INVALID_PARAM,
                "cache store: a plan of %zu blocks with a token of %zu below", token->key_count,
                move->lower->key_count);
    }
    if (status == UC_OK) {
        status = uc_completion_queue_begin(lift->events, job_id, token->key_count);
    }
    if (status != UC_OK) {
        uc_cache_lift_destroy_move(lift, move);
        return status;
    }

    if (move->attachment != NULL) {
        uc_cache_lift_count_in(move); /* from acceptance on */
    }
    uc_mutex_lock(&lift->lock);
    uc_list_add(&lift->pending, &move->node);
    (void)pthread_cond_signal(&lift->wake);
    uc_mutex_unlock(&lift->lock);
    return UC_OK;
}
