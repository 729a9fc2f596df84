/* SPDX-License-Identifier: Apache-2.0 */

/** @file tcp_client.h What the files of the initiator's side call in each other. The polling thread's. */

#ifndef UC_NET_TCP_CLIENT_H
#define UC_NET_TCP_CLIENT_H

#include "net/tcp/tcp_object.h"

/* tcp_client.c */

enum uc_status uc_tcp_connect(struct uc_fabric_domain *domain,
        const struct uc_fabric_connect *params, struct uc_fabric_endpoint **endpoint_out);

/** Close, flush every operation, tell nobody else. */
void uc_tcp_client_close(struct uc_tcp_client *client);

/** The connection failed: close, flush, tell the owner. The caller has set the error text. */
void uc_tcp_client_fail(struct uc_tcp_client *client, enum uc_status status);

/* tcp_dial.c */

/** Start on the address that is next. @return UC_OK when an attempt is under way */
UC_MUST_CHECK enum uc_status uc_tcp_lane_dial(struct uc_tcp_lane *lane);

/** Connecting, greeting, transferring. */
extern const struct uc_source_ops uc_tcp_lane_ops;

/* tcp_transfer.c */

/** Send and receive. @return true if bytes or budget were used up */
bool uc_tcp_lane_transfer(struct uc_tcp_lane *lane, size_t *budget);

/* tcp_post.c */

enum uc_status uc_tcp_post(struct uc_fabric_endpoint *endpoint, struct uc_fabric_op *list);

/** Run completions, in the order posted, until one is still pending or the budget is used up. */
void uc_tcp_client_deliver(struct uc_tcp_client *client, size_t *budget);

/** The lane's first operation has ended: deliver what that frees. May run callbacks. */
void uc_tcp_lane_finish(struct uc_tcp_lane *lane, enum uc_status status, size_t *budget);

/** Tell on_bytes of the client's first operation what has arrived of it. */
void uc_tcp_client_feed(struct uc_tcp_client *client);

/** Move past bytes of the operation. */
void uc_tcp_cursor_advance(struct uc_tcp_cursor *cursor, uint64_t bytes);

/* What provider_data of an operation holds. */

static inline uint64_t
uc_tcp_op_sequence(const struct uc_fabric_op *op)
{
    return op->provider_data[0];
}

static inline uint64_t
uc_tcp_op_length(const struct uc_fabric_op *op)
{
    return op->provider_data[1];
}

/** @return the operation behind it in its lane. */
static inline struct uc_fabric_op *
uc_tcp_op_following(const struct uc_fabric_op *op)
{
    return (struct uc_fabric_op *)(uintptr_t)op->provider_data[2];
}

#endif /* UC_NET_TCP_CLIENT_H */
