/* SPDX-License-Identifier: Apache-2.0 */

/* What a tier below makes necessary: destinations of plans, and blocks to be written through. */

#include "client/stores/cache/index_internal.h"

size_t
uc_cache_index_writable(struct uc_cache_index *index, const struct uc_block_id *ids, size_t count,
        struct uc_block_id *ids_out)
{
    size_t writable = 0;

    uc_cache_index_enter(index);
    for (size_t idx = 0; idx < count; idx++) {
        enum uc_cache_state state;
        uint8_t hit;

        uc_cache_buffer_lookup(index->buffer, &ids[idx], 1, &hit); /* removes what expired */
        state = uc_cache_buffer_peek(index->buffer, &ids[idx]).state;
        if (state == UC_CACHE_ABSENT || state == UC_CACHE_PENDING) {
            ids_out[writable++] = ids[idx];
        }
    }
    uc_mutex_unlock(&index->lock);
    return writable;
}

size_t
uc_cache_index_commit_whole(
        struct uc_cache_index *index, const struct uc_token *token, bool success)
{
    size_t committed = 0;

    uc_cache_index_enter(index);
    for (size_t idx = 0; idx < token->key_count; idx++) {
        struct uc_cache_place place = uc_cache_payload_key(token->payload, idx);
        bool whole = success && uc_cache_index_is_whole(index, place.slot, place.generation);

        if (uc_cache_index_commit_key(index, &token->keys[idx], place, whole) == UC_OK && whole) {
            committed++;
        }
    }
    uc_mutex_unlock(&index->lock);
    return committed;
}

void
uc_cache_index_set_sink(struct uc_cache_index *index, uc_cache_sink_fn sink, void *context)
{
    uc_cache_index_enter(index);
    index->sink = sink;
    index->sink_context = context;
    uc_mutex_unlock(&index->lock);
}

void
uc_cache_index_unpin_block(struct uc_cache_index *index, const struct uc_cache_committed *block)
{
    uc_cache_index_enter(index);
    uc_cache_index_unpin_key(index, &block->id,
            (struct uc_cache_place){.slot = block->slot, .generation = block->generation});
    uc_mutex_unlock(&index->lock);
}
