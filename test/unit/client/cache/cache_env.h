/* SPDX-License-Identifier: Apache-2.0 */

/** @file cache_env.h Cache stores set up by hand, and short forms for their use. One thread. */

#ifndef UC_TEST_CACHE_ENV_H
#define UC_TEST_CACHE_ENV_H

#include <check.h>

#include <ucm/setup.h>
#include <ucm/store.h>

#include "client/stores/cache/store.h"

enum {
    ENV_BLOCK_BYTES = 8192,
    ENV_BLOCKS = 4, /* capacity */
    ENV_WAIT_MS = 20000
};

struct env_options {
    const char *role;   /* NULL = both */
    const char *domain; /* NULL = none given */
    const char *write;  /* NULL = none given */
    struct uc_store *lower;
    struct uc_prerequisite *prerequisite;
    int64_t capacity_blocks; /* 0 = ENV_BLOCKS */
};

/** A configured store, or NULL with the status in @p status_out. */
struct uc_store *env_try_store(const struct env_options *options, enum uc_status *status_out);
/** The same, which must succeed. */
struct uc_store *env_store(const struct env_options *options);
struct uc_store *env_null_store(void);

/** A domain that no other test process uses. */
const char *env_domain(void);

struct uc_block_id env_id(unsigned number);
/** Fill with, or compare to, the bytes of a block. */
void env_fill(unsigned number, uint8_t *bytes);
bool env_matches(unsigned number, const uint8_t *bytes);

/** Move whole blocks of a token to or from @p memory; @return the event's code, per-block bits in *bits_out. */
enum uc_status env_move(struct uc_store *store, bool is_load, const struct uc_token *token,
        uint8_t *memory, uint64_t *bits_out);
enum uc_status env_wait(struct uc_store *store, uint64_t job_id, uint64_t *bits_out);

/** Alloc, dump, commit through the facet of one store, or of two sides. */
void env_put(struct uc_store *control, struct uc_store *data, unsigned number);
/** Dump into a plain store. */
void env_dump_plain(struct uc_store *store, unsigned number);
/** @return whether the block can be pinned, loaded and has its bytes */
bool env_can_get(struct uc_store *control, struct uc_store *data, unsigned number);
/** Look up above another tier, for the request "r". @return whether it signals; else *hit is the answer */
bool env_ask(struct uc_store *store, unsigned number, uint8_t *hit);
/** One round of prefetch for what was asked last. @return the event's code */
enum uc_status env_run_round(struct uc_store *store, bool success);
bool env_is_hit(struct uc_store *store, unsigned number);
int64_t env_number(struct uc_store *store, const char *key);

#endif /* UC_TEST_CACHE_ENV_H */
