/* SPDX-License-Identifier: Apache-2.0 */

/** @file describe.h What the remote store says about itself. Any thread. */

#ifndef UC_REMOTE_DESCRIBE_H
#define UC_REMOTE_DESCRIBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/compiler.h>
#include <ucm/dict.h>
#include <ucm/status.h>

#include "client/stores/remote/config.h"
#include "client/stores/remote/data_plane.h"
#include "net/rpc/messages.h"

/** A snapshot; borrows the configuration. */
struct uc_remote_facts {
    const struct uc_remote_config *config;
    struct uc_hello_reply hello;
    struct uc_plane_counters counters;
    const char *fabric;                                  /* NULL = none yet */
    bool (*reaches)(const void *context, size_t server); /* whether a server can be used now */
    const void *reaches_context;
    uint64_t session_count; /* of all servers, since setup */
    bool connected;
    bool healthy;
};

/** Add the keys to @p description. @retval UC_ERR_OUT_OF_MEMORY */
UC_MUST_CHECK enum uc_status uc_remote_describe(
        const struct uc_remote_facts *facts, struct uc_dict *description);

#endif /* UC_REMOTE_DESCRIBE_H */
