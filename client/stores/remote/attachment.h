/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file attachment.h
 * A worker's way to one session of one server: a data connection (attach, brackets, reports, pings) and a
 * fabric endpoint. Named by what a token says: server name, id, incarnation, attach key.
 *
 * Callbacks of the connection and of the fabric only leave notes; uc_attachment_step() acts on them, so that
 * nothing is destroyed under the feet of whoever called back.
 *
 * Threads: the progress thread.
 */

#ifndef UC_REMOTE_ATTACHMENT_H
#define UC_REMOTE_ATTACHMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/compiler.h>
#include <ucm/status.h>

#include "client/cluster/backoff.h"
#include "client/cluster/server_list.h"
#include "client/stores/remote/transports.h"
#include "core/base/list.h"
#include "net/fabric.h"
#include "net/rpc/connection.h"
#include "net/rpc/messages.h"

struct uc_data_plane;
struct uc_job;

enum uc_attachment_state {
    UC_ATTACHMENT_ATTACHING,  /* connecting, or the answer to attach is awaited; jobs wait */
    UC_ATTACHMENT_CONNECTING, /* the fabric connects; jobs wait */
    UC_ATTACHMENT_READY,      /* jobs run */
    UC_ATTACHMENT_DRAINING,   /* no endpoint; active jobs close their brackets; new jobs wait */
    UC_ATTACHMENT_DOWN,       /* out of reach until the next attempt; jobs fail at once */
    UC_ATTACHMENT_DEAD,       /* the server does not know it; to be destroyed */
};

/** A way over which the server can be reached, copied from the answer to attach. */
struct uc_attachment_offer {
    char name[UC_NAME_MAX + 1];
    char address[UC_SERVER_NAME_MAX + 1]; /* "" = that of the data connection */
    uint16_t port;
    uint8_t *keys; /* per region: address, key */
};

struct uc_attachment {
    struct uc_list link; /* of the plane */
    struct uc_data_plane *plane;
    enum uc_attachment_state state;

    const struct uc_server_address *server;
    uint8_t server_id[UC_SERVER_ID_BYTES];
    uint8_t attach_key[UC_ATTACH_KEY_BYTES];
    uint64_t incarnation;

    /* Connection. */
    struct uc_rpc_connection *rpc;
    uint32_t rpc_events; /* registered with epoll */
    bool rpc_ready;      /* note: epoll saw something */
    bool rpc_dead;       /* note: on_closed ran */
    bool attach_done;    /* note: attach was answered */
    enum uc_status attach_status;
    uint64_t attach_sent_ms;
    size_t address_idx; /* of the addresses that the host name has */
    size_t address_count;

    /* From the answer to attach. */
    uint64_t lease_ms;
    uint64_t block_bytes;
    uint64_t slot_bytes;
    enum uc_access access;
    uint8_t mac_key[UC_MAC_KEY_BYTES];
    uint8_t nonce[UC_FABRIC_NONCE_BYTES];
    struct uc_attachment_offer offers[UC_FABRICS_MAX];
    size_t offer_count;
    struct uc_fabric_region_key *regions;
    size_t region_count;

    /* Fabric. */
    enum uc_transport_id transport;
    struct uc_fabric_endpoint *endpoint;
    bool fabric_noted;              /* note: on_state ran */
    size_t offer_idx;               /* the one being connected to */
    uint32_t failed_offers;         /* a bit per offer that did not connect, until one does */
    bool avoid[UC_TRANSPORT_COUNT]; /* auto: it did not connect, take the next one */
    enum uc_status fabric_status;

    /* Lease: from the send time of the last answered call. */
    uint64_t answered_ms;
    uint64_t ping_sent_ms;
    bool ping_pending;

    const char *failure; /* note: why it has to drain; static text */
    bool is_down;        /* counted in the plane's down_counts */
    struct uc_backoff backoff;
    uint64_t retry_at_ms;
    uint64_t next_bracket;
    struct uc_list waiting; /* jobs that nothing has been started for */
    struct uc_list active;  /* jobs with operations or calls under way */
    size_t bounce_count;    /* buffers that blocks of these have */
};

/** What names an attachment. Borrowed. */
struct uc_attachment_name {
    const struct uc_server_address *server;
    const uint8_t *server_id;
    const uint8_t *attach_key;
    uint64_t incarnation;
};

/** Find or make. @return NULL without memory */
struct uc_attachment *uc_attachment_obtain(
        struct uc_data_plane *plane, const struct uc_attachment_name *name);

/** Fence and free; active and waiting jobs are failed and finished as far as they can be. */
void uc_attachment_destroy(struct uc_attachment *attachment);

/** Give it a job: started now, later, or failed. */
void uc_attachment_add_job(struct uc_attachment *attachment, struct uc_job *job);

/** Act on notes and times. @return monotonic ms at which to step again at the latest */
uint64_t uc_attachment_step(struct uc_attachment *attachment, uint64_t now_ms);

/** Tell epoll what the connection waits for. */
void uc_attachment_watch(struct uc_attachment *attachment);

/**
 * Call for a job with plane->params; uc_job_on_reply() follows.
 *
 * @retval UC_ERR_UNHEALTHY  the connection is gone; no answer will follow
 */
UC_MUST_CHECK enum uc_status uc_attachment_call(
        struct uc_attachment *attachment, enum uc_rpc_method method, struct uc_job *job);

/** One-way message with plane->params; losses are ignored. */
void uc_attachment_notify(struct uc_attachment *attachment, enum uc_rpc_method method);

/** A call that was sent then has been answered. */
void uc_attachment_answered(struct uc_attachment *attachment, uint64_t sent_ms);

/** Ask for draining: the endpoint is fenced at the next step. @p why is static text. */
void uc_attachment_fail(struct uc_attachment *attachment, const char *why);

#endif /* UC_REMOTE_ATTACHMENT_H */
