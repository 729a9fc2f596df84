/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file grant.h
 * What one pin or alloc call was given. A grant belongs to a session and is concluded exactly once.
 * Control thread.
 */

#ifndef UC_SERVER_GRANT_H
#define UC_SERVER_GRANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/block.h>
#include <ucm/compiler.h>
#include <ucm/status.h>

#include "core/base/list.h"
#include "server/counters.h"
#include "server/coverage.h"
#include "server/id_map.h"
#include "server/namespace.h"
#include "server/scratch.h"

/** What an alloc found. */
enum uc_grant_role {
    UC_GRANT_NEWCOMER, /* a slot of its own, to be written */
    UC_GRANT_PRESENT,  /* committed already: held like a pin, never written */
    UC_GRANT_SHARED,   /* another grant writes it: nothing is held */
};

/** One key of a write grant. */
struct uc_grant_write {
    struct uc_coverage coverage;
    uint64_t generation;
    uint64_t announced_bytes; /* length of the block, as told by write_end */
    uint32_t slot;
    uint32_t open_brackets;
    enum uc_grant_role role;
};

struct uc_grant {
    struct uc_id_node node;  /* in the session's map, by the grant's id */
    struct uc_list brackets; /* open ones, struct uc_bracket */
    struct uc_block_id *ids;
    struct uc_grant_write *writes; /* NULL: a read grant */
    size_t count;
};

/** How a commit judges the keys. Borrows the bitmap. */
struct uc_grant_verdict {
    bool success;          /* of all keys, without bitmap */
    const uint8_t *bitmap; /* bit i = verdict of key i; NULL = none */
};

/** What the functions below work on. Borrowed. */
struct uc_grant_scope {
    struct uc_namespace *ns;
    struct uc_scratch *scratch;
    struct uc_counters *counters;
};

/**
 * Pin visible blocks; packed entries are left in scratch->entries.
 *
 * @retval UC_ERR_NOT_FOUND  one of them is not visible; nothing is pinned
 */
UC_MUST_CHECK enum uc_status uc_grant_pin(const struct uc_grant_scope *scope, uint64_t id,
        const struct uc_block_id *ids, size_t count, struct uc_grant **grant_out);

/**
 * Reserve slots, all or nothing; packed entries are left in scratch->entries.
 *
 * @param[in] ttl_ms  NULL = none
 * @retval UC_ERR_INVALID_PARAM  no key, or one twice
 * @retval UC_ERR_NO_SPACE
 */
UC_MUST_CHECK enum uc_status uc_grant_alloc(const struct uc_grant_scope *scope, uint64_t id,
        const struct uc_block_id *ids, size_t count, const uint64_t *ttl_ms,
        struct uc_grant **grant_out);

/**
 * Conclude a write grant: every hold is given back, and it is freed, whatever the answer. Its brackets
 * must have been detached (uc_bracket_detach_all()).
 *
 * @retval UC_ERR_INVALID_PARAM  a block that was to succeed has a hole or is still being written; those
 *                               were released
 */
enum uc_status uc_grant_conclude(const struct uc_grant_scope *scope, struct uc_grant *grant,
        const struct uc_grant_verdict *verdict);

/** Conclude a read grant. */
void uc_grant_unpin(const struct uc_grant_scope *scope, struct uc_grant *grant);

#endif /* UC_SERVER_GRANT_H */
