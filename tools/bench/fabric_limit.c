/* SPDX-License-Identifier: Apache-2.0 */

#include "tools/bench/fabric_limit.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <ucm/clock.h>

#include "tools/bench/fabric_control.h"
#include "tools/bench/fabric_streams.h"
#include "tools/bench/perftest.h"

enum {
    CALL_MS = 60000,
    LATENCY_OPERATIONS = 200,
    PERFTEST_OPERATIONS_MIN = 10,
    PERFTEST_BLOCK_MIN_BYTES = 2,
};

struct kind {
    const char *fabric;
    enum uc_status (*open)(struct uc_fabric_limit *limit);
    enum uc_status (*round)(struct uc_fabric_limit *limit, uint64_t blocks, double *out);
};

struct uc_fabric_limit {
    const struct uc_fabric_limit_config *config;
    const struct kind *kind;
    const char *name;
    struct uc_fabric_streams streams;
    uint64_t next_block; /* of memcpy */
    bool reads;
};

static double
rate(uint64_t bytes, uint64_t elapsed_ns)
{
    return elapsed_ns == 0 ? 0 : (double)bytes / (double)elapsed_ns;
}

/* Streams. */

static enum uc_status
open_streams(struct uc_fabric_limit *limit)
{
    const struct uc_fabric_limit_config *config = limit->config;
    uint64_t count = config->options->connections == 0 ? 1 : config->options->connections;
    struct uc_fabric_control answer = {.type = UC_FABRIC_CONTROL_END_};
    struct uc_fabric_control request = {.type = UC_FABRIC_CONTROL_STREAMS, .numbers = {count}};
    enum uc_status status = uc_fabric_control_call(config->control_fd, &request, CALL_MS, &answer);

    limit->name = "bare send/recv";
    if (status != UC_OK) {
        return status;
    }
    limit->streams.base = uc_fabric_client_memory(config->client)->base;
    limit->streams.block_bytes = config->slots->block_bytes;
    limit->streams.stride = config->slots->block_bytes;
    limit->streams.block_count = uc_fabric_client_buffer_count(config->client);
    return uc_fabric_streams_connect(
            &limit->streams, config->host, (uint16_t)answer.numbers[0], (size_t)count);
}

static enum uc_status
run_streams_once(struct uc_fabric_limit *limit, uint64_t blocks, bool spin, double *out)
{
    struct uc_fabric_control answer = {.type = UC_FABRIC_CONTROL_END_};
    struct uc_fabric_control request = {.type = UC_FABRIC_CONTROL_MOVE, .numbers = {blocks, spin}};
    enum uc_status status =
            uc_fabric_control_call(limit->config->control_fd, &request, CALL_MS, &answer);
    uint64_t start_ns = uc_clock_now_ns();

    if (status == UC_OK) {
        status = uc_fabric_streams_move(&limit->streams, blocks, !limit->reads, spin);
    }
    if (status == UC_OK) {
        *out = rate(blocks * limit->streams.block_bytes, uc_clock_now_ns() - start_ns);
    }
    return status;
}

/* The better of sleeping and asking again: which it is depends on the machine and its load. */
static enum uc_status
run_streams(struct uc_fabric_limit *limit, uint64_t blocks, double *out)
{
    uint64_t half = (blocks + 1) / 2;
    double sleeping = 0;
    double spinning = 0;
    enum uc_status status = run_streams_once(limit, half, false, &sleeping);

    if (status == UC_OK) {
        status = run_streams_once(limit, half, true, &spinning);
    }
    if (status == UC_OK) {
        *out = sleeping > spinning ? sleeping : spinning;
    }
    return status;
}

/* memcpy, by one thread, between the very pages that the fabric moves between. */

static enum uc_status
open_copy(struct uc_fabric_limit *limit)
{
    limit->name = "memcpy";
    if (limit->config->server_memory == NULL) {
        return uc_error(UC_ERR_UNSUPPORTED,
                "memcpy needs the server's memory: leave out --connect on the same host");
    }
    return UC_OK;
}

static enum uc_status
run_copy(struct uc_fabric_limit *limit, uint64_t blocks, double *out)
{
    const struct uc_fabric_bench_slots *slots = limit->config->slots;
    uint8_t *server = limit->config->server_memory->base;
    uint8_t *client = uc_fabric_client_memory(limit->config->client)->base;
    uint64_t buffer_count = uc_fabric_client_buffer_count(limit->config->client);
    uint64_t start_ns = uc_clock_now_ns();

    for (uint64_t idx = 0; idx < blocks; idx++, limit->next_block++) {
        uint8_t *block =
                server + uc_fabric_bench_slot_offset(slots, limit->next_block % slots->count);
        uint8_t *buffer = client + limit->next_block % buffer_count * slots->block_bytes;

        if (limit->reads) {
            memcpy(buffer, block, slots->block_bytes);
        } else {
            memcpy(block, buffer, slots->block_bytes);
        }
    }
    *out = rate(blocks * slots->block_bytes, uc_clock_now_ns() - start_ns);
    return UC_OK;
}

/* perftest: a process on either side; its buffer is small and used again and again. */

static enum uc_status
open_perftest(struct uc_fabric_limit *limit)
{
    enum uc_perftest_tool tool = limit->reads ? UC_PERFTEST_READ_BW : UC_PERFTEST_WRITE_BW;

    limit->name = uc_perftest_name(tool);
    return uc_perftest_check(tool);
}

static enum uc_status
run_once(struct uc_fabric_limit *limit, enum uc_perftest_tool tool, uint64_t operations,
        double *value_out, double *seconds_out)
{
    const struct uc_fabric_bench_options *options = limit->config->options;
    struct uc_fabric_control answer = {.type = UC_FABRIC_CONTROL_END_};
    struct uc_fabric_control request = {.type = UC_FABRIC_CONTROL_PERFTEST,
            .numbers = {(uint64_t)tool, options->block_bytes, options->depth, options->connections,
                    operations}};
    struct uc_perftest perftest = {.tool = tool,
            .device = options->device,
            .block_bytes = options->block_bytes,
            .depth = options->depth,
            .queue_pairs = options->connections,
            .operations = operations};
    enum uc_status status =
            uc_fabric_control_call(limit->config->control_fd, &request, CALL_MS, &answer);

    if (status != UC_OK) {
        return status;
    }
    perftest.port = (uint16_t)answer.numbers[0];
    return uc_perftest_run_client(&perftest, limit->config->host, value_out, seconds_out);
}

/* Without a processor clock it can read, perftest says 0: then two lengths of a run tell. */
static enum uc_status
run_perftest(struct uc_fabric_limit *limit, uint64_t blocks, double *out)
{
    enum uc_perftest_tool tool = limit->reads ? UC_PERFTEST_READ_BW : UC_PERFTEST_WRITE_BW;
    uint64_t few = PERFTEST_OPERATIONS_MIN;
    uint64_t many = blocks > few ? blocks : few;
    double seconds = 0;
    double few_seconds = 0;
    double ignored = 0;
    double value = 0;
    enum uc_status status = run_once(limit, tool, many, &value, &seconds);

    if (status == UC_OK && value <= 0) {
        if (many == few) {
            many += few;
            status = run_once(limit, tool, many, &ignored, &seconds);
        }
        if (status == UC_OK) {
            status = run_once(limit, tool, few, &ignored, &few_seconds);
        }
        if (seconds > few_seconds) {
            value = (double)((many - few) * limit->config->options->block_bytes) / 1e9 /
                    (seconds - few_seconds);
        }
    }
    if (status == UC_OK) {
        *out = value;
    }
    return status;
}

static const struct kind kinds[] = {
        {"tcp", open_streams, run_streams},
        {"shm", open_copy, run_copy},
        {"verbs", open_perftest, run_perftest},
};

enum {
    KIND_COUNT = sizeof(kinds) / sizeof(kinds[0])
};

enum uc_status
uc_fabric_limit_create(
        const struct uc_fabric_limit_config *config, struct uc_fabric_limit **limit_out)
{
    struct uc_fabric_limit *limit;
    enum uc_status status = UC_ERR_UNSUPPORTED;

    if (strcmp(config->options->limit, "off") == 0) {
        return uc_error(UC_ERR_UNSUPPORTED, "--limit is off");
    }
    limit = calloc(1, sizeof(*limit));
    if (limit == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "no memory for the limit");
    }

    limit->config = config;
    limit->reads = strcmp(config->options->op, "read") == 0;
    for (size_t idx = 0; idx < KIND_COUNT; idx++) {
        if (strcmp(kinds[idx].fabric, config->options->fabric) == 0) {
            limit->kind = &kinds[idx];
            status = limit->kind->open(limit);
        }
    }
    if (status != UC_OK) {
        uc_fabric_limit_destroy(limit);
        return status;
    }

    *limit_out = limit;
    return UC_OK;
}

void
uc_fabric_limit_destroy(struct uc_fabric_limit *limit)
{
    if (limit == NULL) {
        return;
    }

    uc_fabric_streams_close(&limit->streams);
    free(limit);
}

const char *
uc_fabric_limit_name(const struct uc_fabric_limit *limit)
{
    return limit->name;
}

enum uc_status
uc_fabric_limit_round(struct uc_fabric_limit *limit, uint64_t blocks, double *gbytes_per_s_out)
{
    return limit->kind->round(limit, blocks, gbytes_per_s_out);
}

enum uc_status
uc_fabric_limit_latency(struct uc_fabric_limit *limit, double *p50_us_out)
{
    enum uc_status status;
    double seconds = 0;
    double value = 0;

    *p50_us_out = 0;
    if (limit->kind->round != run_perftest || !limit->reads ||
            uc_perftest_check(UC_PERFTEST_READ_LAT) != UC_OK) {
        return UC_OK;
    }
    status = run_once(limit, UC_PERFTEST_READ_LAT, LATENCY_OPERATIONS, &value, &seconds);
    if (status == UC_OK && isfinite(value)) { /* not without a processor clock that it can read */
        *p50_us_out = value;
    }
    return status;
}
