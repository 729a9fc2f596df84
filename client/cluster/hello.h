/* SPDX-License-Identifier: Apache-2.0 */

/** @file hello.h Dial a server and say hello; the connection is the caller's. Blocks. */

#ifndef UC_CLUSTER_HELLO_H
#define UC_CLUSTER_HELLO_H

#include <ucm/compiler.h>
#include <ucm/status.h>

#include "client/cluster/session.h"
#include "net/rpc/connection.h"

/**
 * @param[in]  handler         of the new connection; borrowed for its life. NULL = told nothing
 * @param[out] connection_out  set on success only
 * @param[out] hello_out       likewise; plain values, no borrowed bytes
 * @retval as uc_session_probe()
 */
UC_MUST_CHECK enum uc_status uc_hello_connect(const struct uc_session_config *config,
        const struct uc_rpc_handler *handler, void *context,
        struct uc_rpc_connection **connection_out, struct uc_hello_reply *hello_out);

#endif /* UC_CLUSTER_HELLO_H */
