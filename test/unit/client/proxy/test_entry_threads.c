/* SPDX-License-Identifier: Apache-2.0 */

/* a control thread and a data thread use one entry in parallel. */

#include <pthread.h>

#include "test/unit/client/proxy/entry_fixture.h"

enum {
    ROUNDS = 3000
};

static void *
run_scheduler(void *context)
{
    struct uc_request_context request = uc_request_context_init("control");
    struct uc_token *token = NULL;

    (void)context;
    for (int round = 0; round < ROUNDS; round++) {
        fx.fake->control.log[0] = '\0';
        ck_assert_int_eq(uc_scheduler_on_new_request(fx.scheduler, &request), UC_OK);
        ck_assert_int_eq(uc_scheduler_prepare_get(fx.scheduler, "control", keys, 4, &token), UC_OK);
        uc_token_destroy(token);
        ck_assert_int_eq(uc_scheduler_prepare_put(fx.scheduler, "control", keys, 4, &token), UC_OK);
        uc_token_destroy(token);
        ck_assert_int_eq(uc_scheduler_complete_get(fx.scheduler, "control"), UC_OK);
        ck_assert_int_eq(uc_scheduler_on_request_finished(fx.scheduler, "control"), UC_OK);
    }

    return NULL;
}

static void *
run_worker(void *context)
{
    struct uc_token *token = context;
    struct uc_io_result results[2];
    size_t count = 0;

    for (uint64_t round = 0; round < ROUNDS; round++) {
        const uint64_t job_ids[] = {round, round + ROUNDS};

        fx.fake->data.log[0] = '\0';
        ck_assert_int_eq(
                uc_worker_submit_get(fx.worker, job_ids[0], payloads, 4, token, NULL), UC_OK);
        ck_assert_int_eq(uc_worker_submit_prefetch(fx.worker, job_ids[1], token), UC_OK);
        ck_assert_int_eq(uc_worker_wait(fx.worker, job_ids, 2, -1, results, 2, &count), UC_OK);
        ck_assert_uint_eq(count, 2);
        uc_io_results_release(results, count);
    }

    return NULL;
}

START_TEST(control_and_data_thread_do_not_disturb_each_other)
{
    struct uc_token *token;
    pthread_t scheduler;
    pthread_t worker;

    fixture_start((enum kind)_i);
    fixture_register();
    token = fixture_get_token(4);
    ck_assert_int_eq(pthread_create(&scheduler, NULL, run_scheduler, NULL), 0);
    ck_assert_int_eq(pthread_create(&worker, NULL, run_worker, token), 0);
    ck_assert_int_eq(pthread_join(scheduler, NULL), 0);
    ck_assert_int_eq(pthread_join(worker, NULL), 0);
    uc_token_destroy(token);
    fixture_stop();
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("entry_threads");
    TCase *tcase = tcase_create("all");

    tcase_add_loop_test(tcase, control_and_data_thread_do_not_disturb_each_other, 0, KIND_COUNT);
    suite_add_tcase(suite, tcase);
    return fixture_run(suite);
}
