/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file fabric_peers.h
 * Who may connect a fabric and who has: outstanding nonces (under a lock, both threads) and admitted
 * endpoints (fabric thread only).
 */

#ifndef UC_SERVER_FABRIC_PEERS_H
#define UC_SERVER_FABRIC_PEERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/compiler.h>
#include <ucm/status.h>

#include "core/base/list.h"
#include "core/base/mutex.h"
#include "net/fabric.h"
#include "server/fabric_unit.h"

enum {
    /* Of one attachment: a client that asks again and again must not grow the table. */
    UC_FABRIC_NONCES_PER_ATTACHMENT = 8,
    UC_FABRIC_ENDPOINTS_PER_ATTACHMENT = 16,
};

/** First a nonce that is waited for, then an endpoint. */
struct uc_fabric_peer {
    struct uc_list node;
    struct uc_fabric_unit *unit;         /* once admitted */
    struct uc_fabric_endpoint *endpoint; /* NULL until connected */
    uint64_t attachment;
    uint64_t epoch;
    enum uc_fabric_access access;
    uint8_t nonce[UC_FABRIC_NONCE_BYTES];
};

struct uc_fabric_peers {
    struct uc_mutex lock;
    struct uc_list expected; /* guarded by lock */
    struct uc_list admitted; /* fabric thread */
};

void uc_fabric_peers_init(struct uc_fabric_peers *peers);
/** Frees what is still expected; nothing is admitted any more. */
void uc_fabric_peers_fini(struct uc_fabric_peers *peers);

/** Wait for @p peer (owned from now on); drops the attachment's oldest nonce if it has too many. */
void uc_fabric_peers_expect(struct uc_fabric_peers *peers, struct uc_fabric_peer *peer);

/** Spend a nonce. @return the peer, admitted, or NULL. Fabric thread. */
struct uc_fabric_peer *uc_fabric_peers_admit(struct uc_fabric_peers *peers,
        struct uc_fabric_unit *unit, const uint8_t nonce[UC_FABRIC_NONCE_BYTES]);

/** Forget an endpoint that is gone. Fabric thread. */
void uc_fabric_peers_drop(struct uc_fabric_peer *peer);

/**
 * End every nonce and endpoint of an attachment up to an epoch. Not inside a callback. Fabric thread.
 *
 * @return whether none is left; false while an admitted one is not connected yet: call again after poll
 */
bool uc_fabric_peers_fence(struct uc_fabric_peers *peers, uint64_t attachment, uint64_t epoch);

/** End every connected endpoint. @return whether none is left */
bool uc_fabric_peers_fence_all(struct uc_fabric_peers *peers);

#endif /* UC_SERVER_FABRIC_PEERS_H */
