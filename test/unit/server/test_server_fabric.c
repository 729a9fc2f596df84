/* SPDX-License-Identifier: Apache-2.0 */

/* Bytes through the tcp fabric: who may read and write what, and when no more. */

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include <ucm/clock.h>

#include "net/fabric.h"
#include "net/slot_footer.h"
#include "server_fixture.h"

enum {
    CONNECT_MS = 5000,
    WAIT_MS = 10000
};

/** An initiator's side: one fabric, one endpoint. */
struct link {
    struct uc_fabric_endpoint *endpoint;
    enum uc_status state; /* last told; Retry before the first */
    bool told;
};

static const struct uc_fabric_ops *ops;
static struct uc_fabric *fabric;
static struct uc_fabric_domain *domain;
static struct test_peer *control;
static struct test_peer *worker;
static struct link link_of_worker;

static uint8_t block[FIXTURE_BLOCK_BYTES];

static void
on_state(void *context, struct uc_fabric_endpoint *endpoint, enum uc_status status)
{
    struct link *link = context;

    (void)endpoint;
    link->state = status;
    link->told = true;
}

static void
step(void)
{
    struct pollfd pollfd = {.fd = ops->event_fd(fabric), .events = POLLIN};

    if (ops->poll(fabric, 64) == 0 && ops->arm(fabric)) {
        (void)poll(&pollfd, 1, 20);
    }
}

static void
wait_told(struct link *link)
{
    uint64_t end_ns = uc_clock_now_ns() + (uint64_t)WAIT_MS * 1000000;

    link->told = false;
    while (!link->told && uc_clock_now_ns() < end_ns) {
        step();
    }
    ck_assert(link->told);
}

static enum uc_status
connect_with(struct link *link, const struct test_peer *peer)
{
    struct uc_fabric_connect params = {
            .address = "127.0.0.1",
            .port = peer->fabric_port,
            .nonce = peer->attach.nonce,
            .regions = peer->regions,
            .region_count = peer->region_count,
            .timeout_ms = CONNECT_MS,
            .on_state = on_state,
            .context = link,
    };

    ck_assert_int_eq(ops->connect(domain, &params, &link->endpoint), UC_OK);
    wait_told(link);
    return link->state;
}

static void
disconnect(struct link *link)
{
    ops->disconnect(link->endpoint);
    link->endpoint = NULL;
}

struct waited_op {
    struct uc_fabric_op op;
    enum uc_status status;
    bool done;
};

static void
on_done(struct uc_fabric_op *op, enum uc_status status)
{
    struct waited_op *waited = (struct waited_op *)(void *)op;

    waited->status = status;
    waited->done = true;
}

static enum uc_status
transfer(struct link *link, enum uc_fabric_opcode opcode, const struct uc_entry *entry,
        uint64_t offset, void *bytes, uint64_t length)
{
    struct uc_fabric_piece piece = {.address = bytes, .length_bytes = length};
    uint64_t end_ns = uc_clock_now_ns() + (uint64_t)WAIT_MS * 1000000;
    struct waited_op waited = {
            .op =
                    {
                            .opcode = opcode,
                            .region_idx = entry->region_idx,
                            .offset_bytes = entry->offset_bytes + offset,
                            .generation = entry->generation,
                            .pieces = opcode == UC_FABRIC_FLUSH ? NULL : &piece,
                            .piece_count = opcode == UC_FABRIC_FLUSH ? 0 : 1,
                            .on_done = on_done,
                    },
    };
    enum uc_status status = ops->post(link->endpoint, &waited.op);

    if (status != UC_OK) {
        return status;
    }
    while (!waited.done && uc_clock_now_ns() < end_ns) {
        step();
    }
    ck_assert(waited.done);
    return waited.status;
}

static enum uc_status
write_bytes(struct link *link, const struct uc_entry *entry, uint64_t offset, uint64_t length)
{
    return transfer(link, UC_FABRIC_WRITE, entry, offset, block, length);
}

/* Data, writer's footer, flush: what a client does between begin and end. */
static void
write_block(struct link *link, const struct uc_entry *entry, unsigned number, unsigned seed)
{
    struct uc_checksum_piece piece = {.address = block, .length_bytes = sizeof(block)};
    struct uc_block_id id = test_id(number);
    uint8_t writer[UC_FOOTER_WRITER_BYTES];

    for (size_t idx = 0; idx < sizeof(block); idx++) {
        block[idx] = (uint8_t)(idx * 31 + seed);
    }
    uc_slot_footer_put_writer(writer, sizeof(block), UC_CHECKSUM_XXH3_64,
            uc_slot_checksum(&id, entry->generation, &piece, 1));
    ck_assert_int_eq(write_bytes(link, entry, 0, sizeof(block)), UC_OK);
    ck_assert_int_eq(transfer(link, UC_FABRIC_WRITE, entry,
                             FIXTURE_BLOCK_BYTES + UC_FOOTER_WRITER_OFFSET, writer, sizeof(writer)),
            UC_OK);
    ck_assert_int_eq(transfer(link, UC_FABRIC_FLUSH, entry, 0, NULL, 0), UC_OK);
}

static const struct uc_written_range whole = {0, FIXTURE_BLOCK_BYTES, FIXTURE_BLOCK_BYTES};

static struct test_grant
put(unsigned number)
{
    struct test_grant grant;

    ck_assert_int_eq(test_alloc(control, number, 1, &grant), UC_OK);
    ck_assert_int_eq(test_begin(worker, grant.id, 1, 0, 1), UC_OK);
    write_block(&link_of_worker, &grant.entries[0], number, number);
    ck_assert_int_eq(test_end(worker, 1, true, &whole, 1), UC_OK);
    ck_assert_int_eq(test_commit(control, grant.id, true), UC_OK);
    return grant;
}

static void
setup(void)
{
    struct uc_fabric_config config = {.address = "127.0.0.1"};

    fixture_start("--debug-calls=true", NULL);
    ck_assert_int_eq(uc_fabric_find("tcp", &ops), UC_OK);
    ck_assert_int_eq(ops->open(&config, &fabric), UC_OK);
    ck_assert_int_eq(ops->domain_open(fabric, &domain), UC_OK);
    control = test_session(UC_ACCESS_RW);
    worker = test_worker(control);
    ck_assert_int_eq(connect_with(&link_of_worker, worker), UC_OK);
}

static void
teardown(void)
{
    ops->disconnect(link_of_worker.endpoint);
    link_of_worker.endpoint = NULL;
    ops->domain_close(domain);
    ops->close(fabric);
    test_close(worker);
    test_close(control);
    fixture_stop();
}

START_TEST(block_is_read_back_with_a_footer_that_vouches_for_it)
{
    struct test_peer *reader = test_session(UC_ACCESS_RO);
    struct test_peer *reader_worker = test_worker(reader);
    struct uc_checksum_piece piece = {.length_bytes = FIXTURE_BLOCK_BYTES};
    uint8_t slot[FIXTURE_BLOCK_BYTES + UC_FOOTER_BYTES];
    struct uc_block_id id = test_id(7);
    struct uc_slot_footer footer;
    struct link link = {0};
    struct test_grant pin;
    struct uc_stat_reply stat;

    (void)put(7);
    ck_assert_int_eq(connect_with(&link, reader_worker), UC_OK);
    ck_assert_int_eq(test_pin(reader, 7, 1, &pin), UC_OK);
    ck_assert_int_eq(
            transfer(&link, UC_FABRIC_READ, &pin.entries[0], 0, slot, sizeof(slot)), UC_OK);
    ck_assert_mem_eq(slot, block, sizeof(block));
    ck_assert_int_eq(uc_slot_footer_get(slot + FIXTURE_BLOCK_BYTES, &footer), UC_OK);
    ck_assert_uint_eq(footer.state, UC_FOOTER_COMMITTED);
    ck_assert_uint_eq(footer.generation, pin.entries[0].generation);
    ck_assert_uint_eq(footer.length_bytes, FIXTURE_BLOCK_BYTES);
    ck_assert_mem_eq(&footer.key, &id, sizeof(id));
    piece.address = slot;
    ck_assert_uint_eq(footer.checksum, uc_slot_checksum(&id, footer.generation, &piece, 1));
    stat = test_stat(control);
    ck_assert_uint_eq(stat.read_bytes_total, sizeof(slot));
    ck_assert_uint_eq(stat.written_bytes_total, FIXTURE_BLOCK_BYTES + UC_FOOTER_WRITER_BYTES);

    /* §3: a read-only session has endpoints that cannot write. */
    ck_assert_int_eq(write_bytes(&link, &pin.entries[0], 0, 8), UC_ERR_PERMISSION_DENIED);
    disconnect(&link);
    test_close(reader_worker);
    test_close(reader);
}
END_TEST

START_TEST(write_needs_an_open_bracket_on_a_slot_of_its_own)
{
    struct test_grant grant;

    ck_assert_int_eq(test_alloc(control, 1, 1, &grant), UC_OK);
    ck_assert_int_eq(write_bytes(&link_of_worker, &grant.entries[0], 0, 8), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(test_begin(worker, grant.id, 1, 0, 1), UC_OK);
    ck_assert_int_eq(write_bytes(&link_of_worker, &grant.entries[0], 0, 8), UC_OK);
    ck_assert_int_eq(test_end(worker, 1, true, &whole, 1), UC_OK);
    ck_assert_int_eq(write_bytes(&link_of_worker, &grant.entries[0], 0, 8), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(test_commit(control, grant.id, true), UC_OK);
    /* P2: a committed block is immutable, whoever asks with the right generation. */
    ck_assert_int_eq(write_bytes(&link_of_worker, &grant.entries[0], 0, 8), UC_ERR_INVALID_PARAM);
}
END_TEST

START_TEST(bracket_on_a_present_block_allows_no_write)
{
    struct test_grant grant;

    (void)put(1);
    ck_assert_int_eq(test_alloc(control, 1, 1, &grant), UC_OK);
    ck_assert_uint_eq(grant.entries[0].flags, UC_ENTRY_PRESENT);
    ck_assert_int_eq(test_begin(worker, grant.id, 1, 0, 1), UC_OK);
    ck_assert_int_eq(write_bytes(&link_of_worker, &grant.entries[0], 0, 8), UC_ERR_INVALID_PARAM);
}
END_TEST

/* Ranges of a slot that its writer may not write. */
static const struct {
    uint64_t offset;
    uint64_t length;
} foreign_ranges[] = {
        {FIXTURE_BLOCK_BYTES, 8},                            /* the server's footer part */
        {FIXTURE_BLOCK_BYTES + 24, 16},                      /* from there into the writer's */
        {0, FIXTURE_BLOCK_BYTES + 1},                        /* data and a byte of the footer */
        {FIXTURE_BLOCK_BYTES + UC_FOOTER_WRITER_OFFSET, 33}, /* into the next slot */
};

START_TEST(write_outside_data_and_writer_footer_is_refused)
{
    uint8_t bytes[FIXTURE_BLOCK_BYTES + 64] = {0};
    struct test_grant grant;

    ck_assert_int_eq(test_alloc(control, 1, 1, &grant), UC_OK);
    ck_assert_int_eq(test_begin(worker, grant.id, 1, 0, 1), UC_OK);
    ck_assert_int_eq(transfer(&link_of_worker, UC_FABRIC_WRITE, &grant.entries[0],
                             foreign_ranges[_i].offset, bytes, foreign_ranges[_i].length),
            UC_ERR_INVALID_PARAM);
}
END_TEST

/* */
START_TEST(stale_token_reads_and_writes_nothing)
{
    struct test_grant grant;
    struct uc_entry entry;
    uint8_t bytes[8];

    ck_assert_int_eq(test_alloc(control, 1, 1, &grant), UC_OK);
    ck_assert_int_eq(test_begin(worker, grant.id, 1, 0, 1), UC_OK);
    entry = grant.entries[0];
    entry.generation++;
    ck_assert_int_eq(transfer(&link_of_worker, UC_FABRIC_READ, &entry, 0, bytes, sizeof(bytes)),
            UC_ERR_NOT_FOUND);
    ck_assert_int_eq(write_bytes(&link_of_worker, &entry, 0, 8), UC_ERR_NOT_FOUND);
    entry.generation = 0;
    ck_assert_int_eq(transfer(&link_of_worker, UC_FABRIC_READ, &entry, 0, bytes, sizeof(bytes)),
            UC_ERR_INVALID_PARAM);
    /* Concluded: the generation has moved on. */
    ck_assert_int_eq(test_commit(control, grant.id, false), UC_OK);
    ck_assert_int_eq(write_bytes(&link_of_worker, &grant.entries[0], 0, 8), UC_ERR_NOT_FOUND);
    ck_assert_int_eq(test_end(worker, 1, false, NULL, 0), UC_OK);
}
END_TEST

START_TEST(nonce_admits_one_endpoint)
{
    struct link second = {0};

    ck_assert_int_ne(connect_with(&second, worker), UC_OK);
    disconnect(&second);
    ck_assert_int_eq(
            test_attach(worker, control->hello.attach_key, control->hello.incarnation), UC_OK);
    ck_assert_int_eq(connect_with(&second, worker), UC_OK);
    disconnect(&second);
}
END_TEST

/* P3: after write_end(false) was answered the old endpoint is dead, and a new one works. */
START_TEST(failed_write_kills_the_endpoint_and_a_new_nonce_revives)
{
    struct test_grant grant;
    struct test_grant pin;

    ck_assert_int_eq(test_alloc(control, 1, 1, &grant), UC_OK);
    ck_assert_int_eq(test_begin(worker, grant.id, 1, 0, 1), UC_OK);
    ck_assert_int_eq(test_end(worker, 1, false, NULL, 0), UC_OK);
    wait_told(&link_of_worker);
    ck_assert_int_eq(link_of_worker.state, UC_ERR_UNHEALTHY);
    disconnect(&link_of_worker);

    ck_assert_int_eq(
            test_attach(worker, control->hello.attach_key, control->hello.incarnation), UC_OK);
    ck_assert_int_eq(connect_with(&link_of_worker, worker), UC_OK);
    ck_assert_int_eq(test_begin(worker, grant.id, 1, 0, 1), UC_OK);
    write_block(&link_of_worker, &grant.entries[0], 1, 3);
    ck_assert_int_eq(test_end(worker, 1, true, &whole, 1), UC_OK);
    ck_assert_int_eq(test_commit(control, grant.id, true), UC_OK);
    ck_assert_int_eq(test_pin(control, 1, 1, &pin), UC_OK);
}
END_TEST

START_TEST(nonce_given_before_a_fence_is_worthless_after_it)
{
    struct test_grant grant;
    struct link second = {0};

    ck_assert_int_eq(
            test_attach(worker, control->hello.attach_key, control->hello.incarnation), UC_OK);
    ck_assert_int_eq(test_alloc(control, 1, 1, &grant), UC_OK);
    ck_assert_int_eq(test_begin(worker, grant.id, 1, 0, 1), UC_OK);
    ck_assert_int_eq(test_end(worker, 1, false, NULL, 0), UC_OK);
    ck_assert_int_ne(connect_with(&second, worker), UC_OK);
    disconnect(&second);
}
END_TEST

START_TEST(end_of_the_session_kills_the_endpoints_of_its_group)
{
    struct test_peer *witness = test_session(UC_ACCESS_RW);
    struct test_grant grant;
    uint8_t bytes[8];

    ck_assert_int_eq(test_alloc(control, 1, 1, &grant), UC_OK);
    ck_assert_int_eq(test_begin(worker, grant.id, 1, 0, 1), UC_OK);
    ck_assert_int_eq(write_bytes(&link_of_worker, &grant.entries[0], 0, 8), UC_OK);
    test_close(control);
    test_wait_idle(witness, 1); /* released: so it was fenced before */
    ck_assert_int_eq(transfer(&link_of_worker, UC_FABRIC_READ, &grant.entries[0], 0, bytes, 8),
            UC_ERR_UNHEALTHY);
    control = witness; /* for teardown */
}
END_TEST

/* The server checks itself: a bad reader cannot empty the cache, a damaged block goes. */
START_TEST(report_drops_a_block_only_if_it_is_damaged)
{
    struct test_grant grant = put(1);
    uint64_t generation = grant.entries[0].generation;

    ck_assert_int_eq(test_report(worker, 1, generation), UC_OK);
    ck_assert_uint_eq(test_lookup(control, 1, 1), 1);
    ck_assert_int_eq(test_flip(control, 1, FIXTURE_BLOCK_BYTES), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(test_flip(control, 2, 0), UC_ERR_NOT_FOUND);
    ck_assert_int_eq(test_flip(control, 1, 17), UC_OK);
    ck_assert_uint_eq(test_lookup(control, 1, 1), 1);                 /* nobody has noticed yet */
    ck_assert_int_eq(test_report(control, 1, generation + 1), UC_OK); /* another block's */
    ck_assert_uint_eq(test_lookup(control, 1, 1), 1);
    ck_assert_int_eq(test_report(control, 1, generation), UC_OK);
    ck_assert_uint_eq(test_lookup(control, 1, 1), 0);
    ck_assert_uint_eq(test_stat(control).revoked_blocks_total, 1);
    ck_assert_uint_eq(test_stat(control).reports_total, 3);
}
END_TEST

START_TEST(reports_without_end_are_slowed_down)
{
    struct test_grant grant = put(1);
    enum uc_status status = UC_OK;
    int count = 0;

    while (status == UC_OK && count < 1000) {
        status = test_report(worker, 1, grant.entries[0].generation);
        count++;
    }
    ck_assert_int_eq(status, UC_ERR_RETRY);
    ck_assert_int_eq(test_ping(worker), UC_OK);
    fixture_pass_ms(control, 100);
    ck_assert_int_eq(test_ping(worker), UC_OK);
}
END_TEST

static void
add_tests(TCase *tcase)
{
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, block_is_read_back_with_a_footer_that_vouches_for_it);
    tcase_add_test(tcase, write_needs_an_open_bracket_on_a_slot_of_its_own);
    tcase_add_test(tcase, bracket_on_a_present_block_allows_no_write);
    tcase_add_loop_test(tcase, write_outside_data_and_writer_footer_is_refused, 0,
            (int)(sizeof(foreign_ranges) / sizeof(foreign_ranges[0])));
    tcase_add_test(tcase, stale_token_reads_and_writes_nothing);
    tcase_add_test(tcase, nonce_admits_one_endpoint);
    tcase_add_test(tcase, failed_write_kills_the_endpoint_and_a_new_nonce_revives);
    tcase_add_test(tcase, nonce_given_before_a_fence_is_worthless_after_it);
    tcase_add_test(tcase, end_of_the_session_kills_the_endpoints_of_its_group);
    tcase_add_test(tcase, report_drops_a_block_only_if_it_is_damaged);
    tcase_add_test(tcase, reports_without_end_are_slowed_down);
}

int
main(void)
{
    Suite *suite = suite_create("server/fabric");
    TCase *tcase = tcase_create("fabric");
    SRunner *runner;
    int failed_count;

    add_tests(tcase);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed_count = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed_count == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
