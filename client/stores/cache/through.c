/* SPDX-License-Identifier: Apache-2.0 */

#include "client/stores/cache/through.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <ucm/clock.h>
#include <ucm/log.h>

#include "core/base/mutex.h"

enum {
    QUEUE_MAX = 4096,      /* blocks */
    POLL_NS = 1000 * 1000, /* between two looks at running tasks */
    FLUSH_MS = 1000,
    GIVE_UP_FACTOR = 2 /* of a job's deadline, for a worker that does not answer */
};

/* A task of the segment, as its owner knows it. */
struct running {
    bool is_used;
    uint8_t sequence;
    uint64_t since_ms;
    size_t count;
    struct uc_cache_committed blocks[UC_CACHE_TASK_BLOCKS];
    struct uc_token *lower; /* NULL: the tier below is plain */
};

struct uc_cache_through {
    struct uc_mutex lock;
    pthread_cond_t wake;
    struct uc_cache_committed *queue; /* ring */
    size_t queue_room;
    size_t first;
    size_t count;
    size_t held; /* pinned: queued or in a task */
    struct uc_cache_through_stats stats;
    bool is_stopping;
    bool is_running;
    pthread_t thread;
    struct uc_cache_index *index;
    struct uc_cache_below *below;
    uint64_t timeout_ms;
    struct running tasks[UC_CACHE_TASKS]; /* the thread's */
};

static uint64_t
now_ms(void)
{
    return uc_clock_now_ns() / 1000000u;
}

/* Under the index's lock: the block is pinned already; false = it is not taken. */
static bool
offer(void *context, const struct uc_cache_committed *block)
{
    struct uc_cache_through *through = context;
    bool taken;

    uc_mutex_lock(&through->lock);
    taken = through->held < through->queue_room && !through->is_stopping;
    if (taken) {
        through->queue[(through->first + through->count++) % through->queue_room] = *block;
        through->held++;
        (void)pthread_cond_signal(&through->wake);
    } else {
        through->stats.skipped_total++;
    }
    uc_mutex_unlock(&through->lock);
    return taken;
}

/* The blocks are below, or will not get there. */
static void
let_go(struct uc_cache_through *through, const struct uc_cache_committed *blocks, size_t count,
        size_t written, size_t failed)
{
    for (size_t idx = 0; idx < count; idx++) {
        uc_cache_index_unpin_block(through->index, &blocks[idx]);
    }
    uc_mutex_lock(&through->lock);
    through->held -= count;
    through->stats.written_total += written;
    if (failed > 0 && through->stats.failed_total == 0) {
        uc_log_warn("cache store: write-through: %zu blocks did not reach the tier below (%s)",
                failed, uc_last_error());
    }
    through->stats.failed_total += failed;
    uc_mutex_unlock(&through->lock);
}

/* ---- tasks ---- */

static void
conclude(struct uc_cache_through *through, struct running *task, uint8_t good)
{
    uint8_t mask[UC_CACHE_TASK_BLOCKS];
    size_t written = 0;

    for (size_t idx = 0; idx < task->count; idx++) {
        mask[idx] = (good >> idx) & 1u;
        written += mask[idx];
    }
    if (task->lower != NULL &&
            uc_cache_below_sink_commit(through->below, task->lower, mask) != UC_OK) {
        written = 0;
    }
    let_go(through, task->blocks, task->count, written, task->count - written);
    uc_token_destroy(task->lower);
    task->lower = NULL;
    task->is_used = false;
}

/* @return whether the task is over, one way or the other; *good_out = the blocks that a worker dumped */
static bool
is_over(struct uc_cache_through *through, struct uc_cache_task *shared, const struct running *task,
        bool give_up, uint8_t *good_out)
{
    const struct uc_cache_segment *segment = uc_cache_index_segment(through->index);
    uint32_t state = atomic_load_explicit(&shared->state, memory_order_acquire);
    uint64_t age_ms = now_ms() - task->since_ms;
    uint32_t row = UC_CACHE_TASK_ROW(state);
    bool is_lost;

    *good_out = 0;
    if (UC_CACHE_TASK_KIND(state) == UC_CACHE_TASK_DONE) {
        *good_out = UC_CACHE_TASK_GOOD(state);
        return true;
    }
    if (UC_CACHE_TASK_KIND(state) == UC_CACHE_TASK_QUEUED) {
        is_lost = give_up || age_ms > through->timeout_ms;
    } else {
        is_lost = give_up || row >= UC_CACHE_ROWS || !uc_cache_segment_row_alive(segment, row) ||
                  age_ms > GIVE_UP_FACTOR * through->timeout_ms;
    }
    /* Another word means that a worker was faster: the next look sees it. */
    return is_lost && atomic_compare_exchange_strong_explicit(&shared->state, &state,
                              UC_CACHE_TASK_FREE, memory_order_acq_rel, memory_order_relaxed);
}

static void
poll_tasks(struct uc_cache_through *through, bool give_up)
{
    struct uc_cache_segment *segment = uc_cache_index_segment(through->index);

    for (size_t idx = 0; idx < UC_CACHE_TASKS; idx++) {
        struct running *task = &through->tasks[idx];
        uint8_t good;

        if (task->is_used && is_over(through, &segment->tasks[idx], task, give_up, &good)) {
            conclude(through, task, good);
        }
    }
}

static void
publish(struct uc_cache_through *through, size_t at, const struct running *task)
{
    struct uc_cache_task *shared = &uc_cache_index_segment(through->index)->tasks[at];

    shared->count = (uint32_t)task->count;
    shared->token_bytes = 0;
    for (size_t idx = 0; idx < task->count; idx++) {
        shared->slots[idx] = task->blocks[idx].slot;
        shared->generations[idx] = task->blocks[idx].generation;
        shared->ids[idx] = task->blocks[idx].id;
    }
    if (task->lower != NULL) {
        shared->token_bytes = (uint32_t)uc_token_serialized_bytes(task->lower);
        uc_token_serialize(task->lower, shared->token);
    }
    atomic_store_explicit(&shared->state,
            UC_CACHE_TASK_STATE(UC_CACHE_TASK_QUEUED, 0, 0, task->sequence), memory_order_release);
}

/* The longest life of any of them, so that none dies below before it dies here. */
static struct uc_request_context
facts_of(const struct running *task)
{
    struct uc_request_context facts = uc_request_context_init("write-through");
    uint64_t latest = 0;

    for (size_t idx = 0; idx < task->count; idx++) {
        latest = task->blocks[idx].deadline_ms > latest ? task->blocks[idx].deadline_ms : latest;
    }
    if (latest != UC_TIME_NEVER_MS) {
        facts.present = UC_REQUEST_TTL;
        facts.ttl_ms = latest > now_ms() ? latest - now_ms() : 0;
    }
    return facts;
}

/* Leave out what is below already, and reserve room for the rest. */
static void
start_task(struct uc_cache_through *through, size_t at)
{
    struct running *task = &through->tasks[at];
    struct uc_block_id ids[UC_CACHE_TASK_BLOCKS];
    struct uc_request_context facts;
    uint8_t hits[UC_CACHE_TASK_BLOCKS] = {0};
    size_t kept = 0;
    enum uc_status status;

    for (size_t idx = 0; idx < task->count; idx++) {
        ids[idx] = task->blocks[idx].id;
    }
    uc_cache_below_sink_lookup(through->below, ids, task->count, hits);
    for (size_t idx = 0; idx < task->count; idx++) {
        if (hits[idx] != 0) {
            let_go(through, &task->blocks[idx], 1, 0, 0);
        } else {
            ids[kept] = ids[idx];
            task->blocks[kept++] = task->blocks[idx];
        }
    }
    task->count = kept;
    if (kept == 0) {
        return;
    }

    facts = facts_of(task);
    status = uc_cache_below_sink_alloc(through->below, ids, kept, &facts, &task->lower);
    if (status != UC_OK) {
        let_go(through, task->blocks, kept, 0, kept);
        return;
    }
    if (task->lower != NULL && uc_token_serialized_bytes(task->lower) > UC_CACHE_TASK_TOKEN_BYTES) {
        (void)uc_error(UC_ERR_UNSUPPORTED, "a token below has %zu bytes, %d fit",
                uc_token_serialized_bytes(task->lower), UC_CACHE_TASK_TOKEN_BYTES);
        conclude(through, task, 0);
        return;
    }
    task->is_used = true;
    task->sequence++;
    task->since_ms = now_ms();
    publish(through, at, task);
}

/* @return whether a batch was taken from the queue into the task */
static bool
take_batch_locked(struct uc_cache_through *through, struct running *task)
{
    task->count = 0;
    while (through->count > 0 && task->count < UC_CACHE_TASK_BLOCKS) {
        task->blocks[task->count++] = through->queue[through->first];
        through->first = (through->first + 1) % through->queue_room;
        through->count--;
    }
    return task->count > 0;
}

static void
start_tasks(struct uc_cache_through *through)
{
    for (size_t idx = 0; idx < UC_CACHE_TASKS; idx++) {
        struct running *task = &through->tasks[idx];
        bool taken = false;

        if (!task->is_used) {
            uc_mutex_lock(&through->lock);
            taken = take_batch_locked(through, task);
            uc_mutex_unlock(&through->lock);
        }
        if (taken) {
            start_task(through, idx);
        }
    }
}

/* ---- thread ---- */

static void
sleep_locked(struct uc_cache_through *through)
{
    struct timespec until;

    if (through->held == 0) {
        (void)pthread_cond_wait(&through->wake, &through->lock.native);
        return;
    }
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += POLL_NS;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    (void)pthread_cond_timedwait(&through->wake, &through->lock.native, &until);
}

static void *
through_main(void *argument)
{
    struct uc_cache_through *through = argument;

    uc_mutex_lock(&through->lock);
    while (!through->is_stopping) {
        uc_mutex_unlock(&through->lock);
        poll_tasks(through, false);
        start_tasks(through);
        uc_mutex_lock(&through->lock);
        if (!through->is_stopping) {
            sleep_locked(through);
        }
    }
    uc_mutex_unlock(&through->lock);
    return NULL;
}

enum uc_status
uc_cache_through_create(const struct uc_cache_store_config *config, struct uc_cache_index *index,
        struct uc_cache_below *below, struct uc_cache_through **through_out)
{
    struct uc_cache_through *through = calloc(1, sizeof(*through));
    uint64_t room = config->capacity_blocks / 2 + 1; /* the rest stays free for the engine */
    pthread_condattr_t attributes;
    int reason;

    if (through == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "cache store: no memory for write-through");
    }
    through->queue_room = (size_t)(room < QUEUE_MAX ? room : QUEUE_MAX);
    through->queue = calloc(through->queue_room, sizeof(through->queue[0]));
    if (through->queue == NULL) {
        free(through);
        return uc_error(UC_ERR_OUT_OF_MEMORY, "cache store: no memory for write-through");
    }

    uc_mutex_init(&through->lock);
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&through->wake, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    through->index = index;
    through->below = below;
    through->timeout_ms = config->timeout_ms;
    reason = pthread_create(&through->thread, NULL, through_main, through);
    if (reason != 0) {
        uc_cache_through_destroy(through);
        return uc_log_errno(reason, "cache store: start the thread for write-through");
    }
    through->is_running = true;
    uc_cache_index_set_sink(index, offer, through);
    *through_out = through;
    return UC_OK;
}

void
uc_cache_through_flush(struct uc_cache_through *through)
{
    uint64_t until_ms = now_ms() + FLUSH_MS;
    struct timespec pause = {.tv_nsec = POLL_NS};
    bool is_empty = through == NULL;

    while (!is_empty && now_ms() < until_ms) {
        is_empty = uc_cache_through_stats(through).queued == 0;
        if (!is_empty) {
            (void)nanosleep(&pause, NULL);
        }
    }
}

void
uc_cache_through_destroy(struct uc_cache_through *through)
{
    if (through == NULL) {
        return;
    }

    uc_cache_index_set_sink(through->index, NULL, NULL);
    uc_mutex_lock(&through->lock);
    through->is_stopping = true;
    (void)pthread_cond_signal(&through->wake);
    uc_mutex_unlock(&through->lock);
    if (through->is_running) {
        (void)pthread_join(through->thread, NULL);
    }
    /* A worker may have changed the word between look and exchange; it does so once. */
    poll_tasks(through, true);
    poll_tasks(through, true);
    poll_tasks(through, true);
    while (through->count > 0) {
        struct running rest = {0};

        uc_mutex_lock(&through->lock);
        (void)take_batch_locked(through, &rest);
        uc_mutex_unlock(&through->lock);
        let_go(through, rest.blocks, rest.count, 0, rest.count);
    }
    free(through->queue);
    (void)pthread_cond_destroy(&through->wake);
    uc_mutex_fini(&through->lock);
    free(through);
}

struct uc_cache_through_stats
uc_cache_through_stats(struct uc_cache_through *through)
{
    struct uc_cache_through_stats stats;

    uc_mutex_lock(&through->lock);
    stats = through->stats;
    stats.queued = through->held;
    uc_mutex_unlock(&through->lock);
    return stats;
}
