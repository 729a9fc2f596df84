/* SPDX-License-Identifier: Apache-2.0 */

#include "net/verbs/chain.h"

#include "net/verbs/verbs.h"

void
uc_verbs_chain_reset(struct uc_verbs_chain *chain)
{
    chain->count = 0;
    chain->sge_count = 0;
}

/* Appends a work request without pieces. */
static struct ibv_send_wr *
chain_next(struct uc_verbs_chain *chain, const struct uc_fabric_region_key *remote,
        const struct uc_fabric_op *op, uint64_t sent_bytes)
{
    struct ibv_send_wr *request = &chain->requests[chain->count];

    *request = (struct ibv_send_wr){
            .sg_list = &chain->sges[chain->sge_count],
            .opcode = op->opcode == UC_FABRIC_WRITE ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ,
            .wr.rdma =
                    {
                            .remote_addr = remote->address + op->offset_bytes + sent_bytes,
                            .rkey = (uint32_t)remote->key,
                    },
    };
    if (chain->count > 0) {
        chain->requests[chain->count - 1].next = request;
    }
    chain->count++;
    return request;
}

static void
request_add_sge(struct uc_verbs_chain *chain, struct ibv_send_wr *request, void *address,
        uint32_t length, uint32_t local_key)
{
    chain->sges[chain->sge_count++] = (struct ibv_sge){
            .addr = (uintptr_t)address,
            .length = length,
            .lkey = local_key,
    };
    request->num_sge++;
}

/* Moves as many pieces into the request as it may carry. */
static void
request_fill(struct uc_verbs_chain *chain, struct ibv_send_wr *request,
        const struct uc_verbs_limits *limits, struct uc_fabric_op *op)
{
    uint32_t room_bytes = limits->message_bytes;
    uint64_t idx = op->provider_data[UC_VERBS_OP_PIECE];
    uint64_t offset = op->provider_data[UC_VERBS_OP_PIECE_OFFSET];

    while (idx < op->piece_count && room_bytes > 0 &&
            (uint32_t)request->num_sge < limits->sge_count) {
        const struct uc_fabric_piece *piece = &op->pieces[idx];
        uint64_t left = piece->length_bytes - offset;
        uint32_t length = left < room_bytes ? (uint32_t)left : room_bytes;

        request_add_sge(chain, request, (uint8_t *)piece->address + offset, length,
                piece->region->mr->lkey);
        room_bytes -= length;
        offset += length;
        if (offset == piece->length_bytes) {
            idx++;
            offset = 0;
        }
    }

    op->provider_data[UC_VERBS_OP_PIECE] = idx;
    op->provider_data[UC_VERBS_OP_PIECE_OFFSET] = offset;
    op->provider_data[UC_VERBS_OP_SENT_BYTES] += limits->message_bytes - room_bytes;
}

bool
uc_verbs_chain_add(struct uc_verbs_chain *chain, size_t request_max,
        const struct uc_verbs_limits *limits, const struct uc_fabric_region_key *remote,
        const struct uc_verbs_scratch *scratch, struct uc_fabric_op *op)
{
    if (op->opcode == UC_FABRIC_FLUSH) {
        if (chain->count >= request_max) {
            return false;
        }
        /*
         * A responder executes the requests of one queue pair in order, and its read of memory cannot
         * overtake the writes it made before: when these 8 bytes are here, every earlier WRITE is
         * visible there. IBV_SEND_FENCE would add nothing; it orders a request after earlier READs.
         */
        request_add_sge(chain, chain_next(chain, remote, op, 0), scratch->address,
                UC_VERBS_FLUSH_BYTES, scratch->local_key);
        return true;
    }

    while (op->provider_data[UC_VERBS_OP_PIECE] < op->piece_count) {
        if (chain->count >= request_max) {
            return false;
        }
        request_fill(chain,
                chain_next(chain, remote, op, op->provider_data[UC_VERBS_OP_SENT_BYTES]), limits,
                op);
    }
    return true;
}
