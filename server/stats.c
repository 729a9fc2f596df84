/* SPDX-License-Identifier: Apache-2.0 */

#include "server/state.h"

void
uc_stats_fill(struct uc_server *server, struct uc_stat_reply *reply_out)
{
    const struct uc_counters *counters = &server->counters;
    struct uc_namespace *ns = server->ns;
    struct uc_cache_stats cache = uc_cache_buffer_stats(ns->index);

    *reply_out = (struct uc_stat_reply){
            .capacity_blocks = cache.capacity,
            .block_bytes = ns->layout.block_bytes,
            .slot_bytes = ns->layout.slot_stride,
            .blocks = cache.blocks,
            .free_slots = cache.free,
            .reserved_slots = cache.reserved,
            .pinned_slots = cache.pinned,
            .draining_slots = cache.draining,
            .evictable_slots = cache.evictable,
            .sessions = counters->sessions,
            .attachments = counters->attachments,
            .grants = counters->grants,
            .open_brackets = counters->open_brackets,
            .lookup_keys_total = counters->lookup_keys,
            .lookup_hits_total = counters->lookup_hits,
            .pinned_keys_total = counters->pinned_keys,
            .alloc_keys_total = counters->alloc_keys,
            .present_keys_total = counters->present_keys,
            .shared_keys_total = counters->shared_keys,
            .committed_blocks_total = cache.committed_total,
            .evicted_blocks_total = cache.evicted_total,
            .released_blocks_total = counters->released_blocks,
            .holes_total = counters->holes,
            .reports_total = counters->reports,
            .revoked_blocks_total = counters->revoked_blocks,
            .fences_total = counters->fences,
            .read_bytes_total = atomic_load_explicit(&ns->read_bytes, memory_order_relaxed),
            .written_bytes_total = atomic_load_explicit(&ns->written_bytes, memory_order_relaxed),
            .uptime_ms = server->now_ms - server->started_ms,
            .incarnation = server->incarnation,
    };
}
