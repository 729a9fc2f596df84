/* SPDX-License-Identifier: Apache-2.0 */

/*
 * An operation is in two lists: of its client, in the order posted and completed, and of the lane that
 * carries it. Lanes answer in whatever order they are served; completions wait for those before them.
 * That makes a FLUSH follow all WRITEs, whichever stream they took: the target answers a WRITE when its
 * bytes are in place.
 */

#include <assert.h>

#include "net/tcp/tcp_client.h"

static_assert(offsetof(struct uc_fabric_region, span) == 0, "for uc_fabric_pieces_check()");

/* provider_data[3]: while the operation is under way this and its lane's number, then its status. */
#define PENDING (UINT64_C(1) << 32)

static void
set_pending(struct uc_fabric_op *op, size_t lane_idx)
{
    op->provider_data[3] = PENDING | lane_idx;
}

static bool
is_pending(const struct uc_fabric_op *op)
{
    return (op->provider_data[3] & PENDING) != 0;
}

static void
set_status(struct uc_fabric_op *op, enum uc_status status)
{
    op->provider_data[3] = (uint32_t)status;
}

static enum uc_status
status_of(const struct uc_fabric_op *op)
{
    return (enum uc_status)(int32_t)(uint32_t)op->provider_data[3];
}

/* All or nothing: everything that can be refused is looked at before anything changes. */
static enum uc_status
check_list(const struct uc_tcp_client *client, struct uc_fabric_op *list)
{
    for (struct uc_fabric_op *op = list; op != NULL; op = op->next) {
        enum uc_status status = uc_fabric_op_check(
                op, client->regions, client->region_count, &uc_tcp_caps, &op->provider_data[1]);

        if (status == UC_OK) {
            status = uc_fabric_pieces_check(op, client->base.domain);
        }
        if (status != UC_OK) {
            return status;
        }
    }
    return UC_OK;
}

static struct uc_tcp_lane *
least_loaded(struct uc_tcp_client *client)
{
    struct uc_tcp_lane *best = &client->lanes[0];

    for (uint32_t idx = 1; idx < client->lane_count; idx++) {
        if (client->lanes[idx].pending_bytes < best->pending_bytes) {
            best = &client->lanes[idx];
        }
    }
    return best;
}

static void
lane_add(struct uc_tcp_lane *lane, struct uc_fabric_op *op)
{
    op->provider_data[2] = 0;
    set_pending(op, (size_t)(lane - lane->client->lanes));
    if (lane->first == NULL) {
        lane->first = op;
    } else {
        lane->last->provider_data[2] = (uintptr_t)op;
    }
    lane->last = op;
    if (lane->unsent == NULL) {
        lane->unsent = op;
        lane->sent_bytes = 0;
        lane->source_cursor = (struct uc_tcp_cursor){.piece = op->pieces};
    }
    lane->pending_bytes += UC_TCP_REQUEST_BYTES + uc_tcp_op_length(op);
    uc_source_wake(&lane->stream.source.base);
}

static void
become_first(struct uc_tcp_client *client, struct uc_fabric_op *op)
{
    client->first = op;
    client->fed_bytes = 0;
    client->feed_cursor = (struct uc_tcp_cursor){.piece = op == NULL ? NULL : op->pieces};
}

enum uc_status
uc_tcp_post(struct uc_fabric_endpoint *endpoint, struct uc_fabric_op *list)
{
    struct uc_tcp_client *client = (struct uc_tcp_client *)endpoint;
    enum uc_status status;

    if (!endpoint->is_initiator) {
        return uc_error(UC_ERR_INVALID_PARAM, "fabric post: only the initiator posts");
    }
    if (endpoint->state == UC_TCP_CLOSED) {
        return uc_error(UC_ERR_UNHEALTHY, "fabric post: the connection is gone; connect again");
    }

    status = check_list(client, list);
    if (status != UC_OK || list == NULL) {
        return status;
    }

    if (client->first == NULL) {
        become_first(client, list);
    } else {
        client->last->next = list;
    }
    for (struct uc_fabric_op *op = list; op != NULL; op = op->next) {
        op->provider_data[0] = client->next_sequence++;
        if (op->opcode == UC_FABRIC_FLUSH) {
            op->provider_data[1] = 0;
        }
        lane_add(least_loaded(client), op);
        client->last = op;
    }
    return UC_OK;
}

/* Bytes of the client's first operation that are in place. */
static uint64_t
arrived_bytes(const struct uc_tcp_client *client)
{
    const struct uc_fabric_op *op = client->first;
    const struct uc_tcp_lane *lane;

    if (!is_pending(op)) {
        return status_of(op) == UC_OK ? uc_tcp_op_length(op) : 0;
    }

    lane = &client->lanes[op->provider_data[3] & ~PENDING];
    return lane->first == op && lane->rx_left_bytes > 0 ? uc_tcp_op_length(op) - lane->rx_left_bytes
                                                        : 0;
}

void
uc_tcp_client_feed(struct uc_tcp_client *client)
{
    struct uc_fabric_op *op = client->first;
    struct uc_tcp_cursor *cursor = &client->feed_cursor;
    uint64_t arrived;

    if (op == NULL || op->on_bytes == NULL || op->opcode != UC_FABRIC_READ) {
        return;
    }

    arrived = arrived_bytes(client);
    while (client->fed_bytes < arrived) {
        uint64_t run = cursor->piece->length_bytes - cursor->done_bytes;

        run = run < arrived - client->fed_bytes ? run : arrived - client->fed_bytes;
        run = run < UC_TCP_RUN_BYTES ? run : UC_TCP_RUN_BYTES;
        op->on_bytes(op, (const uint8_t *)cursor->piece->address + cursor->done_bytes, (size_t)run);
        uc_tcp_cursor_advance(cursor, run);
        client->fed_bytes += run;
    }
}

void
uc_tcp_client_deliver(struct uc_tcp_client *client, size_t *budget)
{
    while (client->first != NULL && !is_pending(client->first)) {
        struct uc_fabric_op *op = client->first;
        enum uc_status status = status_of(op);

        if (*budget == 0) {
            uc_source_wake(&client->lanes[0].stream.source.base);
            return;
        }
        uc_tcp_client_feed(client);
        become_first(client, op->next);
        *budget -= 1;
        op->on_done(op, status);
    }
    uc_tcp_client_feed(client); /* the new first one may have begun on another lane */
}

void
uc_tcp_lane_finish(struct uc_tcp_lane *lane, enum uc_status status, size_t *budget)
{
    struct uc_fabric_op *op = lane->first;

    assert(op != NULL && op != lane->unsent);
    lane->first = uc_tcp_op_following(op);
    lane->pending_bytes -= UC_TCP_REQUEST_BYTES + uc_tcp_op_length(op);
    set_status(op, status);
    uc_tcp_client_deliver(lane->client, budget);
}

void
uc_tcp_cursor_advance(struct uc_tcp_cursor *cursor, uint64_t bytes)
{
    cursor->done_bytes += bytes;
    while (cursor->done_bytes > 0 && cursor->done_bytes >= cursor->piece->length_bytes) {
        cursor->done_bytes -= cursor->piece->length_bytes;
        cursor->piece++;
    }
}
