/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file namespace.h
 * Index, memory and slots of one namespace. The control thread owns it; the fabric thread calls
 * uc_namespace_hold() and uc_namespace_release() only.
 */

#ifndef UC_SERVER_NAMESPACE_H
#define UC_SERVER_NAMESPACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/block.h>
#include <ucm/clock.h>
#include <ucm/compiler.h>
#include <ucm/status.h>

#include "core/cache/cache_buffer.h"
#include "net/fabric.h"
#include "net/rpc/messages.h"
#include "net/slot_footer.h"
#include "server/arena.h"
#include "server/config.h"

struct uc_namespace_slot {
    uint64_t length_bytes; /* of the committed block; control thread */
    /* Open brackets whose grant lives: > 0 allows writes. Written by the control thread. */
    atomic_uint writable;
};

struct uc_namespace {
    char name[UC_NAME_MAX + 1];
    struct uc_arena *arena;
    struct uc_cache_buffer *index;
    struct uc_namespace_slot *slots;
    struct uc_arena_layout layout;
    /* Counted by the fabric thread for the providers that pass it, relaxed. */
    atomic_uint_fast64_t read_bytes;
    atomic_uint_fast64_t written_bytes;
    atomic_uint footer_epoch; /* see uc_namespace_publish_footers() */
};

/** Blocks while memory is faulted in. Errors of arena.h and cache_buffer.h. */
UC_MUST_CHECK enum uc_status uc_namespace_create(const struct uc_namespace_config *config,
        const struct uc_clock *clock, struct uc_namespace **ns_out);
void uc_namespace_destroy(struct uc_namespace *ns);

/** Write the server part of a slot's footer; @p fresh also clears the writer part. */
void uc_namespace_put_footer(struct uc_namespace *ns, uint32_t slot, enum uc_footer_state state,
        uint64_t generation, const struct uc_block_id *key, bool fresh);

/**
 * Before a block becomes visible: where several writers filled it, the footer may be that of one who knew
 * only a part. Then it gets the length announced by all, without checksum. A footer that nobody wrote
 * stays that way.
 */
void uc_namespace_settle_footer(struct uc_namespace *ns, uint32_t slot, uint64_t length_bytes);

/** Order the footers written so far before whatever a peer does after our answer. */
void uc_namespace_publish_footers(struct uc_namespace *ns);

/** Fill region, offset and generation of an entry. */
struct uc_entry uc_namespace_entry(
        const struct uc_namespace *ns, uint32_t slot, uint64_t generation, uint64_t length_bytes);

/** Allow or forbid writes for one bracket more or less. Control thread. */
void uc_namespace_allow_writes(struct uc_namespace *ns, uint32_t slot);
void uc_namespace_forbid_writes(struct uc_namespace *ns, uint32_t slot);

/**
 * Hold the slot of a range that a peer wants to access. Fabric thread; data path.
 *
 * @retval UC_ERR_INVALID_PARAM      not inside one slot, no generation, or a write that is not data or
 *                                   writer footer of a slot with an open bracket
 * @retval UC_ERR_PERMISSION_DENIED  write on a read-only endpoint
 * @retval UC_ERR_NOT_FOUND          the slot has another generation
 */
enum uc_status uc_namespace_hold(struct uc_namespace *ns, enum uc_fabric_access access,
        uint32_t region_idx, uint64_t offset_bytes, uint64_t length_bytes, uint64_t generation,
        enum uc_fabric_opcode opcode);
void uc_namespace_release(struct uc_namespace *ns, uint32_t region_idx, uint64_t offset_bytes);

/** @return whether the committed block of that slot is damaged: footer, length or checksum. */
bool uc_namespace_is_damaged(const struct uc_namespace *ns, uint32_t slot, uint64_t generation,
        const struct uc_block_id *key);

#endif /* UC_SERVER_NAMESPACE_H */
