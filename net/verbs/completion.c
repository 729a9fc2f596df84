/* SPDX-License-Identifier: Apache-2.0 */

#include <inttypes.h>
#include <sched.h>

#include <ucm/log.h>

#include "net/verbs/verbs.h"

enum {
    ACK_BATCH = 32, /* acknowledging takes a mutex in libibverbs */
};

/*
 * One completion. Work requests of a queue pair complete in order, so a successful one confirms all
 * before it; after the first error nothing is confirmed any more.
 */
static void
take_one(struct uc_fabric_endpoint *endpoint, const struct ibv_wc *completion)
{
    uint64_t seq = completion->wr_id;

    if (seq <= endpoint->seen_seq || seq > endpoint->posted_seq) {
        uc_log_error("verbs %s: completion %" PRIu64 " is not between %" PRIu64 " and %" PRIu64,
                endpoint->fabric->device_name, seq, endpoint->seen_seq, endpoint->posted_seq);
        uc_verbs_endpoint_fail(endpoint, UC_ERR_UNHEALTHY, "the device reports foreign work");
        return;
    }

    endpoint->seen_seq = seq;
    if (endpoint->culprit_seq != 0) {
        return;
    }
    if (completion->status == IBV_WC_SUCCESS) {
        endpoint->done_seq = seq;
        return;
    }

    endpoint->culprit_seq = seq;
    endpoint->culprit_status = completion->status;
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
has_confirmed(const struct uc_fabric_endpoint *endpoint)
{
    const struct uc_fabric_op *op = endpoint->flying.head;

    return op != NULL && op->provider_data[UC_VERBS_OP_LAST_SEQ] <= endpoint->done_seq;
}

static bool
has_outstanding(const struct uc_fabric_endpoint *endpoint)
{
    return endpoint->seen_seq != endpoint->posted_seq;
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
            uc_log_warn("verbs %s: %" PRIu64 " work requests were not flushed within %d ms",
                    endpoint->fabric->device_name, endpoint->posted_seq - endpoint->seen_seq,
                    UC_VERBS_DRAIN_TIMEOUT_MS);
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

static enum uc_status
flushed_status(struct uc_fabric_endpoint *endpoint, const struct uc_fabric_op *op)
{
    uint64_t last_seq = op->provider_data[UC_VERBS_OP_LAST_SEQ];

    if (last_seq <= endpoint->done_seq) {
        return UC_OK;
    }
    if (endpoint->culprit_seq != 0 && last_seq >= endpoint->culprit_seq) {
        endpoint->culprit_seq = 0;
        return culprit_status(endpoint, op);
    }
    return UC_ERR_UNHEALTHY;
}

size_t
uc_verbs_endpoint_flush(struct uc_fabric_endpoint *endpoint)
{
    struct uc_fabric_op *op;
    size_t handled = 0;

    while ((op = uc_verbs_op_pop(&endpoint->flying)) != NULL ||
            (op = uc_verbs_op_pop(&endpoint->waiting)) != NULL) {
        op->on_done(op, flushed_status(endpoint, op));
        handled++;
    }
    return handled;
}
