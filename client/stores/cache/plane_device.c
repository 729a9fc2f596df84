/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Blocks in memory of a device: it copies between that and the slots by itself, and tickets tell when it is done. No
 * event is sent before: a job whose deadline passes meanwhile ends as its copies do.
 */

#include <sched.h>
#include <string.h>

#include <ucm/clock.h>
#include <ucm/log.h>

#include "client/stores/cache/plane_internal.h"
#include "client/stores/cache/segment_device.h"

enum {
    IDLE_LOOKS = 64 /* that follow at once; then the thread sleeps between two */
};

void
uc_cache_copies_init(struct uc_cache_copies *copies)
{
    memset(copies, 0, sizeof(*copies));
    uc_list_init(&copies->waiting);
    uc_list_init(&copies->free);
    uc_list_init(&copies->running);
}

static void
destroy_tickets(struct uc_cache_copies *copies, const struct uc_device_ops *ops)
{
    for (size_t idx = 0; idx < UC_CACHE_COPIES_MAX; idx++) {
        ops->ticket_destroy(copies->places[idx].ticket);
        copies->places[idx].ticket = NULL;
    }
}

void
uc_cache_copies_fini(struct uc_cache_copies *copies)
{
    if (copies->ops != NULL) {
        destroy_tickets(copies, copies->ops);
        copies->ops->close(copies->device);
    }
}

/* ---- registration ---- */

static enum uc_status
make_tickets(
        struct uc_cache_copies *copies, const struct uc_device_ops *ops, struct uc_device *device)
{
    enum uc_status status = UC_OK;

    for (size_t idx = 0; status == UC_OK && idx < UC_CACHE_COPIES_MAX; idx++) {
        status = ops->ticket_create(device, &copies->places[idx].ticket);
    }
    if (status != UC_OK) {
        destroy_tickets(copies, ops);
    }
    return status;
}

enum uc_status
uc_cache_plane_show_locked(struct uc_cache_plane *plane, struct uc_cache_attachment *attachment)
{
    const struct uc_cache_copies *copies = &plane->copies;
    const struct uc_cache_segment *segment = attachment->segment;
    enum uc_status status;

    if (attachment->device != NULL) {
        return UC_OK;
    }
    uc_cache_segment_note_device(segment);
    status = copies->ops->register_host(
            copies->device, segment->bytes, segment->slot_count * segment->stride);
    if (status == UC_OK) {
        attachment->device_ops = copies->ops;
        attachment->device = copies->device;
    }
    return status;
}

/* What a worker's first token will lead to, if its owner runs already: then no job has to wait for it. */
static void
look_for_segment_locked(struct uc_cache_plane *plane)
{
    struct uc_cache_segment *segment = NULL;

    if (plane->attachment == NULL && plane->domain[0] != '\0' &&
            uc_cache_segment_attach(plane->domain, plane->block_bytes, &segment) == UC_OK &&
            uc_cache_plane_adopt_locked(plane, segment, false) != UC_OK) {
        uc_cache_segment_close(segment);
    }
}

/* Takes the device over on success. */
static enum uc_status
adopt_locked(
        struct uc_cache_plane *plane, const struct uc_device_ops *ops, struct uc_device *device)
{
    struct uc_cache_copies *copies = &plane->copies;
    enum uc_status status = make_tickets(copies, ops, device);

    if (status != UC_OK) {
        return status;
    }
    copies->ops = ops;
    copies->device = device;
    look_for_segment_locked(plane);
    if (plane->attachment != NULL) {
        status = uc_cache_plane_show_locked(plane, plane->attachment);
    }
    if (status != UC_OK) {
        destroy_tickets(copies, ops);
        copies->ops = NULL;
        copies->device = NULL;
        return status;
    }

    for (size_t idx = 0; idx < UC_CACHE_COPIES_MAX; idx++) {
        uc_list_init(&copies->places[idx].node);
        uc_list_add(&copies->free, &copies->places[idx].node);
    }
    return UC_OK;
}

enum uc_status
uc_cache_plane_open_device(struct uc_cache_plane *plane, const void *address, uint64_t length_bytes,
        enum uc_memory_kind kind)
{
    const struct uc_device_ops *ops = uc_device_find(kind);
    struct uc_device *device = NULL;
    enum uc_status status;
    bool adopts;

    if (ops == NULL || (plane->copies.ops != NULL && plane->copies.ops != ops)) {
        return uc_error(UC_ERR_UNSUPPORTED, "cache store: memory of kind %d cannot be copied%s",
                (int)kind, ops == NULL ? "" : " beside that of another kind of device");
    }
    status = ops->open(address, length_bytes, &device);
    if (status != UC_OK) {
        return status;
    }

    uc_mutex_lock(&plane->lock);
    adopts = plane->copies.device == NULL;
    if (adopts) {
        status = adopt_locked(plane, ops, device);
    }
    uc_mutex_unlock(&plane->lock);
    if (!adopts || status != UC_OK) {
        ops->close(device);
    }
    return status;
}

/* ---- threads ---- */

static void
start_one(struct uc_cache_plane *plane) UC_REQUIRES(plane->lock)
{
    struct uc_cache_copies *copies = &plane->copies;
    struct uc_cache_copy *place =
            uc_list_entry(uc_list_take(&copies->free), struct uc_cache_copy, node);
    struct uc_cache_job *job = uc_cache_job_of(copies->waiting.next, true);
    bool runs;

    place->job = job;
    place->idx = uc_cache_job_take(job, true);
    if (job->lines[1].left == 0) {
        uc_list_remove(&job->lines[1].node);
    }
    copies->running_count++;
    uc_mutex_unlock(&plane->lock);
    runs = uc_cache_job_start(job, place->idx, copies->ops, place->ticket);
    uc_mutex_lock(&plane->lock);
    copies->idle_looks = 0;
    if (runs) {
        uc_list_add(&copies->running, &place->node);
    } else {
        copies->running_count--;
        uc_list_add(&copies->free, &place->node);
        uc_cache_plane_end_item_locked(plane, job, place->idx);
    }
}

static void
move_all(struct uc_list *from, struct uc_list *to)
{
    while (!uc_list_is_empty(from)) {
        uc_list_add(to, uc_list_take(from));
    }
}

/* Those that are done go from one list to the other, their items ended. Without the lock. */
static void
look(const struct uc_device_ops *ops, struct uc_list *running, struct uc_list *done)
{
    uc_list_for_each_safe (node, following, running) {
        struct uc_cache_copy *place = uc_list_entry(node, struct uc_cache_copy, node);
        enum uc_status status = ops->poll(place->ticket);

        if (status != UC_ERR_RETRY) {
            uc_list_remove(node);
            uc_list_add(done, node);
            uc_cache_job_end(place->job, place->idx, status);
        }
    }
}

static bool
look_at_all(struct uc_cache_plane *plane) UC_REQUIRES(plane->lock)
{
    struct uc_cache_copies *copies = &plane->copies;
    struct uc_list running;
    struct uc_list done;
    bool any;

    uc_list_init(&running);
    uc_list_init(&done);
    move_all(&copies->running, &running);
    copies->is_looked_at = true;
    uc_mutex_unlock(&plane->lock);
    look(copies->ops, &running, &done);
    uc_mutex_lock(&plane->lock);
    copies->is_looked_at = false;
    move_all(&running, &copies->running);
    any = !uc_list_is_empty(&done);
    while (!uc_list_is_empty(&done)) {
        struct uc_cache_copy *place =
                uc_list_entry(uc_list_take(&done), struct uc_cache_copy, node);

        copies->running_count--;
        uc_list_add(&copies->free, &place->node);
        uc_cache_plane_end_item_locked(plane, place->job, place->idx);
    }
    return any;
}

/* What waits for its turn behind copies that do not end, ends by its deadline all the same. */
static void
expire_waiting(struct uc_cache_plane *plane) UC_REQUIRES(plane->lock)
{
    uint64_t now_ms = uc_clock_now_ns() / 1000000u;

    uc_list_for_each_safe (node, following, &plane->copies.waiting) {
        struct uc_cache_job *job = uc_cache_job_of(node, true);

        if (now_ms < job->deadline_ms) {
            continue;
        }
        uc_list_remove(node);
        for (size_t left = job->lines[1].left; left > 0; left--) {
            size_t idx = uc_cache_job_take(job, true);

            uc_cache_job_fail(job, idx, UC_ERR_TIMEOUT);
            uc_cache_plane_end_item_locked(
                    plane, job, idx); /* the last one takes the job with it */
        }
    }
}

bool
uc_cache_plane_copy_locked(struct uc_cache_plane *plane)
{
    struct uc_cache_copies *copies = &plane->copies;
    bool ended = false;

    if (!uc_list_is_empty(&copies->waiting) && !uc_list_is_empty(&copies->free)) {
        start_one(plane);
        return true;
    }
    if (!copies->is_looked_at && !uc_list_is_empty(&copies->running)) {
        ended = look_at_all(plane);
        copies->idle_looks = ended ? 0 : copies->idle_looks + 1;
        if (!ended && !uc_list_is_empty(&copies->waiting)) {
            expire_waiting(plane);
        }
        if (!ended && copies->idle_looks < IDLE_LOOKS) {
            uc_mutex_unlock(&plane->lock);
            (void)sched_yield();
            uc_mutex_lock(&plane->lock);
            return true;
        }
    }
    return ended;
}
