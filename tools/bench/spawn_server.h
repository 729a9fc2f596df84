/* SPDX-License-Identifier: Apache-2.0 */

/** @file spawn_server.h Start a ucm-server of one's own on free ports, and stop it. One thread. */

#ifndef UC_BENCH_SPAWN_SERVER_H
#define UC_BENCH_SPAWN_SERVER_H

#include <stdint.h>
#include <sys/types.h>

#include <ucm/compiler.h>
#include <ucm/status.h>

/** A running server. A plain value. */
struct uc_spawned_server {
    pid_t pid;
    uint16_t rpc_port;
};

/** What to start. Borrowed texts. */
struct uc_spawn_options {
    const char *address; /* to listen on */
    const char *fabric;
    const char *policy;
    const char *name_space;
    uint64_t block_bytes;
    uint64_t capacity_blocks;
};

/**
 * Start `ucm-server` (beside this program, else by PATH) and wait until it serves.
 *
 * @retval UC_ERR_OS_API    it could not be started
 * @retval UC_ERR_UNHEALTHY it ended before it was ready; it has said why on standard error
 * @retval UC_ERR_TIMEOUT   not ready within a minute
 */
UC_MUST_CHECK enum uc_status uc_server_spawn(
        const struct uc_spawn_options *options, struct uc_spawned_server *server_out);

/** SIGTERM and wait. @retval UC_ERR_GENERAL it did not exit with 0 */
UC_MUST_CHECK enum uc_status uc_server_stop(const struct uc_spawned_server *server);

/** SIGKILL and wait. */
void uc_server_kill(const struct uc_spawned_server *server);

#endif /* UC_BENCH_SPAWN_SERVER_H */
