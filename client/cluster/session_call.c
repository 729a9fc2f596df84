/* SPDX-License-Identifier: Apache-2.0 */

/* Calls and notifications of sessions. */

#include <stdio.h>
#include <string.h>

#include "client/cluster/session_internal.h"

/* Whether a message of that session may go out now. */
static enum uc_status check_locked(struct uc_session *session, uint64_t epoch)
        UC_REQUIRES(session->lock);

static enum uc_status
check_locked(struct uc_session *session, uint64_t epoch)
{
    uint64_t current_epoch;

    if (!uc_session_is_usable(session)) {
        if (atomic_load_explicit(&session->connected, memory_order_acquire)) {
            uc_session_lose(session, "nothing was answered for two thirds of the lease");
        }
        return uc_error(UC_ERR_UNHEALTHY,
                "server %s: not connected, reconnecting in the background", session->server.name);
    }

    uc_mutex_lock(&session->info_lock);
    current_epoch = session->info.epoch;
    uc_mutex_unlock(&session->info_lock);
    if (epoch != 0 && epoch != current_epoch) {
        return uc_error(UC_ERR_STALE, "server %s: that session has ended", session->server.name);
    }

    return UC_OK;
}

static enum uc_status finish_call_locked(struct uc_session *session, enum uc_status status,
        uint64_t sent_ms) UC_REQUIRES(session->lock);

/* What an answer, or its absence, means for the session. */
static enum uc_status
finish_call_locked(struct uc_session *session, enum uc_status status, uint64_t sent_ms)
{
    if (status == UC_ERR_TIMEOUT) {
        uc_session_lose(session, "a call was not answered in time (rpc_timeout)");
        return uc_error(UC_ERR_UNHEALTHY, "server %s: no answer within %llu ms",
                session->server.name, (unsigned long long)session->config.rpc_timeout_ms);
    }
    if (status == UC_ERR_STALE) {
        uc_session_lose(session, "the server has forgotten it");
        return status;
    }
    if (!atomic_load_explicit(&session->connected, memory_order_acquire)) {
        return status == UC_OK ? UC_OK
                               : uc_error(UC_ERR_UNHEALTHY, "server %s: connection lost",
                                         session->server.name);
    }

    uc_session_renew_locked(session, sent_ms);
    return status;
}

static void
keep_text(struct uc_session_call *call)
{
    (void)snprintf(call->text, sizeof(call->text), "%s", uc_last_error());
}

/* Runs inside progress or expire of the session's connection, under its lock. */
static void
on_answer(void *context, enum uc_status status, struct uc_rpc_view result)
{
    struct uc_session_call *call = context;

    call->answered = true;
    call->answer = status;
    call->status = status;
    if (status == UC_OK && call->on_reply != NULL) {
        struct uc_session_info info;

        uc_session_info(call->session, &info);
        call->status = call->on_reply(call->context, &info, result);
    }
    if (call->status != UC_OK) {
        keep_text(call); /* before another connection's answer replaces it */
    }
}

/* Send a call; the session stays locked while it waits. @return whether it waits */
UC_NO_TSA static bool
start_call(struct uc_session_call *call)
{
    struct uc_session *session = call->session;

    call->answered = false;
    uc_mutex_lock(&session->lock);
    call->status = check_locked(session, call->epoch);
    if (call->status == UC_OK) {
        call->sent_ms = session_now_ms(session);
        call->status = uc_rpc_call(session->connection, call->method, call->params,
                session->config.rpc_timeout_ms, on_answer, call);
        if (call->status == UC_ERR_UNHEALTHY) {
            uc_session_lose(session, "a call could not be sent");
        }
    }
    call->waiting = call->status == UC_OK;
    if (!call->waiting) {
        keep_text(call);
        uc_mutex_unlock(&session->lock);
    }
    return call->waiting;
}

/* Look for the answer. @return whether the call still waits */
UC_NO_TSA static bool
step_call(struct uc_session_call *call, bool has_input)
{
    struct uc_session *session = call->session;
    enum uc_status status;

    if (has_input) {
        uc_rpc_connection_progress(session->connection);
    }
    if (!call->answered) {
        (void)uc_rpc_connection_expire(session->connection, session_now_ms(session));
    }
    if (!call->answered) {
        return true;
    }

    status = finish_call_locked(session, call->answer, call->sent_ms);
    if (call->answer != UC_OK) {
        call->status = status;
        if (call->answer == UC_ERR_TIMEOUT || call->answer == UC_ERR_UNHEALTHY) {
            keep_text(call);
        }
    }
    call->waiting = false;
    uc_mutex_unlock(&session->lock);
    return false;
}

/* Fill what to poll for. @return how long to wait at most */
UC_NO_TSA static int
fill_fds(const struct uc_session_call *calls, struct pollfd *fds, size_t count)
{
    uint64_t least_ms = 60000;

    for (size_t idx = 0; idx < count; idx++) {
        const struct uc_session_call *call = &calls[idx];
        uint64_t end_ms;
        uint64_t now_ms;

        fds[idx] = (struct pollfd){.fd = -1};
        if (!call->waiting) {
            continue;
        }
        fds[idx].fd = uc_rpc_connection_fd(call->session->connection);
        fds[idx].events = uc_rpc_connection_events(call->session->connection);
        end_ms = uc_time_add_ms(call->sent_ms, call->session->config.rpc_timeout_ms);
        now_ms = session_now_ms(call->session);
        if (end_ms <= now_ms) {
            least_ms = 1; /* the call's own clock was read a moment later */
        } else if (end_ms - now_ms < least_ms) {
            least_ms = end_ms - now_ms;
        }
    }
    return (int)least_ms;
}

void
uc_session_call_all(struct uc_session_call *calls, struct pollfd *fds, size_t count)
{
    size_t waiting = 0;

    for (size_t idx = 0; idx < count; idx++) {
        waiting += start_call(&calls[idx]) ? 1 : 0;
    }
    while (waiting > 0) {
        (void)poll(fds, (nfds_t)count, fill_fds(calls, fds, count));
        for (size_t idx = 0; idx < count; idx++) {
            if (calls[idx].waiting && !step_call(&calls[idx], fds[idx].revents != 0)) {
                waiting--;
            }
        }
    }
}

enum uc_status
uc_session_call(struct uc_session *session, uint64_t epoch, enum uc_rpc_method method,
        const struct uc_rpc_buffer *params, uc_session_reply_fn on_reply, void *context)
{
    struct uc_session_call call = {
            .session = session,
            .epoch = epoch,
            .method = method,
            .params = params,
            .on_reply = on_reply,
            .context = context,
    };
    struct pollfd fd;

    uc_session_call_all(&call, &fd, 1);
    return call.status == UC_OK ? UC_OK : uc_error(call.status, "%s", call.text);
}

enum uc_status
uc_session_notify(struct uc_session *session, uint64_t epoch, enum uc_rpc_method method,
        const struct uc_rpc_buffer *params)
{
    enum uc_status status;

    uc_mutex_lock(&session->lock);
    status = check_locked(session, epoch);
    if (status == UC_OK) {
        status = uc_rpc_notify(session->connection, method, params);
        if (status != UC_OK) {
            uc_session_lose(session, "a notification could not be sent");
        }
    }
    uc_mutex_unlock(&session->lock);
    return status;
}
