/* SPDX-License-Identifier: Apache-2.0 */

#include "client/stores/posix/roots.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <ucm/log.h>

#include "client/stores/posix/block_footer.h"
#include "client/stores/posix/owner.h"

#define FORMAT_NAME ".ucm-posix"
#define PROBE_NAME  "probe"

enum {
    FOLDER_MODE = 0700,
    FILE_MODE = 0600,
    FORMAT_BYTES = 64,
    LINK_ATTEMPTS = 3,
};

const struct uc_posix_root *
uc_posix_root_of(const struct uc_posix_roots *roots, const struct uc_block_id *id)
{
    const struct uc_posix_root *best = &roots->items[0];
    uint64_t best_score = 0;

    for (size_t idx = 0; idx < roots->count && roots->count > 1; idx++) {
        uint64_t score = XXH3_64bits_withSeed(id->bytes, sizeof(id->bytes), roots->items[idx].seed);

        if (score > best_score) {
            best_score = score;
            best = &roots->items[idx];
        }
    }
    return best;
}

void
uc_posix_block_path(const struct uc_posix_roots *roots, const struct uc_block_id *id, char *path)
{
    static const char digits[] = "0123456789abcdef";
    char hex[2 * UC_BLOCK_ID_BYTES];
    size_t level = roots->shards == 256 ? 1 : 2;
    char *end = path;

    for (size_t idx = 0; idx < UC_BLOCK_ID_BYTES; idx++) {
        hex[2 * idx] = digits[id->bytes[idx] >> 4];
        hex[2 * idx + 1] = digits[id->bytes[idx] & 15];
    }
    memcpy(end, hex, level);
    end += level;
    *end++ = '/';
    memcpy(end, hex + level, level);
    end += level;
    *end++ = '/';
    memcpy(end, hex, sizeof(hex));
    end[sizeof(hex)] = '\0';
}

void
uc_posix_temp_name(struct uc_posix_roots *roots, char *name)
{
    (void)snprintf(name, UC_POSIX_TEMP_BYTES, "%016" PRIx64,
            atomic_fetch_add_explicit(&roots->sequence, 1, memory_order_relaxed));
}

static int
make_folder(const struct uc_posix_roots *roots, int root_fd, const char *parent, const char *path)
{
    int parent_fd;

    if (mkdirat(root_fd, path, FOLDER_MODE) != 0) {
        return errno == EEXIST ? 0 : errno;
    }
    if (!roots->sync_names) {
        return 0;
    }

    parent_fd = openat(root_fd, parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (parent_fd < 0) {
        return errno;
    }
    (void)fsync(parent_fd);
    (void)close(parent_fd);
    return 0;
}

int
uc_posix_make_shard(
        const struct uc_posix_roots *roots, const struct uc_posix_root *root, const char *path)
{
    size_t level = roots->shards == 256 ? 1 : 2;
    char upper[4];
    char both[8];
    int error;

    (void)snprintf(upper, sizeof(upper), "%.*s", (int)level, path);
    (void)snprintf(both, sizeof(both), "%.*s", (int)(2 * level + 1), path);
    error = make_folder(roots, root->fd, ".", upper);
    return error != 0 ? error : make_folder(roots, root->fd, upper, both);
}

/* @return 1 = as expected, 0 = there is none, -1 = another */
static int
compare_format(const struct uc_posix_root *root, const char *expected, char *found)
{
    int fd = openat(root->fd, FORMAT_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    ssize_t length;

    if (fd < 0) {
        return errno == ENOENT ? 0 : -1;
    }

    length = read(fd, found, FORMAT_BYTES - 1);
    (void)close(fd);
    found[length < 0 ? 0 : length] = '\0';
    found[strcspn(found, "\n")] = '\0';
    return strncmp(found, expected, strlen(expected) - 1) == 0 &&
                           length == (ssize_t)strlen(expected)
                   ? 1
                   : -1;
}

/* The first one to come decides: the name appears with its content, or not at all. */
static enum uc_status
write_format(const struct uc_posix_root *root, const char *text)
{
    int fd = openat(root->owner_fd, "format", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, FILE_MODE);
    enum uc_status status = UC_OK;

    if (fd < 0) {
        return uc_log_errno(errno, "posix store: %s: write its format", root->path);
    }

    if (write(fd, text, strlen(text)) != (ssize_t)strlen(text)) {
        status = uc_log_errno(errno, "posix store: %s: write its format", root->path);
    } else if (linkat(root->owner_fd, "format", root->fd, FORMAT_NAME, 0) != 0 && errno != EEXIST) {
        if (renameat(root->owner_fd, "format", root->fd, FORMAT_NAME) != 0) {
            status = uc_log_errno(errno, "posix store: %s/%s", root->path, FORMAT_NAME);
        }
    }
    (void)close(fd);
    (void)unlinkat(root->owner_fd, "format", 0);
    return status;
}

/* @param[out] is_new_out  the root had no format until now */
static enum uc_status
settle_format(const struct uc_posix_root *root, uint64_t shards, bool *is_new_out)
{
    char expected[FORMAT_BYTES];
    char found[FORMAT_BYTES] = "";

    (void)snprintf(expected, sizeof(expected), "ucm-posix 1 shards %" PRIu64 "\n", shards);
    for (int attempt = 0; attempt < LINK_ATTEMPTS; attempt++) {
        int answer = compare_format(root, expected, found);
        enum uc_status status;

        if (answer > 0) {
            *is_new_out = attempt > 0;
            return UC_OK;
        }
        if (answer < 0) {
            return uc_error(UC_ERR_INVALID_PARAM,
                    "posix store: %s/%s says \"%.40s\", this configuration needs \"%.*s\": change "
                    "shards, or use another root",
                    root->path, FORMAT_NAME, found, (int)strlen(expected) - 1, expected);
        }
        status = write_format(root, expected);
        if (status != UC_OK) {
            return status;
        }
    }
    return uc_error(UC_ERR_OS_API, "posix store: %s/%s does not stay", root->path, FORMAT_NAME);
}

/*
 * The folders of a new root, all at once: made on the way they would hold up the first dumps, as every one reads from
 * the medium behind the blocks that are being written. What is missing is made by the dump that needs it; where names
 * are synced one by one, and where there are many, all are.
 */
static void
make_shards(const struct uc_posix_roots *roots, const struct uc_posix_root *root)
{
    char path[8];

    if (roots->shards != 256 || roots->sync_names) {
        return;
    }
    for (unsigned shard = 0; shard < 256; shard++) {
        (void)snprintf(path, sizeof(path), "%x/%x", shard >> 4, shard & 15);
        if (uc_posix_make_shard(roots, root, path) != 0) {
            return;
        }
    }
}

static enum uc_status
check_direct(const struct uc_posix_root *root)
{
    int fd = openat(root->owner_fd, "direct", O_WRONLY | O_CREAT | O_DIRECT | O_CLOEXEC, FILE_MODE);
    int error = errno;

    (void)unlinkat(root->owner_fd, "direct", 0);
    if (fd >= 0) {
        (void)close(fd);
        return UC_OK;
    }
    if (error == EINVAL) {
        return uc_error(UC_ERR_UNSUPPORTED,
                "posix store: the file system of %s has no O_DIRECT; set direct_io to off",
                root->path);
    }
    return uc_log_errno(error, "posix store: %s: open with O_DIRECT", root->path);
}

static enum uc_status
open_root(const struct uc_posix_config *config, const struct uc_posix_roots *roots,
        struct uc_posix_root *root)
{
    bool is_new = false;
    enum uc_status status;

    if (mkdir(root->path, FOLDER_MODE) != 0 && errno != EEXIST) {
        return uc_log_errno(errno, "posix store: root %s", root->path);
    }
    root->fd = open(root->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root->fd < 0) {
        return uc_log_errno(errno, "posix store: root %s", root->path);
    }

    status = uc_posix_owner_open(root);
    if (status == UC_OK) {
        status = settle_format(root, config->shards, &is_new);
    }
    if (status == UC_OK && config->direct_io) {
        status = check_direct(root);
    }
    if (status == UC_OK && is_new) {
        make_shards(roots, root);
    }
    return status;
}

enum uc_status
uc_posix_roots_open(const struct uc_posix_config *config, struct uc_posix_health *health,
        struct uc_posix_roots *roots_out)
{
    struct uc_posix_roots *roots = roots_out;
    enum uc_status status = UC_OK;

    memset(roots, 0, sizeof(*roots));
    roots->items = calloc(config->root_count, sizeof(roots->items[0]));
    if (roots->items == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "posix store: no memory for the roots");
    }
    roots->shards = config->shards;
    roots->sync_names = config->fsync == UC_POSIX_FSYNC_FULL;
    while (roots->generation == 0) {
        if (getrandom(&roots->generation, sizeof(roots->generation), 0) < 0) {
            status = uc_log_errno(errno, "posix store: getrandom");
            break;
        }
    }

    for (size_t idx = 0; idx < config->root_count && status == UC_OK; idx++) {
        struct uc_posix_root *root = &roots->items[idx];

        root->path = config->roots[idx];
        root->seed = XXH3_64bits(root->path, strlen(root->path));
        root->fd = -1;
        root->owner_fd = -1;
        root->lock_fd = -1;
        roots->count = idx + 1;
        status = open_root(config, roots, root);
    }
    if (status != UC_OK) {
        uc_posix_roots_close(roots);
        return status;
    }

    for (size_t idx = 0; idx < roots->count; idx++) {
        uint64_t removed = uc_posix_owner_clean(&roots->items[idx]);

        uc_posix_count(health, UC_POSIX_COUNT_leftovers_removed, removed);
        if (removed > 0) {
            uc_log_info("posix store: %s: removed %" PRIu64 " unfinished files of dead processes",
                    roots->items[idx].path, removed);
        }
    }
    return UC_OK;
}

void
uc_posix_roots_close(struct uc_posix_roots *roots)
{
    for (size_t idx = 0; idx < roots->count; idx++) {
        uc_posix_owner_close(&roots->items[idx]);
        if (roots->items[idx].fd >= 0) {
            (void)close(roots->items[idx].fd);
        }
    }
    free(roots->items);
    roots->items = NULL;
    roots->count = 0;
}

static enum uc_status
probe_root(const struct uc_posix_root *root)
{
    uint8_t page[UC_BLOCK_PAGE_BYTES] = {1};
    int fd = openat(root->owner_fd, PROBE_NAME, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, FILE_MODE);
    int error = 0;

    if (fd < 0) {
        return uc_error(UC_ERR_UNHEALTHY, "posix store: probe of %s: errno %d", root->path, errno);
    }

    errno = 0;
    if (pwrite(fd, page, sizeof(page), 0) != (ssize_t)sizeof(page) || fsync(fd) != 0 ||
            pread(fd, page, sizeof(page), 0) != (ssize_t)sizeof(page)) {
        error = errno;
    }
    (void)close(fd);
    (void)unlinkat(root->owner_fd, PROBE_NAME, 0);
    /* A full disk serves reads: that is NoSpace for those who write, and no illness. */
    if (error != 0 && error != ENOSPC && error != EDQUOT) {
        return uc_error(UC_ERR_UNHEALTHY, "posix store: probe of %s: errno %d", root->path, error);
    }
    return UC_OK;
}

enum uc_status
uc_posix_roots_probe(const struct uc_posix_roots *roots)
{
    enum uc_status status = UC_OK;

    for (size_t idx = 0; idx < roots->count && status == UC_OK; idx++) {
        status = probe_root(&roots->items[idx]);
    }
    return status;
}
