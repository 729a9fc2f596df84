/* SPDX-License-Identifier: Apache-2.0 */

/** @file stat_json.h The counters of a server as JSON: every name of UC_STAT_MAP, flat. Any thread. */

#ifndef UC_TOOLS_COMMON_STAT_JSON_H
#define UC_TOOLS_COMMON_STAT_JSON_H

#include <jansson.h>

#include "net/rpc/messages.h"

/** @return an object that the caller owns; NULL without memory */
json_t *uc_stat_json(const struct uc_stat_reply *stat);

#endif /* UC_TOOLS_COMMON_STAT_JSON_H */
