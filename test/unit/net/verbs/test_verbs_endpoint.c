/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Posting, completing, arming and breaking on a device that is played by this file: libibverbs calls it
 * through the tables of a context, and what it calls by name is wrapped by the linker.
 */

#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "net/verbs/verbs.h"

enum {
    DEPTH = 64,
    QUEUE_MAX = 4096,
    OP_COUNT = 1000,
    BLOCK_BYTES = 64,
};

/* The device: what was posted, and what it will report. */
static struct {
    uint64_t posted[QUEUE_MAX];
    bool signalled[QUEUE_MAX];
    size_t posted_count;
    size_t report_count; /* how many of them poll_cq has passed */
    size_t allow_count;  /* how many it may pass */
    size_t fail_idx;     /* this one fails, the rest is flushed; QUEUE_MAX = none */
    enum ibv_wc_status fail_status;
    size_t refuse_idx; /* post_send stops here */
    size_t notify_count;
    size_t complete_on_notify;
    bool in_error;
    bool destroyed;
    size_t in_flight_max;
} device;

static struct ibv_context context;
static struct ibv_qp qp = {.context = &context};
static struct ibv_cq cq = {.context = &context};
static struct ibv_mr mr = {.lkey = 7};
static struct uc_fabric *fabric;
static struct uc_fabric_domain *domain;
static struct uc_fabric_region region;
static struct uc_fabric_endpoint *endpoint;
static uint8_t memory[4096];

static struct test_op {
    struct uc_fabric_op op;
    struct uc_fabric_piece piece;
    unsigned done;
    enum uc_status status;
    size_t order;
} ops[OP_COUNT];

static size_t done_count;
static size_t told;
static enum uc_status told_status;
static void (*in_callback)(void);

int __wrap_ibv_modify_qp(struct ibv_qp *any, struct ibv_qp_attr *attr, int mask);
int __wrap_ibv_destroy_qp(struct ibv_qp *any);
int __wrap_ibv_destroy_cq(struct ibv_cq *any);
void __wrap_ibv_ack_cq_events(struct ibv_cq *any, unsigned count);

int
__wrap_ibv_modify_qp(struct ibv_qp *any, struct ibv_qp_attr *attr, int mask)
{
    (void)any;
    (void)mask;
    if (attr->qp_state == IBV_QPS_ERR) {
        device.in_error = true;
    }
    return 0;
}

int
__wrap_ibv_destroy_qp(struct ibv_qp *any)
{
    (void)any;
    device.destroyed = true;
    return 0;
}

int
__wrap_ibv_destroy_cq(struct ibv_cq *any)
{
    (void)any;
    return 0;
}

void
__wrap_ibv_ack_cq_events(struct ibv_cq *any, unsigned count)
{
    (void)any;
    (void)count;
}

static int
fake_post_send(struct ibv_qp *any, struct ibv_send_wr *chain, struct ibv_send_wr **bad_out)
{
    (void)any;
    for (struct ibv_send_wr *request = chain; request != NULL; request = request->next) {
        if (device.posted_count == device.refuse_idx) {
            *bad_out = request;
            return 12;
        }
        ck_assert_uint_lt(device.posted_count, QUEUE_MAX);
        device.posted[device.posted_count] = request->wr_id;
        device.signalled[device.posted_count] = (request->send_flags & IBV_SEND_SIGNALED) != 0;
        device.posted_count++;
    }
    if (device.posted_count - device.report_count > device.in_flight_max) {
        device.in_flight_max = device.posted_count - device.report_count;
    }
    return 0;
}

/* Reports in order: signalled successes, the failure, and everything after it as flushed. */
static int
fake_poll_cq(struct ibv_cq *any, int capacity, struct ibv_wc *completions)
{
    size_t end = device.in_error ? device.posted_count : device.allow_count;
    int count = 0;

    (void)any;
    while (device.report_count < device.posted_count && device.report_count < end &&
            count < capacity) {
        size_t idx = device.report_count++;
        enum ibv_wc_status status = IBV_WC_SUCCESS;

        if (idx == device.fail_idx) {
            status = device.fail_status;
            device.in_error = true;
            end = device.posted_count;
        } else if (idx > device.fail_idx || idx >= device.allow_count) {
            status = IBV_WC_WR_FLUSH_ERR;
        }
        if (status != IBV_WC_SUCCESS || device.signalled[idx]) {
            completions[count++] = (struct ibv_wc){.wr_id = device.posted[idx], .status = status};
        }
    }
    return count;
}

static int
fake_req_notify_cq(struct ibv_cq *any, int solicited)
{
    (void)any;
    (void)solicited;
    device.notify_count++;
    device.allow_count += device.complete_on_notify;
    return 0;
}

static void
on_done(struct uc_fabric_op *op, enum uc_status status)
{
    struct test_op *self = (struct test_op *)(void *)op;

    self->done++;
    self->status = status;
    self->order = done_count++;
    if (in_callback != NULL) {
        in_callback();
    }
}

static void
on_state(void *owner, struct uc_fabric_endpoint *which, enum uc_status status)
{
    (void)owner;
    ck_assert_ptr_eq(which, endpoint);
    told++;
    told_status = status;
}

static void
setup(void)
{
    memset(&device, 0, sizeof(device));
    device.fail_idx = QUEUE_MAX;
    device.refuse_idx = QUEUE_MAX;
    memset(ops, 0, sizeof(ops));
    done_count = 0;
    told = 0;
    in_callback = NULL;
    context.ops.post_send = fake_post_send;
    context.ops.poll_cq = fake_poll_cq;
    context.ops.req_notify_cq = fake_req_notify_cq;

    fabric = calloc(1, sizeof(*fabric));
    domain = calloc(1, sizeof(*domain));
    ck_assert_ptr_nonnull(fabric);
    ck_assert_ptr_nonnull(domain);
    fabric->epoll_fd = -1;
    fabric->device = &context;
    uc_list_init(&fabric->pending);
    uc_list_init(&fabric->active);
    uc_list_init(&fabric->passive);
    uc_list_init(&fabric->failed);
    uc_list_init(&fabric->released);
    domain->fabric = fabric;
    domain->scratch_mr = &mr;
    region = (struct uc_fabric_region){
            .domain = domain, .mr = &mr, .address = memory, .length_bytes = sizeof(memory)};

    endpoint = uc_verbs_endpoint_create(domain);
    ck_assert_ptr_nonnull(endpoint);
    endpoint->qp = &qp;
    endpoint->cq = &cq;
    endpoint->send_depth = DEPTH;
    endpoint->limits = (struct uc_verbs_limits){.sge_count = 1, .message_bytes = 1 << 20};
    endpoint->on_state = on_state;
    endpoint->regions = calloc(1, sizeof(*endpoint->regions));
    ck_assert_ptr_nonnull(endpoint->regions);
    endpoint->regions[0].length_bytes = UINT32_MAX;
    endpoint->region_count = 1;
    uc_verbs_endpoint_set_state(endpoint, UC_VERBS_READY);
}

static void
teardown(void)
{
    in_callback = NULL;
    uc_verbs_endpoint_disconnect(endpoint);
    ck_assert_uint_eq(fabric->endpoint_count, 0);
    ck_assert_uint_eq(domain->endpoint_count, 0);
    ck_assert_uint_eq(fabric->active_count, 0);
    free(domain);
    free(fabric);
}

/* Posts `count` operations as one list. */
static enum uc_status
post_ops(size_t first, size_t count, enum uc_fabric_opcode opcode)
{
    for (size_t idx = first; idx < first + count; idx++) {
        ops[idx].piece = (struct uc_fabric_piece){memory, BLOCK_BYTES, &region};
        ops[idx].op = (struct uc_fabric_op){
                .opcode = opcode,
                .pieces = &ops[idx].piece,
                .piece_count = 1,
                .on_done = on_done,
                .next = idx + 1 < first + count ? &ops[idx + 1].op : NULL,
        };
    }
    return uc_verbs_post(endpoint, &ops[first].op);
}

static void
expect_each_once(size_t count)
{
    for (size_t idx = 0; idx < count; idx++) {
        ck_assert_uint_eq(ops[idx].done, 1);
    }
}

START_TEST(operations_complete_once_in_order_within_the_send_queue)
{
    ck_assert_int_eq(post_ops(0, OP_COUNT, UC_FABRIC_READ), UC_OK);
    ck_assert_uint_eq(device.posted_count, DEPTH);
    ck_assert_uint_eq(done_count, 0); /* never inside post */
    while (done_count < OP_COUNT) {
        device.allow_count += 7;
        (void)uc_verbs_fabric_poll(fabric, 64);
    }
    expect_each_once(OP_COUNT);
    for (size_t idx = 0; idx < OP_COUNT; idx++) {
        ck_assert_uint_eq(ops[idx].order, idx);
        ck_assert_int_eq(ops[idx].status, UC_OK);
    }
    ck_assert_uint_le(device.in_flight_max, DEPTH);
    teardown();
}
END_TEST

START_TEST(the_last_request_of_every_chain_reports)
{
    size_t signalled = 0;

    ck_assert_int_eq(post_ops(0, DEPTH, UC_FABRIC_READ), UC_OK);
    for (size_t idx = 0; idx < DEPTH; idx++) {
        signalled += device.signalled[idx];
    }
    ck_assert_uint_eq(signalled, DEPTH / UC_VERBS_CHAIN_MAX);
    ck_assert(device.signalled[UC_VERBS_CHAIN_MAX - 1]);
    ck_assert(device.signalled[DEPTH - 1]);
    teardown();
}
END_TEST

START_TEST(poll_keeps_to_its_budget)
{
    ck_assert_int_eq(post_ops(0, 32, UC_FABRIC_READ), UC_OK);
    device.allow_count = 32;
    ck_assert_uint_eq(uc_verbs_fabric_poll(fabric, 5), 5);
    ck_assert_uint_eq(done_count, 5);
    ck_assert(!uc_verbs_fabric_arm(fabric)); /* there is more */
    ck_assert_uint_eq(uc_verbs_fabric_poll(fabric, 100), 27);
    teardown();
}
END_TEST

/* Only what a good completion confirmed is Ok; the culprit says why; the rest is unknown. */
START_TEST(an_error_breaks_the_endpoint_and_flushes_everything)
{
    ck_assert_int_eq(post_ops(0, 100, UC_FABRIC_WRITE), UC_OK);
    device.allow_count = DEPTH;
    device.fail_idx = 40;
    device.fail_status = IBV_WC_REM_ACCESS_ERR;
    (void)uc_verbs_fabric_poll(fabric, 1000);
    (void)uc_verbs_fabric_poll(fabric, 1000);
    expect_each_once(100);
    ck_assert_int_eq(ops[31].status, UC_OK);
    ck_assert_int_eq(ops[32].status, UC_ERR_UNHEALTHY);
    ck_assert_int_eq(ops[39].status, UC_ERR_UNHEALTHY);
    ck_assert_int_eq(ops[40].status, UC_ERR_PERMISSION_DENIED);
    ck_assert_int_eq(ops[41].status, UC_ERR_UNHEALTHY);
    ck_assert_int_eq(ops[99].status, UC_ERR_UNHEALTHY);
    ck_assert_uint_eq(told, 1);
    ck_assert_int_eq(told_status, UC_ERR_UNHEALTHY);
    ck_assert(device.destroyed);
    ck_assert_int_eq(post_ops(0, 1, UC_FABRIC_READ), UC_ERR_UNHEALTHY);
    teardown();
}
END_TEST

START_TEST(a_device_that_refuses_work_breaks_the_endpoint_outside_post)
{
    device.refuse_idx = 10;
    ck_assert_int_eq(post_ops(0, 20, UC_FABRIC_READ), UC_OK);
    ck_assert_uint_eq(done_count, 0);
    ck_assert(!uc_verbs_fabric_arm(fabric));
    ck_assert_uint_le(uc_verbs_fabric_next_deadline_ms(fabric), uc_verbs_now_ms());
    (void)uc_verbs_fabric_poll(fabric, 1000);
    expect_each_once(20);
    ck_assert_uint_eq(told, 1);
    teardown();
}
END_TEST

START_TEST(a_completion_of_foreign_work_breaks_the_endpoint)
{
    ck_assert_int_eq(post_ops(0, 1, UC_FABRIC_READ), UC_OK);
    device.posted[0] += 1000;
    device.allow_count = 1;
    (void)uc_verbs_fabric_poll(fabric, 1000);
    expect_each_once(1);
    ck_assert_int_eq(ops[0].status, UC_ERR_UNHEALTHY);
    ck_assert_uint_eq(told, 1);
    teardown();
}
END_TEST

START_TEST(arming_asks_once_and_looks_again)
{
    ck_assert(uc_verbs_fabric_arm(fabric)); /* nothing to wait for */
    ck_assert_uint_eq(device.notify_count, 0);

    ck_assert_int_eq(post_ops(0, 2, UC_FABRIC_READ), UC_OK);
    ck_assert(uc_verbs_fabric_arm(fabric));
    ck_assert(uc_verbs_fabric_arm(fabric));
    ck_assert_uint_eq(device.notify_count, 1);
    endpoint->armed = false; /* what reading the event does */
    ck_assert(uc_verbs_fabric_arm(fabric));
    ck_assert_uint_eq(device.notify_count, 2);
    teardown();
}
END_TEST

/* A completion between the last poll and arming raises no event: arm has to find it. */
START_TEST(what_completes_before_arming_is_not_lost)
{
    ck_assert_int_eq(post_ops(0, 2, UC_FABRIC_READ), UC_OK);
    device.complete_on_notify = 2;
    ck_assert(!uc_verbs_fabric_arm(fabric));
    ck_assert_uint_eq(done_count, 0); /* callbacks run in poll only */
    ck_assert(!uc_verbs_fabric_arm(fabric));
    ck_assert_uint_eq(uc_verbs_fabric_poll(fabric, 10), 2);
    expect_each_once(2);
    ck_assert(uc_verbs_fabric_arm(fabric));
    teardown();
}
END_TEST

START_TEST(fence_drains_then_destroys_then_flushes)
{
    ck_assert_int_eq(post_ops(0, 100, UC_FABRIC_READ), UC_OK);
    device.allow_count = 32; /* these are through, nobody has looked yet */
    uc_verbs_endpoint_fence(endpoint);
    ck_assert_uint_eq(device.report_count, device.posted_count);
    ck_assert(device.destroyed);
    expect_each_once(100);
    ck_assert_int_eq(ops[31].status, UC_OK);
    ck_assert_int_eq(ops[32].status, UC_ERR_UNHEALTHY);
    uc_verbs_endpoint_fence(endpoint);
    expect_each_once(100);
    ck_assert_uint_eq(told, 0);
    teardown();
}
END_TEST

START_TEST(what_arm_found_survives_a_fence)
{
    ck_assert_int_eq(post_ops(0, 2, UC_FABRIC_READ), UC_OK);
    device.complete_on_notify = 2;
    ck_assert(!uc_verbs_fabric_arm(fabric));
    uc_verbs_endpoint_fence(endpoint);
    expect_each_once(2);
    ck_assert_int_eq(ops[1].status, UC_OK);
    ck_assert_ptr_null(fabric->stash_owner);
    teardown();
}
END_TEST

static void
disconnect_now(void)
{
    in_callback = NULL;
    uc_verbs_endpoint_disconnect(endpoint);
}

/* The endpoint is freed when the last call that may touch it has returned (a sanitizer looks on). */
START_TEST(a_callback_may_disconnect_its_endpoint)
{
    ck_assert_int_eq(post_ops(0, 100, UC_FABRIC_READ), UC_OK);
    device.allow_count = 32;
    in_callback = disconnect_now;
    (void)uc_verbs_fabric_poll(fabric, 1000);
    expect_each_once(100);
    ck_assert_uint_eq(told, 0);
    endpoint = NULL;
    teardown();
}
END_TEST

START_TEST(a_flush_of_a_broken_endpoint_may_disconnect_it)
{
    ck_assert_int_eq(post_ops(0, 50, UC_FABRIC_READ), UC_OK);
    uc_verbs_endpoint_fail(endpoint, UC_ERR_UNHEALTHY, "test");
    in_callback = disconnect_now;
    (void)uc_verbs_fabric_poll(fabric, 1000);
    expect_each_once(50);
    ck_assert_uint_eq(told, 0);
    endpoint = NULL;
    teardown();
}
END_TEST

START_TEST(post_refuses_all_or_nothing)
{
    ck_assert_int_eq(post_ops(0, 3, UC_FABRIC_READ), UC_OK);
    ck_assert_int_eq(device.posted_count, 3);
    for (size_t idx = 3; idx < 6; idx++) {
        ops[idx].piece = (struct uc_fabric_piece){memory, BLOCK_BYTES, &region};
        ops[idx].op = (struct uc_fabric_op){.opcode = UC_FABRIC_READ,
                .pieces = &ops[idx].piece,
                .piece_count = 1,
                .on_done = on_done,
                .next = idx < 5 ? &ops[idx + 1].op : NULL};
    }
    ops[5].piece.region = NULL;
    ck_assert_int_eq(uc_verbs_post(endpoint, &ops[3].op), UC_ERR_INVALID_PARAM);
    ops[5].piece.region = &region;
    ops[5].piece.length_bytes = sizeof(memory) + 1;
    ck_assert_int_eq(uc_verbs_post(endpoint, &ops[3].op), UC_ERR_INVALID_PARAM);
    ops[5].piece.length_bytes = BLOCK_BYTES;
    ops[5].op.region_idx = 1;
    ck_assert_int_eq(uc_verbs_post(endpoint, &ops[3].op), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(device.posted_count, 3);
    device.allow_count = 3;
    (void)uc_verbs_fabric_poll(fabric, 1000);
    ck_assert_uint_eq(done_count, 3);
    teardown();
}
END_TEST

int
main(void)
{
    TCase *cases = tcase_create("endpoint");
    Suite *suite = suite_create("verbs_endpoint");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(cases, setup, NULL);
    tcase_add_test(cases, operations_complete_once_in_order_within_the_send_queue);
    tcase_add_test(cases, the_last_request_of_every_chain_reports);
    tcase_add_test(cases, poll_keeps_to_its_budget);
    tcase_add_test(cases, an_error_breaks_the_endpoint_and_flushes_everything);
    tcase_add_test(cases, a_device_that_refuses_work_breaks_the_endpoint_outside_post);
    tcase_add_test(cases, a_completion_of_foreign_work_breaks_the_endpoint);
    tcase_add_test(cases, arming_asks_once_and_looks_again);
    tcase_add_test(cases, what_completes_before_arming_is_not_lost);
    tcase_add_test(cases, fence_drains_then_destroys_then_flushes);
    tcase_add_test(cases, what_arm_found_survives_a_fence);
    tcase_add_test(cases, a_callback_may_disconnect_its_endpoint);
    tcase_add_test(cases, a_flush_of_a_broken_endpoint_may_disconnect_it);
    tcase_add_test(cases, post_refuses_all_or_nothing);
    suite_add_tcase(suite, cases);

    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
