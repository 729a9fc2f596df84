/* SPDX-License-Identifier: Apache-2.0 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "net/rpc/connection.h"
#include "net/rpc/messages.h"

#define TEXT(literal) ((struct uc_rpc_text){.bytes = (literal), .length = sizeof(literal) - 1})

static struct uc_rpc_buffer buffer;

static void
setup(void)
{
    uc_rpc_buffer_reset(&buffer);
}

static void
teardown(void)
{
    uc_rpc_buffer_fini(&buffer);
}

/* What was encoded, checked to be one object. */
static struct uc_rpc_view
view(void)
{
    ck_assert(!buffer.failed);
    ck_assert_int_eq(uc_rpc_scan(buffer.bytes, buffer.length), UC_OK);
    return (struct uc_rpc_view){.bytes = buffer.bytes, .length = buffer.length};
}

static struct uc_rpc_view
raw(const void *bytes, size_t length)
{
    return (struct uc_rpc_view){.bytes = bytes, .length = length};
}
#define RAW(literal) raw((literal), sizeof(literal) - 1)

static void
assert_text(struct uc_rpc_text text, const char *want)
{
    ck_assert_uint_eq(text.length, strlen(want));
    ck_assert_mem_eq(text.bytes, want, text.length);
}

START_TEST(hello_request_comes_back)
{
    struct uc_hello_request in = {
            .version = 1,
            .name_space = TEXT("llama"),
            .access = UC_ACCESS_ADMIN,
            .credential = TEXT("secret"),
            .client = TEXT("node7/4711"),
    };
    struct uc_hello_request out;

    uc_hello_request_encode(&buffer, &in);
    ck_assert_int_eq(uc_hello_request_decode(view(), &out), UC_OK);
    ck_assert_uint_eq(out.version, 1);
    ck_assert_int_eq(out.access, UC_ACCESS_ADMIN);
    assert_text(out.name_space, "llama");
    assert_text(out.credential, "secret");
    assert_text(out.client, "node7/4711");
}
END_TEST

START_TEST(hello_reply_comes_back)
{
    struct uc_hello_reply in = {
            .server_id = {1, 2, 3},
            .incarnation = UINT64_MAX,
            .session = 7,
            .lease_ms = 10000,
            .block_bytes = 1 << 20,
            .slot_bytes = (1 << 20) + 64,
            .attach_key = {4, 5},
            .mac_key = {6},
    };
    struct uc_hello_reply out;

    uc_hello_reply_encode(&buffer, &in);
    ck_assert_int_eq(uc_hello_reply_decode(view(), &out), UC_OK);
    ck_assert_mem_eq(&out, &in, sizeof(in));
}
END_TEST

START_TEST(attach_request_comes_back)
{
    struct uc_attach_request in = {
            .version = 1,
            .attach_key = {9, 8, 7},
            .incarnation = 0x1122334455667788,
            .client = TEXT("worker"),
    };
    struct uc_attach_request out;

    uc_attach_request_encode(&buffer, &in);
    ck_assert_int_eq(uc_attach_request_decode(view(), &out), UC_OK);
    ck_assert_mem_eq(out.attach_key, in.attach_key, sizeof(in.attach_key));
    ck_assert_uint_eq(out.incarnation, in.incarnation);
    assert_text(out.client, "worker");
}
END_TEST

static void
encode_attach_reply(void)
{
    static const uint8_t lengths[2 * 8] = {1, [8] = 2};
    static const uint8_t keys[2 * 16] = {3, [16] = 4};
    struct uc_attach_reply in = {
            .attachment = 5,
            .incarnation = 6,
            .lease_ms = 7,
            .block_bytes = 8,
            .slot_bytes = 9,
            .access = UC_ACCESS_RO,
            .mac_key = {10},
            .nonce = {11},
            .region_count = 2,
            .region_lengths = lengths,
            .fabric_count = 2,
            .fabrics =
                    {
                            {.name = TEXT("tcp"), .address = TEXT(""), .port = 7471, .keys = keys},
                            {.name = TEXT("verbs"),
                                    .address = TEXT("10.0.0.1"),
                                    .port = 65535,
                                    .keys = keys},
                    },
    };

    uc_attach_reply_encode(&buffer, &in);
}

START_TEST(attach_reply_comes_back)
{
    struct uc_attach_reply out;

    encode_attach_reply();
    ck_assert_int_eq(uc_attach_reply_decode(view(), &out), UC_OK);
    ck_assert_uint_eq(out.attachment, 5);
    ck_assert_int_eq(out.access, UC_ACCESS_RO);
    ck_assert_uint_eq(out.nonce[0], 11);
    ck_assert_uint_eq(out.region_count, 2);
    ck_assert_uint_eq(out.region_lengths[8], 2);
    ck_assert_uint_eq(out.fabric_count, 2);
    assert_text(out.fabrics[0].name, "tcp");
    assert_text(out.fabrics[0].address, "");
    ck_assert_uint_eq(out.fabrics[0].port, 7471);
    assert_text(out.fabrics[1].address, "10.0.0.1");
    ck_assert_uint_eq(out.fabrics[1].port, 65535);
    ck_assert_uint_eq(out.fabrics[1].keys[16], 4);
}
END_TEST

START_TEST(attach_reply_is_refused_where_keys_and_regions_differ_in_number)
{
    struct uc_attach_reply out;
    uint8_t *regions;

    encode_attach_reply();
    regions = memmem(buffer.bytes, buffer.length, "regions\xc4\x10", 9);
    ck_assert_ptr_nonnull(regions);
    /* One region instead of two, while the fabrics keep two keys each. */
    regions[8] = 8;
    memmove(regions + 9 + 8, regions + 9 + 16,
            buffer.length - (size_t)(regions + 9 + 16 - buffer.bytes));
    buffer.length -= 8;
    ck_assert_int_eq(uc_attach_reply_decode(view(), &out), UC_ERR_INVALID_PARAM);
    ck_assert_ptr_nonnull(strstr(uc_last_error(), "fabrics"));
}
END_TEST

START_TEST(attach_reply_keeps_the_fabrics_that_fit)
{
    struct uc_attach_reply in = {.fabric_count = UC_FABRICS_MAX};
    struct uc_attach_reply out;
    uint8_t *count;

    for (size_t idx = 0; idx < UC_FABRICS_MAX; idx++) {
        in.fabrics[idx].name = TEXT("tcp");
    }
    uc_attach_reply_encode(&buffer, &in);
    /* One more, from a newer server: the array is the map's last value. */
    count = memmem(buffer.bytes, buffer.length, "fabrics", 7);
    ck_assert_ptr_nonnull(count);
    ck_assert_uint_eq(count[7], 0x90 + UC_FABRICS_MAX);
    count[7]++;
    uc_rpc_buffer_append(&buffer, "\x80", 1);
    ck_assert_int_eq(uc_attach_reply_decode(view(), &out), UC_OK);
    ck_assert_uint_eq(out.fabric_count, UC_FABRICS_MAX);
}
END_TEST

START_TEST(ping_and_stat_replies_come_back)
{
    struct uc_ping_reply ping = {.server_time_ms = 77, .session_count = 3};
    struct uc_ping_reply ping_out;
    struct uc_stat_reply stat;
    struct uc_stat_reply stat_out;
    uint8_t *bytes = (uint8_t *)&stat;

    uc_ping_reply_encode(&buffer, &ping);
    ck_assert_int_eq(uc_ping_reply_decode(view(), &ping_out), UC_OK);
    ck_assert_mem_eq(&ping_out, &ping, sizeof(ping));

    for (size_t idx = 0; idx < sizeof(stat); idx++) {
        bytes[idx] = (uint8_t)(idx * 7); /* every counter another number */
    }
    uc_rpc_buffer_reset(&buffer);
    uc_stat_reply_encode(&buffer, &stat);
    ck_assert_int_eq(uc_stat_reply_decode(view(), &stat_out), UC_OK);
    ck_assert_mem_eq(&stat_out, &stat, sizeof(stat));
}
END_TEST

START_TEST(empty_params_come_back)
{
    uc_empty_request_encode(&buffer);
    ck_assert_int_eq(uc_empty_request_decode(view()), UC_OK);
    ck_assert_int_eq(uc_empty_request_decode(RAW("\x91\x01")), UC_ERR_INVALID_PARAM);
}
END_TEST

START_TEST(key_lists_and_bitmaps_come_back)
{
    struct uc_block_id ids[9] = {{{1}}, {{2}}};
    struct uc_keys_view out;
    const uint8_t bitmap[2] = {0xa5, 0x01};
    const uint8_t *bitmap_out;

    uc_keys_request_encode(&buffer, (struct uc_keys_view){.ids = ids, .count = 9});
    ck_assert_int_eq(uc_keys_request_decode(view(), &out), UC_OK);
    ck_assert_uint_eq(out.count, 9);
    ck_assert_mem_eq(out.ids, ids, sizeof(ids));

    uc_rpc_buffer_reset(&buffer);
    uc_bitmap_reply_encode(&buffer, bitmap, 9);
    ck_assert_int_eq(uc_bitmap_reply_decode(view(), 9, &bitmap_out), UC_OK);
    ck_assert_mem_eq(bitmap_out, bitmap, 2);
    ck_assert_int_eq(uc_bitmap_reply_decode(view(), 8, &bitmap_out), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_bitmap_reply_decode(view(), 17, &bitmap_out), UC_ERR_INVALID_PARAM);
}
END_TEST

START_TEST(key_lists_above_the_cap_are_refused)
{
    struct uc_block_id *ids = calloc(UC_KEYS_PER_CALL + 1, sizeof(*ids));
    struct uc_keys_view out;

    ck_assert_ptr_nonnull(ids);
    uc_keys_request_encode(&buffer, (struct uc_keys_view){.ids = ids, .count = UC_KEYS_PER_CALL});
    ck_assert_int_eq(uc_keys_request_decode(view(), &out), UC_OK);
    uc_rpc_buffer_reset(&buffer);
    uc_keys_request_encode(
            &buffer, (struct uc_keys_view){.ids = ids, .count = UC_KEYS_PER_CALL + 1});
    ck_assert_int_eq(uc_keys_request_decode(view(), &out), UC_ERR_INVALID_PARAM);
    free(ids);
}
END_TEST

START_TEST(grants_and_entries_come_back)
{
    struct uc_entry entry = {
            .region_idx = 1,
            .flags = UC_ENTRY_PRESENT | UC_ENTRY_SHARED,
            .offset_bytes = 0x1122334455667788,
            .generation = 3,
            .length_bytes = 4,
    };
    struct uc_entry entry_out;
    uint8_t entries[2 * UC_ENTRY_BYTES] = {0};
    struct uc_grant_reply in = {.grant = UINT64_MAX, .entries = entries, .count = 2};
    struct uc_grant_reply out;
    uint64_t grant = 0;

    uc_entry_put(entries + UC_ENTRY_BYTES, &entry);
    uc_grant_reply_encode(&buffer, &in);
    ck_assert_int_eq(uc_grant_reply_decode(view(), &out), UC_OK);
    ck_assert_uint_eq(out.grant, UINT64_MAX);
    ck_assert_uint_eq(out.count, 2);
    uc_entry_get(out.entries + UC_ENTRY_BYTES, &entry_out);
    ck_assert_mem_eq(&entry_out, &entry, sizeof(entry));

    uc_rpc_buffer_reset(&buffer);
    uc_grant_request_encode(&buffer, 42);
    ck_assert_int_eq(uc_grant_request_decode(view(), &grant), UC_OK);
    ck_assert_uint_eq(grant, 42);
}
END_TEST

START_TEST(alloc_and_touch_come_back_with_and_without_ttl)
{
    struct uc_block_id id = {{1}};
    struct uc_alloc_request alloc = {
            .keys = {.ids = &id, .count = 1}, .has_ttl = _i != 0, .ttl_ms = _i != 0 ? 500 : 0};
    struct uc_touch_request touch = {
            .keys = alloc.keys, .has_ttl = alloc.has_ttl, .ttl_ms = alloc.ttl_ms};
    struct uc_alloc_request alloc_out;
    struct uc_touch_request touch_out;

    uc_alloc_request_encode(&buffer, &alloc);
    ck_assert_int_eq(uc_alloc_request_decode(view(), &alloc_out), UC_OK);
    ck_assert_uint_eq(alloc_out.keys.count, 1);
    ck_assert_int_eq(alloc_out.has_ttl, alloc.has_ttl);
    ck_assert_uint_eq(alloc_out.ttl_ms, alloc.ttl_ms);

    uc_rpc_buffer_reset(&buffer);
    uc_touch_request_encode(&buffer, &touch);
    ck_assert_int_eq(uc_touch_request_decode(view(), &touch_out), UC_OK);
    ck_assert_uint_eq(touch_out.keys.count, 1);
    ck_assert_int_eq(touch_out.has_ttl, touch.has_ttl);
    ck_assert_uint_eq(touch_out.ttl_ms, touch.ttl_ms);
}
END_TEST

START_TEST(brackets_come_back)
{
    struct uc_write_begin_request begin = {
            .grant = 1, .bracket = UINT64_MAX, .first_key = 3, .key_count = 4};
    struct uc_write_begin_request begin_out;
    struct uc_written_range range = {
            .offset_bytes = 1, .length_bytes = UINT64_MAX, .announced_bytes = 3};
    struct uc_written_range range_out;
    uint8_t ranges[UC_WRITTEN_BYTES];
    struct uc_write_end_request end = {
            .bracket = 9, .ok = true, .ranges = ranges, .range_count = 1};
    struct uc_write_end_request end_out;

    uc_write_begin_request_encode(&buffer, &begin);
    ck_assert_int_eq(uc_write_begin_request_decode(view(), &begin_out), UC_OK);
    ck_assert_mem_eq(&begin_out, &begin, sizeof(begin));

    uc_written_range_put(ranges, &range);
    uc_rpc_buffer_reset(&buffer);
    uc_write_end_request_encode(&buffer, &end);
    ck_assert_int_eq(uc_write_end_request_decode(view(), &end_out), UC_OK);
    ck_assert_uint_eq(end_out.bracket, 9);
    ck_assert(end_out.ok);
    ck_assert_uint_eq(end_out.range_count, 1);
    uc_written_range_get(end_out.ranges, &range_out);
    ck_assert_mem_eq(&range_out, &range, sizeof(range));
}
END_TEST

START_TEST(commit_comes_back_with_bool_or_bitmap)
{
    const uint8_t bitmap[2] = {0xff, 0x01};
    struct uc_commit_request in = {.grant = 5, .success = true};
    struct uc_commit_request out;

    uc_commit_request_encode(&buffer, &in);
    ck_assert_int_eq(uc_commit_request_decode(view(), &out), UC_OK);
    ck_assert(!out.has_bitmap);
    ck_assert(out.success);

    in = (struct uc_commit_request){
            .grant = 6, .has_bitmap = true, .bitmap = bitmap, .bitmap_bytes = 2};
    uc_rpc_buffer_reset(&buffer);
    uc_commit_request_encode(&buffer, &in);
    ck_assert_int_eq(uc_commit_request_decode(view(), &out), UC_OK);
    ck_assert(out.has_bitmap);
    ck_assert_uint_eq(out.bitmap_bytes, 2);
    ck_assert_mem_eq(out.bitmap, bitmap, 2);
}
END_TEST

START_TEST(report_and_debug_flip_come_back)
{
    struct uc_report_request report = {.key = {{1, 2}}, .generation = 3, .what = TEXT("checksum")};
    struct uc_report_request report_out;
    struct uc_debug_flip_request flip = {.key = {{4}}, .offset_bytes = 5};
    struct uc_debug_flip_request flip_out;

    uc_report_request_encode(&buffer, &report);
    ck_assert_int_eq(uc_report_request_decode(view(), &report_out), UC_OK);
    ck_assert_mem_eq(&report_out.key, &report.key, sizeof(report.key));
    ck_assert_uint_eq(report_out.generation, 3);
    assert_text(report_out.what, "checksum");

    uc_rpc_buffer_reset(&buffer);
    uc_debug_flip_request_encode(&buffer, &flip);
    ck_assert_int_eq(uc_debug_flip_request_decode(view(), &flip_out), UC_OK);
    ck_assert_mem_eq(&flip_out, &flip, sizeof(flip));
}
END_TEST

#define BYTES(text) (text), sizeof(text) - 1

static const struct {
    const char *bytes;
    size_t length;
    const char *named; /* in the error text; NULL = accepted */
} hello_cases[] = {
        {BYTES("\x91\x83\xa7version\x01\xa9namespace\xa1n\xa6"
               "access\xa2rw"),
                NULL},
        /* Unknown keys, with values of any shape, are ignored. */
        {BYTES("\x91\x84\xa7version\x01\xa3new\x92\x81\x01\x02\x90\xa9namespace\xa1n\xa6"
               "access\xa2ro"),
                NULL},
        {BYTES("\x91\x82\xa9namespace\xa1n\xa6"
               "access\xa2rw"),
                "version"}, /* missing */
        {BYTES("\x91\x83\xa7version\x01\xa9namespace\xa1n\xa6"
               "access\xa2rx"),
                "access"}, /* not a role */
        {BYTES("\x91\x83\xa7version\xa1x\xa9namespace\xa1n\xa6"
               "access\xa2rw"),
                "version"}, /* text for a number */
        {BYTES("\x91\x83\xa7version\xff\xa9namespace\xa1n\xa6"
               "access\xa2rw"),
                "version"}, /* negative */
        {BYTES("\x91\x83\xa7version\xcf\0\0\0\1\0\0\0\0\xa9namespace\xa1n\xa6"
               "access\xa2rw"),
                "version"}, /* above 32 bits */
        {BYTES("\x91\x83\xa7version\x01\xa9namespace\xa1\n\xa6"
               "access\xa2rw"),
                "namespace"}, /* control character */
        {BYTES("\x91\x83\xa7version\x01\xa9namespace\xc4\x01n\xa6"
               "access\xa2rw"),
                "namespace"},                   /* bin for text */
        {BYTES("\x91\x81\x01\x02"), "message"}, /* number as key */
        {BYTES("\x91\x90"), "message"},         /* array for a map */
        {BYTES("\x90"), "params"},              /* no map at all */
        {BYTES("\x80"), "params"},              /* no params array */
};

START_TEST(hello_decode_names_the_field_at_fault)
{
    struct uc_hello_request out = {.version = 4711};
    enum uc_status want = hello_cases[_i].named == NULL ? UC_OK : UC_ERR_INVALID_PARAM;

    ck_assert_int_eq(
            uc_hello_request_decode(raw(hello_cases[_i].bytes, hello_cases[_i].length), &out),
            want);
    if (want != UC_OK) {
        ck_assert_msg(
                strstr(uc_last_error(), hello_cases[_i].named) != NULL, "%s", uc_last_error());
        ck_assert_uint_eq(out.version, 4711); /* outputs are written on success only */
    }
}
END_TEST

START_TEST(names_above_the_cap_are_refused)
{
    static char name[UC_NAME_MAX + 1];
    struct uc_hello_request in = {.version = 1, .name_space = {name, UC_NAME_MAX}};
    struct uc_hello_request out;

    memset(name, 'n', sizeof(name));
    in.credential = TEXT("");
    in.client = TEXT("");
    uc_hello_request_encode(&buffer, &in);
    ck_assert_int_eq(uc_hello_request_decode(view(), &out), UC_OK);
    in.name_space.length++;
    uc_rpc_buffer_reset(&buffer);
    uc_hello_request_encode(&buffer, &in);
    ck_assert_int_eq(uc_hello_request_decode(view(), &out), UC_ERR_INVALID_PARAM);
}
END_TEST

START_TEST(packed_params_of_wrong_shape_are_refused)
{
    struct uc_keys_view keys;
    struct uc_alloc_request alloc;
    struct uc_commit_request commit;
    struct uc_write_end_request end;
    struct uc_write_begin_request begin;
    struct uc_report_request report;
    uint64_t grant;

    ck_assert_int_eq(uc_keys_request_decode(RAW("\x91\xc4\x0f"
                                                "123456789012345"),
                             &keys),
            UC_ERR_INVALID_PARAM); /* 15 bytes */
    ck_assert_int_eq(uc_keys_request_decode(RAW("\x91\xa0"), &keys), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_keys_request_decode(RAW("\x92\xc4\0\xc0"), &keys), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_keys_request_decode(RAW("\x91\xc4\0\xc0"), &keys), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_alloc_request_decode(RAW("\x93\xc4\0\xff\xc0"), &alloc),
            UC_ERR_INVALID_PARAM); /* negative ttl */
    ck_assert_int_eq(uc_alloc_request_decode(RAW("\x92\xc4\0\xc0"), &alloc), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_commit_request_decode(RAW("\x92\x01\x01"), &commit), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(
            uc_write_end_request_decode(RAW("\x93\x01\xc3\xc4\x01z"), &end), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(
            uc_write_begin_request_decode(RAW("\x94\x01\x02\xce\x7f\xff\xff\xff\x01"), &begin),
            UC_ERR_INVALID_PARAM); /* first_key above any grant */
    ck_assert_int_eq(uc_grant_request_decode(RAW("\x91\xcb\0\0\0\0\0\0\0\0"), &grant),
            UC_ERR_INVALID_PARAM); /* float */
    ck_assert_int_eq(
            uc_report_request_decode(RAW("\x93\xc4\x01k\x01\xa0"), &report), UC_ERR_INVALID_PARAM);
}
END_TEST

static Suite *
rpc_messages_suite(void)
{
    Suite *suite = suite_create("rpc_messages");
    TCase *codec = tcase_create("codec");

    tcase_add_checked_fixture(codec, setup, teardown);
    tcase_add_test(codec, hello_request_comes_back);
    tcase_add_test(codec, hello_reply_comes_back);
    tcase_add_test(codec, attach_request_comes_back);
    tcase_add_test(codec, attach_reply_comes_back);
    tcase_add_test(codec, attach_reply_is_refused_where_keys_and_regions_differ_in_number);
    tcase_add_test(codec, attach_reply_keeps_the_fabrics_that_fit);
    tcase_add_test(codec, ping_and_stat_replies_come_back);
    tcase_add_test(codec, empty_params_come_back);
    tcase_add_test(codec, key_lists_and_bitmaps_come_back);
    tcase_add_test(codec, key_lists_above_the_cap_are_refused);
    tcase_add_test(codec, grants_and_entries_come_back);
    tcase_add_loop_test(codec, alloc_and_touch_come_back_with_and_without_ttl, 0, 2);
    tcase_add_test(codec, brackets_come_back);
    tcase_add_test(codec, commit_comes_back_with_bool_or_bitmap);
    tcase_add_test(codec, report_and_debug_flip_come_back);
    tcase_add_loop_test(codec, hello_decode_names_the_field_at_fault, 0,
            sizeof(hello_cases) / sizeof(hello_cases[0]));
    tcase_add_test(codec, names_above_the_cap_are_refused);
    tcase_add_test(codec, packed_params_of_wrong_shape_are_refused);
    suite_add_tcase(suite, codec);
    return suite;
}

int
main(void)
{
    SRunner *runner = srunner_create(rpc_messages_suite());
    int failed;

    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
