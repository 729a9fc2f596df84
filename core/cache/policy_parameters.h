/* SPDX-License-Identifier: Apache-2.0 */

/** @file policy_parameters.h Numbers that a discipline takes from its dictionary. One thread. */

#ifndef UC_CACHE_POLICY_PARAMETERS_H
#define UC_CACHE_POLICY_PARAMETERS_H

#include "core/cache/policy.h"

/** One key. A plain value. */
struct uc_policy_parameter {
    const char *key;
    double min;
    double max;
    size_t offset; /* of a double in the struct that is filled */
};

/**
 * Overwrite what the dictionary names; the rest of @p target keeps its defaults.
 *
 * @param[in] dict  NULL = nothing given
 * @retval UC_ERR_INVALID_PARAM  unknown key (the known ones are named), no number, or out of range
 */
UC_MUST_CHECK enum uc_status uc_policy_read_parameters(const char *policy,
        const struct uc_policy_parameter *parameters, size_t count, const struct uc_dict *dict,
        void *target);

#endif /* UC_CACHE_POLICY_PARAMETERS_H */
