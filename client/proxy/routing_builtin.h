/* SPDX-License-Identifier: Apache-2.0 */

/** @file routing_builtin.h The table that the build generates from its ucm_add_routing() lines. */

#ifndef UC_PROXY_ROUTING_BUILTIN_H
#define UC_PROXY_ROUTING_BUILTIN_H

#include <ucm/routing.h>

/** Ends with NULL. */
extern const struct uc_routing_ops *const uc_routing_builtin[];

#endif /* UC_PROXY_ROUTING_BUILTIN_H */
