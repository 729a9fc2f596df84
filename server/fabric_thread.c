/* SPDX-License-Identifier: Apache-2.0 */

#include "server/fabric_thread.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <ucm/clock.h>
#include <ucm/log.h>

#include "server/fabric_peers.h"
#include "server/fabric_places.h"
#include "server/secret.h"

enum {
    UNITS_MAX = 2 + UC_FABRIC_PLACES_MAX, /* tcp, shm, and verbs once per place */
    POLL_BUDGET = 128,
    NAMES_BYTES = 32,
};

/* What a callback needs: whose listener it was. */
struct unit_context {
    struct uc_fabric_thread *thread;
    struct uc_fabric_unit *unit;
    const struct uc_fabric_place *place;
};

struct uc_fabric_thread {
    struct uc_namespace *ns;
    struct uc_fabric_unit units[UNITS_MAX];
    struct unit_context contexts[UNITS_MAX];
    size_t unit_count;
    struct uc_fabric_place places[UC_FABRIC_PLACES_MAX];
    size_t place_count;
    char names[NAMES_BYTES];
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

static enum uc_status
on_admit(void *context, const uint8_t nonce[UC_FABRIC_NONCE_BYTES],
        struct uc_fabric_admission *admission_out)
{
    struct unit_context *unit_context = context;
    struct uc_fabric_peer *peer =
            uc_fabric_peers_admit(&unit_context->thread->peers, unit_context->unit, nonce);

    if (peer == NULL) {
        return UC_ERR_PERMISSION_DENIED;
    }

    admission_out->domain = unit_context->unit->domain;
    admission_out->access = peer->access;
    admission_out->peer = peer;
    return UC_OK;
}

static void
on_connected(void *context, void *peer, struct uc_fabric_endpoint *endpoint)
{
    (void)context;
    ((struct uc_fabric_peer *)peer)->endpoint = endpoint;
}

static void
on_gone(void *context, void *peer)
{
    (void)context;
    uc_fabric_peers_drop(peer);
}

static enum uc_status
on_hold(void *context, void *peer, uint32_t region_idx, uint64_t offset_bytes,
        uint64_t length_bytes, uint64_t generation, enum uc_fabric_opcode opcode)
{
    const struct unit_context *unit_context = context;

    return uc_namespace_hold(unit_context->thread->ns, ((struct uc_fabric_peer *)peer)->access,
            region_idx, offset_bytes, length_bytes, generation, opcode);
}

static void
on_release(void *context, void *peer, uint32_t region_idx, uint64_t offset_bytes)
{
    const struct unit_context *unit_context = context;

    (void)peer;
    uc_namespace_release(unit_context->thread->ns, region_idx, offset_bytes);
}

static const struct uc_fabric_target_ops target_ops = {
        .admit = on_admit,
        .connected = on_connected,
        .gone = on_gone,
        .hold = on_hold,
        .release = on_release,
};

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

    for (size_t idx = 0; idx < thread->unit_count; idx++) {
        const struct uc_fabric_unit *unit = &thread->units[idx];
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
    struct pollfd pollfds[UNITS_MAX + 1];

    for (size_t idx = 0; idx < thread->unit_count; idx++) {
        const struct uc_fabric_unit *unit = &thread->units[idx];

        if (!unit->ops->arm(unit->fabric)) {
            return;
        }
        pollfds[idx] = (struct pollfd){.fd = unit->ops->event_fd(unit->fabric), .events = POLLIN};
    }
    pollfds[thread->unit_count] = (struct pollfd){.fd = thread->wake_fd, .events = POLLIN};
    (void)poll(pollfds, thread->unit_count + 1, sleep_ms(thread));
    if ((pollfds[thread->unit_count].revents & POLLIN) != 0) {
        clear_fd(thread->wake_fd);
    }
}

static size_t
poll_units(struct uc_fabric_thread *thread)
{
    size_t handled = 0;

    for (size_t idx = 0; idx < thread->unit_count; idx++) {
        handled += thread->units[idx].ops->poll(thread->units[idx].fabric, POLL_BUDGET);
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
    for (size_t idx = 0; idx < thread->unit_count; idx++) {
        uc_fabric_unit_stop(&thread->units[idx]);
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

/* Each name once, however many units it has. */
static void
note_name(struct uc_fabric_thread *thread, const char *name)
{
    size_t used = strlen(thread->names);

    if (strstr(thread->names, name) == NULL) {
        (void)snprintf(thread->names + used, sizeof(thread->names) - used, "%s%s",
                used == 0 ? "" : "+", name);
    }
}

static enum uc_status
add_unit(struct uc_fabric_thread *thread, const struct uc_server_config *config,
        const struct uc_fabric_place *place, const char *name)
{
    struct uc_fabric_unit_config unit_config = {
            .name = name,
            .address = place->address,
            .device = place->device[0] == '\0' ? NULL : place->device,
            .port = (uint16_t)config->fabric_port,
    };
    struct uc_fabric_unit *unit = &thread->units[thread->unit_count];
    struct unit_context *context = &thread->contexts[thread->unit_count];
    enum uc_status status;

    context->thread = thread;
    context->unit = unit;
    context->place = place;
    status = uc_fabric_unit_open(&unit_config, thread->ns, &target_ops, context, unit);
    if (status != UC_OK) {
        return uc_error(status, "cannot serve on %s port %u (keys fabric_address, fabric_port): %s",
                place->address, unit_config.port, uc_last_error());
    }

    note_name(thread, name);
    thread->unit_count++;
    if (unit->address == NULL) {
        uc_log_info("fabric %s: serves on %s port %u", name, place->address, unit->port);
    } else {
        uc_log_info("fabric %s: serves this host at %s", name, unit->address);
    }
    return UC_OK;
}

/* In reverse order of preference. What `auto` can do without is left out, and said. */
static const struct fabric_row {
    const char *name;
    bool is_optional;
    bool is_everywhere; /* a unit per place, else one on the first */
} fabric_rows[] = {{"tcp", false, false}, {"verbs", true, true}, {"shm", true, false}};

/* The most preferred place last: see uc_fabric_thread_describe(). */
static enum uc_status
add_units(struct uc_fabric_thread *thread, const struct uc_server_config *config,
        const struct fabric_row *row)
{
    bool may_fail = row->is_optional && strcmp(config->fabric, "auto") == 0;

    for (size_t idx = row->is_everywhere ? thread->place_count : 1; idx > 0; idx--) {
        enum uc_status status = add_unit(thread, config, &thread->places[idx - 1], row->name);

        if (status != UC_OK && !may_fail) {
            return status;
        }
        if (status != UC_OK) {
            uc_log_info("fabric %s: not offered: %s", row->name, uc_last_error());
        }
    }
    return UC_OK;
}

static enum uc_status
open_units(struct uc_fabric_thread *thread, const struct uc_server_config *config)
{
    bool is_auto = strcmp(config->fabric, "auto") == 0;

    for (size_t idx = 0; idx < sizeof(fabric_rows) / sizeof(fabric_rows[0]); idx++) {
        if (is_auto || strcmp(config->fabric, fabric_rows[idx].name) == 0) {
            enum uc_status status = add_units(thread, config, &fabric_rows[idx]);

            if (status != UC_OK) {
                return status;
            }
        }
    }
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

    thread->ns = ns;
    uc_fabric_peers_init(&thread->peers);
    uc_list_init(&thread->waiting);
    uc_mutex_init(&thread->lock);
    uc_list_init(&thread->requested);
    uc_list_init(&thread->done);
    status = open_descriptors(thread);
    if (status == UC_OK) {
        status = uc_fabric_places_read(config->fabric_address, config->fabric_device, host,
                thread->places, &thread->place_count);
    }
    if (status == UC_OK) {
        status = open_units(thread, config);
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
    for (size_t idx = 0; idx < thread->unit_count; idx++) {
        uc_fabric_unit_close(&thread->units[idx]);
    }
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
    for (size_t idx = 0; idx < thread->unit_count; idx++) {
        /* In order of preference: what was opened last is the faster one. */
        const struct uc_fabric_unit *unit = &thread->units[thread->unit_count - 1 - idx];
        const struct unit_context *context = &thread->contexts[thread->unit_count - 1 - idx];
        const char *address = unit->address == NULL ? context->place->told : unit->address;

        fabrics_out[idx] = (struct uc_attach_fabric){
                .name = {.bytes = unit->ops->name, .length = strlen(unit->ops->name)},
                .address = {.bytes = address, .length = strlen(address)},
                .port = unit->port,
                .keys = unit->keys,
        };
    }
    return thread->unit_count;
}

uint16_t
uc_fabric_thread_port(const struct uc_fabric_thread *thread)
{
    return thread->units[0].port;
}

const char *
uc_fabric_thread_names(const struct uc_fabric_thread *thread)
{
    return thread->names;
}
