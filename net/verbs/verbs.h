/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file verbs.h
 * The objects of the verbs fabric and what its files offer each other. Reliable connections over
 * rdma_cm; an endpoint is a group of 1 to 4 queue pairs that live and die together. Everything belongs
 * to the polling thread of the fabric, but for regions (see net/fabric.h).
 *
 * Queue pairs are made and moved by us and not by librdmacm (rdma_cm_id.qp stays NULL): librdmacm
 * always grants the peer remote write, and it would keep them on a device context which all fabrics
 * of the process share, asynchronous events included.
 *
 * Memory per endpoint: about 1 KiB here plus 24 bytes per region and 2 KiB per queue pair of an
 * initiator; in the driver about 100 KiB per queue pair of an initiator (256 work requests of 16 pieces
 * and as many completions) and about 4 KiB per one of a target, which never posts. Per fabric 48 KiB for
 * the chains being built.
 */

#ifndef UC_VERBS_VERBS_H
#define UC_VERBS_VERBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <ucm/compiler.h>
#include <ucm/status.h>

#include "core/base/list.h"
#include "net/fabric.h"
#include "net/verbs/chain.h"
#include "net/verbs/hello.h"

enum {
    UC_VERBS_PAIRS_DEFAULT = 1,
    UC_VERBS_SEND_DEPTH = 256,    /* work requests of one queue pair in flight */
    UC_VERBS_READ_DEPTH = 16,     /* READs in flight on the wire, each direction */
    UC_VERBS_RETRY_COUNT = 6,     /* 7 would mean for ever on SoftRoCE */
    UC_VERBS_RNR_RETRY_COUNT = 1, /* nobody sends, so nobody waits for a receiver */
    UC_VERBS_ACK_TIMEOUT = 16,    /* 4.096 µs << 16 = 268 ms; 7 tries are about 2 s */
    UC_VERBS_ACCEPT_TIMEOUT_MS = 5000,
    /* For flushed completions; destroying the queue pair is safe anyway. */
    UC_VERBS_DRAIN_TIMEOUT_MS = 200,
    UC_VERBS_BACKLOG = 128,
    UC_VERBS_POLL_BATCH = 16,
    UC_VERBS_MAX_PIECES = 4096,
    UC_VERBS_MAX_REGIONS = 65536,
    UC_VERBS_TEXT_BYTES = 160,
};

/** Who an rdma_cm_id belongs to: its context points at this, the first member of the owner. */
struct uc_verbs_cm_owner {
    enum {
        UC_VERBS_OWNER_LISTENER,
        UC_VERBS_OWNER_QUEUE_PAIR,
    } kind;
};

/** A copy of an rdma_cm event, so that the original is acknowledged before anything is destroyed. */
struct uc_verbs_cm_event {
    enum rdma_cm_event_type type;
    int status;
    struct rdma_cm_id *id;
    struct rdma_cm_id *listen_id;
    uint8_t responder_resources; /* as this side sees it */
    uint8_t initiator_depth;
    size_t private_length;
    uint8_t private_data[256];
};

struct uc_fabric {
    char *name; /* the address it was opened with, or NULL */
    struct sockaddr_storage address;
    char device_name[IBV_SYSFS_NAME_MAX];
    struct ibv_context *device; /* our own, see the file comment */
    struct ibv_device_attr attr;
    uint32_t max_message_bytes;
    enum ibv_mtu mtu;    /* of the port at opening */
    uint32_t pair_count; /* queue pairs that an initiator asks for … */
    uint32_t pair_limit; /* … and that a target grants at most */
    bool warned_of_roce_v1;
    struct rdma_event_channel *cm_channel;
    struct ibv_comp_channel *completion_channel;
    struct ibv_cq *idle_cq; /* for targets, which never post */
    int epoll_fd;

    unsigned depth;      /* calls that may run callbacks; endpoints are freed when it is 0 */
    unsigned busy_polls; /* polls since the event descriptors were looked at */
    struct uc_list listeners;
    struct uc_list pending;  /* with a deadline: connecting, or accepted and not confirmed */
    struct uc_list active;   /* initiators that are ready: their completion queues are polled */
    struct uc_list passive;  /* ready targets and fenced endpoints: nothing to do */
    struct uc_list failed;   /* to be flushed and told about by poll */
    struct uc_list released; /* to be freed when depth is 0 */
    size_t active_count;
    size_t endpoint_count;
    size_t domain_count;

    /* Completions that arm() found; poll handles them first. */
    struct uc_fabric_endpoint *stash_owner;
    int stash_count;
    struct ibv_wc stash[UC_VERBS_POLL_BATCH];

    struct uc_verbs_chain chains[UC_VERBS_PAIRS_MAX];
};

struct uc_fabric_domain {
    struct uc_fabric *fabric;
    struct ibv_pd *pd;
    struct ibv_mr *scratch_mr;
    uint64_t scratch; /* where FLUSH reads to */
    size_t region_count;
    size_t endpoint_count; /* that still have a queue pair, or may get one */
};

struct uc_fabric_region {
    struct uc_fabric_domain *domain;
    struct ibv_mr *mr;
    uint8_t *address;
    uint64_t length_bytes;
};

struct uc_fabric_listener {
    struct uc_verbs_cm_owner owner; /* first */
    struct uc_list node;
    struct uc_fabric *fabric;
    struct rdma_cm_id *id;
    const struct uc_fabric_target_ops *ops;
    void *context;
};

enum uc_verbs_state {
    UC_VERBS_CONNECTING, /* initiator: in fabric.pending; operations wait in line */
    UC_VERBS_ACCEPTING,  /* target: in fabric.pending; the peer may use the queue pair already */
    UC_VERBS_READY,      /* in fabric.active or fabric.passive */
    UC_VERBS_FAILED,     /* in fabric.failed: poll will quiesce, flush and tell the owner */
    UC_VERBS_CLOSED,     /* no queue pair: nothing lands, and operations are refused */
};

/** What both sides of a connection found that they can do. A plain value. */
struct uc_verbs_agreement {
    uint8_t responder_resources; /* READs of the peer that this side serves at a time */
    uint8_t initiator_depth;     /* READs of this side in flight */
    enum ibv_mtu mtu;            /* in: the most that the peer can do; out: what is used */
};

/** Operations in order, linked by their `next`. */
struct uc_verbs_op_queue {
    struct uc_fabric_op *head;
    struct uc_fabric_op *tail;
};

/**
 * One connection of an endpoint. An initiator numbers the work requests of each from 1; the number and
 * the index of the queue pair are the request's wr_id.
 */
struct uc_verbs_queue_pair {
    struct uc_verbs_cm_owner owner; /* first */
    bool is_connected;              /* initiator: answered; target: confirmed by the peer */
    struct uc_fabric_endpoint *endpoint;
    struct rdma_cm_id *id;
    struct ibv_qp *qp;

    bool is_broken; /* a work request failed: nothing is confirmed any more */
    bool is_dirty;  /* WRITEs were posted that no FLUSH has followed */
    uint64_t posted_seq;
    uint64_t seen_seq; /* of the last completion, good or bad */
    uint64_t done_seq; /* confirmed by a successful completion */
    uint64_t sent_bytes;
    uint64_t confirmed_bytes;
    uint64_t unsignalled_bytes;
    uint64_t *marks; /* sent_bytes up to a work request that reports, by its number */
};

struct uc_fabric_endpoint {
    struct uc_list node; /* in one of the fabric's lists */
    struct uc_fabric *fabric;
    struct uc_fabric_domain *domain;
    struct uc_verbs_queue_pair pairs[UC_VERBS_PAIRS_MAX];
    uint32_t pair_count; /* of the whole group, also while some have yet to come */
    enum uc_verbs_state state;
    bool is_target;
    bool released;        /* the owner has let go: nothing is told any more */
    uint64_t deadline_ms; /* in fabric.pending */
    uint64_t timeout_ms;
    struct uc_verbs_hello hello; /* nonce and wishes of the initiator, on both sides */

    /* Why it failed, and the work request that did (0 = none). */
    enum uc_status failure;
    enum ibv_wc_status culprit_status;
    uint64_t culprit_id;
    char failure_text[UC_VERBS_TEXT_BYTES];

    /* Initiator. */
    struct sockaddr_storage address; /* of the peer */
    struct ibv_cq *cq;
    bool armed;
    unsigned unacked_events;
    uint32_t send_depth; /* of each queue pair */
    struct uc_verbs_limits limits;
    struct uc_verbs_op_queue waiting;      /* the head may be posted in part */
    struct uc_verbs_op_queue flying;       /* in the order posted, whatever the queue pair */
    struct uc_verbs_queue_pair *last_pair; /* that work was given to last */
    void (*on_state)(void *context, struct uc_fabric_endpoint *endpoint, enum uc_status status);
    struct uc_fabric_region_key *regions;
    size_t region_count;
    uint64_t *marks; /* of all queue pairs */

    /* Target. */
    const struct uc_fabric_target_ops *target_ops;
    enum uc_fabric_access access;
    void *peer;

    void *context; /* of on_state, or of target_ops */
};

/* device.c */

/** Open "name" or "name:port", else the device of the route, else the first active one. May block. */
UC_MUST_CHECK enum uc_status uc_verbs_device_open(
        const struct uc_fabric_config *config, struct uc_fabric *fabric);
/**
 * Never blocks: the name the fabric was opened with was looked up then, others must be numeric.
 * NULL = any, for listeners.
 */
UC_MUST_CHECK enum uc_status uc_verbs_address_resolve(const struct uc_fabric *fabric,
        const char *address, uint16_t port, struct sockaddr_storage *address_out);

/* fabric.c */

/** Between enter and leave endpoints are not freed. Calls nest. */
void uc_verbs_fabric_enter(struct uc_fabric *fabric);
void uc_verbs_fabric_leave(struct uc_fabric *fabric);
uint64_t uc_verbs_now_ms(void);

void uc_verbs_fabric_caps(const struct uc_fabric *fabric, struct uc_fabric_caps *caps_out);
size_t uc_verbs_fabric_poll(struct uc_fabric *fabric, size_t budget);
bool uc_verbs_fabric_arm(struct uc_fabric *fabric);
uint64_t uc_verbs_fabric_next_deadline_ms(const struct uc_fabric *fabric);

/* domain.c */

enum uc_status uc_verbs_domain_open(struct uc_fabric *fabric, struct uc_fabric_domain **domain_out);
void uc_verbs_domain_close(struct uc_fabric_domain *domain);

/* region.c */

enum uc_status uc_verbs_region_register(struct uc_fabric_domain *domain,
        const struct uc_fabric_memory *memory, uint32_t region_idx, enum uc_fabric_access access,
        struct uc_fabric_region **region_out);
void uc_verbs_region_deregister(struct uc_fabric_region *region);
void uc_verbs_region_key(
        const struct uc_fabric_region *region, struct uc_fabric_region_key *key_out);

/* cm.c */

/** Handle at most @p budget events of rdma_cm. @return events handled */
size_t uc_verbs_cm_poll(struct uc_fabric *fabric, size_t budget);
/** Handle the asynchronous events of the device. @return events handled */
size_t uc_verbs_async_poll(struct uc_fabric *fabric);

/* listener.c */

enum uc_status uc_verbs_listen(struct uc_fabric *fabric, const struct uc_fabric_listen *params,
        struct uc_fabric_listener **listener_out);
uint16_t uc_verbs_listener_port(const struct uc_fabric_listener *listener);
void uc_verbs_listener_close(struct uc_fabric_listener *listener);

/* admission.c */

/** A peer asks to connect, or for another queue pair: decide, and own or destroy event->id. */
void uc_verbs_admit(struct uc_fabric_listener *listener, const struct uc_verbs_cm_event *event);

/** The peer has confirmed one of the queue pairs: the last one makes the endpoint ready. */
void uc_verbs_admission_confirmed(struct uc_verbs_queue_pair *pair);

/* connect.c */

enum uc_status uc_verbs_connect(struct uc_fabric_domain *domain,
        const struct uc_fabric_connect *params, struct uc_fabric_endpoint **endpoint_out);

/* Steps of connecting, each started by an event of rdma_cm. */
void uc_verbs_connect_address_resolved(struct uc_verbs_queue_pair *pair);
void uc_verbs_connect_route_resolved(struct uc_verbs_queue_pair *pair);
void uc_verbs_connect_answered(
        struct uc_verbs_queue_pair *pair, const struct uc_verbs_cm_event *event);
void uc_verbs_connect_rejected(
        struct uc_verbs_queue_pair *pair, const struct uc_verbs_cm_event *event);

/* endpoint.c */

/** An endpoint in no list, without ids and queue pairs. @return NULL without memory */
struct uc_fabric_endpoint *uc_verbs_endpoint_create(struct uc_fabric_domain *domain);
/** Free one that nobody was told about. */
void uc_verbs_endpoint_discard(struct uc_fabric_endpoint *endpoint);
/** Move to the list that @p state stands for. */
void uc_verbs_endpoint_set_state(struct uc_fabric_endpoint *endpoint, enum uc_verbs_state state);
/** It is broken: poll will do the rest. The first reason is kept. */
void uc_verbs_endpoint_fail(struct uc_fabric_endpoint *endpoint, enum uc_status status,
        const char *format, ...) UC_PRINTF(3, 4);
/** Quiesce a failed endpoint, flush it and tell its owner. @return callbacks run */
size_t uc_verbs_endpoint_conclude(struct uc_fabric_endpoint *endpoint);
void uc_verbs_endpoint_fence(struct uc_fabric_endpoint *endpoint);
void uc_verbs_endpoint_disconnect(struct uc_fabric_endpoint *endpoint);
/** Free what is in fabric.released. */
void uc_verbs_endpoints_sweep(struct uc_fabric *fabric);

/* queue_pair.c */

/** Make the queue pair (initiators: the first with a completion queue for all), still in RESET. */
UC_MUST_CHECK enum uc_status uc_verbs_queue_pair_create(struct uc_verbs_queue_pair *pair);
/** RESET → INIT; @p access_flags is all that the peer may do with it. */
UC_MUST_CHECK enum uc_status uc_verbs_queue_pair_init(
        struct uc_verbs_queue_pair *pair, unsigned access_flags);
/** INIT → ready to receive → ready to send. The MTU becomes what is used. */
UC_MUST_CHECK enum uc_status uc_verbs_queue_pair_start(
        struct uc_verbs_queue_pair *pair, struct uc_verbs_agreement *agreement);
/** All to ERROR, drain, destroy. After it nothing of the endpoint can touch memory of this side. */
void uc_verbs_queue_pairs_destroy(struct uc_fabric_endpoint *endpoint);

static inline uint32_t
uc_verbs_queue_pair_idx(const struct uc_verbs_queue_pair *pair)
{
    return (uint32_t)(pair - pair->endpoint->pairs);
}

/** @return the wr_id of a work request. */
static inline uint64_t
uc_verbs_request_id(const struct uc_verbs_queue_pair *pair, uint64_t seq)
{
    return seq * UC_VERBS_PAIRS_MAX + uc_verbs_queue_pair_idx(pair);
}

/* post.c */

enum uc_status uc_verbs_post(struct uc_fabric_endpoint *endpoint, struct uc_fabric_op *list);
/** Hand waiting operations to the device as far as there is room. */
void uc_verbs_endpoint_pump(struct uc_fabric_endpoint *endpoint);

/* completion.c */

/** Take completions of the device and run at most @p budget callbacks. @return callbacks run */
size_t uc_verbs_endpoint_poll(struct uc_fabric_endpoint *endpoint, size_t budget);
/** @return whether there is nothing to poll and the next completion will wake the fabric. */
bool uc_verbs_endpoint_arm(struct uc_fabric_endpoint *endpoint);
/** Read the events of the completion channel: who wrote one is no longer armed. */
void uc_verbs_wakeups_read(struct uc_fabric *fabric);
/** The queue pairs are in ERROR: take what is left. */
void uc_verbs_endpoint_drain(struct uc_fabric_endpoint *endpoint);
/** The queue pairs are gone: run on_done of everything. @return callbacks run */
size_t uc_verbs_endpoint_flush(struct uc_fabric_endpoint *endpoint);

/** @return bytes of a path MTU. */
static inline uint32_t
uc_verbs_mtu_bytes(enum ibv_mtu mtu)
{
    return 128U << mtu;
}

/** @return the largest path MTU of at most so many bytes; the largest of all for 0, "not said". */
static inline enum ibv_mtu
uc_verbs_mtu_of_bytes(uint32_t bytes)
{
    enum ibv_mtu mtu = IBV_MTU_4096;

    while (bytes != 0 && mtu > IBV_MTU_256 && uc_verbs_mtu_bytes(mtu) > bytes) {
        mtu--;
    }
    return mtu;
}

static inline void
uc_verbs_op_push(struct uc_verbs_op_queue *queue, struct uc_fabric_op *op)
{
    op->next = NULL;
    if (queue->head == NULL) {
        queue->head = op;
    } else {
        queue->tail->next = op;
    }
    queue->tail = op;
}

static inline struct uc_fabric_op *
uc_verbs_op_pop(struct uc_verbs_op_queue *queue)
{
    struct uc_fabric_op *op = queue->head;

    if (op != NULL) {
        queue->head = op->next;
        op->next = NULL;
    }
    return op;
}

#endif /* UC_VERBS_VERBS_H */
