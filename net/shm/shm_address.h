/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file shm_address.h
 * Addresses of the shm transport: `HOST/NAME`. HOST names this boot of this machine and the network namespace, in
 * which abstract sockets live; NAME is the socket's. Any thread.
 */

#ifndef UC_NET_SHM_ADDRESS_H
#define UC_NET_SHM_ADDRESS_H

#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <ucm/compiler.h>
#include <ucm/status.h>

enum {
    UC_SHM_ADDRESS_BYTES = 160, /* with the 0 at its end */
};

struct uc_shm_address {
    struct sockaddr_un socket;
    socklen_t length_bytes;
};

/** Make an address that nobody has. */
UC_MUST_CHECK enum uc_status uc_shm_address_make(
        char text_out[UC_SHM_ADDRESS_BYTES], struct uc_shm_address *address_out);

/**
 * Read an address that a server told.
 *
 * @retval UC_ERR_UNSUPPORTED    it is another host's, or another network namespace's
 * @retval UC_ERR_INVALID_PARAM  it is none
 */
UC_MUST_CHECK enum uc_status uc_shm_address_parse(
        const char *text, struct uc_shm_address *address_out);

#endif /* UC_NET_SHM_ADDRESS_H */
