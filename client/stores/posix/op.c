/* SPDX-License-Identifier: Apache-2.0 */

#include "client/stores/posix/op.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum uc_status
uc_posix_slot_init(struct uc_posix_slot *slot)
{
    memset(slot, 0, sizeof(*slot));
    uc_list_init(&slot->link);
    slot->pages =
            aligned_alloc(UC_BLOCK_PAGE_BYTES, UC_POSIX_PAGE_COUNT * (size_t)UC_BLOCK_PAGE_BYTES);
    if (slot->pages == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "posix store: no memory for transfers");
    }

    memset(slot->pages, 0, UC_POSIX_PAGE_COUNT * (size_t)UC_BLOCK_PAGE_BYTES);
    return UC_OK;
}

void
uc_posix_slot_fini(struct uc_posix_slot *slot)
{
    if (slot->device != NULL) {
        slot->device_ops->unregister_host(slot->device, slot->bounce);
        slot->device = NULL;
    }
    if (slot->ticket != NULL) {
        slot->device_ops->ticket_destroy(slot->ticket);
        slot->ticket = NULL;
    }
    free(slot->pages);
    free(slot->bounce);
    slot->pages = NULL;
    slot->bounce = NULL;
}

void
uc_posix_op_start(struct uc_posix_op *op)
{
    op->root = uc_posix_root_of(op->env->roots, &op->id);
    op->fd = -1;
    op->step = op->is_dump ? uc_posix_dump_start : uc_posix_load_start;
    op->is_direct = false;
    op->is_bounced = false;
    op->bounce_at = 0;
    op->has_temp = false;
    op->is_published = false;
    op->is_new = false;
    op->copy_status = UC_OK;
    op->status = UC_OK;
    op->slot->io.result = 0;
    op->slot->io.kind = UC_POSIX_IO_CLOSE;
}

bool
uc_posix_op_next(struct uc_posix_op *op)
{
    const struct uc_posix_io *io = &op->slot->io;

    /* A descriptor that was opened must not get lost if the transfer ends here. */
    if (io->kind == UC_POSIX_IO_OPEN && io->result >= 0) {
        op->fd = (int)io->result;
        op->has_temp = op->has_temp || (io->flags & O_EXCL) != 0;
    }
    if (io->kind == UC_POSIX_IO_COPY) {
        atomic_store_explicit(&op->is_copied, false, memory_order_relaxed);
        op->copy_status = op->copy_status == UC_OK ? (enum uc_status)io->result : op->copy_status;
    }
    if (atomic_load_explicit(&op->cancelled, memory_order_relaxed) && !op->is_published &&
            io->kind != UC_POSIX_IO_RENAME && !(io->kind == UC_POSIX_IO_COPY && !op->is_dump)) {
        return uc_posix_op_end(op, UC_ERR_TIMEOUT);
    }

    return op->step(op);
}

bool
uc_posix_op_end(struct uc_posix_op *op, enum uc_status status)
{
    if (op->fd >= 0) {
        (void)close(op->fd);
        op->fd = -1;
    }
    if (op->has_temp) {
        (void)unlinkat(op->root->owner_fd, op->slot->temp, 0);
        op->has_temp = false;
    }
    op->status = status;
    return false;
}

bool
uc_posix_op_fail(struct uc_posix_op *op, int error, const char *what)
{
    return uc_posix_op_end(op,
            uc_posix_health_failed(op->env->health, error, what, op->root->path, op->slot->path));
}

static bool
is_aligned(const struct uc_posix_op *op)
{
    for (size_t idx = 0; idx < op->pointer_count; idx++) {
        if (op->sizes[idx] % UC_BLOCK_PAGE_BYTES != 0 ||
                (op->sizes[idx] > 0 && (uintptr_t)op->pointers[idx] % UC_BLOCK_PAGE_BYTES != 0)) {
            return false;
        }
    }

    return true;
}

bool
uc_posix_op_must_bounce(const struct uc_posix_op *op)
{
    return op->on_device != NULL || op->pointer_count > UC_POSIX_PIECES_MAX ||
           (op->is_direct && !is_aligned(op));
}

unsigned
uc_posix_op_pieces(struct uc_posix_op *op)
{
    unsigned count = 0;

    for (size_t idx = 0; idx < op->pointer_count; idx++) {
        if (op->sizes[idx] > 0) {
            op->slot->iov[count].iov_base = op->pointers[idx];
            op->slot->iov[count].iov_len = op->sizes[idx];
            count++;
        }
    }
    return count;
}

bool
uc_posix_op_transfer(struct uc_posix_op *op, enum uc_posix_io_kind kind, unsigned iov_count,
        uint64_t offset, uint64_t bytes, bool (*step)(struct uc_posix_op *op))
{
    op->slot->io = (struct uc_posix_io){
            .kind = kind,
            .fd = op->fd,
            .iov = op->slot->iov,
            .iov_count = iov_count,
            .offset = offset,
    };
    op->io_offset = offset;
    op->io_bytes = bytes;
    op->step = step;
    return true;
}
