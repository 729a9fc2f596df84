/* SPDX-License-Identifier: Apache-2.0 */

/* Connecting again and again: nothing grows. UCM_TEST_CYCLES says how often. */

#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "test/conformance/fabric/harness.h"

enum {
    CYCLE_COUNT = 200,
    WARM_UP_COUNT = 50, /* whatever is made once, or kept for the next one, is made now */
    SLACK_BYTES = 64 << 10,
    RESIDENT_SLACK_BYTES = 4 << 20,
};

/** What one process, with both sides in it, holds. */
struct footprint {
    int fds;
    size_t heap_bytes; /* 0 where the allocator does not tell (sanitizers) */
    size_t resident_bytes;
    int queue_pairs; /* of all the machine; -1 = no tool tells */
};

static struct link link0;
static struct test_op op;

static size_t
resident_bytes(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    unsigned long pages = 0;

    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fscanf(file, "%*u %lu", &pages), 1);
    (void)fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* Queue pairs that the kernel knows; what a process forgot shows there. */
static int
queue_pair_count(void)
{
    FILE *tool;
    char line[512];
    int count = 0;

    if (strcmp(fabric_name(), "verbs") != 0) {
        return -1;
    }
    tool = popen("rdma resource show qp 2>/dev/null", "r");
    if (tool == NULL) {
        return -1;
    }
    while (fgets(line, sizeof(line), tool) != NULL) {
        count++;
    }
    return pclose(tool) == 0 ? count : -1;
}

static void
rest(struct target *self, void *argument)
{
    (void)self;
    (void)argument;
}

/* What the target has heard of is freed at the end of its turn: two turns pass before anything is counted. */
static struct footprint
take_footprint(void)
{
    struct mallinfo2 heap;

    target_call(rest, NULL);
    target_call(rest, NULL);
    heap = mallinfo2();
    (void)malloc_trim(
            0); /* what earlier cases freed is not this one's growth when it is used again */
    return (struct footprint){
            .fds = fd_count(),
            .heap_bytes = heap.uordblks + heap.hblkhd,
            .resident_bytes = resident_bytes(),
            .queue_pairs = queue_pair_count(),
    };
}

static void
cycle(struct grant *grant)
{
    grant_renew(grant);
    link_start(&link0, grant, 0, 20000);
    wait_until(link0.ok_count + link0.failure_count > 0);
    ck_assert_int_eq(link0.ok_count, 1);
    op_init(&op, UC_FABRIC_READ, 0, 0, 8);
    ck_assert_int_eq(op_run(&link0, &op), UC_OK);
    link_close(&link0);
    wait_until(grant->gone_count == 1);
}

START_TEST(connecting_again_and_again_lets_nothing_grow)
{
    struct grant *grant = grant_make(0, UC_FABRIC_READ_ONLY);
    long count = environment_number("UCM_TEST_CYCLES", scaled(CYCLE_COUNT));
    struct footprint before;
    struct footprint middle = {.fds = 0};
    struct footprint after;

    for (int idx = 0; idx < WARM_UP_COUNT; idx++) {
        cycle(grant);
    }
    before = take_footprint();
    for (long idx = 0; idx < count; idx++) {
        if (idx == count / 2) {
            middle = take_footprint();
        }
        cycle(grant);
    }
    after = take_footprint();

    (void)printf("%s: %ld connections: descriptors %d to %d, heap %zu to %zu, resident %zu, "
                 "in the middle %zu, to %zu bytes, queue pairs %d to %d\n",
            fabric_name(), count, before.fds, after.fds, before.heap_bytes, after.heap_bytes,
            before.resident_bytes, middle.resident_bytes, after.resident_bytes, before.queue_pairs,
            after.queue_pairs);
    ck_assert_int_le(after.fds, before.fds);
    ck_assert_uint_le(after.heap_bytes, before.heap_bytes + SLACK_BYTES);
    if (before.heap_bytes > 0) { /* sanitizers keep what was freed for a while */
        /* Pages that are touched once come late in some kernels; a leak goes on in the second half. */
        ck_assert_uint_le(after.resident_bytes, middle.resident_bytes + RESIDENT_SLACK_BYTES);
    }
    ck_assert_int_le(after.queue_pairs, before.queue_pairs);
}
END_TEST

/* The same with endpoints that break: the target cuts every one of them. */
START_TEST(broken_connections_let_nothing_grow)
{
    struct grant *grant = grant_make(0, UC_FABRIC_READ_WRITE);
    struct footprint before = {.fds = 0};
    struct footprint after;

    for (int idx = 0; idx < WARM_UP_COUNT + scaled(CYCLE_COUNT); idx++) {
        if (idx == WARM_UP_COUNT) {
            before = take_footprint();
        }
        grant_renew(grant);
        link_start(&link0, grant, 0, 20000);
        wait_until(link0.ok_count > 0 && grant->connected_count == 1);
        op_init(&op, UC_FABRIC_WRITE, 0, 0, FLIGHT_BYTES);
        ck_assert_int_eq(initiator.ops->post(link0.endpoint, &op.op), UC_OK);
        target_cut(grant);
        wait_until(op.done_count == 1);
        link_close(&link0);
    }
    after = take_footprint();
    ck_assert_int_le(after.fds, before.fds);
    ck_assert_uint_le(after.heap_bytes, before.heap_bytes + SLACK_BYTES);
    ck_assert_int_le(after.queue_pairs, before.queue_pairs);
}
END_TEST

TCase *
soak_cases(void)
{
    TCase *tcase = tcase_create("soak");

    tcase_add_checked_fixture(tcase, both_open, both_close);
    tcase_add_test(tcase, connecting_again_and_again_lets_nothing_grow);
    tcase_add_test(tcase, broken_connections_let_nothing_grow);
    tcase_set_timeout(tcase, 600);
    return tcase;
}
