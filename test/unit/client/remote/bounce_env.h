/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file bounce_env.h
 * A store of few buffers on a real server, and jobs of more blocks than there are buffers. Between them the transport
 * with faults, which claims to need registration where the fixture says so. One thread.
 */

#ifndef UC_TEST_BOUNCE_ENV_H
#define UC_TEST_BOUNCE_ENV_H

#include "client/stores/remote/store.h"
#include "test/fake/fault_fabric.h"
#include "test/unit/client/remote/remote_env.h"

enum {
    COUNT = 8,
    BUFFERS = 2,
    DUMPED = 100, /* first key of a dump */
    SHORT_MS = 200,
    REGION = 3,
    QUIET_BYTE = 0xa5,
    ALL_BYTES = COUNT * BLOCK_BYTES,
};

/** A job of COUNT blocks with its token. */
struct bounce_job {
    struct env_job job;
    struct uc_block_id keys[COUNT];
    struct uc_token *token;
    bool is_dump;
};

struct bounce_env {
    struct env_server server;
    struct uc_store *store;
    const struct uc_token_addressed_ops *ops;
    uint8_t *memory; /* of the host, not registered, for two jobs */
    struct bounce_job jobs[3];
};
extern struct bounce_env bounce;

/** Start a server and open a store of BUFFERS buffers with `progress: thread`. */
void bounce_setup(bool needs_registration);
/** Likewise, but without a store: bounce_reopen() opens one. */
void bounce_setup_server(bool needs_registration);
/** Checks that nothing is left of the store. */
void bounce_teardown(void);

/** Another store with these keys. */
void bounce_reopen(uint64_t bounce_bytes, const char *progress);
/** @return "thread" for even numbers, else "caller". */
const char *bounce_progress(int loop);

/** Fill in job @p job_id and get its token: COUNT blocks from key @p first on, contiguous at @p where. */
struct bounce_job *bounce_prepare(
        uint64_t job_id, bool is_dump, uint32_t first, uint8_t *where, uint64_t timeout_ms);
void bounce_submit(uint64_t job_id);
/** What follows the event: commit, which shows the blocks or has to say that it does not, or unpin. */
void bounce_conclude(uint64_t job_id, bool are_written);

/** The bytes of COUNT blocks from key @p first on. */
void bounce_fill(uint8_t *bytes, uint32_t first);
void bounce_assert_bytes(const uint8_t *bytes, uint32_t first);
void bounce_assert_quiet(const uint8_t *bytes, size_t length);

/** @return a number that the store's description has. */
uint64_t bounce_number(const char *key);

/** The store works again, all its buffers included. */
void bounce_assert_usable(void);

#endif /* UC_TEST_BOUNCE_ENV_H */
