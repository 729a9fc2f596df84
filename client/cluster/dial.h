/* SPDX-License-Identifier: Apache-2.0 */

/** @file dial.h Start connecting to a server without waiting for it. Any thread. */

#ifndef UC_CLUSTER_DIAL_H
#define UC_CLUSTER_DIAL_H

#include <stddef.h>

#include <ucm/compiler.h>
#include <ucm/status.h>

#include "client/cluster/server_list.h"

/**
 * Make a non-blocking socket that is connecting. Host names are resolved, which may block; addresses in
 * digits are not.
 *
 * @param[in]  address_idx        which of the addresses of the host to take
 * @param[out] fd_out             set on success only; the caller owns it
 * @param[out] address_count_out  how many addresses the host has; set whenever it could be resolved
 * @retval UC_ERR_UNHEALTHY  not resolved, or refused at once
 */
UC_MUST_CHECK enum uc_status uc_dial_start(const struct uc_server_address *server,
        size_t address_idx, int *fd_out, size_t *address_count_out);

#endif /* UC_CLUSTER_DIAL_H */
