/* SPDX-License-Identifier: Apache-2.0 */

/* Calls that wait for their answer: slots, deadlines, and the memory of a connection that idles. */

#include <stdlib.h>
#include <string.h>

#include "net/rpc/connection_private.h"

static bool
grow(struct uc_rpc_connection *connection)
{
    uint32_t old = connection->pending_capacity;
    uint32_t capacity = old == 0 ? UC_RPC_PENDING_MIN : 2 * old;
    struct uc_rpc_pending *pending;

    if (capacity > UC_RPC_PENDING_MAX) {
        return false;
    }
    pending = realloc(connection->pending, capacity * sizeof(*pending));
    if (pending == NULL) {
        return false;
    }

    memset(pending + old, 0, (capacity - old) * sizeof(*pending));
    for (uint32_t idx = old; idx < capacity; idx++) {
        pending[idx].next_free = idx + 1;
    }
    connection->pending = pending;
    connection->pending_capacity = capacity;
    connection->pending_free = old;
    return true;
}

static uint32_t
slot_id(const struct uc_rpc_connection *connection, uint32_t idx)
{
    return (uint32_t)connection->pending[idx].sequence << 16 | idx;
}

enum uc_status
uc_rpc_pending_reserve(struct uc_rpc_connection *connection, uint32_t *message_id_out)
{
    if (connection->pending_free == connection->pending_capacity && !grow(connection)) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "rpc: no room for another call: %u are pending",
                connection->pending_count);
    }

    *message_id_out = slot_id(connection, connection->pending_free);
    return UC_OK;
}

void
uc_rpc_pending_add(struct uc_rpc_connection *connection, uint64_t deadline_ms,
        uc_rpc_reply_fn on_reply, void *context)
{
    struct uc_rpc_pending *slot = &connection->pending[connection->pending_free];

    connection->pending_free = slot->next_free;
    slot->on_reply = on_reply;
    slot->context = context;
    slot->deadline_ms = deadline_ms;
    connection->pending_count++;
    if (deadline_ms < connection->earliest_ms) {
        connection->earliest_ms = deadline_ms;
    }
}

/* Give the slot back and return what it held. */
static struct uc_rpc_pending
take(struct uc_rpc_connection *connection, uint32_t idx)
{
    struct uc_rpc_pending *slot = &connection->pending[idx];
    struct uc_rpc_pending taken = *slot;

    slot->on_reply = NULL;
    slot->sequence++;
    slot->next_free = connection->pending_free;
    connection->pending_free = idx;
    connection->pending_count--;
    if (connection->pending_count == 0) {
        connection->earliest_ms = UC_TIME_NEVER_MS;
    }
    return taken;
}

bool
uc_rpc_pending_take(
        struct uc_rpc_connection *connection, uint32_t message_id, struct uc_rpc_pending *call_out)
{
    uint32_t idx = message_id & 0xffffu;

    if (idx >= connection->pending_capacity || connection->pending[idx].on_reply == NULL ||
            slot_id(connection, idx) != message_id) {
        return false;
    }

    *call_out = take(connection, idx);
    return true;
}

void
uc_rpc_pending_fail_all(struct uc_rpc_connection *connection)
{
    /* A callback cannot add calls, since the stream is dead; the array stays where it is. */
    for (uint32_t idx = 0; idx < connection->pending_capacity; idx++) {
        struct uc_rpc_pending call;

        if (connection->destroyed) {
            return;
        }
        if (connection->pending[idx].on_reply == NULL) {
            continue;
        }
        call = take(connection, idx);
        (void)uc_error(UC_ERR_UNHEALTHY, "rpc: the connection was lost before the answer came");
        call.on_reply(call.context, UC_ERR_UNHEALTHY, (struct uc_rpc_view){0});
    }
}

/* Time out what is due and find the next deadline; callbacks may start and end calls meanwhile. */
static void
expire_pending(struct uc_rpc_connection *connection, uint64_t now_ms)
{
    uint64_t earliest_ms = UC_TIME_NEVER_MS;

    /* Calls that callbacks start from here on lower it again. */
    connection->earliest_ms = UC_TIME_NEVER_MS;
    for (uint32_t idx = 0; idx < connection->pending_capacity && !connection->destroyed; idx++) {
        struct uc_rpc_pending call = connection->pending[idx];

        if (call.on_reply == NULL) {
            continue;
        }
        if (call.deadline_ms > now_ms) {
            earliest_ms = call.deadline_ms < earliest_ms ? call.deadline_ms : earliest_ms;
            continue;
        }
        call = take(connection, idx);
        (void)uc_error(UC_ERR_TIMEOUT, "rpc: no answer in time");
        call.on_reply(call.context, UC_ERR_TIMEOUT, (struct uc_rpc_view){0});
    }
    if (earliest_ms < connection->earliest_ms) {
        connection->earliest_ms = earliest_ms;
    }
}

/* Give memory back that a burst needed. @return when to look again */
static uint64_t
shrink_when_idle(struct uc_rpc_connection *connection, uint64_t now_ms)
{
    struct uc_rpc_queue *queues[] = {&connection->receive, &connection->send};
    uint64_t look_ms = UC_TIME_NEVER_MS;

    if (connection->active) {
        connection->active = false;
        connection->idle_since_ms = now_ms;
    }
    for (size_t idx = 0; idx < sizeof(queues) / sizeof(queues[0]); idx++) {
        struct uc_rpc_queue *queue = queues[idx];
        uint64_t due_ms = uc_time_add_ms(connection->idle_since_ms, UC_RPC_SHRINK_AFTER_MS);
        uint8_t *bytes;

        if (queue->capacity <= UC_RPC_QUEUE_BYTES_MIN || queue->head != queue->tail) {
            continue;
        }
        if (now_ms < due_ms) {
            look_ms = due_ms;
            continue;
        }
        bytes = realloc(queue->bytes, UC_RPC_QUEUE_BYTES_MIN);
        if (bytes != NULL) {
            *queue = (struct uc_rpc_queue){.bytes = bytes, .capacity = UC_RPC_QUEUE_BYTES_MIN};
        }
    }
    return look_ms;
}

uint64_t
uc_rpc_connection_expire(struct uc_rpc_connection *connection, uint64_t now_ms)
{
    uint64_t look_ms = UC_TIME_NEVER_MS;

    uc_rpc_connection_enter(connection);
    if (now_ms >= connection->earliest_ms) {
        expire_pending(connection, now_ms);
    }
    if (!connection->destroyed) {
        if (!connection->in_progress && !connection->keep_input) {
            look_ms = shrink_when_idle(connection, now_ms);
        }
        if (connection->earliest_ms < look_ms) {
            look_ms = connection->earliest_ms;
        }
    }
    uc_rpc_connection_leave(connection);
    return look_ms;
}
