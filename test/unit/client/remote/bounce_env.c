/* SPDX-License-Identifier: Apache-2.0 */

#include "test/unit/client/remote/bounce_env.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

struct bounce_env bounce;

static void
open_store(uint64_t bounce_bytes, const char *progress)
{
    struct uc_dict *config = env_config(&bounce.server, "both");

    ck_assert_int_eq(uc_dict_set_int(config, "bounce_bytes", (int64_t)bounce_bytes), UC_OK);
    ck_assert_int_eq(uc_dict_set_string(config, "progress", progress), UC_OK);
    bounce.store = uc_remote_store_create();
    ck_assert_msg(uc_store_setup(bounce.store, config) == UC_OK, "%s", uc_last_error());
    uc_dict_destroy(config);
    bounce.ops = uc_store_as_token_addressed(bounce.store);
}

void
bounce_setup_server(bool needs_registration)
{
    uc_fault_fabric_use("tcp", "tcp", needs_registration);
    bounce.server = env_server_start(0, NULL);
    bounce.memory = calloc(2, ALL_BYTES);
    bounce.store = NULL;
}

void
bounce_setup(bool needs_registration)
{
    bounce_setup_server(needs_registration);
    open_store(BUFFERS * BLOCK_BYTES, "thread");
}

void
bounce_teardown(void)
{
    for (size_t idx = 0; idx < sizeof(bounce.jobs) / sizeof(bounce.jobs[0]); idx++) {
        uc_token_destroy(bounce.jobs[idx].token);
        bounce.jobs[idx].token = NULL;
    }
    env_store_destroy(bounce.store);
    env_server_stop(&bounce.server, SIGKILL);
    ck_assert_uint_eq(uc_fault_counts().in_flight, 0);
    ck_assert_uint_eq(uc_fault_counts().endpoints, 0);
    ck_assert_uint_eq(uc_fault_counts().registrations, 0);
    uc_fault_reset();
    free(bounce.memory);
}

void
bounce_reopen(uint64_t bounce_bytes, const char *progress)
{
    env_store_destroy(bounce.store);
    open_store(bounce_bytes, progress);
}

const char *
bounce_progress(int loop)
{
    return loop % 2 == 0 ? "thread" : "caller";
}

struct bounce_job *
bounce_prepare(uint64_t job_id, bool is_dump, uint32_t first, uint8_t *where, uint64_t timeout_ms)
{
    struct bounce_job *job = &bounce.jobs[job_id];
    enum uc_status status;

    for (uint32_t idx = 0; idx < COUNT; idx++) {
        job->keys[idx] = env_key(first + idx);
    }
    uc_token_destroy(job->token);
    job->token = NULL;
    job->is_dump = is_dump;
    status = is_dump ? bounce.ops->alloc(bounce.store, job->keys, COUNT, NULL, &job->token)
                     : bounce.ops->pin(bounce.store, job->keys, COUNT, &job->token);
    ck_assert_msg(status == UC_OK, "%s", uc_last_error());
    env_job_init(&job->job, job->keys, COUNT, where, 0, BLOCK_BYTES);
    job->job.descriptor.timeout_ms = timeout_ms;
    return job;
}

void
bounce_submit(uint64_t job_id)
{
    const struct bounce_job *job = &bounce.jobs[job_id];
    enum uc_status status =
            job->is_dump
                    ? bounce.ops->dump(bounce.store, job_id, &job->job.descriptor, job->token, 0)
                    : bounce.ops->load(bounce.store, job_id, &job->job.descriptor, job->token, 0);

    ck_assert_msg(status == UC_OK, "%s", uc_last_error());
}

void
bounce_conclude(uint64_t job_id, bool are_written)
{
    const struct bounce_job *job = &bounce.jobs[job_id];

    if (job->is_dump) {
        enum uc_status status = bounce.ops->commit(bounce.store, job->token, NULL, true);

        ck_assert_int_eq(status == UC_OK, are_written);
    } else {
        bounce.ops->unpin(bounce.store, job->token);
    }
}

void
bounce_fill(uint8_t *bytes, uint32_t first)
{
    for (uint32_t idx = 0; idx < COUNT; idx++) {
        env_fill(bytes + (size_t)idx * BLOCK_BYTES, BLOCK_BYTES, first + idx);
    }
}

void
bounce_assert_bytes(const uint8_t *bytes, uint32_t first)
{
    uint8_t *expected = malloc(ALL_BYTES);

    bounce_fill(expected, first);
    ck_assert(memcmp(bytes, expected, ALL_BYTES) == 0);
    free(expected);
}

void
bounce_assert_quiet(const uint8_t *bytes, size_t length)
{
    size_t at = 0;

    while (at < length && bytes[at] == QUIET_BYTE) {
        at++; /* an assertion each would take long */
    }
    ck_assert_msg(at == length, "byte %zu was written", at);
}

uint64_t
bounce_number(const char *key)
{
    struct uc_dict *description = NULL;
    int64_t number = -1;

    ck_assert_int_eq(uc_dict_create(&description), UC_OK);
    ck_assert_int_eq(uc_store_describe(bounce.store, description), UC_OK);
    ck_assert_int_eq(uc_dict_get_int(description, key, &number), UC_OK);
    uc_dict_destroy(description);
    return (uint64_t)number;
}

void
bounce_assert_usable(void)
{
    env_wait_health(bounce.store, UC_OK);
    env_put(bounce.store, 500, COUNT);
    ck_assert_int_eq(env_get(bounce.store, 500, COUNT), UC_OK);
}
