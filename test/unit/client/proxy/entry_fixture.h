/* SPDX-License-Identifier: Apache-2.0 */

/** @file entry_fixture.h An entry over a fake store, and short forms for its tests. One thread. */

#ifndef UC_TEST_ENTRY_FIXTURE_H
#define UC_TEST_ENTRY_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <check.h>

#include <ucm/scheduler.h>
#include <ucm/worker.h>

#include "client/proxy/entry.h"
#include "test/fake/fake_store.h"

/** Which facets the store has: the loop variable of tests that run on all kinds. */
enum kind {
    KIND_PLAIN,
    KIND_TOKENED,
    KIND_PREFETCHABLE,
    KIND_BOTH,
    KIND_COUNT,
};

struct fixture {
    struct uc_fake_store *fake;
    struct uc_entry *entry;
    struct uc_scheduler *scheduler;
    struct uc_worker *worker;
    bool is_tokened;
    bool is_prefetchable;
    struct uc_token *get_token; /* of fixture_start_windows(), else NULL */
    struct uc_token *put_token;
    struct uc_token *plan;
};

/** The three ways to submit a job. */
enum job_class {
    JOB_GET,
    JOB_PUT,
    JOB_PREFETCH,
    JOB_CLASS_COUNT,
};

extern struct fixture fx;

/** Ids "block 0", "block 1", …, all different. */
extern struct uc_block_id keys[8];

/** One buffer of 64 bytes each, as payloads. */
extern const struct uc_block_payload payloads[8];

void fixture_start(enum kind kind);
void fixture_stop(void);

/** Start, register "r", and open a window of each class over the first three keys; stopped as ever. */
void fixture_start_windows(enum kind kind);

/** Submit a job of one of these windows. */
enum uc_status fixture_submit(enum job_class job_class, uint64_t job_id);

/** Register "r". */
void fixture_register(void);

/** @return a token of an open window of "r" over the first keys; the caller destroys it. */
struct uc_token *fixture_get_token(size_t key_count);
struct uc_token *fixture_put_token(size_t key_count);

/** Collect one event of a job and check its code. */
void fixture_expect_event(uint64_t job_id, enum uc_status code);

/** Check that nothing is ready. */
void fixture_expect_no_event(void);

int fixture_run(Suite *suite);

#endif /* UC_TEST_ENTRY_FIXTURE_H */
