/* SPDX-License-Identifier: Apache-2.0 */

#include "test/unit/client/cache/cache_env.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint64_t next_job_id = 1;

struct uc_store *
env_try_store(const struct env_options *options, enum uc_status *status_out)
{
    struct uc_store *store = uc_cache_store_create();
    struct uc_dict *config = NULL;
    enum uc_status status;

    ck_assert_ptr_nonnull(store);
    ck_assert_int_eq(uc_dict_create(&config), UC_OK);
    ck_assert_int_eq(uc_dict_set_int(config, "block_bytes", ENV_BLOCK_BYTES), UC_OK);
    ck_assert_int_eq(uc_dict_set_int(config, "capacity_blocks",
                             options->capacity_blocks == 0 ? ENV_BLOCKS : options->capacity_blocks),
            UC_OK);
    ck_assert_int_eq(uc_dict_set_string(config, UC_SETUP_STORE_ROLE,
                             options->role == NULL ? "both" : options->role),
            UC_OK);
    if (options->domain != NULL) {
        ck_assert_int_eq(uc_dict_set_string(config, "domain", options->domain), UC_OK);
    }
    if (options->write != NULL) {
        ck_assert_int_eq(uc_dict_set_string(config, "write", options->write), UC_OK);
    }
    if (options->lower != NULL) {
        ck_assert_int_eq(
                uc_dict_set_pointer(config, UC_SETUP_PIPED_LOWER_STORE, options->lower), UC_OK);
        ck_assert_int_eq(uc_dict_set_int(config, UC_SETUP_TIERS_BELOW, 1), UC_OK);
    }
    if (options->prerequisite != NULL) {
        ck_assert_int_eq(
                uc_dict_set_pointer(config, UC_SETUP_PREREQUISITE_HOOK, options->prerequisite),
                UC_OK);
    }
    status = uc_store_setup(store, config);
    uc_dict_destroy(config);
    if (status != UC_OK) {
        uc_cache_store_destroy(store);
        store = NULL;
    }
    if (status_out != NULL) {
        *status_out = status;
    }
    return store;
}

struct uc_store *
env_store(const struct env_options *options)
{
    struct uc_store *store = env_try_store(options, NULL);

    ck_assert_msg(store != NULL, "%s", uc_last_error());
    return store;
}

struct uc_store *
env_null_store(void)
{
    struct uc_store *store = uc_null_store_create();
    struct uc_dict *config = NULL;

    ck_assert_ptr_nonnull(store);
    ck_assert_int_eq(uc_dict_create(&config), UC_OK);
    ck_assert_int_eq(uc_dict_set_int(config, "block_bytes", ENV_BLOCK_BYTES), UC_OK);
    ck_assert_int_eq(uc_store_setup(store, config), UC_OK);
    uc_dict_destroy(config);
    return store;
}

const char *
env_domain(void)
{
    static char domain[64];

    (void)snprintf(domain, sizeof(domain), "test-%d", (int)getpid());
    return domain;
}

struct uc_block_id
env_id(unsigned number)
{
    struct uc_block_id id = {{0}};

    memcpy(id.bytes, &number, sizeof(number));
    id.bytes[15] = 1;
    return id;
}

void
env_fill(unsigned number, uint8_t *bytes)
{
    for (size_t idx = 0; idx < ENV_BLOCK_BYTES; idx++) {
        bytes[idx] = (uint8_t)(idx * 7 + idx / 251 + number * 31);
    }
}

bool
env_matches(unsigned number, const uint8_t *bytes)
{
    uint8_t expected[ENV_BLOCK_BYTES];

    env_fill(number, expected);
    return memcmp(expected, bytes, sizeof(expected)) == 0;
}

enum uc_status
env_wait(struct uc_store *store, uint64_t job_id, uint64_t *bits_out)
{
    struct uc_io_result result = {0};
    size_t count = 0;
    uint64_t bits = 0;
    enum uc_status code;

    ck_assert_msg(uc_store_wait(store, &job_id, 1, ENV_WAIT_MS, &result, 1, &count) == UC_OK, "%s",
            uc_last_error());
    ck_assert_uint_eq(count, 1);
    for (size_t idx = 0; idx < result.block_count && idx < 64; idx++) {
        bits |= uc_io_result_block_ok(&result, idx) ? 1ull << idx : 0;
    }
    code = result.code;
    uc_io_results_release(&result, 1);
    if (bits_out != NULL) {
        *bits_out = bits;
    }
    return code;
}

enum uc_status
env_move(struct uc_store *store, bool is_load, const struct uc_token *token, uint8_t *memory,
        uint64_t *bits_out)
{
    const struct uc_token_addressed_ops *ops = uc_store_as_token_addressed(store);
    struct uc_block_payload payloads[64] = {0};
    void *pointers[64];
    uint64_t size = ENV_BLOCK_BYTES;
    uint64_t job_id = next_job_id++;
    struct uc_job_descriptor job = {
            .block_ids = token->keys, .payloads = payloads, .count = token->key_count};
    enum uc_status status;

    ck_assert_uint_le(token->key_count, 64);
    for (size_t idx = 0; idx < token->key_count; idx++) {
        pointers[idx] = memory + idx * ENV_BLOCK_BYTES;
        payloads[idx].pointers = &pointers[idx];
        payloads[idx].sizes = &size;
        payloads[idx].pointer_count = 1;
    }
    status = is_load ? ops->load(store, job_id, &job, token, 0)
                     : ops->dump(store, job_id, &job, token, 0);
    return status != UC_OK ? status : env_wait(store, job_id, bits_out);
}

void
env_put(struct uc_store *control, struct uc_store *data, unsigned number)
{
    const struct uc_token_addressed_ops *ops = uc_store_as_token_addressed(control);
    struct uc_block_id id = env_id(number);
    struct uc_token *token = NULL;
    uint8_t bytes[ENV_BLOCK_BYTES];

    env_fill(number, bytes);
    ck_assert_msg(ops->alloc(control, &id, 1, NULL, &token) == UC_OK, "%s", uc_last_error());
    ck_assert_int_eq(env_move(data, false, token, bytes, NULL), UC_OK);
    ck_assert_msg(ops->commit(control, token, NULL, true) == UC_OK, "%s", uc_last_error());
    uc_token_destroy(token);
}

void
env_dump_plain(struct uc_store *store, unsigned number)
{
    struct uc_block_id id = env_id(number);
    uint8_t memory[ENV_BLOCK_BYTES];
    void *pointer = memory;
    uint64_t size = ENV_BLOCK_BYTES;
    struct uc_block_payload payload = {.pointers = &pointer, .sizes = &size, .pointer_count = 1};
    struct uc_job_descriptor job = {.block_ids = &id, .payloads = &payload, .count = 1};
    uint64_t job_id = next_job_id++;

    env_fill(number, memory);
    ck_assert_int_eq(uc_store_dump(store, job_id, &job), UC_OK);
    ck_assert_int_eq(env_wait(store, job_id, NULL), UC_OK);
}

bool
env_can_get(struct uc_store *control, struct uc_store *data, unsigned number)
{
    const struct uc_token_addressed_ops *ops = uc_store_as_token_addressed(control);
    struct uc_block_id id = env_id(number);
    struct uc_token *token = NULL;
    uint8_t bytes[ENV_BLOCK_BYTES] = {0};
    bool good;

    if (ops->pin(control, &id, 1, &token) != UC_OK) {
        return false;
    }
    good = env_move(data, true, token, bytes, NULL) == UC_OK && env_matches(number, bytes);
    ops->unpin(control, token);
    uc_token_destroy(token);
    return good;
}

bool
env_ask(struct uc_store *store, unsigned number, uint8_t *hit)
{
    struct uc_block_id id = env_id(number);
    bool needed = false;

    ck_assert_msg(
            uc_store_as_prefetchable(store)->lookup(store, "r", &id, 1, hit, &needed) == UC_OK,
            "%s", uc_last_error());
    return needed;
}

enum uc_status
env_run_round(struct uc_store *store, bool success)
{
    const struct uc_prefetchable_ops *ops = uc_store_as_prefetchable(store);
    uint64_t job_id = next_job_id++;
    struct uc_token *plan = NULL;
    enum uc_status code;

    ck_assert_msg(ops->prepare_prefetch(store, "r", NULL, &plan) == UC_OK, "%s", uc_last_error());
    ck_assert_msg(ops->prefetch(store, job_id, plan) == UC_OK, "%s", uc_last_error());
    code = env_wait(store, job_id, NULL);
    ck_assert_int_eq(ops->complete_prefetch(store, plan, success), UC_OK);
    ck_assert_int_eq(
            ops->complete_prefetch(store, plan, success), UC_ERR_INVALID_PARAM); /* */
    uc_token_destroy(plan);
    return code;
}

bool
env_is_hit(struct uc_store *store, unsigned number)
{
    struct uc_block_id id = env_id(number);
    uint8_t hit = 0;

    ck_assert_int_eq(uc_store_lookup(store, &id, 1, &hit), UC_OK);
    return hit != 0;
}

int64_t
env_number(struct uc_store *store, const char *key)
{
    struct uc_dict *description = NULL;
    int64_t number = -1;

    ck_assert_int_eq(uc_dict_create(&description), UC_OK);
    ck_assert_int_eq(uc_store_describe(store, description), UC_OK);
    ck_assert_int_eq(uc_dict_get_int(description, key, &number), UC_OK);
    uc_dict_destroy(description);
    return number;
}
