/* SPDX-License-Identifier: Apache-2.0 */

#include <string.h>

#include "net/region_table.h"
#include "net/verbs/verbs.h"

static enum uc_status
check_op(const struct uc_fabric_endpoint *endpoint, const struct uc_fabric_caps *caps,
        const struct uc_fabric_op *op)
{
    uint64_t length_bytes;
    enum uc_status status;

    status = uc_fabric_op_check(op, endpoint->regions, endpoint->region_count, caps, &length_bytes);
    if (status != UC_OK || op->opcode == UC_FABRIC_FLUSH) {
        return status;
    }

    for (size_t idx = 0; idx < op->piece_count; idx++) {
        const struct uc_fabric_piece *piece = &op->pieces[idx];
        const struct uc_fabric_region *region = piece->region;

        if (region == NULL || region->domain != endpoint->domain ||
                !uc_region_covers_piece(region->address, region->length_bytes, piece)) {
            return uc_error(UC_ERR_INVALID_PARAM,
                    "verbs post: piece %zu is not inside its region; register the memory in the "
                    "endpoint's domain",
                    idx);
        }
    }
    return UC_OK;
}

static enum uc_status
check_list(const struct uc_fabric_endpoint *endpoint, const struct uc_fabric_op *list)
{
    struct uc_fabric_caps caps;

    if (endpoint->is_target) {
        return uc_error(UC_ERR_INVALID_PARAM, "verbs post: a target's endpoint only serves");
    }
    if (endpoint->state != UC_VERBS_CONNECTING && endpoint->state != UC_VERBS_READY) {
        return uc_error(UC_ERR_UNHEALTHY, "verbs post: the endpoint is %s",
                endpoint->state == UC_VERBS_FAILED ? "broken" : "fenced");
    }

    uc_verbs_fabric_caps(endpoint->fabric, &caps);
    for (const struct uc_fabric_op *op = list; op != NULL; op = op->next) {
        enum uc_status status = check_op(endpoint, &caps, op);

        if (status != UC_OK) {
            return status;
        }
    }
    return UC_OK;
}

enum uc_status
uc_verbs_post(struct uc_fabric_endpoint *endpoint, struct uc_fabric_op *list)
{
    enum uc_status status = check_list(endpoint, list);

    if (status != UC_OK) {
        return status;
    }

    while (list != NULL) {
        struct uc_fabric_op *op = list;

        list = op->next;
        memset(op->provider_data, 0, sizeof(op->provider_data));
        uc_verbs_op_push(&endpoint->waiting, op);
    }
    uc_verbs_endpoint_pump(endpoint);
    return UC_OK;
}

static struct uc_verbs_chain *
chain_of(const struct uc_verbs_queue_pair *pair)
{
    return &pair->endpoint->fabric->chains[uc_verbs_queue_pair_idx(pair)];
}

/* Work requests that still fit into the send queue, those in the chain counted as sent. */
static uint64_t
room_of(const struct uc_verbs_queue_pair *pair)
{
    return pair->endpoint->send_depth - (pair->posted_seq - pair->done_seq) - chain_of(pair)->count;
}

/* Of the queue pairs that have room, the one with the fewest bytes in flight. */
static struct uc_verbs_queue_pair *
least_loaded(struct uc_fabric_endpoint *endpoint)
{
    struct uc_verbs_queue_pair *best = NULL;
    uint64_t best_bytes = UINT64_MAX;

    for (uint32_t idx = 0; idx < endpoint->pair_count; idx++) {
        struct uc_verbs_queue_pair *pair = &endpoint->pairs[idx];
        uint64_t bytes = pair->sent_bytes - pair->confirmed_bytes;

        if (bytes < best_bytes && room_of(pair) > 0) {
            best = pair;
            best_bytes = bytes;
        }
    }
    return best;
}

/* The last request of the chain reports, and with it all before it. */
static void
signal_last(struct uc_verbs_queue_pair *pair)
{
    struct uc_verbs_chain *chain = chain_of(pair);

    chain->requests[chain->count - 1].send_flags = IBV_SEND_SIGNALED;
    pair->marks[(pair->posted_seq + chain->count) % UC_VERBS_SEND_DEPTH] = pair->sent_bytes;
    pair->unsignalled_bytes = 0;
}

/*
 * Hands the chain to the device: one doorbell. The last of a chain always reports: so everything posted
 * is confirmed sooner or later, slots of requests that do not report are reclaimed, and drain can wait
 * for the last number. @return false if the endpoint is broken by it
 */
static bool
ring(struct uc_verbs_queue_pair *pair)
{
    struct uc_verbs_chain *chain = chain_of(pair);
    struct ibv_send_wr *bad = NULL;
    int error;

    if (chain->count == 0) {
        return true;
    }

    signal_last(pair);
    for (size_t idx = 0; idx < chain->count; idx++) {
        chain->requests[idx].wr_id = uc_verbs_request_id(pair, pair->posted_seq + idx + 1);
    }
    error = ibv_post_send(pair->qp, chain->requests, &bad);
    if (error != 0) {
        pair->posted_seq += bad == NULL ? 0 : (uint64_t)(bad - chain->requests);
        uc_verbs_endpoint_fail(pair->endpoint, UC_ERR_UNHEALTHY, "ibv_post_send: error %d", error);
        return false;
    }
    pair->posted_seq += chain->count;
    uc_verbs_chain_reset(chain);
    return true;
}

/* Appends what fits of an operation. @return whether it is whole; false also if the endpoint breaks */
static bool
add(struct uc_verbs_queue_pair *pair, struct uc_fabric_op *op)
{
    const struct uc_fabric_endpoint *endpoint = pair->endpoint;
    struct uc_verbs_chain *chain = chain_of(pair);
    struct uc_verbs_scratch scratch = {
            .address = &endpoint->domain->scratch,
            .local_key = endpoint->domain->scratch_mr->lkey,
    };
    bool whole = false;

    while (!whole && room_of(pair) > 0) {
        uint64_t room = chain->count + room_of(pair);

        whole = uc_verbs_chain_add(chain, room < UC_VERBS_CHAIN_MAX ? room : UC_VERBS_CHAIN_MAX,
                &endpoint->limits, &endpoint->regions[op->region_idx], &scratch, op);
        if (chain->count == UC_VERBS_CHAIN_MAX && !whole && !ring(pair)) {
            return false;
        }
    }
    return whole;
}

/* An operation goes over one queue pair: its peer executes it in the order of its bytes. */
static bool
place_transfer(struct uc_fabric_endpoint *endpoint, struct uc_fabric_op *op)
{
    uint64_t sent_bytes = op->provider_data[UC_VERBS_OP_SENT_BYTES];
    struct uc_verbs_queue_pair *pair = endpoint->last_pair;
    bool whole;

    if (pair == NULL || (sent_bytes == 0 && !op->follows)) {
        pair = least_loaded(endpoint);
    }
    if (pair == NULL) {
        return false;
    }

    endpoint->last_pair = pair;
    pair->is_dirty = pair->is_dirty || op->opcode == UC_FABRIC_WRITE;
    whole = add(pair, op);
    sent_bytes = op->provider_data[UC_VERBS_OP_SENT_BYTES] - sent_bytes;
    pair->sent_bytes += sent_bytes;
    pair->unsignalled_bytes += sent_bytes;
    if (!whole) {
        return false;
    }

    op->provider_data[UC_VERBS_OP_LAST_ID] =
            uc_verbs_request_id(pair, pair->posted_seq + chain_of(pair)->count);
    if (pair->unsignalled_bytes >= UC_VERBS_SIGNAL_BYTES) {
        signal_last(pair);
    }
    return true;
}

static bool
place_flush_on(struct uc_verbs_queue_pair *pair, struct uc_fabric_op *op)
{
    if (!add(pair, op)) {
        return false;
    }

    pair->is_dirty = false;
    op->provider_data[uc_verbs_queue_pair_idx(pair)] = pair->posted_seq + chain_of(pair)->count;
    return true;
}

/* A READ behind the WRITEs on every queue pair that has carried some since the last FLUSH. */
static bool
place_flush(struct uc_fabric_endpoint *endpoint, struct uc_fabric_op *op)
{
    struct uc_verbs_queue_pair *pair;
    bool is_placed = false;

    for (uint32_t idx = 0; idx < endpoint->pair_count; idx++) {
        pair = &endpoint->pairs[idx];
        if (pair->is_dirty && !place_flush_on(pair, op)) {
            return false;
        }
        is_placed = is_placed || op->provider_data[idx] != 0;
    }
    if (is_placed) {
        return true;
    }

    pair = least_loaded(endpoint);
    return pair != NULL && place_flush_on(pair, op);
}

void
uc_verbs_endpoint_pump(struct uc_fabric_endpoint *endpoint)
{
    struct uc_fabric_op *op;

    if (endpoint->state != UC_VERBS_READY || endpoint->waiting.head == NULL) {
        return;
    }

    for (uint32_t idx = 0; idx < endpoint->pair_count; idx++) {
        uc_verbs_chain_reset(&endpoint->fabric->chains[idx]);
    }
    while ((op = endpoint->waiting.head) != NULL) {
        bool placed = op->opcode == UC_FABRIC_FLUSH ? place_flush(endpoint, op)
                                                    : place_transfer(endpoint, op);

        if (!placed) {
            break;
        }
        uc_verbs_op_push(&endpoint->flying, uc_verbs_op_pop(&endpoint->waiting));
    }
    for (uint32_t idx = 0; idx < endpoint->pair_count && endpoint->state == UC_VERBS_READY; idx++) {
        (void)ring(&endpoint->pairs[idx]);
    }
}
