/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What only a device can show: that a fence holds while a peer streams WRITEs, that read-only endpoints
 * and foreign domains are kept out by the device, and what is left when a peer dies. The peer is this
 * program itself, started again with "stream" as its first argument: on SoftRoCE's loopback path the
 * poster moves the bytes, so somebody else has to do the cutting.
 *
 * Needs UCM_FABRIC_ADDRESS, an address of an RDMA interface. Skips (77) without one.
 */

#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <check.h>

#include <ucm/clock.h>

#include "net/fabric.h"

enum {
    REGION_BYTES = 1 << 20,
    BLOCK_BYTES = 64 * 1024,
    STREAM_DEPTH = 16,
    WAIT_MS = 20000,
    WATCH_MS = 300,
    FENCE_ROUNDS = 8,
    CHURN_ROUNDS = 300,
    EXIT_SKIP = 77,
    EXIT_FLUSHED = 3, /* of the streaming peer: its endpoint broke */
    PATTERN_PEER = 0xc5,
    PATTERN_OWNER = 0x11,
};

static const char nonce_text[UC_FABRIC_NONCE_BYTES + 1] = "sixteen bytes ok";
static const char *server_address;
static const char *program;
static const struct uc_fabric_ops *verbs;

/* One side of a connection: a fabric, a domain, a registered region. */
struct side {
    struct uc_fabric *fabric;
    struct uc_fabric_domain *domain;
    struct uc_fabric_region *region;
    uint8_t *memory;
    struct uc_fabric_region_key key;
};

static struct {
    struct side side;
    struct uc_fabric_listener *listener;
    struct uc_fabric_domain *admit_to; /* NULL: side.domain */
    enum uc_fabric_access access;
    enum uc_status answer;
    struct uc_fabric_endpoint *endpoint;
    size_t admitted;
    size_t gone;
} target;

static struct {
    struct side side;
    struct uc_fabric_endpoint *endpoint;
    size_t told;
    enum uc_status state;
} client;

/* An operation that counts how often it was completed. */
struct job {
    struct uc_fabric_op op;
    struct uc_fabric_piece piece;
    unsigned done;
    enum uc_status status;
};

static uint64_t
now_ms(void)
{
    return uc_clock_now_ns() / 1000000;
}

static enum uc_status
side_open(struct side *side, uint16_t port, uint32_t region_idx)
{
    struct uc_fabric_config config = {.address = server_address, .port = port};
    enum uc_status status = verbs->open(&config, &side->fabric);

    if (status != UC_OK) {
        return status;
    }
    status = verbs->domain_open(side->fabric, &side->domain);
    if (status != UC_OK) {
        return status;
    }
    side->memory =
            mmap(NULL, REGION_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (side->memory == MAP_FAILED) {
        return UC_ERR_OUT_OF_MEMORY;
    }
    status = verbs->region_register(side->domain, side->memory, REGION_BYTES, region_idx,
            UC_FABRIC_READ_WRITE, &side->region);
    if (status == UC_OK) {
        verbs->region_key(side->region, &side->key);
    }
    return status;
}

static void
side_close(struct side *side)
{
    verbs->region_deregister(side->region);
    verbs->domain_close(side->domain);
    verbs->close(side->fabric);
    (void)munmap(side->memory, REGION_BYTES);
    memset(side, 0, sizeof(*side));
}

static enum uc_status
on_admit(void *context, const uint8_t nonce[UC_FABRIC_NONCE_BYTES],
        struct uc_fabric_admission *admission_out)
{
    (void)context;
    if (target.answer != UC_OK) {
        return target.answer;
    }
    if (memcmp(nonce, nonce_text, UC_FABRIC_NONCE_BYTES) != 0) {
        return UC_ERR_PERMISSION_DENIED;
    }
    admission_out->domain = target.admit_to == NULL ? target.side.domain : target.admit_to;
    admission_out->access = target.access;
    admission_out->peer = &target;
    target.admitted++;
    return UC_OK;
}

static void
on_connected(void *context, void *peer, struct uc_fabric_endpoint *endpoint)
{
    (void)context;
    ck_assert_ptr_eq(peer, &target);
    target.endpoint = endpoint;
}

static void
on_gone(void *context, void *peer)
{
    (void)context;
    (void)peer;
    target.endpoint = NULL;
    target.gone++;
}

static const struct uc_fabric_target_ops target_ops = {
        .admit = on_admit,
        .connected = on_connected,
        .gone = on_gone,
};

static void
on_state(void *context, struct uc_fabric_endpoint *endpoint, enum uc_status status)
{
    (void)context;
    (void)endpoint;
    client.told++;
    client.state = status;
}

static void
on_job(struct uc_fabric_op *op, enum uc_status status)
{
    struct job *job = (struct job *)(void *)op;

    job->done++;
    job->status = status;
}

static void
poll_both(void)
{
    (void)verbs->poll(target.side.fabric, 64);
    if (client.side.fabric != NULL) {
        (void)verbs->poll(client.side.fabric, 64);
    }
}

#define wait_until(condition)                                      \
    do {                                                           \
        uint64_t end_ms = now_ms() + WAIT_MS;                      \
        while (!(condition)) {                                     \
            poll_both();                                           \
            ck_assert_msg(now_ms() < end_ms, "no %s", #condition); \
        }                                                          \
    } while (0)

static void
open_target(void)
{
    struct uc_fabric_listen listen = {.address = server_address, .ops = &target_ops};

    memset(&target, 0, sizeof(target));
    memset(&client, 0, sizeof(client));
    target.access = UC_FABRIC_READ_WRITE;
    ck_assert_int_eq(side_open(&target.side, 0, 0), UC_OK);
    ck_assert_int_eq(verbs->listen(target.side.fabric, &listen, &target.listener), UC_OK);
}

static void
close_target(void)
{
    verbs->disconnect(client.endpoint);
    verbs->disconnect(target.endpoint);
    verbs->listener_close(target.listener);
    if (client.side.fabric != NULL) {
        side_close(&client.side);
    }
    side_close(&target.side);
}

static void
start_connect(const char *nonce)
{
    struct uc_fabric_connect connect = {
            .address = server_address,
            .port = verbs->listener_port(target.listener),
            .nonce = (const uint8_t *)nonce,
            .regions = &target.side.key,
            .region_count = 1,
            .timeout_ms = WAIT_MS,
            .on_state = on_state,
    };

    client.told = 0;
    ck_assert_int_eq(verbs->connect(client.side.domain, &connect, &client.endpoint), UC_OK);
}

static void
connect_client(void)
{
    if (client.side.fabric == NULL) {
        ck_assert_int_eq(
                side_open(&client.side, verbs->listener_port(target.listener), UINT32_MAX), UC_OK);
    }
    start_connect(nonce_text);
    wait_until(client.told > 0);
    ck_assert_int_eq(client.state, UC_OK);
    ck_assert_ptr_nonnull(target.endpoint);
}

static enum uc_status
post_job(struct job *job, enum uc_fabric_opcode opcode, uint64_t offset, uint64_t length)
{
    *job = (struct job){
            .op = {.opcode = opcode, .offset_bytes = offset, .on_done = on_job},
            .piece = {.address = client.side.memory,
                    .length_bytes = length,
                    .region = client.side.region},
    };
    if (opcode != UC_FABRIC_FLUSH) {
        job->op.pieces = &job->piece;
        job->op.piece_count = 1;
    }
    return verbs->post(client.endpoint, &job->op);
}

static bool
memory_is(const uint8_t *memory, uint8_t value)
{
    return memory[0] == value && memcmp(memory, memory + 1, REGION_BYTES - 1) == 0;
}

/* The peer's side: one endpoint that writes its pattern over the whole region until it breaks. */

static struct job stream_jobs[STREAM_DEPTH];
static struct uc_fabric_endpoint *stream_endpoint;
static bool stream_ended;

static void
stream_post(struct job *job)
{
    static uint64_t offset;

    job->op.offset_bytes = offset;
    offset = (offset + BLOCK_BYTES) % REGION_BYTES;
    if (verbs->post(stream_endpoint, &job->op) != UC_OK) {
        stream_ended = true;
    }
}

static void
on_stream_job(struct uc_fabric_op *op, enum uc_status status)
{
    if (status == UC_OK && !stream_ended) {
        stream_post((struct job *)(void *)op);
    } else {
        stream_ended = true;
    }
}

static void
on_stream_state(void *context, struct uc_fabric_endpoint *endpoint, enum uc_status status)
{
    (void)context;
    (void)endpoint;
    if (status != UC_OK) {
        stream_ended = true;
    }
}

/* Arguments: port, then address and key of the region. */
static int
stream(char **arguments)
{
    struct side side;
    struct uc_fabric_region_key key = {
            .address = strtoull(arguments[1], NULL, 10),
            .key = strtoull(arguments[2], NULL, 10),
            .length_bytes = REGION_BYTES,
    };
    struct uc_fabric_connect connect = {
            .address = server_address,
            .port = (uint16_t)strtoul(arguments[0], NULL, 10),
            .nonce = (const uint8_t *)nonce_text,
            .regions = &key,
            .region_count = 1,
            .timeout_ms = WAIT_MS,
            .on_state = on_stream_state,
    };

    if (side_open(&side, connect.port, UINT32_MAX) != UC_OK ||
            verbs->connect(side.domain, &connect, &stream_endpoint) != UC_OK) {
        (void)fprintf(stderr, "stream: %s\n", uc_last_error());
        return 1;
    }
    memset(side.memory, PATTERN_PEER, REGION_BYTES);
    for (size_t idx = 0; idx < STREAM_DEPTH; idx++) {
        struct job *job = &stream_jobs[idx];

        job->piece = (struct uc_fabric_piece){side.memory, BLOCK_BYTES, side.region};
        job->op = (struct uc_fabric_op){.opcode = UC_FABRIC_WRITE,
                .pieces = &job->piece,
                .piece_count = 1,
                .on_done = on_stream_job};
        stream_post(job);
    }
    while (!stream_ended) {
        (void)verbs->poll(side.fabric, 64);
    }
    verbs->disconnect(stream_endpoint);
    side_close(&side);
    return EXIT_FLUSHED;
}

static pid_t
spawn_stream(void)
{
    char *arguments[] = {NULL, NULL, NULL, NULL, NULL, NULL};
    char texts[3][32];
    char name[] = "stream";
    char *path = strdup(program);
    pid_t pid = 0;

    (void)snprintf(texts[0], sizeof(texts[0]), "%u", verbs->listener_port(target.listener));
    (void)snprintf(texts[1], sizeof(texts[1]), "%" PRIu64, target.side.key.address);
    (void)snprintf(texts[2], sizeof(texts[2]), "%" PRIu64, target.side.key.key);
    arguments[0] = path;
    arguments[1] = name;
    for (size_t idx = 0; idx < 3; idx++) {
        arguments[2 + idx] = texts[idx];
    }
    ck_assert_int_eq(posix_spawn(&pid, program, NULL, NULL, arguments, environ), 0);
    free(path);
    return pid;
}

static int
reap(pid_t pid)
{
    int status = 0;
    uint64_t end_ms = now_ms() + WAIT_MS;

    while (waitpid(pid, &status, WNOHANG) == 0) {
        poll_both();
        ck_assert_msg(now_ms() < end_ms, "the peer does not end");
    }
    return status;
}

/* The peer writes: byte `offset` changed. */
static void
wait_for_write(size_t offset)
{
    const volatile uint8_t *byte = &target.side.memory[offset];

    wait_until(*byte == PATTERN_PEER);
}

static void
expect_silence(void)
{
    uint64_t end_ms = now_ms() + WATCH_MS;

    do {
        ck_assert(memory_is(target.side.memory, PATTERN_OWNER));
    } while (now_ms() < end_ms);
}

/* ARCHITECTURE.md §7: after fence has returned nothing lands, however hard the peer writes. */
START_TEST(nothing_lands_after_a_fence_of_a_writing_peer)
{
    int status;
    pid_t pid;

    open_target();
    pid = spawn_stream();
    wait_for_write((size_t)_i * BLOCK_BYTES + BLOCK_BYTES / 2);

    verbs->fence(target.endpoint);
    memset(target.side.memory, PATTERN_OWNER, REGION_BYTES);
    expect_silence();

    status = reap(pid);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_FLUSHED);
    ck_assert_uint_eq(target.gone, 0);
    ck_assert(memory_is(target.side.memory, PATTERN_OWNER));
    close_target();
}
END_TEST

/* A stopped client continues where it was: what it had posted must not land in a reused slot. */
START_TEST(nothing_lands_when_a_stopped_peer_continues_after_the_fence)
{
    int status;
    pid_t pid;

    open_target();
    pid = spawn_stream();
    wait_for_write(REGION_BYTES / 2);
    ck_assert_int_eq(kill(pid, SIGSTOP), 0);

    verbs->fence(target.endpoint);
    memset(target.side.memory, PATTERN_OWNER, REGION_BYTES);
    ck_assert_int_eq(kill(pid, SIGCONT), 0);
    expect_silence();

    status = reap(pid);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_FLUSHED);
    ck_assert(memory_is(target.side.memory, PATTERN_OWNER));
    close_target();
}
END_TEST

START_TEST(a_killed_peer_is_gone_and_writes_no_more)
{
    int status;
    pid_t pid;

    open_target();
    pid = spawn_stream();
    wait_for_write(REGION_BYTES / 2);
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    status = reap(pid);
    ck_assert(WIFSIGNALED(status));

    wait_until(target.gone == 1);
    memset(target.side.memory, PATTERN_OWNER, REGION_BYTES);
    expect_silence();
    ck_assert_uint_eq(target.gone, 1);
    close_target();
}
END_TEST

/* ARCHITECTURE.md §3: `ro` sessions get queue pairs without remote write. */
START_TEST(a_read_only_endpoint_reads_and_cannot_write)
{
    struct job job;

    open_target();
    target.access = UC_FABRIC_READ_ONLY;
    memset(target.side.memory, PATTERN_OWNER, REGION_BYTES);
    connect_client();
    ck_assert_int_eq(post_job(&job, UC_FABRIC_READ, 0, REGION_BYTES), UC_OK);
    wait_until(job.done == 1);
    ck_assert_int_eq(job.status, UC_OK);
    ck_assert(memory_is(client.side.memory, PATTERN_OWNER));

    memset(client.side.memory, PATTERN_PEER, REGION_BYTES);
    ck_assert_int_eq(post_job(&job, UC_FABRIC_WRITE, 0, BLOCK_BYTES), UC_OK);
    wait_until(client.told == 2);
    ck_assert_uint_eq(job.done, 1);
    ck_assert_int_eq(job.status, UC_ERR_PERMISSION_DENIED);
    ck_assert_int_eq(client.state, UC_ERR_UNHEALTHY);
    ck_assert(memory_is(target.side.memory, PATTERN_OWNER));
    ck_assert_int_eq(post_job(&job, UC_FABRIC_READ, 0, 8), UC_ERR_UNHEALTHY);
    close_target();
}
END_TEST

/* A key of one namespace is useless on an endpoint of another. */
START_TEST(a_foreign_domain_cannot_be_reached)
{
    struct uc_fabric_domain *other = NULL;
    struct job job;

    open_target();
    ck_assert_int_eq(verbs->domain_open(target.side.fabric, &other), UC_OK);
    target.admit_to = other;
    memset(target.side.memory, PATTERN_OWNER, REGION_BYTES);
    connect_client();
    memset(client.side.memory, PATTERN_PEER, REGION_BYTES);

    ck_assert_int_eq(post_job(&job, UC_FABRIC_WRITE, 0, BLOCK_BYTES), UC_OK);
    wait_until(client.told == 2);
    ck_assert_uint_eq(job.done, 1);
    ck_assert_int_ne(job.status, UC_OK);
    ck_assert(memory_is(target.side.memory, PATTERN_OWNER));

    verbs->disconnect(client.endpoint);
    client.endpoint = NULL;
    wait_until(target.gone == 1);
    verbs->domain_close(other);
    close_target();
}
END_TEST

START_TEST(a_refusal_carries_the_targets_status)
{
    open_target();
    ck_assert_int_eq(
            side_open(&client.side, verbs->listener_port(target.listener), UINT32_MAX), UC_OK);
    target.answer = UC_ERR_DRAINING;
    start_connect(nonce_text);
    wait_until(client.told == 1);
    ck_assert_int_eq(client.state, UC_ERR_DRAINING);
    verbs->disconnect(client.endpoint);

    target.answer = UC_OK;
    start_connect("another nonce...");
    wait_until(client.told == 1);
    ck_assert_int_eq(client.state, UC_ERR_PERMISSION_DENIED);
    ck_assert_uint_eq(target.admitted, 0);
    close_target();
}
END_TEST

/* Local memory is the caller's again when fence returns: nothing is read into it later. */
START_TEST(a_client_fence_returns_its_buffers)
{
    enum {
        JOBS = 200
    };
    static struct job jobs[JOBS];

    open_target();
    memset(target.side.memory, PATTERN_PEER, REGION_BYTES);
    connect_client();
    for (size_t idx = 0; idx < JOBS; idx++) {
        ck_assert_int_eq(post_job(&jobs[idx], UC_FABRIC_READ, 0, REGION_BYTES / 2), UC_OK);
    }
    verbs->fence(client.endpoint);
    memset(client.side.memory, PATTERN_OWNER, REGION_BYTES);
    for (size_t idx = 0; idx < JOBS; idx++) {
        ck_assert_uint_eq(jobs[idx].done, 1);
        ck_assert(jobs[idx].status == UC_OK || jobs[idx].status == UC_ERR_UNHEALTHY);
    }
    wait_until(target.gone == 1);
    ck_assert(memory_is(client.side.memory, PATTERN_OWNER));
    close_target();
}
END_TEST

/* Connections come and go without leaving anything behind that would stop the next one. */
START_TEST(many_connections_come_and_go)
{
    struct job job;

    open_target();
    for (size_t round = 1; round <= CHURN_ROUNDS; round++) {
        connect_client();
        ck_assert_int_eq(post_job(&job, UC_FABRIC_WRITE, 0, 4096), UC_OK);
        wait_until(job.done == 1);
        ck_assert_int_eq(job.status, UC_OK);
        verbs->disconnect(client.endpoint);
        client.endpoint = NULL;
        wait_until(target.gone == round);
    }
    close_target();
}
END_TEST

/*
 * Sleeps between completions the way a progress thread does; a lost wake-up shows as a timeout. On
 * SoftRoCE most operations are over when post returns: test_verbs_endpoint covers arming in any case.
 */
START_TEST(sleeping_on_the_descriptor_loses_no_completion)
{
    enum {
        ROUNDS = 50
    };
    struct pollfd wait = {.events = POLLIN};
    struct job job;

    open_target();
    connect_client();
    wait.fd = verbs->event_fd(client.side.fabric);
    for (size_t round = 0; round < ROUNDS; round++) {
        ck_assert_int_eq(post_job(&job, UC_FABRIC_READ, 0, REGION_BYTES), UC_OK);
        while (job.done == 0) {
            if (verbs->arm(client.side.fabric)) {
                ck_assert_int_eq(poll(&wait, 1, WAIT_MS), 1);
            }
            (void)verbs->poll(client.side.fabric, 1);
        }
        ck_assert_int_eq(job.status, UC_OK);
    }
    close_target();
}
END_TEST

int
main(int argument_count, char **arguments)
{
    SRunner *runner;
    Suite *suite;
    TCase *cases;
    int failed;

    program = arguments[0];
    server_address = getenv("UCM_FABRIC_ADDRESS");
    if (server_address == NULL) {
        (void)fprintf(stderr, "skipped: UCM_FABRIC_ADDRESS names no RDMA interface\n");
        return EXIT_SKIP;
    }
    if (uc_fabric_find("verbs", &verbs) != UC_OK) {
        (void)fprintf(stderr, "%s\n", uc_last_error());
        return EXIT_FAILURE;
    }
    if (argument_count == 5 && strcmp(arguments[1], "stream") == 0) {
        return stream(arguments + 2);
    }

    cases = tcase_create("device");
    suite = suite_create("verbs_device");
    tcase_add_test(cases, a_read_only_endpoint_reads_and_cannot_write);
    tcase_add_test(cases, a_foreign_domain_cannot_be_reached);
    tcase_add_test(cases, a_refusal_carries_the_targets_status);
    tcase_add_test(cases, a_client_fence_returns_its_buffers);
    tcase_add_test(cases, sleeping_on_the_descriptor_loses_no_completion);
    tcase_add_test(cases, many_connections_come_and_go);
    tcase_add_loop_test(cases, nothing_lands_after_a_fence_of_a_writing_peer, 0, FENCE_ROUNDS);
    tcase_add_test(cases, nothing_lands_when_a_stopped_peer_continues_after_the_fence);
    tcase_add_test(cases, a_killed_peer_is_gone_and_writes_no_more);
    suite_add_tcase(suite, cases);

    runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK); /* registered memory does not survive fork */
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
