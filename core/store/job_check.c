/* SPDX-License-Identifier: Apache-2.0 */

#include "core/store/job_check.h"

#include <inttypes.h>

static enum uc_status
check_groups(const struct uc_block_payload *payload)
{
    size_t left = payload->pointer_count;

    if (payload->group_count == 0) {
        return UC_OK;
    }
    if (payload->group_sizes == NULL) {
        return uc_error(UC_ERR_INVALID_PARAM, "%zu groups without sizes", payload->group_count);
    }

    for (size_t idx = 0; idx < payload->group_count; idx++) {
        if (payload->group_sizes[idx] > left) {
            left = SIZE_MAX;
            break;
        }
        left -= (size_t)payload->group_sizes[idx];
    }
    if (left != 0) {
        return uc_error(UC_ERR_INVALID_PARAM, "group sizes do not add up to %zu pointers",
                payload->pointer_count);
    }
    return UC_OK;
}

enum uc_status
uc_payload_check(const struct uc_block_payload *payload, uint64_t *bytes_out)
{
    uint64_t room = UINT64_MAX - payload->block_offset;
    uint64_t bytes = 0;

    if (payload->pointer_count > 0 && (payload->pointers == NULL || payload->sizes == NULL)) {
        return uc_error(UC_ERR_INVALID_PARAM, "%zu pointers, but no pointer or size array",
                payload->pointer_count);
    }
    if (payload->memory_region_index_count != 0 &&
            (payload->memory_region_indices == NULL ||
                    payload->memory_region_index_count != payload->pointer_count)) {
        return uc_error(UC_ERR_INVALID_PARAM, "%zu region indices for %zu pointers",
                payload->memory_region_index_count, payload->pointer_count);
    }

    for (size_t idx = 0; idx < payload->pointer_count; idx++) {
        uint64_t size = payload->sizes[idx];
        uintptr_t address = (uintptr_t)payload->pointers[idx];

        if (size > 0 && (address == 0 || size - 1 > UINTPTR_MAX - address)) {
            return uc_error(UC_ERR_INVALID_PARAM,
                    "pointer %zu: %" PRIu64 " bytes at %p are no address range", idx, size,
                    payload->pointers[idx]);
        }
        if (size > room - bytes) {
            return uc_error(UC_ERR_INVALID_PARAM, "sizes and block_offset exceed 64 bits");
        }
        bytes += size;
    }
    if (check_groups(payload) != UC_OK) {
        return UC_ERR_INVALID_PARAM;
    }

    if (bytes_out != NULL) {
        *bytes_out = bytes;
    }
    return UC_OK;
}

enum uc_status
uc_job_check(const char *what, uint64_t job_id, const struct uc_job_descriptor *job)
{
    if (job == NULL || (job->count > 0 && (job->block_ids == NULL || job->payloads == NULL))) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "store %s: job %" PRIu64 " has no descriptor, ids or payloads", what, job_id);
    }

    for (size_t idx = 0; idx < job->count; idx++) {
        if (uc_payload_check(&job->payloads[idx], NULL) != UC_OK) {
            return uc_error(UC_ERR_INVALID_PARAM, "store %s: job %" PRIu64 ", payload %zu: %s",
                    what, job_id, idx, uc_last_error());
        }
    }
    return UC_OK;
}
