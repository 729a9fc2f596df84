/* SPDX-License-Identifier: Apache-2.0 */

#include "client/stores/posix/lookup.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include "client/stores/posix/block_footer.h"

bool
uc_posix_lookup(const struct uc_posix_env *env, const struct uc_block_id *id)
{
    const struct uc_posix_root *root = uc_posix_root_of(env->roots, id);
    uint64_t block_bytes = env->config->block_bytes;
    char path[UC_POSIX_PATH_BYTES];
    uint64_t footer_offset = 0;
    struct stat facts;

    uc_posix_block_path(env->roots, id, path);
    if (fstatat(root->fd, path, &facts, AT_SYMLINK_NOFOLLOW) != 0) {
        if (errno != ENOENT) {
            (void)uc_posix_health_failed(env->health, errno, "stat", root->path, path);
        }
        return false;
    }

    /* A power loss may leave a name without its bytes unless dumps are synced: the size shows most of that. */
    return S_ISREG(facts.st_mode) &&
           uc_block_footer_offset((uint64_t)facts.st_size, &footer_offset) == UC_OK &&
           (block_bytes == 0 || footer_offset == uc_block_padded(block_bytes));
}

void
uc_posix_touch(const struct uc_posix_env *env, const struct uc_block_id *id)
{
    const struct uc_posix_root *root = uc_posix_root_of(env->roots, id);
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}};
    char path[UC_POSIX_PATH_BYTES];

    uc_posix_block_path(env->roots, id, path);
    if (clock_gettime(CLOCK_REALTIME, &times[1]) == 0 &&
            utimensat(root->fd, path, times, AT_SYMLINK_NOFOLLOW) != 0 && errno == EPERM) {
        /* The file of another user: it can be stamped with the time of now, and nothing else. */
        (void)utimensat(root->fd, path, NULL, AT_SYMLINK_NOFOLLOW);
    }
}
