/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file session_internal.h
 * What session.c, session_call.c and session_keeper.c share. Lock order: lock, then info_lock.
 */

#ifndef UC_CLUSTER_SESSION_INTERNAL_H
#define UC_CLUSTER_SESSION_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "client/cluster/backoff.h"
#include "client/cluster/session.h"
#include "core/base/mutex.h"
#include "net/rpc/connection.h"

enum {
    UC_SESSION_TEXT_BYTES = 256,
    UC_SESSION_REASON_BYTES = 512,
};

struct uc_session {
    struct uc_session_config config; /* its texts point to the copies below */
    struct uc_server_address server;
    char name_space[UC_SESSION_TEXT_BYTES];
    char credential[UC_SESSION_TEXT_BYTES];
    char client[UC_SESSION_TEXT_BYTES];

    struct uc_mutex lock;                 /* held over a round trip */
    struct uc_rpc_connection *connection; /* guarded by lock; only the keeper replaces it */
    uint64_t ping_sent_ms;                /* guarded by lock */
    uint64_t answered_ms;                 /* guarded by lock: send time of the last answered call */
    bool ping_pending;                    /* guarded by lock */

    struct uc_mutex info_lock;   /* never held over anything that waits */
    struct uc_session_info info; /* guarded by info_lock */
    bool attempted; /* guarded by info_lock: the three below are constant from then on */
    enum uc_status first_status;
    char first_reason[UC_SESSION_REASON_BYTES];
    pthread_cond_t attempt_ended; /* of info_lock */

    atomic_uint_least64_t block_bytes; /* what the namespace must have; 0 = anything */

    atomic_bool connected; /* the breaker: false = calls do not go out */
    atomic_bool stopping;
    atomic_uint_least64_t usable_until_ms; /* answered_ms + 2/3 lease */
    int wake_fd;                           /* eventfd that the keeper polls */
    pthread_t keeper;
    struct uc_backoff backoff;   /* the keeper's */
    uint64_t retry_at_ms;        /* the keeper's */
    enum uc_status last_failure; /* the keeper's */
};

static inline uint64_t
session_now_ms(const struct uc_session *session)
{
    return uc_clock_now_ms(&session->config.clock);
}

uint64_t uc_session_lease_ms(struct uc_session *session);

/** A call that was sent at @p sent_ms has been answered: the lease counts from then. */
void uc_session_renew_locked(struct uc_session *session, uint64_t sent_ms)
        UC_REQUIRES(session->lock);

/** Open the breaker; the keeper closes the connection, which makes the server release everything. */
void uc_session_lose(struct uc_session *session, const char *why);

/** Dial, say hello, make the connection the current one. Keeper. */
UC_MUST_CHECK enum uc_status uc_session_connect(struct uc_session *session);

/** An attempt has ended, with its text in uc_last_error(): the first one is told to uc_session_await(). */
void uc_session_note_attempt(struct uc_session *session, enum uc_status status);

/** The keeper thread: runs until session->stopping. @param[in] argument  the session */
void *uc_session_keeper_main(void *argument);

#endif /* UC_CLUSTER_SESSION_INTERNAL_H */
