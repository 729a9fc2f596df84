/* SPDX-License-Identifier: Apache-2.0 */

/** @file config.h Keys of the cache store. A plain value that borrows the policy's dictionary. */

#ifndef UC_CACHE_STORE_CONFIG_H
#define UC_CACHE_STORE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/assembler.h>
#include <ucm/compiler.h>
#include <ucm/dict.h>
#include <ucm/setup.h>
#include <ucm/status.h>
#include <ucm/store.h>

#include "core/config/fields.h"

enum {
    UC_CACHE_DOMAIN_MAX = 64 /* characters */
};

struct uc_cache_store_config {
    uint64_t block_bytes;
    uint64_t capacity_bytes;
    uint64_t capacity_blocks;
    uint64_t timeout_ms;
    uint64_t threads;
    char policy[UC_FIELD_STRING_BYTES];
    char domain[UC_FIELD_STRING_BYTES]; /* "" = private to this process */
    char write_text[UC_FIELD_STRING_BYTES];
    bool checksum;
    bool write_through;

    /* Injected by the assembler. */
    enum uc_role role;
    char node_path[UC_FIELD_STRING_BYTES];
    const struct uc_dict *policy_config; /* borrowed during setup; may be NULL */
    const struct uc_prerequisite *prerequisite;
    struct uc_store *lower; /* NULL at the bottom */
    size_t tiers_below;
};

/**
 * Read and check @p dict. Unknown keys only warn.
 *
 * @retval UC_ERR_INVALID_PARAM  the text names key, value and what is allowed
 * @retval UC_ERR_UNSUPPORTED    a combination that is not built
 */
UC_MUST_CHECK enum uc_status uc_cache_store_config_read(
        const struct uc_dict *dict, struct uc_cache_store_config *config_out);

#endif /* UC_CACHE_STORE_CONFIG_H */
