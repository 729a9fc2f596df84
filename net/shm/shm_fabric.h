/* SPDX-License-Identifier: Apache-2.0 */

/** @file shm_fabric.h The table of the same-host transport. Its protocol is in net/PROTOCOL.md. */

#ifndef UC_NET_SHM_FABRIC_H
#define UC_NET_SHM_FABRIC_H

#include "net/fabric.h"

/** @return static storage; see uc_fabric_find(). Any thread. */
const struct uc_fabric_ops *uc_shm_fabric_ops(void);

#endif /* UC_NET_SHM_FABRIC_H */
