/* SPDX-License-Identifier: Apache-2.0 */

#include "client/proxy/routing_thresholds.h"

#include <stdlib.h>
#include <string.h>

#include <ucm/log.h>

struct uc_routing {
    size_t count; /* branches − 1 */
    uint64_t thresholds[];
};

static void
warn_unknown_keys(const struct uc_dict *config)
{
    for (size_t idx = 0; idx < uc_dict_count(config); idx++) {
        const char *key = uc_dict_key_at(config, idx);

        if (strcmp(key, "thresholds") != 0) {
            uc_log_warn("routing: key '%.64s' is unknown and has no effect: known is 'thresholds'",
                    key);
        }
    }
}

static enum uc_status
read_thresholds(const struct uc_dict *config, struct uc_routing *routing)
{
    int64_t previous = INT64_MAX;

    for (size_t idx = 0; idx < routing->count; idx++) {
        int64_t threshold = 0;
        enum uc_status status = uc_dict_get_int_at(config, "thresholds", idx, &threshold);

        if (status != UC_OK) {
            return uc_error(UC_ERR_INVALID_PARAM,
                    "key 'thresholds', element %zu: must be a whole number", idx);
        }
        if (threshold <= 0 || (idx != 0 && threshold >= previous)) {
            return uc_error(UC_ERR_INVALID_PARAM,
                    "key 'thresholds', element %zu is %lld: thresholds are above 0 and each is smaller "
                    "than the one before",
                    idx, (long long)threshold);
        }
        routing->thresholds[idx] = (uint64_t)threshold;
        previous = threshold;
    }

    return UC_OK;
}

enum uc_status
uc_routing_thresholds_create(
        const struct uc_dict *config, size_t branch_count, struct uc_routing **routing_out)
{
    struct uc_routing *routing;
    size_t count = 0;
    enum uc_status status = uc_dict_get_list_count(config, "thresholds", &count);

    if (status != UC_OK && status != UC_ERR_NOT_FOUND) {
        return uc_error(UC_ERR_INVALID_PARAM, "key 'thresholds' must be a list of whole numbers");
    }
    if (count != branch_count - 1) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "key 'thresholds' has %zu elements for %zu branches: it needs one less than branches",
                count, branch_count);
    }

    warn_unknown_keys(config);
    routing = calloc(1, sizeof(*routing) + count * sizeof(routing->thresholds[0]));
    if (routing == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "no memory for %zu thresholds", count);
    }
    routing->count = count;
    status = read_thresholds(config, routing);
    if (status != UC_OK) {
        free(routing);
        return status;
    }

    *routing_out = routing;
    return UC_OK;
}

void
uc_routing_thresholds_destroy(struct uc_routing *routing)
{
    free(routing);
}

size_t
uc_routing_thresholds_select(const struct uc_routing *routing, bool has_fact, uint64_t fact)
{
    for (size_t idx = 0; has_fact && idx < routing->count; idx++) {
        if (fact > routing->thresholds[idx]) {
            return idx;
        }
    }

    return routing->count;
}
