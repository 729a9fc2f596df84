/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Wait across branches. One branch after the other, each with what is left of the time: all of the
 * listed jobs have to end anyway, and they go on while somebody waits elsewhere. When time has run out, the
 * other branches are polled, so that whatever is ready is delivered.
 */

#include <stddef.h>
#include <string.h>

#include <ucm/clock.h>
#include <ucm/log.h>

#include "client/proxy/peer_internal.h"

static int64_t
remaining_ms(const struct uc_clock *clock, int64_t timeout_ms, uint64_t deadline_ms)
{
    uint64_t now_ms;

    if (timeout_ms < 0) {
        return -1;
    }

    now_ms = uc_clock_now_ms(clock);
    return now_ms >= deadline_ms ? 0 : (int64_t)(deadline_ms - now_ms);
}

/* Ids of the list that are jobs of this branch, behind the distinct ones. Unknown ids are in no branch. */
static size_t
select_jobs(struct uc_peer_data *data, size_t branch)
{
    struct uc_wait_scratch *scratch = &data->scratch;
    uint64_t *selected = scratch->ids + scratch->distinct;
    size_t count = 0;

    for (size_t idx = 0; idx < scratch->distinct; idx++) {
        const uint64_t *value = uc_job_table_find(&data->jobs, scratch->ids[idx]);

        if (value != NULL && *value == branch) {
            selected[count++] = scratch->ids[idx];
        }
    }

    return count;
}

/* Results came branch by branch; bring them into the order of the argument, and free their ids. */
static void
put_in_order(struct uc_peer_data *data, struct uc_io_result *results, size_t count)
{
    struct uc_wait_scratch *scratch = &data->scratch;
    size_t merged = 0;

    for (size_t idx = 0; idx < count; idx++) {
        uint64_t *place = uc_job_table_find(&scratch->seen, results[idx].job_id);

        if (place != NULL) {
            *place = idx + 1;
        }
        (void)uc_job_table_remove(&data->jobs, results[idx].job_id);
    }
    for (size_t idx = 0; idx < scratch->distinct; idx++) {
        const uint64_t *place = uc_job_table_find(&scratch->seen, scratch->ids[idx]);

        if (place != NULL && *place != 0) {
            scratch->merged[merged++] = results[*place - 1];
        }
    }
    /* A result that was not asked for (a store's fault) is delivered all the same. */
    for (size_t idx = 0; idx < count; idx++) {
        if (uc_job_table_find(&scratch->seen, results[idx].job_id) == NULL) {
            scratch->merged[merged++] = results[idx];
        }
    }
    if (merged != 0) {
        memcpy(results, scratch->merged, merged * sizeof(results[0]));
    }
}

static enum uc_status
wait_branches(
        struct uc_peer *peer, int64_t timeout_ms, struct uc_io_result *results, size_t *count_out)
{
    struct uc_clock clock = uc_clock_monotonic();
    uint64_t deadline_ms = timeout_ms < 0
                                   ? UC_TIME_NEVER_MS
                                   : uc_time_add_ms(uc_clock_now_ms(&clock), (uint64_t)timeout_ms);
    struct uc_peer_data *data = &peer->data;
    enum uc_status answer = UC_OK;
    size_t count = 0;

    for (size_t idx = 0; idx < peer->branch_count; idx++) {
        struct uc_worker *branch = peer->branches[idx]->worker;
        size_t wanted = select_jobs(data, idx);
        size_t taken = 0;
        enum uc_status status;

        if (wanted == 0) {
            continue;
        }
        status = branch->ops->wait(branch, data->scratch.ids + data->scratch.distinct, wanted,
                remaining_ms(&clock, timeout_ms, deadline_ms), results + count, wanted, &taken);
        if (status == UC_OK || status == UC_ERR_TIMEOUT) {
            count += taken;
        } else {
            uc_log_warn("peer: wait in branch %zu: %s", idx, uc_last_error());
        }
        if (status != UC_OK && (answer == UC_OK || answer == UC_ERR_TIMEOUT)) {
            answer = status; /* the first that is more than "not yet" */
        }
    }

    /* Events that were consumed have to be delivered, and only these two answers deliver. */
    if (answer != UC_OK && answer != UC_ERR_TIMEOUT && count == 0) {
        return answer;
    }
    put_in_order(data, results, count);
    *count_out = count;
    return answer == UC_OK ? UC_OK : UC_ERR_TIMEOUT;
}

enum uc_status
uc_peer_wait(struct uc_peer *peer, const uint64_t *job_ids, size_t job_count, int64_t timeout_ms,
        struct uc_io_result *results, size_t capacity, size_t *count_out)
{
    struct uc_wait_scratch *scratch = &peer->data.scratch;
    enum uc_status status;

    if (job_count == 0) {
        *count_out = 0;
        return UC_OK;
    }
    status = uc_wait_scratch_begin(scratch, job_ids, job_count, capacity);
    if (status == UC_OK) {
        status = wait_branches(peer, timeout_ms, results, count_out);
    }
    uc_wait_scratch_end(scratch);
    return status;
}
