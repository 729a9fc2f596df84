/* SPDX-License-Identifier: Apache-2.0 */

/* Values that cross the interface: ids, tokens, statuses, results, and who owns them. */

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include <ucm/block.h>
#include <ucm/dict.h>
#include <ucm/status.h>
#include <ucm/store.h>
#include <ucm/token.h>

static struct uc_block_id
id_of(uint8_t fill)
{
    struct uc_block_id id;

    memset(id.bytes, fill, sizeof(id.bytes));
    return id;
}

/* 16 bytes, all of which tell ids apart. */
START_TEST(every_byte_of_a_block_id_counts)
{
    struct uc_store *store = uc_null_store_create();
    uint8_t byte = 42;
    void *pointer = &byte;
    uint64_t size = 1;
    struct uc_block_payload payload = {.pointers = &pointer, .sizes = &size, .pointer_count = 1};
    struct uc_block_id id = id_of(7);
    struct uc_job_descriptor job = {.block_ids = &id, .payloads = &payload, .count = 1};
    struct uc_dict *config = NULL;
    struct uc_io_result result;
    uint8_t hit = 9;
    size_t count = 0;

    ck_assert_uint_eq(sizeof(struct uc_block_id), 16);
    ck_assert_ptr_nonnull(store);
    ck_assert_int_eq(uc_dict_create(&config), UC_OK);
    ck_assert_int_eq(uc_store_setup(store, config), UC_OK);
    uc_dict_destroy(config);
    ck_assert_int_eq(uc_store_dump(store, 1, &job), UC_OK);
    ck_assert_int_eq(uc_store_get_finished(store, &result, 1, &count), UC_OK);
    ck_assert_uint_eq(count, 1);
    uc_io_results_release(&result, 1);
    for (size_t at = 0; at < sizeof(id.bytes); at++) {
        struct uc_block_id other = id;

        other.bytes[at] ^= 1u;
        ck_assert_int_eq(uc_store_lookup(store, &other, 1, &hit), UC_OK);
        ck_assert_uint_eq(hit, 0);
    }
    ck_assert_int_eq(uc_store_lookup(store, &id, 1, &hit), UC_OK);
    ck_assert_uint_eq(hit, 1);
    uc_null_store_destroy(store);
}
END_TEST

/* a token is its own object; what it was made of may change or go. */
START_TEST(token_owns_copies_of_keys_and_payload)
{
    struct uc_block_id ids[2] = {id_of(1), id_of(2)};
    struct uc_block_id want[2] = {id_of(1), id_of(2)};
    uint8_t payload[3] = {0xde, 0xad, 0x00};
    struct uc_token *token = NULL;

    ck_assert_int_eq(uc_token_create(ids, 2, payload, sizeof(payload), &token), UC_OK);
    memset(ids, 0xff, sizeof(ids));
    memset(payload, 0xff, sizeof(payload));
    ck_assert_uint_eq(token->key_count, 2);
    ck_assert_mem_eq(token->keys, want, sizeof(want)); /* readable by everyone, in order */
    ck_assert_uint_eq(token->payload_bytes, 3);
    ck_assert_mem_eq(token->payload, "\xde\xad\x00", 3); /* opaque: any bytes */
    uc_token_destroy(token);
    uc_token_destroy(NULL);
}
END_TEST

/* the same code with another text is the same status. */
START_TEST(statuses_are_equal_by_code_alone)
{
    char first_text[128];
    enum uc_status first = uc_error(UC_ERR_NOT_FOUND, "block 7 is absent");
    enum uc_status second;

    (void)strncpy(first_text, uc_last_error(), sizeof(first_text) - 1);
    first_text[sizeof(first_text) - 1] = '\0';
    second = uc_error(UC_ERR_NOT_FOUND, "request 'r' is unknown");
    ck_assert_str_ne(first_text, uc_last_error());
    ck_assert(first == second);
    ck_assert(uc_error(UC_ERR_RETRY, "request 'r' is unknown") != second);
}
END_TEST

static void
make_and_release_everything(void)
{
    struct uc_io_result results[2] = {{.job_id = 1}, {.job_id = 2}};
    struct uc_block_id id = id_of(1);
    struct uc_token *token = NULL;
    struct uc_token *copy = NULL;
    struct uc_dict *dict = NULL;
    uint8_t bytes[64];

    ck_assert_int_eq(uc_token_create(&id, 1, NULL, 0, &token), UC_OK);
    ck_assert_uint_le(uc_token_serialized_bytes(token), sizeof(bytes));
    uc_token_serialize(token, bytes);
    ck_assert_int_eq(uc_token_deserialize(bytes, uc_token_serialized_bytes(token), &copy), UC_OK);
    ck_assert_int_eq(uc_dict_create(&dict), UC_OK);
    ck_assert_int_eq(uc_dict_set_string(dict, "key", "value"), UC_OK);
    results[1].blocks = calloc(1, 4000);
    ck_assert_ptr_nonnull(results[1].blocks);
    uc_token_destroy(token);
    ck_assert_mem_eq(copy->keys, &id, sizeof(id)); /* lives on alone */
    uc_token_destroy(copy);
    uc_dict_destroy(dict);
    uc_io_results_release(results, 2);
}

/* everything that is handed out goes through its own function and leaves no memory behind. */
START_TEST(what_is_returned_is_released_by_its_function)
{
    enum {
        ROUNDS = 1000
    };
    size_t before;

    make_and_release_everything(); /* the allocator keeps some of the first chunks */
    before = mallinfo2().uordblks;
    for (size_t round = 0; round < ROUNDS; round++) {
        make_and_release_everything();
    }
    ck_assert_uint_lt(mallinfo2().uordblks, before + 16 * (size_t)ROUNDS);
}
END_TEST

/* results of a partly failed job carry a bitmap; it is released once, in any number. */
START_TEST(bitmaps_are_released_with_the_results)
{
    struct uc_io_result results[3] = {{.job_id = 1}, {.job_id = 2, .success = true}, {.job_id = 3}};

    results[0].blocks = calloc(1, 1);
    results[2].blocks = calloc(1, 1);
    ck_assert(results[0].blocks != NULL && results[2].blocks != NULL);
    results[2].blocks[0] = 2;
    ck_assert(!uc_io_result_block_ok(&results[0], 0));
    ck_assert(uc_io_result_block_ok(&results[1], 5)); /* no bitmap: all alike */
    ck_assert(!uc_io_result_block_ok(&results[2], 0));
    ck_assert(uc_io_result_block_ok(&results[2], 1));
    uc_io_results_release(results, 3);
    ck_assert(results[0].blocks == NULL && results[2].blocks == NULL);
    uc_io_results_release(results, 3); /* harmless */
    uc_io_results_release(NULL, 0);
    ck_assert_uint_eq(results[2].job_id, 3);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("values");
    TCase *tcase = tcase_create("all");
    SRunner *runner;
    int failed;

    tcase_add_test(tcase, every_byte_of_a_block_id_counts);
    tcase_add_test(tcase, token_owns_copies_of_keys_and_payload);
    tcase_add_test(tcase, statuses_are_equal_by_code_alone);
    tcase_add_test(tcase, what_is_returned_is_released_by_its_function);
    tcase_add_test(tcase, bitmaps_are_released_with_the_results);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
