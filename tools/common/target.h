/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file target.h
 * The server and namespace that a tool was told to use, as what the layers below want to be told. Any
 * thread.
 */

#ifndef UC_TOOLS_COMMON_TARGET_H
#define UC_TOOLS_COMMON_TARGET_H

#include <stdint.h>

#include <ucm/compiler.h>
#include <ucm/dict.h>
#include <ucm/status.h>

#include "client/cluster/session.h"

/** Borrowed texts. */
struct uc_target {
    const char *server; /* HOST:PORT */
    const char *name_space;
    const char *credential; /* NULL = none */
    const char *fabric;
    const char *client; /* for the server's log */
};

/**
 * What a session of its own is opened with: it reads only.
 *
 * @param[out] address_out  config_out points to it
 * @retval UC_ERR_INVALID_PARAM  the server is not HOST:PORT
 */
UC_MUST_CHECK enum uc_status uc_target_session(const struct uc_target *target, uint64_t timeout_ms,
        struct uc_server_address *address_out, struct uc_session_config *config_out);

/**
 * A topology of one remote store: {type: store, store: remote, config: {…}}.
 *
 * @param[in]  config        keys of the store beyond the target's; completed here, stays the caller's
 * @param[out] topology_out  released by uc_dict_destroy()
 * @retval UC_ERR_OUT_OF_MEMORY
 */
UC_MUST_CHECK enum uc_status uc_target_topology(
        const struct uc_target *target, struct uc_dict *config, struct uc_dict **topology_out);

/** Ask the server for its counters. Blocks. @retval as uc_server_stat() */
UC_MUST_CHECK enum uc_status uc_target_stat(
        const struct uc_target *target, uint64_t timeout_ms, struct uc_stat_reply *stat_out);

#endif /* UC_TOOLS_COMMON_TARGET_H */
