/* SPDX-License-Identifier: Apache-2.0 */

/** @file shm_socket.h Packets and descriptors over unix sockets; nothing here blocks. */

#ifndef UC_NET_SHM_SOCKET_H
#define UC_NET_SHM_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <ucm/compiler.h>

#include "net/shm/shm_wire.h"

enum {
    UC_SHM_FDS_MAX = 2 + UC_SHM_FILE_COUNT,
};

enum uc_shm_io {
    UC_SHM_MOVED,   /* a whole packet */
    UC_SHM_BLOCKED, /* nothing now; an event will tell */
    UC_SHM_LOST,    /* closed or failed */
};

/** Descriptors that came with a packet. Whoever takes one puts -1 in its place. */
struct uc_shm_fds {
    int fds[UC_SHM_FDS_MAX];
    size_t count;
};

/** Send one packet, with descriptors that stay the caller's. BLOCKED: the peer does not read. */
enum uc_shm_io uc_shm_send(
        int fd, const uint8_t *bytes, size_t length, const int *fds, size_t fd_count);

/**
 * Receive one packet. One that is longer than @p bytes, or brings more descriptors than there is room for, counts
 * as LOST.
 *
 * @param[out] fds_out  owned by the caller, also when there are more than expected
 */
enum uc_shm_io uc_shm_receive(
        int fd, uint8_t bytes[UC_SHM_PACKET_BYTES], size_t *length_out, struct uc_shm_fds *fds_out);

/** Close what nobody has taken. */
void uc_shm_fds_close(struct uc_shm_fds *fds);

/** @return whether the other end of a socket may share memory with us: our own user, or root. */
bool uc_shm_peer_is_trusted(int fd);

/** @return the same for a user id. */
static inline bool
uc_shm_user_is_trusted(uid_t peer, uid_t own)
{
    return peer == own || peer == 0;
}

#endif /* UC_NET_SHM_SOCKET_H */
