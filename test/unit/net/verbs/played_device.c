/* SPDX-License-Identifier: Apache-2.0 */

#include "test/unit/net/verbs/played_device.h"

#include <stdlib.h>
#include <string.h>

struct device devices[UC_VERBS_PAIRS_MAX];
size_t notify_count;
struct ibv_async_event async_event;
size_t async_event_count;
struct rdma_cm_id *notified_id;

static struct ibv_context context;
static struct ibv_qp qps[UC_VERBS_PAIRS_MAX];
static struct ibv_cq cq = {.context = &context};
static struct ibv_mr mr = {.lkey = 7};
struct uc_fabric *fabric;
struct uc_fabric_domain *domain;
struct uc_fabric_region region;
struct uc_fabric_endpoint *endpoint;
uint8_t memory[4096];

struct test_op ops[OP_COUNT];

size_t done_count;
size_t told;
enum uc_status told_status;
void (*in_callback)(void);

int __wrap_ibv_modify_qp(struct ibv_qp *any, struct ibv_qp_attr *attr, int mask);
int __wrap_ibv_destroy_qp(struct ibv_qp *any);
int __wrap_ibv_destroy_cq(struct ibv_cq *any);
void __wrap_ibv_ack_cq_events(struct ibv_cq *any, unsigned count);
int __wrap_ibv_get_async_event(struct ibv_context *any, struct ibv_async_event *event_out);
void __wrap_ibv_ack_async_event(struct ibv_async_event *event);
int __wrap_rdma_notify(struct rdma_cm_id *id, enum ibv_event_type event);

static struct device *
device_of(const struct ibv_qp *qp)
{
    return &devices[qp - qps];
}

int
__wrap_ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    (void)mask;
    if (attr->qp_state == IBV_QPS_ERR) {
        device_of(qp)->in_error = true;
    }
    return 0;
}

int
__wrap_ibv_destroy_qp(struct ibv_qp *qp)
{
    device_of(qp)->destroyed = true;
    return 0;
}

int
__wrap_ibv_destroy_cq(struct ibv_cq *any)
{
    (void)any;
    return 0;
}

void
__wrap_ibv_ack_cq_events(struct ibv_cq *any, unsigned count)
{
    (void)any;
    (void)count;
}

int
__wrap_ibv_get_async_event(struct ibv_context *any, struct ibv_async_event *event_out)
{
    (void)any;
    if (async_event_count == 0) {
        return -1;
    }
    async_event_count--;
    *event_out = async_event;
    return 0;
}

void
__wrap_ibv_ack_async_event(struct ibv_async_event *event)
{
    (void)event;
}

/* The real one looks into the id. */
int
__wrap_rdma_notify(struct rdma_cm_id *id, enum ibv_event_type event)
{
    ck_assert_ptr_nonnull(id);
    ck_assert_int_eq(event, IBV_EVENT_COMM_EST);
    notified_id = id;
    return 0;
}

static int
fake_post_send(struct ibv_qp *qp, struct ibv_send_wr *chain, struct ibv_send_wr **bad_out)
{
    struct device *self = device_of(qp);

    self->chain_count++;
    for (struct ibv_send_wr *request = chain; request != NULL; request = request->next) {
        size_t idx = self->posted_count;

        if (idx == self->refuse_idx) {
            *bad_out = request;
            return 12;
        }
        ck_assert_uint_lt(idx, QUEUE_MAX);
        self->posted[idx] = request->wr_id;
        self->opcodes[idx] = request->opcode;
        self->addresses[idx] = request->wr.rdma.remote_addr;
        self->signalled[idx] = (request->send_flags & IBV_SEND_SIGNALED) != 0;
        self->posted_count++;
    }
    if (self->posted_count - self->report_count > self->in_flight_max) {
        self->in_flight_max = self->posted_count - self->report_count;
    }
    return 0;
}

/* Reports in order: signalled successes, the failure, and everything after it as flushed. */
static int
report(struct device *self, int capacity, struct ibv_wc *completions)
{
    size_t end = self->in_error ? self->posted_count : self->allow_count;
    int count = 0;

    while (self->report_count < self->posted_count && self->report_count < end &&
            count < capacity) {
        size_t idx = self->report_count++;
        enum ibv_wc_status status = IBV_WC_SUCCESS;

        if (idx == self->fail_idx) {
            status = self->fail_status;
            self->in_error = true;
            end = self->posted_count;
        } else if (idx > self->fail_idx || idx >= self->allow_count) {
            status = IBV_WC_WR_FLUSH_ERR;
        }
        if (status != IBV_WC_SUCCESS || self->signalled[idx]) {
            completions[count++] = (struct ibv_wc){.wr_id = self->posted[idx], .status = status};
        }
    }
    return count;
}

static int
fake_poll_cq(struct ibv_cq *any, int capacity, struct ibv_wc *completions)
{
    int count = 0;

    (void)any;
    for (size_t idx = 0; idx < UC_VERBS_PAIRS_MAX; idx++) {
        count += report(&devices[idx], capacity - count, completions + count);
    }
    return count;
}

static int
fake_req_notify_cq(struct ibv_cq *any, int solicited)
{
    (void)any;
    (void)solicited;
    notify_count++;
    devices[0].allow_count += devices[0].complete_on_notify;
    return 0;
}

static void
on_done(struct uc_fabric_op *op, enum uc_status status)
{
    struct test_op *self = (struct test_op *)(void *)op;

    self->done++;
    self->status = status;
    self->order = done_count++;
    if (in_callback != NULL) {
        in_callback();
    }
}

static void
on_state(void *owner, struct uc_fabric_endpoint *which, enum uc_status status)
{
    (void)owner;
    ck_assert_ptr_eq(which, endpoint);
    told++;
    told_status = status;
}

void
set_pair_count(uint32_t count)
{
    endpoint->pair_count = count;
    for (uint32_t idx = 0; idx < count; idx++) {
        endpoint->pairs[idx].qp = &qps[idx];
        qps[idx].qp_context = &endpoint->pairs[idx];
        endpoint->pairs[idx].marks = endpoint->marks + (size_t)idx * UC_VERBS_SEND_DEPTH;
    }
}

void
setup(void)
{
    memset(devices, 0, sizeof(devices));
    notify_count = 0;
    async_event_count = 0;
    notified_id = NULL;
    for (size_t idx = 0; idx < UC_VERBS_PAIRS_MAX; idx++) {
        devices[idx].fail_idx = QUEUE_MAX;
        devices[idx].refuse_idx = QUEUE_MAX;
        qps[idx].context = &context;
    }
    memset(ops, 0, sizeof(ops));
    done_count = 0;
    told = 0;
    in_callback = NULL;
    context.ops.post_send = fake_post_send;
    context.ops.poll_cq = fake_poll_cq;
    context.ops.req_notify_cq = fake_req_notify_cq;

    fabric = calloc(1, sizeof(*fabric));
    domain = calloc(1, sizeof(*domain));
    ck_assert_ptr_nonnull(fabric);
    ck_assert_ptr_nonnull(domain);
    fabric->epoll_fd = -1;
    fabric->device = &context;
    uc_list_init(&fabric->pending);
    uc_list_init(&fabric->active);
    uc_list_init(&fabric->passive);
    uc_list_init(&fabric->failed);
    uc_list_init(&fabric->released);
    domain->fabric = fabric;
    domain->scratch_mr = &mr;
    region = (struct uc_fabric_region){
            .domain = domain, .mr = &mr, .address = memory, .length_bytes = sizeof(memory)};

    endpoint = uc_verbs_endpoint_create(domain);
    ck_assert_ptr_nonnull(endpoint);
    endpoint->cq = &cq;
    endpoint->marks = calloc(UC_VERBS_PAIRS_MAX * UC_VERBS_SEND_DEPTH, sizeof(*endpoint->marks));
    ck_assert_ptr_nonnull(endpoint->marks);
    set_pair_count(1);
    endpoint->send_depth = DEPTH;
    endpoint->limits = (struct uc_verbs_limits){.sge_count = 1, .message_bytes = 1 << 20};
    endpoint->on_state = on_state;
    endpoint->regions = calloc(1, sizeof(*endpoint->regions));
    ck_assert_ptr_nonnull(endpoint->regions);
    endpoint->regions[0].length_bytes = UINT32_MAX;
    endpoint->region_count = 1;
    uc_verbs_endpoint_set_state(endpoint, UC_VERBS_READY);
}

void
teardown(void)
{
    in_callback = NULL;
    uc_verbs_endpoint_disconnect(endpoint);
    ck_assert_uint_eq(fabric->endpoint_count, 0);
    ck_assert_uint_eq(domain->endpoint_count, 0);
    ck_assert_uint_eq(fabric->active_count, 0);
    free(domain);
    free(fabric);
}

void
prepare_op(size_t idx, enum uc_fabric_opcode opcode, uint64_t length_bytes)
{
    ops[idx].piece = (struct uc_fabric_piece){memory, length_bytes, &region};
    ops[idx].op = (struct uc_fabric_op){
            .opcode = opcode,
            .pieces = opcode == UC_FABRIC_FLUSH ? NULL : &ops[idx].piece,
            .piece_count = opcode == UC_FABRIC_FLUSH ? 0 : 1,
            .on_done = on_done,
    };
}

/* Posts operations that are prepared as one list. */
enum uc_status
post_list(size_t first, size_t count)
{
    for (size_t idx = first; idx + 1 < first + count; idx++) {
        ops[idx].op.next = &ops[idx + 1].op;
    }
    return uc_verbs_post(endpoint, &ops[first].op);
}

/* Posts `count` operations as one list. */
enum uc_status
post_ops(size_t first, size_t count, enum uc_fabric_opcode opcode)
{
    for (size_t idx = first; idx < first + count; idx++) {
        prepare_op(idx, opcode, BLOCK_BYTES);
    }
    return post_list(first, count);
}

void
expect_each_once(size_t count)
{
    for (size_t idx = 0; idx < count; idx++) {
        ck_assert_uint_eq(ops[idx].done, 1);
    }
}
