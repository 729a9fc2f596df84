/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file bracket.h
 * The span between write_begin and write_end: bytes may be arriving in its slots. Each newcomer's slot
 * counts one transfer, so that it is not reused before the bracket is closed, also
 * when the grant is concluded meanwhile. Control thread.
 */

#ifndef UC_SERVER_BRACKET_H
#define UC_SERVER_BRACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/compiler.h>
#include <ucm/status.h>

#include "core/base/list.h"
#include "net/rpc/messages.h"
#include "server/fabric_thread.h"
#include "server/grant.h"
#include "server/id_map.h"
#include "server/namespace.h"

struct uc_attachment;

struct uc_bracket {
    struct uc_id_node node;    /* in the attachment's map, by the client's number */
    struct uc_list grant_node; /* in the grant's list */
    struct uc_grant *grant;    /* NULL once that is concluded */
    struct uc_attachment *attachment;
    size_t first;
    size_t count;
    bool writable; /* its slots count as writable */
    bool fencing;  /* write_end(false) was heard; closed and answered after the fence */
    bool answer;   /* someone waits for the answer to write_end */
    uint32_t message_id;
    enum uc_status verdict;   /* of that answer */
    const char *verdict_text; /* static */
    struct uc_fence fence;
    size_t slot_count;
    uint32_t slots[]; /* of the newcomers */
};

/**
 * Open a bracket on keys [first, first + count) of a write grant, a range that is already checked.
 *
 * @retval UC_ERR_OUT_OF_MEMORY  nothing was opened
 */
UC_MUST_CHECK enum uc_status uc_bracket_open(struct uc_namespace *ns, struct uc_grant *grant,
        uint64_t id, size_t first, size_t count, struct uc_bracket **bracket_out);

/**
 * Remember what was written; untrusted ranges, one per key, are all checked first.
 *
 * @retval UC_ERR_INVALID_PARAM  wrong count, or a range that does not fit the block; nothing recorded
 * @retval UC_ERR_NO_SPACE       too many pieces; the block will count as a hole
 */
UC_MUST_CHECK enum uc_status uc_bracket_record(const struct uc_namespace *ns,
        struct uc_bracket *bracket, const uint8_t *ranges, size_t range_count);

/** Refuse writes of the served fabrics from now on. */
void uc_bracket_forbid_writes(struct uc_namespace *ns, struct uc_bracket *bracket);

/** No byte can arrive any more: end the transfers and free it. It is in no attachment's map. */
void uc_bracket_close(struct uc_namespace *ns, struct uc_bracket *bracket);

/** The grant is about to be concluded: its brackets stay, without it. */
void uc_bracket_detach_all(struct uc_namespace *ns, struct uc_grant *grant);

#endif /* UC_SERVER_BRACKET_H */
