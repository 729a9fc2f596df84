/* SPDX-License-Identifier: Apache-2.0 */

#include "client/stores/remote/attachment.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include <ucm/log.h>

#include "client/stores/remote/attachment_connect.h"
#include "client/stores/remote/bounce.h"
#include "client/stores/remote/job.h"
#include "client/stores/remote/plane_internal.h"

enum {
    BACKOFF_BASE_MS = 50,
    BACKOFF_CAP_MS = 5000,
    LATE_CALL_MS = 100, /* for a job whose deadline has passed */
};

static bool
is_named(const struct uc_attachment *attachment, const struct uc_attachment_name *name)
{
    return attachment->server == name->server && attachment->incarnation == name->incarnation &&
           memcmp(attachment->attach_key, name->attach_key, UC_ATTACH_KEY_BYTES) == 0 &&
           memcmp(attachment->server_id, name->server_id, UC_SERVER_ID_BYTES) == 0;
}

static void enter_down(struct uc_attachment *attachment, uint64_t now_ms);

struct uc_attachment *
uc_attachment_obtain(struct uc_data_plane *plane, const struct uc_attachment_name *name)
{
    struct uc_attachment *attachment;
    uint64_t now_ms = uc_plane_now_ms(plane);

    uc_list_for_each (node, &plane->attachments) {
        attachment = uc_list_entry(node, struct uc_attachment, link);
        if (is_named(attachment, name) && attachment->state != UC_ATTACHMENT_DEAD) {
            return attachment;
        }
    }

    attachment = calloc(1, sizeof(*attachment));
    if (attachment == NULL) {
        return NULL;
    }
    attachment->plane = plane;
    attachment->server = name->server;
    attachment->incarnation = name->incarnation;
    memcpy(attachment->attach_key, name->attach_key, UC_ATTACH_KEY_BYTES);
    memcpy(attachment->server_id, name->server_id, UC_SERVER_ID_BYTES);
    attachment->next_bracket = 1;
    uc_list_init(&attachment->waiting);
    uc_list_init(&attachment->active);
    uc_backoff_init(
            &attachment->backoff, BACKOFF_BASE_MS, BACKOFF_CAP_MS, uc_clock_now_ns() ^ now_ms);
    uc_list_add(&plane->attachments, &attachment->link);
    if (uc_attachment_dial(attachment, now_ms) != UC_OK) {
        enter_down(attachment, now_ms);
    }
    return attachment;
}

static void
set_down(struct uc_attachment *attachment, bool down)
{
    struct uc_data_plane *plane = attachment->plane;
    atomic_uint *count = &plane->down_counts[attachment->server - plane->config->servers.servers];

    if (attachment->is_down == down) {
        return;
    }

    attachment->is_down = down;
    if (down && atomic_fetch_add_explicit(count, 1, memory_order_relaxed) == 0) {
        (void)atomic_fetch_add_explicit(&plane->down_servers, 1, memory_order_relaxed);
    }
    if (!down && atomic_fetch_sub_explicit(count, 1, memory_order_relaxed) == 1) {
        (void)atomic_fetch_sub_explicit(&plane->down_servers, 1, memory_order_relaxed);
    }
}

static void
fail_list(struct uc_list *jobs, enum uc_status status)
{
    struct uc_list *node;

    while ((node = uc_list_take(jobs)) != NULL) {
        struct uc_job *job = uc_list_entry(node, struct uc_job, link);

        uc_job_fail_blocks(job, status);
        uc_job_finish(job);
    }
}

void
uc_attachment_destroy(struct uc_attachment *attachment)
{
    uc_attachment_drop_endpoint(attachment);
    uc_attachment_drop_rpc(attachment);
    fail_list(&attachment->active, UC_ERR_UNHEALTHY);
    fail_list(&attachment->waiting, UC_ERR_UNHEALTHY);
    set_down(attachment, false);
    uc_list_remove(&attachment->link);
    for (size_t idx = 0; idx < attachment->offer_count; idx++) {
        free(attachment->offers[idx].keys);
    }
    free(attachment->regions);
    free(attachment);
}

/* Out of reach: jobs fail at once until an attempt succeeds. */
static void
enter_down(struct uc_attachment *attachment, uint64_t now_ms)
{
    uc_attachment_drop_endpoint(attachment);
    uc_attachment_drop_rpc(attachment);
    attachment->address_idx = 0;
    /* Not even the last transport connects: perhaps it was not the others' fault either. */
    memset(attachment->avoid, 0, sizeof(attachment->avoid));
    attachment->state = UC_ATTACHMENT_DOWN;
    attachment->retry_at_ms = uc_time_add_ms(now_ms, uc_backoff_next_ms(&attachment->backoff));
    if (!attachment->is_down) {
        uc_log_warn("server %s: data connection cannot be made; trying again in the background",
                attachment->server->name);
    }
    set_down(attachment, true);
    fail_list(&attachment->waiting, UC_ERR_UNHEALTHY);
}

/* An attempt failed: another address, another transport, or a pause. */
static void
attempt_failed(struct uc_attachment *attachment, uint64_t now_ms, bool may_retry)
{
    uc_attachment_drop_endpoint(attachment);
    uc_attachment_drop_rpc(attachment);
    if (!may_retry || uc_attachment_dial(attachment, now_ms) != UC_OK) {
        enter_down(attachment, now_ms);
    }
}

/* The server answered, but will not have this attach key: tokens that carry it are worthless. */
static void
enter_dead(struct uc_attachment *attachment, enum uc_status status)
{
    uc_attachment_drop_endpoint(attachment);
    uc_attachment_drop_rpc(attachment);
    attachment->state = UC_ATTACHMENT_DEAD;
    set_down(attachment, false);
    fail_list(&attachment->waiting, status);
}

static void
start_waiting(struct uc_attachment *attachment)
{
    struct uc_list *node;

    while ((node = uc_list_take(&attachment->waiting)) != NULL) {
        uc_job_start(uc_list_entry(node, struct uc_job, link));
    }
}

/* Auto gave the transport up while it was in use here: no job starts over it any more. */
static bool
has_to_move(const struct uc_attachment *attachment)
{
    return uc_transports_has_given_up(&attachment->plane->transports, attachment->transport);
}

void
uc_attachment_add_job(struct uc_attachment *attachment, struct uc_job *job)
{
    job->attachment = attachment;
    if (attachment->is_down || attachment->state == UC_ATTACHMENT_DEAD) {
        uc_job_fail_blocks(job, UC_ERR_UNHEALTHY);
        uc_job_finish(job);
    } else if (attachment->state == UC_ATTACHMENT_READY && attachment->failure == NULL &&
               !has_to_move(attachment)) {
        uc_job_start(job);
    } else {
        uc_list_add(&attachment->waiting, &job->link);
    }
}

enum uc_status
uc_attachment_call(struct uc_attachment *attachment, enum uc_rpc_method method, struct uc_job *job)
{
    struct uc_data_plane *plane = attachment->plane;
    enum uc_status status = UC_ERR_UNHEALTHY;

    uint64_t timeout_ms = plane->config->rpc_timeout_ms;

    if (job->timed_out && timeout_ms > LATE_CALL_MS) {
        timeout_ms = LATE_CALL_MS;
    }
    if (attachment->rpc != NULL && !attachment->rpc_dead) {
        job->rpc_sent_ms = uc_plane_now_ms(plane);
        status = uc_rpc_call(
                attachment->rpc, method, &plane->params, timeout_ms, uc_job_on_reply, job);
        job->rpc_pending = status == UC_OK;
    }
    return status;
}

void
uc_attachment_notify(struct uc_attachment *attachment, enum uc_rpc_method method)
{
    if (attachment->rpc != NULL && !attachment->rpc_dead) {
        (void)!uc_rpc_notify(attachment->rpc, method, &attachment->plane->params);
    }
}

void
uc_attachment_answered(struct uc_attachment *attachment, uint64_t sent_ms)
{
    if (sent_ms > attachment->answered_ms) {
        attachment->answered_ms = sent_ms;
    }
}

void
uc_attachment_fail(struct uc_attachment *attachment, const char *why)
{
    if (attachment->failure == NULL) {
        attachment->failure = why;
    }
}

static void
on_ping_reply(void *context, enum uc_status status, struct uc_rpc_view result)
{
    struct uc_attachment *attachment = context;

    (void)result;
    attachment->ping_pending = false;
    if (status == UC_OK) {
        uc_attachment_answered(attachment, attachment->ping_sent_ms);
    } else {
        uc_attachment_fail(attachment, "a ping failed");
    }
}

static void
ping(struct uc_attachment *attachment, uint64_t now_ms, uint64_t lease_end_ms)
{
    struct uc_rpc_buffer *params = &attachment->plane->params;

    uc_rpc_buffer_reset(params);
    uc_empty_request_encode(params);
    attachment->ping_sent_ms = now_ms;
    attachment->ping_pending = uc_rpc_call(attachment->rpc, UC_RPC_PING, params,
                                       lease_end_ms - now_ms, on_ping_reply, attachment) == UC_OK;
    if (!attachment->ping_pending) {
        uc_attachment_fail(attachment, "a ping could not be sent");
    }
}

/* Take a dead connection away; calls that were under way end as lost. */
static void
bury_rpc(struct uc_attachment *attachment)
{
    uc_attachment_drop_rpc(attachment);
    uc_list_for_each (node, &attachment->active) {
        struct uc_job *job = uc_list_entry(node, struct uc_job, link);

        if (job->rpc_pending) {
            job->rpc_pending = false;
            job->rpc_status = UC_ERR_UNHEALTHY;
            uc_plane_make_ready(attachment->plane, job);
        }
    }
}

/* No byte moves any more on this side; brackets are still to be closed. */
static void
begin_drain(struct uc_attachment *attachment)
{
    uc_log_warn("server %s: data connection given up: %s", attachment->server->name,
            attachment->failure);
    attachment->state = UC_ATTACHMENT_DRAINING;
    uc_attachment_drop_endpoint(attachment);
    uc_list_for_each (node, &attachment->active) {
        uc_bounce_leave(uc_list_entry(node, struct uc_job, link), UC_ERR_UNHEALTHY);
    }
}

static uint64_t
step_attaching(struct uc_attachment *attachment, uint64_t now_ms)
{
    if (attachment->attach_done && attachment->attach_status == UC_OK) {
        enum uc_status status = uc_attachment_connect_fabric(attachment);

        if (status == UC_ERR_UNSUPPORTED) {
            uc_log_warn("%s", uc_last_error());
            enter_dead(attachment, status);
        } else if (status != UC_OK) {
            uc_log_debug("server %s: %s", attachment->server->name, uc_last_error());
            attempt_failed(attachment, now_ms, false);
        }
    } else if (attachment->attach_done && attachment->attach_status != UC_ERR_UNHEALTHY &&
               attachment->attach_status != UC_ERR_TIMEOUT) {
        uc_log_debug("server %s: attach: %s", attachment->server->name,
                uc_status_name(attachment->attach_status));
        enter_dead(attachment, attachment->attach_status);
    } else if (attachment->attach_done || attachment->rpc_dead) {
        attachment->address_idx++;
        attempt_failed(attachment, now_ms, attachment->address_idx < attachment->address_count);
    } else {
        return UC_TIME_NEVER_MS; /* the call's own deadline */
    }
    return now_ms;
}

static uint64_t
step_connecting(struct uc_attachment *attachment, uint64_t now_ms)
{
    if (attachment->rpc_dead) {
        attempt_failed(attachment, now_ms, false);
        return now_ms;
    }
    if (has_to_move(attachment)) {
        attempt_failed(attachment, now_ms, true);
        return now_ms;
    }
    if (!attachment->fabric_noted) {
        return UC_TIME_NEVER_MS; /* the fabric's own deadline */
    }

    attachment->fabric_noted = false;
    if (attachment->fabric_status == UC_OK) {
        attachment->state = UC_ATTACHMENT_READY;
        attachment->address_idx = 0;
        attachment->failed_offers = 0;
        uc_backoff_reset(&attachment->backoff);
        set_down(attachment, false);
        uc_attachment_note_transport(attachment);
        start_waiting(attachment);
    } else if (uc_attachment_skip_offer(attachment)) {
        /* A server with several devices: perhaps another one can be reached from here. */
        uc_log_debug("server %s: offer %zu does not connect (%s), taking the next",
                attachment->server->name, attachment->offer_idx,
                uc_status_name(attachment->fabric_status));
        attempt_failed(attachment, now_ms, true);
    } else if (attachment->transport != UC_TRANSPORT_TCP && attachment->plane->transports.is_auto) {
        uc_log_warn("server %s: %s does not connect (%s), taking the next transport",
                attachment->server->name,
                attachment->plane->transports.items[attachment->transport].ops->name,
                uc_status_name(attachment->fabric_status));
        attachment->avoid[attachment->transport] = true;
        attempt_failed(attachment, now_ms, true);
    } else {
        attempt_failed(attachment, now_ms, false);
    }
    return now_ms;
}

/* Make it anew; jobs wait for that. */
static void
reconnect(struct uc_attachment *attachment, uint64_t now_ms)
{
    uc_plane_count(attachment->plane, UC_COUNT_reconnects, 1);
    attachment->address_idx = 0;
    attempt_failed(attachment, now_ms, true);
}

static uint64_t
step_ready(struct uc_attachment *attachment, uint64_t now_ms)
{
    uint64_t lease_end_ms = uc_time_add_ms(
            attachment->answered_ms, attachment->lease_ms - attachment->lease_ms / 3);
    uint64_t ping_ms = uc_time_add_ms(attachment->answered_ms, attachment->lease_ms / 3 + 1);

    if (attachment->rpc_dead) {
        uc_attachment_fail(attachment, "the connection is closed");
    } else if (attachment->fabric_noted) {
        uc_attachment_fail(attachment, "the transport failed");
    } else if (now_ms >= lease_end_ms) {
        uc_attachment_fail(attachment, "nothing was answered for two thirds of the lease");
    } else if (now_ms >= ping_ms && !attachment->ping_pending) {
        ping(attachment, now_ms, lease_end_ms);
    }

    if (attachment->failure != NULL) {
        begin_drain(attachment);
        return now_ms;
    }
    if (has_to_move(attachment) && uc_list_is_empty(&attachment->active)) {
        reconnect(attachment, now_ms);
        return now_ms;
    }
    return attachment->ping_pending ? lease_end_ms : ping_ms;
}

static uint64_t
step_draining(struct uc_attachment *attachment, uint64_t now_ms)
{
    if (attachment->rpc_dead) {
        bury_rpc(attachment);
        return now_ms;
    }
    if (!uc_list_is_empty(&attachment->active)) {
        return UC_TIME_NEVER_MS; /* their calls have deadlines */
    }

    reconnect(attachment, now_ms); /* drops the connection */
    return now_ms;
}

static uint64_t
step_down(struct uc_attachment *attachment, uint64_t now_ms)
{
    if (now_ms < attachment->retry_at_ms) {
        return attachment->retry_at_ms;
    }

    attempt_failed(attachment, now_ms, true);
    return uc_time_add_ms(now_ms, 1);
}

uint64_t
uc_attachment_step(struct uc_attachment *attachment, uint64_t now_ms)
{
    uint64_t next_ms = UC_TIME_NEVER_MS;
    uint64_t rpc_ms = UC_TIME_NEVER_MS;

    if (attachment->rpc != NULL) {
        if (attachment->rpc_ready) {
            attachment->rpc_ready = false;
            uc_rpc_connection_progress(attachment->rpc);
        }
        rpc_ms = uc_rpc_connection_expire(attachment->rpc, now_ms);
    }

    switch (attachment->state) {
    case UC_ATTACHMENT_ATTACHING:
        next_ms = step_attaching(attachment, now_ms);
        break;
    case UC_ATTACHMENT_CONNECTING:
        next_ms = step_connecting(attachment, now_ms);
        break;
    case UC_ATTACHMENT_READY:
        next_ms = step_ready(attachment, now_ms);
        break;
    case UC_ATTACHMENT_DRAINING:
        next_ms = step_draining(attachment, now_ms);
        break;
    case UC_ATTACHMENT_DOWN:
        next_ms = step_down(attachment, now_ms);
        break;
    case UC_ATTACHMENT_DEAD:
        break;
    }
    return rpc_ms < next_ms ? rpc_ms : next_ms;
}

void
uc_attachment_watch(struct uc_attachment *attachment)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = attachment};

    if (attachment->rpc == NULL) {
        return;
    }
    if ((uc_rpc_connection_events(attachment->rpc) & POLLOUT) != 0) {
        event.events |= EPOLLOUT;
    }
    if (event.events != attachment->rpc_events) {
        attachment->rpc_events = event.events;
        (void)epoll_ctl(attachment->plane->epoll_fd, EPOLL_CTL_MOD,
                uc_rpc_connection_fd(attachment->rpc), &event);
    }
}
