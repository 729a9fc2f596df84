/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file session.h
 * One control connection to one server: hello, lease, reconnecting, calls.
 *
 * A call runs on the caller's thread: one round trip, no hand-off. A keeper thread per session pings every
 * third of the lease while nobody calls, gives the session up when two thirds of the lease have passed
 * since the *send* time of the last answered call, and reconnects in the background with jittered backoff,
 * one attempt at a time. Losing the connection opens the breaker at once: calls answer Unhealthy without
 * touching the network until a new session stands. A new session has another id and holds no grant of the
 * old one.
 *
 * A call to several servers costs one round trip whatever their number: uc_session_call_all().
 *
 * Threads: any. Calls of several threads take turns; the keeper never makes a call wait.
 */

#ifndef UC_CLUSTER_SESSION_H
#define UC_CLUSTER_SESSION_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/clock.h>
#include <ucm/compiler.h>
#include <ucm/status.h>

#include "client/cluster/server_list.h"
#include "net/rpc/buffer.h"
#include "net/rpc/messages.h"
#include "net/rpc/method.h"

struct uc_session;

/** What a session is opened with; copied. */
struct uc_session_config {
    const struct uc_server_address *server;
    const char *name_space;
    const char *credential;
    const char *client; /* for the server's log */
    enum uc_access access;
    uint64_t connect_timeout_ms;
    uint64_t rpc_timeout_ms;
    uint64_t block_bytes; /* what the namespace must have; 0 = anything */
    struct uc_clock clock;
};

/** A plain value. */
struct uc_session_info {
    struct uc_hello_reply hello; /* of the session that stands, or of the last one */
    uint64_t epoch;              /* counts the sessions from 1: ids may repeat after a restart */
    bool connected;
};

/**
 * Reads an answer, under the session's lock.
 *
 * @param[in] info  of the session that answered
 */
typedef enum uc_status (*uc_session_reply_fn)(
        void *context, const struct uc_session_info *info, struct uc_rpc_view result);

/**
 * Connect, say hello, and leave: checks address, namespace, credential and block size. Blocks.
 *
 * @retval UC_ERR_UNHEALTHY      not reachable, or no answer in time
 * @retval UC_ERR_INVALID_PARAM  the block size differs; the text names both
 * @retval other                 what the server answered
 */
UC_MUST_CHECK enum uc_status uc_session_probe(
        const struct uc_session_config *config, struct uc_hello_reply *hello_out);

/**
 * Start a session whose keeper connects in the background, now and whenever it must. Does not block.
 *
 * @retval UC_ERR_INVALID_PARAM  a text is too long
 */
UC_MUST_CHECK enum uc_status uc_session_start(
        const struct uc_session_config *config, struct uc_session **session_out);

/** Block until the first attempt to connect has ended. @retval as uc_session_probe() */
UC_MUST_CHECK enum uc_status uc_session_await(struct uc_session *session);

/** From the next connection on, refuse namespaces with other blocks. */
void uc_session_require_block_bytes(struct uc_session *session, uint64_t block_bytes);

/** As probe, but stay connected: start and await; without a connection there is no session. */
UC_MUST_CHECK enum uc_status uc_session_create(
        const struct uc_session_config *config, struct uc_session **session_out);

/** Tell the keeper to end, without waiting for it: before several sessions are destroyed. */
void uc_session_stop(struct uc_session *session);

/** Ends the keeper and closes the connection. Nobody may be in a call. NULL is allowed. */
void uc_session_destroy(struct uc_session *session);

/** Never blocks on the network. */
void uc_session_info(struct uc_session *session, struct uc_session_info *info_out);

/** @return whether a call would go out: connected, and within two thirds of the lease. No lock. */
bool uc_session_is_usable(const struct uc_session *session);

/**
 * Call and wait for the answer.
 *
 * @param[in] epoch     of the session that must stand, or 0 for any
 * @param[in] on_reply  may be NULL; its status becomes the call's
 * @retval UC_ERR_UNHEALTHY  no session, connection lost, or no answer in time (which ends the session: a
 *                           grant whose answer was lost is released with it)
 * @retval UC_ERR_STALE      another session stands, or the server has forgotten this one
 * @retval other             what the server answered
 */
UC_MUST_CHECK enum uc_status uc_session_call(struct uc_session *session, uint64_t epoch,
        enum uc_rpc_method method, const struct uc_rpc_buffer *params, uc_session_reply_fn on_reply,
        void *context);

enum {
    UC_SESSION_CALL_TEXT_BYTES = 256,
};

/** One of the calls of uc_session_call_all(). */
struct uc_session_call {
    struct uc_session *session;
    uint64_t epoch; /* as in uc_session_call(), like the four below */
    enum uc_rpc_method method;
    const struct uc_rpc_buffer *params;
    uc_session_reply_fn on_reply;
    void *context;

    /* Afterwards. */
    enum uc_status status;
    char text[UC_SESSION_CALL_TEXT_BYTES]; /* what uc_last_error() said, if not Ok */

    /* While it runs. */
    enum uc_status answer;
    uint64_t sent_ms;
    bool waiting;
    bool answered;
};

/**
 * Make calls of different sessions at once, on this thread: all of them go out before the first answer is
 * awaited. Returns when each has been answered or has failed, rpc_timeout later at the latest.
 *
 * Threads that make such calls at the same time name the sessions in the same order.
 *
 * @param[in,out] calls  status and text are set
 * @param[out]    fds    room for @p count elements
 */
void uc_session_call_all(struct uc_session_call *calls, struct pollfd *fds, size_t count);

/** One-way message; dropped with UC_ERR_UNHEALTHY or UC_ERR_STALE as above. */
UC_MUST_CHECK enum uc_status uc_session_notify(struct uc_session *session, uint64_t epoch,
        enum uc_rpc_method method, const struct uc_rpc_buffer *params);

#endif /* UC_CLUSTER_SESSION_H */
