/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Dump: write a temporary file, make it durable as configured, rename it. A name of a block never leads to
 * a file that is not complete. A block that comes in parts gathers in the temporary file of its assembly.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "client/stores/posix/lookup.h"
#include "client/stores/posix/op.h"

static bool dump_opened(struct uc_posix_op *op);
static bool dump_written(struct uc_posix_op *op);
static bool dump_footer_written(struct uc_posix_op *op);
static bool dump_synced(struct uc_posix_op *op);
static bool dump_closed(struct uc_posix_op *op);
static bool dump_part_closed(struct uc_posix_op *op);
static bool dump_renamed(struct uc_posix_op *op);
static bool dump_folder_opened(struct uc_posix_op *op);
static bool dump_folder_synced(struct uc_posix_op *op);

static bool
has_capacity(const struct uc_posix_op *op)
{
    return op->env->config->capacity_bytes != 0 || op->env->config->capacity_blocks != 0;
}

/* With a configured length every dump of a block has the same bytes: a file that is there is kept. */
static bool
is_present(const struct uc_posix_op *op)
{
    uint64_t block_bytes = op->env->config->block_bytes;
    uint64_t footer_offset = 0;
    struct stat facts;

    return block_bytes != 0 &&
           fstatat(op->root->fd, op->slot->path, &facts, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISREG(facts.st_mode) &&
           uc_block_footer_offset((uint64_t)facts.st_size, &footer_offset) == UC_OK &&
           footer_offset == uc_block_padded(block_bytes);
}

/* The parts written so far are of no use any more. */
static void
drop_assembly_file(struct uc_posix_op *op)
{
    struct uc_posix_assembly *assembly = op->assembly;

    if (assembly != NULL && assembly->has_temp) {
        (void)unlinkat(op->root->owner_fd, assembly->temp, 0);
        assembly->has_temp = false;
        uc_range_set_fini(&assembly->written);
    }
}

static bool
keep_present(struct uc_posix_op *op)
{
    if (has_capacity(op)) {
        uc_posix_touch(op->env, &op->id);
    }
    drop_assembly_file(op);
    uc_posix_count(op->env->health, UC_POSIX_COUNT_dumps_skipped, 1);
    op->is_published = true;
    return uc_posix_op_end(op, UC_OK);
}

/* @return whether this part can be written with O_DIRECT: it begins and ends at pages, or at the block's end */
static bool
is_direct_part(const struct uc_posix_op *op)
{
    uint64_t end = op->offset + op->bytes;

    return op->offset % UC_BLOCK_PAGE_BYTES == 0 &&
           (end % UC_BLOCK_PAGE_BYTES == 0 || end == op->env->config->block_bytes);
}

bool
uc_posix_dump_start(struct uc_posix_op *op)
{
    const struct uc_posix_config *config = op->env->config;
    struct uc_posix_slot *slot = op->slot;
    int flags = O_WRONLY | O_CLOEXEC | O_NOFOLLOW;

    uc_posix_block_path(op->env->roots, &op->id, slot->path);
    if (is_present(op)) {
        return keep_present(op);
    }

    op->is_direct = config->direct_io && (op->assembly == NULL || is_direct_part(op));
    if (op->assembly == NULL) {
        uc_posix_temp_name(op->env->roots, slot->temp);
        flags |= O_CREAT | O_EXCL;
    } else {
        memcpy(slot->temp, op->assembly->temp, sizeof(slot->temp));
        flags |= op->assembly->has_temp ? 0 : O_CREAT | O_EXCL;
    }
    slot->io = (struct uc_posix_io){
            .kind = UC_POSIX_IO_OPEN,
            .folder_fd = op->root->owner_fd,
            .path = slot->temp,
            .flags = flags | (op->is_direct ? O_DIRECT : 0),
    };
    op->step = dump_opened;
    return true;
}

/* Write the footer to its page; the rest of the page is zero. The sum is of the bytes that are written. */
static void
make_footer(const struct uc_posix_op *op, uint64_t length, bool with_checksum, uint8_t *page)
{
    void *const bounce = op->slot->bounce;
    struct uc_block_footer footer = {
            .key = op->id,
            .generation = op->env->roots->generation,
            .length_bytes = length,
            .checksum_kind = UC_BLOCK_CHECKSUM_NONE,
    };

    if (with_checksum) {
        footer.checksum_kind = UC_BLOCK_CHECKSUM_XXH3_64;
        footer.checksum = op->is_bounced ? uc_block_checksum(&op->id, footer.generation, &bounce,
                                                   &op->bytes, 1)
                                         : uc_block_checksum(&op->id, footer.generation,
                                                   op->pointers, op->sizes, op->pointer_count);
    }
    memset(page, 0, UC_BLOCK_PAGE_BYTES);
    uc_block_footer_put(page, &footer);
}

/* Copy the pieces into a bounce buffer and zero it up to @p room. */
static bool
gather(struct uc_posix_op *op, uint64_t room, bool (*step)(struct uc_posix_op *op))
{
    enum uc_status status = uc_posix_op_bounce(op, room);

    if (status != UC_OK) {
        return uc_posix_op_end(op, status);
    }
    memset(op->slot->bounce + op->bytes, 0, room - op->bytes);
    return uc_posix_op_copy(op, step);
}

/* Block and footer with one call. */
static bool
write_whole(struct uc_posix_op *op)
{
    struct uc_posix_slot *slot = op->slot;
    uint64_t padded = uc_block_padded(op->bytes);
    uint64_t footer_bytes = op->is_direct ? UC_BLOCK_PAGE_BYTES : UC_BLOCK_FOOTER_BYTES;
    uint8_t *footer = uc_posix_page(slot, UC_POSIX_PAGE_FOOTER);
    unsigned count;

    if (op->copy_status != UC_OK) {
        return uc_posix_op_end(op, op->copy_status);
    }
    make_footer(op, op->bytes, op->env->config->checksum, footer);
    if (op->is_bounced) {
        slot->iov[0].iov_base = slot->bounce;
        slot->iov[0].iov_len = padded;
        count = 1;
    } else {
        count = uc_posix_op_pieces(op);
        if (padded > op->bytes) {
            slot->iov[count].iov_base = uc_posix_page(slot, UC_POSIX_PAGE_ZERO);
            slot->iov[count++].iov_len = padded - op->bytes;
        }
    }
    slot->iov[count].iov_base = footer;
    slot->iov[count++].iov_len = footer_bytes;
    return uc_posix_op_transfer(
            op, UC_POSIX_IO_WRITE, count, 0, padded + footer_bytes, dump_written);
}

static uint64_t
room_of_part(const struct uc_posix_op *op)
{
    return op->is_direct ? uc_block_padded(op->bytes) : op->bytes;
}

static bool
write_part(struct uc_posix_op *op)
{
    uint64_t room = room_of_part(op);
    unsigned count;

    if (op->copy_status != UC_OK) {
        return uc_posix_op_end(op, op->copy_status);
    }
    if (op->is_bounced) {
        op->slot->iov[0].iov_base = op->slot->bounce;
        op->slot->iov[0].iov_len = room;
        count = 1;
    } else {
        count = uc_posix_op_pieces(op);
    }
    return uc_posix_op_transfer(op, UC_POSIX_IO_WRITE, count, op->offset, room, dump_written);
}

/* Its file stays for the other parts. */
static bool
start_part(struct uc_posix_op *op)
{
    op->assembly->has_temp = true;
    op->has_temp = false;
    if (op->bytes == 0) {
        op->slot->io.result = 0;
        op->io_bytes = 0;
        return dump_written(op);
    }
    return uc_posix_op_must_bounce(op) ? gather(op, room_of_part(op), write_part) : write_part(op);
}

static bool
start_whole(struct uc_posix_op *op)
{
    return uc_posix_op_must_bounce(op) ? gather(op, uc_block_padded(op->bytes), write_whole)
                                       : write_whole(op);
}

static bool
dump_opened(struct uc_posix_op *op)
{
    if (op->slot->io.result < 0) {
        int error = (int)-op->slot->io.result;

        /* Somebody removed the folder of this instance: no dump can succeed any more. */
        return uc_posix_op_fail(op, error == ENOENT ? ESTALE : error, "create a file for");
    }

    return op->assembly == NULL ? start_whole(op) : start_part(op);
}

/* @return whether the call wrote all it had to; otherwise the op has ended */
static bool
wrote_all(struct uc_posix_op *op)
{
    int64_t result = op->slot->io.result;
    struct statvfs facts;
    int error = EIO;

    if (result < 0) {
        error = (int)-result;
    } else if ((uint64_t)result == op->io_bytes) {
        return true;
    } else if (fstatvfs(op->fd, &facts) == 0 &&
               (uint64_t)facts.f_bavail * facts.f_frsize < op->io_bytes) {
        error = ENOSPC; /* a full disk shortens a write before it refuses one */
    }

    (void)uc_posix_op_fail(op, error, "write");
    return false;
}

static bool
sync_file(struct uc_posix_op *op)
{
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}};

    /* The order of removal. Finer than the clock that the kernel stamps files with. */
    if (has_capacity(op) && clock_gettime(CLOCK_REALTIME, &times[1]) == 0) {
        (void)futimens(op->fd, times);
    }
    if (op->env->config->fsync == UC_POSIX_FSYNC_NONE) {
        op->slot->io.result = 0;
        return dump_synced(op);
    }

    op->slot->io = (struct uc_posix_io){
            .kind = op->env->config->fsync == UC_POSIX_FSYNC_DATA ? UC_POSIX_IO_SYNC
                                                                  : UC_POSIX_IO_SYNC_FULL,
            .fd = op->fd,
    };
    op->step = dump_synced;
    return true;
}

static bool
close_file(struct uc_posix_op *op, bool (*step)(struct uc_posix_op *op))
{
    op->slot->io = (struct uc_posix_io){.kind = UC_POSIX_IO_CLOSE, .fd = op->fd};
    op->fd = -1; /* whatever close answers */
    op->step = step;
    return true;
}

static bool
write_footer(struct uc_posix_op *op)
{
    uint8_t *footer = uc_posix_page(op->slot, UC_POSIX_PAGE_FOOTER);
    uint64_t block_bytes = op->env->config->block_bytes;
    uint64_t footer_bytes = op->is_direct ? UC_BLOCK_PAGE_BYTES : UC_BLOCK_FOOTER_BYTES;

    /* The bytes of the other parts are no longer in memory. */
    make_footer(op, block_bytes, false, footer);
    op->slot->iov[0].iov_base = footer;
    op->slot->iov[0].iov_len = footer_bytes;
    return uc_posix_op_transfer(op, UC_POSIX_IO_WRITE, 1, uc_block_padded(block_bytes),
            footer_bytes, dump_footer_written);
}

static bool
dump_written(struct uc_posix_op *op)
{
    if (!wrote_all(op)) {
        return false;
    }

    uc_posix_count(op->env->health, UC_POSIX_COUNT_bytes_dumped, op->bytes);
    if (op->assembly == NULL) {
        return sync_file(op);
    }
    if (uc_range_set_add(&op->assembly->written, op->offset, op->bytes) != UC_OK) {
        return uc_posix_op_end(op, UC_ERR_OUT_OF_MEMORY);
    }
    if (uc_range_set_covers(&op->assembly->written, op->env->config->block_bytes)) {
        return write_footer(op);
    }
    return close_file(op, dump_part_closed);
}

static bool
dump_footer_written(struct uc_posix_op *op)
{
    return wrote_all(op) ? sync_file(op) : false;
}

static bool
dump_synced(struct uc_posix_op *op)
{
    if (op->slot->io.result < 0) {
        return uc_posix_op_fail(op, (int)-op->slot->io.result, "sync");
    }

    return close_file(op, dump_closed);
}

static bool
dump_part_closed(struct uc_posix_op *op)
{
    if (op->slot->io.result < 0) {
        return uc_posix_op_fail(op, (int)-op->slot->io.result, "close");
    }

    return uc_posix_op_end(op, UC_OK);
}

static bool
rename_file(struct uc_posix_op *op)
{
    op->slot->io = (struct uc_posix_io){
            .kind = UC_POSIX_IO_RENAME,
            .folder_fd = op->root->owner_fd,
            .path = op->slot->temp,
            .new_folder_fd = op->root->fd,
            .new_path = op->slot->path,
    };
    op->step = dump_renamed;
    return true;
}

static bool
dump_closed(struct uc_posix_op *op)
{
    if (op->slot->io.result < 0) {
        return uc_posix_op_fail(op, (int)-op->slot->io.result, "close");
    }

    op->io_bytes = 0; /* no attempt to rename yet */
    return rename_file(op);
}

static bool
published(struct uc_posix_op *op)
{
    uc_posix_count(op->env->health, UC_POSIX_COUNT_blocks_dumped, 1);
    op->is_new = has_capacity(op);
    return uc_posix_op_end(op, UC_OK);
}

static bool
dump_renamed(struct uc_posix_op *op)
{
    int error = (int)-op->slot->io.result;

    if (error == ENOENT && op->io_bytes == 0) {
        /* The first block of its folder. */
        op->io_bytes = 1;
        error = uc_posix_make_shard(op->env->roots, op->root, op->slot->path);
        if (error == 0) {
            return rename_file(op);
        }
    }
    if (error != 0) {
        return uc_posix_op_fail(op, error, "rename to");
    }

    op->has_temp = false;
    op->is_published = true;
    if (op->assembly != NULL) {
        op->assembly->has_temp = false;
        uc_range_set_fini(&op->assembly->written);
        uc_posix_temp_name(op->env->roots, op->assembly->temp);
    }
    if (op->env->config->fsync != UC_POSIX_FSYNC_FULL) {
        return published(op);
    }

    *strrchr(op->slot->path, '/') = '\0'; /* the folder, which holds the new name */
    op->slot->io = (struct uc_posix_io){
            .kind = UC_POSIX_IO_OPEN,
            .folder_fd = op->root->fd,
            .path = op->slot->path,
            .flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
    };
    op->step = dump_folder_opened;
    return true;
}

static bool
dump_folder_opened(struct uc_posix_op *op)
{
    if (op->slot->io.result < 0) {
        return uc_posix_op_fail(op, (int)-op->slot->io.result, "open the folder");
    }

    op->slot->io = (struct uc_posix_io){.kind = UC_POSIX_IO_SYNC_FULL, .fd = op->fd};
    op->step = dump_folder_synced;
    return true;
}

static bool
dump_folder_synced(struct uc_posix_op *op)
{
    if (op->slot->io.result < 0) {
        return uc_posix_op_fail(op, (int)-op->slot->io.result, "sync the folder");
    }

    return published(op);
}
