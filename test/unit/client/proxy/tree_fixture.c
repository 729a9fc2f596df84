/* SPDX-License-Identifier: Apache-2.0 */

#include "test/unit/client/proxy/tree_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/config/fields.h"

struct tree tree;
struct uc_block_id tree_keys[4];

static uint8_t buffers[4][64];
static void *const pointers[4] = {buffers[0], buffers[1], buffers[2], buffers[3]};
static const uint64_t size = sizeof(buffers[0]);

#define PAYLOAD(idx)                                                   \
    {                                                                  \
        .pointers = &pointers[idx], .sizes = &size, .pointer_count = 1 \
    }
const struct uc_block_payload tree_payloads[4] = {PAYLOAD(0), PAYLOAD(1), PAYLOAD(2), PAYLOAD(3)};

void
tree_reset(void)
{
    tree = (struct tree){0};
    for (size_t idx = 0; idx < 4; idx++) {
        (void)snprintf(
                (char *)tree_keys[idx].bytes, sizeof(tree_keys[idx].bytes), "block %zu", idx);
    }
}

/* A copy of a node with plugin paths instead of names, and with the pointers that YAML cannot hold. */
static struct uc_dict *
complete(const struct uc_dict *node, size_t *store_count)
{
    static const char *const lists[] = {"branches", "stores"};
    struct uc_dict *copy = NULL;
    const char *name = "";

    ck_assert_int_eq(uc_dict_clone(node, &copy), UC_OK);
    for (size_t at = 0; at < 2; at++) {
        size_t count = 0;

        if (uc_dict_get_list_count(node, lists[at], &count) != UC_OK) {
            continue;
        }
        ck_assert_int_eq(uc_dict_set_list(copy, lists[at]), UC_OK);
        for (size_t idx = 0; idx < count; idx++) {
            const struct uc_dict *child = NULL;
            struct uc_dict *completed;

            ck_assert_int_eq(uc_dict_get_dict_at(node, lists[at], idx, &child), UC_OK);
            completed = complete(child, store_count);
            ck_assert_int_eq(uc_dict_append_dict(copy, lists[at], completed), UC_OK);
            uc_dict_destroy(completed);
        }
    }
    if (uc_dict_get_string(node, "store", &name) == UC_OK && strcmp(name, "null") == 0) {
        ck_assert_int_eq(uc_dict_set_string(copy, "store", PLUGIN_NULL), UC_OK);
    } else if (strcmp(name, "fake") == 0) {
        const struct uc_dict *inner = NULL;
        struct uc_dict *setup = NULL;

        ck_assert_uint_lt(*store_count, TREE_STORES_MAX);
        if (uc_dict_get_dict(node, "config", &inner) == UC_OK) {
            ck_assert_int_eq(uc_dict_clone(inner, &setup), UC_OK);
        } else {
            ck_assert_int_eq(uc_dict_create(&setup), UC_OK);
        }
        ck_assert_int_eq(uc_dict_set_pointer(setup, "self", &tree.stores[(*store_count)++]), UC_OK);
        ck_assert_int_eq(uc_dict_set_pointer(setup, "trace", tree.trace), UC_OK);
        ck_assert_int_eq(uc_dict_set_dict(copy, "config", setup), UC_OK);
        ck_assert_int_eq(uc_dict_set_string(copy, "store", PLUGIN_FAKE), UC_OK);
        uc_dict_destroy(setup);
    }
    return copy;
}

struct uc_dict *
tree_config(const char *yaml)
{
    struct uc_dict *config = NULL;
    struct uc_dict *completed;
    size_t store_count = 0;

    ck_assert_msg(uc_yaml_read_text(yaml, strlen(yaml), "case", &config) == UC_OK, "%s: %s", yaml,
            uc_last_error());
    completed = complete(config, &store_count);
    uc_dict_destroy(config);
    return completed;
}

void
tree_start_with(const char *yaml, const struct uc_assembler_options *options)
{
    struct uc_dict *config = tree_config(yaml);

    ck_assert_msg(uc_assembler_create(config, options, &tree.assembler) == UC_OK, "%s: %s", yaml,
            uc_last_error());
    uc_dict_destroy(config);
    ck_assert_int_eq(uc_assembler_scheduler(tree.assembler, &tree.scheduler), UC_OK);
    ck_assert_int_eq(uc_assembler_worker(tree.assembler, &tree.worker), UC_OK);
}

void
tree_start(const char *yaml)
{
    tree_start_with(yaml, NULL);
}

void
tree_stop(void)
{
    struct uc_io_result result;
    size_t count = 1;

    while (count != 0) {
        ck_assert_int_eq(uc_worker_get_finished(tree.worker, &result, 1, &count), UC_OK);
        uc_io_results_release(&result, count);
    }
    uc_assembler_destroy(tree.assembler);
}

void
tree_register(const char *request_id, int64_t ttl_ms)
{
    struct uc_request_context context = uc_request_context_init(request_id);

    if (ttl_ms >= 0) {
        context.present = UC_REQUEST_TTL;
        context.ttl_ms = (uint64_t)ttl_ms;
    }
    ck_assert_msg(
            uc_scheduler_on_new_request(tree.scheduler, &context) == UC_OK, "%s", uc_last_error());
}

struct uc_token *
tree_get_token(const char *request_id, size_t key_count)
{
    struct uc_token *token = NULL;

    ck_assert_int_eq(
            uc_scheduler_prepare_get(tree.scheduler, request_id, tree_keys, key_count, &token),
            UC_OK);
    return token;
}

struct uc_token *
tree_put_token(const char *request_id, size_t key_count)
{
    struct uc_token *token = NULL;

    ck_assert_int_eq(
            uc_scheduler_prepare_put(tree.scheduler, request_id, tree_keys, key_count, &token),
            UC_OK);
    return token;
}

enum uc_status
tree_submit_get(uint64_t job_id, const struct uc_token *token)
{
    return uc_worker_submit_get(tree.worker, job_id, tree_payloads, token->key_count, token, NULL);
}

int
tree_run(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    int failed;

    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
