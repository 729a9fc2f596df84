/* SPDX-License-Identifier: Apache-2.0 */

#include "net/turns.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <ucm/log.h>

enum {
    EVENT_COUNT = 64,
};

enum uc_status
uc_turns_init(struct uc_turns *turns, const char *name)
{
    turns->name = name;
    turns->is_polling = false;
    turns->clock = uc_clock_monotonic();
    turns->warn_gate = (struct uc_warn_gate){0};
    uc_list_init(&turns->ready);
    uc_list_init(&turns->timed);
    uc_list_init(&turns->dead);
    turns->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (turns->epoll_fd < 0) {
        return uc_log_errno(errno, "%s: epoll_create1", name);
    }

    return UC_OK;
}

void
uc_turns_fini(struct uc_turns *turns)
{
    assert(!turns->is_polling);
    assert(uc_list_is_empty(&turns->ready) && uc_list_is_empty(&turns->timed));
    (void)close(turns->epoll_fd);
}

/* Tell each source what it may do, and give it a turn. */
static void
fetch_events(struct uc_turns *turns)
{
    struct epoll_event events[EVENT_COUNT];
    int count = epoll_wait(turns->epoll_fd, events, EVENT_COUNT, 0);

    for (int idx = 0; idx < count; idx++) {
        struct uc_source *source = events[idx].data.ptr;

        source->ops->event(source, events[idx].events);
        uc_source_wake(source);
    }
}

static struct uc_source *
first_due(struct uc_turns *turns, uint64_t now_ms)
{
    uc_list_for_each (node, &turns->timed) {
        struct uc_source *source = uc_list_entry(node, struct uc_source, timed_node);

        if (source->deadline_ms <= now_ms) {
            return source;
        }
    }
    return NULL;
}

static size_t
expire(struct uc_turns *turns)
{
    struct uc_source *source;
    uint64_t now_ms;
    size_t count = 0;

    if (uc_list_is_empty(&turns->timed)) {
        return 0;
    }

    now_ms = uc_clock_now_ms(&turns->clock);
    /* From the start each time: a callback may have changed the ring. */
    while ((source = first_due(turns, now_ms)) != NULL) {
        uc_source_never_expire(source);
        source->ops->expire(source);
        count++;
    }
    return count;
}

static void
mortal_free(struct uc_mortal *mortal)
{
    free(mortal->memory);
    free(mortal);
}

static void
free_dead(struct uc_turns *turns)
{
    struct uc_list *node;

    while ((node = uc_list_take(&turns->dead)) != NULL) {
        mortal_free(uc_list_entry(node, struct uc_mortal, node));
    }
}

size_t
uc_turns_poll(struct uc_turns *turns, size_t budget)
{
    struct uc_list marker; /* behind it are those who get their turn in the next poll */
    struct uc_list *node;
    size_t left = budget;
    size_t expired;

    turns->is_polling = true;
    fetch_events(turns);
    expired = expire(turns);

    uc_list_init(&marker);
    uc_list_add(&turns->ready, &marker);
    while (left > 0 && (node = uc_list_take(&turns->ready)) != &marker) {
        struct uc_source *source = uc_list_entry(node, struct uc_source, turn_node);

        if (source->ops->turn(source, &left)) {
            uc_source_wake(source);
        }
    }
    uc_list_remove(&marker);

    turns->is_polling = false;
    free_dead(turns);
    return budget - left + expired;
}

uint64_t
uc_turns_next_deadline_ms(const struct uc_turns *turns)
{
    uint64_t deadline_ms = UC_TIME_NEVER_MS;

    uc_list_for_each (node, &turns->timed) {
        const struct uc_source *source = uc_list_entry(node, const struct uc_source, timed_node);

        if (source->deadline_ms < deadline_ms) {
            deadline_ms = source->deadline_ms;
        }
    }
    return deadline_ms;
}

bool
uc_turns_may_warn(struct uc_turns *turns)
{
    return uc_warn_gate_pass(&turns->warn_gate, uc_clock_now_ms(&turns->clock), UC_WARN_PAUSE_MS);
}

void
uc_turns_bury(struct uc_turns *turns, struct uc_mortal *mortal)
{
    if (!turns->is_polling) {
        mortal_free(mortal);
        return;
    }

    uc_list_add(&turns->dead, &mortal->node);
}

void
uc_source_init(struct uc_source *source, struct uc_turns *turns, const struct uc_source_ops *ops)
{
    source->ops = ops;
    source->turns = turns;
    source->fd = -1;
    source->readable = false;
    uc_list_init(&source->turn_node);
    uc_list_init(&source->timed_node);
}

enum uc_status
uc_source_watch(struct uc_source *source, int fd, uint32_t events)
{
    struct epoll_event event = {.events = events | EPOLLET, .data.ptr = source};

    if (epoll_ctl(source->turns->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0) {
        return uc_log_errno(errno, "%s: epoll_ctl", source->turns->name);
    }

    source->fd = fd;
    source->readable = false;
    return UC_OK;
}

void
uc_source_release(struct uc_source *source)
{
    /* A process that was forked from this one may have the socket open as well: closing ours alone would end
       neither the connection nor the registration, whose events would then point to freed memory. */
    (void)epoll_ctl(source->turns->epoll_fd, EPOLL_CTL_DEL, source->fd, NULL);
    (void)shutdown(source->fd, SHUT_RDWR);
    (void)close(source->fd);
    source->fd = -1;
    source->readable = false;
}

void
uc_source_close(struct uc_source *source)
{
    uc_list_remove(&source->turn_node);
    uc_list_remove(&source->timed_node);
    if (source->fd >= 0) {
        uc_source_release(source);
    }
}

void
uc_source_wake(struct uc_source *source)
{
    if (uc_list_is_empty(&source->turn_node)) {
        uc_list_add(&source->turns->ready, &source->turn_node);
    }
}

void
uc_source_expire_at(struct uc_source *source, uint64_t deadline_ms)
{
    source->deadline_ms = deadline_ms;
    uc_list_remove(&source->timed_node);
    uc_list_add(&source->turns->timed, &source->timed_node);
}

void
uc_source_expire_in(struct uc_source *source, uint64_t delay_ms)
{
    uc_source_expire_at(source, uc_time_add_ms(uc_clock_now_ms(&source->turns->clock), delay_ms));
}
