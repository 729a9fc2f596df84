/* SPDX-License-Identifier: Apache-2.0 */

/* The parts of the remote store and of client/cluster that need no server. */

#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "client/cluster/backoff.h"
#include "client/cluster/server_list.h"
#include "client/stores/remote/config.h"
#include "client/stores/remote/grants.h"
#include "client/stores/remote/memory_table.h"
#include "client/stores/remote/verify.h"

struct address_case {
    const char *text;
    const char *host; /* NULL: refused */
    uint16_t port;
};

static const struct address_case address_cases[] = {
        {"10.0.0.1:7000", "10.0.0.1", 7000},
        {"node-3.example", "node-3.example", UC_SERVER_PORT_DEFAULT},
        {"[fe80::1]:80", "fe80::1", 80},
        {"/run/ucm.sock", "/run/ucm.sock", 0},
        {"", NULL, 0},
        {":7000", NULL, 0},
        {"host:", NULL, 0},
        {"host:0", NULL, 0},
        {"host:65536", NULL, 0},
        {"host:7x", NULL, 0},
        {"[fe80::1:80", NULL, 0},
};

START_TEST(address_is_host_and_port_or_refused)
{
    const struct address_case *row = &address_cases[_i];
    struct uc_server_address address = {.port = 1};
    enum uc_status status = uc_server_address_parse(row->text, &address);

    if (row->host == NULL) {
        ck_assert_int_eq(status, UC_ERR_INVALID_PARAM);
        ck_assert_uint_eq(address.port, 1);
    } else {
        ck_assert_int_eq(status, UC_OK);
        ck_assert_str_eq(address.name, row->text);
        ck_assert_str_eq(address.host, row->host);
        ck_assert_uint_eq(address.port, row->port);
    }
}
END_TEST

START_TEST(address_longer_than_a_name_is_refused)
{
    struct uc_server_address address;
    char text[400];

    memset(text, 'a', sizeof(text));
    text[UC_SERVER_NAME_MAX + 1] = '\0';
    ck_assert_int_eq(uc_server_address_parse(text, &address), UC_ERR_INVALID_PARAM);
}
END_TEST

START_TEST(server_list_is_read_and_searched_by_name)
{
    struct uc_server_list list = {.count = 0};
    struct uc_dict *config = NULL;
    struct uc_block_id key = {.bytes = {1}};

    ck_assert_int_eq(uc_dict_create(&config), UC_OK);
    ck_assert_int_eq(uc_server_list_read(config, "servers", &list), UC_ERR_INVALID_PARAM);
    ck_assert_ptr_nonnull(strstr(uc_last_error(), "servers"));
    ck_assert_int_eq(uc_dict_append_string(config, "servers", "a:1"), UC_OK);
    ck_assert_int_eq(uc_dict_append_string(config, "servers", "a:2"), UC_OK);
    ck_assert_int_eq(uc_server_list_read(config, "servers", &list), UC_OK);
    ck_assert_uint_eq(list.count, 2);
    ck_assert_uint_eq(uc_server_list_find(&list, "a:2xyz", 3), 1);
    ck_assert_uint_eq(uc_server_list_find(&list, "a:2", 2), SIZE_MAX);
    ck_assert_uint_eq(uc_server_list_find(&list, "a:3", 3), SIZE_MAX);
    ck_assert_uint_lt(uc_server_list_place(&list, &key), list.count);
    uc_server_list_fini(&list);

    ck_assert_int_eq(uc_dict_append_string(config, "servers", "a:1"), UC_OK);
    ck_assert_int_eq(uc_server_list_read(config, "servers", &list), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_dict_set_list(config, "servers"), UC_OK);
    ck_assert_int_eq(uc_server_list_read(config, "servers", &list), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_dict_set_int(config, "servers", 5), UC_OK);
    ck_assert_int_eq(uc_server_list_read(config, "servers", &list), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_dict_set_string(config, "servers", "b:1"), UC_OK);
    ck_assert_int_eq(uc_server_list_read(config, "servers", &list), UC_OK);
    ck_assert_uint_eq(list.count, 1);
    uc_server_list_fini(&list);
    uc_dict_destroy(config);
}
END_TEST

START_TEST(backoff_doubles_up_to_its_cap_with_jitter)
{
    static const uint64_t full_ms[] = {50, 100, 200, 400, 800, 1000, 1000, 1000};
    struct uc_backoff backoff;
    bool jittered = false;

    uc_backoff_init(&backoff, 50, 1000, 42);
    for (size_t round = 0; round < 50; round++) {
        for (size_t idx = 0; idx < sizeof(full_ms) / sizeof(full_ms[0]); idx++) {
            uint64_t pause_ms = uc_backoff_next_ms(&backoff);

            ck_assert_uint_ge(pause_ms, full_ms[idx] / 2);
            ck_assert_uint_le(pause_ms, full_ms[idx]);
            jittered = jittered || pause_ms != full_ms[idx];
        }
        uc_backoff_reset(&backoff);
    }
    ck_assert(jittered);

    uc_backoff_init(&backoff, 0, 0, 0);
    ck_assert_uint_eq(uc_backoff_next_ms(&backoff), 1);
    uc_backoff_init(&backoff, UINT64_MAX / 3, UINT64_MAX, 7);
    for (size_t idx = 0; idx < 100; idx++) {
        ck_assert_uint_ge(uc_backoff_next_ms(&backoff), UINT64_MAX / 6);
    }
}
END_TEST

enum {
    DATA_BYTES = 1000,
};

/* A block as a READ brings it: bytes, and the footer behind them. */
static uint8_t data[DATA_BYTES];
static uint8_t footer[UC_FOOTER_BYTES];
static struct uc_checksum_piece pieces[2];
static struct uc_block_id key;
static struct uc_verify_want want;

static void
make_block(void)
{
    memset(&key, 7, sizeof(key));
    memset(data, 0x3c, sizeof(data));
    pieces[0] = (struct uc_checksum_piece){data, 300};
    pieces[1] = (struct uc_checksum_piece){data + 300, DATA_BYTES - 300};
    uc_slot_footer_put_server(footer, UC_FOOTER_COMMITTED, 5, &key, true);
    uc_slot_footer_put_writer(footer + UC_FOOTER_WRITER_OFFSET, DATA_BYTES, UC_CHECKSUM_XXH3_64,
            uc_slot_checksum(&key, 5, pieces, 2));
    want = (struct uc_verify_want){
            .key = &key,
            .generation = 5,
            .length_bytes = DATA_BYTES,
            .size_bytes = DATA_BYTES,
            .pieces = pieces,
            .piece_count = 2,
            .check_checksum = true,
    };
}

static enum uc_status
verify_and_report(bool *reported)
{
    const char *complaint = "unset";
    enum uc_status status = uc_verify_block(&want, footer, &complaint);

    *reported = complaint != NULL;
    return status;
}

START_TEST(intact_block_is_accepted)
{
    bool reported = true;

    ck_assert_int_eq(verify_and_report(&reported), UC_OK);
    ck_assert(!reported);
    want.offset_bytes = 10;
    want.size_bytes = 20;
    ck_assert_int_eq(verify_and_report(&reported), UC_OK);
}
END_TEST

/* V-39, R-2.30, G14: whichever byte of the footer or of the data is another one. */
START_TEST(every_forged_byte_is_noticed)
{
    for (size_t idx = 0; idx < UC_FOOTER_BYTES; idx++) {
        bool reported = false;

        if ((idx >= 44 && idx < 48) || idx >= 56) {
            continue; /* spare */
        }
        make_block();
        footer[idx] ^= 0x40;
        ck_assert_msg(verify_and_report(&reported) == UC_ERR_NOT_FOUND, "footer byte %zu", idx);
    }
    for (size_t idx = 0; idx < DATA_BYTES; idx += 37) {
        bool reported = false;

        make_block();
        data[idx] ^= 1;
        ck_assert_msg(verify_and_report(&reported) == UC_ERR_NOT_FOUND, "data byte %zu", idx);
        ck_assert(reported);
    }
}
END_TEST

START_TEST(slot_of_another_owner_is_a_miss_without_complaint)
{
    bool reported = true;

    uc_slot_footer_put_server(footer, UC_FOOTER_RESERVED, 6, &key, true);
    ck_assert_int_eq(verify_and_report(&reported), UC_ERR_NOT_FOUND);
    ck_assert(!reported);
    uc_slot_footer_put_server(footer, UC_FOOTER_COMMITTED, 6, &key, false);
    ck_assert_int_eq(verify_and_report(&reported), UC_ERR_NOT_FOUND);
    ck_assert(reported);
}
END_TEST

/* */
START_TEST(range_beyond_the_length_is_invalid)
{
    bool reported = true;

    want.offset_bytes = 1;
    ck_assert_int_eq(verify_and_report(&reported), UC_ERR_INVALID_PARAM);
    ck_assert(!reported);
    want.offset_bytes = UINT64_MAX;
    ck_assert_int_eq(verify_and_report(&reported), UC_ERR_INVALID_PARAM);
}
END_TEST

START_TEST(checksum_off_skips_the_checksum_only)
{
    bool reported = false;

    want.check_checksum = false;
    data[3] ^= 1;
    ck_assert_int_eq(verify_and_report(&reported), UC_OK);
    footer[9] ^= 1; /* generation */
    ck_assert_int_eq(verify_and_report(&reported), UC_ERR_NOT_FOUND);
}
END_TEST

static struct uc_held_grant *
make_grant(uint64_t id, uint64_t epoch, enum uc_token_kind kind)
{
    struct uc_held_grant *held = calloc(1, sizeof(*held));

    held->grant = id;
    held->epoch = epoch;
    held->kind = kind;
    held->key_count = 3;
    return held;
}

/* a grant is taken once, and only by the token that names it exactly. */
START_TEST(grant_is_taken_once_and_by_its_own_name)
{
    struct uc_token_node node = {.grant = 1 + UC_GRANT_BUCKETS, .kind = UC_TOKEN_READ};
    struct uc_grants grants;

    uc_grants_init(&grants);
    uc_grants_add(&grants, make_grant(1, 1, UC_TOKEN_READ));
    uc_grants_add(&grants, make_grant(1 + UC_GRANT_BUCKETS, 1, UC_TOKEN_READ));
    ck_assert_ptr_null(uc_grants_take(&grants, &node, UC_TOKEN_WRITE, 3));
    ck_assert_ptr_null(uc_grants_take(&grants, &node, UC_TOKEN_READ, 2));
    node.attach_key[4] = 1;
    ck_assert_ptr_null(uc_grants_take(&grants, &node, UC_TOKEN_READ, 3));
    node.attach_key[4] = 0;
    free(uc_grants_take(&grants, &node, UC_TOKEN_READ, 3));
    ck_assert_uint_eq(grants.count, 1);
    ck_assert_ptr_null(uc_grants_take(&grants, &node, UC_TOKEN_READ, 3));
    uc_grants_fini(&grants);
    ck_assert_uint_eq(grants.count, 0);
}
END_TEST

START_TEST(grants_of_an_ended_session_are_forgotten)
{
    struct uc_grants grants;

    uc_grants_init(&grants);
    for (uint64_t id = 0; id < 1000; id++) {
        uc_grants_add(&grants, make_grant(id, 1 + id % 2, UC_TOKEN_WRITE));
    }
    uc_grants_forget_others(&grants, 0, 2);
    ck_assert_uint_eq(grants.count, 500);
    uc_grants_fini(&grants);
}
END_TEST

static enum uc_status
add_memory(struct uc_memory_table *table, struct uc_transports *transports, uint32_t region_idx,
        void *address, uint64_t length_bytes)
{
    struct uc_fabric_memory memory = uc_fabric_host_memory(address, length_bytes);

    return uc_memory_table_add(table, transports, region_idx, &memory, NULL);
}

/* by index, or by whatever region covers the range, overlaps included. */
START_TEST(memory_is_found_by_index_and_by_cover)
{
    static uint8_t memory[1000];
    struct uc_transports transports = {.max_piece_count = 1};
    struct uc_memory_table table = {.count = 0};

    ck_assert_int_eq(add_memory(&table, &transports, 8, memory, 1000), UC_OK);
    ck_assert_int_eq(add_memory(&table, &transports, 2, memory + 400, 10), UC_OK);
    ck_assert_int_eq(add_memory(&table, &transports, 5, memory + 500, 10), UC_OK);
    ck_assert_int_eq(add_memory(&table, &transports, 5, memory, 10), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(add_memory(&table, &transports, 6, memory, 0), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(add_memory(&table, &transports, 6, memory, UINT64_MAX), UC_ERR_INVALID_PARAM);

    ck_assert_uint_eq(uc_memory_table_cover(&table, memory + 400, 10)->region_idx, 2);
    ck_assert_uint_eq(uc_memory_table_cover(&table, memory + 405, 10)->region_idx, 8);
    ck_assert_uint_eq(uc_memory_table_cover(&table, memory + 999, 1)->region_idx, 8);
    ck_assert_ptr_null(uc_memory_table_cover(&table, memory + 999, 2));
    ck_assert_ptr_null(uc_memory_table_cover(&table, memory + 5, UINT64_MAX));
    ck_assert_uint_eq(uc_memory_table_find(&table, 2)->length_bytes, 10);
    ck_assert_ptr_null(uc_memory_table_find(&table, 3));

    uc_memory_get(uc_memory_table_find(&table, 8));
    ck_assert_int_eq(uc_memory_table_remove(&table, &transports, 8), UC_ERR_RETRY);
    uc_memory_put(uc_memory_table_find(&table, 8));
    ck_assert_int_eq(uc_memory_table_remove(&table, &transports, 8), UC_OK);
    ck_assert_int_eq(uc_memory_table_remove(&table, &transports, 8), UC_ERR_NOT_FOUND);
    ck_assert_ptr_null(uc_memory_table_cover(&table, memory, 1));
    uc_memory_table_fini(&table, &transports);
}
END_TEST

static enum uc_status
read_config(const char *name, int64_t value, struct uc_remote_config *config_out)
{
    struct uc_dict *dict = NULL;
    enum uc_status status;

    ck_assert_int_eq(uc_dict_create(&dict), UC_OK);
    ck_assert_int_eq(uc_dict_set_list(dict, "servers"), UC_OK);
    ck_assert_int_eq(uc_dict_append_string(dict, "servers", "10.0.0.1"), UC_OK);
    if (name != NULL) {
        ck_assert_int_eq(uc_dict_set_int(dict, name, value), UC_OK);
    }
    status = uc_remote_config_read(dict, config_out);
    uc_dict_destroy(dict);
    return status;
}

START_TEST(verbs_keys_have_defaults_and_bounds)
{
    struct uc_remote_config config = {.spin_us = 0};

    ck_assert_int_eq(read_config(NULL, 0, &config), UC_OK);
    ck_assert_uint_eq(config.queue_pairs, 0);
    ck_assert_uint_eq(config.spin_us, 20);
    uc_remote_config_fini(&config);
    ck_assert_int_eq(read_config("queue_pairs", 4, &config), UC_OK);
    ck_assert_uint_eq(config.queue_pairs, 4);
    uc_remote_config_fini(&config);
    ck_assert_int_eq(read_config("spin_us", 0, &config), UC_OK);
    ck_assert_uint_eq(config.spin_us, 0);
    uc_remote_config_fini(&config);

    ck_assert_int_eq(read_config("queue_pairs", 5, &config), UC_ERR_INVALID_PARAM);
    ck_assert_ptr_nonnull(strstr(uc_last_error(), "queue_pairs"));
    ck_assert_int_eq(read_config("spin_us", 1000001, &config), UC_ERR_INVALID_PARAM);
    ck_assert_ptr_nonnull(strstr(uc_last_error(), "spin_us"));
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("remote_parts");
    TCase *cluster = tcase_create("cluster");
    TCase *verify = tcase_create("verify");
    TCase *tables = tcase_create("tables");
    SRunner *runner;
    int failed;

    tcase_add_loop_test(cluster, address_is_host_and_port_or_refused, 0,
            sizeof(address_cases) / sizeof(address_cases[0]));
    tcase_add_test(cluster, address_longer_than_a_name_is_refused);
    tcase_add_test(cluster, server_list_is_read_and_searched_by_name);
    tcase_add_test(cluster, verbs_keys_have_defaults_and_bounds);
    tcase_add_test(cluster, backoff_doubles_up_to_its_cap_with_jitter);
    suite_add_tcase(suite, cluster);

    tcase_add_checked_fixture(verify, make_block, NULL);
    tcase_add_test(verify, intact_block_is_accepted);
    tcase_add_test(verify, every_forged_byte_is_noticed);
    tcase_add_test(verify, slot_of_another_owner_is_a_miss_without_complaint);
    tcase_add_test(verify, range_beyond_the_length_is_invalid);
    tcase_add_test(verify, checksum_off_skips_the_checksum_only);
    suite_add_tcase(suite, verify);

    tcase_add_test(tables, grant_is_taken_once_and_by_its_own_name);
    tcase_add_test(tables, grants_of_an_ended_session_are_forgotten);
    tcase_add_test(tables, memory_is_found_by_index_and_by_cover);
    suite_add_tcase(suite, tables);

    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
