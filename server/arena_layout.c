/* SPDX-License-Identifier: Apache-2.0 */

#include <inttypes.h>

#include "net/slot_footer.h"
#include "server/arena.h"

enum {
    PAGE_BYTES = 4096,
    SLOTS_MAX = INT32_MAX
};

static uint64_t
round_up(uint64_t value, uint64_t step)
{
    return (value + step - 1) / step * step;
}

static enum uc_status
count_slots(const struct uc_namespace_config *config, uint64_t slot_stride, uint64_t *count_out)
{
    uint64_t count = config->capacity_blocks;

    if (count == 0) {
        count = config->capacity_bytes / slot_stride;
    }
    if (count == 0) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "namespaces.0.capacity is %" PRIu64 " bytes, but one block of %" PRIu64
                " bytes takes %" PRIu64 " with its footer; raise capacity or lower block_bytes",
                config->capacity_bytes, config->block_bytes, slot_stride);
    }
    if (count > SLOTS_MAX) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "namespaces.0 would hold %" PRIu64 " blocks; at most %d are supported; raise "
                "block_bytes or lower capacity",
                count, SLOTS_MAX);
    }

    *count_out = count;
    return UC_OK;
}

enum uc_status
uc_arena_plan(const struct uc_namespace_config *config, struct uc_arena_layout *layout_out)
{
    struct uc_arena_layout layout = {.block_bytes = config->block_bytes};
    uint64_t slot_count = 0;
    uint64_t slots_per_region;
    uint64_t region_count;
    enum uc_status status;

    layout.slot_stride = round_up(config->block_bytes + UC_FOOTER_BYTES, config->align_bytes);
    status = count_slots(config, layout.slot_stride, &slot_count);
    if (status != UC_OK) {
        return status;
    }

    slots_per_region = config->region_bytes / layout.slot_stride;
    if (slots_per_region == 0) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "namespaces.0.region_bytes is %" PRIu64 ", but one block with its footer takes "
                "%" PRIu64 "; raise region_bytes",
                config->region_bytes, layout.slot_stride);
    }
    slots_per_region = slots_per_region < slot_count ? slots_per_region : slot_count;
    region_count = (slot_count + slots_per_region - 1) / slots_per_region;
    if (region_count > UC_ARENA_REGIONS_MAX) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "namespaces.0.region_bytes is %" PRIu64 " and makes %" PRIu64
                " regions; at most %d are supported; raise region_bytes",
                config->region_bytes, region_count, UC_ARENA_REGIONS_MAX);
    }

    layout.slot_count = (uint32_t)slot_count;
    layout.slots_per_region = (uint32_t)slots_per_region;
    layout.region_count = (uint32_t)region_count;
    layout.region_span = round_up(slots_per_region * layout.slot_stride, PAGE_BYTES);
    layout.total_bytes =
            (region_count - 1) * layout.region_span +
            round_up(uc_arena_layout_region_bytes(&layout, layout.region_count - 1), PAGE_BYTES);
    *layout_out = layout;
    return UC_OK;
}

uint64_t
uc_arena_layout_region_bytes(const struct uc_arena_layout *layout, uint32_t region_idx)
{
    uint32_t before = region_idx * layout->slots_per_region;
    uint32_t left = layout->slot_count - before;

    return (left < layout->slots_per_region ? left : layout->slots_per_region) *
           layout->slot_stride;
}

void
uc_arena_layout_address(const struct uc_arena_layout *layout, uint32_t slot,
        uint32_t *region_idx_out, uint64_t *offset_out)
{
    *region_idx_out = slot / layout->slots_per_region;
    *offset_out = slot % layout->slots_per_region * layout->slot_stride;
}

bool
uc_arena_layout_locate(const struct uc_arena_layout *layout, uint32_t region_idx,
        uint64_t offset_bytes, uint64_t length_bytes, struct uc_arena_place *place_out)
{
    uint64_t used_bytes = layout->block_bytes + UC_FOOTER_BYTES;
    uint64_t inside;

    if (region_idx >= layout->region_count ||
            offset_bytes >= uc_arena_layout_region_bytes(layout, region_idx)) {
        return false;
    }

    inside = offset_bytes % layout->slot_stride;
    if (inside > used_bytes || length_bytes == 0 || length_bytes > used_bytes - inside) {
        return false;
    }

    place_out->slot =
            region_idx * layout->slots_per_region + (uint32_t)(offset_bytes / layout->slot_stride);
    place_out->offset_bytes = inside;
    return true;
}
