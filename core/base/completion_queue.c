/* SPDX-License-Identifier: Apache-2.0 */

#include "core/base/completion_queue.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <ucm/log.h>

#include "core/base/job_records.h"
#include "core/base/list.h"
#include "core/base/mutex.h"

enum {
    DEFAULT_RECORD_COUNT = 64
};

struct uc_completion_queue {
    struct uc_mutex lock;
    pthread_cond_t changed;        /* used with lock, monotonic clock */
    size_t limit;                  /* constant; SIZE_MAX = none */
    struct uc_job_records records; /* guarded by lock, as all that follows */
    struct uc_list finished;       /* in order of finishing */
    size_t unfinished_count;
    size_t waiter_count;
    uint64_t awaited_id; /* what the only waiter stands at; with several all are woken */
    int event_fd;        /* -1 until somebody asks */

    /* Constant once there are jobs; NULL = another thread ends them. */
    void (*drive)(void *context, int64_t left_ms);
    void *drive_context;
};

static void take_event_locked(struct uc_completion_queue *queue, struct uc_job_record **link,
        struct uc_io_result *result) UC_REQUIRES(queue->lock);
static enum uc_status begin_locked(struct uc_completion_queue *queue, uint64_t job_id,
        size_t block_count) UC_REQUIRES(queue->lock);
static bool pause_locked(struct uc_completion_queue *queue, int64_t timeout_ms,
        const struct timespec *deadline) UC_REQUIRES(queue->lock);
static bool await_locked(struct uc_completion_queue *queue, const uint64_t *job_ids,
        size_t job_count, int64_t timeout_ms) UC_REQUIRES(queue->lock);

enum uc_status
uc_completion_queue_create(
        size_t prepared_count, size_t limit, struct uc_completion_queue **queue_out)
{
    size_t record_count = prepared_count == 0 ? DEFAULT_RECORD_COUNT : prepared_count;
    pthread_condattr_t attributes;
    struct uc_completion_queue *queue;

    queue = calloc(1, sizeof(*queue));
    if (queue == NULL || uc_job_records_init(&queue->records, record_count) != UC_OK) {
        free(queue);
        return uc_error(
                UC_ERR_OUT_OF_MEMORY, "completion queue of %zu jobs: out of memory", record_count);
    }

    uc_mutex_init(&queue->lock);
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&queue->changed, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    uc_list_init(&queue->finished);
    queue->limit = limit == 0 ? SIZE_MAX : limit;
    queue->event_fd = -1;
    *queue_out = queue;
    return UC_OK;
}

void
uc_completion_queue_set_driver(struct uc_completion_queue *queue,
        void (*drive)(void *context, int64_t left_ms), void *context)
{
    queue->drive = drive;
    queue->drive_context = context;
}

void
uc_completion_queue_destroy(struct uc_completion_queue *queue)
{
    if (queue == NULL) {
        return;
    }

    if (queue->event_fd >= 0) {
        (void)close(queue->event_fd);
    }
    (void)pthread_cond_destroy(&queue->changed);
    uc_mutex_fini(&queue->lock);
    uc_job_records_fini(&queue->records);
    free(queue);
}

static void
signal_event_fd(int event_fd, bool readable)
{
    uint64_t value = 1;

    /* Neither can fail: the counter never exceeds 1, and it is read only while it is 1. */
    if (readable) {
        (void)!write(event_fd, &value, sizeof(value));
    } else {
        (void)!read(event_fd, &value, sizeof(value));
    }
}

/* Hand a finished job's event over; its id is free afterwards. */
static void
take_event_locked(
        struct uc_completion_queue *queue, struct uc_job_record **link, struct uc_io_result *result)
{
    struct uc_job_record *record = *link;

    memset(result, 0, sizeof(*result));
    result->job_id = record->job_id;
    result->blocks = record->blocks;
    result->block_count = record->block_count;
    result->code = record->code;
    result->success = record->code == UC_OK;
    record->blocks = NULL;
    uc_job_records_remove(&queue->records, link);
    if (queue->event_fd >= 0 && uc_list_is_empty(&queue->finished)) {
        signal_event_fd(queue->event_fd, false);
    }
}

static enum uc_status
begin_locked(struct uc_completion_queue *queue, uint64_t job_id, size_t block_count)
{
    struct uc_job_record *record = NULL;

    if (*uc_job_records_find(&queue->records, job_id) != NULL) {
        return uc_error(UC_ERR_DUPLICATE_KEY,
                "job %llu is in flight or its event was not consumed yet",
                (unsigned long long)job_id);
    }
    if (queue->records.used_count >= queue->limit) {
        return uc_error(UC_ERR_RETRY,
                "%zu jobs are in flight, the limit; collect events, then submit again",
                queue->records.used_count);
    }
    if (uc_job_records_add(&queue->records, job_id, &record) != UC_OK) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "no memory to track more than %zu jobs in flight",
                queue->records.used_count);
    }

    record->block_count = block_count;
    record->is_finished = false;
    queue->unfinished_count++;
    return UC_OK;
}

enum uc_status
uc_completion_queue_begin(struct uc_completion_queue *queue, uint64_t job_id, size_t block_count)
{
    enum uc_status status;

    uc_mutex_lock(&queue->lock);
    status = begin_locked(queue, job_id, block_count);
    uc_mutex_unlock(&queue->lock);
    return status;
}

void
uc_completion_queue_drop(struct uc_completion_queue *queue, uint64_t job_id)
{
    struct uc_job_record **link;

    uc_mutex_lock(&queue->lock);
    link = uc_job_records_find(&queue->records, job_id);
    if (*link != NULL && !(*link)->is_finished) {
        queue->unfinished_count--;
        uc_job_records_remove(&queue->records, link);
    }
    uc_mutex_unlock(&queue->lock);
}

void
uc_completion_queue_finish(struct uc_completion_queue *queue, uint64_t job_id, enum uc_status code,
        const uint8_t *blocks)
{
    struct uc_job_record *record;

    uc_mutex_lock(&queue->lock);
    record = *uc_job_records_find(&queue->records, job_id);
    if (record != NULL && !record->is_finished) {
        bool was_empty = uc_list_is_empty(&queue->finished);

        record->is_finished = true;
        record->code = code;
        if (code != UC_OK && blocks != NULL && record->block_count > 0) {
            size_t bitmap_bytes = (record->block_count - 1) / 8 + 1;

            record->blocks = malloc(bitmap_bytes);
            if (record->blocks != NULL) {
                memcpy(record->blocks, blocks, bitmap_bytes);
            }
        }
        queue->unfinished_count--;
        uc_list_add(&queue->finished, &record->node);
        if (was_empty && queue->event_fd >= 0) {
            signal_event_fd(queue->event_fd, true);
        }
        if (queue->waiter_count > 1 || (queue->waiter_count == 1 && queue->awaited_id == job_id)) {
            (void)pthread_cond_broadcast(&queue->changed);
        }
    }
    uc_mutex_unlock(&queue->lock);
}

enum uc_status
uc_completion_queue_get_finished(struct uc_completion_queue *queue, struct uc_io_result *results,
        size_t capacity, size_t *count_out)
{
    size_t count = 0;

    if (queue->drive != NULL) {
        queue->drive(queue->drive_context, 0);
    }
    uc_mutex_lock(&queue->lock);
    while (count < capacity && !uc_list_is_empty(&queue->finished)) {
        struct uc_job_record *record =
                uc_list_entry(queue->finished.next, struct uc_job_record, node);

        take_event_locked(
                queue, uc_job_records_find(&queue->records, record->job_id), &results[count++]);
    }
    uc_mutex_unlock(&queue->lock);
    *count_out = count;
    return UC_OK;
}

/* Whether the list names at most `limit` different ids. Quadratic, but only for callers that cut it fine. */
static bool
distinct_within(const uint64_t *job_ids, size_t job_count, size_t limit)
{
    size_t distinct = 0;

    for (size_t idx = 0; idx < job_count; idx++) {
        size_t earlier = 0;

        while (earlier < idx && job_ids[earlier] != job_ids[idx]) {
            earlier++;
        }
        if (earlier == idx && ++distinct > limit) {
            return false;
        }
    }
    return true;
}

static struct timespec
deadline_after(int64_t timeout_ms)
{
    struct timespec deadline = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &deadline);
    deadline.tv_sec += timeout_ms / 1000;
    deadline.tv_nsec += timeout_ms % 1000 * 1000000;
    if (deadline.tv_nsec >= 1000000000) {
        deadline.tv_nsec -= 1000000000;
        deadline.tv_sec++;
    }
    return deadline;
}

/* @return what is left until the deadline, rounded up so that nobody turns in circles during the last of it */
static int64_t
left_until(const struct timespec *deadline)
{
    struct timespec now = {0};
    int64_t left_ns;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    left_ns = (deadline->tv_sec - now.tv_sec) * INT64_C(1000000000) +
              (deadline->tv_nsec - now.tv_nsec);
    return left_ns <= 0 ? 0 : (left_ns - 1) / 1000000 + 1;
}

/* Let time pass until an event may have come. @return false if the deadline has passed */
static bool
pause_locked(struct uc_completion_queue *queue, int64_t timeout_ms, const struct timespec *deadline)
{
    int64_t left_ms = -1;

    if (queue->drive == NULL) {
        if (timeout_ms < 0) {
            (void)pthread_cond_wait(&queue->changed, &queue->lock.native);
            return true;
        }
        return pthread_cond_timedwait(&queue->changed, &queue->lock.native, deadline) != ETIMEDOUT;
    }

    if (timeout_ms >= 0) {
        left_ms = left_until(deadline);
    }
    uc_mutex_unlock(&queue->lock);
    queue->drive(queue->drive_context, left_ms);
    uc_mutex_lock(&queue->lock);
    return left_ms != 0;
}

/*
 * Sleep until every listed job is finished or unknown. Jobs do not become unfinished again, so the position
 * in the list only moves forward: a wait costs one probe per id and per wake-up, whatever their number.
 */
static bool
await_locked(struct uc_completion_queue *queue, const uint64_t *job_ids, size_t job_count,
        int64_t timeout_ms)
{
    /* A limit of decades; keeps the addition of seconds in range. */
    const int64_t longest_ms = INT64_C(1) << 40;
    struct timespec deadline = {0};
    bool ready = false;
    bool in_time = true;
    size_t idx = 0;

    if (timeout_ms > 0) {
        deadline = deadline_after(timeout_ms < longest_ms ? timeout_ms : longest_ms);
    }

    queue->waiter_count++;
    for (;;) {
        while (idx < job_count) {
            const struct uc_job_record *record =
                    *uc_job_records_find(&queue->records, job_ids[idx]);

            if (record != NULL && !record->is_finished) {
                break;
            }
            idx++;
        }
        ready = idx == job_count;
        if (ready || timeout_ms == 0 || !in_time) {
            break;
        }

        queue->awaited_id = job_ids[idx];
        /* Look once more after the last second: the event may have come with it. */
        in_time = pause_locked(queue, timeout_ms, &deadline);
    }
    queue->waiter_count--;
    return ready;
}

enum uc_status
uc_completion_queue_wait(struct uc_completion_queue *queue, const uint64_t *job_ids,
        size_t job_count, int64_t timeout_ms, struct uc_io_result *results, size_t capacity,
        size_t *count_out)
{
    size_t count = 0;
    bool ready;

    if (timeout_ms < -1) {
        return uc_error(UC_ERR_INVALID_PARAM, "wait: timeout %lld ms; use -1 for no limit",
                (long long)timeout_ms);
    }
    if (capacity < job_count && !distinct_within(job_ids, job_count, capacity)) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "wait: room for %zu results, but more different jobs are listed", capacity);
    }

    if (queue->drive != NULL && timeout_ms == 0) {
        queue->drive(queue->drive_context, 0);
    }
    uc_mutex_lock(&queue->lock);
    ready = await_locked(queue, job_ids, job_count, timeout_ms);
    for (size_t idx = 0; idx < job_count && count < capacity; idx++) {
        struct uc_job_record **link = uc_job_records_find(&queue->records, job_ids[idx]);

        if (*link != NULL && (*link)->is_finished) {
            take_event_locked(queue, link, &results[count++]);
        }
    }
    uc_mutex_unlock(&queue->lock);

    *count_out = count;
    if (!ready) {
        return uc_error(UC_ERR_TIMEOUT, "wait: not all jobs finished within %lld ms",
                (long long)timeout_ms);
    }
    return UC_OK;
}

int
uc_completion_queue_event_fd(struct uc_completion_queue *queue)
{
    int event_fd;

    uc_mutex_lock(&queue->lock);
    if (queue->event_fd < 0) {
        queue->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (queue->event_fd < 0) {
            (void)uc_log_errno(errno, "completion queue: eventfd");
        } else if (!uc_list_is_empty(&queue->finished)) {
            signal_event_fd(queue->event_fd, true);
        }
    }
    event_fd = queue->event_fd;
    uc_mutex_unlock(&queue->lock);
    return event_fd;
}

bool
uc_completion_queue_has(struct uc_completion_queue *queue, uint64_t job_id)
{
    bool has;

    uc_mutex_lock(&queue->lock);
    has = *uc_job_records_find(&queue->records, job_id) != NULL;
    uc_mutex_unlock(&queue->lock);
    return has;
}

size_t
uc_completion_queue_unfinished(struct uc_completion_queue *queue)
{
    size_t count;

    uc_mutex_lock(&queue->lock);
    count = queue->unfinished_count;
    uc_mutex_unlock(&queue->lock);
    return count;
}
