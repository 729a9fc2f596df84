/* SPDX-License-Identifier: Apache-2.0 */

#include "client/proxy/validate.h"

#include <stdint.h>

/* The keys [first, first + covered) lie inside the token. Compared by subtraction. */
static enum uc_status
check_range(const struct uc_transfer *transfer)
{
    const struct uc_io_context *io = transfer->io;
    size_t key_count = transfer->token->key_count;
    uint64_t covered;

    if (key_count == 0) {
        return uc_error(UC_ERR_INVALID_PARAM, "submit: the token has no keys");
    }
    if (io->first_key >= key_count) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "submit: first_key %llu is not below the token's %zu keys",
                (unsigned long long)io->first_key, key_count);
    }
    covered = io->key_count == 0 ? key_count - io->first_key : io->key_count;
    if (covered > key_count - io->first_key) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "submit: %llu keys from %llu on leave the token, which has %zu",
                (unsigned long long)covered, (unsigned long long)io->first_key, key_count);
    }
    if (covered != transfer->payload_count) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "submit: %zu payloads for %llu keys: there is one payload per key",
                transfer->payload_count, (unsigned long long)covered);
    }

    return UC_OK;
}

static enum uc_status
check_region(const struct uc_region_set *regions, size_t payload_idx, uint32_t region_idx,
        uint64_t address, uint64_t length_bytes)
{
    const struct uc_region *region;

    if (region_idx == UC_MEMORY_REGION_NONE) {
        return UC_OK;
    }
    region = uc_region_set_find(regions, region_idx);
    if (region == NULL) {
        return uc_error(UC_ERR_INVALID_PARAM, "payload %zu: memory region %u is not registered",
                payload_idx, region_idx);
    }
    if (address < region->address || address - region->address > region->length_bytes ||
            length_bytes > region->length_bytes - (address - region->address)) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "payload %zu: %llu bytes at 0x%llx leave memory region %u", payload_idx,
                (unsigned long long)length_bytes, (unsigned long long)address, region_idx);
    }

    return UC_OK;
}

static enum uc_status
check_pointers(
        const struct uc_block_payload *payload, size_t idx, const struct uc_region_set *regions)
{
    uint64_t left_bytes = UINT64_MAX - payload->block_offset;

    for (size_t at = 0; at < payload->pointer_count; at++) {
        uint64_t address = (uintptr_t)payload->pointers[at];
        uint64_t length_bytes = payload->sizes[at];
        enum uc_status status;

        if ((address == 0 && length_bytes != 0) || length_bytes > UINTPTR_MAX - address ||
                length_bytes > left_bytes) {
            return uc_error(UC_ERR_INVALID_PARAM,
                    "payload %zu: %llu bytes at 0x%llx are no range of memory, or too many in sum",
                    idx, (unsigned long long)length_bytes, (unsigned long long)address);
        }
        left_bytes -= length_bytes;
        if (payload->memory_region_index_count == 0) {
            continue;
        }
        status = check_region(
                regions, idx, payload->memory_region_indices[at], address, length_bytes);
        if (status != UC_OK) {
            return status;
        }
    }

    return UC_OK;
}

static enum uc_status
check_groups(const struct uc_block_payload *payload, size_t idx)
{
    uint64_t left = payload->pointer_count;

    if (payload->group_count == 0) {
        return UC_OK;
    }
    if (payload->group_sizes == NULL) {
        return uc_error(UC_ERR_INVALID_PARAM, "payload %zu: group_sizes is null", idx);
    }

    for (size_t at = 0; at < payload->group_count; at++) {
        if (payload->group_sizes[at] > left) {
            left = UINT64_MAX;
            break;
        }
        left -= payload->group_sizes[at];
    }
    if (left != 0) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "payload %zu: the group sizes do not sum up to its %zu pointers", idx,
                payload->pointer_count);
    }

    return UC_OK;
}

static enum uc_status
check_payload(
        const struct uc_block_payload *payload, size_t idx, const struct uc_region_set *regions)
{
    enum uc_status status;

    if (payload->pointer_count == 0 || payload->pointers == NULL || payload->sizes == NULL) {
        return uc_error(UC_ERR_INVALID_PARAM, "payload %zu: it has no pointers or no sizes", idx);
    }
    if (payload->memory_region_index_count != 0 &&
            (payload->memory_region_index_count != payload->pointer_count ||
                    payload->memory_region_indices == NULL)) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "payload %zu: %zu memory region indices for %zu pointers: give none, or one each",
                idx, payload->memory_region_index_count, payload->pointer_count);
    }
    status = check_pointers(payload, idx, regions);
    if (status != UC_OK) {
        return status;
    }

    return check_groups(payload, idx);
}

enum uc_status
uc_transfer_validate(const struct uc_transfer *transfer, const struct uc_region_set *regions,
        bool is_plain, size_t *first_key_out)
{
    enum uc_status status = check_range(transfer);

    if (status != UC_OK) {
        return status;
    }
    for (size_t idx = 0; idx < transfer->payload_count; idx++) {
        status = check_payload(&transfer->payloads[idx], idx, regions);
        if (status != UC_OK) {
            return status;
        }
    }
    if (is_plain && transfer->token->payload_bytes != 0) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "submit: the token carries %zu bytes of payload, but this store mints keys only: it comes "
                "from another store",
                transfer->token->payload_bytes);
    }

    *first_key_out = (size_t)transfer->io->first_key;
    return UC_OK;
}
