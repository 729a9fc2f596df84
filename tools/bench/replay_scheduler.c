/* SPDX-License-Identifier: Apache-2.0 */

/* The scheduler process of a node: looks up, opens and closes windows, sends tokens to its worker. */

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ucm/assembler.h>
#include <ucm/clock.h>
#include <ucm/log.h>

#include "tools/bench/block_content.h"
#include "tools/bench/channel.h"
#include "tools/bench/latency.h"
#include "tools/bench/replay_node.h"
#include "tools/bench/replay_tiers.h"
#include "tools/bench/topology.h"

enum {
    REQUEST_ID_BYTES = 64,
    PREFETCH_ROUNDS_MAX = 16 /* a pipe of n tiers needs n − 1 at most */
};

struct scheduler {
    const struct uc_replay_setup *setup;
    struct uc_assembler *assembler;
    struct uc_scheduler *scheduler; /* borrowed from the assembler */
    int parent_fd;
    int worker_fd;
    struct uc_latency latencies[UC_REPLAY_OP_COUNT];
    struct uc_message in;
    struct uc_message to_worker;
    struct uc_message from_worker;
    struct uc_message out;
};

/* One request while it is served. */
struct request {
    char id[REQUEST_ID_BYTES];
    const uint64_t *hash_ids; /* borrowed from the message */
    struct uc_block_id *keys;
    uint8_t *present; /* of keys behind the prefix, before the put */
    size_t count;
    struct uc_replay_outcome outcome;
};

static void
note_failure(struct scheduler *scheduler, struct request *request, const char *what,
        enum uc_status status)
{
    request->outcome.errors++;
    uc_log_warn("replay: node %zu: request %s: %s: %s: %s", scheduler->setup->node, request->id,
            what, uc_status_name(status), uc_last_error());
}

/* Append a token to a message. */
static bool
put_token(struct uc_message *message, const struct uc_token *token)
{
    size_t token_bytes = uc_token_serialized_bytes(token);
    uint8_t *bytes = malloc(token_bytes);

    if (bytes == NULL) {
        return false;
    }
    uc_token_serialize(token, bytes);
    uc_message_put(message, bytes, token_bytes);
    free(bytes);
    return true;
}

/* @return @p count ok flags, or NULL if the worker is gone */
static const uint8_t *
ask_worker(struct scheduler *scheduler, struct request *request, size_t count,
        struct uc_replay_moved *moved_out)
{
    if (uc_channel_send(scheduler->worker_fd, &scheduler->to_worker) != UC_OK ||
            uc_channel_receive(scheduler->worker_fd, &scheduler->from_worker) != UC_OK) {
        request->outcome.worker_died = 1;
        return NULL;
    }
    memcpy(moved_out, uc_message_get(&scheduler->from_worker, sizeof(*moved_out)),
            sizeof(*moved_out));
    return uc_message_get(&scheduler->from_worker, count);
}

/* Let the worker move a window. @return one ok flag per key, or NULL if the worker is gone. */
static const uint8_t *
move(struct scheduler *scheduler, struct request *request, enum uc_replay_message what,
        const struct uc_token *token, size_t first, struct uc_replay_moved *moved_out)
{
    size_t count = request->count - first;
    struct uc_message *message = &scheduler->to_worker;

    if (what == UC_REPLAY_GET) {
        count = token->key_count;
    }
    uc_message_begin(message, what);
    uc_message_put_u64(message, count);
    uc_message_put(message, request->hash_ids + first, count * sizeof(request->hash_ids[0]));
    return put_token(message, token) ? ask_worker(scheduler, request, count, moved_out) : NULL;
}

static size_t
count_zeros(const uint8_t *flags, size_t count)
{
    size_t zeros = 0;

    for (size_t idx = 0; idx < count; idx++) {
        zeros += flags[idx] == 0;
    }
    return zeros;
}

/* @return whether the lookup signals that blocks can be lifted; else the hits are set */
static bool
lookup_prefix_once(struct scheduler *scheduler, struct request *request)
{
    uint64_t start_ns = uc_clock_now_ns();
    bool prefetch_needed = false;
    int64_t index = -1;
    enum uc_status status = uc_scheduler_lookup_on_prefix(scheduler->scheduler, request->id,
            request->keys, request->count, &index, &prefetch_needed);

    uc_latency_add(&scheduler->latencies[UC_REPLAY_OP_lookup], uc_clock_now_ns() - start_ns);
    if (status != UC_OK) {
        note_failure(scheduler, request, "lookup", status);
        return false;
    }
    if (prefetch_needed) {
        return true;
    }

    request->outcome.hits = (uint64_t)(index + 1);
    return false;
}

/*
 * Lift what the last lookup found below. A round that fails is no error: the next lookup answers without
 * those blocks. @return whether to look up again
 */
static bool
prefetch_window(struct scheduler *scheduler, struct request *request)
{
    uint64_t start_ns = uc_clock_now_ns();
    struct uc_replay_moved moved = {0};
    struct uc_token *token = NULL;
    const uint8_t *ok = NULL;
    enum uc_status status =
            uc_scheduler_prepare_prefetch(scheduler->scheduler, request->id, &token);

    request->outcome.prefetches++;
    if (status != UC_OK) {
        request->outcome.failed_prefetches++;
        uc_log_debug("replay: node %zu: request %s: prepare prefetch: %s: %s",
                scheduler->setup->node, request->id, uc_status_name(status), uc_last_error());
        return true;
    }

    uc_message_begin(&scheduler->to_worker, UC_REPLAY_PREFETCH);
    if (put_token(&scheduler->to_worker, token)) {
        ok = ask_worker(scheduler, request, 1, &moved);
    }
    request->outcome.errors += moved.errors;
    uc_token_destroy(token);
    request->outcome.failed_prefetches += ok == NULL || !ok[0];

    status = uc_scheduler_complete_prefetch(scheduler->scheduler, request->id, ok != NULL && ok[0]);
    if (status != UC_OK) {
        note_failure(scheduler, request, "complete prefetch", status);
    }
    uc_latency_add(&scheduler->latencies[UC_REPLAY_OP_prefetch], uc_clock_now_ns() - start_ns);
    return request->outcome.worker_died == 0;
}

static void
lookup_prefix(struct scheduler *scheduler, struct request *request)
{
    while (lookup_prefix_once(scheduler, request)) {
        if (request->outcome.prefetches == PREFETCH_ROUNDS_MAX) {
            (void)uc_error(UC_ERR_GENERAL, "still signals after %d rounds", PREFETCH_ROUNDS_MAX);
            note_failure(scheduler, request, "lookup", UC_ERR_GENERAL);
            return;
        }
        if (!prefetch_window(scheduler, request)) {
            return;
        }
    }
}

/* Read the present prefix back. */
static void
get_window(struct scheduler *scheduler, struct request *request)
{
    size_t count = (size_t)request->outcome.hits;
    uint64_t start_ns = uc_clock_now_ns();
    struct uc_replay_moved moved = {0};
    struct uc_token *token = NULL;
    const uint8_t *ok;
    enum uc_status status = uc_scheduler_prepare_get(
            scheduler->scheduler, request->id, request->keys, count, &token);

    uc_latency_add(&scheduler->latencies[UC_REPLAY_OP_pin], uc_clock_now_ns() - start_ns);
    if (status != UC_OK) {
        /* The server went away, or evicted a block since the lookup: compute instead. */
        note_failure(scheduler, request, "prepare get", status);
        request->outcome.hits = 0;
        return;
    }

    ok = move(scheduler, request, UC_REPLAY_GET, token, 0, &moved);
    if (ok != NULL) {
        uc_latency_add(&scheduler->latencies[UC_REPLAY_OP_read], moved.elapsed_ns);
        request->outcome.failed_reads += count_zeros(ok, count);
    }
    request->outcome.verified_bytes += moved.verified_bytes;
    request->outcome.mismatches += moved.mismatches;
    request->outcome.errors += moved.errors;
    uc_token_destroy(token);

    status = uc_scheduler_complete_get(scheduler->scheduler, request->id);
    if (status != UC_OK) {
        note_failure(scheduler, request, "complete get", status);
    }
}

/*
 * Which blocks behind the prefix are present already: the put finds them again as PRESENT. A lookup is a
 * pure probe. It also follows the unpin on the same connection, so that the unpin has taken
 * effect before the other node's turn; without blocks to put, the first key serves.
 */
static void
lookup_rest(struct scheduler *scheduler, struct request *request)
{
    size_t first = (size_t)request->outcome.hits;
    size_t count = request->count - first;
    bool prefetch_needed = false;
    enum uc_status status;

    if (count == 0) {
        first = 0;
        count = 1;
    }
    status = uc_scheduler_lookup(scheduler->scheduler, request->id, request->keys + first, count,
            request->present + first, &prefetch_needed);
    if (status != UC_OK) {
        note_failure(scheduler, request, "lookup of the rest", status);
        memset(request->present, 0, request->count);
    }
    /* With a signal nothing is said of the rest: it is put above, and counts as written there. */
}

static void
complete_put(struct scheduler *scheduler, struct request *request, const uint8_t *ok, size_t count)
{
    uint64_t start_ns = uc_clock_now_ns();
    size_t failed = ok == NULL ? count : count_zeros(ok, count);
    enum uc_status status;

    if (ok == NULL || failed == 0) {
        status = uc_scheduler_complete_put(scheduler->scheduler, request->id, ok != NULL);
    } else {
        status = uc_scheduler_complete_put_mask(scheduler->scheduler, request->id, ok, count);
    }
    uc_latency_add(&scheduler->latencies[UC_REPLAY_OP_commit], uc_clock_now_ns() - start_ns);
    if (status != UC_OK) {
        note_failure(scheduler, request, "complete put", status);
        failed = count;
    }
    request->outcome.put_failed = failed;
}

/* Write the blocks behind the prefix. */
static void
put_window(struct scheduler *scheduler, struct request *request)
{
    size_t first = (size_t)request->outcome.hits;
    size_t count = request->count - first;
    uint64_t start_ns = uc_clock_now_ns();
    struct uc_replay_moved moved = {0};
    struct uc_token *token = NULL;
    const uint8_t *ok;
    enum uc_status status = uc_scheduler_prepare_put(
            scheduler->scheduler, request->id, request->keys + first, count, &token);

    uc_latency_add(&scheduler->latencies[UC_REPLAY_OP_alloc], uc_clock_now_ns() - start_ns);
    if (status == UC_ERR_NO_SPACE) {
        request->outcome.refused_puts = 1;
        return;
    }
    if (status != UC_OK) {
        note_failure(scheduler, request, "prepare put", status);
        return;
    }

    request->outcome.put_keys = count;
    ok = move(scheduler, request, UC_REPLAY_PUT, token, first, &moved);
    if (ok != NULL) {
        uc_latency_add(&scheduler->latencies[UC_REPLAY_OP_write], moved.elapsed_ns);
    }
    request->outcome.errors += moved.errors;
    uc_token_destroy(token);
    complete_put(scheduler, request, ok, count);
}

static enum uc_status
serve_request(struct scheduler *scheduler)
{
    struct request request = {0};
    struct uc_request_context context;
    enum uc_status status = UC_ERR_OUT_OF_MEMORY;
    uint64_t ttl_ms;

    (void)snprintf(request.id, sizeof(request.id), "%zu-%" PRIu64, scheduler->setup->node,
            uc_message_get_u64(&scheduler->in));
    ttl_ms = uc_message_get_u64(&scheduler->in);
    request.count = (size_t)uc_message_get_u64(&scheduler->in);
    request.hash_ids = uc_message_get(&scheduler->in, request.count * sizeof(uint64_t));
    request.keys = calloc(request.count + 1, sizeof(request.keys[0]));
    request.present = calloc(request.count + 1, 1);
    if (request.keys == NULL || request.present == NULL) {
        goto out;
    }
    for (size_t idx = 0; idx < request.count; idx++) {
        request.keys[idx] = uc_block_id_from_hash(request.hash_ids[idx]);
    }

    context = uc_request_context_init(request.id);
    if (ttl_ms != 0) {
        context.present |= UC_REQUEST_TTL;
        context.ttl_ms = ttl_ms;
    }
    status = uc_scheduler_on_new_request(scheduler->scheduler, &context);
    if (status != UC_OK) {
        goto out;
    }
    lookup_prefix(scheduler, &request);
    if (request.outcome.hits > 0) {
        get_window(scheduler, &request);
    }
    lookup_rest(scheduler, &request);
    if (request.outcome.hits < request.count && request.outcome.worker_died == 0) {
        put_window(scheduler, &request);
    }
    (void)uc_scheduler_on_request_finished(scheduler->scheduler, request.id);

    uc_message_begin(&scheduler->out, UC_REPLAY_OUTCOME);
    uc_message_put(&scheduler->out, &request.outcome, sizeof(request.outcome));
    uc_message_put(&scheduler->out, request.present, request.count);
    status = uc_channel_send(scheduler->parent_fd, &scheduler->out);

out:
    free(request.keys);
    free(request.present);
    return request.outcome.worker_died != 0 ? UC_ERR_UNHEALTHY : status;
}

static enum uc_status
scheduler_open(struct scheduler *scheduler)
{
    struct uc_assembler_options options = {
            .struct_size = sizeof(options), .role = UC_ROLE_SCHEDULER};
    enum uc_status status =
            uc_assembler_create(scheduler->setup->topology, &options, &scheduler->assembler);

    if (status == UC_OK) {
        status = uc_assembler_scheduler(scheduler->assembler, &scheduler->scheduler);
    }
    if (status != UC_OK) {
        if (scheduler->setup->where != NULL) {
            (void)uc_topology_error(scheduler->setup->topology, scheduler->setup->where, status);
        }
        uc_log_error("replay: node %zu: scheduler: %s: %s", scheduler->setup->node,
                uc_status_name(status), uc_last_error());
        return status;
    }

    /* The worker says for itself what went wrong with it. */
    status = uc_channel_receive(scheduler->worker_fd, &scheduler->from_worker);
    return status == UC_OK ? (enum uc_status)uc_message_get_u64(&scheduler->from_worker) : status;
}

/* Tell the parent what both processes have transferred. */
static enum uc_status
send_tiers(struct scheduler *scheduler)
{
    struct uc_replay_tiers tiers = {.count = 0};
    struct uc_dict *description = NULL;
    enum uc_status status = uc_dict_create(&description);

    if (status == UC_OK) {
        status = uc_scheduler_describe(scheduler->scheduler, description);
    }
    if (status == UC_OK) {
        uc_replay_tiers_read(description, &tiers);
    }
    uc_dict_destroy(description);

    uc_message_begin(&scheduler->to_worker, UC_REPLAY_DESCRIBE);
    status = uc_channel_send(scheduler->worker_fd, &scheduler->to_worker);
    if (status == UC_OK) {
        status = uc_channel_receive(scheduler->worker_fd, &scheduler->from_worker);
    }
    if (status != UC_OK) {
        return status;
    }
    uc_replay_tiers_add(&tiers, uc_message_get(&scheduler->from_worker, sizeof(tiers)));
    uc_message_begin(&scheduler->out, UC_REPLAY_TIERS);
    uc_message_put(&scheduler->out, &tiers, sizeof(tiers));
    return uc_channel_send(scheduler->parent_fd, &scheduler->out);
}

static void
send_latencies(struct scheduler *scheduler)
{
    uc_message_begin(&scheduler->to_worker, UC_REPLAY_FINISH);
    (void)uc_channel_send(scheduler->worker_fd, &scheduler->to_worker);
    uc_message_begin(&scheduler->out, UC_REPLAY_LATENCIES);
    for (size_t idx = 0; idx < UC_REPLAY_OP_COUNT; idx++) {
        const struct uc_latency *latency = &scheduler->latencies[idx];

        uc_message_put_u64(&scheduler->out, latency->count);
        uc_message_put(&scheduler->out, latency->samples_ns, latency->count * sizeof(uint64_t));
    }
    (void)uc_channel_send(scheduler->parent_fd, &scheduler->out);
}

int
uc_replay_scheduler_run(const struct uc_replay_setup *setup, int parent_fd, int worker_fd)
{
    struct scheduler scheduler = {.setup = setup, .parent_fd = parent_fd, .worker_fd = worker_fd};
    enum uc_status status = scheduler_open(&scheduler);

    uc_message_begin(&scheduler.out, UC_REPLAY_READY);
    uc_message_put_u64(&scheduler.out, (uint64_t)status);
    if (uc_channel_send(parent_fd, &scheduler.out) != UC_OK) {
        status = UC_ERR_UNHEALTHY;
    }

    while (status == UC_OK && uc_channel_receive(parent_fd, &scheduler.in) == UC_OK) {
        if (scheduler.in.type == UC_REPLAY_FINISH) {
            send_latencies(&scheduler);
            break;
        }
        status = scheduler.in.type == UC_REPLAY_DESCRIBE ? send_tiers(&scheduler)
                                                         : serve_request(&scheduler);
    }

    uc_assembler_destroy(scheduler.assembler);
    for (size_t idx = 0; idx < UC_REPLAY_OP_COUNT; idx++) {
        uc_latency_fini(&scheduler.latencies[idx]);
    }
    uc_message_fini(&scheduler.in);
    uc_message_fini(&scheduler.to_worker);
    uc_message_fini(&scheduler.from_worker);
    uc_message_fini(&scheduler.out);
    return status == UC_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
