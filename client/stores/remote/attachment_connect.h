/* SPDX-License-Identifier: Apache-2.0 */

/** @file attachment_connect.h How an attachment comes up; used by attachment.c only. Progress thread. */

#ifndef UC_REMOTE_ATTACHMENT_CONNECT_H
#define UC_REMOTE_ATTACHMENT_CONNECT_H

#include <stdbool.h>

#include <ucm/compiler.h>
#include <ucm/status.h>

#include "client/stores/remote/attachment.h"

/**
 * Start connecting and send attach; the answer is noted in attach_done. Tries the next address of the host
 * where one fails at once.
 *
 * @retval UC_ERR_UNHEALTHY  none could be tried
 */
UC_MUST_CHECK enum uc_status uc_attachment_dial(struct uc_attachment *attachment, uint64_t now_ms);

/**
 * Choose a transport and start connecting the fabric; the outcome is noted in fabric_noted.
 *
 * @retval UC_ERR_UNSUPPORTED  both sides have no transport in common; the text names them
 */
UC_MUST_CHECK enum uc_status uc_attachment_connect_fabric(struct uc_attachment *attachment);

/**
 * The offer that was chosen did not connect.
 *
 * @return whether the server has the same transport at another address, not tried yet; if not, all begin anew
 */
bool uc_attachment_skip_offer(struct uc_attachment *attachment);

/** Close the connection; its pending calls get no answer. */
void uc_attachment_drop_rpc(struct uc_attachment *attachment);

/** Fence and free the endpoint; every posted operation has ended afterwards. */
void uc_attachment_drop_endpoint(struct uc_attachment *attachment);

/** It has connected: remember the transport for describe, and log it where it is another than before. */
void uc_attachment_note_transport(const struct uc_attachment *attachment);

#endif /* UC_REMOTE_ATTACHMENT_CONNECT_H */
