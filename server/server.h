/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file server.h
 * One memory node: a control thread (the caller of uc_server_run()) that owns connections, sessions and
 * the index, and a fabric thread that moves bytes. Any number of servers may live in one process.
 */

#ifndef UC_SERVER_SERVER_H
#define UC_SERVER_SERVER_H

#include <stdint.h>

#include <ucm/clock.h>
#include <ucm/compiler.h>
#include <ucm/status.h>

#include "server/config.h"

struct uc_server;

/**
 * Make the memory, open the fabrics, listen. Blocks until everything is ready to serve.
 *
 * @param[in] config  borrowed for the server's life
 * @param[in] clock   of leases and TTLs; its context is borrowed
 * @retval others     uc_last_error() names the key of the configuration and what is wrong
 */
UC_MUST_CHECK enum uc_status uc_server_create(const struct uc_server_config *config,
        const struct uc_clock *clock, struct uc_server **server_out);

/** After run has returned, or without it. NULL is allowed. */
void uc_server_destroy(struct uc_server *server);

/**
 * Serve until @p stop_fd is readable, then let open writes end and fence what is left. The descriptor is
 * not read; when it is a signalfd, a second signal changes nothing.
 */
UC_MUST_CHECK enum uc_status uc_server_run(struct uc_server *server, int stop_fd);

uint16_t uc_server_rpc_port(const struct uc_server *server);
uint16_t uc_server_fabric_port(const struct uc_server *server);

#endif /* UC_SERVER_SERVER_H */
