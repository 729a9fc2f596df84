/* SPDX-License-Identifier: Apache-2.0 */

/* The keeper of a session: pings, end of lease, reconnecting. */

#include <poll.h>
#include <unistd.h>

#include <ucm/log.h>

#include "client/cluster/session_internal.h"

enum {
    BUSY_RETRY_MS = 5, /* when a caller holds the lock, look again */
};

static bool try_lock(struct uc_session *session)
        UC_TSA_(try_acquire_capability(true, session->lock));

UC_NO_TSA static bool
try_lock(struct uc_session *session)
{
    return pthread_mutex_trylock(&session->lock.native) == 0;
}

UC_NO_TSA static void
on_ping_reply(void *context, enum uc_status status, struct uc_rpc_view result)
{
    struct uc_session *session = context;

    /* Runs under the lock: whoever drives the connection holds it. */
    (void)result;
    session->ping_pending = false;
    if (status == UC_OK) {
        uc_session_renew_locked(session, session->ping_sent_ms);
    } else if (status == UC_ERR_TIMEOUT) {
        uc_session_lose(session, "a ping was not answered in time");
    } else {
        uc_session_lose(session, "a ping was refused");
    }
}

/* A server that is away needs no more words; one that refuses does, when its reason changes. */
static void
note_failure(struct uc_session *session, enum uc_status status)
{
    if (status != UC_ERR_UNHEALTHY && status != session->last_failure) {
        uc_log_warn("%s; trying again in the background", uc_last_error());
    } else {
        uc_log_debug("server %s: reconnect: %s", session->server.name, uc_last_error());
    }
    session->last_failure = status;
}

/* Drop a lost connection, then try for a new one when its time has come. @return when to look again */
static uint64_t
keep_disconnected(struct uc_session *session)
{
    uint64_t now_ms = session_now_ms(session);
    enum uc_status status;

    uc_mutex_lock(&session->lock);
    if (session->connection != NULL) {
        uc_rpc_connection_destroy(session->connection);
        session->connection = NULL;
        session->retry_at_ms = now_ms;
        uc_backoff_reset(&session->backoff);
    }
    uc_mutex_unlock(&session->lock);

    if (now_ms < session->retry_at_ms) {
        return session->retry_at_ms;
    }

    status = uc_session_connect(session);
    uc_session_note_attempt(session, status);
    if (status == UC_OK) {
        uc_backoff_reset(&session->backoff);
        return session_now_ms(session);
    }

    note_failure(session, status);
    session->retry_at_ms =
            uc_time_add_ms(session_now_ms(session), uc_backoff_next_ms(&session->backoff));
    return session->retry_at_ms;
}

/* A ping is idle talk: it may take until the lease is nearly over. */
static uint64_t
ping_timeout_ms(struct uc_session *session)
{
    uint64_t third_ms = uc_session_lease_ms(session) / 3;

    return third_ms > session->config.rpc_timeout_ms ? third_ms : session->config.rpc_timeout_ms;
}

static void start_ping_locked(struct uc_session *session, uint64_t now_ms)
        UC_REQUIRES(session->lock);

static void
start_ping_locked(struct uc_session *session, uint64_t now_ms)
{
    struct uc_rpc_buffer params = {.length = 0};
    enum uc_status status;

    uc_empty_request_encode(&params);
    session->ping_sent_ms = now_ms;
    session->ping_pending = true;
    status = uc_rpc_call(session->connection, UC_RPC_PING, &params, ping_timeout_ms(session),
            on_ping_reply, session);
    uc_rpc_buffer_fini(&params);
    if (status != UC_OK) {
        session->ping_pending = false;
        uc_session_lose(session, "a ping could not be sent");
    }
}

/* Pings, answers to pings, end of lease. @return when to look again */
static uint64_t
keep_connected(struct uc_session *session, bool *watch_input_out)
{
    uint64_t third_ms = uc_session_lease_ms(session) / 3;
    uint64_t now_ms = session_now_ms(session);
    uint64_t usable_until_ms =
            atomic_load_explicit(&session->usable_until_ms, memory_order_acquire);
    uint64_t next_ms;

    if (now_ms >= usable_until_ms) {
        uc_session_lose(session, "nothing was answered for two thirds of the lease");
        return now_ms;
    }
    if (!try_lock(session)) {
        /* A caller is in the middle of a round trip, which serves as a ping. */
        return uc_time_add_ms(now_ms, BUSY_RETRY_MS);
    }

    uc_rpc_connection_progress(session->connection);
    (void)uc_rpc_connection_expire(session->connection, now_ms);
    next_ms = uc_time_add_ms(session->answered_ms, third_ms == 0 ? 1 : third_ms);
    if (atomic_load_explicit(&session->connected, memory_order_acquire) && !session->ping_pending &&
            now_ms >= next_ms) {
        start_ping_locked(session, now_ms);
    }
    if (session->ping_pending) {
        next_ms = uc_time_add_ms(session->ping_sent_ms, ping_timeout_ms(session));
    }
    *watch_input_out = session->ping_pending;
    uc_mutex_unlock(&session->lock);
    return next_ms < usable_until_ms ? next_ms : usable_until_ms;
}

/* Sleep until next_ms, a wake-up, the peer's hang-up, or (with watch_input) an answer. */
UC_NO_TSA static void
keeper_sleep(struct uc_session *session, uint64_t next_ms, bool watch_input)
{
    struct pollfd fds[2] = {
            {.fd = session->wake_fd, .events = POLLIN},
            {.fd = -1, .events = (short)(POLLRDHUP | (watch_input ? POLLIN : 0))},
    };
    uint64_t now_ms = session_now_ms(session);
    uint64_t left_ms = next_ms > now_ms ? next_ms - now_ms : 0;
    uint64_t count;

    /*
     * The pointer is read without the lock: only this thread replaces it. POLLRDHUP alone is not woken
     * by the answers to other threads' calls.
     */
    if (session->connection != NULL &&
            atomic_load_explicit(&session->connected, memory_order_acquire)) {
        fds[1].fd = uc_rpc_connection_fd(session->connection);
    }

    if (poll(fds, 2, left_ms > 60000 ? 60000 : (int)left_ms) > 0 && fds[0].revents != 0) {
        (void)!read(session->wake_fd, &count, sizeof(count));
    }
}

void *
uc_session_keeper_main(void *argument)
{
    struct uc_session *session = argument;

    while (!atomic_load_explicit(&session->stopping, memory_order_acquire)) {
        bool watch_input = false;
        uint64_t next_ms;

        if (atomic_load_explicit(&session->connected, memory_order_acquire)) {
            next_ms = keep_connected(session, &watch_input);
        } else {
            next_ms = keep_disconnected(session);
        }
        keeper_sleep(session, next_ms, watch_input);
    }

    return NULL;
}
