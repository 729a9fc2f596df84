/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file posix_env.h
 * A posix store over a folder of its own, and short forms for its use. One thread.
 */

#ifndef UC_TEST_POSIX_ENV_H
#define UC_TEST_POSIX_ENV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <check.h>

#include <ucm/dict.h>
#include <ucm/store.h>

enum {
    ENV_WAIT_MS = 20000,
    ENV_PATH_BYTES = 600,
};

/** Folder of the running case: made and removed by the fixture below; not in a memory file system. */
extern char env_folder[ENV_PATH_BYTES];

void env_setup(void);
void env_teardown(void);

/** A dictionary with root = the folder and `key=value` texts, NULL-terminated. The caller destroys it. */
struct uc_dict *env_config(const char *const *settings);

/** A store that is set up, or a failed case. */
struct uc_store *env_open(const char *const *settings);

/** Set up a store that must refuse; the error text is left behind. */
enum uc_status env_open_status(const char *const *settings);

/** Setting of engine 0 (threads) or 1 (io_uring; threads, visibly, where the machine does not permit it). */
const char *env_engine(int idx);

/** An id that depends on @p number only. */
struct uc_block_id env_id(uint64_t number);

/** The bytes that belong to a block. */
void env_fill(uint64_t number, uint64_t offset, uint8_t *bytes, size_t length);
bool env_matches(uint64_t number, uint64_t offset, const uint8_t *bytes, size_t length);

/** Submit one block; @p bytes is the memory. @return the status of the submit */
enum uc_status env_submit(struct uc_store *store, bool is_dump, uint64_t job_id, uint64_t number,
        uint64_t offset, uint8_t *bytes, uint64_t length);

/** Wait for a job. @return its code */
enum uc_status env_wait(struct uc_store *store, uint64_t job_id);

/** Dump or load one block with its own bytes. @return the code; a load that succeeds is compared */
enum uc_status env_dump(struct uc_store *store, uint64_t number, uint64_t offset, uint64_t length);
enum uc_status env_load(struct uc_store *store, uint64_t number, uint64_t offset, uint64_t length);

bool env_is_present(struct uc_store *store, uint64_t number);

/** Path of a block's file below @p folder (256 shards). */
void env_block_path(const char *folder, uint64_t number, char *path);

/** @return regular files below @p folder whose path contains @p part */
size_t env_count_files(const char *folder, const char *part);

/** From now on, in this process, a system call fails with that errno. For children only: it cannot be undone. */
void env_forbid(int call, int error);

/** A number that describe() tells. */
int64_t env_number(struct uc_store *store, const char *key);

#endif /* UC_TEST_POSIX_ENV_H */
