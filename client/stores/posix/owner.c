/* SPDX-License-Identifier: Apache-2.0 */

#include "client/stores/posix/owner.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ucm/log.h>

#define TEMP_FOLDER ".tmp"
#define LOCK_NAME   "lock"

enum {
    ATTEMPTS_MAX = 100,
    FOLDER_MODE = 0700,
    FILE_MODE = 0600,
    NAME_BYTES = 300,
};

/*
 * Between mkdir and flock the folder looks like that of a dead owner: a cleaner may take it. Then the lock
 * is refused, or the file that was locked is no longer there, and another name is tried.
 *
 * @return 0, EAGAIN to try another name, or an errno
 */
static int
try_name(int temp_fd, struct uc_posix_root *root)
{
    struct stat facts;
    uint64_t number;
    int error = EAGAIN;

    if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number)) {
        return errno;
    }
    (void)snprintf(root->owner, sizeof(root->owner), "%016" PRIx64, number);
    if (mkdirat(temp_fd, root->owner, FOLDER_MODE) != 0) {
        return errno == EEXIST ? EAGAIN : errno;
    }
    root->owner_fd = openat(temp_fd, root->owner, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root->owner_fd < 0) {
        return errno == ENOENT ? EAGAIN : errno;
    }
    root->lock_fd = openat(root->owner_fd, LOCK_NAME, O_RDWR | O_CREAT | O_CLOEXEC, FILE_MODE);
    if (root->lock_fd < 0) {
        error = errno == ENOENT ? EAGAIN : errno;
        goto err_close_folder;
    }
    if (flock(root->lock_fd, LOCK_EX | LOCK_NB) != 0) {
        error = errno == EWOULDBLOCK ? EAGAIN : errno;
        goto err_close_lock;
    }
    if (fstat(root->lock_fd, &facts) == 0 && facts.st_nlink > 0) {
        return 0;
    }

err_close_lock:
    (void)close(root->lock_fd);
    root->lock_fd = -1;
err_close_folder:
    (void)close(root->owner_fd);
    root->owner_fd = -1;
    return error;
}

static int
open_temp_folder(const struct uc_posix_root *root)
{
    if (mkdirat(root->fd, TEMP_FOLDER, FOLDER_MODE) != 0 && errno != EEXIST) {
        return -1;
    }

    return openat(root->fd, TEMP_FOLDER, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

enum uc_status
uc_posix_owner_open(struct uc_posix_root *root)
{
    int temp_fd = open_temp_folder(root);
    int error = EAGAIN;

    if (temp_fd < 0) {
        return uc_log_errno(errno, "posix store: %s/%s", root->path, TEMP_FOLDER);
    }

    for (int attempt = 0; attempt < ATTEMPTS_MAX && error == EAGAIN; attempt++) {
        error = try_name(temp_fd, root);
    }
    (void)close(temp_fd);
    if (error == ENOLCK || error == EOPNOTSUPP || error == ENOSYS) {
        return uc_error(UC_ERR_UNSUPPORTED,
                "posix store: %s is on a file system without flock; mount it with locks",
                root->path);
    }
    if (error != 0) {
        return uc_log_errno(error, "posix store: %s/%s/%s", root->path, TEMP_FOLDER, root->owner);
    }
    return UC_OK;
}

/* Remove the files of an owner's folder but its lock. @return their number */
static uint64_t
empty_folder(int folder_fd)
{
    int list_fd = openat(folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = list_fd < 0 ? NULL : fdopendir(list_fd);
    struct dirent *entry;
    uint64_t removed = 0;

    if (list == NULL) {
        if (list_fd >= 0) {
            (void)close(list_fd);
        }
        return 0;
    }

    while ((entry = readdir(list)) != NULL) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
                strcmp(entry->d_name, LOCK_NAME) != 0 &&
                unlinkat(folder_fd, entry->d_name, 0) == 0) {
            removed++;
        }
    }
    (void)closedir(list);
    return removed;
}

void
uc_posix_owner_close(struct uc_posix_root *root)
{
    char path[NAME_BYTES];

    if (root->lock_fd < 0) {
        return;
    }

    (void)empty_folder(root->owner_fd);
    (void)unlinkat(root->owner_fd, LOCK_NAME, 0);
    (void)snprintf(path, sizeof(path), TEMP_FOLDER "/%s", root->owner);
    (void)unlinkat(root->fd, path, AT_REMOVEDIR);
    (void)close(root->owner_fd);
    (void)close(root->lock_fd);
    root->owner_fd = -1;
    root->lock_fd = -1;
}

static uint64_t
clean_folder(int temp_fd, const char *name)
{
    int folder_fd = openat(temp_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    uint64_t removed = 0;
    int lock_fd;

    if (folder_fd < 0) {
        return 0;
    }
    lock_fd = openat(folder_fd, LOCK_NAME, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (lock_fd < 0) {
        /* Its owner has not got so far, and will notice; or it died there, or a cleaner did. */
        (void)unlinkat(temp_fd, name, AT_REMOVEDIR);
    } else if (flock(lock_fd, LOCK_EX | LOCK_NB) == 0) {
        removed = empty_folder(folder_fd);
        (void)unlinkat(folder_fd, LOCK_NAME, 0);
        (void)unlinkat(temp_fd, name, AT_REMOVEDIR);
    }
    if (lock_fd >= 0) {
        (void)close(lock_fd);
    }
    (void)close(folder_fd);
    return removed;
}

uint64_t
uc_posix_owner_clean(const struct uc_posix_root *root)
{
    int temp_fd = open_temp_folder(root);
    DIR *list = temp_fd < 0 ? NULL : fdopendir(temp_fd);
    struct dirent *entry;
    uint64_t removed = 0;

    if (list == NULL) {
        if (temp_fd >= 0) {
            (void)close(temp_fd);
        }
        return 0;
    }

    while ((entry = readdir(list)) != NULL) {
        if (entry->d_name[0] != '.' && strcmp(entry->d_name, root->owner) != 0) {
            removed += clean_folder(temp_fd, entry->d_name);
        }
    }
    (void)closedir(list);
    return removed;
}
