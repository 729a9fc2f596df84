/* SPDX-License-Identifier: Apache-2.0 */

#include "test/conformance/store/suite.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

struct suite suite;

static uint64_t
mix(uint64_t value)
{
    value += 0x9e3779b97f4a7c15ull;
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9ull;
    value = (value ^ value >> 27) * 0x94d049bb133111ebull;
    return value ^ value >> 31;
}

static uint64_t
seed_of(const struct uc_block_id *id)
{
    uint64_t halves[2];

    memcpy(halves, id->bytes, sizeof(halves));
    return mix(halves[0]) ^ halves[1];
}

static uint8_t
byte_at(uint64_t seed, uint64_t position)
{
    return (uint8_t)(mix(seed + position / 8) >> (position % 8 * 8));
}

void
suite_fill(const struct uc_block_id *id, uint64_t offset, uint8_t *bytes, uint64_t length)
{
    uint64_t seed = seed_of(id);

    bytes = suite_view(bytes);
    for (uint64_t at = 0; at < length; at++) {
        bytes[at] = byte_at(seed, offset + at);
    }
}

bool
suite_matches(const struct uc_block_id *id, uint64_t offset, const uint8_t *bytes, uint64_t length)
{
    uint64_t seed = seed_of(id);

    bytes = suite_view(bytes);
    for (uint64_t at = 0; at < length; at++) {
        if (bytes[at] != byte_at(seed, offset + at)) {
            return false;
        }
    }

    return true;
}

void
suite_wipe(void *address, uint64_t length)
{
    memset(suite_view(address), 0xee, length);
}

uint32_t
suite_register_memory(struct uc_worker *worker)
{
    uint32_t region = 0;

    if (suite_memory_kind() == UC_MEMORY_HOST) {
        return 0;
    }
    /* Not of Check: the worker process comes here, too. */
    if (uc_worker_register_memory(worker, suite.memory, SUITE_KEYS_MAX * suite.block_bytes,
                suite_memory_kind(), &region) != UC_OK) {
        (void)fprintf(stderr, "store_conformance: %s\n", uc_last_error());
        exit(EXIT_FAILURE);
    }
    return region + 1;
}

void
suite_fresh_ids(struct uc_block_id *ids, size_t count)
{
    for (size_t idx = 0; idx < count; idx++) {
        ck_assert_int_eq(getrandom(ids[idx].bytes, sizeof(ids[idx].bytes), 0), 16);
    }
}

void
suite_read_block_bytes(const struct uc_dict *description)
{
    const struct uc_dict *inner = NULL;
    uint64_t configured_bytes = 0;

    suite.block_bytes = 4096;
    if (uc_dict_get_dict(suite.config, "config", &inner) == UC_OK) {
        (void)!uc_dict_get_bytes(inner, "block_bytes", &configured_bytes);
    }
    if (configured_bytes == 0) {
        (void)!uc_dict_get_bytes(description, "block_bytes", &configured_bytes);
    }
    if (configured_bytes != 0) {
        suite.block_bytes = configured_bytes;
    }
    suite.has_offsets = suite.is_tokened || configured_bytes != 0;
}

struct uc_request_context
suite_context(const char *request_id)
{
    struct uc_request_context context = uc_request_context_init(request_id);
    const char *ttl_text = getenv("UCM_STORE_TTL_MS");

    if (ttl_text != NULL) {
        context.present = UC_REQUEST_TTL;
        context.ttl_ms = strtoull(ttl_text, NULL, 10);
    }
    return context;
}

/* Of a peer: the branch that the requests of the suite go to. */
const struct uc_dict *
suite_branch_of(const struct uc_dict *description)
{
    const char *branch_text = getenv("UCM_STORE_BRANCH");
    const struct uc_dict *branch = NULL;
    size_t count = 0;
    size_t idx;

    if (uc_dict_get_list_count(description, "branches", &count) != UC_OK || count == 0) {
        return description;
    }
    idx = branch_text == NULL ? count - 1 : (size_t)strtoull(branch_text, NULL, 10);
    return uc_dict_get_dict_at(description, "branches", idx, &branch) == UC_OK ? branch
                                                                               : description;
}

bool
suite_is_pipe(void)
{
    const char *type = "";

    return uc_dict_get_string(suite.config, "type", &type) == UC_OK && strcmp(type, "pipe") == 0;
}

bool
suite_is_driven(void)
{
    const struct uc_dict *inner = NULL;
    const char *progress = "";

    return uc_dict_get_dict(suite.config, "config", &inner) == UC_OK &&
           uc_dict_get_string(inner, "progress", &progress) == UC_OK &&
           strcmp(progress, "caller") == 0;
}

static void
read_description(void)
{
    struct uc_dict *description = NULL;
    const struct uc_dict *branch;

    ck_assert_int_eq(uc_dict_create(&description), UC_OK);
    ck_assert_int_eq(uc_scheduler_describe(suite.scheduler, description), UC_OK);
    branch = suite_branch_of(description);
    ck_assert_int_eq(uc_dict_get_bool(branch, "token_addressed", &suite.is_tokened), UC_OK);
    ck_assert_int_eq(uc_dict_get_bool(branch, "prefetchable", &suite.is_prefetchable), UC_OK);
    suite_read_block_bytes(branch);
    uc_dict_destroy(description);
}

void
suite_start(void)
{
    struct uc_request_context context;
    void *memory = NULL;

    ck_assert_msg(uc_assembler_create(suite.config, NULL, &suite.assembler) == UC_OK, "%s",
            uc_last_error());
    ck_assert_int_eq(uc_assembler_scheduler(suite.assembler, &suite.scheduler), UC_OK);
    ck_assert_int_eq(uc_assembler_worker(suite.assembler, &suite.worker), UC_OK);
    read_description();
    ck_assert_msg(suite_memory_alloc(SUITE_KEYS_MAX * suite.block_bytes, &memory) == UC_OK, "%s",
            uc_last_error());
    suite.memory = memory;
    suite.region_count = suite_register_memory(suite.worker);
    suite.next_job_id = 1;
    suite_fresh_ids(suite.ids, SUITE_KEYS_MAX);
    (void)snprintf(
            suite.request_id, sizeof(suite.request_id), "case-%016" PRIx64, seed_of(&suite.ids[0]));
    context = suite_context(suite.request_id);
    ck_assert_int_eq(uc_scheduler_on_new_request(suite.scheduler, &context), UC_OK);
}

void
suite_stop(void)
{
    enum uc_status status = uc_scheduler_on_request_finished(suite.scheduler, suite.request_id);

    ck_assert(status == UC_OK || status == UC_ERR_NOT_FOUND);
    uc_assembler_destroy(suite.assembler);
    suite_memory_free(suite.memory, SUITE_KEYS_MAX * suite.block_bytes);
}

uint8_t *
suite_block(size_t idx)
{
    return suite.memory + idx * suite.block_bytes;
}

const struct uc_block_payload *
suite_payloads(size_t count)
{
    static struct uc_block_payload payloads[SUITE_KEYS_MAX];
    static void *pointers[SUITE_KEYS_MAX];

    assert(count <= SUITE_KEYS_MAX); /* not of Check: the worker process comes here, too */
    for (size_t idx = 0; idx < count; idx++) {
        pointers[idx] = suite_block(idx);
        payloads[idx] = (struct uc_block_payload){
                .pointers = &pointers[idx],
                .sizes = &suite.block_bytes,
                .pointer_count = 1,
        };
    }

    return payloads;
}

struct uc_token *
suite_prepare_put(const struct uc_block_id *ids, size_t count)
{
    struct uc_token *token = NULL;

    ck_assert_msg(uc_scheduler_prepare_put(suite.scheduler, suite.request_id, ids, count, &token) ==
                          UC_OK,
            "%s", uc_last_error());
    ck_assert_uint_eq(token->key_count, count);
    ck_assert_mem_eq(token->keys, ids, count * sizeof(ids[0]));
    return token;
}

struct uc_token *
suite_prepare_get(const struct uc_block_id *ids, size_t count)
{
    struct uc_token *token = NULL;

    ck_assert_msg(uc_scheduler_prepare_get(suite.scheduler, suite.request_id, ids, count, &token) ==
                          UC_OK,
            "%s", uc_last_error());
    ck_assert_uint_eq(token->key_count, count);
    ck_assert_mem_eq(token->keys, ids, count * sizeof(ids[0]));
    return token;
}

void
suite_expect(uint64_t job_id, enum uc_status code)
{
    struct uc_io_result result = {0};
    size_t count = 0;

    ck_assert_int_eq(
            uc_worker_wait(suite.worker, &job_id, 1, SUITE_WAIT_MS, &result, 1, &count), UC_OK);
    ck_assert_uint_eq(count, 1);
    ck_assert_uint_eq(result.job_id, job_id);
    ck_assert_msg(result.code == code, "job ended as %s, not %s", uc_status_name(result.code),
            uc_status_name(code));
    ck_assert_int_eq(result.success, code == UC_OK); /* */
    uc_io_results_release(&result, 1);
}

void
suite_put(const struct uc_block_id *ids, size_t count)
{
    uint64_t job_id = suite.next_job_id++;
    struct uc_token *token = suite_prepare_put(ids, count);

    for (size_t idx = 0; idx < count; idx++) {
        suite_fill(&ids[idx], 0, suite_block(idx), suite.block_bytes);
    }
    ck_assert_msg(uc_worker_submit_put(
                          suite.worker, job_id, suite_payloads(count), count, token, NULL) == UC_OK,
            "%s", uc_last_error());
    suite_expect(job_id, UC_OK);
    ck_assert_msg(uc_scheduler_complete_put(suite.scheduler, suite.request_id, true) == UC_OK, "%s",
            uc_last_error());
    uc_token_destroy(token);
}

void
suite_get_and_compare(const struct uc_block_id *ids, size_t count)
{
    uint64_t job_id = suite.next_job_id++;
    struct uc_token *token = suite_prepare_get(ids, count);

    suite_wipe(suite.memory, count * suite.block_bytes);
    ck_assert_msg(uc_worker_submit_get(
                          suite.worker, job_id, suite_payloads(count), count, token, NULL) == UC_OK,
            "%s", uc_last_error());
    suite_expect(job_id, UC_OK);
    for (size_t idx = 0; idx < count; idx++) {
        ck_assert_msg(suite_matches(&ids[idx], 0, suite_block(idx), suite.block_bytes),
                "block %zu came back changed", idx);
    }
    ck_assert_int_eq(uc_scheduler_complete_get(suite.scheduler, suite.request_id), UC_OK);
    uc_token_destroy(token);
}

bool
suite_is_present(const struct uc_block_id *id)
{
    bool needs_prefetch = false;
    uint8_t hit = 0;

    ck_assert_int_eq(
            uc_scheduler_lookup(suite.scheduler, suite.request_id, id, 1, &hit, &needs_prefetch),
            UC_OK);
    return !needs_prefetch && hit != 0;
}
