/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file control.h
 * The scheduler side of the remote store: lookups, grants, and the tokens made of them. A call goes to all
 * servers that hold one of its keys at once, on the caller's thread: one round trip whatever their number,
 * rpc_timeout at the longest. A server that is out of reach is not waited for.
 *
 * Threads: one (the store's control thread), but for is_usable, reaches and info, which any thread may ask
 * for.
 */

#ifndef UC_REMOTE_CONTROL_H
#define UC_REMOTE_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/block.h>
#include <ucm/compiler.h>
#include <ucm/request.h>
#include <ucm/status.h>
#include <ucm/token.h>

#include "client/cluster/session.h"
#include "client/stores/remote/config.h"

struct uc_control;

/** Fill what sessions need to know, but for the server; borrows from @p config. */
struct uc_session_config uc_control_session_config(const struct uc_remote_config *config);

/**
 * Connect and say hello; see uc_server_set_open().
 *
 * @param[in]  config     borrowed for the control's life
 * @param[out] hello_out  of the first server that answered
 */
UC_MUST_CHECK enum uc_status uc_control_create(const struct uc_remote_config *config,
        struct uc_control **control_out, struct uc_hello_reply *hello_out);

/** Ends the sessions, and with them whatever they hold. NULL is allowed. */
void uc_control_destroy(struct uc_control *control);

/** @return whether one server at least can be called. */
bool uc_control_is_usable(const struct uc_control *control);
/** @return whether this server can be called. */
bool uc_control_reaches(const struct uc_control *control, size_t server);
void uc_control_info(struct uc_control *control, size_t server, struct uc_session_info *info_out);

/** Absent what lies on servers that do not answer. */
UC_MUST_CHECK enum uc_status uc_control_lookup(
        struct uc_control *control, const struct uc_block_id *ids, size_t count, uint8_t *hits_out);

/** One-way; losses are ignored. */
void uc_control_touch(struct uc_control *control, const struct uc_block_id *ids, size_t count,
        const struct uc_request_context *context);

/**
 * @p context is of alloc and may be NULL. All servers that are called grant, or none: what the
 * others have granted is given back.
 *
 * Of a server known to be out of reach, a pin answers NotFound, since its blocks are misses as in a lookup;
 * an alloc leaves its blocks out: their dump fails with Unhealthy, the others are stored. Both answer
 * Unhealthy if no server is left to call.
 *
 * The failure told is what a server answered (InvalidParam before PermissionDenied, NoSpace, NotFound, and
 * others); only where none refused, that one did not answer: NotFound of a pin, Unhealthy of an alloc.
 */
UC_MUST_CHECK enum uc_status uc_control_pin(struct uc_control *control,
        const struct uc_block_id *ids, size_t count, struct uc_token **token_out);
UC_MUST_CHECK enum uc_status uc_control_alloc(struct uc_control *control,
        const struct uc_block_id *ids, size_t count, const struct uc_request_context *context,
        struct uc_token **token_out);

/** idempotent, never fails. */
void uc_control_unpin(struct uc_control *control, const struct uc_token *token);

/**
 * Every grant of the token is concluded whatever the answer.
 *
 * @retval UC_ERR_NOT_FOUND  a server has no such grant outstanding, does not answer, its session has ended, or
 *                           it was left out by alloc and the verdict is to show its blocks: they stay
 *                           invisible; those of the others are as the verdict says
 */
UC_MUST_CHECK enum uc_status uc_control_commit(struct uc_control *control,
        const struct uc_token *token, const uint8_t *mask, bool success);

#endif /* UC_REMOTE_CONTROL_H */
