/* SPDX-License-Identifier: Apache-2.0 */

/* Rounds: put all blocks, get them back, compare; in turn with what bounds both. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <ucm/assembler.h>
#include <ucm/clock.h>
#include <ucm/log.h>

#include "tools/bench/block_content.h"
#include "tools/bench/file_yardstick.h"
#include "tools/bench/replay_servers.h"
#include "tools/bench/store.h"
#include "tools/bench/store_memory.h"
#include "tools/bench/store_window.h"
#include "tools/bench/topology.h"

struct sweeps {
    const struct uc_store_options *options;
    struct uc_replay_options server_options;
    struct uc_replay_servers servers;
    struct uc_assembler *assembler;
    struct uc_store_bench bench;
    struct uc_file_yardstick medium;
    bool has_medium;
    struct uc_store_moves passes[UC_STORE_PHASE_COUNT]; /* of the round that runs; no latencies */
};

enum {
    DRAIN_MS = 5000, /* what jobs in flight get after a failure, for each event */
    ERROR_BYTES = 1024,
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
    uc_store_limits_find(topology, &sweeps->bench.report.limits);
    uc_dict_destroy(topology);
    status = uc_assembler_scheduler(sweeps->assembler, &sweeps->bench.scheduler);
    return status == UC_OK ? uc_assembler_worker(sweeps->assembler, &sweeps->bench.worker) : status;
}

/* Blocks of an earlier run over the same medium are others: a put of what is there would move nothing. */
static enum uc_status
choose_ids(struct uc_store_bench *bench)
{
    if (getrandom(&bench->next_block, sizeof(bench->next_block), 0) !=
            (ssize_t)sizeof(bench->next_block)) {
        return uc_log_errno(errno, "store: random number for the ids of the blocks");
    }
    return UC_OK;
}

/* One region: what is put, and behind it what is got. */
static enum uc_status
take_memory(struct uc_store_bench *bench)
{
    const struct uc_store_options *options = bench->options;
    uint64_t half_bytes = options->blocks * options->block_bytes;
    enum uc_status status;

    /* Of a block in small pages the kernel makes several requests; both sides have the same, or neither is comparable. */
    bench->report.huge_pages =
            options->huge_pages && bench->report.limits.put.kind == UC_STORE_LIMIT_MEDIUM;
    status = uc_store_memory_alloc(2 * half_bytes, bench->report.huge_pages, &bench->source);
    if (status != UC_OK) {
        return status;
    }
    bench->target = bench->source + half_bytes;
    memset(bench->target, 0, half_bytes); /* no first touch of a page is measured */
    for (uint64_t idx = 0; idx < options->blocks; idx++) {
        uc_block_content_fill(
                idx, bench->source + idx * options->block_bytes, options->block_bytes);
    }
    status = uc_worker_register_memory(
            bench->worker, bench->source, 2 * half_bytes, UC_MEMORY_HOST, &bench->region_idx);
    bench->is_registered = status == UC_OK;
    return status;
}

/* The directory that was named, else the one where the topology's only store keeps its blocks. */
static enum uc_status
open_medium(struct sweeps *sweeps)
{
    const struct uc_store_options *options = sweeps->options;
    const struct uc_store_limits *limits = &sweeps->bench.report.limits;
    enum uc_status status;

    sweeps->medium = (struct uc_file_yardstick){
            .directory = options->direct_dir == NULL ? limits->medium : options->direct_dir,
            .source = sweeps->bench.source,
            .target = sweeps->bench.target,
            .block_bytes = options->block_bytes,
            .blocks = options->blocks,
            .depth = options->depth,
            .huge_pages = sweeps->bench.report.huge_pages};
    if (sweeps->medium.directory[0] == '\0') {
        return UC_OK;
    }
    if (options->block_bytes % 4096 != 0) { /* O_DIRECT; refused already if it was asked for */
        uc_log_warn("store: no limit of the medium: --block-bytes is no multiple of 4096");
        return UC_OK;
    }
    status = uc_file_yardstick_open(&sweeps->medium, options->direct_by);
    sweeps->has_medium = status == UC_OK;
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
    if (status == UC_OK) {
        status = choose_ids(&sweeps->bench);
    }
    if (status == UC_OK) {
        status = take_memory(&sweeps->bench);
    }
    return status == UC_OK ? open_medium(sweeps) : status;
}

static enum uc_status
close_sweeps(struct sweeps *sweeps)
{
    struct uc_store_bench *bench = &sweeps->bench;

    if (bench->is_registered) {
        (void)uc_worker_deregister_memory(bench->worker, bench->region_idx);
    }
    uc_assembler_destroy(sweeps->assembler);
    uc_store_memory_free(bench->source, 2 * sweeps->options->blocks * sweeps->options->block_bytes,
            bench->report.huge_pages);
    uc_latency_fini(&bench->put.latency);
    uc_latency_fini(&bench->get.latency);
    uc_store_rounds_fini(&bench->report.rounds);
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

/* Yardsticks that measure nothing stay without a name. */
static const char *const yardstick_names[UC_STORE_PHASE_COUNT] = {
        [UC_STORE_MEMCPY_COLD] = "memcpy_cold",
        [UC_STORE_MEMCPY_REUSED] = "memcpy_reused",
        [UC_STORE_NEW_FILES] = "direct_new_files",
        [UC_STORE_ONE_FILE] = "direct_one_file",
        [UC_STORE_OVERWRITE] = "direct_overwrite",
        [UC_STORE_READ] = "direct_read",
};

static void
add_yardstick(struct sweeps *sweeps, enum uc_store_phase_idx idx, uint64_t ns)
{
    const struct uc_store_options *options = sweeps->options;
    struct uc_store_phase *phase = &sweeps->bench.report.phases[idx];
    uint64_t bytes = options->blocks * options->block_bytes;

    phase->name = yardstick_names[idx];
    phase->ops += options->blocks;
    phase->bytes += bytes;
    phase->seconds += (double)ns / 1e9;
    sweeps->passes[idx].bytes += bytes;
    sweeps->passes[idx].elapsed_ns += ns;
}

/* What one thread copies: into as much memory as it comes from, and into as many buffers as are in flight. */
static void
copy_all(struct sweeps *sweeps)
{
    const struct uc_store_options *options = sweeps->options;
    struct uc_store_bench *bench = &sweeps->bench;
    uint64_t block_bytes = options->block_bytes;
    uint64_t depth = options->depth < options->blocks ? options->depth : options->blocks;
    uint64_t start_ns = uc_clock_now_ns();
    uint64_t middle_ns;

    for (uint64_t idx = 0; idx < options->blocks; idx++) {
        memcpy(bench->target + idx * block_bytes, bench->source + idx * block_bytes, block_bytes);
    }
    middle_ns = uc_clock_now_ns();
    for (uint64_t idx = 0; idx < options->blocks; idx++) {
        memcpy(bench->target + idx % depth * block_bytes, bench->source + idx * block_bytes,
                block_bytes);
    }
    add_yardstick(sweeps, UC_STORE_MEMCPY_COLD, middle_ns - start_ns);
    add_yardstick(sweeps, UC_STORE_MEMCPY_REUSED, uc_clock_now_ns() - middle_ns);
}

/* A medium that cannot be measured costs the ratio, unless it was asked for by name. */
static enum uc_status
measure_medium(struct sweeps *sweeps, enum uc_store_phase_idx idx, enum uc_file_yardstick_kind kind)
{
    uint64_t ns = 0;
    enum uc_status status;

    if (!sweeps->has_medium) {
        return UC_OK;
    }
    uc_file_yardstick_settle(&sweeps->medium);
    status = uc_file_yardstick_run(&sweeps->medium, kind, &ns);
    if (status == UC_OK) {
        add_yardstick(sweeps, idx, ns);
        return UC_OK;
    }
    sweeps->has_medium = false;
    if (sweeps->options->direct_dir == NULL) {
        uc_log_warn("store: no limit of the medium: %s", uc_last_error());
        return UC_OK;
    }
    return status;
}

static enum uc_status
bound_puts(struct sweeps *sweeps)
{
    enum uc_status status;

    copy_all(sweeps);
    status = measure_medium(sweeps, UC_STORE_NEW_FILES, UC_FILE_NEW_FILES);
    if (status == UC_OK) {
        status = measure_medium(sweeps, UC_STORE_ONE_FILE, UC_FILE_ONE_FILE);
    }
    return status == UC_OK ? measure_medium(sweeps, UC_STORE_OVERWRITE, UC_FILE_OVERWRITE) : status;
}

/* Behind those of the puts, which make the file. */
static enum uc_status
bound_gets(struct sweeps *sweeps)
{
    copy_all(sweeps);
    return measure_medium(sweeps, UC_STORE_READ, UC_FILE_READ);
}

/* New blocks in every round: a put of what is there already would move nothing. */
static enum uc_status
put_all(struct sweeps *sweeps)
{
    struct uc_store_bench *bench = &sweeps->bench;
    uint64_t blocks = bench->options->blocks;
    enum uc_status status = UC_OK;

    uc_file_yardstick_settle(&sweeps->medium);
    bench->first_id = bench->next_block;
    for (uint64_t first = 0; first < blocks && status == UC_OK; first += UC_STORE_WINDOW_MAX) {
        status = uc_store_window_put(bench, first);
    }
    return status;
}

static enum uc_status
get_all(struct sweeps *sweeps)
{
    struct uc_store_bench *bench = &sweeps->bench;
    uint64_t blocks = bench->options->blocks;
    enum uc_status status = UC_OK;

    /* What a failed load leaves behind must not look like the block. */
    memset(bench->target, 0xA5, blocks * bench->options->block_bytes);
    memset(bench->got, 0, blocks);
    uc_file_yardstick_settle(&sweeps->medium);
    for (uint64_t first = 0; first < blocks && status == UC_OK; first += UC_STORE_WINDOW_MAX) {
        status = uc_store_window_get(bench, first);
    }
    if (status == UC_OK) {
        check_target(bench);
    }
    return status;
}

static double
rate(uint64_t bytes, uint64_t ns)
{
    return ns > 0 ? (double)bytes / (double)ns : 0;
}

/* @param[in] put, get  as they were before the round */
static enum uc_status
note_round(
        struct sweeps *sweeps, const struct uc_store_moves *put, const struct uc_store_moves *get)
{
    const struct uc_store_bench *bench = &sweeps->bench;
    struct uc_store_round round;

    for (size_t idx = 0; idx < UC_STORE_PHASE_COUNT; idx++) {
        round.rates[idx] = rate(sweeps->passes[idx].bytes, sweeps->passes[idx].elapsed_ns);
    }
    round.rates[UC_STORE_PUT] =
            rate(bench->put.bytes - put->bytes, bench->put.elapsed_ns - put->elapsed_ns);
    round.rates[UC_STORE_GET] =
            rate(bench->get.bytes - get->bytes, bench->get.elapsed_ns - get->elapsed_ns);
    return uc_store_rounds_add(&sweeps->bench.report.rounds, &round);
}

/*
 * Each direction and what bounds it follow each other: a machine whose pace changes changes both. Which of them is first
 * alternates, as the first one meets a medium that has rested.
 */
static enum uc_status
run_round(struct sweeps *sweeps)
{
    static enum uc_status (*const steps[2][4])(struct sweeps * sweeps) = {
            {put_all, bound_puts, get_all, bound_gets},
            {bound_puts, put_all, bound_gets, get_all},
    };
    struct uc_store_bench *bench = &sweeps->bench;
    struct uc_store_moves put = bench->put;
    struct uc_store_moves get = bench->get;
    enum uc_status status = UC_OK;

    memset(sweeps->passes, 0, sizeof(sweeps->passes));
    for (size_t idx = 0; idx < 4 && status == UC_OK; idx++) {
        status = steps[bench->report.rounds.count % 2][idx](sweeps);
    }
    uc_file_yardstick_clear(&sweeps->medium);
    bench->next_block += bench->options->blocks;
    return status == UC_OK ? note_round(sweeps, &put, &get) : status;
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

/* What does not work counts, whenever it happens; what was measured is forgotten. */
static enum uc_status
warm_up(struct sweeps *sweeps)
{
    struct uc_store_bench *bench = &sweeps->bench;
    enum uc_status status = UC_OK;

    for (uint64_t idx = 0; idx < sweeps->options->warm_up && status == UC_OK; idx++) {
        status = put_all(sweeps);
        if (status == UC_OK) {
            status = get_all(sweeps);
        }
        bench->next_block += sweeps->options->blocks;
    }
    uc_latency_fini(&bench->put.latency);
    uc_latency_fini(&bench->get.latency);
    bench->put = (struct uc_store_moves){0};
    bench->get = (struct uc_store_moves){0};
    bench->report.verified_bytes = 0;
    return status;
}

static enum uc_status
run_sweeps(struct sweeps *sweeps, struct uc_store_report *report_out)
{
    struct uc_store_bench *bench = &sweeps->bench;
    enum uc_status status = warm_up(sweeps);
    uint64_t end_ns = uc_clock_now_ns() + sweeps->options->seconds * 1000000000;

    if (status != UC_OK) {
        return status;
    }
    do {
        status = run_round(sweeps);
    } while (status == UC_OK &&
             (bench->report.rounds.count < sweeps->options->rounds || uc_clock_now_ns() < end_ns));
    if (status != UC_OK) {
        return status;
    }

    bench->report.phases[UC_STORE_PUT] = phase_of("put", &bench->put);
    bench->report.phases[UC_STORE_GET] = phase_of("get", &bench->get);
    bench->report.is_fio = sweeps->medium.is_fio;
    *report_out = bench->report;
    bench->report.rounds = (struct uc_store_rounds){0};
    return UC_OK;
}

/*
 * Jobs that are in flight use the memory and the stores. They have their own deadlines, and those of a server that
 * was started here end with it.
 * @return whether everything may be taken down
 */
static bool
quiesce(struct sweeps *sweeps)
{
    struct uc_store_bench *bench = &sweeps->bench;
    uint64_t idle_ms = sweeps->options->stall_ms < DRAIN_MS ? sweeps->options->stall_ms : DRAIN_MS;

    if (uc_store_window_drain(bench, idle_ms)) {
        return true;
    }
    uc_replay_servers_kill(&sweeps->servers);
    return uc_store_window_drain(bench, idle_ms);
}

enum uc_status
uc_store_run(const struct uc_store_options *options, struct uc_store_report *report)
{
    struct sweeps sweeps = {.options = options, .bench = {.options = options, .next_job_id = 1}};
    char text[ERROR_BYTES] = "";
    enum uc_status close_status;
    enum uc_status status;

    sweeps.bench.got = calloc(options->blocks, 1);
    if (sweeps.bench.got == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "store: no memory for the flags of the blocks");
    }
    status = open_sweeps(&sweeps);
    if (status == UC_OK) {
        status = run_sweeps(&sweeps, report);
    }
    uc_file_yardstick_close(&sweeps.medium);
    if (status != UC_OK) {
        (void)snprintf(text, sizeof(text), "%s", uc_last_error());
        report->is_abandoned = !quiesce(&sweeps);
    }
    if (report->is_abandoned) {
        return uc_error(status, "%s; they never ended, so nothing is taken down in order", text);
    }

    close_status = close_sweeps(&sweeps);
    free(sweeps.bench.got);
    return status == UC_OK ? close_status : uc_error(status, "%s", text);
}
