/* SPDX-License-Identifier: Apache-2.0 */

/** @file tcp_fabric.h The tcp transport's table. The format on the wire is in net/PROTOCOL.md. */

#ifndef UC_NET_TCP_FABRIC_H
#define UC_NET_TCP_FABRIC_H

#include "net/fabric.h"

/** @return static storage; see uc_fabric_find(). Any thread. */
const struct uc_fabric_ops *uc_tcp_fabric_ops(void);

#endif /* UC_NET_TCP_FABRIC_H */
