/* SPDX-License-Identifier: Apache-2.0 */

/** @file dispatch.h Which call goes where, and who may make it. Control thread. */

#ifndef UC_SERVER_DISPATCH_H
#define UC_SERVER_DISPATCH_H

#include "server/peer.h"

/** Check who is calling, renew the lease, run the handler. */
void uc_dispatch(struct uc_peer *peer, const struct uc_call *call);

#endif /* UC_SERVER_DISPATCH_H */
