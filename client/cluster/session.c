/* SPDX-License-Identifier: Apache-2.0 */

/* Opening and losing a session. Calls are in session_call.c, the keeper thread is in session_keeper.c. */

#include "client/cluster/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <ucm/log.h>

#include "client/cluster/hello.h"
#include "client/cluster/session_internal.h"

enum {
    BACKOFF_BASE_MS = 50,
    BACKOFF_CAP_MS = 5000,
};

static void
wake_keeper(struct uc_session *session)
{
    uint64_t one = 1;

    (void)!write(session->wake_fd, &one, sizeof(one));
}

uint64_t
uc_session_lease_ms(struct uc_session *session)
{
    uint64_t value;

    uc_mutex_lock(&session->info_lock);
    value = session->info.hello.lease_ms;
    uc_mutex_unlock(&session->info_lock);
    return value;
}

void
uc_session_renew_locked(struct uc_session *session, uint64_t sent_ms)
{
    uint64_t lease = uc_session_lease_ms(session);

    if (sent_ms > session->answered_ms) {
        session->answered_ms = sent_ms;
        atomic_store_explicit(&session->usable_until_ms, uc_time_add_ms(sent_ms, lease - lease / 3),
                memory_order_release);
    }
}

void
uc_session_lose(struct uc_session *session, const char *why)
{
    if (!atomic_exchange_explicit(&session->connected, false, memory_order_acq_rel)) {
        return;
    }

    uc_mutex_lock(&session->info_lock);
    session->info.connected = false;
    uc_mutex_unlock(&session->info_lock);
    uc_log_warn("server %s: session lost: %s", session->server.name, why);
    wake_keeper(session);
}

static void
on_closed(void *context, struct uc_rpc_connection *connection, enum uc_status reason)
{
    (void)connection;
    (void)reason;
    uc_session_lose(context, "the connection is closed");
}

static const struct uc_rpc_handler session_handler = {.on_closed = on_closed};

/* Make a connection that has said hello the current one. Keeper. */
static void
publish(struct uc_session *session, struct uc_rpc_connection *connection,
        const struct uc_hello_reply *hello, uint64_t sent_ms)
{
    uc_mutex_lock(&session->lock);
    uc_rpc_connection_destroy(session->connection);
    session->connection = connection;
    session->ping_pending = false;
    session->answered_ms = 0;
    uc_mutex_lock(&session->info_lock);
    session->info.hello = *hello;
    session->info.epoch++;
    session->info.connected = true;
    uc_mutex_unlock(&session->info_lock);
    uc_session_renew_locked(session, sent_ms);
    atomic_store_explicit(&session->connected, true, memory_order_release);
    uc_mutex_unlock(&session->lock);
    uc_log_info("server %s: session %llu stands, namespace \"%s\"", session->server.name,
            (unsigned long long)hello->session, session->name_space);
}

enum uc_status
uc_session_connect(struct uc_session *session)
{
    struct uc_session_config config = session->config;
    struct uc_rpc_connection *connection = NULL;
    struct uc_hello_reply hello;
    uint64_t sent_ms = session_now_ms(session);
    enum uc_status status;

    config.block_bytes = atomic_load_explicit(&session->block_bytes, memory_order_acquire);
    status = uc_hello_connect(&config, &session_handler, session, &connection, &hello);
    if (status == UC_OK) {
        publish(session, connection, &hello, sent_ms);
    }
    return status;
}

void
uc_session_require_block_bytes(struct uc_session *session, uint64_t block_bytes)
{
    atomic_store_explicit(&session->block_bytes, block_bytes, memory_order_release);
}

void
uc_session_note_attempt(struct uc_session *session, enum uc_status status)
{
    uc_mutex_lock(&session->info_lock);
    if (!session->attempted) {
        session->attempted = true;
        session->first_status = status;
        if (status != UC_OK) {
            (void)snprintf(
                    session->first_reason, sizeof(session->first_reason), "%s", uc_last_error());
        }
        (void)pthread_cond_broadcast(&session->attempt_ended);
    }
    uc_mutex_unlock(&session->info_lock);
}

UC_NO_TSA enum uc_status
uc_session_await(struct uc_session *session)
{
    enum uc_status status;

    uc_mutex_lock(&session->info_lock);
    while (!session->attempted) {
        (void)pthread_cond_wait(&session->attempt_ended, &session->info_lock.native);
    }
    status = session->first_status;
    uc_mutex_unlock(&session->info_lock);
    return status == UC_OK ? UC_OK : uc_error(status, "%s", session->first_reason);
}

static enum uc_status
copy_text(char *target, const char *text, const char *what)
{
    size_t length = strlen(text);

    if (length >= UC_SESSION_TEXT_BYTES) {
        return uc_error(UC_ERR_INVALID_PARAM, "%s is longer than %d bytes", what,
                UC_SESSION_TEXT_BYTES - 1);
    }

    memcpy(target, text, length + 1);
    return UC_OK;
}

static enum uc_status
copy_config(struct uc_session *session, const struct uc_session_config *config)
{
    enum uc_status status = copy_text(session->name_space, config->name_space, "namespace");

    if (status == UC_OK) {
        status = copy_text(session->credential, config->credential, "credential");
    }
    if (status == UC_OK) {
        status = copy_text(session->client, config->client, "client name");
    }
    if (status != UC_OK) {
        return status;
    }

    session->config = *config;
    session->server = *config->server;
    session->config.server = &session->server;
    session->config.name_space = session->name_space;
    session->config.credential = session->credential;
    session->config.client = session->client;
    return UC_OK;
}

enum uc_status
uc_session_probe(const struct uc_session_config *config, struct uc_hello_reply *hello_out)
{
    struct uc_rpc_connection *connection = NULL;
    enum uc_status status = uc_hello_connect(config, NULL, NULL, &connection, hello_out);

    if (status == UC_OK) {
        uc_rpc_connection_destroy(connection);
    }
    return status;
}

enum uc_status
uc_session_start(const struct uc_session_config *config, struct uc_session **session_out)
{
    struct uc_session *session = calloc(1, sizeof(*session));
    enum uc_status status;
    int error;

    if (session == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "no memory for a session");
    }
    status = copy_config(session, config);
    if (status != UC_OK) {
        goto err_free;
    }

    uc_mutex_init(&session->lock);
    uc_mutex_init(&session->info_lock);
    (void)pthread_cond_init(&session->attempt_ended, NULL);
    atomic_init(&session->block_bytes, config->block_bytes);
    uc_backoff_init(&session->backoff, BACKOFF_BASE_MS, BACKOFF_CAP_MS,
            uc_clock_now_ns() ^ (uint64_t)getpid() ^ (uintptr_t)session);
    session->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (session->wake_fd < 0) {
        status = uc_log_errno(errno, "session: eventfd");
        goto err_fini;
    }
    error = pthread_create(&session->keeper, NULL, uc_session_keeper_main, session);
    if (error != 0) {
        status = uc_log_errno(error, "session: keeper thread");
        goto err_close_wake;
    }

    *session_out = session;
    return UC_OK;

err_close_wake:
    (void)close(session->wake_fd);
err_fini:
    (void)pthread_cond_destroy(&session->attempt_ended);
    uc_mutex_fini(&session->info_lock);
    uc_mutex_fini(&session->lock);
err_free:
    free(session);
    return status;
}

enum uc_status
uc_session_create(const struct uc_session_config *config, struct uc_session **session_out)
{
    struct uc_session *session = NULL;
    enum uc_status status = uc_session_start(config, &session);

    if (status == UC_OK) {
        status = uc_session_await(session);
    }
    if (status != UC_OK) {
        uc_session_destroy(session);
        return status;
    }

    *session_out = session;
    return UC_OK;
}

void
uc_session_stop(struct uc_session *session)
{
    atomic_store_explicit(&session->stopping, true, memory_order_release);
    wake_keeper(session);
}

void
uc_session_destroy(struct uc_session *session)
{
    if (session == NULL) {
        return;
    }

    uc_session_stop(session);
    (void)pthread_join(session->keeper, NULL);
    uc_rpc_connection_destroy(session->connection);
    (void)close(session->wake_fd);
    (void)pthread_cond_destroy(&session->attempt_ended);
    uc_mutex_fini(&session->info_lock);
    uc_mutex_fini(&session->lock);
    free(session);
}

void
uc_session_info(struct uc_session *session, struct uc_session_info *info_out)
{
    uc_mutex_lock(&session->info_lock);
    *info_out = session->info;
    uc_mutex_unlock(&session->info_lock);
}

bool
uc_session_is_usable(const struct uc_session *session)
{
    return atomic_load_explicit(&session->connected, memory_order_acquire) &&
           session_now_ms(session) <
                   atomic_load_explicit(&session->usable_until_ms, memory_order_acquire);
}
