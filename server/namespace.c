/* SPDX-License-Identifier: Apache-2.0 */

#include "server/namespace.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ucm/log.h>

static enum uc_status
create_index(struct uc_namespace *ns, const struct uc_namespace_config *config,
        const struct uc_clock *clock)
{
    struct uc_cache_config cache_config = {
            .capacity = ns->layout.slot_count,
            .policy = config->policy,
            .parameters = config->policy_config,
            .clock = *clock,
    };

    enum uc_status status = uc_cache_buffer_create(&cache_config, &ns->index);

    return status == UC_OK ? UC_OK : uc_error(status, "namespaces.0.policy: %s", uc_last_error());
}

enum uc_status
uc_namespace_create(const struct uc_namespace_config *config, const struct uc_clock *clock,
        struct uc_namespace **ns_out)
{
    struct uc_namespace *ns = calloc(1, sizeof(*ns));
    enum uc_status status;

    if (ns == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "no memory for namespace %s", config->name);
    }

    (void)snprintf(ns->name, sizeof(ns->name), "%.*s", UC_NAME_MAX, config->name);
    status = uc_arena_plan(config, &ns->layout);
    if (status != UC_OK) {
        goto err_free;
    }
    status = uc_arena_check(&ns->layout, config);
    if (status != UC_OK) {
        goto err_free;
    }
    /* The index first: what is wrong with the policy is found before memory is faulted in. */
    status = create_index(ns, config, clock);
    if (status != UC_OK) {
        goto err_free;
    }
    ns->slots = calloc(ns->layout.slot_count, sizeof(ns->slots[0]));
    if (ns->slots == NULL) {
        status = uc_error(
                UC_ERR_OUT_OF_MEMORY, "no memory for %" PRIu32 " slots", ns->layout.slot_count);
        goto err_destroy_index;
    }
    status = uc_arena_create(&ns->layout, config, &ns->arena);
    if (status != UC_OK) {
        goto err_free_slots;
    }

    uc_log_info("namespace %s: %" PRIu32 " blocks of %" PRIu64 " bytes in %" PRIu32
                " regions, policy %s",
            ns->name, ns->layout.slot_count, ns->layout.block_bytes, ns->layout.region_count,
            config->policy);
    *ns_out = ns;
    return UC_OK;

err_free_slots:
    free(ns->slots);
err_destroy_index:
    uc_cache_buffer_destroy(ns->index);
err_free:
    free(ns);
    return status;
}

void
uc_namespace_destroy(struct uc_namespace *ns)
{
    if (ns == NULL) {
        return;
    }

    uc_arena_destroy(ns->arena);
    free(ns->slots);
    uc_cache_buffer_destroy(ns->index);
    free(ns);
}

static uint8_t *
footer_of(const struct uc_namespace *ns, uint32_t slot)
{
    return uc_arena_slot(ns->arena, slot) + ns->layout.block_bytes;
}

void
uc_namespace_put_footer(struct uc_namespace *ns, uint32_t slot, enum uc_footer_state state,
        uint64_t generation, const struct uc_block_id *key, bool fresh)
{
    uc_slot_footer_put_server(footer_of(ns, slot), state, generation, key, fresh);
}

void
uc_namespace_settle_footer(struct uc_namespace *ns, uint32_t slot, uint64_t length_bytes)
{
    uint8_t *bytes = footer_of(ns, slot);
    struct uc_slot_footer footer = {0};

    if (uc_slot_footer_get(bytes, &footer) == UC_OK &&
            footer.checksum_kind != UC_CHECKSUM_UNWRITTEN && footer.length_bytes != length_bytes) {
        uc_slot_footer_put_writer(
                bytes + UC_FOOTER_WRITER_OFFSET, length_bytes, UC_CHECKSUM_NONE, 0);
    }
}

void
uc_namespace_publish_footers(struct uc_namespace *ns)
{
    /* Pairs with the peer's access over the fabric, which follows our answer: a read-modify-write orders
       all earlier stores on every machine, and the sanitizers understand it, unlike a fence. */
    (void)atomic_fetch_add_explicit(&ns->footer_epoch, 1, memory_order_seq_cst);
}

struct uc_entry
uc_namespace_entry(
        const struct uc_namespace *ns, uint32_t slot, uint64_t generation, uint64_t length_bytes)
{
    struct uc_entry entry = {.generation = generation, .length_bytes = length_bytes};

    uc_arena_layout_address(&ns->layout, slot, &entry.region_idx, &entry.offset_bytes);
    return entry;
}

void
uc_namespace_allow_writes(struct uc_namespace *ns, uint32_t slot)
{
    (void)atomic_fetch_add_explicit(&ns->slots[slot].writable, 1, memory_order_acq_rel);
}

void
uc_namespace_forbid_writes(struct uc_namespace *ns, uint32_t slot)
{
    /* Pairs with may_write(): either the fabric thread sees the lower count and does not write, or the
       commit that follows sees the transfer that it has begun. */
    (void)atomic_fetch_sub_explicit(&ns->slots[slot].writable, 1, memory_order_acq_rel);
}

/* Whether a bracket is open; asked after the transfer has begun. */
static bool
may_write(struct uc_namespace *ns, uint32_t slot)
{
    return atomic_fetch_add_explicit(&ns->slots[slot].writable, 0, memory_order_acq_rel) > 0;
}

/* A write may touch the data or the writer's part of the footer, never the server's part. */
static bool
is_writers(const struct uc_namespace *ns, uint64_t offset_bytes, uint64_t length_bytes)
{
    uint64_t writer_begin = ns->layout.block_bytes + UC_FOOTER_WRITER_OFFSET;

    if (offset_bytes >= writer_begin) {
        return true; /* locate has checked the end */
    }
    return offset_bytes < ns->layout.block_bytes &&
           length_bytes <= ns->layout.block_bytes - offset_bytes;
}

enum uc_status
uc_namespace_hold(struct uc_namespace *ns, enum uc_fabric_access access, uint32_t region_idx,
        uint64_t offset_bytes, uint64_t length_bytes, uint64_t generation,
        enum uc_fabric_opcode opcode)
{
    struct uc_arena_place place;
    enum uc_status status;

    if (generation == 0 ||
            !uc_arena_layout_locate(&ns->layout, region_idx, offset_bytes, length_bytes, &place)) {
        return UC_ERR_INVALID_PARAM;
    }
    if (opcode == UC_FABRIC_WRITE) {
        if (access != UC_FABRIC_READ_WRITE) {
            return UC_ERR_PERMISSION_DENIED;
        }
        if (!is_writers(ns, place.offset_bytes, length_bytes)) {
            return UC_ERR_INVALID_PARAM;
        }
    }

    status = uc_cache_buffer_transfer_begin(ns->index, place.slot, generation);
    if (status != UC_OK) {
        return status;
    }
    if (opcode == UC_FABRIC_WRITE && !may_write(ns, place.slot)) {
        uc_cache_buffer_transfer_end(ns->index, place.slot);
        return UC_ERR_INVALID_PARAM;
    }

    (void)atomic_fetch_add_explicit(
            opcode == UC_FABRIC_WRITE ? &ns->written_bytes : &ns->read_bytes,
            opcode == UC_FABRIC_FLUSH ? 0 : length_bytes, memory_order_relaxed);
    return UC_OK;
}

void
uc_namespace_release(struct uc_namespace *ns, uint32_t region_idx, uint64_t offset_bytes)
{
    struct uc_arena_place place;

    if (uc_arena_layout_locate(&ns->layout, region_idx, offset_bytes, 1, &place)) {
        uc_cache_buffer_transfer_end(ns->index, place.slot);
    }
}

bool
uc_namespace_is_damaged(const struct uc_namespace *ns, uint32_t slot, uint64_t generation,
        const struct uc_block_id *key)
{
    struct uc_slot_footer footer;
    struct uc_checksum_piece piece;

    if (uc_slot_footer_get(footer_of(ns, slot), &footer) != UC_OK ||
            footer.state != UC_FOOTER_COMMITTED || footer.generation != generation ||
            memcmp(&footer.key, key, sizeof(*key)) != 0) {
        return true;
    }
    if (footer.length_bytes != ns->slots[slot].length_bytes) {
        return true; /* what the writer announced to us is not what it wrote down */
    }
    if (footer.checksum_kind == UC_CHECKSUM_NONE) {
        return false;
    }
    if (footer.checksum_kind != UC_CHECKSUM_XXH3_64) {
        return true;
    }

    piece.address = uc_arena_slot(ns->arena, slot);
    piece.length_bytes = footer.length_bytes;
    return uc_slot_checksum(key, generation, &piece, 1) != footer.checksum;
}
