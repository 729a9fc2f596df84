/* SPDX-License-Identifier: Apache-2.0 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "net/token_payload.h"

enum {
    NODES = 2,
    KEYS = 3,
    COPIES = 2,
    PAYLOAD_BYTES = 32 + NODES * 80 + KEYS * COPIES * 40 + 9 + 6,
};

static struct uc_token_mac *mac;
static struct uc_block_id keys[KEYS];
static uint8_t mac_keys[NODES][UC_TOKEN_KEY_BYTES];
static struct uc_token_node nodes[NODES];
static struct uc_token_entry entries[KEYS * COPIES];
static uint8_t payload[PAYLOAD_BYTES];

static struct uc_token_content
content(void)
{
    return (struct uc_token_content){
            .nodes = nodes,
            .mac_keys = (const uint8_t(*)[UC_TOKEN_KEY_BYTES])mac_keys,
            .node_count = NODES,
            .keys = keys,
            .key_count = KEYS,
            .copies = COPIES,
            .entries = entries,
    };
}

static void
setup(void)
{
    struct uc_token_content all = content();

    ck_assert_int_eq(uc_token_mac_create(&mac), UC_OK);
    memset(keys, 0x5a, sizeof(keys));
    for (size_t idx = 0; idx < NODES; idx++) {
        memset(mac_keys[idx], (int)(0x10 + idx), UC_TOKEN_KEY_BYTES);
        nodes[idx] = (struct uc_token_node){
                .name = idx == 0 ? "mem0:7470" : "[::1]:",
                .name_bytes = idx == 0 ? 9 : 6,
                .server_id = {1, 2, (uint8_t)idx},
                .attach_key = {3, (uint8_t)idx},
                .incarnation = 0x0102030405060708 + idx,
                .grant = 40 + idx,
                .kind = idx == 0 ? UC_TOKEN_READ : UC_TOKEN_WRITE,
        };
    }
    for (size_t idx = 0; idx < KEYS * COPIES; idx++) {
        entries[idx] = (struct uc_token_entry){
                .node_idx = (uint32_t)(idx % NODES),
                .region_idx = (uint32_t)idx,
                .offset_bytes = idx << 33,
                .generation = idx + 1,
                .length_bytes = 4096,
                .flags = (uint32_t)(idx % 4),
        };
    }
    ck_assert_int_eq(uc_token_payload_encode(mac, &all, payload, sizeof(payload)), UC_OK);
}

static void
teardown(void)
{
    uc_token_mac_destroy(mac);
}

/* Parse and check every node, as a worker does that posts to all of them. */
static enum uc_status
accept(const uint8_t *bytes, size_t length)
{
    struct uc_token_view view;
    enum uc_status status = uc_token_payload_parse(bytes, length, KEYS, &view);

    if (status != UC_OK) {
        return status;
    }
    /* What parse let through can be read: the sanitizers watch. */
    for (size_t idx = 0; idx < view.node_count; idx++) {
        struct uc_token_node node;

        uc_token_payload_node(&view, idx, &node);
        ck_assert_uint_ge(node.name_bytes, 1);
    }
    for (size_t idx = 0; idx < NODES && status == UC_OK; idx++) {
        if (idx >= view.node_count) {
            return UC_ERR_INVALID_PARAM;
        }
        status = uc_token_payload_verify(mac, &view, keys, idx, mac_keys[idx]);
    }
    return status;
}

START_TEST(payload_comes_back)
{
    struct uc_token_view view;
    struct uc_token_node node;
    struct uc_token_entry entry;

    ck_assert_int_eq(uc_token_payload_parse(payload, sizeof(payload), KEYS, &view), UC_OK);
    ck_assert_uint_eq(view.node_count, NODES);
    ck_assert_uint_eq(view.copies, COPIES);
    uc_token_payload_node(&view, 1, &node);
    ck_assert_uint_eq(node.name_bytes, 6);
    ck_assert_mem_eq(node.name, "[::1]:", 6);
    ck_assert_mem_eq(node.server_id, nodes[1].server_id, UC_TOKEN_KEY_BYTES);
    ck_assert_mem_eq(node.attach_key, nodes[1].attach_key, UC_TOKEN_KEY_BYTES);
    ck_assert_uint_eq(node.incarnation, nodes[1].incarnation);
    ck_assert_uint_eq(node.grant, 41);
    ck_assert_int_eq(node.kind, UC_TOKEN_WRITE);
    for (size_t idx = 0; idx < KEYS * COPIES; idx++) {
        uc_token_payload_entry(&view, idx / COPIES, idx % COPIES, &entry);
        ck_assert_mem_eq(&entry.node_idx, &entries[idx].node_idx, 4);
        ck_assert_uint_eq(entry.region_idx, entries[idx].region_idx);
        ck_assert_uint_eq(entry.offset_bytes, entries[idx].offset_bytes);
        ck_assert_uint_eq(entry.generation, entries[idx].generation);
        ck_assert_uint_eq(entry.length_bytes, entries[idx].length_bytes);
        ck_assert_uint_eq(entry.flags, entries[idx].flags);
    }
    ck_assert_int_eq(accept(payload, sizeof(payload)), UC_OK);
}
END_TEST

/* ARCHITECTURE.md §6: a flipped bit must not become a write into a neighbour's slot. */
START_TEST(every_flipped_bit_of_the_payload_is_noticed)
{
    for (size_t bit = 0; bit < 8 * sizeof(payload); bit++) {
        payload[bit / 8] ^= (uint8_t)(1u << bit % 8);
        ck_assert_msg(accept(payload, sizeof(payload)) == UC_ERR_INVALID_PARAM, "bit %zu", bit);
        payload[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    ck_assert_int_eq(accept(payload, sizeof(payload)), UC_OK);
}
END_TEST

START_TEST(every_flipped_bit_of_the_keys_is_noticed_by_each_node)
{
    uint8_t *bytes = keys[0].bytes;
    struct uc_token_view view;

    ck_assert_int_eq(uc_token_payload_parse(payload, sizeof(payload), KEYS, &view), UC_OK);
    for (size_t bit = 0; bit < 8 * sizeof(keys); bit++) {
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        for (size_t node = 0; node < NODES; node++) {
            ck_assert_int_eq(uc_token_payload_verify(mac, &view, keys, node, mac_keys[node]),
                    UC_ERR_INVALID_PARAM);
        }
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
}
END_TEST

START_TEST(every_bit_outside_the_macs_is_covered_by_each_node)
{
    struct uc_token_view view;

    ck_assert_int_eq(uc_token_payload_parse(payload, sizeof(payload), KEYS, &view), UC_OK);
    for (size_t at = 0; at < sizeof(payload); at++) {
        /* The other node's MAC is the one thing that a node's own MAC does not cover. */
        bool in_mac = (at >= 32 + 48 && at < 32 + 64) || (at >= 112 + 48 && at < 112 + 64);

        payload[at] ^= 0x80;
        for (size_t node = 0; node < NODES && !in_mac; node++) {
            ck_assert_msg(uc_token_payload_verify(mac, &view, keys, node, mac_keys[node]) ==
                                  UC_ERR_INVALID_PARAM,
                    "byte %zu", at);
        }
        payload[at] ^= 0x80;
    }
}
END_TEST

START_TEST(other_lengths_are_refused)
{
    uint8_t longer[PAYLOAD_BYTES + 1] = {0};

    memcpy(longer, payload, sizeof(payload));
    ck_assert_int_eq(accept(longer, sizeof(longer)), UC_ERR_INVALID_PARAM);
    for (size_t cut = 0; cut < sizeof(payload); cut++) {
        /* A copy of exactly that size, so that the sanitizer sees a read behind it. */
        uint8_t *copy = malloc(cut + 1);

        ck_assert_ptr_nonnull(copy);
        memcpy(copy + 1, payload, cut);
        ck_assert_int_eq(accept(copy + 1, cut), UC_ERR_INVALID_PARAM);
        free(copy);
    }
}
END_TEST

START_TEST(another_key_count_or_mac_key_is_refused)
{
    struct uc_token_view view;

    ck_assert_int_eq(uc_token_payload_parse(payload, sizeof(payload), KEYS + 1, &view),
            UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_token_payload_parse(payload, sizeof(payload), KEYS, &view), UC_OK);
    ck_assert_int_eq(
            uc_token_payload_verify(mac, &view, keys, 0, mac_keys[1]), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_token_payload_verify(mac, &view, keys, 0, mac_keys[0]), UC_OK);
}
END_TEST

static void
put32(size_t offset, uint32_t value)
{
    for (size_t idx = 0; idx < 4; idx++) {
        payload[offset + idx] = (uint8_t)(value >> (8 * idx));
    }
}

static const struct {
    size_t offset;
    uint32_t value;
} hostile_cases[] = {
        {8, 0},                    /* no nodes */
        {8, UINT32_MAX},           /* more nodes than bytes */
        {8, UC_TOKEN_NODES_MAX},   /* allowed, but cut short */
        {12, 0},                   /* no keys */
        {12, UINT32_MAX},          /* more keys than bytes */
        {16, 0},                   /* no copies */
        {16, UINT32_MAX},          /* product wraps */
        {16, UC_TOKEN_COPIES_MAX}, /* allowed, but cut short */
        {20, 1},                   /* spare */
        {32 + 64, 0},              /* name inside the header */
        {32 + 64, UINT32_MAX},     /* name behind everything */
        {32 + 68, 0},              /* empty name */
        {32 + 68, 255},            /* name longer than the payload */
        {32 + 68, UINT32_MAX},     /* offset + length wraps */
        {32 + 72, 0},              /* no kind */
        {32 + 72, 3},              /* unknown kind */
        {32 + 76, 1},              /* spare */
        {192, NODES},              /* entry of a node that is not there */
        {192 + 36, 1},             /* spare */
};

START_TEST(hostile_fields_are_refused_by_parse_alone)
{
    struct uc_token_view view;

    put32(hostile_cases[_i].offset, hostile_cases[_i].value);
    ck_assert_int_eq(
            uc_token_payload_parse(payload, sizeof(payload),
                    hostile_cases[_i].offset == 12 ? hostile_cases[_i].value : KEYS, &view),
            UC_ERR_INVALID_PARAM);
}
END_TEST

START_TEST(encode_refuses_what_parse_would)
{
    uint8_t buffer[PAYLOAD_BYTES];
    struct uc_token_content bad = content();

    bad.node_count = 0;
    ck_assert_int_eq(
            uc_token_payload_encode(mac, &bad, buffer, sizeof(buffer)), UC_ERR_INVALID_PARAM);
    bad = content();
    bad.key_count = 0;
    ck_assert_int_eq(
            uc_token_payload_encode(mac, &bad, buffer, sizeof(buffer)), UC_ERR_INVALID_PARAM);
    bad = content();
    ck_assert_int_eq(
            uc_token_payload_encode(mac, &bad, buffer, sizeof(buffer) - 1), UC_ERR_INVALID_PARAM);
    nodes[0].name_bytes = UC_TOKEN_NAME_MAX + 1;
    ck_assert_int_eq(
            uc_token_payload_encode(mac, &bad, buffer, sizeof(buffer)), UC_ERR_INVALID_PARAM);
    nodes[0].name_bytes = 9;
    entries[KEYS].node_idx = NODES;
    ck_assert_int_eq(
            uc_token_payload_encode(mac, &bad, buffer, sizeof(buffer)), UC_ERR_INVALID_PARAM);
}
END_TEST

static Suite *
token_payload_suite(void)
{
    Suite *suite = suite_create("token_payload");
    TCase *token = tcase_create("token");

    tcase_add_checked_fixture(token, setup, teardown);
    tcase_add_test(token, payload_comes_back);
    tcase_add_test(token, every_flipped_bit_of_the_payload_is_noticed);
    tcase_add_test(token, every_flipped_bit_of_the_keys_is_noticed_by_each_node);
    tcase_add_test(token, every_bit_outside_the_macs_is_covered_by_each_node);
    tcase_add_test(token, other_lengths_are_refused);
    tcase_add_test(token, another_key_count_or_mac_key_is_refused);
    tcase_add_loop_test(token, hostile_fields_are_refused_by_parse_alone, 0,
            sizeof(hostile_cases) / sizeof(hostile_cases[0]));
    tcase_add_test(token, encode_refuses_what_parse_would);
    suite_add_tcase(suite, token);
    return suite;
}

int
main(void)
{
    SRunner *runner = srunner_create(token_payload_suite());
    int failed;

    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
