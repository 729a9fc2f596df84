/* SPDX-License-Identifier: Apache-2.0 */

#include "client/stores/posix/collect.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    LOCK_ATTEMPTS = 20,
    LOCK_PAUSE_NS = 5000000,
    HYSTERESIS = 16, /* a pass makes room for 1/16 of the capacity, so that passes are rare */
    ID_DIGITS = 2 * UC_BLOCK_ID_BYTES,
};

/* A block that was found. */
struct entry {
    struct timespec used;
    uint64_t bytes;
    uint32_t root;
    struct uc_block_id id;
};

struct listing {
    struct entry *entries;
    size_t count;
    size_t room;
    struct uc_posix_usage total;
    bool is_short; /* memory ran out: what is listed is a part */
};

bool
uc_posix_collector_add(struct uc_posix_collector *collector, uint64_t block_bytes)
{
    const struct uc_posix_config *config = collector->env->config;

    collector->added.blocks++;
    collector->added.bytes += uc_block_padded(block_bytes) + UC_BLOCK_PAGE_BYTES;
    if (!collector->is_known) {
        return true;
    }
    /* Others write, too: look again, at the latest, when this process alone has written 1/16. */
    return (config->capacity_blocks != 0 &&
                   (collector->found.blocks + collector->added.blocks > config->capacity_blocks ||
                           collector->added.blocks * HYSTERESIS > config->capacity_blocks)) ||
           (config->capacity_bytes != 0 &&
                   (collector->found.bytes + collector->added.bytes > config->capacity_bytes ||
                           collector->added.bytes > config->capacity_bytes / HYSTERESIS));
}

static bool
parse_id(const char *name, struct uc_block_id *id_out)
{
    static const char digits[] = "0123456789abcdef";

    if (strlen(name) != ID_DIGITS) {
        return false;
    }
    for (size_t idx = 0; idx < ID_DIGITS; idx++) {
        const char *digit = strchr(digits, name[idx]);
        uint8_t *byte = &id_out->bytes[idx / 2];

        if (digit == NULL) {
            return false;
        }
        *byte = (uint8_t)((idx % 2 == 0 ? 0 : *byte << 4) | (digit - digits));
    }

    return true;
}

static void
add_entry(struct listing *listing, const struct entry *entry)
{
    if (listing->count == listing->room) {
        size_t room = listing->room * 2 + 1024;
        struct entry *entries = realloc(listing->entries, room * sizeof(*entries));

        if (entries == NULL) {
            listing->is_short = true;
            return;
        }
        listing->entries = entries;
        listing->room = room;
    }
    listing->entries[listing->count++] = *entry;
}

static void
note_file(struct listing *listing, int folder_fd, const char *name, uint32_t root)
{
    struct entry entry = {.root = root};
    struct stat facts;

    if (!parse_id(name, &entry.id) || fstatat(folder_fd, name, &facts, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(facts.st_mode)) {
        return; /* not ours, or gone meanwhile */
    }

    entry.used = facts.st_mtim;
    entry.bytes = (uint64_t)facts.st_size / UC_BLOCK_PAGE_BYTES * UC_BLOCK_PAGE_BYTES;
    entry.bytes += facts.st_size % UC_BLOCK_PAGE_BYTES == 0 ? 0 : UC_BLOCK_PAGE_BYTES;
    listing->total.blocks++;
    listing->total.bytes += entry.bytes;
    add_entry(listing, &entry);
}

static DIR *
open_folder(int parent_fd, const char *name)
{
    int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);

    if (folder == NULL && fd >= 0) {
        (void)close(fd);
    }
    return folder;
}

/* Walk a folder of folders (depth 2), of folders (1), or of blocks (0). */
static void
walk(struct listing *listing, DIR *folder, size_t name_length, int depth, uint32_t root)
{
    struct dirent *item;

    while ((item = readdir(folder)) != NULL) {
        if (depth == 0) {
            note_file(listing, dirfd(folder), item->d_name, root);
        } else if (strlen(item->d_name) == name_length && item->d_name[0] != '.') {
            DIR *inner = open_folder(dirfd(folder), item->d_name);

            if (inner != NULL) {
                walk(listing, inner, name_length, depth - 1, root);
                (void)closedir(inner);
            }
        }
    }
}

static int
compare_used(const void *left, const void *right)
{
    const struct timespec *one = &((const struct entry *)left)->used;
    const struct timespec *other = &((const struct entry *)right)->used;

    if (one->tv_sec != other->tv_sec) {
        return one->tv_sec < other->tv_sec ? -1 : 1;
    }
    if (one->tv_nsec != other->tv_nsec) {
        return one->tv_nsec < other->tv_nsec ? -1 : 1;
    }
    return 0;
}

static bool
exceeds(const struct uc_posix_usage *usage, uint64_t blocks, uint64_t bytes)
{
    return (blocks != 0 && usage->blocks > blocks) || (bytes != 0 && usage->bytes > bytes);
}

/* Oldest first, down to 15/16 of the capacity where a block or more fits into the rest. */
static void
remove_oldest(struct uc_posix_collector *collector, struct listing *listing)
{
    const struct uc_posix_config *config = collector->env->config;
    const struct uc_posix_roots *roots = collector->env->roots;
    uint64_t low_blocks = config->capacity_blocks - config->capacity_blocks / HYSTERESIS;
    uint64_t low_bytes = config->capacity_bytes - config->capacity_bytes / HYSTERESIS;
    uint64_t removed = 0;

    if (!exceeds(&listing->total, config->capacity_blocks, config->capacity_bytes)) {
        return;
    }

    qsort(listing->entries, listing->count, sizeof(listing->entries[0]), compare_used);
    for (size_t idx = 0; idx < listing->count; idx++) {
        const struct entry *entry = &listing->entries[idx];
        char path[UC_POSIX_PATH_BYTES];

        /* The youngest stays, even if it alone is too much: it was just written. */
        if (!exceeds(&listing->total, low_blocks, low_bytes) || idx + 1 == listing->count) {
            break;
        }
        uc_posix_block_path(roots, &entry->id, path);
        if (unlinkat(roots->items[entry->root].fd, path, 0) == 0) {
            removed++;
        } else if (errno != ENOENT) {
            (void)uc_posix_health_failed(
                    collector->env->health, errno, "remove", roots->items[entry->root].path, path);
            continue;
        }
        listing->total.blocks--;
        listing->total.bytes -= entry->bytes;
    }
    uc_posix_count(collector->env->health, UC_POSIX_COUNT_collected_blocks, removed);
}

/*
 * A pass of another process is waited for once. If that takes long, because the tree is large or the process stopped,
 * blocks are not held up any more until it has let go: the capacity is exceeded meanwhile.
 *
 * @return the lock, or −1 if another process keeps it: it does what is needed
 */
static int
take_lock(struct uc_posix_collector *collector)
{
    const struct uc_posix_root *root = &collector->env->roots->items[0];
    static const struct timespec pause = {.tv_nsec = LOCK_PAUSE_NS};
    int fd = openat(root->fd, ".collect", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0) {
        (void)uc_posix_health_failed(collector->env->health, errno, "lock", root->path, ".collect");
        return -1;
    }
    for (int attempt = 0; flock(fd, LOCK_EX | LOCK_NB) != 0; attempt++) {
        if (collector->is_elsewhere || attempt == LOCK_ATTEMPTS) {
            goto err_close;
        }
        (void)nanosleep(&pause, NULL);
    }
    collector->is_elsewhere = false;
    return fd;

err_close:
    collector->is_elsewhere = true;
    (void)close(fd);
    return -1;
}

void
uc_posix_collector_pass(struct uc_posix_collector *collector)
{
    const struct uc_posix_roots *roots = collector->env->roots;
    struct listing listing = {.count = 0};
    int lock_fd = take_lock(collector);

    if (lock_fd < 0) {
        return; /* what was added still counts: the next block asks again */
    }

    for (size_t idx = 0; idx < roots->count; idx++) {
        DIR *folder = open_folder(roots->items[idx].fd, ".");

        if (folder != NULL) {
            walk(&listing, folder, roots->shards == 256 ? 1 : 2, 2, (uint32_t)idx);
            (void)closedir(folder);
        }
    }
    remove_oldest(collector, &listing);
    free(listing.entries);
    (void)close(lock_fd);
    collector->found = listing.total;
    memset(&collector->added, 0, sizeof(collector->added));
    collector->is_known = true;
}
