/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file grants.h
 * The grants that this process holds and has not concluded. A token concludes its grant once: what is not
 * here is not ours, of an ended session, or concluded already.
 *
 * Threads: one (the store's control thread).
 */

#ifndef UC_REMOTE_GRANTS_H
#define UC_REMOTE_GRANTS_H

#include <stddef.h>
#include <stdint.h>

#include <ucm/compiler.h>
#include <ucm/status.h>

#include "core/base/list.h"
#include "net/rpc/messages.h"
#include "net/token_payload.h"

enum {
    UC_GRANT_BUCKETS = 256,
};

/** One grant. Heap memory, made before the call that will be given it. */
struct uc_held_grant {
    struct uc_list link;
    size_t server; /* index in the server list */
    uint64_t grant;
    uint64_t epoch; /* of the session, see client/cluster/session.h */
    size_t key_count;
    enum uc_token_kind kind;
    uint8_t attach_key[UC_ATTACH_KEY_BYTES];
    uint8_t mac_key[UC_MAC_KEY_BYTES];
};

struct uc_grants {
    struct uc_list buckets[UC_GRANT_BUCKETS];
    size_t count;
};

void uc_grants_init(struct uc_grants *grants);

/** Forget all; the server releases them with the session. */
void uc_grants_fini(struct uc_grants *grants);

/** The table owns the record from now on. */
void uc_grants_add(struct uc_grants *grants, struct uc_held_grant *held);

/**
 * Take out the record that a token's node names.
 *
 * @return the record, now the caller's to free, or NULL
 */
struct uc_held_grant *uc_grants_take(struct uc_grants *grants, const struct uc_token_node *node,
        enum uc_token_kind kind, size_t key_count);

/** Conclude locally what sessions of a server other than @p epoch held. */
void uc_grants_forget_others(struct uc_grants *grants, size_t server, uint64_t epoch);

#endif /* UC_REMOTE_GRANTS_H */
