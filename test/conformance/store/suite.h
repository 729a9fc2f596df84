/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file suite.h
 * What the cases of the store conformance suite share: one store behind the public interfaces, and short
 * forms for its use. A case adapts to what the store says of itself. One thread.
 */

#ifndef UC_TEST_STORE_SUITE_H
#define UC_TEST_STORE_SUITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <check.h>

#include <ucm/assembler.h>

enum {
    SUITE_KEYS_MAX = 64,
    SUITE_WAIT_MS = 20000, /* for jobs that must end; a store that needs longer fails the case */
    SUITE_CASE_TIMEOUT_S = 60
};

struct suite {
    const struct uc_dict *config; /* as the assembler takes it; borrowed from main */
    char *const *arguments;       /* of the command line, for the worker process of split cases */
    struct uc_assembler *assembler;
    struct uc_scheduler *scheduler;
    struct uc_worker *worker;
    bool is_tokened;
    bool is_prefetchable;
    bool has_offsets;     /* block_offset works: tokened, or block_bytes is configured */
    uint64_t block_bytes; /* length of the blocks that the cases write */
    uint64_t next_job_id;
    char request_id[32];                    /* registered for the case */
    struct uc_block_id ids[SUITE_KEYS_MAX]; /* fresh for each case */
    uint8_t *memory;                        /* SUITE_KEYS_MAX blocks, from suite_memory_alloc() */
    uint32_t region_count;                  /* registered before the case: memory that needs it */
};

extern struct suite suite;

/**
 * @return the context of a request of the suite. UCM_STORE_TTL_MS gives it a TTL fact, by which a peer may route it;
 * what describes its blocks is then branch UCM_STORE_BRANCH of the description, by default the last one.
 */
struct uc_request_context suite_context(const char *request_id);

/** Checked fixture: assemble, register a request, make fresh ids. */
void suite_start(void);
void suite_stop(void);

/** @return the part of a description that the suite's requests concern; borrowed from it. */
const struct uc_dict *suite_branch_of(const struct uc_dict *description);

/** @return whether the tree is a pipe. */
bool suite_is_pipe(void);

/** @return whether the store is driven by get_finished and wait alone: `progress: caller`. */
bool suite_is_driven(void);

/** Take block_bytes from the configuration or from what the store says of itself. */
void suite_read_block_bytes(const struct uc_dict *description);

/*
 * Memory of the blocks: that of the host, in suite_memory.c; or of a device, over a driver without one, in
 * suite_memory_device.c, which stores have to know and the suite itself must not touch.
 */
enum uc_memory_kind suite_memory_kind(void);
UC_MUST_CHECK enum uc_status suite_memory_alloc(uint64_t length_bytes, void **memory_out);
void suite_memory_free(void *memory, uint64_t length_bytes);
/** @return where those bytes can be touched; any other address as it is. */
uint8_t *suite_view(const void *address);

/** Let a worker know memory that it cannot use otherwise. @return regions that were registered */
uint32_t suite_register_memory(struct uc_worker *worker);

/** Overwrite with what no block has, 0xee. */
void suite_wipe(void *address, uint64_t length);

/** Fill ids with fresh ones that no other case or run uses. */
void suite_fresh_ids(struct uc_block_id *ids, size_t count);

/** The bytes that belong to a block, from @p offset on. */
void suite_fill(const struct uc_block_id *id, uint64_t offset, uint8_t *bytes, uint64_t length);

/** @return whether these are the bytes that belong to the block. */
bool suite_matches(
        const struct uc_block_id *id, uint64_t offset, const uint8_t *bytes, uint64_t length);

/** Room for block @p idx in suite.memory. */
uint8_t *suite_block(size_t idx);

/** Payloads that cover whole blocks in suite.memory, valid until the next call. */
const struct uc_block_payload *suite_payloads(size_t count);

struct uc_token *suite_prepare_put(const struct uc_block_id *ids, size_t count);
struct uc_token *suite_prepare_get(const struct uc_block_id *ids, size_t count);

/** Wait for a job and check its code; every block as @p code says. */
void suite_expect(uint64_t job_id, enum uc_status code);

/** Put whole blocks: window, one job, commit. */
void suite_put(const struct uc_block_id *ids, size_t count);

/** Get whole blocks into cleared memory and compare every byte. */
void suite_get_and_compare(const struct uc_block_id *ids, size_t count);

/** @return whether the block is present. */
bool suite_is_present(const struct uc_block_id *id);

/* The cases, by subject. */
TCase *suite_lookup_cases(void);
TCase *suite_transfer_cases(void);
TCase *suite_window_cases(void);
TCase *suite_job_cases(void);
TCase *suite_memory_cases(void);
TCase *suite_split_cases(void);
TCase *suite_engine_cases(void);

/** The worker process of the split cases; @p fd is its end of the channel. @return exit status */
int suite_run_worker(int fd);

#endif /* UC_TEST_STORE_SUITE_H */
