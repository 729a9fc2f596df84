/* SPDX-License-Identifier: Apache-2.0 */

/* Answers the client's requests between turns of the fabric, as a server's fabric thread takes them. */

#include "tools/bench/fabric_server.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ucm/clock.h>
#include <ucm/log.h>

#include "net/slot_footer.h"
#include "tools/bench/fabric_control.h"
#include "tools/bench/fabric_streams.h"
#include "tools/bench/perftest.h"

enum {
    POLL_BUDGET = 128,
    FRAME_MS = 10000, /* for the rest of a frame that has begun */
    SLEEP_MS = 1000,
    PERFTEST_PORT_MIN = 20000,
    PERFTEST_PORTS = 10000,
};

struct server {
    const struct uc_fabric_bench_server_config *config;
    int control_fd;
    const struct uc_fabric_ops *ops;
    struct uc_fabric *fabric;
    struct uc_fabric_domain *domain;
    struct uc_fabric_region *region;
    struct uc_fabric_listener *listener;
    struct uc_fabric_endpoint *endpoint;
    struct uc_fabric_bench_slots slots;
    struct uc_fabric_bench_memory memory;
    bool owns_memory;
    bool reads; /* the client does */
    bool admitted;
    uint8_t nonce[UC_FABRIC_NONCE_BYTES];
    struct uc_fabric_streams streams;
    int stream_listener_fd;
    pid_t perftest_pid; /* 0 = none */
};

static enum uc_status
on_admit(void *context, const uint8_t nonce[UC_FABRIC_NONCE_BYTES],
        struct uc_fabric_admission *admission_out)
{
    struct server *server = context;

    if (server->admitted || memcmp(nonce, server->nonce, UC_FABRIC_NONCE_BYTES) != 0) {
        return UC_ERR_PERMISSION_DENIED;
    }

    server->admitted = true;
    admission_out->domain = server->domain;
    admission_out->access = server->reads ? UC_FABRIC_READ_ONLY : UC_FABRIC_READ_WRITE;
    admission_out->peer = server;
    return UC_OK;
}

static void
on_connected(void *context, void *peer, struct uc_fabric_endpoint *endpoint)
{
    (void)peer;
    ((struct server *)context)->endpoint = endpoint;
}

static void
on_gone(void *context, void *peer)
{
    (void)peer;
    ((struct server *)context)->endpoint = NULL;
}

/* What a real server looks at: that the range lies in one slot, and whose generation it is. */
static enum uc_status
on_hold(void *context, void *peer, uint32_t region_idx, uint64_t offset_bytes,
        uint64_t length_bytes, uint64_t generation, enum uc_fabric_opcode opcode)
{
    const struct server *server = context;
    uint64_t idx = offset_bytes / server->slots.slot_bytes;
    uint64_t within = offset_bytes % server->slots.slot_bytes;

    (void)peer;
    (void)opcode;
    if (region_idx != 0 || idx >= server->slots.count ||
            length_bytes > server->slots.slot_bytes - within) {
        return UC_ERR_INVALID_PARAM;
    }
    return generation == 0 || generation == uc_fabric_bench_slot_generation(idx) ? UC_OK
                                                                                 : UC_ERR_NOT_FOUND;
}

static void
on_release(void *context, void *peer, uint32_t region_idx, uint64_t offset_bytes)
{
    (void)context;
    (void)peer;
    (void)region_idx;
    (void)offset_bytes;
}

static const struct uc_fabric_target_ops target_ops = {
        .admit = on_admit,
        .connected = on_connected,
        .gone = on_gone,
        .hold = on_hold,
        .release = on_release,
};

/* The numbers of a client's set-up, by subtraction and with bounds. */
static enum uc_status
plan_slots(struct server *server, const struct uc_fabric_control *request)
{
    uint64_t block_bytes = request->numbers[1];
    uint64_t count = request->numbers[2];

    if (server->fabric != NULL) {
        return uc_error(UC_ERR_INVALID_PARAM, "this server is set up already");
    }
    if (block_bytes < 8 || block_bytes > 1u << 30 || count < 1 || request->numbers[0] > 1 ||
            request->numbers[3] > UC_FABRIC_BENCH_CONNECTIONS_MAX) {
        return uc_error(UC_ERR_INVALID_PARAM, "a number of the set-up is out of bounds");
    }
    server->slots = uc_fabric_bench_slots_plan(block_bytes, block_bytes, 1);
    if (count > server->config->memory_max_bytes / server->slots.slot_bytes) {
        return uc_error(UC_ERR_NO_SPACE,
                "%" PRIu64 " slots of %" PRIu64 " bytes are more than the %" PRIu64
                " bytes that this server gives (its --working-set)",
                count, server->slots.slot_bytes, server->config->memory_max_bytes);
    }

    server->slots.count = count;
    server->reads = request->numbers[0] == 0;
    return UC_OK;
}

static enum uc_status
take_memory(struct server *server)
{
    const struct uc_fabric_bench_memory *given = server->config->memory;
    uint64_t bytes = server->slots.count * server->slots.slot_bytes;
    enum uc_status status = UC_OK;

    if (given != NULL && given->bytes == bytes) {
        server->memory = *given;
    } else {
        status = uc_fabric_bench_memory_create(bytes, &server->memory);
        server->owns_memory = status == UC_OK;
    }
    if (status == UC_OK) {
        uc_fabric_bench_slots_fill(&server->slots, server->memory.base, server->reads);
    }
    return status;
}

static enum uc_status
open_fabric(struct server *server, const char *name, uint32_t connections)
{
    struct uc_fabric_config config = {.address = server->config->address,
            .device = server->config->device,
            .connections = connections};
    struct uc_fabric_listen listen = {
            .address = server->config->address, .ops = &target_ops, .context = server};
    struct uc_fabric_memory range = uc_fabric_bench_memory_range(&server->memory);
    enum uc_status status = uc_fabric_find(name, &server->ops);

    if (status == UC_OK) {
        status = server->ops->open(&config, &server->fabric);
    }
    if (status == UC_OK) {
        status = server->ops->domain_open(server->fabric, &server->domain);
    }
    if (status == UC_OK) {
        status = server->ops->region_register(
                server->domain, &range, 0, UC_FABRIC_READ_WRITE, &server->region);
    }
    if (status == UC_OK) {
        status = server->ops->listen(server->fabric, &listen, &server->listener);
    }
    return status;
}

static enum uc_status
set_up(struct server *server, const struct uc_fabric_control *request,
        struct uc_fabric_control *answer)
{
    struct uc_fabric_region_key key = {.length_bytes = 0};
    const char *address = NULL;
    enum uc_status status = plan_slots(server, request);

    if (status == UC_OK) {
        status = take_memory(server);
    }
    if (status == UC_OK) {
        status = open_fabric(server, request->text, (uint32_t)request->numbers[3]);
    }
    if (status == UC_OK && getrandom(server->nonce, UC_FABRIC_NONCE_BYTES, 0) < 0) {
        status = uc_log_errno(errno, "fabric: getrandom");
    }
    if (status != UC_OK) {
        return status;
    }

    if (server->ops->listener_address != NULL) {
        address = server->ops->listener_address(server->listener);
    }
    if (address != NULL) {
        (void)snprintf(answer->text, sizeof(answer->text), "%s", address);
    }
    server->ops->region_key(server->region, &key);
    answer->numbers[0] = server->ops->listener_port(server->listener);
    memcpy(&answer->numbers[1], server->nonce, UC_FABRIC_NONCE_BYTES);
    answer->numbers[3] = key.address;
    answer->numbers[4] = key.key;
    answer->numbers[5] = key.length_bytes;
    return UC_OK;
}

static uint64_t
cpu_ns(void)
{
    struct rusage usage = {.ru_utime = {.tv_sec = 0}};

    (void)getrusage(RUSAGE_SELF, &usage);
    return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000000 +
           (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000;
}

static enum uc_status
listen_for_streams(struct server *server, struct uc_fabric_control *answer)
{
    uint16_t port = 0;
    enum uc_status status = uc_fabric_streams_listen(
            server->config->address, 0, &server->stream_listener_fd, &port);

    answer->numbers[0] = port;
    server->streams.base = server->memory.base;
    server->streams.block_bytes = server->slots.block_bytes;
    server->streams.stride = server->slots.slot_bytes;
    server->streams.block_count = server->slots.count;
    return status;
}

static void
reap_perftest(struct server *server)
{
    if (server->perftest_pid != 0) {
        (void)kill(server->perftest_pid, SIGKILL);
        (void)waitpid(server->perftest_pid, NULL, 0);
        server->perftest_pid = 0;
    }
}

static enum uc_status
start_perftest(struct server *server, const struct uc_fabric_control *request,
        struct uc_fabric_control *answer)
{
    struct uc_perftest perftest = {
            .tool = (enum uc_perftest_tool)(request->numbers[0] < UC_PERFTEST_TOOL_COUNT
                                                    ? request->numbers[0]
                                                    : UC_PERFTEST_TOOL_COUNT),
            .device = server->config->device,
            .block_bytes = request->numbers[1],
            .depth = request->numbers[2],
            .queue_pairs = request->numbers[3],
            .operations = request->numbers[4],
    };
    uint16_t random = 0;
    enum uc_status status = uc_perftest_validate(&perftest);

    if (status != UC_OK) {
        return status;
    }
    if (getrandom(&random, sizeof(random), 0) < 0) {
        return uc_log_errno(errno, "fabric: getrandom");
    }
    /* The program wants a number and cannot be asked for a free one; the next run takes another. */
    perftest.port = (uint16_t)(PERFTEST_PORT_MIN + random % PERFTEST_PORTS);
    answer->numbers[0] = perftest.port;
    reap_perftest(server); /* one that met no client */
    return uc_perftest_start_server(&perftest, &server->perftest_pid);
}

/* Streams are moved after the answer, so that both sides start together. */
static enum uc_status
move_streams(struct server *server, uint64_t blocks, bool spin)
{
    if (server->streams.count == 0) {
        return uc_error(UC_ERR_INVALID_PARAM, "there are no streams to move blocks over");
    }
    return uc_fabric_streams_move(&server->streams, blocks, server->reads, spin);
}

static enum uc_status
handle(struct server *server, const struct uc_fabric_control *request,
        struct uc_fabric_control *answer)
{
    if (request->type != UC_FABRIC_CONTROL_SETUP && server->listener == NULL) {
        return uc_error(UC_ERR_INVALID_PARAM, "the server is not set up");
    }

    switch (request->type) {
    case UC_FABRIC_CONTROL_SETUP:
        return set_up(server, request, answer);
    case UC_FABRIC_CONTROL_CPU:
        answer->numbers[0] = cpu_ns();
        return UC_OK;
    case UC_FABRIC_CONTROL_STREAMS:
        return server->streams.base == NULL
                       ? listen_for_streams(server, answer)
                       : uc_error(UC_ERR_INVALID_PARAM, "there are streams already");
    case UC_FABRIC_CONTROL_MOVE:
        return UC_OK;
    case UC_FABRIC_CONTROL_PERFTEST:
        return start_perftest(server, request, answer);
    case UC_FABRIC_CONTROL_CHECK:
        answer->numbers[0] = uc_fabric_bench_slots_check(
                &server->slots, server->memory.base, &answer->numbers[1]);
        return UC_OK;
    case UC_FABRIC_CONTROL_FAILED:
    case UC_FABRIC_CONTROL_END_:
        break;
    }
    return uc_error(UC_ERR_INVALID_PARAM, "the client sent what is no request");
}

/* What follows the answer. */
static enum uc_status
follow_up(struct server *server, const struct uc_fabric_control *request)
{
    if (request->type == UC_FABRIC_CONTROL_MOVE) {
        return move_streams(server, request->numbers[0], request->numbers[1] != 0);
    }
    if (request->type == UC_FABRIC_CONTROL_STREAMS) {
        return uc_fabric_streams_accept(
                &server->streams, server->stream_listener_fd, request->numbers[0]);
    }
    return UC_OK;
}

/* @retval UC_ERR_UNHEALTHY the client has left */
static enum uc_status
serve_request(struct server *server)
{
    struct uc_fabric_control answer = {.type = UC_FABRIC_CONTROL_FAILED};
    struct uc_fabric_control request = {.type = UC_FABRIC_CONTROL_END_};
    enum uc_status outcome;
    enum uc_status status = uc_fabric_control_receive(server->control_fd, FRAME_MS, &request);

    if (status != UC_OK) {
        return status;
    }
    outcome = handle(server, &request, &answer);
    if (outcome == UC_OK) {
        answer.type = request.type;
    } else {
        answer.numbers[0] = (uint64_t)(int64_t)outcome;
        (void)snprintf(answer.text, sizeof(answer.text), "%s", uc_last_error());
    }
    status = uc_fabric_control_send(server->control_fd, &answer);
    return status == UC_OK && outcome == UC_OK ? follow_up(server, &request) : status;
}

/* Sleep until there is work. @return whether the client has asked for something */
static bool
wait_for_work(struct server *server)
{
    struct pollfd pollfds[2] = {{.fd = server->control_fd, .events = POLLIN}};
    nfds_t count = 1;
    int timeout_ms = -1;

    if (server->fabric != NULL) {
        uint64_t deadline_ms = server->ops->next_deadline_ms(server->fabric);
        uint64_t now_ms = uc_clock_now_ns() / 1000000;

        if (!server->ops->arm(server->fabric)) {
            return false;
        }
        if (deadline_ms != UC_TIME_NEVER_MS) {
            uint64_t left_ms = deadline_ms > now_ms ? deadline_ms - now_ms : 0;

            timeout_ms = left_ms > SLEEP_MS ? SLEEP_MS : (int)left_ms;
        }
        pollfds[count++] =
                (struct pollfd){.fd = server->ops->event_fd(server->fabric), .events = POLLIN};
    }
    return poll(pollfds, count, timeout_ms) > 0 && pollfds[0].revents != 0;
}

static void
close_server(struct server *server)
{
    reap_perftest(server);
    uc_fabric_streams_close(&server->streams);
    if (server->stream_listener_fd >= 0) {
        (void)close(server->stream_listener_fd);
    }
    if (server->endpoint != NULL) {
        server->ops->disconnect(server->endpoint);
    }
    if (server->listener != NULL) {
        server->ops->listener_close(server->listener);
    }
    if (server->region != NULL) {
        server->ops->region_deregister(server->region);
    }
    if (server->domain != NULL) {
        server->ops->domain_close(server->domain);
    }
    if (server->fabric != NULL) {
        server->ops->close(server->fabric);
    }
    if (server->owns_memory) {
        uc_fabric_bench_memory_destroy(&server->memory);
    }
}

enum uc_status
uc_fabric_bench_server_run(const struct uc_fabric_bench_server_config *config, int control_fd)
{
    struct server server = {.config = config, .control_fd = control_fd, .stream_listener_fd = -1};
    enum uc_status status = UC_OK;

    while (status == UC_OK) {
        if (server.fabric != NULL && server.ops->poll(server.fabric, POLL_BUDGET) > 0) {
            continue;
        }
        if (wait_for_work(&server)) {
            status = serve_request(&server);
        }
    }
    close_server(&server);
    return status == UC_ERR_UNHEALTHY ? UC_OK : status;
}
