/* SPDX-License-Identifier: Apache-2.0 */

/** @file loop.h The control thread's loop. Control thread. */

#ifndef UC_SERVER_LOOP_H
#define UC_SERVER_LOOP_H

#include <ucm/compiler.h>
#include <ucm/status.h>

struct uc_server;

/** Make the epoll set. The listener and the fabric thread exist. */
UC_MUST_CHECK enum uc_status uc_loop_init(struct uc_server *server);

/** End every session and close every connection; their groups are released as the fences are answered. */
void uc_loop_close_all(struct uc_server *server);

#endif /* UC_SERVER_LOOP_H */
