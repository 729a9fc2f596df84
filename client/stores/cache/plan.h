/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file plan.h
 * Payload of a prefetch plan, little endian:
 *
 *     "UCF1" | u32 1 = delegated | u64 plan number | u64 d | u64 l
 *     | d bytes: token payload of the destinations, for the plan's keys | l bytes: serialised token below
 *
 * l = 0 where the lower tier is plain. Pure; any thread; every byte is foreign to the reader.
 */

#ifndef UC_CACHE_STORE_PLAN_H
#define UC_CACHE_STORE_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/compiler.h>
#include <ucm/status.h>
#include <ucm/token.h>

/** What a plan says; borrows the token. */
struct uc_cache_plan {
    bool is_delegated;
    uint64_t number;
    const uint8_t *destinations; /* a token payload for the plan's keys */
    size_t destinations_bytes;
    const uint8_t *lower;
    size_t lower_bytes;
};

/** A plan without number. Either token may be NULL. OutOfMemory. */
UC_MUST_CHECK enum uc_status uc_cache_plan_create(bool is_delegated,
        const struct uc_token *destinations, const struct uc_token *lower,
        struct uc_token **plan_out);

/** Give a plan that nobody has seen its number. */
void uc_cache_plan_set_number(struct uc_token *plan, uint64_t number);

/** @retval UC_ERR_INVALID_PARAM  not a plan of a cache store */
UC_MUST_CHECK enum uc_status uc_cache_plan_read(
        const struct uc_token *token, struct uc_cache_plan *plan_out);

#endif /* UC_CACHE_STORE_PLAN_H */
