/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file routing_thresholds.h
 * Routing by one number: the key `thresholds` cuts its range into as many parts as there are branches
 * . A strategy adds which fact it reads.
 */

#ifndef UC_PROXY_ROUTING_THRESHOLDS_H
#define UC_PROXY_ROUTING_THRESHOLDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/routing.h>

/** Fits `create` of a strategy. */
enum uc_status uc_routing_thresholds_create(
        const struct uc_dict *config, size_t branch_count, struct uc_routing **routing_out);

/** Fits `destroy`. */
void uc_routing_thresholds_destroy(struct uc_routing *routing);

/** @return the smallest i with fact > thresholds[i], the last branch if there is none or no fact. */
size_t uc_routing_thresholds_select(const struct uc_routing *routing, bool has_fact, uint64_t fact);

#endif /* UC_PROXY_ROUTING_THRESHOLDS_H */
