/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file server_set.h
 * A session with every server of a list. Servers that are out of reach do not keep the others from working:
 * their sessions come up in the background, whenever they can.
 *
 * Threads: as sessions; open and close belong to the owner.
 */

#ifndef UC_CLUSTER_SERVER_SET_H
#define UC_CLUSTER_SERVER_SET_H

#include <stdbool.h>
#include <stddef.h>

#include <ucm/compiler.h>
#include <ucm/status.h>

#include "client/cluster/server_list.h"
#include "client/cluster/session.h"

/** A plain value; zeroed = closed. */
struct uc_server_set {
    struct uc_session **sessions; /* in the order of the list */
    size_t count;
};

/**
 * Connect to all servers at once; blocks until each has answered, refused or run into its timeout.
 *
 * @param[in]  config     `server` is set for each of them
 * @param[out] set_out    set on success only; closed by uc_server_set_close()
 * @param[out] hello_out  of the first server that answered; without any, `block_bytes` alone is set
 * @retval UC_ERR_UNHEALTHY      none can be reached, and `config` does not say how large blocks are
 * @retval UC_ERR_INVALID_PARAM  block sizes differ, between servers or from what is wanted
 * @retval other                 what a server that can be reached answered
 */
UC_MUST_CHECK enum uc_status uc_server_set_open(const struct uc_server_list *servers,
        const struct uc_session_config *config, struct uc_server_set *set_out,
        struct uc_hello_reply *hello_out);

void uc_server_set_close(struct uc_server_set *set);

/** @return whether a call to one of them would go out. Any thread. */
bool uc_server_set_is_usable(const struct uc_server_set *set);

#endif /* UC_CLUSTER_SERVER_SET_H */
