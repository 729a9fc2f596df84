/* SPDX-License-Identifier: Apache-2.0 */

/* Leases: who was silent for too long, and whose fault it was (ARCHITECTURE.md §3). */

#include <inttypes.h>

#include <ucm/log.h>

#include "server/attachment.h"
#include "server/peer.h"
#include "server/session.h"
#include "server/state.h"

enum {
    PERIODS_PER_LEASE = 10,
    PERIOD_MAX_MS = 500,
    CHECKS_PER_LEASE = 100,
};

uint64_t
uc_lease_period_ms(const struct uc_server *server)
{
    uint64_t period_ms = server->config->lease_ms / PERIODS_PER_LEASE;

    return period_ms > PERIOD_MAX_MS ? PERIOD_MAX_MS : period_ms;
}

uint64_t
uc_lease_delay_ms(const struct uc_server *server)
{
    uint64_t gap_ms = server->now_ms - server->turn_ms;
    uint64_t period_ms = uc_lease_period_ms(server);

    if (server->turn_ms == 0 || gap_ms <= period_ms ||
            gap_ms - period_ms <= server->config->lease_ms / 3) {
        return 0;
    }
    return gap_ms - period_ms;
}

void
uc_lease_extend(struct uc_server *server, uint64_t delay_ms)
{
    uc_log_warn(
            "server: its own loop was %" PRIu64 " ms late; leases are extended by that", delay_ms);
    uc_list_for_each (node, &server->peers) {
        struct uc_peer *peer = uc_list_entry(node, struct uc_peer, node);

        peer->heard_ms += delay_ms;
        if (peer->heard_ms > server->now_ms) {
            peer->heard_ms = server->now_ms;
        }
    }
}

/* @return whether the peer is gone from the list of peers, perhaps with others of its group */
static bool
check_peer(struct uc_server *server, struct uc_peer *peer)
{
    uint64_t lease_ms = server->config->lease_ms;
    uint64_t silent_ms = server->now_ms - peer->heard_ms;

    if (peer->session != NULL && silent_ms >= lease_ms) {
        uc_log_warn("session %" PRIu64 ": silent for %" PRIu64 " ms, lease is %" PRIu64
                    " ms: fence",
                peer->session->id, silent_ms, lease_ms);
        uc_session_end(server, peer->session, "its lease ended");
        return true;
    }
    if (peer->attachment != NULL && silent_ms >= lease_ms) {
        uc_log_warn("attachment %" PRIu64 ": silent for %" PRIu64 " ms, lease is %" PRIu64
                    " ms: fence",
                peer->attachment->id, silent_ms, lease_ms);
        uc_attachment_end(server, peer->attachment, "its lease ended");
        return true;
    }
    if (peer->session == NULL && peer->attachment == NULL && silent_ms >= UC_PEER_STRANGER_MS) {
        uc_log_debug("peer %s: neither hello nor attach: closed", peer->address);
        uc_peer_close(peer);
        return true;
    }

    (void)uc_rpc_connection_expire(peer->connection, server->now_ms);
    return false;
}

static bool
check_until_one_goes(struct uc_server *server)
{
    uc_list_for_each (node, &server->peers) {
        if (check_peer(server, uc_list_entry(node, struct uc_peer, node))) {
            return true;
        }
    }
    return false;
}

void
uc_lease_check(struct uc_server *server)
{
    if (server->now_ms - server->checked_ms < server->config->lease_ms / CHECKS_PER_LEASE) {
        return;
    }

    server->checked_ms = server->now_ms;
    /* Ending a session closes the connections of its whole group: begin again after each. */
    while (check_until_one_goes(server)) {
    }
}
