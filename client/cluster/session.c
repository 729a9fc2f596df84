/* SPDX-License-Identifier: Apache-2.0 */

/* Lock order: lock, then info_lock. */

#include "client/cluster/session.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <ucm/log.h>

#include "client/cluster/backoff.h"
#include "client/cluster/hello.h"
#include "core/base/mutex.h"

enum {
    BACKOFF_BASE_MS = 50,
    BACKOFF_CAP_MS = 5000,
    BUSY_RETRY_MS = 5, /* the keeper looks again when a caller holds the lock */
    TEXT_BYTES = 256,
};

struct uc_session {
    struct uc_session_config config; /* its texts point to the copies below */
    struct uc_server_address server;
    char name_space[TEXT_BYTES];
    char credential[TEXT_BYTES];
    char client[TEXT_BYTES];

    struct uc_mutex lock;                 /* held over a round trip */
    struct uc_rpc_connection *connection; /* guarded by lock; only the keeper replaces it */
    uint64_t ping_sent_ms;                /* guarded by lock */
    uint64_t answered_ms;                 /* guarded by lock: send time of the last answered call */
    bool ping_pending;                    /* guarded by lock */

    struct uc_mutex info_lock;   /* never held over anything that waits */
    struct uc_session_info info; /* guarded by info_lock */

    atomic_bool connected; /* the breaker: false = calls do not go out */
    atomic_bool stopping;
    atomic_uint_least64_t usable_until_ms; /* answered_ms + 2/3 lease */
    int wake_fd;                           /* eventfd that the keeper polls */
    pthread_t keeper;
    struct uc_backoff backoff; /* the keeper's */
    uint64_t retry_at_ms;      /* the keeper's */
};

static bool try_lock(struct uc_session *session)
        UC_TSA_(try_acquire_capability(true, session->lock));

UC_NO_TSA static bool
try_lock(struct uc_session *session)
{
    return pthread_mutex_trylock(&session->lock.native) == 0;
}

static uint64_t
session_now_ms(const struct uc_session *session)
{
    return uc_clock_now_ms(&session->config.clock);
}

static void
wake_keeper(struct uc_session *session)
{
    uint64_t one = 1;

    (void)!write(session->wake_fd, &one, sizeof(one));
}

static uint64_t
lease_ms(struct uc_session *session)
{
    uint64_t value;

    uc_mutex_lock(&session->info_lock);
    value = session->info.hello.lease_ms;
    uc_mutex_unlock(&session->info_lock);
    return value;
}

/* A call that was sent at sent_ms has been answered: the lease counts from then. */
static void renew_locked(struct uc_session *session, uint64_t sent_ms) UC_REQUIRES(session->lock);

static void
renew_locked(struct uc_session *session, uint64_t sent_ms)
{
    uint64_t lease = lease_ms(session);

    if (sent_ms > session->answered_ms) {
        session->answered_ms = sent_ms;
        atomic_store_explicit(&session->usable_until_ms, uc_time_add_ms(sent_ms, lease - lease / 3),
                memory_order_release);
    }
}

/* Open the breaker; the keeper closes the connection, which makes the server release everything. */
static void
lose(struct uc_session *session, const char *why)
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
    lose(context, "the connection is closed");
}

static const struct uc_rpc_handler session_handler = {.on_closed = on_closed};

UC_NO_TSA static void
on_ping_reply(void *context, enum uc_status status, struct uc_rpc_view result)
{
    struct uc_session *session = context;

    /* Runs under the lock: whoever drives the connection holds it. */
    (void)result;
    session->ping_pending = false;
    if (status == UC_OK) {
        renew_locked(session, session->ping_sent_ms);
    } else if (status == UC_ERR_TIMEOUT) {
        lose(session, "a ping was not answered in time");
    } else {
        lose(session, "a ping was refused");
    }
}

/* Make a connection that has said hello the current one. Keeper, or create before the keeper runs. */
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
    renew_locked(session, sent_ms);
    atomic_store_explicit(&session->connected, true, memory_order_release);
    uc_mutex_unlock(&session->lock);
    uc_log_info("server %s: session %llu stands, namespace \"%s\"", session->server.name,
            (unsigned long long)hello->session, session->name_space);
}

static enum uc_status
connect_once(struct uc_session *session)
{
    struct uc_rpc_connection *connection = NULL;
    struct uc_hello_reply hello;
    uint64_t sent_ms = session_now_ms(session);
    enum uc_status status =
            uc_hello_connect(&session->config, &session_handler, session, &connection, &hello);

    if (status == UC_OK) {
        publish(session, connection, &hello, sent_ms);
    }
    return status;
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

    status = connect_once(session);
    if (status == UC_OK) {
        uc_backoff_reset(&session->backoff);
        return session_now_ms(session);
    }

    uc_log_debug("server %s: reconnect: %s", session->server.name, uc_last_error());
    session->retry_at_ms =
            uc_time_add_ms(session_now_ms(session), uc_backoff_next_ms(&session->backoff));
    return session->retry_at_ms;
}

/* A ping is idle talk: it may take until the lease is nearly over. */
static uint64_t
ping_timeout_ms(struct uc_session *session)
{
    uint64_t third_ms = lease_ms(session) / 3;

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
    status = uc_rpc_call(session->connection, UC_RPC_PING, &params, session->config.rpc_timeout_ms,
            on_ping_reply, session);
    uc_rpc_buffer_fini(&params);
    if (status != UC_OK) {
        session->ping_pending = false;
        lose(session, "a ping could not be sent");
    }
}

/* Pings, answers to pings, end of lease. @return when to look again */
static uint64_t
keep_connected(struct uc_session *session, bool *watch_input_out)
{
    uint64_t third_ms = lease_ms(session) / 3;
    uint64_t now_ms = session_now_ms(session);
    uint64_t usable_until_ms =
            atomic_load_explicit(&session->usable_until_ms, memory_order_acquire);
    uint64_t next_ms;

    if (now_ms >= usable_until_ms) {
        lose(session, "nothing was answered for two thirds of the lease");
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

static void *
keeper_main(void *argument)
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

static enum uc_status
copy_text(char *target, const char *text, const char *what)
{
    size_t length = strlen(text);

    if (length >= TEXT_BYTES) {
        return uc_error(UC_ERR_INVALID_PARAM, "%s is longer than %d bytes", what, TEXT_BYTES - 1);
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
uc_session_create(const struct uc_session_config *config, struct uc_session **session_out)
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
    uc_backoff_init(&session->backoff, BACKOFF_BASE_MS, BACKOFF_CAP_MS,
            uc_clock_now_ns() ^ (uint64_t)getpid());
    session->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (session->wake_fd < 0) {
        status = uc_log_errno(errno, "session: eventfd");
        goto err_fini;
    }
    status = connect_once(session);
    if (status != UC_OK) {
        goto err_close_wake;
    }
    error = pthread_create(&session->keeper, NULL, keeper_main, session);
    if (error != 0) {
        status = uc_log_errno(error, "session: keeper thread");
        goto err_disconnect;
    }

    *session_out = session;
    return UC_OK;

err_disconnect:
    uc_rpc_connection_destroy(session->connection);
err_close_wake:
    (void)close(session->wake_fd);
err_fini:
    uc_mutex_fini(&session->info_lock);
    uc_mutex_fini(&session->lock);
err_free:
    free(session);
    return status;
}

void
uc_session_destroy(struct uc_session *session)
{
    if (session == NULL) {
        return;
    }

    atomic_store_explicit(&session->stopping, true, memory_order_release);
    wake_keeper(session);
    (void)pthread_join(session->keeper, NULL);
    uc_rpc_connection_destroy(session->connection);
    (void)close(session->wake_fd);
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

/* Whether a message of that session may go out now. */
static enum uc_status check_locked(struct uc_session *session, uint64_t epoch)
        UC_REQUIRES(session->lock);

static enum uc_status
check_locked(struct uc_session *session, uint64_t epoch)
{
    uint64_t current_epoch;

    if (!uc_session_is_usable(session)) {
        if (atomic_load_explicit(&session->connected, memory_order_acquire)) {
            lose(session, "nothing was answered for two thirds of the lease");
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
        lose(session, "a call was not answered in time (rpc_timeout)");
        return uc_error(UC_ERR_UNHEALTHY, "server %s: no answer within %llu ms",
                session->server.name, (unsigned long long)session->config.rpc_timeout_ms);
    }
    if (status == UC_ERR_STALE) {
        lose(session, "the server has forgotten it");
        return status;
    }
    if (!atomic_load_explicit(&session->connected, memory_order_acquire)) {
        return status == UC_OK ? UC_OK
                               : uc_error(UC_ERR_UNHEALTHY, "server %s: connection lost",
                                         session->server.name);
    }

    renew_locked(session, sent_ms);
    return status;
}

enum uc_status
uc_session_call(struct uc_session *session, uint64_t epoch, enum uc_rpc_method method,
        const struct uc_rpc_buffer *params, uc_session_reply_fn on_reply, void *context)
{
    struct uc_rpc_view result = {.length = 0};
    enum uc_status status;
    uint64_t sent_ms;

    uc_mutex_lock(&session->lock);
    status = check_locked(session, epoch);
    if (status == UC_OK) {
        sent_ms = session_now_ms(session);
        status = uc_rpc_call_wait(
                session->connection, method, params, session->config.rpc_timeout_ms, &result);
        status = finish_call_locked(session, status, sent_ms);
        if (status == UC_OK && on_reply != NULL) {
            struct uc_session_info info;

            uc_session_info(session, &info);
            status = on_reply(context, &info, result);
        }
    }
    uc_mutex_unlock(&session->lock);
    return status;
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
            lose(session, "a notification could not be sent");
        }
    }
    uc_mutex_unlock(&session->lock);
    return status;
}
