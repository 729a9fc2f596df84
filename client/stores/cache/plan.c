/* SPDX-License-Identifier: Apache-2.0 */

#include "client/stores/cache/plan.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/bytes.h"

enum {
    HEADER_BYTES = 32,
    NUMBER_AT = 8
};

static const uint8_t magic[4] = {'U', 'C', 'F', '1'};

enum uc_status
uc_cache_plan_create(bool is_delegated, const struct uc_token *destinations,
        const struct uc_token *lower, struct uc_token **plan_out)
{
    const struct uc_token *keys = destinations != NULL ? destinations : lower;
    size_t destinations_bytes = destinations == NULL ? 0 : destinations->payload_bytes;
    size_t lower_bytes = lower == NULL ? 0 : uc_token_serialized_bytes(lower);
    size_t bytes = HEADER_BYTES + destinations_bytes + lower_bytes;
    uint8_t *payload = calloc(1, bytes);
    enum uc_status status;

    if (payload == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "cache store: no memory for a plan");
    }

    memcpy(payload, magic, sizeof(magic));
    uc_put_le32(payload + 4, is_delegated ? 1 : 0);
    uc_put_le64(payload + 16, destinations_bytes);
    uc_put_le64(payload + 24, lower_bytes);
    if (destinations != NULL) {
        memcpy(payload + HEADER_BYTES, destinations->payload, destinations_bytes);
    }
    if (lower != NULL) {
        uc_token_serialize(lower, payload + HEADER_BYTES + destinations_bytes);
    }
    status = uc_token_create(keys == NULL ? NULL : keys->keys, keys == NULL ? 0 : keys->key_count,
            payload, bytes, plan_out);
    free(payload);
    return status;
}

void
uc_cache_plan_set_number(struct uc_token *plan, uint64_t number)
{
    uc_put_le64((uint8_t *)(uintptr_t)plan->payload + NUMBER_AT, number);
}

enum uc_status
uc_cache_plan_read(const struct uc_token *token, struct uc_cache_plan *plan_out)
{
    struct uc_cache_plan plan;
    size_t room;

    if (token->payload_bytes < HEADER_BYTES || memcmp(token->payload, magic, sizeof(magic)) != 0) {
        return uc_error(UC_ERR_INVALID_PARAM, "cache store: %zu bytes are no plan of a cache store",
                token->payload_bytes);
    }

    room = token->payload_bytes - HEADER_BYTES;
    plan.is_delegated = uc_get_le32(token->payload + 4) != 0;
    plan.number = uc_get_le64(token->payload + NUMBER_AT);
    plan.destinations_bytes = (size_t)uc_get_le64(token->payload + 16);
    plan.lower_bytes = (size_t)uc_get_le64(token->payload + 24);
    if (plan.destinations_bytes > room || plan.lower_bytes != room - plan.destinations_bytes) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "cache store: the parts of a plan do not make its %zu bytes", token->payload_bytes);
    }
    plan.destinations = token->payload + HEADER_BYTES;
    plan.lower = plan.destinations + plan.destinations_bytes;
    *plan_out = plan;
    return UC_OK;
}
