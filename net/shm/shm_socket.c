/* SPDX-License-Identifier: Apache-2.0 */

#include "net/shm/shm_socket.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union control {
    struct cmsghdr header; /* for its alignment */
    uint8_t bytes[CMSG_SPACE(UC_SHM_FDS_MAX * sizeof(int))];
};

enum uc_shm_io
uc_shm_send(int fd, const uint8_t *bytes, size_t length, const int *fds, size_t fd_count)
{
    /* An iovec has no const form; sendmsg only reads. */
    struct iovec iov = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = length};
    struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};
    union control control;
    ssize_t done;

    if (fd_count > 0) {
        struct cmsghdr *header;

        memset(&control, 0, sizeof(control));
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
        header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(fd_count * sizeof(int));
        memcpy(CMSG_DATA(header), fds, fd_count * sizeof(int));
    }
    do {
        done = sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (done < 0 && errno == EINTR);
    if (done < 0) {
        return errno == EAGAIN || errno == EWOULDBLOCK ? UC_SHM_BLOCKED : UC_SHM_LOST;
    }

    return UC_SHM_MOVED;
}

/* Take every descriptor out of the control data, expected or not: they are open already. */
static void
collect_fds(struct msghdr *message, struct uc_shm_fds *fds)
{
    for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header != NULL;
            header = CMSG_NXTHDR(message, header)) {
        size_t bytes = header->cmsg_len - CMSG_LEN(0);
        size_t count = bytes / sizeof(int);

        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) {
            continue;
        }
        for (size_t idx = 0; idx < count && fds->count < UC_SHM_FDS_MAX; idx++) {
            memcpy(&fds->fds[fds->count++], CMSG_DATA(header) + idx * sizeof(int), sizeof(int));
        }
    }
}

enum uc_shm_io
uc_shm_receive(
        int fd, uint8_t bytes[UC_SHM_PACKET_BYTES], size_t *length_out, struct uc_shm_fds *fds_out)
{
    struct iovec iov = {.iov_base = bytes, .iov_len = UC_SHM_PACKET_BYTES};
    union control control;
    struct msghdr message = {
            .msg_iov = &iov,
            .msg_iovlen = 1,
            .msg_control = control.bytes,
            .msg_controllen = sizeof(control.bytes),
    };
    ssize_t done;

    fds_out->count = 0;
    do {
        done = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    } while (done < 0 && errno == EINTR);
    if (done < 0) {
        return errno == EAGAIN || errno == EWOULDBLOCK ? UC_SHM_BLOCKED : UC_SHM_LOST;
    }

    collect_fds(&message, fds_out);
    if (done == 0 || (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
        uc_shm_fds_close(fds_out);
        return UC_SHM_LOST;
    }

    *length_out = (size_t)done;
    return UC_SHM_MOVED;
}

void
uc_shm_fds_close(struct uc_shm_fds *fds)
{
    for (size_t idx = 0; idx < fds->count; idx++) {
        if (fds->fds[idx] >= 0) {
            (void)close(fds->fds[idx]);
        }
    }
    fds->count = 0;
}

bool
uc_shm_peer_is_trusted(int fd)
{
    struct ucred peer;
    socklen_t length = sizeof(peer);

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 &&
           uc_shm_user_is_trusted(peer.uid, geteuid());
}
