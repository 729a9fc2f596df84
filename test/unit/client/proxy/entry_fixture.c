/* SPDX-License-Identifier: Apache-2.0 */

#include "test/unit/client/proxy/entry_fixture.h"

#include <stdio.h>
#include <stdlib.h>

struct fixture fx;
struct uc_block_id keys[8];

static uint8_t buffers[8][64];
static void *const pointers[8] = {buffers[0], buffers[1], buffers[2], buffers[3], buffers[4],
        buffers[5], buffers[6], buffers[7]};
static const uint64_t size = sizeof(buffers[0]);

#define PAYLOAD(idx)                                                   \
    {                                                                  \
        .pointers = &pointers[idx], .sizes = &size, .pointer_count = 1 \
    }
const struct uc_block_payload payloads[8] = {PAYLOAD(0), PAYLOAD(1), PAYLOAD(2), PAYLOAD(3),
        PAYLOAD(4), PAYLOAD(5), PAYLOAD(6), PAYLOAD(7)};

void
fixture_start(enum kind kind)
{
    for (size_t idx = 0; idx < 8; idx++) {
        (void)snprintf((char *)keys[idx].bytes, sizeof(keys[idx].bytes), "block %zu", idx);
    }
    fx.is_tokened = kind == KIND_TOKENED || kind == KIND_BOTH;
    fx.is_prefetchable = kind == KIND_PREFETCHABLE || kind == KIND_BOTH;
    fx.fake = uc_fake_store_create(fx.is_tokened, fx.is_prefetchable);
    ck_assert_ptr_nonnull(fx.fake);
    ck_assert_int_eq(uc_entry_create(&fx.fake->base, &fx.entry), UC_OK);
    fx.scheduler = uc_entry_scheduler(fx.entry);
    fx.worker = uc_entry_worker(fx.entry);
}

/* Jobs are drained before an entry goes. */
static void
drain(void)
{
    struct uc_io_result result;
    size_t count = 1;

    fx.fake->answers[UC_FAKE_GET_FINISHED] = UC_OK;
    while (count != 0) {
        ck_assert_int_eq(uc_worker_get_finished(fx.worker, &result, 1, &count), UC_OK);
        uc_io_results_release(&result, count);
    }
}

void
fixture_stop(void)
{
    if (fx.entry != NULL) {
        drain();
    }
    uc_token_destroy(fx.get_token);
    uc_token_destroy(fx.put_token);
    uc_token_destroy(fx.plan);
    uc_entry_destroy(fx.entry);
    uc_fake_store_destroy(&fx.fake->base);
    fx = (struct fixture){0};
}

void
fixture_register(void)
{
    struct uc_request_context context = uc_request_context_init("r");

    ck_assert_int_eq(uc_scheduler_on_new_request(fx.scheduler, &context), UC_OK);
}

struct uc_token *
fixture_get_token(size_t key_count)
{
    struct uc_token *token = NULL;

    ck_assert_int_eq(uc_scheduler_prepare_get(fx.scheduler, "r", keys, key_count, &token), UC_OK);
    ck_assert_ptr_nonnull(token);
    return token;
}

struct uc_token *
fixture_put_token(size_t key_count)
{
    struct uc_token *token = NULL;

    ck_assert_int_eq(uc_scheduler_prepare_put(fx.scheduler, "r", keys, key_count, &token), UC_OK);
    ck_assert_ptr_nonnull(token);
    return token;
}

void
fixture_start_windows(enum kind kind)
{
    fixture_start(kind);
    fixture_register();
    fx.get_token = fixture_get_token(3);
    fx.put_token = fixture_put_token(3);
    ck_assert_int_eq(uc_scheduler_prepare_prefetch(fx.scheduler, "r", &fx.plan), UC_OK);
}

enum uc_status
fixture_submit(enum job_class job_class, uint64_t job_id)
{
    switch (job_class) {
    case JOB_GET:
        return uc_worker_submit_get(fx.worker, job_id, payloads, 3, fx.get_token, NULL);
    case JOB_PUT:
        return uc_worker_submit_put(fx.worker, job_id, payloads, 3, fx.put_token, NULL);
    default:
        return uc_worker_submit_prefetch(fx.worker, job_id, fx.plan);
    }
}

void
fixture_expect_event(uint64_t job_id, enum uc_status code)
{
    struct uc_io_result result;
    size_t count = 99;

    ck_assert_int_eq(uc_worker_get_finished(fx.worker, &result, 1, &count), UC_OK);
    ck_assert_uint_eq(count, 1);
    ck_assert_uint_eq(result.job_id, job_id);
    ck_assert_int_eq(result.code, code);
    ck_assert_int_eq(result.success, code == UC_OK);
    uc_io_results_release(&result, 1);
}

void
fixture_expect_no_event(void)
{
    struct uc_io_result result;
    size_t count = 99;

    ck_assert_int_eq(uc_worker_get_finished(fx.worker, &result, 1, &count), UC_OK);
    ck_assert_uint_eq(count, 0);
}

int
fixture_run(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    int failed;

    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
