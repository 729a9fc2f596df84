/* SPDX-License-Identifier: Apache-2.0 */

#include "net/shm/shm_address.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ucm/log.h>

#define BOOT_ID_PATH   "/proc/sys/kernel/random/boot_id"
#define NAMESPACE_PATH "/proc/self/ns/net"

enum {
    BOOT_ID_BYTES = 36,
    HOST_BYTES = 80,
    NAME_MAX_BYTES = 64,
};

static enum uc_status
this_host(char host_out[HOST_BYTES])
{
    char boot_id[BOOT_ID_BYTES + 1] = {0};
    struct stat space;
    int fd = open(BOOT_ID_PATH, O_RDONLY | O_CLOEXEC);
    ssize_t got;

    if (fd < 0) {
        return uc_error(
                UC_ERR_UNSUPPORTED, "shm: %s: %s; it needs /proc", BOOT_ID_PATH, strerror(errno));
    }
    got = read(fd, boot_id, BOOT_ID_BYTES);
    (void)close(fd);
    if (got != BOOT_ID_BYTES || stat(NAMESPACE_PATH, &space) != 0) {
        return uc_error(UC_ERR_UNSUPPORTED, "shm: %s or %s cannot be read; it needs /proc",
                BOOT_ID_PATH, NAMESPACE_PATH);
    }

    (void)snprintf(host_out, HOST_BYTES, "%s.%" PRIu64, boot_id, (uint64_t)space.st_ino);
    return UC_OK;
}

static void
fill_address(const char *name, struct uc_shm_address *address_out)
{
    size_t length = strlen(name);

    memset(address_out, 0, sizeof(*address_out));
    address_out->socket.sun_family = AF_UNIX;
    /* The leading 0 makes it abstract: it ends with its last descriptor, and no file is left behind. */
    memcpy(address_out->socket.sun_path + 1, name, length);
    address_out->length_bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
}

enum uc_status
uc_shm_address_make(char text_out[UC_SHM_ADDRESS_BYTES], struct uc_shm_address *address_out)
{
    char host[HOST_BYTES];
    char name[NAME_MAX_BYTES];
    uint64_t random;
    enum uc_status status = this_host(host);

    if (status != UC_OK) {
        return status;
    }
    if (getrandom(&random, sizeof(random), 0) != sizeof(random)) {
        return uc_log_errno(errno, "shm: getrandom");
    }

    (void)snprintf(name, sizeof(name), "ucm-%ld-%016" PRIx64, (long)getpid(), random);
    (void)snprintf(text_out, UC_SHM_ADDRESS_BYTES, "%s/%s", host, name);
    fill_address(name, address_out);
    return UC_OK;
}

static bool
is_name(const char *text)
{
    size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-");

    return length > 0 && length <= NAME_MAX_BYTES && text[length] == '\0';
}

enum uc_status
uc_shm_address_parse(const char *text, struct uc_shm_address *address_out)
{
    const char *slash = strchr(text, '/');
    char host[HOST_BYTES];
    enum uc_status status;

    if (slash == NULL || !is_name(slash + 1)) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "shm: address %.160s is not HOST/NAME as the server tells it", text);
    }
    status = this_host(host);
    if (status != UC_OK) {
        return status;
    }
    if (strlen(host) != (size_t)(slash - text) || strncmp(host, text, strlen(host)) != 0) {
        return uc_error(UC_ERR_UNSUPPORTED,
                "shm: the server is on another host, or in another network namespace; use fabric "
                "auto, tcp or verbs");
    }

    fill_address(slash + 1, address_out);
    return UC_OK;
}
