/* SPDX-License-Identifier: Apache-2.0 */

/** @file ready.h Tells the ports to whoever started the server. */

#ifndef UC_SERVER_READY_H
#define UC_SERVER_READY_H

#include <ucm/compiler.h>
#include <ucm/status.h>

#include "server/server.h"

/**
 * Write one JSON line {"rpc_port", "fabric_port", "pid"} to @p path, complete or not at all; "-" is
 * standard output, "" does nothing.
 */
UC_MUST_CHECK enum uc_status uc_ready_write(const char *path, const struct uc_server *server);

/**
 * Remove the file that an earlier run left at @p path, so that nobody trusts it.
 *
 * @retval UC_ERR_INVALID_PARAM  something else is there, which we would replace: a device, a link, a directory
 */
UC_MUST_CHECK enum uc_status uc_ready_clear(const char *path);

#endif /* UC_SERVER_READY_H */
