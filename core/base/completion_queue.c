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

#include "core/base/list.h"
#include "core/base/mutex.h"

enum {
    DEFAULT_RECORD_COUNT = 64
};

/* One job. Free records hang in `free_records` by `node`, finished ones in `finished`. */
struct record {
    struct uc_list node;
    struct record *bucket_next;
    uint64_t job_id;
    size_t block_count;
    uint8_t *blocks; /* set when finished, if the job failed in part */
    enum uc_status code;
    bool is_finished;
};

/* Records are allocated in chunks that never move, since lists run through them. */
struct chunk {
    struct chunk *next;
    struct record records[];
};

struct uc_completion_queue {
    struct uc_mutex lock;
    pthread_cond_t changed; /* used with lock, monotonic clock */
    size_t limit;           /* constant; SIZE_MAX = none */
    struct chunk *chunks;   /* guarded by lock, as all that follows */
    struct uc_list free_records;
    struct uc_list finished; /* in order of finishing */
    struct record **buckets; /* begun and finished jobs by id */
    size_t record_count;     /* allocated = number of buckets, a power of two */
    size_t used_count;       /* begun, event not consumed */
    size_t unfinished_count;
    size_t waiter_count;
    uint64_t awaited_id; /* what the only waiter stands at; with several all are woken */
    int event_fd;        /* −1 until somebody asks */
};

static void grow_locked(struct uc_completion_queue *queue, struct chunk *chunk,
        struct record **buckets, size_t chunk_count) UC_REQUIRES(queue->lock);
static struct record **find_locked(struct uc_completion_queue *queue, uint64_t job_id)
        UC_REQUIRES(queue->lock);
static void recycle_locked(struct uc_completion_queue *queue, struct record **link)
        UC_REQUIRES(queue->lock);
static void take_event_locked(struct uc_completion_queue *queue, struct record **link,
        struct uc_io_result *result) UC_REQUIRES(queue->lock);
static enum uc_status reserve_locked(struct uc_completion_queue *queue) UC_REQUIRES(queue->lock);
static bool await_locked(struct uc_completion_queue *queue, const uint64_t *job_ids,
        size_t job_count, int64_t timeout_ms) UC_REQUIRES(queue->lock);

/* Job ids are often consecutive or multiples of a power of two: spread them (splitmix64's last steps). */
static size_t
bucket_of(uint64_t job_id, size_t bucket_count)
{
    uint64_t hash = job_id;

    hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9u;
    hash = (hash ^ (hash >> 27)) * 0x94d049bb133111ebu;
    return (size_t)(hash ^ (hash >> 31)) & (bucket_count - 1);
}

static enum uc_status
allocate(size_t chunk_count, size_t bucket_count, struct chunk **chunk_out,
        struct record ***buckets_out)
{
    struct record **buckets;
    struct chunk *chunk;

    if (chunk_count > (SIZE_MAX - sizeof(*chunk)) / sizeof(chunk->records[0])) {
        return UC_ERR_OUT_OF_MEMORY;
    }

    chunk = malloc(sizeof(*chunk) + chunk_count * sizeof(chunk->records[0]));
    if (chunk == NULL) {
        return UC_ERR_OUT_OF_MEMORY;
    }

    buckets = calloc(bucket_count, sizeof(*buckets));
    if (buckets == NULL) {
        free(chunk);
        return UC_ERR_OUT_OF_MEMORY;
    }

    *chunk_out = chunk;
    *buckets_out = buckets;
    return UC_OK;
}

/* Put a chunk of fresh records and a bucket array of the matching size into service. */
static void
grow_locked(struct uc_completion_queue *queue, struct chunk *chunk, struct record **buckets,
        size_t chunk_count)
{
    size_t bucket_count = queue->record_count + chunk_count;

    for (size_t idx = 0; idx < queue->record_count; idx++) {
        struct record *record = queue->buckets[idx];

        while (record != NULL) {
            struct record *next = record->bucket_next;
            size_t bucket = bucket_of(record->job_id, bucket_count);

            record->bucket_next = buckets[bucket];
            buckets[bucket] = record;
            record = next;
        }
    }
    free(queue->buckets);
    queue->buckets = buckets;

    memset(chunk->records, 0, chunk_count * sizeof(chunk->records[0]));
    for (size_t idx = 0; idx < chunk_count; idx++) {
        uc_list_add(&queue->free_records, &chunk->records[idx].node);
    }
    chunk->next = queue->chunks;
    queue->chunks = chunk;
    queue->record_count = bucket_count;
}

enum uc_status
uc_completion_queue_create(
        size_t prepared_count, size_t limit, struct uc_completion_queue **queue_out)
{
    size_t wanted = prepared_count == 0 ? DEFAULT_RECORD_COUNT : prepared_count;
    size_t record_count = 1;
    pthread_condattr_t attributes;
    struct uc_completion_queue *queue;
    struct record **buckets;
    struct chunk *chunk;

    if (wanted > SIZE_MAX / 4) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "completion queue of %zu jobs: too many", wanted);
    }
    while (record_count < wanted) {
        record_count *= 2;
    }

    queue = calloc(1, sizeof(*queue));
    if (queue == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "completion queue: out of memory");
    }
    if (allocate(record_count, record_count, &chunk, &buckets) != UC_OK) {
        free(queue);
        return uc_error(
                UC_ERR_OUT_OF_MEMORY, "completion queue of %zu jobs: out of memory", wanted);
    }

    uc_mutex_init(&queue->lock);
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&queue->changed, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    queue->limit = limit == 0 ? SIZE_MAX : limit;
    queue->event_fd = -1;
    uc_list_init(&queue->free_records);
    uc_list_init(&queue->finished);
    uc_mutex_lock(&queue->lock);
    grow_locked(queue, chunk, buckets, record_count);
    uc_mutex_unlock(&queue->lock);
    *queue_out = queue;
    return UC_OK;
}

void
uc_completion_queue_destroy(struct uc_completion_queue *queue)
{
    struct chunk *chunk;

    if (queue == NULL) {
        return;
    }

    uc_list_for_each (node, &queue->finished) {
        free(uc_list_entry(node, struct record, node)->blocks);
    }
    chunk = queue->chunks;
    while (chunk != NULL) {
        struct chunk *next = chunk->next;

        free(chunk);
        chunk = next;
    }
    if (queue->event_fd >= 0) {
        (void)close(queue->event_fd);
    }
    (void)pthread_cond_destroy(&queue->changed);
    uc_mutex_fini(&queue->lock);
    free(queue->buckets);
    free(queue);
}

/* The link that points to the job's record; it points to NULL if there is none. */
static struct record **
find_locked(struct uc_completion_queue *queue, uint64_t job_id)
{
    struct record **link = &queue->buckets[bucket_of(job_id, queue->record_count)];

    while (*link != NULL && (*link)->job_id != job_id) {
        link = &(*link)->bucket_next;
    }
    return link;
}

static void
recycle_locked(struct uc_completion_queue *queue, struct record **link)
{
    struct record *record = *link;

    *link = record->bucket_next;
    record->bucket_next = NULL;
    queue->used_count--;
    uc_list_add(&queue->free_records, &record->node);
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
        struct uc_completion_queue *queue, struct record **link, struct uc_io_result *result)
{
    struct record *record = *link;

    memset(result, 0, sizeof(*result));
    result->job_id = record->job_id;
    result->blocks = record->blocks;
    result->block_count = record->block_count;
    result->code = record->code;
    result->success = record->code == UC_OK;
    record->blocks = NULL;
    uc_list_remove(&record->node);
    recycle_locked(queue, link);
    if (queue->event_fd >= 0 && uc_list_is_empty(&queue->finished)) {
        signal_event_fd(queue->event_fd, false);
    }
}

static enum uc_status
reserve_locked(struct uc_completion_queue *queue)
{
    size_t chunk_count = queue->record_count; /* doubles, so that growing is rare */
    struct record **buckets;
    struct chunk *chunk;

    if (queue->used_count >= queue->limit) {
        return uc_error(UC_ERR_RETRY,
                "%zu jobs are in flight, the limit; collect events, then submit again",
                queue->used_count);
    }
    if (!uc_list_is_empty(&queue->free_records)) {
        return UC_OK;
    }
    if (allocate(chunk_count, queue->record_count + chunk_count, &chunk, &buckets) != UC_OK) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "no memory to track more than %zu jobs in flight",
                queue->used_count);
    }

    grow_locked(queue, chunk, buckets, chunk_count);
    return UC_OK;
}

enum uc_status
uc_completion_queue_begin(struct uc_completion_queue *queue, uint64_t job_id, size_t block_count)
{
    enum uc_status status;

    uc_mutex_lock(&queue->lock);
    if (*find_locked(queue, job_id) != NULL) {
        status = uc_error(UC_ERR_DUPLICATE_KEY,
                "job %llu is in flight or its event was not consumed yet",
                (unsigned long long)job_id);
    } else {
        status = reserve_locked(queue);
    }
    if (status == UC_OK) {
        struct uc_list *node = uc_list_take(&queue->free_records);
        struct record *record = uc_list_entry(node, struct record, node);
        struct record **bucket = &queue->buckets[bucket_of(job_id, queue->record_count)];

        record->job_id = job_id;
        record->block_count = block_count;
        record->is_finished = false;
        record->bucket_next = *bucket;
        *bucket = record;
        queue->used_count++;
        queue->unfinished_count++;
    }
    uc_mutex_unlock(&queue->lock);
    return status;
}

void
uc_completion_queue_drop(struct uc_completion_queue *queue, uint64_t job_id)
{
    struct record **link;

    uc_mutex_lock(&queue->lock);
    link = find_locked(queue, job_id);
    if (*link != NULL && !(*link)->is_finished) {
        queue->unfinished_count--;
        recycle_locked(queue, link);
    }
    uc_mutex_unlock(&queue->lock);
}

void
uc_completion_queue_finish(struct uc_completion_queue *queue, uint64_t job_id, enum uc_status code,
        const uint8_t *blocks)
{
    struct record *record;

    uc_mutex_lock(&queue->lock);
    record = *find_locked(queue, job_id);
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

    uc_mutex_lock(&queue->lock);
    while (count < capacity && !uc_list_is_empty(&queue->finished)) {
        struct record *record = uc_list_entry(queue->finished.next, struct record, node);

        take_event_locked(queue, find_locked(queue, record->job_id), &results[count++]);
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
            const struct record *record = *find_locked(queue, job_ids[idx]);

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
        if (timeout_ms < 0) {
            (void)pthread_cond_wait(&queue->changed, &queue->lock.native);
        } else {
            /* Look once more after the last second: the event may have come with it. */
            in_time = pthread_cond_timedwait(&queue->changed, &queue->lock.native, &deadline) !=
                      ETIMEDOUT;
        }
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

    uc_mutex_lock(&queue->lock);
    ready = await_locked(queue, job_ids, job_count, timeout_ms);
    for (size_t idx = 0; idx < job_count && count < capacity; idx++) {
        struct record **link = find_locked(queue, job_ids[idx]);

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
    has = *find_locked(queue, job_id) != NULL;
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
