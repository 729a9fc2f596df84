/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file state.h
 * What the files of the control thread share. Everything here belongs to that thread; nothing is locked.
 */

#ifndef UC_SERVER_STATE_H
#define UC_SERVER_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/clock.h>
#include <ucm/compiler.h>
#include <ucm/status.h>

#include "core/base/list.h"
#include "core/base/warn_gate.h"
#include "net/rpc/buffer.h"
#include "net/rpc/messages.h"
#include "server/config.h"
#include "server/counters.h"
#include "server/fabric_thread.h"
#include "server/grant.h"
#include "server/namespace.h"
#include "server/scratch.h"
#include "server/server.h"

enum uc_server_phase {
    UC_SERVER_SERVING,
    UC_SERVER_DRAINING, /* no new connections, no alloc; open brackets may end */
    UC_SERVER_CLOSING,  /* every group is being fenced */
};

struct uc_server {
    const struct uc_server_config *config;
    struct uc_clock clock;
    uint64_t now_ms; /* when this turn of the loop began */
    uint64_t started_ms;
    uint64_t turn_ms;         /* when the turn before began; 0 before the first */
    uint64_t checked_ms;      /* when leases were checked last */
    uint64_t accept_after_ms; /* no descriptors were left: pause */
    struct uc_warn_gate accept_gate;
    enum uc_server_phase phase;
    bool accepting; /* the listener is in the epoll set */
    int epoll_fd;
    int listen_fd;
    uint16_t rpc_port;
    struct uc_namespace *ns;
    struct uc_fabric_thread *fabrics;
    struct uc_list peers;    /* struct uc_peer, open */
    struct uc_list closing;  /* struct uc_peer, to be destroyed at the end of the turn */
    struct uc_list sessions; /* struct uc_session */
    size_t peer_count;
    size_t peer_limit;
    uint64_t next_id; /* of sessions, attachments and grants */
    uint64_t incarnation;
    uint8_t server_id[UC_SERVER_ID_BYTES];
    struct uc_counters counters;
    struct uc_scratch scratch;
    struct uc_rpc_buffer reply; /* of the call being answered */
    uint8_t *region_lengths;    /* as in the attach reply, owned */
};

static inline struct uc_grant_scope
uc_server_scope(struct uc_server *server)
{
    struct uc_grant_scope scope = {
            .ns = server->ns,
            .scratch = &server->scratch,
            .counters = &server->counters,
    };

    return scope;
}

/** Fill the answer to `stat`. */
void uc_stats_fill(struct uc_server *server, struct uc_stat_reply *reply_out);

/** How often the loop turns at least, in ms. */
uint64_t uc_lease_period_ms(const struct uc_server *server);
/** The loop began this turn late: @return by how much every lease has to be extended, else 0. */
uint64_t uc_lease_delay_ms(const struct uc_server *server);
/** Extend every lease: the silence was ours. */
void uc_lease_extend(struct uc_server *server, uint64_t delay_ms);
/**
 * End sessions, attachments and strangers that were silent for too long, and let idle connections give
 * memory back. Once per hundredth of a lease, whatever the number of turns. After the sockets.
 */
void uc_lease_check(struct uc_server *server);

#endif /* UC_SERVER_STATE_H */
