/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file region_list.h
 * The memory regions that a store was told of, where it needs to know no more than where they lie and
 * which of them the processor cannot touch. No locking. `owner` is what error texts begin with.
 */

#ifndef UC_STORE_REGION_LIST_H
#define UC_STORE_REGION_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/block.h>
#include <ucm/compiler.h>
#include <ucm/status.h>

struct uc_listed_region;

struct uc_region_list {
    const char *owner;
    struct uc_listed_region *items;
    size_t count;
    size_t capacity;
    size_t device_count; /* of them */
};

/** @param owner  not copied */
UC_PRIVATE_API void uc_region_list_init(struct uc_region_list *regions, const char *owner);
UC_PRIVATE_API void uc_region_list_fini(struct uc_region_list *regions);

/**
 * Whether the kind can be used is not looked at.
 *
 * @retval UC_ERR_INVALID_PARAM  the index is taken, or the range is empty or wraps
 * @retval UC_ERR_OUT_OF_MEMORY
 */
UC_MUST_CHECK UC_PRIVATE_API enum uc_status uc_region_list_add(struct uc_region_list *regions,
        uint32_t region_idx, const void *address, uint64_t length_bytes, enum uc_memory_kind kind);

/** @retval UC_ERR_NOT_FOUND */
UC_MUST_CHECK UC_PRIVATE_API enum uc_status uc_region_list_remove(
        struct uc_region_list *regions, uint32_t region_idx);

/** @return whether a region is memory of a device. */
UC_PRIVATE_API bool uc_region_list_is_device(
        const struct uc_region_list *regions, uint32_t region_idx);

/**
 * Indices that are not known are accepted: for stores that need no registration.
 *
 * @retval UC_ERR_INVALID_PARAM  a pointer is not inside the region it names
 */
UC_MUST_CHECK UC_PRIVATE_API enum uc_status uc_region_list_check(
        const struct uc_region_list *regions, const struct uc_block_payload *payload);

/**
 * @param[out] on_device_out  whether the range is memory of a device
 * @retval UC_ERR_INVALID_PARAM  a part of it is, but it lies in no region of one as a whole
 */
UC_MUST_CHECK UC_PRIVATE_API enum uc_status uc_region_list_locate(
        const struct uc_region_list *regions, const void *address, uint64_t length_bytes,
        bool *on_device_out);

#endif /* UC_STORE_REGION_LIST_H */
