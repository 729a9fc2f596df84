/* SPDX-License-Identifier: Apache-2.0 */

#include "client/proxy/entry_wait.h"

#include <stdlib.h>
#include <string.h>

#include <ucm/log.h>

#include "client/proxy/entry_event.h"

static struct uc_io_result
success_of(uint64_t job_id)
{
    return (struct uc_io_result){.job_id = job_id, .code = UC_OK, .success = true};
}

/* Keep the events of registered jobs, whose ids become free; drop and log the others. */
static size_t
keep_known(struct uc_entry_data *data, struct uc_io_result *results, size_t count)
{
    size_t kept = 0;

    for (size_t idx = 0; idx < count; idx++) {
        const uint64_t *serial = uc_job_table_find(&data->jobs, results[idx].job_id);

        if (serial == NULL || *serial != 0) {
            uc_log_warn("entry: the store delivered an event for job %llu, which it does not have",
                    (unsigned long long)results[idx].job_id);
            uc_io_results_release(&results[idx], 1);
            continue;
        }
        (void)uc_job_table_remove(&data->jobs, results[idx].job_id);
        results[kept++] = results[idx];
    }

    return kept;
}

enum uc_status
uc_entry_get_finished(
        struct uc_entry *entry, struct uc_io_result *results, size_t capacity, size_t *count_out)
{
    struct uc_entry_data *data = &entry->data;
    size_t count = 0;
    uint64_t job_id;

    while (count < capacity && uc_finished_queue_take(&data->finished, &data->jobs, &job_id)) {
        results[count++] = success_of(job_id);
    }
    if (count != 0) {
        uc_entry_event_update(data);
    }

    /* Again if the store filled the array and some of it was dropped: a short array means "no more". */
    while (count < capacity) {
        size_t room = capacity - count;
        size_t taken = 0;
        enum uc_status status = uc_store_get_finished(entry->store, results + count, room, &taken);

        if (status != UC_OK && count == 0) {
            return status;
        }
        if (status != UC_OK || taken == 0) {
            break;
        }
        count += keep_known(data, results + count, taken);
        if (taken < room) {
            break;
        }
    }

    *count_out = count;
    return UC_OK;
}

/* Those of the distinct ids that the store knows; unknown ones are ignored. */
static size_t
select_store_jobs(struct uc_entry_data *data, size_t *finished_out)
{
    struct uc_wait_scratch *scratch = &data->scratch;
    uint64_t *store_ids = scratch->ids + scratch->distinct;
    size_t store_count = 0;

    *finished_out = 0;
    for (size_t idx = 0; idx < scratch->distinct; idx++) {
        const uint64_t *serial = uc_job_table_find(&data->jobs, scratch->ids[idx]);

        if (serial != NULL && *serial == 0) {
            store_ids[store_count++] = scratch->ids[idx];
        } else if (serial != NULL) {
            (*finished_out)++;
        }
    }

    return store_count;
}

/*
 * Bring the store's results and the finished jobs of the list into the order of the list. A result that
 * was not asked for (a store's fault, but its job exists) goes to the end: an event is never lost.
 */
static size_t
merge_finished(struct uc_entry_data *data, struct uc_io_result *results, size_t count)
{
    struct uc_wait_scratch *scratch = &data->scratch;
    size_t merged = 0;

    for (size_t idx = 0; idx < count; idx++) {
        uint64_t *place = uc_job_table_find(&scratch->seen, results[idx].job_id);

        if (place != NULL) {
            *place = idx + 1;
        }
    }
    for (size_t idx = 0; idx < scratch->distinct; idx++) {
        uint64_t job_id = scratch->ids[idx];
        const uint64_t *serial = uc_job_table_find(&data->jobs, job_id);
        const uint64_t *place = uc_job_table_find(&scratch->seen, job_id);

        if (serial != NULL && *serial != 0) {
            uc_finished_queue_take_job(&data->finished, &data->jobs, job_id);
            scratch->merged[merged++] = success_of(job_id);
        } else if (place != NULL && *place != 0) {
            scratch->merged[merged++] = results[*place - 1];
        }
    }

    for (size_t idx = 0; idx < count; idx++) {
        if (uc_job_table_find(&scratch->seen, results[idx].job_id) == NULL) {
            scratch->merged[merged++] = results[idx];
        }
    }

    memcpy(results, scratch->merged, merged * sizeof(results[0]));
    uc_entry_event_update(data);
    return merged;
}

static enum uc_status
wait_distinct(
        struct uc_entry *entry, int64_t timeout_ms, struct uc_io_result *results, size_t *count_out)
{
    struct uc_entry_data *data = &entry->data;
    enum uc_status status = UC_OK;
    size_t finished_count = 0;
    size_t store_count = select_store_jobs(data, &finished_count);
    size_t count = 0;

    if (store_count != 0) {
        status = uc_store_wait(entry->store, data->scratch.ids + data->scratch.distinct,
                store_count, timeout_ms, results, store_count, &count);
        if (status != UC_OK && status != UC_ERR_TIMEOUT) {
            return status;
        }
        count = keep_known(data, results, count);
    }
    if (finished_count != 0) {
        count = merge_finished(data, results, count);
    }

    *count_out = count;
    return status;
}

enum uc_status
uc_entry_wait(struct uc_entry *entry, const uint64_t *job_ids, size_t job_count, int64_t timeout_ms,
        struct uc_io_result *results, size_t capacity, size_t *count_out)
{
    struct uc_wait_scratch *scratch = &entry->data.scratch;
    enum uc_status status;

    if (job_count == 0) {
        *count_out = 0;
        return UC_OK;
    }
    status = uc_wait_scratch_begin(scratch, job_ids, job_count, capacity);
    if (status == UC_OK) {
        status = wait_distinct(entry, timeout_ms, results, count_out);
    }
    uc_wait_scratch_end(scratch);
    return status;
}
