/* SPDX-License-Identifier: Apache-2.0 */

/* Who may do what, and what is left when somebody goes. */

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <check.h>

#include "server_fixture.h"

static void
setup(void)
{
    fixture_start(NULL, NULL);
}

static void
teardown(void)
{
    fixture_stop();
}

static struct test_grant
alloc(struct test_peer *peer, unsigned first, unsigned count)
{
    struct test_grant grant;

    ck_assert_int_eq(test_alloc(peer, first, count, &grant), UC_OK);
    return grant;
}

START_TEST(hello_tells_what_a_client_needs)
{
    static const uint8_t zeros[UC_ATTACH_KEY_BYTES];
    struct test_peer *first = test_session(UC_ACCESS_RW);
    struct test_peer *second = test_session(UC_ACCESS_RW);

    ck_assert_uint_eq(first->hello.block_bytes, FIXTURE_BLOCK_BYTES);
    ck_assert_uint_ge(first->hello.slot_bytes, FIXTURE_BLOCK_BYTES + 64);
    ck_assert_uint_eq(first->hello.lease_ms, FIXTURE_LEASE_MS);
    ck_assert_uint_ne(first->hello.incarnation, 0);
    ck_assert_uint_ne(first->hello.session, second->hello.session);
    ck_assert_mem_ne(first->hello.attach_key, zeros, sizeof(zeros));
    ck_assert_mem_ne(first->hello.attach_key, second->hello.attach_key, sizeof(zeros));
    ck_assert_mem_ne(first->hello.mac_key, second->hello.mac_key, sizeof(zeros));
    ck_assert_mem_eq(first->hello.server_id, second->hello.server_id, sizeof(zeros));
    ck_assert_uint_eq(test_stat(first).sessions, 2);
    test_close(first);
    test_close(second);
}
END_TEST

START_TEST(hello_is_refused_for_a_reason)
{
    struct test_peer *peer = test_dial();

    ck_assert_int_eq(
            test_hello(peer, UC_ACCESS_RW, "other", "", UC_PROTOCOL_VERSION), UC_ERR_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(uc_last_error(), "default")); /* the one that is served */
    ck_assert_int_eq(test_hello(peer, UC_ACCESS_RW, "default", "", UC_PROTOCOL_VERSION + 1),
            UC_ERR_UNSUPPORTED);
    /* P42: nobody is admin of a server without a credential. */
    ck_assert_int_eq(test_hello(peer, UC_ACCESS_ADMIN, "default", "", UC_PROTOCOL_VERSION),
            UC_ERR_PERMISSION_DENIED);
    ck_assert_int_eq(test_hello(peer, UC_ACCESS_RW, "default", "", UC_PROTOCOL_VERSION), UC_OK);
    ck_assert_int_eq(test_hello(peer, UC_ACCESS_RW, "default", "", UC_PROTOCOL_VERSION),
            UC_ERR_INVALID_PARAM); /* one per connection */
    ck_assert_uint_eq(test_stat(peer).sessions, 1);
    test_close(peer);
}
END_TEST

START_TEST(stranger_may_call_nothing)
{
    struct test_peer *peer = test_dial();
    struct test_grant grant;

    ck_assert_int_eq(test_alloc(peer, 1, 1, &grant), UC_ERR_PERMISSION_DENIED);
    ck_assert_int_eq(test_ping(peer), UC_ERR_PERMISSION_DENIED);
    ck_assert_int_eq(test_begin(peer, 1, 1, 0, 1), UC_ERR_PERMISSION_DENIED);
    test_close(peer);
}
END_TEST

START_TEST(control_and_data_calls_do_not_mix)
{
    struct test_peer *control = test_session(UC_ACCESS_RW);
    struct test_peer *worker = test_worker(control);
    struct test_grant grant;

    ck_assert_int_eq(test_alloc(worker, 1, 1, &grant), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(test_begin(control, 1, 1, 0, 1), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(test_attach(control, control->hello.attach_key, control->hello.incarnation),
            UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(test_ping(worker), UC_OK);
    test_close(worker);
    test_close(control);
}
END_TEST

START_TEST(reader_may_not_alloc)
{
    struct test_peer *reader = test_session(UC_ACCESS_RO);
    struct test_peer *worker = test_worker(reader);
    struct test_grant grant;

    ck_assert_int_eq(test_alloc(reader, 1, 1, &grant), UC_ERR_PERMISSION_DENIED);
    ck_assert_int_eq(test_begin(worker, 1, 1, 0, 1), UC_ERR_PERMISSION_DENIED);
    ck_assert_int_eq(test_flip(reader, 1, 0), UC_ERR_PERMISSION_DENIED);
    ck_assert_uint_eq(test_lookup(reader, 1, 1), 0);
    ck_assert_int_eq(worker->attach.access, UC_ACCESS_RO);
    test_close(worker);
    test_close(reader);
}
END_TEST

/* P6: nothing of another life, and nothing without a live session. */
START_TEST(attach_needs_the_key_of_a_live_session)
{
    struct test_peer *control = test_session(UC_ACCESS_RW);
    struct test_peer *other = test_session(UC_ACCESS_RW);
    struct test_peer *worker = test_dial();
    uint8_t key[UC_ATTACH_KEY_BYTES];

    memcpy(key, control->hello.attach_key, sizeof(key));
    ck_assert_int_eq(test_attach(worker, key, control->hello.incarnation + 1), UC_ERR_STALE);
    key[sizeof(key) - 1] ^= 1;
    ck_assert_int_eq(test_attach(worker, key, control->hello.incarnation), UC_ERR_STALE);
    key[sizeof(key) - 1] ^= 1;
    ck_assert_int_eq(test_attach(worker, key, control->hello.incarnation), UC_OK);
    ck_assert_uint_eq(worker->region_count, 3); /* 8 slots, 3 per region */
    ck_assert_int_eq(test_attach(worker, other->hello.attach_key, other->hello.incarnation),
            UC_ERR_INVALID_PARAM); /* of one group only */
    test_close(control);
    test_wait_idle(other, 1);
    ck_assert(test_wait_closed(worker));
    test_close(worker);
    worker = test_dial();
    ck_assert_int_eq(test_attach(worker, key, other->hello.incarnation), UC_ERR_STALE);
    test_close(worker);
    test_close(other);
}
END_TEST

/* ARCHITECTURE.md §7: fence the group, then give everything back (P26). */
START_TEST(closing_the_control_connection_releases_the_group)
{
    struct test_peer *control = test_session(UC_ACCESS_RW);
    struct test_peer *worker = test_worker(control);
    struct test_peer *witness = test_session(UC_ACCESS_RW);
    struct test_grant grant = alloc(control, 1, 2);
    struct test_grant pinned;

    test_write_whole(worker, &grant, 1);
    ck_assert_int_eq(test_commit(control, grant.id, true), UC_OK);
    ck_assert_int_eq(test_pin(control, 1, 2, &pinned), UC_OK);
    grant = alloc(control, 5, 2);
    (void)alloc(control, 1, 1); /* a PRESENT entry */
    (void)alloc(witness, 5, 1); /* a SHARED one of somebody else */
    ck_assert_int_eq(test_begin(worker, grant.id, 2, 0, 2), UC_OK);
    ck_assert_int_eq(test_commit(witness, 4711, true), UC_ERR_NOT_FOUND);
    test_close(control);
    ck_assert(test_wait_closed(worker));
    test_close(worker);
    control = test_session(UC_ACCESS_RW);
    for (;;) {
        struct uc_stat_reply stat = test_stat(witness);

        if (stat.sessions == 2) { /* the witness and the new one: the old one is gone */
            ck_assert_uint_eq(stat.reserved_slots, 0);
            ck_assert_uint_eq(stat.pinned_slots, 0);
            ck_assert_uint_eq(stat.draining_slots, 0);
            ck_assert_uint_eq(stat.open_brackets, 0);
            ck_assert_uint_eq(stat.attachments, 0);
            ck_assert_uint_eq(stat.grants, 1); /* the witness's */
            ck_assert_uint_eq(stat.blocks, 2);
            break;
        }
    }
    ck_assert_uint_eq(test_lookup(witness, 1, 8), 3);
    test_close(control);
    test_close(witness);
}
END_TEST

/* §7: the worker's endpoints go, the session's reservations stay until they are concluded. */
START_TEST(closing_a_worker_keeps_the_reservation)
{
    struct test_peer *control = test_session(UC_ACCESS_RW);
    struct test_peer *worker = test_worker(control);
    struct test_grant grant = alloc(control, 1, 1);
    struct uc_stat_reply stat;

    ck_assert_int_eq(test_begin(worker, grant.id, 1, 0, 1), UC_OK);
    test_close(worker);
    do {
        stat = test_stat(control);
    } while (stat.attachments > 0);
    ck_assert_uint_eq(stat.open_brackets, 0);
    ck_assert_uint_eq(stat.reserved_slots, 1);
    ck_assert_uint_eq(stat.fences_total, 1);
    worker = test_worker(control); /* another worker takes over */
    test_write_whole(worker, &grant, 1);
    ck_assert_int_eq(test_commit(control, grant.id, true), UC_OK);
    ck_assert_uint_eq(test_lookup(control, 1, 1), 1);
    test_close(worker);
    test_close(control);
}
END_TEST

START_TEST(commit_before_the_worker_is_fenced_parks_the_slots)
{
    struct test_peer *control = test_session(UC_ACCESS_RW);
    struct test_peer *worker = test_worker(control);
    struct test_grant grant = alloc(control, 1, 2);

    ck_assert_int_eq(test_begin(worker, grant.id, 1, 0, 2), UC_OK);
    ck_assert_int_eq(test_commit(control, grant.id, false), UC_OK);
    ck_assert_uint_eq(test_stat(control).draining_slots, 2);
    test_close(worker);
    test_wait_idle(control, 1);
    ck_assert_uint_eq(test_stat(control).free_slots, FIXTURE_CAPACITY);
    test_close(control);
}
END_TEST

START_TEST(silent_session_is_fenced_and_a_pinging_one_stays)
{
    struct test_peer *witness = test_session(UC_ACCESS_RW);
    struct test_peer *silent = test_session(UC_ACCESS_RW);

    (void)alloc(silent, 1, 2);
    fixture_pass_ms(witness, FIXTURE_LEASE_MS - 1);
    ck_assert_uint_eq(test_stat(witness).sessions, 2);
    ck_assert_int_eq(test_ping(silent), UC_OK);
    fixture_pass_ms(witness, FIXTURE_LEASE_MS - 1);
    ck_assert_uint_eq(test_stat(witness).sessions, 2);
    ck_assert_uint_eq(test_stat(witness).reserved_slots, 2);
    fixture_pass_ms(witness, 10);
    test_wait_idle(witness, 1);
    ck_assert(test_wait_closed(silent));
    test_close(silent);
    test_close(witness);
}
END_TEST

START_TEST(silent_worker_loses_only_its_own)
{
    struct test_peer *control = test_session(UC_ACCESS_RW);
    struct test_peer *worker = test_worker(control);
    struct test_grant grant = alloc(control, 1, 1);

    ck_assert_int_eq(test_begin(worker, grant.id, 1, 0, 1), UC_OK);
    fixture_pass_ms(control, FIXTURE_LEASE_MS + 10);
    ck_assert(test_wait_closed(worker));
    while (test_stat(control).attachments > 0) {
    }
    ck_assert_uint_eq(test_stat(control).open_brackets, 0);
    ck_assert_uint_eq(test_stat(control).reserved_slots, 1);
    test_close(worker);
    test_close(control);
}
END_TEST

/* §3: a resumed server must not fence everyone: the silence was its own. */
START_TEST(late_loop_extends_the_leases)
{
    struct test_peer *first = test_session(UC_ACCESS_RW);
    struct test_peer *second = test_session(UC_ACCESS_RW);

    (void)alloc(second, 1, 1);
    fixture_jump_ms(20 * FIXTURE_LEASE_MS);
    ck_assert_uint_eq(test_stat(first).sessions, 2);
    ck_assert_uint_eq(test_stat(first).reserved_slots, 1);
    /* But from then on the lease runs. Calls answered while the late turn drains its sockets do not count yet. */
    while (test_stat(first).sessions > 1) {
        fixture_pass_ms(first, FIXTURE_LEASE_MS / 10);
    }
    test_wait_idle(first, 1);
    test_close(second);
    test_close(first);
}
END_TEST

START_TEST(stranger_that_says_nothing_is_closed)
{
    struct test_peer *witness = test_session(UC_ACCESS_RW);
    struct test_peer *stranger = test_dial();

    (void)test_ping(stranger); /* it is there, and still a stranger */
    fixture_pass_ms(witness, 10001);
    ck_assert(test_wait_closed(stranger));
    test_close(stranger);
    test_close(witness);
}
END_TEST

START_TEST(garbage_ends_its_own_connection_only)
{
    struct test_peer *good = test_session(UC_ACCESS_RW);
    struct test_peer *bad = test_session(UC_ACCESS_RW);
    static const uint8_t frames[] = {0xff, 0xff, 0xff, 0x7f, 0xc1};

    (void)alloc(bad, 1, 1);
    ck_assert_int_eq(
            send(uc_rpc_connection_fd(bad->connection), frames, sizeof(frames), 0), sizeof(frames));
    ck_assert(test_wait_closed(bad));
    test_wait_idle(good, 1);
    test_close(bad);
    test_close(good);
}
END_TEST

START_TEST(stopping_lets_open_writes_end_and_takes_no_new_ones)
{
    struct test_peer *control = test_session(UC_ACCESS_RW);
    struct test_peer *worker = test_worker(control);
    struct uc_written_range range = {0, 10, 10};
    struct test_grant grant = alloc(control, 1, 1);
    struct test_grant refused;
    enum uc_status status = UC_OK;

    ck_assert_int_eq(test_begin(worker, grant.id, 1, 0, 1), UC_OK);
    fixture_ask_to_stop();
    for (unsigned number = 100; status == UC_OK; number++) {
        status = test_alloc(control, number, 1, &refused);
        if (status == UC_OK) {
            ck_assert_int_eq(test_commit(control, refused.id, false), UC_OK);
        }
    }
    ck_assert_int_eq(status, UC_ERR_DRAINING);
    ck_assert_int_eq(test_end(worker, 1, true, &range, 1), UC_OK);
    ck_assert(test_wait_closed(control));
    ck_assert(test_wait_closed(worker));
    test_close(worker);
    test_close(control);
}
END_TEST

static void
setup_credential(void)
{
    fixture_start("--credential=open sesame", NULL);
}

START_TEST(credential_is_asked_of_everybody)
{
    static const char *const wrong[] = {"", "open sesam", "open sesamf", "open sesame!"};
    struct test_peer *peer = test_dial();

    for (size_t idx = 0; idx < sizeof(wrong) / sizeof(wrong[0]); idx++) {
        ck_assert_int_eq(test_hello(peer, UC_ACCESS_RO, "default", wrong[idx], UC_PROTOCOL_VERSION),
                UC_ERR_PERMISSION_DENIED);
    }
    ck_assert_int_eq(
            test_hello(peer, UC_ACCESS_ADMIN, "default", "open sesame", UC_PROTOCOL_VERSION),
            UC_OK);
    test_close(peer);
}
END_TEST

static void
add_tests(TCase *tcase)
{
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, hello_tells_what_a_client_needs);
    tcase_add_test(tcase, hello_is_refused_for_a_reason);
    tcase_add_test(tcase, stranger_may_call_nothing);
    tcase_add_test(tcase, control_and_data_calls_do_not_mix);
    tcase_add_test(tcase, reader_may_not_alloc);
    tcase_add_test(tcase, attach_needs_the_key_of_a_live_session);
    tcase_add_test(tcase, closing_the_control_connection_releases_the_group);
    tcase_add_test(tcase, closing_a_worker_keeps_the_reservation);
    tcase_add_test(tcase, commit_before_the_worker_is_fenced_parks_the_slots);
    tcase_add_test(tcase, silent_session_is_fenced_and_a_pinging_one_stays);
    tcase_add_test(tcase, silent_worker_loses_only_its_own);
    tcase_add_test(tcase, late_loop_extends_the_leases);
    tcase_add_test(tcase, stranger_that_says_nothing_is_closed);
    tcase_add_test(tcase, garbage_ends_its_own_connection_only);
    tcase_add_test(tcase, stopping_lets_open_writes_end_and_takes_no_new_ones);
}

int
main(void)
{
    Suite *suite = suite_create("server/sessions");
    TCase *tcase = tcase_create("sessions");
    TCase *credential = tcase_create("credential");
    SRunner *runner;
    int failed_count;

    add_tests(tcase);
    suite_add_tcase(suite, tcase);
    tcase_add_checked_fixture(credential, setup_credential, teardown);
    tcase_add_test(credential, credential_is_asked_of_everybody);
    suite_add_tcase(suite, credential);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed_count = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed_count == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
