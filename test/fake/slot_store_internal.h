/* SPDX-License-Identifier: Apache-2.0 */

/** @file slot_store_internal.h What the slots of a slot store and its prefetches share. */

#ifndef UC_TEST_SLOT_STORE_INTERNAL_H
#define UC_TEST_SLOT_STORE_INTERNAL_H

#include <ucm/store.h>

#include "core/base/completion_queue.h"
#include "core/store/prefetch_ask.h"
#include "test/fake/slot_table.h"

struct slot_store {
    struct uc_store base;
    struct uc_completion_queue *events;
    struct slot_table table;
    char node_path[96];

    /* The tier below; its store is NULL at the bottom. This store is its only caller. */
    struct uc_prefetch_lower lower;
    const struct uc_token_addressed_ops *lower_tokened;
    struct uc_prefetch_queries *queries; /* control thread */
    uint64_t next_lower_job_id;          /* data thread */
    bool is_registered_below;
};

/** Take the lower tier out of the setup dictionary; without one nothing happens. */
UC_MUST_CHECK enum uc_status slot_prefetch_setup(
        struct slot_store *self, const struct uc_dict *config, bool moves_bytes);

/** Conclude plans that are out. */
void slot_prefetch_fini(struct slot_store *self);

extern const struct uc_prefetchable_ops slot_prefetch_ops;

struct slot_store *slot_store_of(struct uc_store *store);

/* Operations of the store, for its own use. */
enum uc_status slot_lookup(
        struct uc_store *store, const struct uc_block_id *ids, size_t count, uint8_t *hits_out);
enum uc_status slot_alloc(struct uc_store *store, const struct uc_block_id *ids, size_t count,
        const struct uc_request_context *context, struct uc_token **token_out);

/** @return the slot that key @p key of the token names, with its generation, or NULL. */
struct slot *slot_of_token(const struct slot_store *self, const struct uc_token *token, size_t key,
        uint32_t *generation_out);

/** @return whether magic, identity and length of the payload are those of this store's tokens. */
bool slot_token_is_ours(const struct slot_store *self, const struct uc_token *token);

#endif /* UC_TEST_SLOT_STORE_INTERNAL_H */
