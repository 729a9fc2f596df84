/* SPDX-License-Identifier: Apache-2.0 */

#include "server/fabric_peers.h"

#include <stdlib.h>

#include "server/secret.h"

static struct uc_fabric_peer *
peer_of(struct uc_list *node)
{
    return uc_list_entry(node, struct uc_fabric_peer, node);
}

void
uc_fabric_peers_init(struct uc_fabric_peers *peers)
{
    uc_mutex_init(&peers->lock);
    uc_list_init(&peers->expected);
    uc_list_init(&peers->admitted);
}

static void
free_all(struct uc_list *list)
{
    struct uc_list *node;

    while ((node = uc_list_take(list)) != NULL) {
        free(peer_of(node));
    }
}

void
uc_fabric_peers_fini(struct uc_fabric_peers *peers)
{
    free_all(&peers->expected);
    free_all(&peers->admitted);
    uc_mutex_fini(&peers->lock);
}

void
uc_fabric_peers_expect(struct uc_fabric_peers *peers, struct uc_fabric_peer *peer)
{
    struct uc_fabric_peer *oldest = NULL;
    size_t count = 0;

    uc_mutex_lock(&peers->lock);
    uc_list_for_each (node, &peers->expected) {
        if (peer_of(node)->attachment == peer->attachment) {
            oldest = oldest == NULL ? peer_of(node) : oldest;
            count++;
        }
    }
    if (count >= UC_FABRIC_NONCES_PER_ATTACHMENT) {
        uc_list_remove(&oldest->node);
    } else {
        oldest = NULL;
    }
    uc_list_add(&peers->expected, &peer->node);
    uc_mutex_unlock(&peers->lock);
    free(oldest);
}

/* Every nonce is compared in full, so that the time says nothing about how much of one was right. */
static struct uc_fabric_peer *
take_expected(struct uc_fabric_peers *peers, const uint8_t *nonce)
{
    struct uc_fabric_peer *found = NULL;

    uc_mutex_lock(&peers->lock);
    uc_list_for_each (node, &peers->expected) {
        if (uc_secret_equal(peer_of(node)->nonce, nonce, UC_FABRIC_NONCE_BYTES)) {
            found = peer_of(node);
        }
    }
    if (found != NULL) {
        uc_list_remove(&found->node);
    }
    uc_mutex_unlock(&peers->lock);
    return found;
}

struct uc_fabric_peer *
uc_fabric_peers_admit(struct uc_fabric_peers *peers, struct uc_fabric_unit *unit,
        const uint8_t nonce[UC_FABRIC_NONCE_BYTES])
{
    struct uc_fabric_peer *peer = take_expected(peers, nonce);
    size_t count = 0;

    if (peer == NULL) {
        return NULL;
    }
    uc_list_for_each (node, &peers->admitted) {
        count += peer_of(node)->attachment == peer->attachment;
    }
    if (count >= UC_FABRIC_ENDPOINTS_PER_ATTACHMENT) {
        free(peer);
        return NULL;
    }

    peer->unit = unit;
    uc_list_add(&peers->admitted, &peer->node);
    return peer;
}

void
uc_fabric_peers_drop(struct uc_fabric_peer *peer)
{
    uc_list_remove(&peer->node);
    free(peer);
}

static void
forget_expected(struct uc_fabric_peers *peers, uint64_t attachment, uint64_t epoch)
{
    struct uc_list dropped;

    uc_list_init(&dropped);
    uc_mutex_lock(&peers->lock);
    uc_list_for_each_safe (node, following, &peers->expected) {
        if (peer_of(node)->attachment == attachment && peer_of(node)->epoch <= epoch) {
            uc_list_remove(node);
            uc_list_add(&dropped, node);
        }
    }
    uc_mutex_unlock(&peers->lock);
    free_all(&dropped);
}

/* False if the endpoint is not known yet. Once disconnect returns, it touches no memory any more. */
static bool
end_peer(struct uc_fabric_peer *peer)
{
    if (peer->endpoint == NULL) {
        return false;
    }

    peer->unit->ops->disconnect(peer->endpoint);
    uc_fabric_peers_drop(peer);
    return true;
}

bool
uc_fabric_peers_fence(struct uc_fabric_peers *peers, uint64_t attachment, uint64_t epoch)
{
    bool done = true;

    forget_expected(peers, attachment, epoch);
    uc_list_for_each_safe (node, following, &peers->admitted) {
        struct uc_fabric_peer *peer = peer_of(node);

        if (peer->attachment == attachment && peer->epoch <= epoch) {
            done = end_peer(peer) && done;
        }
    }
    return done;
}

bool
uc_fabric_peers_fence_all(struct uc_fabric_peers *peers)
{
    bool done = true;

    uc_list_for_each_safe (node, following, &peers->admitted) {
        done = end_peer(peer_of(node)) && done;
    }
    return done;
}
