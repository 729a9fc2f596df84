/* SPDX-License-Identifier: Apache-2.0 */

#include "server/fabric_thread.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <ucm/clock.h>
#include <ucm/log.h>

#include "server/fabric_peers.h"
#include "server/fabric_units.h"
#include "server/secret.h"

enum {
    POLL_BUDGET = 128,
};

struct uc_fabric_thread {
    struct uc_fabric_units units;
    struct uc_fabric_peers peers;
    struct uc_list waiting; /* fences with a half-accepted endpoint; fabric thread */
    struct uc_mutex lock;
    struct uc_list requested; /* guarded by lock: fences to start */
    struct uc_list done;      /* guarded by lock: fences to report */
    int wake_fd;              /* eventfd: requested or stopping */
    int done_fd;              /* eventfd: done */
    atomic_bool stopping;     /* set by destroy, read by the thread; the eventfd orders it */
    pthread_t native;
    bool started;
};

static void
signal_fd(int fd)
{
    uint64_t one = 1;
    ssize_t written = write(fd, &one, sizeof(one));

    (void)written; /* a full counter is readable already */
}

static void
clear_fd(int fd)
{
    uint64_t count;
    ssize_t got = read(fd, &count, sizeof(count));

    (void)got; /* nothing there is fine */
}

static void
report_done(struct uc_fabric_thread *thread, struct uc_fence *fence)
{
    uc_mutex_lock(&thread->lock);
    uc_list_add(&thread->done, &fence->node);
    uc_mutex_unlock(&thread->lock);
    signal_fd(thread->done_fd);
}

static struct uc_fence *
take_requested(struct uc_fabric_thread *thread)
{
    struct uc_list *node;

    uc_mutex_lock(&thread->lock);
    node = uc_list_take(&thread->requested);
    uc_mutex_unlock(&thread->lock);
    return node == NULL ? NULL : uc_list_entry(node, struct uc_fence, node);
}

static void
run_fences(struct uc_fabric_thread *thread)
{
    struct uc_fence *fence;

    while ((fence = take_requested(thread)) != NULL) {
        uc_list_add(&thread->waiting, &fence->node);
    }
    uc_list_for_each_safe (node, following, &thread->waiting) {
        fence = uc_list_entry(node, struct uc_fence, node);
        if (uc_fabric_peers_fence(&thread->peers, fence->attachment, fence->epoch)) {
            uc_list_remove(node);
            report_done(thread, fence);
        }
    }
}

/* Milliseconds until a fabric wants to run by itself; -1 = not at all. */
static int
sleep_ms(const struct uc_fabric_thread *thread)
{
    uint64_t next_ms = UC_TIME_NEVER_MS;
    uint64_t now_ms = uc_clock_now_ns() / 1000000;

    for (size_t idx = 0; idx < thread->units.count; idx++) {
        const struct uc_fabric_unit *unit = &thread->units.items[idx];
        uint64_t deadline_ms = unit->ops->next_deadline_ms(unit->fabric);

        next_ms = deadline_ms < next_ms ? deadline_ms : next_ms;
    }
    if (next_ms == UC_TIME_NEVER_MS) {
        return -1;
    }
    if (next_ms <= now_ms) {
        return 0;
    }
    return next_ms - now_ms > 1000 ? 1000 : (int)(next_ms - now_ms);
}

static void
sleep_until_work(struct uc_fabric_thread *thread)
{
    struct pollfd pollfds[UC_FABRIC_UNITS_MAX + 1];

    for (size_t idx = 0; idx < thread->units.count; idx++) {
        const struct uc_fabric_unit *unit = &thread->units.items[idx];

        if (!unit->ops->arm(unit->fabric)) {
            return;
        }
        pollfds[idx] = (struct pollfd){.fd = unit->ops->event_fd(unit->fabric), .events = POLLIN};
    }
    pollfds[thread->units.count] = (struct pollfd){.fd = thread->wake_fd, .events = POLLIN};
    (void)poll(pollfds, thread->units.count + 1, sleep_ms(thread));
    if ((pollfds[thread->units.count].revents & POLLIN) != 0) {
        clear_fd(thread->wake_fd);
    }
}

static size_t
poll_units(struct uc_fabric_thread *thread)
{
    size_t handled = 0;

    for (size_t idx = 0; idx < thread->units.count; idx++) {
        handled += thread->units.items[idx].ops->poll(thread->units.items[idx].fabric, POLL_BUDGET);
    }
    return handled;
}

static void *
fabric_main(void *argument)
{
    struct uc_fabric_thread *thread = argument;

    while (!atomic_load_explicit(&thread->stopping, memory_order_acquire)) {
        run_fences(thread);
        if (poll_units(thread) == 0) {
            sleep_until_work(thread);
        }
    }

    /* Closing a listener drops what was half accepted, so one round ends every endpoint. */
    for (size_t idx = 0; idx < thread->units.count; idx++) {
        uc_fabric_unit_stop(&thread->units.items[idx]);
    }
    run_fences(thread);
    (void)uc_fabric_peers_fence_all(&thread->peers);
    return NULL;
}

/* Signals belong to the control thread. */
static enum uc_status
start_thread(struct uc_fabric_thread *thread)
{
    sigset_t all;
    sigset_t before;
    int error;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&thread->native, NULL, fabric_main, thread);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error != 0) {
        return uc_log_errno(error, "fabric thread: pthread_create");
    }

    (void)pthread_setname_np(thread->native, "ucm-fabric");
    thread->started = true;
    return UC_OK;
}

static enum uc_status
open_descriptors(struct uc_fabric_thread *thread)
{
    thread->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    thread->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (thread->wake_fd < 0 || thread->done_fd < 0) {
        return uc_log_errno(errno, "fabric thread: eventfd");
    }
    return UC_OK;
}

enum uc_status
uc_fabric_thread_create(const struct uc_server_config *config, const char *host,
        struct uc_namespace *ns, struct uc_fabric_thread **thread_out)
{
    struct uc_fabric_thread *thread = calloc(1, sizeof(*thread));
    enum uc_status status;

    if (thread == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "no memory for the fabric thread");
    }

    uc_fabric_peers_init(&thread->peers);
    uc_list_init(&thread->waiting);
    uc_mutex_init(&thread->lock);
    uc_list_init(&thread->requested);
    uc_list_init(&thread->done);
    status = open_descriptors(thread);
    if (status == UC_OK) {
        status = uc_fabric_units_open(&thread->units, config, host, ns, &thread->peers);
    }
    if (status == UC_OK) {
        status = start_thread(thread);
    }
    if (status != UC_OK) {
        uc_fabric_thread_destroy(thread);
        return status;
    }

    *thread_out = thread;
    return UC_OK;
}

/* The thread has ended and every endpoint with it: that answers each fence. */
static void
answer_all(struct uc_fabric_thread *thread)
{
    struct uc_fence *fence;
    struct uc_list *node;

    while ((node = uc_list_take(&thread->waiting)) != NULL) {
        report_done(thread, uc_list_entry(node, struct uc_fence, node));
    }
    while ((fence = take_requested(thread)) != NULL) {
        report_done(thread, fence);
    }
    uc_fabric_thread_collect(thread);
}

void
uc_fabric_thread_destroy(struct uc_fabric_thread *thread)
{
    if (thread == NULL) {
        return;
    }

    if (thread->started) {
        atomic_store_explicit(&thread->stopping, true, memory_order_release);
        signal_fd(thread->wake_fd);
        (void)pthread_join(thread->native, NULL);
        answer_all(thread);
    }
    uc_fabric_units_close(&thread->units);
    uc_fabric_peers_fini(&thread->peers);
    uc_mutex_fini(&thread->lock);
    if (thread->wake_fd >= 0) {
        (void)close(thread->wake_fd);
    }
    if (thread->done_fd >= 0) {
        (void)close(thread->done_fd);
    }
    free(thread);
}

enum uc_status
uc_fabric_thread_expect(struct uc_fabric_thread *thread, uint64_t attachment, uint64_t epoch,
        enum uc_fabric_access access, uint8_t nonce_out[UC_FABRIC_NONCE_BYTES])
{
    struct uc_fabric_peer *peer = calloc(1, sizeof(*peer));
    enum uc_status status;

    if (peer == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "no memory for an endpoint");
    }
    status = uc_secret_random(peer->nonce, sizeof(peer->nonce));
    if (status != UC_OK) {
        free(peer);
        return status;
    }

    peer->attachment = attachment;
    peer->epoch = epoch;
    peer->access = access;
    memcpy(nonce_out, peer->nonce, sizeof(peer->nonce));
    uc_fabric_peers_expect(&thread->peers, peer);
    return UC_OK;
}

void
uc_fabric_thread_fence(struct uc_fabric_thread *thread, struct uc_fence *fence)
{
    uc_mutex_lock(&thread->lock);
    uc_list_add(&thread->requested, &fence->node);
    uc_mutex_unlock(&thread->lock);
    signal_fd(thread->wake_fd);
}

int
uc_fabric_thread_fd(const struct uc_fabric_thread *thread)
{
    return thread->done_fd;
}

static struct uc_fence *
take_done(struct uc_fabric_thread *thread)
{
    struct uc_list *node;

    uc_mutex_lock(&thread->lock);
    node = uc_list_take(&thread->done);
    uc_mutex_unlock(&thread->lock);
    return node == NULL ? NULL : uc_list_entry(node, struct uc_fence, node);
}

void
uc_fabric_thread_collect(struct uc_fabric_thread *thread)
{
    struct uc_fence *fence;

    clear_fd(thread->done_fd);
    while ((fence = take_done(thread)) != NULL) {
        fence->on_done(fence);
    }
}

size_t
uc_fabric_thread_describe(
        const struct uc_fabric_thread *thread, struct uc_attach_fabric fabrics_out[UC_FABRICS_MAX])
{
    return uc_fabric_units_describe(&thread->units, fabrics_out);
}

uint16_t
uc_fabric_thread_port(const struct uc_fabric_thread *thread)
{
    return thread->units.items[0].port;
}

const char *
uc_fabric_thread_names(const struct uc_fabric_thread *thread)
{
    return thread->units.names;
}
