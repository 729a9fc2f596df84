/* SPDX-License-Identifier: Apache-2.0 */

#include <inttypes.h>
#include <sched.h>

#include <ucm/log.h>

#include "net/verbs/verbs.h"

enum {
    ACK_BATCH = 32, /* acknowledging takes a mutex in libibverbs */
};

/*
 * One completion. Work requests of a queue pair complete in order, so a successful one confirms all of it
 * before it; after the first error nothing of it is confirmed any more.
 */
static void
take_one(struct uc_fabric_endpoint *endpoint, const struct ibv_wc *completion)
{
    uint64_t seq = completion->wr_id / UC_VERBS_PAIRS_MAX;
    struct uc_verbs_queue_pair *pair = &endpoint->pairs[completion->wr_id % UC_VERBS_PAIRS_MAX];

    if (seq <= pair->seen_seq || seq > pair->posted_seq) {
        uc_log_error("verbs %s: completion %" PRIu64 " is not between %" PRIu64 " and %" PRIu64,
                endpoint->fabric->device_name, seq, pair->seen_seq, pair->posted_seq);
        uc_verbs_endpoint_fail(endpoint, UC_ERR_UNHEALTHY, "the device reports foreign work");
        return;
    }

    pair->seen_seq = seq;
    if (pair->is_broken) {
        return;
    }
    if (completion->status == IBV_WC_SUCCESS) {
        pair->done_seq = seq;
        pair->confirmed_bytes = pair->marks[seq % UC_VERBS_SEND_DEPTH];
        return;
    }

    pair->is_broken = true;
    if (endpoint->culprit_id == 0 && completion->status != IBV_WC_WR_FLUSH_ERR) {
        endpoint->culprit_id = completion->wr_id;
        endpoint->culprit_status = completion->status;
    }
    uc_verbs_endpoint_fail(endpoint, UC_ERR_UNHEALTHY, "work request: %s (vendor error 0x%x)",
            ibv_wc_status_str(completion->status), completion->vendor_err);
}

/* What arm() found earlier, else what the device has. @return completions taken */
static size_t
take_batch(struct uc_fabric_endpoint *endpoint)
{
    struct uc_fabric *fabric = endpoint->fabric;
    struct ibv_wc completions[UC_VERBS_POLL_BATCH];
    int count;

    if (fabric->stash_owner == endpoint) {
        fabric->stash_owner = NULL;
        for (int idx = 0; idx < fabric->stash_count; idx++) {
            take_one(endpoint, &fabric->stash[idx]);
        }
        return (size_t)fabric->stash_count;
    }

    count = ibv_poll_cq(endpoint->cq, UC_VERBS_POLL_BATCH, completions);
    if (count < 0) {
        uc_verbs_endpoint_fail(endpoint, UC_ERR_UNHEALTHY, "ibv_poll_cq failed");
        return 0;
    }
    for (int idx = 0; idx < count; idx++) {
        take_one(endpoint, &completions[idx]);
    }
    return (size_t)count;
}

static bool
is_confirmed(const struct uc_fabric_endpoint *endpoint, const struct uc_fabric_op *op)
{
    uint64_t last_id = op->provider_data[UC_VERBS_OP_LAST_ID];

    if (op->opcode != UC_FABRIC_FLUSH) {
        return last_id / UC_VERBS_PAIRS_MAX <=
               endpoint->pairs[last_id % UC_VERBS_PAIRS_MAX].done_seq;
    }

    for (size_t idx = 0; idx < UC_VERBS_PAIRS_MAX; idx++) {
        if (op->provider_data[idx] > endpoint->pairs[idx].done_seq) {
            return false;
        }
    }
    return true;
}

static bool
has_confirmed(const struct uc_fabric_endpoint *endpoint)
{
    const struct uc_fabric_op *op = endpoint->flying.head;

    return op != NULL && is_confirmed(endpoint, op);
}

static bool
has_outstanding(const struct uc_fabric_endpoint *endpoint)
{
    for (uint32_t idx = 0; idx < endpoint->pair_count; idx++) {
        if (endpoint->pairs[idx].seen_seq != endpoint->pairs[idx].posted_seq) {
            return true;
        }
    }
    return false;
}

static size_t
run_confirmed(struct uc_fabric_endpoint *endpoint, size_t budget)
{
    size_t handled = 0;

    while (handled < budget && has_confirmed(endpoint)) {
        struct uc_fabric_op *op = uc_verbs_op_pop(&endpoint->flying);

        op->on_done(op, UC_OK);
        handled++;
    }
    return handled;
}

size_t
uc_verbs_endpoint_poll(struct uc_fabric_endpoint *endpoint, size_t budget)
{
    size_t handled = run_confirmed(endpoint, budget);

    while (handled < budget && endpoint->state == UC_VERBS_READY && has_outstanding(endpoint)) {
        if (take_batch(endpoint) == 0) {
            break;
        }
        uc_verbs_endpoint_pump(endpoint); /* before the callbacks: keep the device busy */
        handled += run_confirmed(endpoint, budget - handled);
    }
    return handled;
}

bool
uc_verbs_endpoint_arm(struct uc_fabric_endpoint *endpoint)
{
    struct uc_fabric *fabric = endpoint->fabric;
    int count;

    if (has_confirmed(endpoint)) {
        return false;
    }
    if (!has_outstanding(endpoint)) {
        return true;
    }

    /*
     * Still armed means that nothing completed since, or that an event waits in the channel and the
     * descriptor is readable: either way no wake-up is lost.
     */
    if (!endpoint->armed) {
        if (ibv_req_notify_cq(endpoint->cq, 0) != 0) {
            uc_verbs_endpoint_fail(endpoint, UC_ERR_UNHEALTHY, "ibv_req_notify_cq failed");
            return false;
        }
        endpoint->armed = true;
    }

    /* What completed before arming raises no event. Callbacks run in poll, so it is kept for that. */
    count = ibv_poll_cq(endpoint->cq, UC_VERBS_POLL_BATCH, fabric->stash);
    if (count < 0) {
        uc_verbs_endpoint_fail(endpoint, UC_ERR_UNHEALTHY, "ibv_poll_cq failed");
        return false;
    }
    if (count > 0) {
        fabric->stash_owner = endpoint;
        fabric->stash_count = count;
    }
    return count == 0;
}

void
uc_verbs_wakeups_read(struct uc_fabric *fabric)
{
    struct ibv_cq *cq = NULL;
    void *context = NULL;

    while (ibv_get_cq_event(fabric->completion_channel, &cq, &context) == 0) {
        struct uc_fabric_endpoint *endpoint = context;

        endpoint->armed = false;
        endpoint->unacked_events++;
        if (endpoint->unacked_events >= ACK_BATCH) {
            ibv_ack_cq_events(cq, endpoint->unacked_events);
            endpoint->unacked_events = 0;
        }
    }
}

void
uc_verbs_endpoint_drain(struct uc_fabric_endpoint *endpoint)
{
    uint64_t deadline_ms = uc_verbs_now_ms() + UC_VERBS_DRAIN_TIMEOUT_MS;

    while (has_outstanding(endpoint)) {
        if (take_batch(endpoint) > 0) {
            continue;
        }
        if (uc_verbs_now_ms() >= deadline_ms) {
            uc_log_warn("verbs %s: work requests were not flushed within %d ms",
                    endpoint->fabric->device_name, UC_VERBS_DRAIN_TIMEOUT_MS);
            break;
        }
        (void)sched_yield();
    }
    if (endpoint->fabric->stash_owner == endpoint) {
        endpoint->fabric->stash_owner = NULL;
    }
}

/* The operation whose work request failed first. */
static enum uc_status
culprit_status(const struct uc_fabric_endpoint *endpoint, const struct uc_fabric_op *op)
{
    switch (endpoint->culprit_status) {
    case IBV_WC_REM_ACCESS_ERR:
    case IBV_WC_REM_INV_REQ_ERR:
    case IBV_WC_REM_OP_ERR:
        return op->opcode == UC_FABRIC_WRITE ? UC_ERR_PERMISSION_DENIED : UC_ERR_INVALID_PARAM;
    case IBV_WC_LOC_PROT_ERR:
    case IBV_WC_LOC_LEN_ERR:
        return UC_ERR_INVALID_PARAM;
    default:
        return UC_ERR_UNHEALTHY;
    }
}

/* Whether the work request that failed first is one of this operation's. */
static bool
is_culprit(const struct uc_fabric_endpoint *endpoint, const struct uc_fabric_op *op)
{
    uint64_t idx = endpoint->culprit_id % UC_VERBS_PAIRS_MAX;
    uint64_t last_id = op->provider_data[UC_VERBS_OP_LAST_ID];

    if (endpoint->culprit_id == 0) {
        return false;
    }
    if (op->opcode == UC_FABRIC_FLUSH) {
        return op->provider_data[idx] >= endpoint->culprit_id / UC_VERBS_PAIRS_MAX;
    }
    return last_id % UC_VERBS_PAIRS_MAX == idx && last_id >= endpoint->culprit_id;
}

size_t
uc_verbs_endpoint_flush(struct uc_fabric_endpoint *endpoint)
{
    struct uc_fabric_op *op;
    size_t handled = 0;
    bool is_lost = false;

    /* What follows a failure has failed, also where its queue pair was faster. */
    while ((op = uc_verbs_op_pop(&endpoint->flying)) != NULL) {
        enum uc_status status = UC_OK;

        is_lost = is_lost || !is_confirmed(endpoint, op);
        if (is_lost) {
            status = UC_ERR_UNHEALTHY;
        }
        if (is_lost && is_culprit(endpoint, op)) {
            endpoint->culprit_id = 0;
            status = culprit_status(endpoint, op);
        }
        op->on_done(op, status);
        handled++;
    }
    /* Of these only the first can be under way in part, and be what failed. */
    while ((op = uc_verbs_op_pop(&endpoint->waiting)) != NULL) {
        enum uc_status status = UC_ERR_UNHEALTHY;

        if (endpoint->culprit_id != 0) {
            endpoint->culprit_id = 0;
            status = culprit_status(endpoint, op);
        }
        op->on_done(op, status);
        handled++;
    }
    return handled;
}
