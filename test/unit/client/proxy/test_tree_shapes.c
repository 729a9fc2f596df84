/* SPDX-License-Identifier: Apache-2.0 */

/* The shapes a configuration may have (14.1), and blocks that pass through each of them. */

#include <stdio.h>
#include <string.h>

#include "test/unit/client/proxy/tree_fixture.h"

#define STORE  "{type: store, store: fake}"
#define PIPE   "{type: pipe, stores: [{store: fake}, {type: store, store: fake, config: {}}]}"
#define BY_TTL ", routing: {strategy: ttl, config: {thresholds: [1000]}}}"

static const struct {
    const char *yaml;
    const char *trace; /* of the setups */
} shapes[] = {
        {STORE, "+root "}, /* */
        {"{type: store, store: fake, config: {}}", "+root "},
        {PIPE, "+stores[1] +stores[0] "}, /* `type` may be left out inside, first is the head */
        {"{type: pipe, stores: [{store: fake}]}", "+stores[0] "},
        {"{type: peer, branches: [" STORE "], routing: {strategy: ttl}}",
                "+branches[0] "}, /* */
        {"{type: peer, branches: [" STORE ", " PIPE "]" BY_TTL,
                "+branches[0] +branches[1].stores[1] +branches[1].stores[0] "},
        {"{type: peer, branches: [" PIPE ", " PIPE "]" BY_TTL,
                "+branches[0].stores[1] +branches[0].stores[0] "
                "+branches[1].stores[1] +branches[1].stores[0] "},
};

/* each legal shape is built and serves a request. */
START_TEST(every_shape_of_the_schema_is_built)
{
    uint8_t hits[2] = {9, 9};
    bool signal = true;

    tree_start(shapes[_i].yaml);
    ck_assert_str_eq(tree.trace, shapes[_i].trace);
    tree_register("r", 5000);
    ck_assert_int_eq(uc_scheduler_lookup(tree.scheduler, "r", tree_keys, 2, hits, &signal), UC_OK);
    ck_assert(!signal && hits[0] == 1 && hits[1] == 1);
    tree_stop();
}
END_TEST

/* a peer's branch is never a peer, at any depth, so each token has at most one frame. */
START_TEST(peers_do_not_nest)
{
    static const char *const nested[] = {
            "{type: peer, branches: [{type: peer, branches: [" STORE "], routing: {strategy: ttl}}]"
            ", routing: {strategy: ttl}}",
            "{type: peer, branches: [" STORE ", {type: peer, branches: [" STORE "], "
            "routing: {strategy: length}}]" BY_TTL,
            "{type: pipe, stores: [{type: peer, branches: [" STORE "], routing: {strategy: ttl}}]}",
    };
    struct uc_dict *config = tree_config(nested[_i]);
    struct uc_assembler *assembler = NULL;

    ck_assert_int_eq(uc_assembler_create(config, NULL, &assembler), UC_ERR_INVALID_PARAM);
    ck_assert_ptr_null(assembler);
    ck_assert_str_eq(tree.trace, ""); /* nothing was set up */
    uc_dict_destroy(config);
}
END_TEST

/* one frame in front of the payload of a store behind a pipe behind a peer. */
START_TEST(token_of_a_deep_store_has_one_frame)
{
    struct uc_token *token;

    tree_start("{type: peer, branches: [" STORE ", {type: pipe, stores: [{store: fake, config: "
               "{tokened: true}}, {store: fake, config: {tokened: true}}]}]" BY_TTL);
    tree_register("r", 10);
    token = tree_get_token("r", 2);
    ck_assert_uint_eq(token->payload_bytes, 12 + 6);
    ck_assert_mem_eq(token->payload, "UCP1\x01\0\0\0\0\0\0\0FR", 14);
    ck_assert_int_eq(uc_scheduler_complete_get(tree.scheduler, "r"), UC_OK);
    uc_token_destroy(token);
    tree_stop();
}
END_TEST

/* `thresholds` is a list of integers, in milliseconds for ttl and in blocks for length. */
START_TEST(thresholds_are_milliseconds_or_blocks)
{
    struct uc_request_context context = uc_request_context_init("above");
    char yaml[512];
    uint8_t hit;
    bool signal;

    (void)snprintf(yaml, sizeof(yaml),
            "{type: peer, branches: [" STORE ", " STORE "], routing: {strategy: %s, config: "
            "{thresholds: [1000]}}}",
            _i == 0 ? "ttl" : "length");
    tree_start(yaml);
    context.present = _i == 0 ? UC_REQUEST_TTL : UC_REQUEST_TOTAL_BLOCK_COUNT;
    context.ttl_ms = _i == 0 ? 1001 : 1;
    context.total_block_count = _i == 0 ? 1 : 1001;
    ck_assert_int_eq(uc_scheduler_on_new_request(tree.scheduler, &context), UC_OK);
    context.request_id = "at";
    context.ttl_ms = 1000;
    context.total_block_count = 1000;
    ck_assert_int_eq(uc_scheduler_on_new_request(tree.scheduler, &context), UC_OK);
    ck_assert_int_eq(
            uc_scheduler_lookup(tree.scheduler, "above", tree_keys, 1, &hit, &signal), UC_OK);
    ck_assert_uint_eq(tree.stores[0]->calls[UC_FAKE_LOOKUP], 1);
    ck_assert_int_eq(uc_scheduler_lookup(tree.scheduler, "at", tree_keys, 1, &hit, &signal), UC_OK);
    ck_assert_uint_eq(tree.stores[1]->calls[UC_FAKE_LOOKUP], 1);
    tree_stop();
}
END_TEST

/* anything but a list of integers is refused, and the text names the key. */
START_TEST(thresholds_of_another_type_are_refused)
{
    static const char *const values[] = {"1000", "[1000.0]", "['1s']", "{a: 1}", "[true]"};
    struct uc_assembler *assembler = NULL;
    struct uc_dict *config;
    char yaml[512];

    (void)snprintf(yaml, sizeof(yaml),
            "{type: peer, branches: [" STORE ", " STORE "], routing: {strategy: %s, config: "
            "{thresholds: %s}}}",
            _i % 2 == 0 ? "ttl" : "length", values[_i / 2]);
    config = tree_config(yaml);
    ck_assert_int_eq(uc_assembler_create(config, NULL, &assembler), UC_ERR_INVALID_PARAM);
    ck_assert_msg(strstr(uc_last_error(), "thresholds") != NULL, "%s", uc_last_error());
    uc_dict_destroy(config);
}
END_TEST

/* a Dump takes what lay in the buffers until its event; afterwards they are the caller's again. */
START_TEST(buffers_are_the_callers_again_after_the_event)
{
    struct uc_io_result result;
    struct uc_token *token;
    uint8_t want[64];
    uint64_t job_id;
    size_t count = 0;

    tree_start("{type: store, store: 'null'}");
    tree_register("r", -1);
    memset(tree_payloads[0].pointers[0], 0x5a, sizeof(want));
    memset(want, 0x5a, sizeof(want));
    token = tree_put_token("r", 1);
    job_id = 1;
    ck_assert_int_eq(
            uc_worker_submit_put(tree.worker, job_id, tree_payloads, 1, token, NULL), UC_OK);
    ck_assert_int_eq(uc_worker_wait(tree.worker, &job_id, 1, -1, &result, 1, &count), UC_OK);
    ck_assert_mem_eq(tree_payloads[0].pointers[0], want, sizeof(want)); /* a source is only read */
    memset(tree_payloads[0].pointers[0], 0xee, sizeof(want));
    ck_assert_int_eq(uc_scheduler_complete_put(tree.scheduler, "r", true), UC_OK);
    uc_token_destroy(token);

    token = tree_get_token("r", 1);
    job_id = 2;
    ck_assert_int_eq(tree_submit_get(job_id, token), UC_OK);
    ck_assert_int_eq(uc_worker_wait(tree.worker, &job_id, 1, -1, &result, 1, &count), UC_OK);
    ck_assert(count == 1 && result.success);
    ck_assert_mem_eq(tree_payloads[0].pointers[0], want, sizeof(want));
    ck_assert_int_eq(uc_scheduler_complete_get(tree.scheduler, "r"), UC_OK);
    uc_token_destroy(token);
    tree_stop();
}
END_TEST

/* G13, R-11.4: in a peer of pipes, too, whoever holds a lower pointer dies before its target. */
START_TEST(holders_die_before_what_they_point_to)
{
    tree_start("{type: peer, branches: [" PIPE ", " PIPE "]" BY_TTL);
    tree.trace[0] = '\0';
    tree_stop();
    for (int branch = 0; branch < 2; branch++) {
        char head[48];
        char bottom[48];

        (void)snprintf(head, sizeof(head), "-branches[%d].stores[0] ", branch);
        (void)snprintf(bottom, sizeof(bottom), "-branches[%d].stores[1] ", branch);
        ck_assert_ptr_nonnull(strstr(tree.trace, head));
        ck_assert_ptr_nonnull(strstr(strstr(tree.trace, head), bottom));
    }
}
END_TEST

/* the keys of all built-in stores, and those of some. */
static const struct {
    const char *store;
    const char *config;
    const char *key; /* in the text */
} built_in_keys[] = {
        {"remote", "servers: ['127.0.0.1:1'], timeout_ms: soon", "timeout_ms"},
        {"remote", "servers: ['127.0.0.1:1'], block_bytes: many", "block_bytes"},
        {"cache", "capacity_blocks: 4, block_bytes: 4KiB, timeout_ms: soon", "timeout_ms"},
        {"cache", "capacity_blocks: 4, block_bytes: many", "block_bytes"},
        {"cache", "capacity_blocks: many, block_bytes: 4KiB", "capacity_blocks"},
        {"cache", "capacity: many, block_bytes: 4KiB", "capacity"},
        {"cache", "capacity_blocks: 4, block_bytes: 4KiB, policy: oracle", "lru"},
        {"posix", "root: /tmp, block_bytes: 4KiB, timeout_ms: soon", "timeout_ms"},
        {"posix", "root: /tmp, block_bytes: many", "block_bytes"},
        {"posix", "root: [], block_bytes: 4KiB", "root"},
        {"posix", "root: {a: 1}, block_bytes: 4KiB", "root"},
};

START_TEST(built_in_stores_read_the_common_keys)
{
    struct uc_assembler *assembler = NULL;
    struct uc_dict *config;
    char yaml[512];

    (void)snprintf(yaml, sizeof(yaml), "{type: store, store: %s, config: {%s}}",
            built_in_keys[_i].store, built_in_keys[_i].config);
    config = tree_config(yaml);
    ck_assert_msg(uc_assembler_create(config, NULL, &assembler) == UC_ERR_INVALID_PARAM, "%s: %s",
            yaml, uc_last_error());
    ck_assert_msg(strstr(uc_last_error(), built_in_keys[_i].key) != NULL, "%s", uc_last_error());
    ck_assert_ptr_null(assembler);
    uc_dict_destroy(config);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("tree_shapes");
    TCase *tcase = tcase_create("all");

    tcase_add_checked_fixture(tcase, tree_reset, NULL);
    tcase_add_loop_test(
            tcase, every_shape_of_the_schema_is_built, 0, sizeof(shapes) / sizeof(shapes[0]));
    tcase_add_loop_test(tcase, peers_do_not_nest, 0, 3);
    tcase_add_test(tcase, token_of_a_deep_store_has_one_frame);
    tcase_add_loop_test(tcase, thresholds_are_milliseconds_or_blocks, 0, 2);
    tcase_add_loop_test(tcase, thresholds_of_another_type_are_refused, 0, 10);
    tcase_add_test(tcase, buffers_are_the_callers_again_after_the_event);
    tcase_add_test(tcase, holders_die_before_what_they_point_to);
    tcase_add_loop_test(tcase, built_in_stores_read_the_common_keys, 0,
            sizeof(built_in_keys) / sizeof(built_in_keys[0]));
    suite_add_tcase(suite, tcase);
    return tree_run(suite);
}
