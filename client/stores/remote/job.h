/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file job.h
 * One load or dump: built by the data thread, run by the progress thread, recycled with its arrays, so that a
 * submit allocates nothing once the arrays have grown to the engine's sizes.
 *
 * Blocks that lie on several servers make a job of several parts: one struct uc_job per server, each with its
 * own attachment, bracket and fate. The first of them leads: it has the token and the held memory, gathers the
 * results, and ends last, with the one event.
 *
 * Threads: the data thread until uc_data_plane_submit() has pushed the job, then the progress thread until
 * uc_job_finish().
 */

#ifndef UC_REMOTE_JOB_H
#define UC_REMOTE_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/block.h>
#include <ucm/compiler.h>
#include <ucm/status.h>
#include <ucm/token.h>

#include "client/cluster/server_list.h"
#include "client/stores/remote/memory_table.h"
#include "client/stores/remote/transports.h"
#include "core/base/list.h"
#include "net/fabric.h"
#include "net/rpc/messages.h"
#include "net/slot_footer.h"
#include "net/token_payload.h"

struct uc_attachment;
struct uc_data_plane;
struct uc_job;

enum uc_job_state {
    UC_JOB_WAITING,   /* for its prerequisite or its attachment; nothing has been started */
    UC_JOB_BEGINNING, /* write_begin is under way; no byte has moved */
    UC_JOB_MOVING,    /* operations are posted */
    UC_JOB_ENDING,    /* write_end is under way; no operation is posted */
    UC_JOB_REPORTING, /* the ping behind the reports is under way; no operation is posted */
};

/** A posted operation and whose it is. */
struct uc_job_op {
    struct uc_fabric_op op; /* first member: on_done gets its address */
    struct uc_job *job;
    size_t block_idx; /* SIZE_MAX for the flush */
};

struct uc_job_block {
    const struct uc_block_id *key; /* in the job's copy of the token */
    struct uc_entry entry;
    size_t job_idx;        /* where the engine's job has it */
    uint64_t offset_bytes; /* range of the stored block */
    uint64_t size_bytes;
    uint64_t announced_bytes; /* dump: length that the footer names */
    size_t first_piece;       /* the payload's pieces; one more follows for the footer */
    size_t piece_count;
    size_t pending_ops;
    uint64_t told_bytes;   /* load: of the range, by the transport */
    const char *complaint; /* load: static text to report, or NULL */
    enum uc_status status;
    bool skip;         /* dump: somebody else's bytes count, nothing moves */
    bool is_bounced;   /* goes through a buffer of the plane */
    bool is_on_device; /* some of the payload lies where the processor cannot look */
    size_t slot_idx;   /* of the buffer, once it has one */
    struct uc_fabric_piece bounce_pieces[2]; /* the buffer, and the footer's piece */
};

struct uc_job {
    struct uc_job *next;      /* in a stack: submitted, recycled, free */
    struct uc_job *next_made; /* of all jobs of the plane */
    struct uc_job *lead;      /* of the parts; itself where there is one only */
    struct uc_job *next_part; /* from the lead on */
    struct uc_list link; /* attachment's waiting or active list, or the plane's prerequisites */
    struct uc_list ready_link;
    struct uc_data_plane *plane;
    struct uc_attachment *attachment; /* NULL until it has one */

    uint64_t job_id;
    uint64_t deadline_ms;
    uint64_t prerequisite_handle;
    enum uc_job_state state;
    bool is_dump;
    bool timed_out;
    bool broken; /* an operation may still be under way to the server: write_end says not ok */
    bool rpc_pending;
    enum uc_status rpc_status;
    uint64_t rpc_sent_ms;
    uint64_t bracket;
    size_t pending_ops;
    struct uc_list bounce_link; /* in the line for buffers */
    size_t bounce_next;         /* block to get the next one */
    size_t bounce_left;         /* blocks in line or in a buffer */
    bool flush_due;             /* dump: some bounce, so the flush comes after all writes */
    size_t first_key;           /* of the part, among the keys of its grant */

    /* The token: keys and payload in the lead's token_bytes, which the MAC covers as a whole. */
    struct uc_token token;
    struct uc_token_view view; /* of the copy */
    struct uc_token_node node; /* the one that this part goes to */
    size_t node_idx;
    const struct uc_server_address *server;
    uint8_t *token_bytes;
    size_t token_capacity;

    /* The lead's: what has come of the parts so far. */
    size_t parts_left;
    size_t total_count; /* blocks of the whole job */
    uint8_t *result;    /* a bit per block */
    size_t result_capacity;
    enum uc_status code; /* of the failed block with the lowest index */
    size_t code_idx;
    size_t failed_count;
    size_t moved_count;
    uint64_t moved_bytes;
    bool late; /* a part ran out of time */

    struct uc_job_block *blocks;
    size_t block_count;
    size_t block_capacity;
    struct uc_fabric_piece *pieces;
    struct uc_memory **piece_memory; /* parallel to pieces; NULL = not registered */
    size_t piece_count;
    size_t piece_capacity;
    size_t piece_memory_capacity;
    struct uc_checksum_piece *checksum_pieces; /* of one block at a time */
    size_t checksum_capacity;
    struct uc_job_op *ops;
    size_t op_count;
    size_t op_capacity;
    struct uc_memory **held; /* the lead's: distinct entries that the pieces lie in */
    size_t held_count;
    size_t held_capacity;
    uint8_t *footers; /* UC_FOOTER_BYTES per block, registered with the transports */
    size_t footer_capacity;
    struct uc_local_memory footer_memory;
    uint8_t *ranges; /* of write_end: 24 bytes per block */
    size_t range_capacity;
};

/** The blocks of a job being built that lie on one server. A plain value. */
struct uc_part_plan {
    const struct uc_server_address *server;
    struct uc_job *part; /* NULL = no block */
    size_t before_count; /* keys of the grant before the job's */
    size_t block_count;
    size_t piece_count;
    size_t widest; /* pieces of the block that has most */
};

/** @return a job with empty arrays, or NULL. */
struct uc_job *uc_job_create(struct uc_data_plane *plane);
void uc_job_destroy(struct uc_job *job);

/**
 * Fill a job from what the engine submitted; all of it is checked. Takes further jobs for its parts. Data
 * thread.
 *
 * @retval UC_ERR_INVALID_PARAM  shape, token, regions
 * @retval UC_ERR_OUT_OF_MEMORY
 */
UC_MUST_CHECK enum uc_status uc_job_build(struct uc_job *job, bool is_dump,
        const struct uc_job_descriptor *descriptor, const struct uc_token *token, size_t first_key);

/** Let go of the registered memory that a lead holds. */
void uc_job_release_memory(struct uc_job *job);

/* What follows runs on the progress thread. */

/** Run on an attachment that is ready. May finish the job. */
void uc_job_start(struct uc_job *job);

/** Go on after the last operation or the answer to a call. May finish the job. */
void uc_job_advance(struct uc_job *job);

/** Fail every block that has not failed yet (for a dump: but those that move nothing). */
void uc_job_fail_blocks(struct uc_job *job, enum uc_status status);

/**
 * End a part: no operation of it is posted, no call under way. The last one delivers the event. Parts and
 * lead are recycled and must not be touched any more.
 */
void uc_job_finish(struct uc_job *job);

/** Post ops [first, first + count) in order; refused ones fail their blocks. */
void uc_job_post(struct uc_job *job, size_t first, size_t count);

/** Book the end of an operation; a failure fails its block, that of the flush every block. */
void uc_job_op_ended(struct uc_job_op *job_op, enum uc_status status);

/** Answer to a call that was made for the job (struct uc_job *). */
void uc_job_on_reply(void *context, enum uc_status status, struct uc_rpc_view result);

/** Append the operations that move a block's payload; @p extra_piece takes the footer's piece along. */
void uc_job_add_payload_ops(struct uc_job *job, size_t block_idx, enum uc_fabric_opcode opcode,
        bool extra_piece, void (*on_done)(struct uc_fabric_op *op, enum uc_status status));

/** Append one operation with the block's footer piece. @p offset_bytes: from the start of the slot. */
void uc_job_add_footer_op(struct uc_job *job, size_t block_idx, enum uc_fabric_opcode opcode,
        uint64_t offset_bytes, void (*on_done)(struct uc_fabric_op *op, enum uc_status status));

/** @return where a block's payload is moved from or to: the engine's memory, or a buffer. The footer's follows. */
const struct uc_fabric_piece *uc_job_payload_pieces(
        const struct uc_job *job, const struct uc_job_block *block, size_t *count_out);

/** @return the same as checksum pieces, in a buffer that the next call reuses. */
const struct uc_checksum_piece *uc_job_checksum_pieces(
        struct uc_job *job, const struct uc_job_block *block, size_t *count_out);

/* load.c and dump.c: the two state machines. */
void uc_load_start(struct uc_job *job);
void uc_load_advance(struct uc_job *job);
void uc_dump_start(struct uc_job *job);
void uc_dump_advance(struct uc_job *job);

/** Post the operations of one block that has got its buffer (dump: with its bytes). */
void uc_load_post_block(struct uc_job *job, size_t block_idx);
void uc_dump_post_block(struct uc_job *job, size_t block_idx);

#endif /* UC_REMOTE_JOB_H */
