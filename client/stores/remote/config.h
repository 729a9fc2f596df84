/* SPDX-License-Identifier: Apache-2.0 */

/** @file config.h Keys of the remote store. A plain value that owns its server list. */

#ifndef UC_REMOTE_CONFIG_H
#define UC_REMOTE_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include <ucm/assembler.h>
#include <ucm/compiler.h>
#include <ucm/dict.h>
#include <ucm/setup.h>
#include <ucm/status.h>

#include "client/cluster/server_list.h"
#include "core/config/fields.h"
#include "net/rpc/messages.h"

enum uc_remote_fabric {
    UC_REMOTE_FABRIC_AUTO, /* shm on the same host, else verbs if both sides have it, else tcp */
    UC_REMOTE_FABRIC_SHM,
    UC_REMOTE_FABRIC_TCP,
    UC_REMOTE_FABRIC_VERBS,
};

enum {
    UC_REMOTE_QUEUE_PAIRS_MAX = 4, /* every transport takes as many */
    UC_REMOTE_CPU_ANY = -1,
};

struct uc_remote_config {
    char name_space[UC_FIELD_STRING_BYTES];
    char credential[UC_FIELD_STRING_BYTES];
    char client_name[UC_FIELD_STRING_BYTES];
    char access_text[UC_FIELD_STRING_BYTES];
    char fabric_text[UC_FIELD_STRING_BYTES];
    char device[UC_FIELD_STRING_BYTES]; /* "" = by route */
    uint64_t queue_pairs;               /* of an endpoint; 0 = the transport's choice */
    char progress_text[UC_FIELD_STRING_BYTES];
    uint64_t spin_us;
    uint64_t bounce_bytes; /* 0 = no buffers */
    uint64_t timeout_ms;
    uint64_t rpc_timeout_ms;
    uint64_t connect_timeout_ms;
    uint64_t block_bytes; /* 0 = what the namespace has */
    bool checksum;

    /* Derived, or injected by the assembler. */
    enum uc_access access;
    enum uc_remote_fabric fabric;
    bool caller_progresses; /* no progress thread: get_finished and wait do its work */
    int progress_cpu;       /* UC_REMOTE_CPU_ANY = wherever */
    enum uc_role role;
    struct uc_server_list servers;
    char node_path[UC_FIELD_STRING_BYTES];
    const struct uc_prerequisite *prerequisite; /* borrowed; NULL = no hook */
};

/**
 * Read and check @p dict. Unknown keys only warn.
 *
 * @param[out] config_out  set on success only; released by uc_remote_config_fini()
 * @retval UC_ERR_INVALID_PARAM  the text names key, value and what is allowed
 * @retval UC_ERR_UNSUPPORTED    a lower tier
 */
UC_MUST_CHECK enum uc_status uc_remote_config_read(
        const struct uc_dict *dict, struct uc_remote_config *config_out);

void uc_remote_config_fini(struct uc_remote_config *config);

#endif /* UC_REMOTE_CONFIG_H */
