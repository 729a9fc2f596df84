/* SPDX-License-Identifier: Apache-2.0 */

#include "tools/bench/simulate.h"

#include <stdlib.h>

#include <ucm/clock.h>

#include "core/cache/cache_buffer.h"
#include "tools/bench/block_content.h"
#include "tools/bench/policy_spec.h"

struct simulation {
    const struct uc_trace *trace;
    struct uc_cache_buffer *buffer;
    uint64_t now_ms;
    uint32_t *writers; /* per slot: the node that wrote it */
    /* One element per id of the longest request. */
    struct uc_block_id *ids;
    struct uc_policy_hints *hints;
    struct uc_cache_slot *slots;
    uint8_t *hits;
    struct uc_replay_counts counts;
};

static uint64_t
trace_now_ms(void *context)
{
    const struct simulation *simulation = context;

    return simulation->now_ms;
}

static size_t
longest_request(const struct uc_trace *trace)
{
    size_t longest = 1;

    for (size_t idx = 0; idx < trace->request_count; idx++) {
        if (trace->requests[idx].count > longest) {
            longest = trace->requests[idx].count;
        }
    }
    return longest;
}

static void
fini(struct simulation *simulation)
{
    uc_cache_buffer_destroy(simulation->buffer);
    free(simulation->writers);
    free(simulation->ids);
    free(simulation->hints);
    free(simulation->slots);
    free(simulation->hits);
}

static enum uc_status
create_cache(struct simulation *simulation, const struct uc_replay_options *options)
{
    struct uc_cache_config config = {
            .capacity = options->capacity_blocks,
            .clock = {.now_ms = trace_now_ms, .context = simulation},
    };
    const char *list = options->policy;
    struct uc_policy_spec policy;
    enum uc_status status = uc_policy_spec_take(&list, &policy);

    if (status != UC_OK) {
        return status;
    }

    config.policy = policy.name;
    config.parameters = policy.parameters;
    status = uc_cache_buffer_create(&config, &simulation->buffer);
    uc_policy_spec_fini(&policy);
    return status;
}

static enum uc_status
init(struct simulation *simulation, const struct uc_trace *trace,
        const struct uc_replay_options *options)
{
    size_t longest = longest_request(trace);
    enum uc_status status = create_cache(simulation, options);

    if (status != UC_OK) {
        return status;
    }

    simulation->trace = trace;
    simulation->writers = calloc(options->capacity_blocks, sizeof(simulation->writers[0]));
    simulation->ids = calloc(longest, sizeof(simulation->ids[0]));
    simulation->hints = calloc(longest, sizeof(simulation->hints[0]));
    simulation->slots = calloc(longest, sizeof(simulation->slots[0]));
    simulation->hits = calloc(longest, sizeof(simulation->hits[0]));
    if (simulation->writers == NULL || simulation->ids == NULL || simulation->hints == NULL ||
            simulation->slots == NULL || simulation->hits == NULL) {
        fini(simulation);
        return uc_error(UC_ERR_OUT_OF_MEMORY, "simulate: no memory for %lu blocks",
                (unsigned long)options->capacity_blocks);
    }

    return UC_OK;
}

static void
describe(struct simulation *simulation, const struct uc_trace_request *request)
{
    const uint64_t *hash_ids = uc_trace_hash_ids(simulation->trace, request);

    for (size_t idx = 0; idx < request->count; idx++) {
        bool last = idx + 1 == request->count;

        simulation->ids[idx] = uc_block_id_from_hash(hash_ids[idx]);
        simulation->hints[idx] = (struct uc_policy_hints){
                .position = (uint32_t)idx + 1,
                .partial = last && request->input_length % UC_TRACE_BLOCK_TOKENS != 0,
        };
    }
}

/* The contiguous present prefix, pinned and read. */
static enum uc_status
get(struct simulation *simulation, size_t count, uint32_t node, size_t *present_out)
{
    enum uc_status status;
    size_t present = 0;

    uc_cache_buffer_lookup(simulation->buffer, simulation->ids, count, simulation->hits);
    while (present < count && simulation->hits[present] != 0) {
        present++;
    }
    *present_out = present;
    if (present == 0) {
        return UC_OK;
    }

    status = uc_cache_buffer_pin(simulation->buffer, simulation->ids, present, simulation->slots);
    if (status != UC_OK) {
        return status;
    }

    simulation->counts.prefix_hits += present;
    for (size_t idx = 0; idx < present; idx++) {
        if (simulation->writers[simulation->slots[idx].slot] != node) {
            simulation->counts.cross_node_hits++;
        }
    }
    uc_cache_buffer_unpin(simulation->buffer, simulation->ids, present);
    return UC_OK;
}

/* The rest, written where it is not there already. */
static enum uc_status
put(struct simulation *simulation, size_t first, size_t count, uint32_t node)
{
    const struct uc_block_id *ids = simulation->ids + first;
    enum uc_status status;
    size_t evicted;

    if (count == 0) {
        return UC_OK;
    }
    status = uc_cache_buffer_reserve(simulation->buffer, ids, count, NULL,
            simulation->hints + first, simulation->slots, NULL, &evicted);
    if (status == UC_ERR_NO_SPACE) {
        simulation->counts.refused_puts++;
        return UC_OK;
    }
    if (status != UC_OK) {
        return status;
    }

    simulation->counts.evicted_blocks += evicted;
    for (size_t idx = 0; idx < count; idx++) {
        if (simulation->slots[idx].admission == UC_CACHE_NEWCOMER) {
            simulation->writers[simulation->slots[idx].slot] = node;
            simulation->counts.written_blocks++;
        } else {
            simulation->counts.present_blocks++;
        }
    }
    return uc_cache_buffer_commit(simulation->buffer, ids, count, true, NULL);
}

static enum uc_status
replay_request(struct simulation *simulation, const struct uc_trace_request *request, uint32_t node)
{
    enum uc_status status;
    size_t present;

    if (request->timestamp_ms > simulation->now_ms) {
        simulation->now_ms = request->timestamp_ms; /* monotonic, whatever the trace says */
    }
    describe(simulation, request);
    simulation->counts.requests++;
    simulation->counts.block_refs += request->count;
    status = get(simulation, request->count, node, &present);
    if (status != UC_OK) {
        return status;
    }

    return put(simulation, present, request->count - present, node);
}

enum uc_status
uc_simulate_run(const struct uc_trace *trace, const struct uc_replay_options *options,
        struct uc_replay_counts *counts_out)
{
    struct simulation simulation = {0};
    uint64_t start_ns = uc_clock_now_ns();
    enum uc_status status;

    if (options->nodes == 0) {
        return uc_error(UC_ERR_INVALID_PARAM, "simulate: no nodes");
    }
    status = init(&simulation, trace, options);
    if (status != UC_OK) {
        return status;
    }

    for (size_t idx = 0; idx < trace->request_count && status == UC_OK; idx++) {
        status = replay_request(
                &simulation, &trace->requests[idx], (uint32_t)(idx % options->nodes));
    }
    if (status == UC_OK) {
        simulation.counts.seconds = (double)(uc_clock_now_ns() - start_ns) / 1e9;
        *counts_out = simulation.counts;
    }
    fini(&simulation);
    return status;
}
