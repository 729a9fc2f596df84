/* SPDX-License-Identifier: Apache-2.0 */

#include "client/stores/cache/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <ucm/log.h>

#include "client/stores/cache/segment_device.h"
#include "core/base/file_reserve.h"
#include "core/base/huge_pages.h"

#define SEGMENT_MAGIC  0x31304547534d4355u /* "UCMSEG01" */
#define SEGMENT_FOLDER "/dev/shm"

enum {
    SEGMENT_VERSION = 2,
    SEGMENT_ALIGN = 4096,
    SLOT_ALIGN = 64,
    NAME_TRIES = 16 /* other owners come and go between two looks at the name */
};

static uint64_t
round_up(uint64_t value, uint64_t align)
{
    return (value + align - 1) / align * align;
}

/* Sizes were bounded by the configuration, or by the file's length. */
static uint64_t
tasks_at(void)
{
    return round_up(sizeof(struct uc_cache_seg_header), SEGMENT_ALIGN);
}

static uint64_t
slots_at(void)
{
    return tasks_at() + round_up(UC_CACHE_TASKS * sizeof(struct uc_cache_task), SEGMENT_ALIGN);
}

static uint64_t
counts_at(uint64_t slot_count)
{
    return slots_at() + round_up(slot_count * sizeof(struct uc_cache_seg_slot), SEGMENT_ALIGN);
}

static uint64_t
bytes_at(uint64_t slot_count)
{
    return counts_at(slot_count) +
           round_up(slot_count * UC_CACHE_ROWS * sizeof(uint16_t), SEGMENT_ALIGN);
}

static uint64_t
total_of(uint64_t slot_count, uint64_t stride)
{
    return bytes_at(slot_count) + round_up(slot_count * stride, SEGMENT_ALIGN);
}

/* Lock or unlock one byte of this open file: it belongs to the descriptor, not to the process or thread. */
static bool
lock_byte(int fd, uint32_t row, short type)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)row, .l_len = 1};

    return fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

static void
point(struct uc_cache_segment *segment, uint64_t slot_count)
{
    uint8_t *base = (uint8_t *)segment->header;

    segment->tasks = (struct uc_cache_task *)(void *)(base + tasks_at());
    segment->slots = (struct uc_cache_seg_slot *)(void *)(base + slots_at());
    segment->counts = (_Atomic uint16_t *)(void *)(base + counts_at(slot_count));
    segment->bytes = base + bytes_at(slot_count);
}

static enum uc_status
map(struct uc_cache_segment *segment, uint64_t total_bytes)
{
    void *mapping =
            mmap(NULL, (size_t)total_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, segment->fd, 0);

    if (mapping == MAP_FAILED) {
        return uc_log_errno(errno, "cache store: map %llu bytes of %s",
                (unsigned long long)total_bytes, segment->path);
    }
    (void)madvise(mapping, (size_t)total_bytes, MADV_DONTDUMP);
    uc_huge_pages_advise(mapping, (size_t)total_bytes);
    segment->header = mapping;
    segment->total_bytes = total_bytes;
    return UC_OK;
}

static struct uc_cache_segment *
allocate(const char *domain)
{
    struct uc_cache_segment *segment = calloc(1, sizeof(*segment));

    if (segment == NULL) {
        (void)uc_error(UC_ERR_OUT_OF_MEMORY, "cache store: no memory for a segment");
        return NULL;
    }
    segment->fd = -1;
    (void)snprintf(segment->path, sizeof(segment->path), SEGMENT_FOLDER "/ucm-cache-%s", domain);
    return segment;
}

static enum uc_status
refuse_size(uint64_t total_bytes)
{
    return uc_error(UC_ERR_NO_SPACE,
            "cache store: " SEGMENT_FOLDER
            " does not hold %llu bytes; lower capacity, or enlarge it",
            (unsigned long long)total_bytes);
}

/* Asked first: reserving would take all that is left before it fails, from everybody. */
static bool
has_room(int fd, uint64_t total_bytes)
{
    struct statvfs room;

    return fstatvfs(fd, &room) != 0 || room.f_blocks == 0 ||
           total_bytes / room.f_frsize < room.f_bavail;
}

/* Pages are taken now: running out of them later would be a signal, not an error. */
static enum uc_status
make_file(struct uc_cache_segment *segment, uint64_t total_bytes)
{
    int error;

    segment->fd = open(SEGMENT_FOLDER, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (segment->fd < 0) {
        return uc_log_errno(errno, "cache store: make a file in " SEGMENT_FOLDER);
    }
    if (!has_room(segment->fd, total_bytes)) {
        return refuse_size(total_bytes);
    }
    error = uc_file_reserve(segment->fd, 0, total_bytes);
    if (error == ENOSPC || error == ENOMEM) {
        return refuse_size(total_bytes);
    }
    if (error != 0) {
        return uc_log_errno(error, "cache store: reserve %llu bytes in " SEGMENT_FOLDER,
                (unsigned long long)total_bytes);
    }
    if (!lock_byte(segment->fd, 0, F_WRLCK)) {
        return uc_log_errno(errno, "cache store: lock a file in " SEGMENT_FOLDER);
    }
    return UC_OK;
}

static bool
is_same_file(int fd, const char *path)
{
    struct stat opened;
    struct stat named;

    return fstat(fd, &opened) == 0 && stat(path, &named) == 0 && opened.st_ino == named.st_ino &&
           opened.st_dev == named.st_dev;
}

/* Remove the name if its owner is dead. Holding the dead one's lock, nobody else removes another's. */
static enum uc_status
clear_name(const char *path)
{
    enum uc_status status = UC_OK;
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);

    if (fd < 0) {
        return errno == ENOENT ? UC_OK : uc_log_errno(errno, "cache store: open %s", path);
    }
    if (!lock_byte(fd, 0, F_WRLCK)) {
        status = uc_error(UC_ERR_DUPLICATE_KEY,
                "cache store: %s belongs to a process that lives; stop it, or set another domain",
                path);
    } else if (is_same_file(fd, path) && unlink(path) != 0 && errno != ENOENT) {
        status = uc_log_errno(errno, "cache store: remove %s of a dead owner", path);
    }
    (void)close(fd);
    return status;
}

static enum uc_status
take_name(struct uc_cache_segment *segment)
{
    char source[64];

    (void)snprintf(source, sizeof(source), "/proc/self/fd/%d", segment->fd);
    for (int try = 0; try < NAME_TRIES; try++) {
        enum uc_status status;

        if (linkat(AT_FDCWD, source, AT_FDCWD, segment->path, AT_SYMLINK_FOLLOW) == 0) {
            segment->has_name = true;
            return UC_OK;
        }
        if (errno != EEXIST) {
            return uc_log_errno(errno, "cache store: name %s", segment->path);
        }
        status = clear_name(segment->path);
        if (status != UC_OK) {
            return status;
        }
    }

    return uc_error(UC_ERR_RETRY, "cache store: %s is taken again and again", segment->path);
}

static enum uc_status
fill_header(struct uc_cache_segment *segment, bool has_checksum)
{
    struct uc_cache_seg_header *header = segment->header;

    if (getrandom(&segment->incarnation, sizeof(segment->incarnation), 0) !=
            sizeof(segment->incarnation)) {
        return uc_log_errno(errno, "cache store: getrandom");
    }
    segment->incarnation |= 1;
    segment->has_checksum = has_checksum;
    header->magic = SEGMENT_MAGIC;
    header->version = SEGMENT_VERSION;
    header->has_checksum = has_checksum;
    header->incarnation = segment->incarnation;
    header->block_bytes = segment->block_bytes;
    header->stride = segment->stride;
    header->slot_count = segment->slot_count;
    header->total_bytes = segment->total_bytes;
    atomic_store_explicit(&header->row_limit, 1, memory_order_release);
    return UC_OK;
}

enum uc_status
uc_cache_segment_create(const char *domain, uint64_t block_bytes, uint64_t slot_count,
        bool has_checksum, struct uc_cache_segment **segment_out)
{
    struct uc_cache_segment *segment = allocate(domain);
    uint64_t total_bytes;
    enum uc_status status;

    if (segment == NULL) {
        return UC_ERR_OUT_OF_MEMORY;
    }

    segment->is_owner = true;
    segment->block_bytes = block_bytes;
    segment->stride = round_up(block_bytes, SLOT_ALIGN);
    segment->slot_count = slot_count;
    total_bytes = total_of(slot_count, segment->stride);
    status = make_file(segment, total_bytes);
    if (status == UC_OK) {
        status = map(segment, total_bytes);
    }
    if (status == UC_OK) {
        status = fill_header(segment, has_checksum);
    }
    if (status == UC_OK && domain[0] != '\0') {
        status = take_name(segment);
    }
    if (status != UC_OK) {
        uc_cache_segment_close(segment);
        return status;
    }

    point(segment, slot_count);
    *segment_out = segment;
    return UC_OK;
}

/* Every number in the header is foreign: nothing is used before the file's length confirms it. */
static enum uc_status
check_header(struct uc_cache_segment *segment, uint64_t block_bytes)
{
    const struct uc_cache_seg_header *header = segment->header;
    uint64_t room = segment->total_bytes;

    if (header->magic != SEGMENT_MAGIC || header->version != SEGMENT_VERSION ||
            header->incarnation == 0) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "cache store: %s is no segment of this version (found version %u)", segment->path,
                header->version);
    }
    segment->block_bytes = header->block_bytes;
    segment->slot_count = header->slot_count;
    segment->stride = header->stride;
    segment->incarnation = header->incarnation;
    segment->has_checksum = header->has_checksum != 0;
    if (segment->block_bytes != block_bytes) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "cache store: %s has blocks of %llu bytes, block_bytes is %llu here; use one "
                "configuration in all processes",
                segment->path, (unsigned long long)segment->block_bytes,
                (unsigned long long)block_bytes);
    }
    if (segment->stride != round_up(block_bytes, SLOT_ALIGN) || segment->slot_count == 0 ||
            segment->slot_count > room / segment->stride ||
            total_of(segment->slot_count, segment->stride) != room || header->total_bytes != room) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "cache store: %s is damaged: %llu slots of %llu bytes do not make its %llu bytes",
                segment->path, (unsigned long long)segment->slot_count,
                (unsigned long long)segment->stride, (unsigned long long)room);
    }
    return UC_OK;
}

/* Strike out what a dead process left: transfers, and locks that it died with. */
static void
clear_row(const struct uc_cache_segment *segment, uint32_t row)
{
    for (uint64_t slot = 0; slot < segment->slot_count; slot++) {
        uint32_t holder = row + 1;

        (void)atomic_compare_exchange_strong_explicit(
                &segment->slots[slot].lock, &holder, 0, memory_order_acq_rel, memory_order_relaxed);
        atomic_store_explicit(
                uc_cache_segment_count(segment, row, (uint32_t)slot), 0, memory_order_release);
    }
}

static enum uc_status
take_row(struct uc_cache_segment *segment)
{
    for (uint32_t row = 1; row < UC_CACHE_ROWS; row++) {
        uint32_t limit = atomic_load_explicit(&segment->header->row_limit, memory_order_acquire);

        if (!lock_byte(segment->fd, row, F_WRLCK)) {
            continue;
        }
        if (uc_cache_segment_is_left_to_the_owner(segment, row)) {
            (void)lock_byte(segment->fd, row, F_UNLCK);
            continue;
        }
        clear_row(segment, row); /* whoever had it is dead, so its transfers are over */
        uc_cache_segment_forget_device(segment, row);
        while (limit <= row &&
                !atomic_compare_exchange_weak(&segment->header->row_limit, &limit, row + 1)) {
        }
        segment->row = row;
        return UC_OK;
    }

    return uc_error(UC_ERR_RETRY, "cache store: %s has %d workers already; use fewer",
            segment->path, UC_CACHE_ROWS - 1);
}

enum uc_status
uc_cache_segment_attach(
        const char *domain, uint64_t block_bytes, struct uc_cache_segment **segment_out)
{
    struct uc_cache_segment *segment = allocate(domain);
    struct stat info;
    enum uc_status status;

    if (segment == NULL) {
        return UC_ERR_OUT_OF_MEMORY;
    }

    segment->fd = open(segment->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (segment->fd < 0 && errno == ENOENT) {
        status = uc_error(UC_ERR_NOT_FOUND,
                "cache store: there is no %s; start the scheduler side first, with the same domain",
                segment->path);
        goto err_close;
    }
    if (segment->fd < 0 || fstat(segment->fd, &info) != 0) {
        status = uc_log_errno(errno, "cache store: open %s", segment->path);
        goto err_close;
    }
    if (info.st_uid != geteuid() || info.st_size < (off_t)slots_at()) {
        status = uc_error(UC_ERR_INVALID_PARAM,
                "cache store: %s belongs to user %u and has %lld bytes: it is no segment of ours",
                segment->path, (unsigned)info.st_uid, (long long)info.st_size);
        goto err_close;
    }

    status = map(segment, (uint64_t)info.st_size);
    if (status == UC_OK) {
        status = check_header(segment, block_bytes);
    }
    if (status == UC_OK) {
        point(segment, segment->slot_count);
        status = take_row(segment);
    }
    if (status == UC_OK) {
        *segment_out = segment;
        return UC_OK;
    }

err_close:
    uc_cache_segment_close(segment);
    return status;
}

void
uc_cache_segment_close(struct uc_cache_segment *segment)
{
    if (segment == NULL) {
        return;
    }

    if (segment->header != NULL && segment->row != 0) {
        uc_cache_segment_forget_device(segment, segment->row);
    }
    if (segment->has_name && is_same_file(segment->fd, segment->path)) {
        (void)unlink(segment->path);
    }
    if (segment->header != NULL) {
        (void)munmap(segment->header, (size_t)segment->total_bytes);
    }
    if (segment->fd >= 0) {
        (void)close(segment->fd);
    }
    free(segment);
}

bool
uc_cache_segment_row_alive(const struct uc_cache_segment *segment, uint32_t row)
{
    struct flock lock = {
            .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)row, .l_len = 1};

    if (row == segment->row) {
        return true;
    }
    if (!segment->is_owner || row == 0) {
        return fcntl(segment->fd, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
    }
    if (!lock_byte(segment->fd, row, F_WRLCK)) {
        return true;
    }

    /* With the lock in hand no new worker can be counting there. */
    if (uc_cache_segment_may_still_copy(segment, row)) {
        (void)lock_byte(segment->fd, row, F_UNLCK);
        return true;
    }
    clear_row(segment, row);
    (void)lock_byte(segment->fd, row, F_UNLCK);
    return false;
}
