/* SPDX-License-Identifier: Apache-2.0 */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <ucm/clock.h>
#include <ucm/log.h>

#include "client/stores/cache/job.h"
#include "client/stores/cache/plane_internal.h"
#include "client/stores/cache/slots.h"
#include "core/store/job_check.h"

enum {
    POLL_NS = 100 * 1000 /* between two looks at prerequisites */
};

static uint64_t
now_ms(void)
{
    return uc_clock_now_ns() / 1000000u;
}

/* ---- threads ---- */

static void
finish(struct uc_cache_plane *plane, struct uc_cache_job *job)
{
    enum uc_status code = uc_cache_job_sum_up(job);

    uc_cache_plane_let_go_locked(job->attachment);
    uc_completion_queue_finish(plane->events, job->id, code, job->blocks);
    uc_cache_job_destroy(job);
}

static void
make_ready(struct uc_cache_plane *plane, struct uc_cache_job *job)
{
    if (job->count == 0) {
        finish(plane, job);
        return;
    }
    if (job->lines[0].left > 0) {
        uc_list_add(&plane->ready, &job->lines[0].node);
    }
    if (job->lines[1].left > 0) {
        uc_list_add(&plane->copies.waiting, &job->lines[1].node);
    }
    if (job->count > 1) {
        (void)pthread_cond_broadcast(&plane->wake);
    } else {
        (void)pthread_cond_signal(&plane->wake);
    }
}

/* the time spent here counts.: no byte moves before the event has fired. */
static void
poll_waiting(struct uc_cache_plane *plane)
{
    struct uc_list still;

    uc_list_init(&still);
    while (!uc_list_is_empty(&plane->waiting)) {
        struct uc_cache_job *job =
                uc_list_entry(uc_list_take(&plane->waiting), struct uc_cache_job, node);
        enum uc_status status =
                plane->prerequisite->poll(plane->prerequisite->context, job->prerequisite_handle);

        if (status == UC_ERR_RETRY && plane->is_stopping) {
            status = UC_ERR_GENERAL;
        } else if (status == UC_ERR_RETRY && now_ms() >= job->deadline_ms) {
            status = UC_ERR_TIMEOUT;
        }
        if (status == UC_ERR_RETRY) {
            uc_list_add(&still, &job->node);
        } else {
            job->verdict = status;
            make_ready(plane, job);
        }
    }
    while (!uc_list_is_empty(&still)) {
        uc_list_add(&plane->waiting, uc_list_take(&still));
    }
}

/* Before the event, so that who has seen it sees the number. */
static void
count_moved(struct uc_cache_plane *plane, const struct uc_cache_job *job, size_t idx)
{
    if (job->items[idx].code != UC_OK) {
        return;
    }
    if (job->is_load) {
        plane->stats.blocks_loaded++;
    } else {
        plane->stats.blocks_dumped++;
    }
}

void
uc_cache_plane_end_item_locked(struct uc_cache_plane *plane, struct uc_cache_job *job, size_t idx)
{
    count_moved(plane, job, idx);
    if (++job->done == job->count) {
        finish(plane, job);
    }
}

static void
run_one(struct uc_cache_plane *plane) UC_REQUIRES(plane->lock)
{
    struct uc_cache_job *job = uc_cache_job_of(plane->ready.next, false);
    size_t idx = uc_cache_job_take(job, false);

    if (job->lines[0].left == 0) {
        uc_list_remove(&job->lines[0].node);
    }
    if (plane->copies.running_count > 0) {
        (void)pthread_cond_signal(&plane->wake); /* somebody else watches them meanwhile */
    }
    uc_mutex_unlock(&plane->lock);
    uc_cache_job_run(job, idx);
    uc_mutex_lock(&plane->lock);
    uc_cache_plane_end_item_locked(plane, job, idx);
}

static void
sleep_locked(struct uc_cache_plane *plane)
{
    struct uc_cache_copies *copies = &plane->copies;
    bool watches = copies->running_count > 0 && !copies->is_watched;
    struct timespec until;

    if (!watches && uc_list_is_empty(&plane->waiting) && !plane->is_stopping) {
        (void)pthread_cond_wait(&plane->wake, &plane->lock.native);
        return;
    }
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += POLL_NS;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    copies->is_watched = copies->is_watched || watches;
    (void)pthread_cond_timedwait(&plane->wake, &plane->lock.native, &until);
    if (watches) {
        copies->is_watched = false;
    }
}

static bool
may_stop(const struct uc_cache_plane *plane)
{
    return plane->is_stopping && plane->copies.running_count == 0 &&
           uc_list_is_empty(&plane->copies.waiting);
}

static void *
copy_main(void *argument)
{
    struct uc_cache_plane *plane = argument;

    uc_mutex_lock(&plane->lock);
    for (;;) {
        bool copied;

        poll_waiting(plane);
        copied = uc_cache_plane_copy_locked(plane);
        if (!uc_list_is_empty(&plane->ready)) {
            run_one(plane);
        } else if (copied) {
            continue;
        } else if (may_stop(plane)) {
            break;
        } else if (!uc_list_is_empty(&plane->waiting) || plane->copies.running_count > 0 ||
                   !uc_cache_plane_map_ahead_locked(plane)) {
            sleep_locked(plane);
        }
    }
    uc_mutex_unlock(&plane->lock);
    return NULL;
}

static enum uc_status
start_threads(struct uc_cache_plane *plane, size_t count)
{
    plane->threads = calloc(count, sizeof(plane->threads[0]));
    if (plane->threads == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "cache store: no memory for %zu threads", count);
    }
    for (size_t idx = 0; idx < count; idx++) {
        int reason = pthread_create(&plane->threads[idx], NULL, copy_main, plane);

        if (reason != 0) {
            return uc_log_errno(reason, "cache store: start thread %zu", idx);
        }
        plane->thread_count++;
    }
    return UC_OK;
}

enum uc_status
uc_cache_plane_create(const struct uc_cache_store_config *config,
        struct uc_completion_queue *events, struct uc_cache_segment *segment,
        struct uc_cache_plane **plane_out)
{
    struct uc_cache_plane *plane = calloc(1, sizeof(*plane));
    pthread_condattr_t attributes;
    enum uc_status status = UC_OK;

    if (plane == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "cache store: no memory for the data side");
    }

    uc_region_list_init(&plane->regions, "cache store");
    uc_mutex_init(&plane->lock);
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&plane->wake, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    uc_list_init(&plane->ready);
    uc_list_init(&plane->waiting);
    uc_cache_copies_init(&plane->copies);
    plane->events = events;
    plane->prerequisite = config->prerequisite;
    plane->block_bytes = config->block_bytes;
    plane->timeout_ms = config->timeout_ms;
    memcpy(plane->domain, config->domain, strlen(config->domain));
    if (segment != NULL) {
        status = uc_cache_plane_adopt_locked(plane, segment, true);
    }
    if (status == UC_OK) {
        status = start_threads(plane, (size_t)config->threads);
    }
    if (status != UC_OK) {
        uc_cache_plane_destroy(plane);
        return status;
    }

    *plane_out = plane;
    return UC_OK;
}

void
uc_cache_plane_destroy(struct uc_cache_plane *plane)
{
    if (plane == NULL) {
        return;
    }

    uc_mutex_lock(&plane->lock);
    plane->is_stopping = true;
    (void)pthread_cond_broadcast(&plane->wake);
    uc_mutex_unlock(&plane->lock);
    for (size_t idx = 0; idx < plane->thread_count; idx++) {
        (void)pthread_join(plane->threads[idx], NULL);
    }
    free(plane->threads);
    uc_cache_plane_let_go_locked(plane->attachment);
    uc_cache_copies_fini(&plane->copies);
    uc_region_list_fini(&plane->regions);
    (void)pthread_cond_destroy(&plane->wake);
    uc_mutex_fini(&plane->lock);
    free(plane);
}

struct uc_cache_plane_stats
uc_cache_plane_stats(struct uc_cache_plane *plane)
{
    struct uc_cache_plane_stats stats;

    uc_mutex_lock(&plane->lock);
    stats = plane->stats;
    uc_mutex_unlock(&plane->lock);
    return stats;
}

/* ---- submit ---- */

static enum uc_status
check(const struct uc_cache_plane *plane, bool is_load, uint64_t job_id,
        const struct uc_job_descriptor *job, const struct uc_token *token, size_t first_key,
        uint64_t *incarnation_out)
{
    enum uc_status status = uc_job_check(is_load ? "load" : "dump", job_id, job);

    if (status != UC_OK) {
        return status;
    }
    if (first_key > token->key_count || job->count > token->key_count - first_key) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "cache store: job %" PRIu64 ": keys %zu to %zu of a token with %zu", job_id,
                first_key, first_key + job->count, token->key_count);
    }
    if (job->prerequisite_handle != 0 && plane->prerequisite == NULL) {
        return uc_error(UC_ERR_UNSUPPORTED,
                "cache store: job %" PRIu64 " has a prerequisite, but the host gave no hook to "
                "poll it",
                job_id);
    }
    for (size_t idx = 0; idx < job->count; idx++) {
        status = uc_region_list_check(&plane->regions, &job->payloads[idx]);
        if (status != UC_OK) {
            return status;
        }
    }
    return uc_cache_payload_check(token->payload, token->payload_bytes, token->key_count,
            plane->domain, plane->block_bytes, incarnation_out);
}

/* Which pointers a device copies. */
static enum uc_status
locate_items(const struct uc_cache_plane *plane, struct uc_cache_job *job)
{
    if (plane->regions.device_count == 0) {
        return UC_OK;
    }
    for (size_t idx = 0; idx < job->count; idx++) {
        const struct uc_block_payload *payload = &job->items[idx].payload;

        for (size_t pointer = 0; pointer < payload->pointer_count; pointer++) {
            bool on_device = false;
            enum uc_status status = uc_region_list_locate(&plane->regions,
                    payload->pointers[pointer], payload->sizes[pointer], &on_device);
            if (status != UC_OK) {
                return status;
            }
            if (on_device) {
                uc_cache_job_set_device(job, idx, pointer);
            }
        }
    }
    return UC_OK;
}

/* From here on the slots count the transfer; a stale key is a miss. */
static void
count_in(struct uc_cache_job *job)
{
    for (size_t idx = 0; idx < job->count; idx++) {
        struct uc_cache_item *item = &job->items[idx];

        item->code = job->attachment == NULL ? UC_ERR_NOT_FOUND
                                             : uc_cache_slot_begin(job->attachment->segment,
                                                       item->place.slot, item->place.generation);
        item->is_counted = item->code == UC_OK;
    }
}

static enum uc_status
place_items(struct uc_cache_job *job, const struct uc_token *token, size_t first_key)
{
    for (size_t idx = 0; idx < job->count; idx++) {
        struct uc_cache_item *item = &job->items[idx];

        item->id = token->keys[first_key + idx];
        item->place = uc_cache_payload_key(token->payload, first_key + idx);
        if (item->place.generation == 0 ||
                (job->attachment != NULL &&
                        item->place.slot >= job->attachment->segment->slot_count)) {
            return uc_error(UC_ERR_INVALID_PARAM,
                    "cache store: key %zu of the token names slot %" PRIu32
                    " of generation %" PRIu64 ", which there is not",
                    first_key + idx, item->place.slot, item->place.generation);
        }
    }
    return UC_OK;
}

enum uc_status
uc_cache_plane_submit(struct uc_cache_plane *plane, bool is_load, uint64_t job_id,
        const struct uc_job_descriptor *job, const struct uc_token *token, size_t first_key)
{
    struct uc_cache_job *made = NULL;
    uint64_t incarnation = 0;
    enum uc_status status = check(plane, is_load, job_id, job, token, first_key, &incarnation);

    if (status != UC_OK) {
        return status;
    }
    status = uc_cache_job_create(job_id, job, &made);
    if (status != UC_OK) {
        return status;
    }
    status = locate_items(plane, made);
    if (status != UC_OK) {
        uc_cache_job_destroy(made);
        return status;
    }
    made->is_load = is_load;
    made->deadline_ms =
            uc_time_add_ms(now_ms(), job->timeout_ms == 0 ? plane->timeout_ms : job->timeout_ms);

    uc_mutex_lock(&plane->lock);
    status = uc_cache_plane_attach_locked(plane, incarnation, &made->attachment);
    if (status == UC_OK) {
        status = place_items(made, token, first_key);
    }
    if (status == UC_OK && made->attachment != NULL && made->lines[1].left > 0) {
        status = uc_cache_plane_show_locked(plane, made->attachment);
    }
    if (status == UC_OK) {
        status = uc_completion_queue_begin(plane->events, job_id, job->count);
    }
    if (status == UC_OK) {
        count_in(made);
        if (made->prerequisite_handle != 0) {
            uc_list_add(&plane->waiting, &made->node);
            (void)pthread_cond_signal(&plane->wake);
        } else {
            make_ready(plane, made);
        }
    } else {
        uc_cache_plane_let_go_locked(made->attachment);
        uc_cache_job_destroy(made);
    }
    uc_mutex_unlock(&plane->lock);
    return status;
}

enum uc_status
uc_cache_plane_register(struct uc_cache_plane *plane, uint32_t region_idx, const void *address,
        uint64_t length_bytes, enum uc_memory_kind kind)
{
    enum uc_status status =
            uc_region_list_add(&plane->regions, region_idx, address, length_bytes, kind);

    if (status == UC_OK && kind != UC_MEMORY_HOST) {
        status = uc_cache_plane_open_device(plane, address, length_bytes, kind);
        if (status != UC_OK) {
            (void)!uc_region_list_remove(&plane->regions, region_idx);
        }
    }
    return status;
}

enum uc_status
uc_cache_plane_deregister(struct uc_cache_plane *plane, uint32_t region_idx)
{
    if (uc_completion_queue_unfinished(plane->events) > 0) {
        return uc_error(UC_ERR_RETRY,
                "cache store: region %" PRIu32 ": jobs are in flight; wait for them", region_idx);
    }
    return uc_region_list_remove(&plane->regions, region_idx);
}
