/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What only a device can show: that a fence holds while a peer streams WRITEs, that read-only endpoints
 * and foreign domains are kept out by the device, and what is left when a peer dies.
 *
 * Needs UCM_FABRIC_ADDRESS, an address of an RDMA interface. Skips (77) without one.
 */

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/softroce/device_sides.h"

enum {
    WATCH_MS = 300,
    FENCE_ROUNDS = 8,
    CHURN_ROUNDS = 300,
    EXIT_SKIP = 77,
};

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
    open_client();
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

/* What the kernel holds of a kind, "qp" or "mr"; -1 without the tool that tells. */
static int
resource_count(const char *kind, const char *mark)
{
    char command[128];
    char line[512];
    FILE *tool;
    int count = 0;

    (void)snprintf(command, sizeof(command),
            "PATH=$PATH:/usr/sbin:/sbin rdma resource show %s 2> /dev/null", kind);
    tool = popen(command, "r");
    if (tool == NULL) {
        return -1;
    }
    while (fgets(line, sizeof(line), tool) != NULL) {
        count += strstr(line, mark) != NULL;
    }
    return pclose(tool) == 0 ? count : -1;
}

static int
queue_pair_count(void)
{
    return resource_count("qp", "type RC");
}

/* Both sides are in this process, so each queue pair of the endpoint counts twice. */
START_TEST(an_endpoint_has_the_queue_pairs_that_were_asked_for)
{
    int wanted = connection_count() == 0 ? 1 : (int)connection_count();
    int before;

    open_target();
    before = queue_pair_count();
    if (before >= 0) {
        connect_client();
        ck_assert_int_eq(queue_pair_count() - before, 2 * wanted);
        verbs->disconnect(client.endpoint);
        client.endpoint = NULL;
        wait_until(target.gone == 1);
        ck_assert_int_eq(queue_pair_count(), before);
        ck_assert_uint_eq(target.admitted, 1); /* the nonce is spent once */
    }
    close_target();
}
END_TEST

/* SoftRoCE has neither way to a device's memory; a refusal says so and leaves nothing behind. */
START_TEST(device_memory_that_cannot_be_reached_is_refused_with_a_reason)
{
    int fd = memfd_create("no dma-buf", MFD_CLOEXEC);
    struct uc_fabric_memory device = {
            .length_bytes = REGION_BYTES, .kind = UC_MEMORY_CUDA, .fd = _i == 0 ? fd : -1};
    struct uc_fabric_region *region = NULL;
    int before;
    void *nowhere;

    ck_assert_int_ge(fd, 0);
    open_target();
    before = resource_count("mr", "mrn");
    nowhere = mmap(NULL, REGION_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(nowhere, MAP_FAILED);
    device.address = nowhere;
    ck_assert_int_eq(verbs->region_register(target.side.domain, &device, UINT32_MAX,
                             UC_FABRIC_READ_WRITE, &region),
            UC_ERR_UNSUPPORTED);
    ck_assert_ptr_null(region);
    ck_assert_ptr_nonnull(strstr(uc_last_error(), _i == 0 ? "dma-buf" : "peer memory"));
    (void)munmap(nowhere, REGION_BYTES);
    (void)close(fd);
    ck_assert_int_eq(resource_count("mr", "mrn"), before);
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
    tcase_add_test(cases, an_endpoint_has_the_queue_pairs_that_were_asked_for);
    tcase_add_loop_test(cases, device_memory_that_cannot_be_reached_is_refused_with_a_reason, 0, 2);
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
