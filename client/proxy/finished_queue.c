/* SPDX-License-Identifier: Apache-2.0 */

#include "client/proxy/finished_queue.h"

#include <assert.h>
#include <stdlib.h>

enum {
    FIRST_CAPACITY = 16
};

static bool
is_alive(const struct uc_job_table *table, const struct uc_finished_job *job)
{
    const uint64_t *serial = uc_job_table_find(table, job->job_id);

    return serial != NULL && *serial == job->serial;
}

void
uc_finished_queue_fini(struct uc_finished_queue *queue)
{
    free(queue->jobs);
    *queue = (struct uc_finished_queue){0};
}

/* Move what is alive to the front. */
static void
compact(struct uc_finished_queue *queue, const struct uc_job_table *table)
{
    size_t kept = 0;

    for (size_t idx = queue->head; idx < queue->head + queue->count; idx++) {
        if (is_alive(table, &queue->jobs[idx])) {
            queue->jobs[kept++] = queue->jobs[idx];
        }
    }
    queue->head = 0;
    queue->count = kept;
}

static enum uc_status
make_room(struct uc_finished_queue *queue, const struct uc_job_table *table)
{
    size_t capacity = queue->capacity == 0 ? FIRST_CAPACITY : queue->capacity * 2;
    struct uc_finished_job *jobs;

    if (queue->head + queue->count < queue->capacity) {
        return UC_OK;
    }
    compact(queue, table);
    /* Half of it must be free, or the next compaction would follow too soon. */
    if (queue->capacity != 0 && queue->count <= queue->capacity / 2) {
        return UC_OK;
    }

    jobs = realloc(queue->jobs, capacity * sizeof(jobs[0]));
    if (jobs == NULL) {
        return uc_error(
                UC_ERR_OUT_OF_MEMORY, "no memory for more than %zu finished jobs", queue->count);
    }
    queue->jobs = jobs;
    queue->capacity = capacity;
    return UC_OK;
}

enum uc_status
uc_finished_queue_add(struct uc_finished_queue *queue, struct uc_job_table *table, uint64_t job_id)
{
    enum uc_status status = make_room(queue, table);

    if (status != UC_OK) {
        return status;
    }
    status = uc_job_table_add(table, job_id, queue->last_serial + 1);
    if (status != UC_OK) {
        return status;
    }

    queue->last_serial++;
    queue->jobs[queue->head + queue->count] =
            (struct uc_finished_job){.job_id = job_id, .serial = queue->last_serial};
    queue->count++;
    queue->alive_count++;
    return UC_OK;
}

bool
uc_finished_queue_take(
        struct uc_finished_queue *queue, struct uc_job_table *table, uint64_t *job_id_out)
{
    while (queue->count != 0) {
        struct uc_finished_job job = queue->jobs[queue->head];

        queue->head++;
        queue->count--;
        if (is_alive(table, &job)) {
            (void)uc_job_table_remove(table, job.job_id);
            queue->alive_count--;
            *job_id_out = job.job_id;
            return true;
        }
    }

    return false;
}

void
uc_finished_queue_take_job(
        struct uc_finished_queue *queue, struct uc_job_table *table, uint64_t job_id)
{
    assert(queue->alive_count != 0);
    (void)uc_job_table_remove(table, job_id);
    queue->alive_count--;
}
