/* SPDX-License-Identifier: Apache-2.0 */

/** @file server_stat.h Ask a server for its counters, on a connection of its own. Blocks. Any thread. */

#ifndef UC_CLUSTER_SERVER_STAT_H
#define UC_CLUSTER_SERVER_STAT_H

#include <ucm/compiler.h>
#include <ucm/status.h>

#include "client/cluster/session.h"
#include "net/rpc/messages.h"

/** @retval as uc_session_probe(), or what the server answered */
UC_MUST_CHECK enum uc_status uc_server_stat(
        const struct uc_session_config *config, struct uc_stat_reply *stat_out);

#endif /* UC_CLUSTER_SERVER_STAT_H */
