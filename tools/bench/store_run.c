/* SPDX-License-Identifier: Apache-2.0 */

/* Sweeps: put all blocks, get them back, compare; then memcpy over the same memory. */

#include <stdlib.h>
#include <string.h>

#include <ucm/assembler.h>
#include <ucm/clock.h>
#include <ucm/log.h>

#include "tools/bench/block_content.h"
#include "tools/bench/file_yardstick.h"
#include "tools/bench/replay_servers.h"
#include "tools/bench/store.h"
#include "tools/bench/store_window.h"
#include "tools/bench/topology.h"

struct sweeps {
    const struct uc_store_options *options;
    struct uc_replay_options server_options;
    struct uc_replay_servers servers;
    struct uc_assembler *assembler;
    struct uc_store_bench bench;
    uint64_t memcpy_ns;
    uint64_t memcpy_bytes;
};

/* A spawned server holds every block of a sweep. */
static enum uc_status
open_servers(struct sweeps *sweeps)
{
    const struct uc_store_options *options = sweeps->options;

    sweeps->server_options = (struct uc_replay_options){
            .server = options->server,
            .spawn_server = options->spawn_server,
            .server_count = 1,
            .address = options->address,
            .fabric = options->fabric,
            .policy = "lru",
            .namespace_name = "default",
            .block_bytes = options->block_bytes,
            .capacity_blocks = options->blocks,
    };
    return uc_replay_servers_open(&sweeps->servers, &sweeps->server_options);
}

static enum uc_status
assemble(struct sweeps *sweeps, const struct uc_dict *file)
{
    const struct uc_store_options *options = sweeps->options;
    struct uc_topology_values values = {.servers = sweeps->servers.config,
            .fabric = options->fabric,
            .block_bytes = options->block_bytes};
    struct uc_dict *topology = NULL;
    enum uc_status status = uc_topology_expand(file, options->config_path, &values, &topology);

    if (status != UC_OK) {
        return status;
    }
    status = uc_assembler_create(topology, NULL, &sweeps->assembler);
    if (status != UC_OK) {
        status = uc_topology_error(topology, options->config_path, status);
        uc_dict_destroy(topology);
        return status;
    }
    uc_dict_destroy(topology);
    status = uc_assembler_scheduler(sweeps->assembler, &sweeps->bench.scheduler);
    return status == UC_OK ? uc_assembler_worker(sweeps->assembler, &sweeps->bench.worker) : status;
}

/* One region: what is put, and behind it what is got. */
static enum uc_status
take_memory(struct uc_store_bench *bench)
{
    const struct uc_store_options *options = bench->options;
    uint64_t half_bytes = options->blocks * options->block_bytes;
    void *memory;
    enum uc_status status = uc_memory_alloc(2 * half_bytes, &memory);

    if (status != UC_OK) {
        return status;
    }
    bench->source = memory;
    bench->target = bench->source + half_bytes;
    for (uint64_t idx = 0; idx < options->blocks; idx++) {
        uc_block_content_fill(
                idx, bench->source + idx * options->block_bytes, options->block_bytes);
    }
    status = uc_worker_register_memory(
            bench->worker, memory, 2 * half_bytes, UC_MEMORY_HOST, &bench->region_idx);
    bench->is_registered = status == UC_OK;
    return status;
}

static enum uc_status
open_sweeps(struct sweeps *sweeps)
{
    struct uc_dict *file = NULL;
    enum uc_status status = uc_topology_read(sweeps->options->config_path, &file);

    if (status == UC_OK) {
        status = open_servers(sweeps);
    }
    if (status == UC_OK) {
        status = assemble(sweeps, file);
    }
    uc_dict_destroy(file);
    return status == UC_OK ? take_memory(&sweeps->bench) : status;
}

static enum uc_status
close_sweeps(struct sweeps *sweeps)
{
    struct uc_store_bench *bench = &sweeps->bench;

    if (bench->is_registered) {
        (void)uc_worker_deregister_memory(bench->worker, bench->region_idx);
    }
    uc_assembler_destroy(sweeps->assembler);
    uc_memory_free(bench->source, 2 * sweeps->options->blocks * sweeps->options->block_bytes);
    uc_latency_fini(&bench->put.latency);
    uc_latency_fini(&bench->get.latency);
    return uc_replay_servers_close(&sweeps->servers);
}

static void
check_target(struct uc_store_bench *bench)
{
    uint64_t block_bytes = bench->options->block_bytes;

    for (uint64_t idx = 0; idx < bench->options->blocks; idx++) {
        uint64_t offset;

        if (!bench->got[idx]) {
            continue;
        }
        if (uc_block_content_check(idx, bench->target + idx * block_bytes, block_bytes, &offset)) {
            bench->report.verified_bytes += block_bytes;
        } else {
            bench->report.mismatches++;
            uc_log_error("store: block %llu has a wrong byte at offset %llu",
                    (unsigned long long)idx, (unsigned long long)offset);
        }
    }
}

static void
copy_all(struct sweeps *sweeps)
{
    struct uc_store_bench *bench = &sweeps->bench;
    uint64_t block_bytes = sweeps->options->block_bytes;
    uint64_t start_ns = uc_clock_now_ns();

    for (uint64_t idx = 0; idx < sweeps->options->blocks; idx++) {
        memcpy(bench->target + idx * block_bytes, bench->source + idx * block_bytes, block_bytes);
    }
    sweeps->memcpy_ns += uc_clock_now_ns() - start_ns;
    sweeps->memcpy_bytes += sweeps->options->blocks * block_bytes;
}

/* New blocks in every sweep: a put of what is there already would move nothing. */
static enum uc_status
sweep(struct sweeps *sweeps)
{
    struct uc_store_bench *bench = &sweeps->bench;
    uint64_t blocks = sweeps->options->blocks;
    enum uc_status status = UC_OK;

    bench->first_id = bench->report.sweeps * blocks;
    for (uint64_t first = 0; first < blocks && status == UC_OK; first += UC_STORE_WINDOW_MAX) {
        status = uc_store_window_put(bench, first);
    }

    /* What a failed load leaves behind must not look like the block. */
    memset(bench->target, 0xA5, blocks * sweeps->options->block_bytes);
    memset(bench->got, 0, blocks);
    for (uint64_t first = 0; first < blocks && status == UC_OK; first += UC_STORE_WINDOW_MAX) {
        status = uc_store_window_get(bench, first);
    }
    if (status == UC_OK) {
        check_target(bench);
        copy_all(sweeps);
        bench->report.sweeps++;
    }
    return status;
}

static struct uc_store_phase
phase_of(const char *name, struct uc_store_moves *moves)
{
    return (struct uc_store_phase){
            .name = name,
            .ops = moves->latency.count,
            .bytes = moves->bytes,
            .seconds = (double)moves->elapsed_ns / 1e9,
            .p50_us = uc_latency_percentile_us(&moves->latency, 50),
            .p99_us = uc_latency_percentile_us(&moves->latency, 99),
    };
}

static enum uc_status
measure_files(struct sweeps *sweeps, struct uc_store_report *report)
{
    const struct uc_store_options *options = sweeps->options;
    struct uc_file_yardstick yardstick = {.directory = options->direct_dir,
            .source = sweeps->bench.source,
            .target = sweeps->bench.target,
            .block_bytes = options->block_bytes,
            .blocks = options->blocks,
            .threads = (size_t)options->depth};
    uint64_t write_ns;
    uint64_t read_ns;
    enum uc_status status;

    if (options->direct_dir == NULL) {
        return UC_OK;
    }
    status = uc_file_yardstick_run(&yardstick, &write_ns, &read_ns);
    if (status != UC_OK) {
        return status;
    }

    report->phases[UC_STORE_DIRECT_WRITE] = (struct uc_store_phase){.name = "direct_write",
            .ops = options->blocks,
            .bytes = options->blocks * options->block_bytes,
            .seconds = (double)write_ns / 1e9};
    report->phases[UC_STORE_DIRECT_READ] = report->phases[UC_STORE_DIRECT_WRITE];
    report->phases[UC_STORE_DIRECT_READ].name = "direct_read";
    report->phases[UC_STORE_DIRECT_READ].seconds = (double)read_ns / 1e9;
    return UC_OK;
}

static enum uc_status
run_sweeps(struct sweeps *sweeps, struct uc_store_report *report_out)
{
    uint64_t end_ns = uc_clock_now_ns() + sweeps->options->seconds * 1000000000;
    struct uc_store_bench *bench = &sweeps->bench;
    enum uc_status status;

    do {
        status = sweep(sweeps);
    } while (status == UC_OK && uc_clock_now_ns() < end_ns);
    if (status != UC_OK) {
        return status;
    }

    bench->report.phases[UC_STORE_PUT] = phase_of("put", &bench->put);
    bench->report.phases[UC_STORE_GET] = phase_of("get", &bench->get);
    bench->report.phases[UC_STORE_MEMCPY] = (struct uc_store_phase){.name = "memcpy",
            .ops = bench->report.sweeps * sweeps->options->blocks,
            .bytes = sweeps->memcpy_bytes,
            .seconds = (double)sweeps->memcpy_ns / 1e9};
    status = measure_files(sweeps, &bench->report);
    if (status == UC_OK) {
        *report_out = bench->report;
    }
    return status;
}

enum uc_status
uc_store_run(const struct uc_store_options *options, struct uc_store_report *report_out)
{
    struct sweeps sweeps = {.options = options, .bench = {.options = options, .next_job_id = 1}};
    enum uc_status close_status;
    enum uc_status status;

    sweeps.bench.got = calloc(options->blocks, 1);
    if (sweeps.bench.got == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "store: no memory for the flags of the blocks");
    }
    status = open_sweeps(&sweeps);
    if (status == UC_OK) {
        status = run_sweeps(&sweeps, report_out);
    }
    close_status = close_sweeps(&sweeps);
    free(sweeps.bench.got);
    return status == UC_OK ? close_status : status;
}
