/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file attachment.h
 * A data connection: a worker of a session's group, its open brackets, and the epoch of its endpoints.
 * Control thread.
 */

#ifndef UC_SERVER_ATTACHMENT_H
#define UC_SERVER_ATTACHMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/compiler.h>
#include <ucm/status.h>

#include "core/base/list.h"
#include "net/rpc/messages.h"
#include "server/bracket.h"
#include "server/fabric_thread.h"
#include "server/id_map.h"

struct uc_peer;
struct uc_server;
struct uc_session;

enum {
    UC_BRACKETS_PER_ATTACHMENT = 65536,
    /* A call of a few bytes may open 65,536 keys, which cost memory, and time when they close. */
    UC_BRACKET_KEYS_PER_ATTACHMENT = 1 << 22,
};

struct uc_attachment {
    struct uc_list node; /* in the session's list */
    struct uc_server *server;
    struct uc_session *session; /* outlives its attachments */
    struct uc_peer *peer;       /* NULL once the connection is closed */
    uint64_t id;
    uint64_t epoch; /* of nonces given out from now on; a fence closes the epochs so far */
    struct uc_id_map brackets;
    size_t bracket_keys; /* of all open brackets */
    size_t fences_pending;
    bool ending;
    struct uc_fence end_fence;
};

UC_MUST_CHECK enum uc_status uc_attachment_open(struct uc_server *server, struct uc_peer *peer,
        struct uc_session *session, struct uc_attachment **attachment_out);

/** Fence its endpoints, then close its brackets, then free it. Idempotent; never fails. */
void uc_attachment_end(struct uc_server *server, struct uc_attachment *attachment, const char *why);

/** Draw a nonce for one endpoint more. */
UC_MUST_CHECK enum uc_status uc_attachment_expect(struct uc_server *server,
        struct uc_attachment *attachment, uint8_t nonce_out[UC_FABRIC_NONCE_BYTES]);

/**
 * A write of this bracket failed: fence all endpoints that exist, then close the bracket and, if
 * bracket->answer is set, answer with bracket->verdict. Endpoints of later nonces are not touched.
 */
void uc_attachment_fence_bracket(
        struct uc_server *server, struct uc_attachment *attachment, struct uc_bracket *bracket);

/** Take over a bracket that was opened for it. */
void uc_attachment_add_bracket(struct uc_attachment *attachment, struct uc_bracket *bracket);
/** No byte of it can arrive any more: end it. */
void uc_attachment_close_bracket(struct uc_attachment *attachment, struct uc_bracket *bracket);

/** @return the open bracket of that number, or NULL. */
struct uc_bracket *uc_attachment_bracket(const struct uc_attachment *attachment, uint64_t id);

#endif /* UC_SERVER_ATTACHMENT_H */
