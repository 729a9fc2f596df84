/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Peers that do not keep to the protocol, made with rdma_cm itself: wrong private data, a good nonce and
 * then silence. A target must refuse or drop them, and tell each admission's end exactly once.
 *
 * Needs UCM_FABRIC_ADDRESS, an address of an RDMA interface. Skips (77) without one.
 */

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <ucm/clock.h>

#include "net/fabric.h"
#include "net/verbs/hello.h"

enum {
    WAIT_MS = 20000,
    FIRST_QP_NUMBER = 0x1234, /* of no queue pair; a new one each time, or the CM calls it stale */
    EXIT_SKIP = 77,
};

static const uint8_t nonce[UC_FABRIC_NONCE_BYTES + 1] = "sixteen bytes ok";
static const char *server_address;
static const struct uc_fabric_ops *verbs;
static uint32_t next_qp_number = FIRST_QP_NUMBER;

static struct {
    struct uc_fabric *fabric;
    struct uc_fabric_domain *domain;
    struct uc_fabric_listener *listener;
    struct uc_fabric_endpoint *endpoint;
    size_t admitted;
    size_t connected;
    size_t gone;
    size_t handled; /* by poll */
} target;

static struct {
    struct rdma_event_channel *channel;
    struct rdma_cm_id *id;
} stranger;

static uint64_t
now_ms(void)
{
    return uc_clock_now_ns() / 1000000;
}

static enum uc_status
on_admit(void *context, const uint8_t *shown, struct uc_fabric_admission *admission_out)
{
    (void)context;
    if (memcmp(shown, nonce, UC_FABRIC_NONCE_BYTES) != 0) {
        return UC_ERR_PERMISSION_DENIED;
    }
    target.admitted++;
    admission_out->domain = target.domain;
    admission_out->access = UC_FABRIC_READ_WRITE;
    admission_out->peer = &target;
    return UC_OK;
}

static void
on_connected(void *context, void *peer, struct uc_fabric_endpoint *endpoint)
{
    (void)context;
    (void)peer;
    target.connected++;
    target.endpoint = endpoint;
}

static void
on_gone(void *context, void *peer)
{
    (void)context;
    (void)peer;
    target.gone++;
    target.endpoint = NULL;
}

static const struct uc_fabric_target_ops target_ops = {
        .admit = on_admit,
        .connected = on_connected,
        .gone = on_gone,
};

static void
setup(void)
{
    struct uc_fabric_config config = {.address = server_address};
    struct uc_fabric_listen listen = {.address = server_address, .ops = &target_ops};

    memset(&target, 0, sizeof(target));
    memset(&stranger, 0, sizeof(stranger));
    ck_assert_int_eq(verbs->open(&config, &target.fabric), UC_OK);
    ck_assert_int_eq(verbs->domain_open(target.fabric, &target.domain), UC_OK);
    ck_assert_int_eq(verbs->listen(target.fabric, &listen, &target.listener), UC_OK);
    stranger.channel = rdma_create_event_channel();
    ck_assert_ptr_nonnull(stranger.channel);
}

static void
teardown(void)
{
    if (stranger.id != NULL) {
        (void)rdma_destroy_id(stranger.id);
    }
    rdma_destroy_event_channel(stranger.channel);
    verbs->disconnect(target.endpoint);
    verbs->listener_close(target.listener);
    verbs->domain_close(target.domain);
    verbs->close(target.fabric);
}

/* Waits in rdma_cm; steps that need the target to act are not waited for here. */
static void
wait_event(enum rdma_cm_event_type want)
{
    struct rdma_cm_event *event = NULL;

    ck_assert_int_eq(rdma_get_cm_event(stranger.channel, &event), 0);
    ck_assert_int_eq(event->event, want);
    (void)rdma_ack_cm_event(event);
}

static void
ask(const void *bytes, uint8_t length)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    struct rdma_conn_param param = {
            .private_data = bytes,
            .private_data_len = length,
            .responder_resources = 1,
            .initiator_depth = 1,
            .retry_count = 6,
            .qp_num = next_qp_number++,
    };

    ck_assert_int_eq(inet_pton(AF_INET, server_address, &address.sin_addr), 1);
    address.sin_port = htons(verbs->listener_port(target.listener));
    ck_assert_int_eq(rdma_create_id(stranger.channel, &stranger.id, NULL, RDMA_PS_TCP), 0);
    ck_assert_int_eq(rdma_resolve_addr(stranger.id, NULL, (struct sockaddr *)&address, WAIT_MS), 0);
    wait_event(RDMA_CM_EVENT_ADDR_RESOLVED);
    ck_assert_int_eq(rdma_resolve_route(stranger.id, WAIT_MS), 0);
    wait_event(RDMA_CM_EVENT_ROUTE_RESOLVED);
    ck_assert_int_eq(rdma_connect(stranger.id, &param), 0);
}

static void
poll_once(void)
{
    target.handled += verbs->poll(target.fabric, 16);
}

#define wait_until(condition)                                      \
    do {                                                           \
        uint64_t end_ms = now_ms() + WAIT_MS;                      \
        while (!(condition)) {                                     \
            poll_once();                                           \
            ck_assert_msg(now_ms() < end_ms, "no %s", #condition); \
        }                                                          \
    } while (0)

static void
make_hello(uint8_t *bytes, uint8_t idx, uint8_t count)
{
    struct uc_verbs_hello hello = {.idx = idx, .count = count};

    memcpy(hello.nonce, nonce, sizeof(hello.nonce));
    uc_verbs_hello_encode(&hello, bytes);
}

/* ARCHITECTURE.md §3: no nonce, no queue pair. */
START_TEST(strangers_are_refused)
{
    uint8_t wrong_magic[UC_VERBS_HELLO_BYTES];
    uint8_t wrong_version[UC_VERBS_HELLO_BYTES];
    uint8_t second[UC_VERBS_HELLO_BYTES];
    const struct {
        const void *bytes;
        uint8_t length;
    } cases[] = {
            {NULL, 0}, {"x", 1}, {wrong_magic, sizeof(wrong_magic)},
            {wrong_version, sizeof(wrong_version)},
            {second, sizeof(second)}, /* a good nonce, but only a first one is admitted by it */
    };

    setup();
    make_hello(wrong_magic, 0, 1);
    wrong_magic[3] ^= 1;
    make_hello(wrong_version, 0, 1);
    wrong_version[4] ^= 1;
    make_hello(second, 1, 2);
    ask(cases[_i].bytes, cases[_i].length);
    wait_until(target.handled > 0);
    wait_event(RDMA_CM_EVENT_REJECTED);
    ck_assert_uint_eq(target.admitted, 0);
    ck_assert_uint_eq(target.connected, 0);
    teardown();
}
END_TEST

START_TEST(who_was_admitted_and_stays_silent_is_dropped_at_the_deadline)
{
    uint8_t hello[UC_VERBS_HELLO_BYTES];
    uint64_t deadline_ms;

    setup();
    make_hello(hello, 0, 1);
    ask(hello, sizeof(hello));
    wait_until(target.connected == 1);
    deadline_ms = verbs->next_deadline_ms(target.fabric);
    ck_assert(deadline_ms != UC_TIME_NEVER_MS);

    wait_until(target.gone == 1);
    ck_assert_uint_ge(now_ms(), deadline_ms);
    ck_assert(verbs->next_deadline_ms(target.fabric) == UC_TIME_NEVER_MS);
    teardown();
    ck_assert_uint_eq(target.gone, 1);
}
END_TEST

START_TEST(closing_the_listener_leaves_who_was_admitted_to_the_target)
{
    uint8_t hello[UC_VERBS_HELLO_BYTES];

    setup();
    make_hello(hello, 0, 1);
    ask(hello, sizeof(hello));
    wait_until(target.connected == 1);
    verbs->listener_close(target.listener);
    target.listener = NULL;
    ck_assert_uint_eq(target.gone, 0);
    ck_assert(verbs->next_deadline_ms(target.fabric) != UC_TIME_NEVER_MS); /* it has to confirm */
    teardown();
}
END_TEST

/* A fence of a group includes who is half admitted: the peer might write already. */
START_TEST(the_target_may_fence_who_is_half_admitted)
{
    uint8_t hello[UC_VERBS_HELLO_BYTES];

    setup();
    make_hello(hello, 0, 1);
    ask(hello, sizeof(hello));
    wait_until(target.connected == 1);
    verbs->fence(target.endpoint);
    verbs->disconnect(target.endpoint);
    target.endpoint = NULL;
    ck_assert(verbs->next_deadline_ms(target.fabric) == UC_TIME_NEVER_MS);
    teardown();
    ck_assert_uint_eq(target.gone, 0);
}
END_TEST

/* An endpoint of two queue pairs that never sees its second. */
START_TEST(a_group_that_is_never_whole_is_dropped_at_the_deadline)
{
    uint8_t hello[UC_VERBS_HELLO_BYTES];

    setup();
    make_hello(hello, 0, 2);
    ask(hello, sizeof(hello));
    wait_until(target.connected == 1);
    wait_until(target.gone == 1);
    ck_assert_uint_eq(target.admitted, 1);
    ck_assert(verbs->next_deadline_ms(target.fabric) == UC_TIME_NEVER_MS);
    teardown();
}
END_TEST

int
main(void)
{
    TCase *cases = tcase_create("stranger");
    Suite *suite = suite_create("verbs_stranger");
    SRunner *runner;
    int failed;

    server_address = getenv("UCM_FABRIC_ADDRESS");
    if (server_address == NULL) {
        (void)fprintf(stderr, "skipped: UCM_FABRIC_ADDRESS names no RDMA interface\n");
        return EXIT_SKIP;
    }
    if (uc_fabric_find("verbs", &verbs) != UC_OK) {
        (void)fprintf(stderr, "%s\n", uc_last_error());
        return EXIT_FAILURE;
    }

    tcase_add_loop_test(cases, strangers_are_refused, 0, 5);
    tcase_add_test(cases, who_was_admitted_and_stays_silent_is_dropped_at_the_deadline);
    tcase_add_test(cases, closing_the_listener_leaves_who_was_admitted_to_the_target);
    tcase_add_test(cases, the_target_may_fence_who_is_half_admitted);
    tcase_add_test(cases, a_group_that_is_never_whole_is_dropped_at_the_deadline);
    suite_add_tcase(suite, cases);

    runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK); /* registered memory does not survive fork */
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
