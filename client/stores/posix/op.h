/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file op.h
 * The transfer of one block, as a chain of kernel calls. An engine asks for the next call, runs it, and asks
 * again until there is none; how the calls are run is its own affair.
 *
 * An op belongs to the progress thread until it is given to an engine, then to the engine until that
 * reports its end, then to the progress thread again. Only `cancelled` is set from outside meanwhile.
 */

#ifndef UC_POSIX_OP_H
#define UC_POSIX_OP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/block.h>
#include <ucm/status.h>

#include "client/stores/posix/assembly.h"
#include "client/stores/posix/block_footer.h"
#include "client/stores/posix/config.h"
#include "client/stores/posix/health.h"
#include "client/stores/posix/io.h"
#include "client/stores/posix/regions.h"
#include "client/stores/posix/roots.h"
#include "core/base/list.h"

struct uc_posix_job;

/** What all transfers of a store share. */
struct uc_posix_env {
    const struct uc_posix_config *config;
    struct uc_posix_roots *roots;
    struct uc_posix_health *health;
    const struct uc_posix_regions *regions;
};

enum {
    UC_POSIX_PIECES_MAX = 62, /* of memory per call; more go through a bounce buffer */
};

/* The pages of a slot. */
enum {
    UC_POSIX_PAGE_FOOTER,
    UC_POSIX_PAGE_SINK, /* padding that is read goes here */
    UC_POSIX_PAGE_ZERO, /* padding that is written comes from here */
    UC_POSIX_PAGE_COUNT,
};

/** What a transfer needs while it runs. Made once per place of the engine, and used again. */
struct uc_posix_slot {
    struct uc_list link;
    struct uc_posix_io io;
    struct iovec iov[UC_POSIX_PIECES_MAX + 2]; /* pieces, padding, footer */
    uint8_t *pages;                            /* UC_POSIX_PAGE_COUNT of them, aligned */
    uint8_t *bounce;                           /* aligned; grown when a transfer needs more */
    uint64_t bounce_bytes;
    const struct uc_device_ops *device_ops;
    struct uc_device *device; /* that knows the bounce buffer, borrowed; NULL = none */
    struct uc_device_ticket *ticket;
    char path[UC_POSIX_PATH_BYTES];
    char temp[UC_POSIX_TEMP_BYTES];
};

struct uc_posix_op {
    struct uc_list link;
    struct uc_posix_job *job;
    const struct uc_posix_env *env;
    struct uc_posix_slot *slot;           /* while an engine has it */
    struct uc_posix_assembly *assembly;   /* of a dump that is a part of its block */
    bool (*step)(struct uc_posix_op *op); /* what the result of the last call leads to */

    struct uc_block_id id;
    void *const *pointers;
    const uint64_t *sizes;
    size_t pointer_count;
    const bool *on_device; /* per pointer: a device copies it; NULL: none is */
    uint64_t offset;       /* in the block */
    uint64_t bytes;

    const struct uc_posix_root *root;
    uint64_t file_bytes;
    uint64_t footer_offset;
    uint64_t io_offset; /* of the running read or write, in the file */
    uint64_t io_bytes;  /* that it must move */
    uint64_t bounce_at; /* where the pieces begin in the bounce buffer */
    int fd;
    bool is_dump;
    bool is_direct;             /* the file was opened with O_DIRECT */
    bool is_bounced;            /* the bytes go through slot->bounce */
    bool has_temp;              /* slot->temp exists and is this op's to remove */
    bool is_published;          /* the block is visible */
    bool is_new;                /* published by this op: counts for the capacity */
    bool is_collected;          /* of the progress thread: given to the helper */
    bool is_ended;              /* of the progress thread: the job knows */
    enum uc_status copy_status; /* of the copies that were to be started */
    enum uc_status status;
    atomic_bool is_copied; /* a device is at it: what takes long is not the medium */
    atomic_bool cancelled; /* the deadline has passed: no further call is started */
};

static inline uint8_t *
uc_posix_page(const struct uc_posix_slot *slot, size_t idx)
{
    return slot->pages + idx * UC_BLOCK_PAGE_BYTES;
}

UC_MUST_CHECK enum uc_status uc_posix_slot_init(struct uc_posix_slot *slot);
void uc_posix_slot_fini(struct uc_posix_slot *slot);

/** Put an op whose block, memory and kind are filled in before its first call. */
void uc_posix_op_start(struct uc_posix_op *op);

/**
 * Take the result of the last call, if any, and fill slot->io with the next one.
 *
 * @return false: the transfer is over, status says how, nothing of it is open or in flight
 */
bool uc_posix_op_next(struct uc_posix_op *op);

/* Shared by the files that implement the two directions. */

/** End the transfer: close, remove what is temporary. @return false */
bool uc_posix_op_end(struct uc_posix_op *op, enum uc_status status);

/** The last call failed with an errno: end the transfer. @return false */
bool uc_posix_op_fail(struct uc_posix_op *op, int error, const char *what);

/** @return whether the pieces go through a bounce buffer, and not straight into or out of the call. */
bool uc_posix_op_must_bounce(const struct uc_posix_op *op);

/** Put the pieces into slot->iov. @return their number; there are at most UC_POSIX_PIECES_MAX */
unsigned uc_posix_op_pieces(struct uc_posix_op *op);

/**
 * Have a bounce buffer of that many bytes, known to the device if one copies the pieces.
 *
 * @retval UC_ERR_OUT_OF_MEMORY, UC_ERR_OS_API
 */
UC_MUST_CHECK enum uc_status uc_posix_op_bounce(struct uc_posix_op *op, uint64_t bytes);

/** Start a read or write of slot->iov. @return true */
bool uc_posix_op_transfer(struct uc_posix_op *op, enum uc_posix_io_kind kind, unsigned iov_count,
        uint64_t offset, uint64_t bytes, bool (*step)(struct uc_posix_op *op));

/**
 * Move the pieces from the bounce buffer, or into it. A device goes on by itself; the step comes when it is through and
 * finds the outcome in copy_status.
 *
 * @return whether there is a call to wait for; else the op has ended
 */
bool uc_posix_op_copy(struct uc_posix_op *op, bool (*step)(struct uc_posix_op *op));

bool uc_posix_load_start(struct uc_posix_op *op);
bool uc_posix_dump_start(struct uc_posix_op *op);

#endif /* UC_POSIX_OP_H */
