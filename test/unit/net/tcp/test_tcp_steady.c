/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the data path costs once a connection is up: allocations (none), system calls (few per operation,
 * and none but the transport's own). Both sides on one thread, each a fabric of its own.
 */

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "net/tcp/tcp_fabric.h"
#include "test/fake/alloc_count.h"
#include "test/unit/net/tcp/rig.h"

enum {
    DEPTH = 32,
    WARM_UP_COUNT = 1024,
    OPERATION_COUNT = 4096,
};

/* The linker's --wrap: every such call of net/ comes here. */
ssize_t __real_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __real_recvmsg(int fd, struct msghdr *message, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *message, int flags);
int __real_epoll_wait(int fd, struct epoll_event *events, int count, int timeout_ms);
int __wrap_epoll_wait(int fd, struct epoll_event *events, int count, int timeout_ms);

static size_t send_count;
static size_t receive_count;
static size_t wait_count;

ssize_t
__wrap_sendmsg(int fd, const struct msghdr *message, int flags)
{
    send_count++;
    return __real_sendmsg(fd, message, flags);
}

ssize_t
__wrap_recvmsg(int fd, struct msghdr *message, int flags)
{
    receive_count++;
    return __real_recvmsg(fd, message, flags);
}

int
__wrap_epoll_wait(int fd, struct epoll_event *events, int count, int timeout_ms)
{
    wait_count++;
    return __real_epoll_wait(fd, events, count, timeout_ms);
}

struct job {
    struct uc_fabric_op op;
    struct uc_fabric_piece piece;
};

static struct uc_fabric *client;
static struct uc_fabric_domain *domain;
static struct uc_fabric_endpoint *endpoint;
static enum uc_status state;
static uint8_t memory[RIG_REGION_BYTES];
static struct job jobs[DEPTH];
static uint64_t done_count;
static uint64_t failed_count;
static uint64_t told_bytes;

static void
on_state(void *context, struct uc_fabric_endpoint *about, enum uc_status status)
{
    (void)context;
    (void)about;
    state = status;
}

static void
open_both(uint32_t connections)
{
    static const uint8_t nonce[UC_FABRIC_NONCE_BYTES] = {1};
    struct uc_fabric_config config = {.address = "127.0.0.1"};
    struct uc_fabric_region_key key = {.length_bytes = RIG_REGION_BYTES};
    struct uc_fabric_connect params = {.address = "127.0.0.1",
            .nonce = nonce,
            .regions = &key,
            .region_count = 1,
            .timeout_ms = 60000,
            .on_state = on_state};

    rig_open();
    done_count = 0;
    failed_count = 0;
    told_bytes = 0;
    state = UC_ERR_RETRY;
    config.connections = connections;
    params.port = rig.ops->listener_port(rig.listener);
    ck_assert_int_eq(rig.ops->open(&config, &client), UC_OK);
    ck_assert_int_eq(rig.ops->domain_open(client, &domain), UC_OK);
    ck_assert_int_eq(rig.ops->connect(domain, &params, &endpoint), UC_OK);
    while (state == UC_ERR_RETRY) {
        (void)rig.ops->poll(client, 64);
        (void)rig.ops->poll(rig.fabric, 64);
    }
    ck_assert_int_eq(state, UC_OK);
}

static void
close_both(void)
{
    rig.ops->disconnect(endpoint);
    rig.ops->domain_close(domain);
    rig.ops->close(client);
    rig_close();
}

static void
on_done(struct uc_fabric_op *op, enum uc_status status)
{
    (void)op;
    done_count++;
    failed_count += status != UC_OK;
}

static void
on_bytes(struct uc_fabric_op *op, const void *bytes, size_t length_bytes)
{
    (void)op;
    (void)bytes;
    told_bytes += length_bytes;
}

/* Rounds in which the kernel had nothing for either side do not count: a thread sleeps meanwhile. */
static void
poll_both(void)
{
    size_t moves = send_count + receive_count;
    size_t waits = wait_count;

    (void)rig.ops->poll(client, 64);
    (void)rig.ops->poll(rig.fabric, 64);
    if (send_count + receive_count == moves) {
        wait_count = waits;
    }
}

/* Post as many as are done, in one list, like a worker that keeps its depth. No assertion: they allocate. */
static bool
run(enum uc_fabric_opcode opcode, uint64_t length_bytes, uint64_t count)
{
    uint64_t posted = 0;

    done_count = 0;
    while (done_count < count) {
        struct uc_fabric_op *list = NULL;
        struct uc_fabric_op **link = &list;

        while (posted < count && posted - done_count < DEPTH) {
            struct job *job = &jobs[posted % DEPTH];
            uint64_t offset = posted * length_bytes % (RIG_REGION_BYTES - length_bytes + 1);

            job->piece = (struct uc_fabric_piece){
                    .address = memory + offset, .length_bytes = length_bytes};
            job->op = (struct uc_fabric_op){.opcode = opcode,
                    .offset_bytes = offset,
                    .pieces = &job->piece,
                    .piece_count = 1,
                    .on_done = on_done,
                    .on_bytes = on_bytes};
            *link = &job->op;
            link = &job->op.next;
            posted++;
        }
        if (list != NULL && rig.ops->post(endpoint, list) != UC_OK) {
            return false;
        }
        poll_both();
    }
    return failed_count == 0;
}

static const struct {
    enum uc_fabric_opcode opcode;
    uint64_t length_bytes;
    uint64_t calls_per_100; /* upper bound of all calls, both sides, per 100 operations */
} rows[] = {
        {UC_FABRIC_READ, 4096, 80},
        {UC_FABRIC_WRITE, 4096, 80},
        {UC_FABRIC_READ, 65536, 250},
        {UC_FABRIC_WRITE, 65536, 300},
};

enum {
    ROW_COUNT = sizeof(rows) / sizeof(rows[0]),
};

START_TEST(steady_state_allocates_nothing)
{
    open_both(_i == 0 ? 1 : 3);
    for (size_t row = 0; row < ROW_COUNT; row++) {
        size_t allocated;
        bool ok;

        ck_assert(run(rows[row].opcode, rows[row].length_bytes, WARM_UP_COUNT));
        uc_alloc_count_start();
        ok = run(rows[row].opcode, rows[row].length_bytes, OPERATION_COUNT);
        allocated = uc_alloc_count_stop();
        ck_assert(ok);
        ck_assert_uint_eq(allocated, 0);
    }
    ck_assert_uint_eq(told_bytes, (WARM_UP_COUNT + OPERATION_COUNT) * (uint64_t)(4096 + 65536));
    close_both();
}
END_TEST

/* … and the counter counts, or the case above would always pass. */
START_TEST(allocations_are_counted)
{
    void *volatile one;
    void *volatile two;
    size_t counted;

    uc_alloc_count_start();
    one = malloc(1);
    two = calloc(1, 1);
    counted = uc_alloc_count_stop();
    free(one);
    free(two);
    ck_assert_uint_eq(counted, uc_alloc_count_works() ? 2 : 0);
}
END_TEST

START_TEST(operations_share_their_system_calls)
{
    size_t row = (size_t)_i / 2;
    size_t calls;

    open_both(_i % 2 == 0 ? 1 : 3);
    ck_assert(run(rows[row].opcode, rows[row].length_bytes, WARM_UP_COUNT));
    send_count = 0;
    receive_count = 0;
    wait_count = 0;
    ck_assert(run(rows[row].opcode, rows[row].length_bytes, OPERATION_COUNT));
    calls = send_count + receive_count + wait_count;
    ck_assert_msg(calls * 100 <= rows[row].calls_per_100 * OPERATION_COUNT,
            "%zu sends, %zu receives, %zu waits for %d operations of %u bytes", send_count,
            receive_count, wait_count, OPERATION_COUNT, (unsigned)rows[row].length_bytes);
    close_both();
}
END_TEST

/* Every call but those named ends the process. */
static bool
forbid_other_calls(void)
{
#define ALLOW(name)                                         \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_##name, 0, 1), \
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
    struct sock_filter filter[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0 /* the call's number */),
            ALLOW(sendmsg),
            ALLOW(recvmsg),
            ALLOW(epoll_wait),
            ALLOW(clock_gettime), /* where the machine has no clock that can be read without it */
            ALLOW(exit_group),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
#undef ALLOW
    struct sock_fprog program = {.len = sizeof(filter) / sizeof(filter[0]), .filter = filter};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* A child that may make no other call carries out operations of every kind; the first one would kill it. */
START_TEST(steady_state_makes_no_other_system_call)
{
    int how = 0;
    pid_t child;

    if (!uc_alloc_count_works()) {
        return; /* sanitizers make calls of their own */
    }

    open_both(_i == 0 ? 1 : 3);
    child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        bool ok = forbid_other_calls();

        for (size_t row = 0; ok && row < ROW_COUNT; row++) {
            ok = run(rows[row].opcode, rows[row].length_bytes, WARM_UP_COUNT);
        }
        _exit(ok ? 0 : 1);
    }
    ck_assert_int_eq(waitpid(child, &how, 0), child);
    ck_assert_msg(WIFEXITED(how) && WEXITSTATUS(how) == 0, "the child ended with %d", how);
    close_both();
}
END_TEST

static Suite *
tcp_steady_suite(void)
{
    Suite *suite = suite_create("tcp_steady");
    TCase *tcase = tcase_create("all");

    tcase_add_test(tcase, allocations_are_counted);
    tcase_add_loop_test(tcase, steady_state_allocates_nothing, 0, 2);
    tcase_add_loop_test(tcase, operations_share_their_system_calls, 0, 2 * ROW_COUNT);
    tcase_add_loop_test(tcase, steady_state_makes_no_other_system_call, 0, 2);
    tcase_set_timeout(tcase, 60);
    suite_add_tcase(suite, tcase);
    return suite;
}

int
main(void)
{
    SRunner *runner = srunner_create(tcp_steady_suite());
    int failed;

    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
