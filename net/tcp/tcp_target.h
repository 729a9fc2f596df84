/* SPDX-License-Identifier: Apache-2.0 */

/** @file tcp_target.h What the files of the target's side call in each other. The polling thread's. */

#ifndef UC_NET_TCP_TARGET_H
#define UC_NET_TCP_TARGET_H

#include "net/tcp/tcp_object.h"

/* tcp_listener.c */

enum uc_status uc_tcp_listen(struct uc_fabric *fabric, const struct uc_fabric_listen *params,
        struct uc_fabric_listener **listener_out);
uint16_t uc_tcp_listener_port(const struct uc_fabric_listener *listener);
void uc_tcp_listener_close(struct uc_fabric_listener *listener);

/* tcp_admission.c */

/** Reading the hello and deciding; then serving. */
extern const struct uc_source_ops uc_tcp_target_ops;

/**
 * End a stream because of its peer: alone if it was not admitted, else with its group, which tells
 * that the peer is gone. Everything is buried.
 */
void uc_tcp_target_drop(struct uc_tcp_target *target);

/** Close every stream and end every access, without telling anybody. Idempotent. */
void uc_tcp_group_close(struct uc_tcp_group *group);

/** After close: give the group and its streams back. */
void uc_tcp_group_bury(struct uc_tcp_group *group);

/* tcp_service.c */

/** Serve while there is something to do. @return true if bytes or budget were used up */
bool uc_tcp_target_serve(struct uc_tcp_target *target, size_t *budget);

/** End every access; the socket is closed. */
void uc_tcp_target_forget(struct uc_tcp_target *target);

/* tcp_access.c */

/**
 * May the peer do this? On Ok the slot is held, but for a FLUSH, and *data_out is where the bytes are.
 * The region index, offset and length are the peer's.
 */
enum uc_status uc_tcp_access_begin(
        struct uc_tcp_target *target, const struct uc_tcp_request *request, uint8_t **data_out);

/** End of an access that began with Ok and was no FLUSH. */
void uc_tcp_access_end(struct uc_tcp_target *target, const struct uc_tcp_request *request);

/* tcp_reply.c */

/** Append to the ring, which has room. */
void uc_tcp_reply_add(struct uc_tcp_target *target, const struct uc_tcp_reply *reply);

/** One send of replies from the first on, until about *left_bytes are on their way. */
enum uc_tcp_io uc_tcp_reply_send(struct uc_tcp_target *target, size_t *left_bytes, size_t *budget);

/** Throw all away. */
void uc_tcp_reply_drop_all(struct uc_tcp_target *target);

#endif /* UC_NET_TCP_TARGET_H */
