/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file handlers.h
 * One function per method. Each answers exactly once, now or (write_end after a failure) later. They never
 * block. Control thread; uc_dispatch() has checked who is calling.
 */

#ifndef UC_SERVER_HANDLERS_H
#define UC_SERVER_HANDLERS_H

#include "server/peer.h"

void uc_handle_hello(struct uc_peer *peer, const struct uc_call *call);
void uc_handle_attach(struct uc_peer *peer, const struct uc_call *call);
void uc_handle_ping(struct uc_peer *peer, const struct uc_call *call);

void uc_handle_lookup(struct uc_peer *peer, const struct uc_call *call);
void uc_handle_pin(struct uc_peer *peer, const struct uc_call *call);
void uc_handle_unpin(struct uc_peer *peer, const struct uc_call *call);
void uc_handle_alloc(struct uc_peer *peer, const struct uc_call *call);
void uc_handle_commit(struct uc_peer *peer, const struct uc_call *call);
void uc_handle_touch(struct uc_peer *peer, const struct uc_call *call);

void uc_handle_write_begin(struct uc_peer *peer, const struct uc_call *call);
void uc_handle_write_end(struct uc_peer *peer, const struct uc_call *call);

void uc_handle_report(struct uc_peer *peer, const struct uc_call *call);
void uc_handle_stat(struct uc_peer *peer, const struct uc_call *call);
void uc_handle_debug_flip(struct uc_peer *peer, const struct uc_call *call);

#endif /* UC_SERVER_HANDLERS_H */
