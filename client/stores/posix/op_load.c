/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Load: open, read, verify. A file is never changed once it is visible, so that one descriptor sees one
 * writer's block whatever happens to the name meanwhile.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/stores/posix/op.h"

static bool load_opened(struct uc_posix_op *op);
static bool load_whole_read(struct uc_posix_op *op);
static bool load_part_read(struct uc_posix_op *op);
static bool load_footer_read(struct uc_posix_op *op);

bool
uc_posix_load_start(struct uc_posix_op *op)
{
    struct uc_posix_slot *slot = op->slot;

    uc_posix_block_path(op->env->roots, &op->id, slot->path);
    op->is_direct = op->env->config->direct_io;
    slot->io = (struct uc_posix_io){
            .kind = UC_POSIX_IO_OPEN,
            .folder_fd = op->root->fd,
            .path = slot->path,
            .flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | (op->is_direct ? O_DIRECT : 0),
    };
    op->step = load_opened;
    return true;
}

/*
 * the file is no block. Remove its name, so that it is absent for every process, unless somebody has
 * put another file there meanwhile.
 */
static bool
remove_damaged(struct uc_posix_op *op, const char *why)
{
    struct stat held;
    struct stat named;

    uc_posix_health_warn(op->env->health, "posix store: %s/%s: %s; removed", op->root->path,
            op->slot->path, why);
    if (fstat(op->fd, &held) == 0 &&
            fstatat(op->root->fd, op->slot->path, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
            held.st_ino == named.st_ino && held.st_dev == named.st_dev &&
            unlinkat(op->root->fd, op->slot->path, 0) == 0) {
        uc_posix_count(op->env->health, UC_POSIX_COUNT_revoked_blocks, 1);
    }
    return uc_posix_op_end(op, UC_ERR_NOT_FOUND);
}

static bool
read_footer(struct uc_posix_op *op)
{
    struct iovec *iov = op->slot->iov;

    iov[0].iov_base = uc_posix_page(op->slot, UC_POSIX_PAGE_FOOTER);
    iov[0].iov_len = op->is_direct ? UC_BLOCK_PAGE_BYTES : UC_BLOCK_FOOTER_BYTES;
    return uc_posix_op_transfer(op, UC_POSIX_IO_READ, 1, op->footer_offset,
            op->is_direct ? op->file_bytes - op->footer_offset : UC_BLOCK_FOOTER_BYTES,
            load_footer_read);
}

/* Block and footer with one call: pieces, what pads them, footer. */
static bool
read_whole(struct uc_posix_op *op)
{
    struct uc_posix_slot *slot = op->slot;
    uint64_t padding = op->footer_offset - op->bytes;
    uint64_t footer_bytes = op->is_direct ? UC_BLOCK_PAGE_BYTES : UC_BLOCK_FOOTER_BYTES;
    uint64_t room = op->footer_offset + footer_bytes;
    unsigned count;

    if (uc_posix_op_must_bounce(op)) {
        enum uc_status status = uc_posix_op_bounce(op, room);

        if (status != UC_OK) {
            return uc_posix_op_end(op, status);
        }
        slot->iov[0].iov_base = slot->bounce;
        slot->iov[0].iov_len = room;
        count = 1;
    } else {
        count = uc_posix_op_pieces(op);
        if (padding > 0) {
            slot->iov[count].iov_base = uc_posix_page(slot, UC_POSIX_PAGE_SINK);
            slot->iov[count++].iov_len = padding;
        }
        slot->iov[count].iov_base = uc_posix_page(slot, UC_POSIX_PAGE_FOOTER);
        slot->iov[count++].iov_len = footer_bytes;
    }
    return uc_posix_op_transfer(op, UC_POSIX_IO_READ, count, 0,
            room < op->file_bytes ? room : op->file_bytes, load_whole_read);
}

static bool
read_part(struct uc_posix_op *op)
{
    uint64_t first = op->offset;
    uint64_t end = op->offset + op->bytes;
    unsigned count;

    if (op->bytes == 0) {
        return read_footer(op);
    }
    if (uc_posix_op_must_bounce(op) || (op->is_direct && first % UC_BLOCK_PAGE_BYTES != 0)) {
        enum uc_status status;

        first = first / UC_BLOCK_PAGE_BYTES * UC_BLOCK_PAGE_BYTES;
        end = uc_block_padded(end);
        status = uc_posix_op_bounce(op, end - first);
        if (status != UC_OK) {
            return uc_posix_op_end(op, status);
        }
        op->bounce_at = op->offset - first;
        op->slot->iov[0].iov_base = op->slot->bounce;
        op->slot->iov[0].iov_len = end - first;
        count = 1;
    } else {
        count = uc_posix_op_pieces(op);
    }
    return uc_posix_op_transfer(op, UC_POSIX_IO_READ, count, first, end - first, load_part_read);
}

static bool
load_opened(struct uc_posix_op *op)
{
    struct stat facts;

    if (op->slot->io.result == -ENOENT) {
        return uc_posix_op_end(op, UC_ERR_NOT_FOUND);
    }
    if (op->slot->io.result < 0) {
        return uc_posix_op_fail(op, (int)-op->slot->io.result, "open");
    }
    if (fstat(op->fd, &facts) != 0) {
        return uc_posix_op_fail(op, errno, "fstat");
    }
    if (!S_ISREG(facts.st_mode) ||
            uc_block_footer_offset((uint64_t)facts.st_size, &op->footer_offset) != UC_OK) {
        return remove_damaged(op, "not the size of a block file");
    }

    op->file_bytes = (uint64_t)facts.st_size;
    if (op->offset > op->footer_offset || op->bytes > op->footer_offset - op->offset) {
        return read_footer(op); /* which decides whether the file or the range is wrong */
    }
    if (op->offset == 0 && uc_block_padded(op->bytes) == op->footer_offset &&
            op->footer_offset <= UC_POSIX_BLOCK_BYTES_MAX) {
        return read_whole(op);
    }
    return read_part(op);
}

/* The last step: the bytes are where they belong. */
static bool
delivered(struct uc_posix_op *op)
{
    if (op->copy_status == UC_OK) {
        uc_posix_count(op->env->health, UC_POSIX_COUNT_blocks_loaded, 1);
        uc_posix_count(op->env->health, UC_POSIX_COUNT_bytes_loaded, op->bytes);
    }
    return uc_posix_op_end(op, op->copy_status);
}

/* Of the bytes in memory, wherever that is. */
static uint64_t
sum_of(const struct uc_posix_op *op, uint64_t generation)
{
    void *const bounce = op->slot->bounce;

    return op->is_bounced ? uc_block_checksum(&op->id, generation, &bounce, &op->bytes, 1)
                          : uc_block_checksum(&op->id, generation, op->pointers, op->sizes,
                                    op->pointer_count);
}

/* what goes through a bounce buffer goes on only if it is good. */
static bool
verify(struct uc_posix_op *op, const uint8_t *footer_bytes, bool is_whole)
{
    struct uc_block_footer footer;

    if (uc_block_footer_get(footer_bytes, &footer) != UC_OK) {
        return remove_damaged(op, "its footer is damaged");
    }
    if (memcmp(footer.key.bytes, op->id.bytes, sizeof(op->id.bytes)) != 0) {
        return remove_damaged(op, "it holds another block");
    }
    if (footer.length_bytes > op->footer_offset ||
            uc_block_padded(footer.length_bytes) != op->footer_offset) {
        return remove_damaged(op, "its length is damaged");
    }
    if (op->offset > footer.length_bytes || op->bytes > footer.length_bytes - op->offset) {
        return uc_posix_op_end(op, UC_ERR_INVALID_PARAM); /* */
    }
    if (is_whole && op->bytes == footer.length_bytes && op->env->config->checksum &&
            footer.checksum_kind == UC_BLOCK_CHECKSUM_XXH3_64 &&
            sum_of(op, footer.generation) != footer.checksum) {
        return remove_damaged(op, "its checksum is wrong");
    }

    return op->is_bounced ? uc_posix_op_copy(op, delivered) : delivered(op);
}

/* @return whether the call moved all it had to; otherwise the op has ended */
static bool
read_all(struct uc_posix_op *op)
{
    int64_t result = op->slot->io.result;

    if (result < 0) {
        (void)uc_posix_op_fail(op, (int)-result, "read");
        return false;
    }
    if ((uint64_t)result != op->io_bytes) {
        (void)remove_damaged(op, "it is shorter than it was");
        return false;
    }
    return true;
}

static bool
load_whole_read(struct uc_posix_op *op)
{
    const uint8_t *footer = uc_posix_page(op->slot, UC_POSIX_PAGE_FOOTER);

    if (!read_all(op)) {
        return false;
    }
    if (op->is_bounced) {
        footer = op->slot->bounce + op->footer_offset;
    }
    return verify(op, footer, true);
}

static bool
load_part_read(struct uc_posix_op *op)
{
    return read_all(op) ? read_footer(op) : false;
}

static bool
load_footer_read(struct uc_posix_op *op)
{
    return read_all(op) ? verify(op, uc_posix_page(op->slot, UC_POSIX_PAGE_FOOTER), false) : false;
}
