/* SPDX-License-Identifier: Apache-2.0 */

/** @file module.h What libucm_fabric_verbs.so exports. Any thread. */

#ifndef UC_VERBS_MODULE_H
#define UC_VERBS_MODULE_H

#include <ucm/compiler.h>

#include "net/fabric.h"

/** @return the table of the verbs fabric, static storage. Found by name with dlsym. */
UC_PRIVATE_API const struct uc_fabric_ops *uc_fabric_module(void);

#endif /* UC_VERBS_MODULE_H */
