/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file setup.h
 * What an assembler adds to the dictionary that a store's setup receives. A user's own
 * configuration never holds these keys; a store that is set up by hand may find none of them.
 */

#ifndef UC_SETUP_H
#define UC_SETUP_H

#include <stdint.h>

#include <ucm/status.h>

/** String: position in the tree, equal in all processes. */
#define UC_SETUP_NODE_PATH "node_path"
/** String: "both", "scheduler" or "worker". A scheduler instance moves no bytes. */
#define UC_SETUP_STORE_ROLE "store_role"
/** int64: tiers below this store; 0 for a single one. */
#define UC_SETUP_TIERS_BELOW "tiers_below"
/** Pointer to the struct uc_store of the next lower tier; absent at the bottom. */
#define UC_SETUP_PIPED_LOWER_STORE "piped_lower_store"
/** Pointer to a struct uc_prerequisite that outlives the store; absent without a hook. */
#define UC_SETUP_PREREQUISITE_HOOK "prerequisite_hook"

/**
 * Answers Ok when the event behind a handle fired, Retry when not yet, else a failure. Never blocks;
 * called from threads of the store.
 */
typedef enum uc_status (*uc_prerequisite_fn)(void *context, uint64_t handle);

/** A plain value; the context is the host's. */
struct uc_prerequisite {
    uc_prerequisite_fn poll;
    void *context;
};

#endif /* UC_SETUP_H */
