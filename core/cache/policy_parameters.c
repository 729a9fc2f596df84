/* SPDX-License-Identifier: Apache-2.0 */

#include "core/cache/policy_parameters.h"

#include <stdio.h>
#include <string.h>

enum {
    KEYS_BYTES = 256
};

static enum uc_status
refuse_unknown(const char *policy, const struct uc_policy_parameter *parameters, size_t count,
        const char *key)
{
    char keys[KEYS_BYTES] = "none";
    size_t used = 0;

    for (size_t idx = 0; idx < count && used < sizeof(keys); idx++) {
        used += (size_t)snprintf(keys + used, sizeof(keys) - used, "%s%s", idx == 0 ? "" : ", ",
                parameters[idx].key);
    }

    return uc_error(UC_ERR_INVALID_PARAM, "policy %s: parameter '%s' is unknown; known: %s", policy,
            key, keys);
}

static enum uc_status
read_one(const char *policy, const struct uc_policy_parameter *parameter,
        const struct uc_dict *dict, void *target)
{
    double value = 0;
    enum uc_status status = uc_dict_get_double(dict, parameter->key, &value);

    if (status == UC_ERR_NOT_FOUND) {
        return UC_OK;
    }
    /* The negation refuses what is not a number, too. */
    if (status != UC_OK || !(value >= parameter->min && value <= parameter->max)) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "policy %s: parameter '%s' is not a number from %g to %g", policy, parameter->key,
                parameter->min, parameter->max);
    }

    memcpy((char *)target + parameter->offset, &value, sizeof(value));
    return UC_OK;
}

enum uc_status
uc_policy_read_parameters(const char *policy, const struct uc_policy_parameter *parameters,
        size_t count, const struct uc_dict *dict, void *target)
{
    size_t given = dict == NULL ? 0 : uc_dict_count(dict);

    for (size_t idx = 0; idx < given; idx++) {
        const char *key = uc_dict_key_at(dict, idx);
        size_t at = 0;
        enum uc_status status;

        while (at < count && strcmp(parameters[at].key, key) != 0) {
            at++;
        }
        if (at == count) {
            return refuse_unknown(policy, parameters, count, key);
        }

        status = read_one(policy, &parameters[at], dict, target);
        if (status != UC_OK) {
            return status;
        }
    }

    return UC_OK;
}
