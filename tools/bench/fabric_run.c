/* SPDX-License-Identifier: Apache-2.0 */

/* The rounds: fabric, limit and verified fabric in turns, so that what disturbs the machine meets all. */

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ucm/log.h>

#include "net/rpc/connection.h"
#include "tools/bench/fabric_bench.h"
#include "tools/bench/fabric_client.h"
#include "tools/bench/fabric_control.h"
#include "tools/bench/fabric_limit.h"
#include "tools/bench/fabric_server.h"

enum {
    SETUP_MS = 120000, /* the server fills its memory meanwhile */
    CALL_MS = 60000,
    DIAL_MS = 10000,
    HOST_BYTES = 256,
    WARM_UP_PART = 4, /* of a round */
    ALONE_PART = 4,
};

struct bench {
    const struct uc_fabric_bench_options *options;
    struct uc_fabric_bench_slots slots;
    struct uc_fabric_bench_memory server_memory; /* shared with a server of our own */
    char host[HOST_BYTES];
    char fabric_host[UC_FABRIC_CONTROL_TEXT_BYTES];
    int control_fd;
    pid_t server_pid; /* 0 = elsewhere */
    struct uc_fabric_client *client;
    struct uc_fabric_limit_config limit_config;
    struct uc_fabric_limit *limit; /* NULL = none */
    struct uc_latency latency;
    struct uc_latency alone;
    double plain[UC_FABRIC_BENCH_ROUNDS_MAX];
    double verified[UC_FABRIC_BENCH_ROUNDS_MAX];
    double limits[UC_FABRIC_BENCH_ROUNDS_MAX];
    uint64_t plain_ops;
    uint64_t plain_ns;
    uint64_t client_cpu_ns;
    uint64_t server_cpu_ns;
    struct uc_fabric_bench_report report;
};

/* Before anything else is open here: what is forked must hold nothing of the client's. */
static enum uc_status
fork_server(struct bench *bench)
{
    struct uc_fabric_bench_server_config config = {.address = bench->options->address,
            .device = bench->options->device,
            .memory_max_bytes = UINT64_MAX,
            .memory = &bench->server_memory};
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        return uc_log_errno(errno, "fabric: socketpair");
    }
    bench->server_pid = fork();
    if (bench->server_pid < 0) {
        (void)close(ends[0]);
        (void)close(ends[1]);
        bench->server_pid = 0;
        return uc_log_errno(errno, "fabric: fork");
    }
    if (bench->server_pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)close(ends[0]);
        exit(uc_fabric_bench_server_run(&config, ends[1]) == UC_OK ? EXIT_SUCCESS : EXIT_FAILURE);
    }

    (void)close(ends[1]);
    bench->control_fd = ends[0];
    (void)snprintf(bench->host, sizeof(bench->host), "%s", bench->options->address);
    return UC_OK;
}

static enum uc_status
dial_server(struct bench *bench)
{
    uint16_t port = 0;
    enum uc_status status = uc_rpc_parse_address(
            bench->options->connect, 0, bench->host, sizeof(bench->host), &port);

    return status == UC_OK ? uc_rpc_dial(bench->host, port, DIAL_MS, &bench->control_fd) : status;
}

static enum uc_status
reach_server(struct bench *bench)
{
    const struct uc_fabric_bench_options *options = bench->options;
    uint64_t bytes = options->working_set_bytes == 0 ? uc_fabric_bench_working_set_bytes()
                                                     : options->working_set_bytes;
    enum uc_status status;

    bench->slots = uc_fabric_bench_slots_plan(options->block_bytes, bytes, options->depth);
    if (options->connect != NULL) {
        return dial_server(bench);
    }
    status = uc_fabric_bench_memory_create(
            bench->slots.count * bench->slots.slot_bytes, &bench->server_memory);
    return status == UC_OK ? fork_server(bench) : status;
}

static enum uc_status
connect_client(struct bench *bench)
{
    const struct uc_fabric_bench_options *options = bench->options;
    struct uc_fabric_client_peer peer = {.address = bench->host};
    struct uc_fabric_control answer = {.type = UC_FABRIC_CONTROL_END_};
    struct uc_fabric_control request = {.type = UC_FABRIC_CONTROL_SETUP,
            .numbers = {strcmp(options->op, "read") == 0 ? 0 : 1, options->block_bytes,
                    bench->slots.count, options->connections}};
    enum uc_status status;

    (void)snprintf(request.text, sizeof(request.text), "%s", options->fabric);
    status = uc_fabric_control_call(bench->control_fd, &request, SETUP_MS, &answer);
    if (status != UC_OK) {
        return status;
    }
    if (answer.numbers[0] > UINT16_MAX) {
        return uc_error(UC_ERR_INVALID_PARAM, "the server named an impossible port");
    }
    if (answer.text[0] != '\0') {
        memcpy(bench->fabric_host, answer.text, sizeof(bench->fabric_host));
        peer.address = bench->fabric_host;
    }
    peer.port = (uint16_t)answer.numbers[0];
    memcpy(peer.nonce, &answer.numbers[1], sizeof(peer.nonce));
    peer.region = (struct uc_fabric_region_key){.address = answer.numbers[3],
            .key = answer.numbers[4],
            .length_bytes = answer.numbers[5]};
    return uc_fabric_client_connect(bench->client, &peer);
}

/* A limit that cannot be had is no failure: the report says why. */
static enum uc_status
open_limit(struct bench *bench)
{
    enum uc_status status;

    bench->limit_config = (struct uc_fabric_limit_config){.options = bench->options,
            .client = bench->client,
            .slots = &bench->slots,
            .server_memory = bench->server_pid != 0 ? &bench->server_memory : NULL,
            .host = bench->host,
            .control_fd = bench->control_fd};
    status = uc_fabric_limit_create(&bench->limit_config, &bench->limit);
    if (status == UC_ERR_UNSUPPORTED) {
        (void)snprintf(bench->report.limit.reason, sizeof(bench->report.limit.reason), "%s",
                uc_last_error());
        return UC_OK;
    }
    return status;
}

static enum uc_status
server_cpu_ns(struct bench *bench, uint64_t *ns_out)
{
    struct uc_fabric_control answer = {.type = UC_FABRIC_CONTROL_END_};
    struct uc_fabric_control request = {.type = UC_FABRIC_CONTROL_CPU};
    enum uc_status status = uc_fabric_control_call(bench->control_fd, &request, CALL_MS, &answer);

    if (status == UC_OK) {
        *ns_out = answer.numbers[0];
    }
    return status;
}

static double
rate(const struct uc_fabric_client_moved *moved)
{
    return moved->elapsed_ns == 0 ? 0 : (double)moved->bytes / (double)moved->elapsed_ns;
}

static enum uc_status
run_plain(struct bench *bench, uint64_t duration_ns, size_t at, uint64_t *ops_out)
{
    struct uc_fabric_client_round round = {.depth = bench->options->depth,
            .duration_ns = duration_ns,
            .ops_max = UINT64_MAX,
            .latency = &bench->latency};
    struct uc_fabric_client_moved moved = {.ops = 0};
    uint64_t before_ns = 0;
    uint64_t after_ns = 0;
    enum uc_status status = server_cpu_ns(bench, &before_ns);

    if (status == UC_OK) {
        status = uc_fabric_client_run(bench->client, &round, &moved);
    }
    if (status == UC_OK) {
        status = server_cpu_ns(bench, &after_ns);
    }
    if (status != UC_OK) {
        return status;
    }

    bench->plain[at] = rate(&moved);
    bench->plain_ops += moved.ops;
    bench->plain_ns += moved.elapsed_ns;
    bench->client_cpu_ns += moved.cpu_ns;
    bench->server_cpu_ns += after_ns - before_ns;
    bench->report.bytes += moved.bytes;
    *ops_out = moved.ops;
    return UC_OK;
}

static enum uc_status
run_round(struct bench *bench, uint64_t duration_ns, size_t at)
{
    struct uc_fabric_client_round round = {.depth = bench->options->depth,
            .duration_ns = duration_ns,
            .ops_max = UINT64_MAX,
            .verified = true};
    struct uc_fabric_client_round alone = {.depth = 1,
            .duration_ns = duration_ns / ALONE_PART,
            .ops_max = UINT64_MAX,
            .latency = &bench->alone};
    struct uc_fabric_client_moved moved = {.ops = 0};
    uint64_t ops = 0;
    enum uc_status status = run_plain(bench, duration_ns, at, &ops);

    if (status == UC_OK && bench->limit != NULL) {
        status = uc_fabric_limit_round(bench->limit, ops, &bench->limits[at]);
    }
    if (status == UC_OK) {
        status = uc_fabric_client_run(bench->client, &round, &moved);
        bench->verified[at] = rate(&moved);
    }
    return status == UC_OK ? uc_fabric_client_run(bench->client, &alone, &moved) : status;
}

static enum uc_status
run_rounds(struct bench *bench)
{
    const struct uc_fabric_bench_options *options = bench->options;
    uint64_t duration_ns = options->seconds * 1000000000 / options->rounds;
    struct uc_fabric_client_round warm_up = {.depth = options->depth,
            .duration_ns = duration_ns / WARM_UP_PART,
            .ops_max = UINT64_MAX};
    struct uc_fabric_client_moved moved = {.ops = 0};
    enum uc_status status = uc_fabric_client_run(bench->client, &warm_up, &moved);
    double ignored = 0;

    if (status == UC_OK && bench->limit != NULL) {
        status = uc_fabric_limit_round(bench->limit, moved.ops, &ignored);
    }
    for (size_t at = 0; at < options->rounds && status == UC_OK; at++) {
        status = run_round(bench, duration_ns, at);
    }
    if (status == UC_OK && bench->limit != NULL) {
        status = uc_fabric_limit_latency(bench->limit, &bench->report.limit_alone_us);
    }
    return status;
}

static int
compare(const void *left, const void *right)
{
    const double *a = left;
    const double *b = right;

    return (*a > *b) - (*a < *b);
}

static double
median(const double *values, size_t count)
{
    double sorted[UC_FABRIC_BENCH_ROUNDS_MAX];

    memcpy(sorted, values, count * sizeof(sorted[0]));
    qsort(sorted, count, sizeof(sorted[0]), compare);
    return count % 2 == 1 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
}

static double
median_ratio(const struct bench *bench, const double *values)
{
    double ratios[UC_FABRIC_BENCH_ROUNDS_MAX];
    size_t count = 0;

    for (size_t at = 0; at < bench->options->rounds; at++) {
        if (bench->limits[at] > 0) {
            ratios[count++] = values[at] / bench->limits[at];
        }
    }
    return count == 0 ? 0 : median(ratios, count);
}

static void
fill_rate(const struct bench *bench, const double *values, struct uc_fabric_bench_rate *rate_out)
{
    rate_out->measured = true;
    rate_out->gbytes_per_s = median(values, bench->options->rounds);
    rate_out->ratio = median_ratio(bench, values);
}

static struct uc_fabric_bench_latency
percentiles(struct uc_latency *latency)
{
    return (struct uc_fabric_bench_latency){.p50_us = uc_latency_percentile_us(latency, 50),
            .p99_us = uc_latency_percentile_us(latency, 99),
            .p999_us = uc_latency_percentile_us(latency, 99.9)};
}

static struct uc_fabric_bench_cpu
cpu_of(const struct bench *bench, uint64_t cpu_ns)
{
    return (struct uc_fabric_bench_cpu){
            .s_per_gbyte =
                    bench->report.bytes == 0 ? 0 : (double)cpu_ns / (double)bench->report.bytes,
            .share = bench->plain_ns == 0 ? 0 : (double)cpu_ns / (double)bench->plain_ns};
}

static void
fill_report(struct bench *bench)
{
    struct uc_fabric_bench_report *report = &bench->report;

    fill_rate(bench, bench->plain, &report->plain);
    fill_rate(bench, bench->verified, &report->verified);
    if (bench->limit != NULL) {
        fill_rate(bench, bench->limits, &report->limit);
        report->limit.name = uc_fabric_limit_name(bench->limit);
    }
    report->latency = percentiles(&bench->latency);
    report->alone = percentiles(&bench->alone);
    report->client = cpu_of(bench, bench->client_cpu_ns);
    report->server = cpu_of(bench, bench->server_cpu_ns);
    report->ops_per_s =
            bench->plain_ns == 0 ? 0 : (double)bench->plain_ops * 1e9 / (double)bench->plain_ns;
    report->rounds = bench->options->rounds;
    report->slots = bench->slots.count;
    report->working_set_bytes = bench->slots.count * bench->slots.block_bytes;
    report->cache_bytes = uc_fabric_bench_cache_bytes();
    report->fused = uc_fabric_client_is_fused(bench->client);
    report->mismatches += uc_fabric_client_mismatches(bench->client);
}

/* What the client wrote with checksums must be what lies there. */
static enum uc_status
check_written(struct bench *bench)
{
    struct uc_fabric_control answer = {.type = UC_FABRIC_CONTROL_END_};
    struct uc_fabric_control request = {.type = UC_FABRIC_CONTROL_CHECK};
    enum uc_status status;

    if (strcmp(bench->options->op, "write") != 0) {
        return UC_OK;
    }
    status = uc_fabric_control_call(bench->control_fd, &request, CALL_MS, &answer);
    if (status != UC_OK) {
        return status;
    }
    bench->report.mismatches += answer.numbers[0];
    return answer.numbers[1] > 0
                   ? UC_OK
                   : uc_error(UC_ERR_GENERAL, "no block that was written arrived at the server");
}

static enum uc_status
measure(struct bench *bench)
{
    enum uc_status status = reach_server(bench);

    if (status == UC_OK) {
        status = uc_fabric_client_create(bench->options, &bench->slots, &bench->client);
    }
    if (status == UC_OK) {
        status = connect_client(bench);
    }
    if (status == UC_OK) {
        status = open_limit(bench);
    }
    if (status == UC_OK) {
        status = run_rounds(bench);
    }
    if (status == UC_OK) {
        status = check_written(bench);
    }
    if (status == UC_OK) {
        fill_report(bench);
    }
    return status;
}

/* The server ends when its control connection does. */
static void
close_bench(struct bench *bench)
{
    uc_fabric_limit_destroy(bench->limit);
    uc_fabric_client_destroy(bench->client);
    if (bench->control_fd >= 0) {
        (void)close(bench->control_fd);
    }
    if (bench->server_pid != 0) {
        (void)waitpid(bench->server_pid, NULL, 0);
    }
    uc_fabric_bench_memory_destroy(&bench->server_memory);
    uc_latency_fini(&bench->latency);
    uc_latency_fini(&bench->alone);
}

enum uc_status
uc_fabric_bench_run(
        const struct uc_fabric_bench_options *options, struct uc_fabric_bench_report *report_out)
{
    struct bench *bench = calloc(1, sizeof(*bench));
    char text[512];
    enum uc_status status;

    if (bench == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "no memory for the measurement");
    }

    bench->options = options;
    bench->control_fd = -1;
    bench->server_memory.fd = -1;
    status = measure(bench);
    if (status == UC_OK) {
        *report_out = bench->report;
    }
    (void)snprintf(text, sizeof(text), "%s", uc_last_error());
    close_bench(bench);
    free(bench);
    return status == UC_OK ? UC_OK : uc_error(status, "%s", text); /* closing may have said more */
}
