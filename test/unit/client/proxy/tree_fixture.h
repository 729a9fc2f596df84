/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file tree_fixture.h
 * Trees of fake stores, built by an assembler, and short forms for their tests. One thread.
 */

#ifndef UC_TEST_TREE_FIXTURE_H
#define UC_TEST_TREE_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <check.h>

#include <ucm/assembler.h>

#include "test/fake/fake_store.h"

enum {
    TREE_STORES_MAX = 6
};

struct tree {
    struct uc_fake_store *stores[TREE_STORES_MAX]; /* in the order of the configuration */
    char trace[UC_FAKE_LOG_BYTES];
    struct uc_assembler *assembler;
    struct uc_scheduler *scheduler;
    struct uc_worker *worker;
};

extern struct tree tree;

/** Ids "block 0", "block 1", …; one buffer of 64 bytes each, as payloads. */
extern struct uc_block_id tree_keys[4];
extern const struct uc_block_payload tree_payloads[4];

/** Unchecked fixture's work: forget the last tree, name the keys. */
void tree_reset(void);

/**
 * Read YAML in which `store: fake` is a fake store, the n-th of which is stores[n], and `store: null` a null store.
 * `config` of a fake takes what its setup knows.
 */
struct uc_dict *tree_config(const char *yaml);

/** Assemble; the tree is `tree`. */
void tree_start(const char *yaml);
void tree_start_with(const char *yaml, const struct uc_assembler_options *options);

/** Drain what is finished and destroy. */
void tree_stop(void);

/** Register a request; a negative @p ttl_ms means no TTL fact. */
void tree_register(const char *request_id, int64_t ttl_ms);

/** @return a token of the window, over the first keys. */
struct uc_token *tree_get_token(const char *request_id, size_t key_count);
struct uc_token *tree_put_token(const char *request_id, size_t key_count);

/** Submit a get of whole blocks. */
enum uc_status tree_submit_get(uint64_t job_id, const struct uc_token *token);

int tree_run(Suite *suite);

#endif /* UC_TEST_TREE_FIXTURE_H */
