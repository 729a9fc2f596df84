/* SPDX-License-Identifier: Apache-2.0 */

/** @file fault_fabric_internal.h The wrapping objects. Their inner ones are the real provider's. */

#ifndef UC_FAULT_FABRIC_INTERNAL_H
#define UC_FAULT_FABRIC_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/list.h"
#include "net/fabric.h"
#include "test/fake/fault_fabric.h"

/** What a poll has to do; each is told to every open fabric once. */
struct fault_orders {
    bool release;
    bool reversed;
    bool cut;
};

struct uc_fabric {
    const struct uc_fabric_ops *ops; /* the provider's */
    struct uc_fabric *inner;
    struct uc_list link; /* of all that are open; guarded by the lock of the commands */
    struct uc_list endpoints;
    struct uc_list targets; /* struct fault_target, until close: endpoints outlive their listener */
    int epoll_fd;           /* the provider's descriptor and wake_fd */
    int wake_fd;
    bool needs_registration;
    struct fault_orders orders; /* guarded by the lock of the commands */
};

struct uc_fabric_domain {
    struct uc_fabric *fabric;
    struct uc_fabric_domain *inner;
};

struct uc_fabric_region {
    struct uc_fabric_domain *domain;
    struct uc_fabric_region *inner;
    const uint8_t *address; /* as its owner has it */
    uint8_t *bytes; /* where the provider touches it: elsewhere only for memory of a device */
    void *mapping;  /* of the device's file, or NULL */
    size_t mapping_bytes;
};

struct uc_fabric_listener {
    struct uc_fabric *fabric;
    struct uc_fabric_listener *inner;
};

struct uc_fabric_endpoint {
    struct uc_list link; /* of the fabric */
    struct uc_fabric *fabric;
    struct uc_fabric_endpoint *inner; /* NULL: the provider was never asked */
    struct fault_peer *peer;          /* target side, else NULL */
    struct uc_list ops;               /* struct fault_op in the order posted, until completed */
    enum uc_status early_status;      /* to be told by the next poll; Ok = nothing */
    bool is_closed;                   /* broken or fenced: posts are refused */
    void (*on_state)(void *context, struct uc_fabric_endpoint *endpoint, enum uc_status status);
    void *context;
};

/** A posted operation: the provider gets a copy with regions of its own. */
struct fault_op {
    struct uc_fabric_op inner; /* first: its on_done gets this address */
    struct uc_list link;
    struct uc_fabric_op *op;
    struct uc_fabric_endpoint *endpoint;
    bool is_waiting;   /* the provider has not seen it */
    bool is_held;      /* by a command */
    bool hold_after;   /* its completion will be */
    bool is_corrupt;   /* a byte of it will be wrong */
    bool is_forced;    /* completes with status, unseen by the provider */
    bool is_of_round;  /* is about to be released */
    bool is_completed; /* by the provider, with status */
    enum uc_status status;
    struct uc_fabric_piece pieces[];
};

/** What a listener's owner asked for; outlives the listener. */
struct fault_target {
    struct uc_list link;
    struct uc_fabric *fabric;
    struct uc_fabric_target_ops inner_ops;
    const struct uc_fabric_target_ops *ops;
    void *context;
};

/** What the provider takes for the owner's handle. */
struct fault_peer {
    struct fault_target *target;
    void *peer;
    struct uc_fabric_endpoint *endpoint; /* NULL until connected */
};

/* fault_fabric.c: the commands, as the objects see them. */

/** @return Ok, or the status with which this one is to fail */
enum uc_status fault_take_registration(void);

enum uc_status fault_take_post(void);

/** @return whether this connection is to fail, and how */
bool fault_take_connect(enum uc_fault_connect *how_out, enum uc_status *status_out);

/** Decide what becomes of an operation that is posted now. */
void fault_take_operation(struct fault_op *fault_op);

/** Change counters by these amounts, and wake who waits for them. */
void fault_count(const struct uc_fault_counts *delta);

/** An operation has completed. */
void fault_note_completion(void);

struct fault_orders fault_take_orders(struct uc_fabric *fabric);
bool fault_has_orders(struct uc_fabric *fabric);

enum uc_status fault_fabric_open(
        const struct uc_fabric_config *config, struct uc_fabric **fabric_out);
void fault_fabric_close(struct uc_fabric *fabric);

/* fault_region.c */

enum uc_status fault_region_register(struct uc_fabric_domain *domain,
        const struct uc_fabric_memory *memory, uint32_t region_idx, enum uc_fabric_access access,
        struct uc_fabric_region **region_out);
void fault_region_deregister(struct uc_fabric_region *region);
void fault_region_key(const struct uc_fabric_region *region, struct uc_fabric_region_key *key_out);

/* fault_endpoint.c */

enum uc_status fault_connect(struct uc_fabric_domain *domain,
        const struct uc_fabric_connect *params, struct uc_fabric_endpoint **endpoint_out);
void fault_fence(struct uc_fabric_endpoint *endpoint);
void fault_disconnect(struct uc_fabric_endpoint *endpoint);
enum uc_status fault_post(struct uc_fabric_endpoint *endpoint, struct uc_fabric_op *list);

/** Carry orders out, tell early failures. @return events handled */
size_t fault_endpoints_poll(struct uc_fabric *fabric, const struct fault_orders *orders);

/** @return whether poll has something to do that the provider knows nothing of */
bool fault_endpoints_pending(const struct uc_fabric *fabric);

/** A new endpoint of either side, known to the fabric; aborts without memory. */
struct uc_fabric_endpoint *fault_endpoint_create(struct uc_fabric *fabric);
void fault_endpoint_free(struct uc_fabric_endpoint *endpoint);

/* fault_target.c */

/** @return the table, under this name */
const struct uc_fabric_ops *fault_fabric_table(const char *name);

#endif /* UC_FAULT_FABRIC_INTERNAL_H */
