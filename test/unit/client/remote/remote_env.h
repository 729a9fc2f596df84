/* SPDX-License-Identifier: Apache-2.0 */

/** @file remote_env.h A real ucm-server on loopback and remote stores that use it. One thread. */

#ifndef UC_TEST_REMOTE_ENV_H
#define UC_TEST_REMOTE_ENV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <ucm/dict.h>
#include <ucm/store.h>

enum {
    BLOCK_BYTES = 64 << 10,
    BLOCKS = 32,
};

/** One server process. */
struct env_server {
    pid_t pid;
    uint16_t port;
    int output; /* its standard output, where the ready line came from */
};

/** Start a server and wait until it serves. @p port 0 takes a free one; @p extra NULL-terminated. */
struct env_server env_server_start(uint16_t port, const char *const *extra);
void env_server_stop(struct env_server *server, int signal_number);

/** SIGSTOP, and wait until no thread of it runs any more; SIGCONT. */
void env_server_freeze(const struct env_server *server);
void env_server_thaw(const struct env_server *server);

/** A configuration for a store that uses the server. The caller destroys it. */
struct uc_dict *env_config(const struct env_server *server, const char *role);

/** A store that is set up; destroyed by env_store_destroy(). */
struct uc_store *env_store(const struct env_server *server, const char *role);
void env_store_destroy(struct uc_store *store);

/** Key number @p number, and the bytes that belong to it. */
struct uc_block_id env_key(uint32_t number);
void env_fill(uint8_t *bytes, size_t length, uint32_t number);

/** One block per key, contiguous in @p memory, covering [offset, offset + size) of each. */
struct env_job {
    struct uc_job_descriptor descriptor;
    struct uc_block_payload payloads[BLOCKS];
    void *pointers[BLOCKS];
    uint64_t sizes[BLOCKS];
};
void env_job_init(struct env_job *job, const struct uc_block_id *keys, size_t count,
        uint8_t *memory, uint64_t offset, uint64_t size);

/** Wait for one job. The caller releases the result. */
struct uc_io_result env_wait(struct uc_store *store, uint64_t job_id);
/** Wait for one job and expect this code. */
void env_expect(struct uc_store *store, uint64_t job_id, enum uc_status code);

/** Put keys [first, first + count) whole and commit; all must succeed. */
void env_put(struct uc_store *store, uint32_t first, size_t count);
/** Pin and load likewise. @return the job's code; with UC_OK the bytes were compared */
enum uc_status env_get(struct uc_store *store, uint32_t first, size_t count);
/** @return whether the key is there. */
bool env_has(struct uc_store *store, uint32_t number);

/** Wait until health is as wanted; fails the test after some seconds. */
void env_wait_health(struct uc_store *store, enum uc_status wanted);

/** Let a lease pass: the one thing that only time brings about. */
void env_pass_time(unsigned wait_ms);

/** Copy by way of bytes, as another process would get it. */
struct uc_token *env_token_copy(const struct uc_token *token);

#endif /* UC_TEST_REMOTE_ENV_H */
