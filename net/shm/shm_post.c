/* SPDX-License-Identifier: Apache-2.0 */

#include <assert.h>

#include "net/shm/shm_object.h"

static_assert(offsetof(struct uc_fabric_region, span) == 0, "for uc_fabric_pieces_check()");

static void
enqueue(struct uc_shm_queue *queue, struct uc_fabric_op *op)
{
    op->next = NULL;
    if (queue->first == NULL) {
        queue->first = op;
    } else {
        queue->last->next = op;
    }
    queue->last = op;
}

/* Book an operation that was found good. */
static void
take_op(struct uc_shm_client *client, struct uc_fabric_op *op)
{
    op->provider_data[1] = 0;
    op->provider_data[2] = 0;
    op->provider_data[3] = client->posted_flushes;
    if (op->opcode == UC_FABRIC_READ) {
        if (client->reads.first == NULL) {
            client->read_cursor = (struct uc_shm_cursor){.piece = op->pieces};
        }
        enqueue(&client->reads, op);
        return;
    }

    client->posted_flushes += op->opcode == UC_FABRIC_FLUSH;
    enqueue(&client->writes, op);
    if (client->unsent == NULL) {
        client->unsent = op;
        client->write_cursor = (struct uc_shm_cursor){.piece = op->pieces};
    }
}

enum uc_status
uc_shm_post(struct uc_fabric_endpoint *endpoint, struct uc_fabric_op *list)
{
    struct uc_shm_client *client = (struct uc_shm_client *)endpoint;

    if (!endpoint->is_initiator) {
        return uc_error(UC_ERR_INVALID_PARAM, "fabric post: only the initiator posts");
    }
    if (endpoint->state == UC_SHM_CLOSED) {
        return uc_error(UC_ERR_UNHEALTHY, "fabric post: the connection is gone; connect again");
    }

    /* All or nothing: everything that can be refused is looked at before anything changes. */
    for (struct uc_fabric_op *op = list; op != NULL; op = op->next) {
        enum uc_status status = uc_fabric_op_check(
                op, client->regions, client->region_count, &uc_shm_caps, &op->provider_data[0]);

        if (status == UC_OK) {
            status = uc_fabric_pieces_check(op, client->base.domain);
        }
        if (status != UC_OK) {
            return status;
        }
    }
    if (list == NULL) {
        return UC_OK;
    }

    while (list != NULL) {
        struct uc_fabric_op *next = list->next;

        take_op(client, list);
        list = next;
    }
    uc_source_wake(&endpoint->source);
    return UC_OK;
}

void
uc_shm_queue_done(struct uc_shm_queue *queue, enum uc_status status, size_t *budget)
{
    struct uc_fabric_op *op = queue->first;

    queue->first = op->next;
    *budget -= 1;
    op->on_done(op, status);
}

void
uc_shm_cursor_advance(struct uc_shm_cursor *cursor, uint64_t bytes)
{
    assert(bytes <= cursor->piece->length_bytes - cursor->piece_done_bytes);
    cursor->done_bytes += bytes;
    cursor->piece_done_bytes += bytes;
    if (cursor->piece_done_bytes == cursor->piece->length_bytes) {
        cursor->piece++;
        cursor->piece_done_bytes = 0;
    }
}
