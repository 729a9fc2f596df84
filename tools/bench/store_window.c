/* SPDX-License-Identifier: Apache-2.0 */

#include "tools/bench/store_window.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ucm/clock.h>
#include <ucm/log.h>

#include "tools/bench/block_content.h"

enum {
    REQUEST_ID_BYTES = 48,
    RESULTS_AT_ONCE = 64,
    PREFETCH_ROUNDS_MAX = 16, /* a pipe of n tiers needs n − 1 at most */
};

/* One window while it is open. */
struct window {
    struct uc_store_bench *bench;
    struct uc_token *token;
    bool put;
    uint64_t first; /* block of the token's first key */
    size_t count;
    uint64_t first_job;
    size_t submitted;
    size_t finished;
    uint64_t start_ns[UC_STORE_WINDOW_MAX];
    uint8_t ok[UC_STORE_WINDOW_MAX];
    struct uc_block_id ids[UC_STORE_WINDOW_MAX];
    char request[REQUEST_ID_BYTES];
};

static void
note_failure(struct window *window, const char *what, enum uc_status status)
{
    window->bench->report.errors++;
    uc_log_warn("store: request %s: %s: %s: %s", window->request, what, uc_status_name(status),
            uc_last_error());
}

static enum uc_status
open_window(struct uc_store_bench *bench, uint64_t first, bool put, struct window *window)
{
    struct uc_request_context context;
    uint64_t left = bench->options->blocks - first;

    memset(window, 0, sizeof(*window));
    window->bench = bench;
    window->put = put;
    window->first = first;
    window->count = left < UC_STORE_WINDOW_MAX ? (size_t)left : UC_STORE_WINDOW_MAX;
    (void)snprintf(
            window->request, sizeof(window->request), "store-%" PRIu64, bench->next_request++);
    for (size_t idx = 0; idx < window->count; idx++) {
        window->ids[idx] = uc_block_id_from_hash(bench->first_id + first + idx);
    }

    context = uc_request_context_init(window->request);
    if (bench->options->ttl_ms != 0) {
        context.present |= UC_REQUEST_TTL;
        context.ttl_ms = bench->options->ttl_ms;
    }
    return uc_scheduler_on_new_request(bench->scheduler, &context);
}

/* One block, one job. */
static enum uc_status
submit_next(struct window *window)
{
    struct uc_store_bench *bench = window->bench;
    size_t idx = window->submitted;
    uint8_t *half = window->put ? bench->source : bench->target;
    void *pointer = half + (window->first + idx) * bench->options->block_bytes;
    struct uc_block_payload payload = {
            .pointers = &pointer,
            .sizes = &bench->options->block_bytes,
            .pointer_count = 1,
            .memory_region_indices = &bench->region_idx,
            .memory_region_index_count = 1,
    };
    struct uc_io_context io = {.first_key = idx, .key_count = 1};
    uint64_t job_id = window->first_job + idx;
    enum uc_status status;

    window->start_ns[idx] = uc_clock_now_ns();
    bench->progress_ns = window->start_ns[idx];
    status = window->put
                     ? uc_worker_submit_put(bench->worker, job_id, &payload, 1, window->token, &io)
                     : uc_worker_submit_get(bench->worker, job_id, &payload, 1, window->token, &io);
    window->submitted++;
    bench->in_flight += status == UC_OK;
    return status;
}

/* Sleep until something may have ended. @return false: nothing has for @p limit_ms */
static bool
wait_for_event(struct uc_store_bench *bench, uint64_t limit_ms)
{
    struct pollfd waited = {.fd = uc_worker_event_fd(bench->worker), .events = POLLIN};
    uint64_t idle_ms = (uc_clock_now_ns() - bench->progress_ns) / 1000000;

    if (idle_ms >= limit_ms) {
        return false;
    }
    (void)poll(&waited, 1, (int)(limit_ms - idle_ms) + 1);
    return true;
}

static enum uc_status
stalled(const struct uc_store_bench *bench, const char *what)
{
    return uc_error(UC_ERR_TIMEOUT,
            "store: %s: none of %" PRIu64 " jobs in flight has ended for %" PRIu64
            " ms; the store is slower than that or hangs (--stall-ms waits longer)",
            what, bench->in_flight, bench->options->stall_ms);
}

/* Take what has ended; if nothing has, sleep until something does. */
static enum uc_status
collect(struct window *window)
{
    struct uc_store_bench *bench = window->bench;
    struct uc_store_moves *moves = window->put ? &bench->put : &bench->get;
    struct uc_io_result results[RESULTS_AT_ONCE];
    size_t count = 0;
    enum uc_status status = uc_worker_get_finished(bench->worker, results, RESULTS_AT_ONCE, &count);
    uint64_t now_ns = uc_clock_now_ns();

    if (status != UC_OK) {
        return status;
    }
    if (count == 0) {
        return wait_for_event(bench, bench->options->stall_ms)
                       ? UC_OK
                       : stalled(bench, window->put ? "put" : "get");
    }
    bench->in_flight -= count;
    bench->progress_ns = now_ns;

    for (size_t at = 0; at < count; at++) {
        uint64_t idx = results[at].job_id - window->first_job;

        if (idx < window->submitted) {
            window->finished++;
            window->ok[idx] = uc_io_result_block_ok(&results[at], 0);
            uc_latency_add(&moves->latency, now_ns - window->start_ns[idx]);
        }
    }
    uc_io_results_release(results, count);
    return UC_OK;
}

/* Move the blocks of the token, so many at a time as the options say. */
static enum uc_status
move_all(struct window *window)
{
    struct uc_store_bench *bench = window->bench;
    struct uc_store_moves *moves = window->put ? &bench->put : &bench->get;
    enum uc_status status = UC_OK;

    window->first_job = bench->next_job_id;
    bench->next_job_id += window->count;
    while (status == UC_OK && window->finished < window->count) {
        while (window->submitted < window->count &&
                window->submitted - window->finished < bench->options->depth) {
            status = submit_next(window);
            if (status != UC_OK) {
                note_failure(window, "submit", status);
                window->finished++;
            }
        }
        status = window->finished < window->count ? collect(window) : UC_OK;
    }
    for (size_t idx = 0; idx < window->count && status == UC_OK; idx++) {
        if (window->ok[idx]) {
            moves->bytes += bench->options->block_bytes;
        } else {
            bench->report.failed_blocks++;
        }
    }
    return status;
}

enum uc_status
uc_store_window_put(struct uc_store_bench *bench, uint64_t first)
{
    uint64_t start_ns = uc_clock_now_ns();
    struct window window;
    enum uc_status status = open_window(bench, first, true, &window);

    if (status != UC_OK) {
        return status;
    }
    status = uc_scheduler_prepare_put(
            bench->scheduler, window.request, window.ids, window.count, &window.token);
    if (status == UC_ERR_NO_SPACE) {
        bench->report.refused_blocks += window.count;
        status = UC_OK;
    } else if (status != UC_OK) {
        note_failure(&window, "prepare put", status);
        status = UC_OK;
    } else {
        enum uc_status conclusion;

        status = move_all(&window);
        uc_token_destroy(window.token);
        if (status != UC_OK) {
            return status; /* jobs are in flight: the window must stay open */
        }
        conclusion = uc_scheduler_complete_put_mask(
                bench->scheduler, window.request, window.ok, window.count);
        if (conclusion != UC_OK) {
            note_failure(&window, "complete put", conclusion);
        }
    }
    (void)uc_scheduler_on_request_finished(bench->scheduler, window.request);
    bench->put.elapsed_ns += uc_clock_now_ns() - start_ns;
    return status;
}

/* One round; that it failed shows in the next lookup. */
static enum uc_status
prefetch(struct window *window)
{
    struct uc_store_bench *bench = window->bench;
    uint64_t job_id = bench->next_job_id++;
    struct uc_io_result result = {0};
    struct uc_token *token = NULL;
    size_t count = 0;
    bool success;
    enum uc_status status =
            uc_scheduler_prepare_prefetch(bench->scheduler, window->request, &token);

    if (status != UC_OK) {
        return UC_OK;
    }
    status = uc_worker_submit_prefetch(bench->worker, job_id, token);
    if (status == UC_OK) {
        bench->in_flight++;
        status = uc_worker_wait(
                bench->worker, &job_id, 1, (int64_t)bench->options->stall_ms, &result, 1, &count);
        bench->in_flight -= count;
        if (status != UC_OK) {
            uc_token_destroy(token);
            return bench->in_flight > 0 ? stalled(bench, "prefetch") : status;
        }
    }
    success = count == 1 && result.success;
    uc_io_results_release(&result, count);
    uc_token_destroy(token);
    status = uc_scheduler_complete_prefetch(bench->scheduler, window->request, success);
    if (status != UC_OK) {
        note_failure(window, "complete prefetch", status);
    }
    return UC_OK;
}

/* Cut the window to the blocks that are present. */
static enum uc_status
find_present(struct window *window)
{
    int64_t index = -1;
    bool needed = true;
    enum uc_status status = UC_OK;

    for (int round = 0; needed && round <= PREFETCH_ROUNDS_MAX && status == UC_OK; round++) {
        status = uc_scheduler_lookup_on_prefix(window->bench->scheduler, window->request,
                window->ids, window->count, &index, &needed);
        if (status != UC_OK) {
            note_failure(window, "lookup", status);
            needed = false;
            status = UC_OK;
        } else if (needed) {
            status = prefetch(window);
        }
    }
    window->bench->report.missing_blocks += window->count - (size_t)(index + 1);
    window->count = (size_t)(index + 1);
    return status;
}

static enum uc_status
get_present(struct window *window)
{
    struct uc_store_bench *bench = window->bench;
    enum uc_status conclusion;
    enum uc_status status = uc_scheduler_prepare_get(
            bench->scheduler, window->request, window->ids, window->count, &window->token);

    if (status != UC_OK) {
        note_failure(window, "prepare get", status);
        return UC_OK;
    }
    status = move_all(window);
    uc_token_destroy(window->token);
    if (status != UC_OK) {
        return status;
    }
    memcpy(bench->got + window->first, window->ok, window->count);
    conclusion = uc_scheduler_complete_get(bench->scheduler, window->request);
    if (conclusion != UC_OK) {
        note_failure(window, "complete get", conclusion);
    }
    return UC_OK;
}

enum uc_status
uc_store_window_get(struct uc_store_bench *bench, uint64_t first)
{
    uint64_t start_ns = uc_clock_now_ns();
    struct window window;
    enum uc_status status = open_window(bench, first, false, &window);

    if (status == UC_OK) {
        status = find_present(&window);
    }
    if (status == UC_OK && window.count > 0) {
        status = get_present(&window);
    }
    if (status != UC_OK) {
        return status;
    }
    (void)uc_scheduler_on_request_finished(bench->scheduler, window.request);
    bench->get.elapsed_ns += uc_clock_now_ns() - start_ns;
    return UC_OK;
}

bool
uc_store_window_drain(struct uc_store_bench *bench, uint64_t idle_ms)
{
    struct uc_io_result results[RESULTS_AT_ONCE];

    bench->progress_ns = uc_clock_now_ns();
    while (bench->in_flight > 0) {
        size_t count = 0;

        if (uc_worker_get_finished(bench->worker, results, RESULTS_AT_ONCE, &count) != UC_OK ||
                (count == 0 && !wait_for_event(bench, idle_ms))) {
            return false;
        }
        if (count > 0) {
            bench->in_flight -= count;
            bench->progress_ns = uc_clock_now_ns();
        }
        uc_io_results_release(results, count);
    }
    return true;
}
