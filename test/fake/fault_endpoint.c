/* SPDX-License-Identifier: Apache-2.0 */

/* Endpoints of initiators and their operations: where faults happen. */

#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "test/fake/fault_fabric_internal.h"

enum {
    LATE_BYTE = 0xee, /* what a late packet leaves in a buffer */
};

struct uc_fabric_endpoint *
fault_endpoint_create(struct uc_fabric *fabric)
{
    struct uc_fabric_endpoint *endpoint = calloc(1, sizeof(*endpoint));

    ck_assert_ptr_nonnull(endpoint);
    endpoint->fabric = fabric;
    uc_list_init(&endpoint->ops);
    uc_list_add(&fabric->endpoints, &endpoint->link);
    fault_count(&(struct uc_fault_counts){.endpoints = 1});
    return endpoint;
}

void
fault_endpoint_free(struct uc_fabric_endpoint *endpoint)
{
    ck_assert(uc_list_is_empty(&endpoint->ops));
    uc_list_remove(&endpoint->link);
    fault_count(&(struct uc_fault_counts){.endpoints = UINT32_MAX}); /* one less */
    free(endpoint->peer);
    free(endpoint);
}

static void
complete(struct fault_op *fault_op, enum uc_status status)
{
    struct uc_fabric_op *op = fault_op->op;

    uc_list_remove(&fault_op->link);
    fault_count(&(struct uc_fault_counts){
            .completed = 1,
            .in_flight = UINT32_MAX, /* one less */
            .held = fault_op->is_held ? UINT32_MAX : 0,
    });
    free(fault_op);
    op->on_done(op, status);
    fault_note_completion();
}

/* A byte changes on the way: before anybody looks at it, and once. */
static void
corrupt(struct fault_op *fault_op)
{
    if (fault_op->is_corrupt) {
        fault_op->is_corrupt = false;
        *(uint8_t *)fault_op->pieces[0].address ^= 1;
    }
}

/* The provider has completed an operation. */
static void
on_inner_done(struct uc_fabric_op *inner, enum uc_status status)
{
    struct fault_op *fault_op = (struct fault_op *)(void *)inner;

    corrupt(fault_op);
    if (!fault_op->hold_after || fault_op->endpoint->is_closed) {
        complete(fault_op, status);
        return;
    }

    fault_op->is_completed = true;
    fault_op->is_held = true;
    fault_op->status = status;
    fault_count(&(struct uc_fault_counts){.held = 1});
}

static void
on_inner_bytes(struct uc_fabric_op *inner, const void *bytes, size_t length_bytes)
{
    struct fault_op *fault_op = (struct fault_op *)(void *)inner;
    struct uc_fabric_op *op = fault_op->op;

    corrupt(fault_op);
    op->on_bytes(op, bytes, length_bytes);
}

/* End what the provider does not know, or has done with. Late packets may arrive until then. */
static void
flush(struct uc_fabric_endpoint *endpoint)
{
    struct uc_list *node;

    while ((node = uc_list_take(&endpoint->ops)) != NULL) {
        struct fault_op *fault_op = uc_list_entry(node, struct fault_op, link);
        const struct uc_fabric_op *op = fault_op->op;

        ck_assert(fault_op->is_waiting || fault_op->is_forced || fault_op->is_completed);
        for (size_t idx = 0; op->opcode == UC_FABRIC_READ && idx < op->piece_count; idx++) {
            memset(fault_op->pieces[idx].address, LATE_BYTE, op->pieces[idx].length_bytes);
        }
        (void)uc_error(UC_ERR_UNHEALTHY, "fault: the endpoint is broken");
        complete(fault_op, UC_ERR_UNHEALTHY);
    }
}

/* The connection is lost: what is left is flushed, then the owner hears of it. */
static void
break_endpoint(struct uc_fabric_endpoint *endpoint, enum uc_status status)
{
    endpoint->is_closed = true;
    endpoint->early_status = UC_OK;
    if (endpoint->inner != NULL) {
        endpoint->fabric->ops->fence(endpoint->inner);
    }
    flush(endpoint);
    (void)uc_error(status, "fault: the connection fails as told");
    endpoint->on_state(endpoint->context, endpoint, status);
}

static void
on_inner_state(void *context, struct uc_fabric_endpoint *inner, enum uc_status status)
{
    struct uc_fabric_endpoint *endpoint = context;

    (void)inner;
    if (status != UC_OK) {
        endpoint->is_closed = true;
        if (!uc_list_is_empty(&endpoint->ops)) {
            flush(endpoint);
            (void)uc_error(status, "fault: the provider's connection failed");
        }
    }
    endpoint->on_state(endpoint->context, endpoint, status);
}

enum uc_status
fault_connect(struct uc_fabric_domain *domain, const struct uc_fabric_connect *params,
        struct uc_fabric_endpoint **endpoint_out)
{
    struct uc_fabric *fabric = domain->fabric;
    struct uc_fabric_connect inner = *params;
    struct uc_fabric_endpoint *endpoint;
    enum uc_fault_connect how;
    enum uc_status status;
    bool fails = fault_take_connect(&how, &status);

    if (fails && how == UC_FAULT_CONNECT_ERROR) {
        return uc_error(status, "fault: connect fails as told");
    }
    endpoint = fault_endpoint_create(fabric);
    endpoint->on_state = params->on_state;
    endpoint->context = params->context;
    endpoint->early_status = fails && how == UC_FAULT_CONNECT_REFUSED ? status : UC_OK;
    if (!fails) {
        inner.on_state = on_inner_state;
        inner.context = endpoint;
        status = fabric->ops->connect(domain->inner, &inner, &endpoint->inner);
        if (status != UC_OK) {
            fault_endpoint_free(endpoint);
            return status;
        }
    }

    *endpoint_out = endpoint;
    return UC_OK;
}

void
fault_fence(struct uc_fabric_endpoint *endpoint)
{
    if (!uc_list_is_empty(&endpoint->ops)) {
        fault_count(&(struct uc_fault_counts){.fences = 1});
    }
    endpoint->is_closed = true;
    endpoint->early_status = UC_OK;
    if (endpoint->inner != NULL) {
        endpoint->fabric->ops->fence(endpoint->inner);
    }
    flush(endpoint);
}

void
fault_disconnect(struct uc_fabric_endpoint *endpoint)
{
    if (endpoint == NULL) {
        return;
    }
    fault_fence(endpoint);
    endpoint->fabric->ops->disconnect(endpoint->inner);
    fault_endpoint_free(endpoint);
}

/* A copy for the provider, with the provider's regions. */
static struct fault_op *
make_op(struct uc_fabric_endpoint *endpoint, struct uc_fabric_op *op)
{
    size_t piece_count = op->pieces == NULL ? 0 : op->piece_count;
    struct fault_op *fault_op =
            calloc(1, sizeof(*fault_op) + piece_count * sizeof(fault_op->pieces[0]));

    ck_assert_ptr_nonnull(fault_op);
    fault_op->inner = *op;
    fault_op->inner.next = NULL;
    fault_op->inner.on_done = on_inner_done;
    fault_op->inner.on_bytes = op->on_bytes == NULL ? NULL : on_inner_bytes;
    fault_op->op = op;
    fault_op->endpoint = endpoint;
    for (size_t idx = 0; idx < piece_count; idx++) {
        const struct uc_fabric_piece *piece = &op->pieces[idx];

        fault_op->pieces[idx] = *piece;
        if (piece->region != NULL) {
            fault_op->pieces[idx].region = piece->region->inner;
            fault_op->pieces[idx].address =
                    piece->region->bytes + ((uint8_t *)piece->address - piece->region->address);
        }
    }
    fault_op->inner.pieces = op->pieces == NULL ? NULL : fault_op->pieces;
    return fault_op;
}

/* needs_registration is a claim of ours, so that we have to check it. */
static enum uc_status
check_pieces(const struct uc_fabric_endpoint *endpoint, const struct uc_fabric_op *op)
{
    for (size_t idx = 0; op->pieces != NULL && idx < op->piece_count; idx++) {
        if (endpoint->fabric->needs_registration && op->pieces[idx].region == NULL) {
            return uc_error(UC_ERR_INVALID_PARAM, "fault: piece %zu names no region", idx);
        }
    }
    return UC_OK;
}

static bool
has_waiting(const struct uc_fabric_endpoint *endpoint)
{
    uc_list_for_each (node, &endpoint->ops) {
        if (uc_list_entry(node, struct fault_op, link)->is_waiting) {
            return true;
        }
    }
    return endpoint->inner == NULL;
}

static void
drop_ops(struct uc_list *ops)
{
    struct uc_list *node;

    while ((node = uc_list_take(ops)) != NULL) {
        struct fault_op *fault_op = uc_list_entry(node, struct fault_op, link);

        fault_count(&(struct uc_fault_counts){.held = fault_op->is_held ? UINT32_MAX : 0});
        free(fault_op);
    }
}

/* Make the copies. What the provider is to see is linked in first_out; one that waits makes all later wait. */
static enum uc_status
prepare(struct uc_fabric_endpoint *endpoint, struct uc_fabric_op *list, struct uc_list *ops,
        struct uc_fabric_op **first_out)
{
    bool waiting = has_waiting(endpoint);
    struct uc_fabric_op *first = NULL;
    struct uc_fabric_op **tail = &first;

    for (struct uc_fabric_op *op = list; op != NULL; op = op->next) {
        enum uc_status status = check_pieces(endpoint, op);
        struct fault_op *fault_op;

        if (status != UC_OK) {
            drop_ops(ops);
            return status;
        }
        fault_op = make_op(endpoint, op);
        fault_take_operation(fault_op);
        uc_list_add(ops, &fault_op->link);
        waiting = waiting || fault_op->is_held;
        fault_op->is_waiting = waiting && !fault_op->is_forced;
        if (!fault_op->is_waiting && !fault_op->is_forced) {
            *tail = &fault_op->inner;
            tail = &fault_op->inner.next;
        }
    }
    *first_out = first;
    return UC_OK;
}

enum uc_status
fault_post(struct uc_fabric_endpoint *endpoint, struct uc_fabric_op *list)
{
    enum uc_status status = fault_take_post();
    struct uc_fabric_op *first = NULL;
    struct uc_list ops;
    struct uc_list *node;

    if (status == UC_OK && endpoint->is_closed) {
        status = uc_error(UC_ERR_UNHEALTHY, "fault: the endpoint is broken or fenced");
    }
    if (status != UC_OK) {
        return status;
    }
    uc_list_init(&ops);
    status = prepare(endpoint, list, &ops, &first);
    if (status == UC_OK && first != NULL) {
        status = endpoint->fabric->ops->post(endpoint->inner, first);
    }
    if (status != UC_OK) {
        drop_ops(&ops);
        return status;
    }
    while ((node = uc_list_take(&ops)) != NULL) {
        uc_list_add(&endpoint->ops, node);
        fault_count(&(struct uc_fault_counts){.posted = 1, .in_flight = 1});
    }
    return UC_OK;
}

/* Let one operation go on. */
static void
let_go(struct uc_fabric_endpoint *endpoint, struct fault_op *fault_op)
{
    enum uc_status status;

    if (fault_op->is_completed) {
        complete(fault_op, fault_op->status);
        return;
    }
    fault_op->hold_after = false;
    if (!fault_op->is_waiting) {
        return;
    }
    fault_op->is_waiting = false;
    if (fault_op->is_held) {
        fault_op->is_held = false;
        fault_count(&(struct uc_fault_counts){.held = UINT32_MAX}); /* one less */
    }
    status = endpoint->fabric->ops->post(endpoint->inner, &fault_op->inner);
    if (status != UC_OK) {
        complete(fault_op, status);
    }
}

/* @return the first or last operation of this round, or NULL */
static struct fault_op *
next_of_round(const struct uc_fabric_endpoint *endpoint, bool reversed)
{
    const struct uc_list *head = &endpoint->ops;
    struct uc_list *node = reversed ? head->prev : head->next;

    while (node != head) {
        struct fault_op *fault_op = uc_list_entry(node, struct fault_op, link);

        if (fault_op->is_of_round) {
            return fault_op;
        }
        node = reversed ? node->prev : node->next;
    }
    return NULL;
}

static size_t
release_held(struct uc_fabric_endpoint *endpoint, bool reversed)
{
    struct fault_op *fault_op;
    size_t count = 0;

    if (endpoint->inner == NULL || endpoint->is_closed) {
        return 0;
    }
    /* Completions may post: what they add is not for this round. */
    uc_list_for_each (node, &endpoint->ops) {
        uc_list_entry(node, struct fault_op, link)->is_of_round = true;
    }
    while ((fault_op = next_of_round(endpoint, reversed)) != NULL) {
        fault_op->is_of_round = false;
        let_go(endpoint, fault_op);
        count++;
    }
    return count;
}

static size_t
complete_forced(struct uc_fabric_endpoint *endpoint)
{
    size_t count = 0;
    bool found = true;

    while (found) {
        found = false;
        uc_list_for_each (node, &endpoint->ops) {
            struct fault_op *fault_op = uc_list_entry(node, struct fault_op, link);

            if (fault_op->is_forced) {
                complete(fault_op, fault_op->status);
                count++;
                found = true;
                break; /* the completion may have changed the list */
            }
        }
    }
    return count;
}

size_t
fault_endpoints_poll(struct uc_fabric *fabric, const struct fault_orders *orders)
{
    size_t handled = 0;

    uc_list_for_each_safe (node, following, &fabric->endpoints) {
        struct uc_fabric_endpoint *endpoint = uc_list_entry(node, struct uc_fabric_endpoint, link);

        if (endpoint->peer != NULL) {
            continue;
        }
        if (orders->release) {
            handled += release_held(endpoint, orders->reversed);
        }
        handled += complete_forced(endpoint);
        if (endpoint->early_status != UC_OK) {
            break_endpoint(endpoint, endpoint->early_status);
            handled++;
        } else if (orders->cut && !endpoint->is_closed) {
            break_endpoint(endpoint, UC_ERR_UNHEALTHY);
            handled++;
        }
    }
    return handled;
}

bool
fault_endpoints_pending(const struct uc_fabric *fabric)
{
    uc_list_for_each (node, &fabric->endpoints) {
        const struct uc_fabric_endpoint *endpoint =
                uc_list_entry(node, const struct uc_fabric_endpoint, link);

        if (endpoint->early_status != UC_OK) {
            return true;
        }
        uc_list_for_each (op_node, &endpoint->ops) {
            if (uc_list_entry(op_node, const struct fault_op, link)->is_forced) {
                return true;
            }
        }
    }
    return false;
}
