/* SPDX-License-Identifier: Apache-2.0 */

/* Packets byte by byte, as net/PROTOCOL.md writes them down, and what shared pages may claim. */

#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "net/shm/shm_address.h"
#include "net/shm/shm_ring.h"
#include "net/shm/shm_socket.h"
#include "net/shm/shm_wire.h"
#include "test/unit/net/protocol_document.h"

static const uint8_t nonce[UC_FABRIC_NONCE_BYTES] = {
        0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

static const struct uc_shm_packet region = {
        .kind = UC_SHM_REGION, .slot = 3, .offset_bytes = 4096, .length_bytes = 1 << 20};
static const struct uc_shm_packet verdict = {
        .kind = UC_SHM_VERDICT, .slot = 3, .status = UC_ERR_INVALID_PARAM};
static const struct uc_shm_packet forget = {.kind = UC_SHM_FORGET, .slot = 3};
static const struct uc_shm_packet wake = {.kind = UC_SHM_WAKE};

START_TEST(greeting_has_the_documented_bytes)
{
    struct uc_shm_answer answer = {.status = UC_OK, .file_count = 1};
    struct uc_shm_answer got;
    uint8_t hello[UC_SHM_HELLO_BYTES];
    uint8_t bytes[UC_SHM_ANSWER_BYTES];
    uint8_t seen[UC_FABRIC_NONCE_BYTES];

    uc_shm_hello_put(hello, nonce);
    uc_protocol_compare("shm-hello", hello, sizeof(hello));
    ck_assert_int_eq(uc_shm_hello_get(hello, sizeof(hello), seen), UC_OK);
    ck_assert_mem_eq(seen, nonce, sizeof(nonce));

    uc_shm_answer_put(bytes, &answer);
    uc_protocol_compare("shm-answer-ok", bytes, sizeof(bytes));
    ck_assert_int_eq(uc_shm_answer_get(bytes, sizeof(bytes), &got), UC_OK);
    ck_assert_int_eq(got.status, UC_OK);
    ck_assert_uint_eq(got.file_count, 1);
}
END_TEST

static const struct {
    const struct uc_shm_packet *packet;
    const char *example;
} packets[] = {
        {&region, "shm-region"},
        {&verdict, "shm-verdict"},
        {&forget, "shm-forget"},
        {&wake, "shm-wake"},
};

START_TEST(packet_has_the_documented_bytes)
{
    const struct uc_shm_packet *packet = packets[_i].packet;
    struct uc_shm_packet got;
    uint8_t bytes[UC_SHM_PACKET_BYTES];
    size_t length = uc_shm_packet_put(bytes, packet);

    uc_protocol_compare(packets[_i].example, bytes, length);
    ck_assert_int_eq(uc_shm_packet_get(bytes, length, &got), UC_OK);
    ck_assert_int_eq(got.kind, packet->kind);
    ck_assert_uint_eq(got.slot, packet->slot);
    ck_assert_uint_eq(got.offset_bytes, packet->offset_bytes);
    ck_assert_uint_eq(got.length_bytes, packet->length_bytes);
    ck_assert_int_eq(got.status, packet->status);
}
END_TEST

/* Every other length than the right one. */
START_TEST(packet_of_another_length_is_refused)
{
    struct uc_shm_packet got = {.slot = 77};
    uint8_t bytes[2 * UC_SHM_PACKET_BYTES] = {0};
    size_t right = uc_shm_packet_put(bytes, packets[_i].packet);

    for (size_t length = 0; length <= sizeof(bytes); length++) {
        if (length != right) {
            ck_assert_int_eq(uc_shm_packet_get(bytes, length, &got), UC_ERR_INVALID_PARAM);
        }
    }
    ck_assert_uint_eq(got.slot, 77);
}
END_TEST

/* One byte of a good packet changed. */
static const struct {
    const struct uc_shm_packet *packet;
    size_t at;
    uint8_t value;
} spoiled[] = {
        {&region, 0, 'X'},   /* magic */
        {&region, 3, 'X'},   /* of no packet */
        {&region, 5, 1},     /* slot 259 */
        {&region, 7, 0x80},  /* slot 2^31 */
        {&region, 18, 0},    /* no bytes */
        {&verdict, 5, 1},    /* slot 259 */
        {&verdict, 8, 0xb1}, /* a code that nobody knows */
        {&verdict, 12, 1},   /* spare */
        {&forget, 5, 1},     /* slot 259 */
        {&wake, 4, 1},       /* spare */
};

START_TEST(spoiled_packet_is_refused)
{
    struct uc_shm_packet got = {.slot = 77};
    uint8_t bytes[UC_SHM_PACKET_BYTES];
    size_t length = uc_shm_packet_put(bytes, spoiled[_i].packet);

    bytes[spoiled[_i].at] = spoiled[_i].value;
    ck_assert_int_eq(uc_shm_packet_get(bytes, length, &got), UC_ERR_INVALID_PARAM);
    ck_assert_uint_eq(got.slot, 77);
}
END_TEST

START_TEST(spoiled_hello_is_refused)
{
    static const struct {
        size_t at;
        enum uc_status want;
    } rows[] = {{0, UC_ERR_INVALID_PARAM}, {3, UC_ERR_INVALID_PARAM}, {4, UC_ERR_UNSUPPORTED},
            {7, UC_ERR_UNSUPPORTED}, {24, UC_ERR_INVALID_PARAM}, {31, UC_ERR_INVALID_PARAM}};
    uint8_t bytes[UC_SHM_HELLO_BYTES + 1];
    uint8_t seen[UC_FABRIC_NONCE_BYTES] = {0};

    for (size_t idx = 0; idx < sizeof(rows) / sizeof(rows[0]); idx++) {
        uc_shm_hello_put(bytes, nonce);
        bytes[rows[idx].at] ^= 0x40;
        ck_assert_int_eq(uc_shm_hello_get(bytes, UC_SHM_HELLO_BYTES, seen), rows[idx].want);
    }
    uc_shm_hello_put(bytes, nonce);
    ck_assert_int_eq(uc_shm_hello_get(bytes, UC_SHM_HELLO_BYTES - 1, seen), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_shm_hello_get(bytes, UC_SHM_HELLO_BYTES + 1, seen), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_shm_hello_get(bytes, 0, seen), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(seen[15], 0);
}
END_TEST

START_TEST(answer_may_not_promise_too_much)
{
    struct uc_shm_answer answer = {.status = UC_OK, .file_count = UC_SHM_FILE_COUNT};
    struct uc_shm_answer got = {.file_count = 77};
    uint8_t bytes[UC_SHM_ANSWER_BYTES];

    uc_shm_answer_put(bytes, &answer);
    ck_assert_int_eq(uc_shm_answer_get(bytes, sizeof(bytes) - 1, &got), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_shm_answer_get(bytes, sizeof(bytes), &got), UC_OK);
    got.file_count = 77;

    answer.file_count = UC_SHM_FILE_COUNT + 1;
    uc_shm_answer_put(bytes, &answer);
    ck_assert_int_eq(uc_shm_answer_get(bytes, sizeof(bytes), &got), UC_ERR_INVALID_PARAM);
    answer.file_count = UINT32_MAX;
    uc_shm_answer_put(bytes, &answer);
    ck_assert_int_eq(uc_shm_answer_get(bytes, sizeof(bytes), &got), UC_ERR_INVALID_PARAM);
    answer = (struct uc_shm_answer){.status = UC_ERR_PERMISSION_DENIED, .file_count = 1};
    uc_shm_answer_put(bytes, &answer);
    ck_assert_int_eq(uc_shm_answer_get(bytes, sizeof(bytes), &got), UC_ERR_INVALID_PARAM);
    answer = (struct uc_shm_answer){.status = (enum uc_status) - 7};
    uc_shm_answer_put(bytes, &answer);
    ck_assert_int_eq(uc_shm_answer_get(bytes, sizeof(bytes), &got), UC_ERR_INVALID_PARAM);
    ck_assert_uint_eq(got.file_count, 77);

    /* A later version refuses in this layout. */
    answer = (struct uc_shm_answer){.status = UC_OK};
    uc_shm_answer_put(bytes, &answer);
    bytes[4]++;
    ck_assert_int_eq(uc_shm_answer_get(bytes, sizeof(bytes), &got), UC_OK);
    ck_assert_int_eq(got.status, UC_ERR_UNSUPPORTED);
}
END_TEST

static struct uc_shm_client_pages *
pages_make(void)
{
    struct uc_shm_client_pages *pages =
            aligned_alloc(alignof(struct uc_shm_client_pages), sizeof(*pages));

    ck_assert_ptr_nonnull(pages);
    memset(pages, 0, sizeof(*pages));
    return pages;
}

START_TEST(entry_comes_out_as_it_was_put)
{
    struct uc_shm_client_pages *pages = pages_make();
    struct uc_shm_entry entry = {.region_idx = 5,
            .source = UC_SHM_FROM_STAGING,
            .offset_bytes = UINT64_MAX - 1,
            .length_bytes = 3,
            .generation = UINT64_C(1) << 63,
            .source_offset_bytes = 9};
    struct uc_shm_entry got;

    uc_shm_entry_put(pages, UC_SHM_ENTRY_COUNT + 7, &entry);
    uc_shm_entry_take(pages, 7, &got);
    ck_assert_uint_eq(got.region_idx, 5);
    ck_assert_uint_eq(got.source, UC_SHM_FROM_STAGING);
    ck_assert_uint_eq(got.offset_bytes, UINT64_MAX - 1);
    ck_assert_uint_eq(got.length_bytes, 3);
    ck_assert_uint_eq(got.generation, UINT64_C(1) << 63);
    ck_assert_uint_eq(got.source_offset_bytes, 9);
    free(pages);
}
END_TEST

START_TEST(ring_that_claims_more_than_it_holds_is_refused)
{
    static const struct {
        uint64_t queued;
        uint64_t done;
        uint64_t want; /* UINT64_MAX: refused */
    } rows[] = {{0, 0, 0}, {256, 0, 256}, {257, 0, UINT64_MAX}, {300, 256, 44}, {5, 6, UINT64_MAX},
            {UINT64_MAX, 0, UINT64_MAX}, {3, UINT64_MAX - 2, 6}, {0, UINT64_MAX, 1}};
    struct uc_shm_client_pages *pages = pages_make();

    for (size_t idx = 0; idx < sizeof(rows) / sizeof(rows[0]); idx++) {
        uint64_t count = UINT64_MAX;

        atomic_store(&pages->queued, rows[idx].queued);
        ck_assert_int_eq(uc_shm_ring_waiting(pages, rows[idx].done, &count),
                rows[idx].want == UINT64_MAX ? UC_ERR_INVALID_PARAM : UC_OK);
        ck_assert_uint_eq(count, rows[idx].want);
    }
    free(pages);
}
END_TEST

START_TEST(staging_ends_where_it_ends)
{
    struct uc_shm_client_pages *pages = pages_make();
    const uint64_t size = UC_SHM_STAGING_BYTES;

    ck_assert_ptr_eq(uc_shm_staging_at(pages, 0, size), pages->staging);
    ck_assert_ptr_eq(uc_shm_staging_at(pages, size - 1, 1), &pages->staging[size - 1]);
    ck_assert_ptr_null(uc_shm_staging_at(pages, 0, size + 1));
    ck_assert_ptr_null(uc_shm_staging_at(pages, size - 1, 2));
    ck_assert_ptr_null(uc_shm_staging_at(pages, size + 1, 0));
    ck_assert_ptr_null(uc_shm_staging_at(pages, UINT64_MAX, 2));
    ck_assert_ptr_null(uc_shm_staging_at(pages, 2, UINT64_MAX));
    free(pages);
}
END_TEST

START_TEST(address_is_this_hosts_or_not)
{
    char text[UC_SHM_ADDRESS_BYTES];
    char other[UC_SHM_ADDRESS_BYTES + 64];
    struct uc_shm_address made;
    struct uc_shm_address read;
    static const char *const bad[] = {"", "/", "127.0.0.1", "host/", "host/Name", "host/a b",
            "host/a/b", "host/..",
            "host/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};

    ck_assert_int_eq(uc_shm_address_make(text, &made), UC_OK);
    ck_assert_int_eq(uc_shm_address_parse(text, &read), UC_OK);
    ck_assert_uint_eq(read.length_bytes, made.length_bytes);
    ck_assert_mem_eq(&read.socket, &made.socket, made.length_bytes);
    for (size_t idx = 0; idx < sizeof(bad) / sizeof(bad[0]); idx++) {
        ck_assert_int_eq(uc_shm_address_parse(bad[idx], &read), UC_ERR_INVALID_PARAM);
    }

    /* Another boot, another network namespace, more or less of the same. */
    (void)snprintf(other, sizeof(other), "%s", text);
    other[0] = other[0] == 'f' ? '0' : 'f';
    ck_assert_int_eq(uc_shm_address_parse(other, &read), UC_ERR_UNSUPPORTED);
    (void)snprintf(other, sizeof(other), "%.*s9%s", (int)(strchr(text, '/') - text), text,
            strchr(text, '/'));
    ck_assert_int_eq(uc_shm_address_parse(other, &read), UC_ERR_UNSUPPORTED);
    ck_assert_int_eq(uc_shm_address_parse(text + 1, &read), UC_ERR_UNSUPPORTED);
    ck_assert_int_eq(uc_shm_address_parse("/name", &read), UC_ERR_UNSUPPORTED);
}
END_TEST

START_TEST(peer_is_trusted_if_it_is_us_or_root)
{
    ck_assert(uc_shm_user_is_trusted(1000, 1000));
    ck_assert(uc_shm_user_is_trusted(0, 1000));
    ck_assert(!uc_shm_user_is_trusted(1001, 1000));
    ck_assert(!uc_shm_user_is_trusted(1000, 0));
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("shm_wire");
    TCase *tcase = tcase_create("all");
    SRunner *runner;
    int failed;

    tcase_add_test(tcase, greeting_has_the_documented_bytes);
    tcase_add_loop_test(tcase, packet_has_the_documented_bytes, 0, 4);
    tcase_add_loop_test(tcase, packet_of_another_length_is_refused, 0, 4);
    tcase_add_loop_test(tcase, spoiled_packet_is_refused, 0, sizeof(spoiled) / sizeof(spoiled[0]));
    tcase_add_test(tcase, spoiled_hello_is_refused);
    tcase_add_test(tcase, answer_may_not_promise_too_much);
    tcase_add_test(tcase, entry_comes_out_as_it_was_put);
    tcase_add_test(tcase, ring_that_claims_more_than_it_holds_is_refused);
    tcase_add_test(tcase, staging_ends_where_it_ends);
    tcase_add_test(tcase, address_is_this_hosts_or_not);
    tcase_add_test(tcase, peer_is_trusted_if_it_is_us_or_root);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
