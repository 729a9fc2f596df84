/* SPDX-License-Identifier: Apache-2.0 */

/* A peer, in a process of its own, that is killed or stopped in every state of a connection. */

#include <string.h>

#include "test/conformance/fabric/harness.h"

static const struct {
    const char *name;
    enum uc_fabric_opcode even;
    enum uc_fabric_opcode odd;
} states[] = {
        {"reading", UC_FABRIC_READ, UC_FABRIC_READ},
        {"writing", UC_FABRIC_WRITE, UC_FABRIC_WRITE},
        {"flushing", UC_FABRIC_WRITE, UC_FABRIC_FLUSH},
        {"mixed", UC_FABRIC_READ, UC_FABRIC_WRITE},
};

enum {
    STATE_COUNT = sizeof(states) / sizeof(states[0]),
};

static struct peer_process peer;
static struct destination where;
static struct link link0;
static struct test_op op;
static struct flight flight;

static void
open_with_target(void)
{
    peer_target_start(&peer, &where);
    initiator_open(where.port);
    flight = flight_make();
}

static void
close_with_target(void)
{
    initiator_close();
    peer_kill(&peer);
    flight_free(&flight);
}

static void
start_link(uint64_t timeout_ms)
{
    uint8_t nonce[UC_FABRIC_NONCE_BYTES];

    nonce_of_grant(0, nonce);
    link_start_nonce(&link0, nonce, &where, timeout_ms);
}

static void
open_link(void)
{
    start_link(20000);
    wait_until(link0.ok_count + link0.failure_count > 0);
    ck_assert_int_eq(link0.ok_count, 1);
}

/* Its failure is told once, and nothing can be posted any more. A NIC may need an operation to notice. */
static void
assert_broken(void)
{
    op_init(&op, UC_FABRIC_READ, 0, 0, 8);
    if (initiator.ops->post(link0.endpoint, &op.op) == UC_OK) {
        wait_until(op.done_count > 0);
        ck_assert_int_eq(op.status, UC_ERR_UNHEALTHY);
    }
    wait_until(link0.failure_count > 0);
    ck_assert_int_eq(link0.failure_count, 1);
    ck_assert_int_eq(op.done_count <= 1, 1);
    ck_assert_int_eq(initiator.ops->post(link0.endpoint, &op.op), UC_ERR_UNHEALTHY);
    link_close(&link0);
}

START_TEST(target_killed_while_the_initiator_connects)
{
    peer_freeze(&peer);
    start_link(2000);
    flight_post(&flight, &link0, UC_FABRIC_READ, UC_FABRIC_WRITE);
    (void)initiator.ops->poll(initiator.fabric, 1);
    peer_kill(&peer);
    wait_until(link0.ok_count + link0.failure_count > 0);
    ck_assert_int_eq(link0.ok_count, 0);
    flight_assert_over(&flight);
    link_close(&link0);
    flight_assert_over(&flight);
}
END_TEST

START_TEST(target_killed_on_an_idle_connection)
{
    open_link();
    peer_kill(&peer);
    assert_broken();
}
END_TEST

/* Stopped first, so that a target that serves has no chance to. */
START_TEST(target_killed_under_operations)
{
    open_link();
    peer_freeze(&peer);
    flight_post(&flight, &link0, states[_i].even, states[_i].odd);
    (void)initiator.ops->poll(initiator.fabric, 1);
    peer_kill(&peer);
    wait_until(flight_done(&flight) >= flight.count);
    flight_assert_over(&flight);
    assert_broken();
    flight_assert_over(&flight);
}
END_TEST

START_TEST(target_killed_while_it_serves)
{
    open_link();
    flight_post(&flight, &link0, states[_i].even, states[_i].odd);
    wait_until(flight_done(&flight) >= 1);
    peer_kill(&peer);
    wait_until(flight_done(&flight) >= flight.count);
    flight_assert_over(&flight);
    assert_broken();
    flight_assert_over(&flight);
}
END_TEST

/* A fence needs nothing of the peer: it returns although the peer is stopped, and killed meanwhile. */
START_TEST(fence_returns_whatever_the_target_does)
{
    open_link();
    peer_freeze(&peer);
    flight_post(&flight, &link0, states[_i].even, states[_i].odd);
    (void)initiator.ops->poll(initiator.fabric, 1);
    initiator.ops->fence(link0.endpoint);
    flight_assert_over(&flight);
    memset(initiator.memory, 0xa5, LOCAL_BYTES);
    peer_thaw(&peer);
    peer_kill(&peer);
    initiator.ops->fence(link0.endpoint);
    flight_assert_over(&flight);
    ck_assert_int_eq(link0.failure_count, 0);
    ck_assert_uint_eq(value_match(initiator.memory, 0xa5, LOCAL_BYTES), LOCAL_BYTES);
    link_close(&link0);
}
END_TEST

START_TEST(target_killed_right_before_a_fence)
{
    open_link();
    flight_post(&flight, &link0, states[_i].even, states[_i].odd);
    (void)initiator.ops->poll(initiator.fabric, 1);
    peer_kill(&peer);
    initiator.ops->fence(link0.endpoint);
    flight_assert_over(&flight);
    link_close(&link0);
}
END_TEST

static const char *const initiator_states[] = {
        "idle",
        "reading",
        "writing",
        "flushing",
};

/* The target hears once that the peer is gone, and no hold of it stays. */
START_TEST(initiator_killed_in_every_state)
{
    struct grant *grant = grant_make(0, UC_FABRIC_READ_WRITE);
    bool stopped = _i >= 4;

    peer_initiator_start(&peer, grant, initiator_states[_i % 4]);
    if (stopped) {
        peer_freeze(&peer); /* with its buffers full and nobody to empty them */
    }
    peer_kill(&peer);
    wait_until(grant->gone_count > 0);
    link_open(&link0, UC_FABRIC_READ_ONLY); /* the target took no harm */
    op_init(&op, UC_FABRIC_READ, 0, 0, 8);
    ck_assert_int_eq(op_run(&link0, &op), UC_OK);
    link_close(&link0);
    ck_assert_int_eq(grant->connected_count, 1);
    ck_assert_int_eq(grant->gone_count, 1);
    wait_until(target.hold_count == target.release_count);
}
END_TEST

START_TEST(initiator_killed_while_it_connects)
{
    struct grant *grant = grant_make(0, UC_FABRIC_READ_WRITE);

    target_pause();
    peer_initiator_start(&peer, grant, "connecting");
    peer_kill(&peer);
    target_resume();
    link_open(&link0, UC_FABRIC_READ_ONLY);
    op_init(&op, UC_FABRIC_READ, 0, 0, 8);
    ck_assert_int_eq(op_run(&link0, &op), UC_OK);
    link_close(&link0);
    /* Whoever was admitted half-way is given up some time; closing the target does not wait for it. */
    ck_assert_int_le(grant->connected_count, 1);
    ck_assert_int_le(grant->gone_count, 1);
}
END_TEST

/* The target's fence needs nothing of a stopped initiator, and what it had posted does not land after it. */
START_TEST(fence_of_a_stopped_initiator_stops_its_writes)
{
    struct grant *grant = grant_make(0, UC_FABRIC_READ_WRITE);
    static uint8_t seen[REGION_BYTES];

    peer_initiator_start(&peer, grant, _i % 2 == 0 ? "writing" : "flushing");
    peer_freeze(&peer);
    wait_until(grant->connected_count == 1);
    target_cut(grant);
    target_fill(0, 0, 77);
    peer_thaw(&peer);
    for (int round = 0; round < 5; round++) { /* whatever still happens, happens meanwhile */
        link_open(&link0, UC_FABRIC_READ_ONLY);
        op_init(&op, UC_FABRIC_READ, 0, 0, 4096);
        ck_assert_int_eq(op_run(&link0, &op), UC_OK);
        link_close(&link0);
        wait_until(link0.grant->gone_count == 1);
    }
    target_peek(0, 0, 0, seen, sizeof(seen));
    ck_assert_uint_eq(pattern_match(seen, 77, 0, sizeof(seen)), sizeof(seen));
    ck_assert_int_eq(grant->gone_count, 0); /* the target knows */
    peer_kill(&peer);
}
END_TEST

static void
close_with_initiator(void)
{
    peer_kill(&peer);
    both_close();
}

TCase *
killed_cases(void)
{
    TCase *tcase = tcase_create("killed target");

    tcase_add_checked_fixture(tcase, open_with_target, close_with_target);
    tcase_add_test(tcase, target_killed_while_the_initiator_connects);
    tcase_add_test(tcase, target_killed_on_an_idle_connection);
    tcase_add_loop_test(tcase, target_killed_under_operations, 0, STATE_COUNT);
    tcase_add_loop_test(tcase, target_killed_while_it_serves, 0, STATE_COUNT);
    tcase_add_loop_test(tcase, fence_returns_whatever_the_target_does, 0, STATE_COUNT);
    tcase_add_loop_test(tcase, target_killed_right_before_a_fence, 0, STATE_COUNT);
    tcase_set_timeout(tcase, 300);
    return tcase;
}

TCase *
killed_initiator_cases(void)
{
    TCase *tcase = tcase_create("killed initiator");

    tcase_add_checked_fixture(tcase, both_open, close_with_initiator);
    tcase_add_loop_test(tcase, initiator_killed_in_every_state, 0, 8);
    tcase_add_test(tcase, initiator_killed_while_it_connects);
    tcase_add_loop_test(tcase, fence_of_a_stopped_initiator_stops_its_writes, 0, 4);
    tcase_set_timeout(tcase, 300);
    return tcase;
}
