/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file chain.h
 * Operations cut into work requests: the local side over the device's pieces per request, the whole over
 * its message size. Pure: fills memory, posts nothing. Data path.
 */

#ifndef UC_VERBS_CHAIN_H
#define UC_VERBS_CHAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "net/fabric.h"

enum {
    UC_VERBS_CHAIN_MAX = 32, /* work requests handed to the device at once */
    UC_VERBS_SGE_MAX = 16,   /* pieces of one work request; portable */
    /* A long chain of large messages must not hold back the completion of its first operation. */
    UC_VERBS_SIGNAL_BYTES = 128 * 1024,
    UC_VERBS_FLUSH_BYTES = 8,
};

/** What one work request may carry. A plain value. */
struct uc_verbs_limits {
    uint32_t sge_count;     /* 1 … UC_VERBS_SGE_MAX */
    uint32_t message_bytes; /* > 0 */
};

/** A chain being built. */
struct uc_verbs_chain {
    size_t count;
    size_t sge_count;
    struct ibv_send_wr requests[UC_VERBS_CHAIN_MAX];
    struct ibv_sge sges[UC_VERBS_CHAIN_MAX * UC_VERBS_SGE_MAX];
};

/** Where FLUSH reads to. A plain value. */
struct uc_verbs_scratch {
    void *address;
    uint32_t local_key;
};

/*
 * Meaning of uc_fabric_op.provider_data in this fabric. A FLUSH has a number per queue pair instead: of
 * its work request there, 0 where it has none.
 */
enum {
    UC_VERBS_OP_SENT_BYTES,
    UC_VERBS_OP_PIECE,        /* next piece … */
    UC_VERBS_OP_PIECE_OFFSET, /* … and how much of it is in a work request already */
    UC_VERBS_OP_LAST_ID,      /* set by post: wr_id of its last work request */
};

/** Start over with an empty chain. */
void uc_verbs_chain_reset(struct uc_verbs_chain *chain);

/**
 * Append work requests of @p op, continuing where the last call stopped, until it is whole or the
 * chain holds @p request_max. The operation has been validated.
 *
 * @return true when all of the operation is in a chain
 */
bool uc_verbs_chain_add(struct uc_verbs_chain *chain, size_t request_max,
        const struct uc_verbs_limits *limits, const struct uc_fabric_region_key *remote,
        const struct uc_verbs_scratch *scratch, struct uc_fabric_op *op);

#endif /* UC_VERBS_CHAIN_H */
