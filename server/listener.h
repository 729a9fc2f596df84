/* SPDX-License-Identifier: Apache-2.0 */

/** @file listener.h The socket that clients connect to. */

#ifndef UC_SERVER_LISTENER_H
#define UC_SERVER_LISTENER_H

#include <stddef.h>
#include <stdint.h>

#include <ucm/compiler.h>
#include <ucm/status.h>

/**
 * Bind a TCP socket, so that a taken port shows before memory is made; it does not listen yet.
 *
 * @param[in]  text      "HOST:PORT" of the key `listen`
 * @param[out] host_out  its host, for the fabric
 * @retval UC_ERR_OS_API  the text names key, address and reason
 */
UC_MUST_CHECK enum uc_status uc_listener_bind(
        const char *text, char *host_out, size_t host_bytes, int *fd_out, uint16_t *port_out);

/** Begin to accept. */
UC_MUST_CHECK enum uc_status uc_listener_start(int fd, const char *text);

/**
 * Accept one connection without blocking.
 *
 * @param[out] address_out  "host:port" of the peer, for logs
 * @retval UC_ERR_RETRY      nobody is waiting
 * @retval UC_ERR_NO_SPACE   out of descriptors or memory: pause
 */
UC_MUST_CHECK enum uc_status uc_listener_accept(
        int fd, char *address_out, size_t address_bytes, int *peer_fd_out);

#endif /* UC_SERVER_LISTENER_H */
