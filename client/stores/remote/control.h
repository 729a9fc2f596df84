/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file control.h
 * The scheduler side of the remote store: lookups, grants, and the tokens made of them. One round trip per
 * call, on the caller's thread.
 *
 * Threads: one (the store's control thread), but for is_usable and info, which any thread may ask for.
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

/** Fill what a session needs to know; borrows from @p config. */
struct uc_session_config uc_control_session_config(const struct uc_remote_config *config);

/** Connect and say hello; see uc_session_create(). @p config is borrowed for the control's life. */
UC_MUST_CHECK enum uc_status uc_control_create(
        const struct uc_remote_config *config, struct uc_control **control_out);

/** Ends the session, and with it whatever it holds. NULL is allowed. */
void uc_control_destroy(struct uc_control *control);

bool uc_control_is_usable(const struct uc_control *control);
void uc_control_info(struct uc_control *control, struct uc_session_info *info_out);

/** All absent where the session cannot be used. */
UC_MUST_CHECK enum uc_status uc_control_lookup(
        struct uc_control *control, const struct uc_block_id *ids, size_t count, uint8_t *hits_out);

/** One-way; losses are ignored. */
void uc_control_touch(struct uc_control *control, const struct uc_block_id *ids, size_t count,
        const struct uc_request_context *context);

/** @p context is of alloc and may be NULL. */
UC_MUST_CHECK enum uc_status uc_control_pin(struct uc_control *control,
        const struct uc_block_id *ids, size_t count, struct uc_token **token_out);
UC_MUST_CHECK enum uc_status uc_control_alloc(struct uc_control *control,
        const struct uc_block_id *ids, size_t count, const struct uc_request_context *context,
        struct uc_token **token_out);

/** idempotent, never fails. */
void uc_control_unpin(struct uc_control *control, const struct uc_token *token);

/**
 * The grant is concluded whatever the answer.
 *
 * @retval UC_ERR_NOT_FOUND  no such grant is outstanding, or its session has ended
 */
UC_MUST_CHECK enum uc_status uc_control_commit(struct uc_control *control,
        const struct uc_token *token, const uint8_t *mask, bool success);

#endif /* UC_REMOTE_CONTROL_H */
