/* SPDX-License-Identifier: Apache-2.0 */

/* The data plane without a thread of its own (`progress: caller`): who collects events moves the jobs, too. */

#include <errno.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <ucm/log.h>

#include "client/stores/remote/plane_internal.h"
#include "client/stores/remote/progress.h"
#include "core/base/completion_queue.h"

enum {
    MS_PER_S = 1000,
    NS_PER_MS = 1000000,
    ROUNDS_MAX = 16,
    RELOOK_MS = 1,
};

static void
wake(struct uc_data_plane *plane)
{
    uint64_t one = 1;

    (void)!write(plane->wake_fd, &one, sizeof(one));
}

/* One that is due earlier stays: waking up early costs a call, setting it would cost one each time. */
static void
set_timer(struct uc_data_plane *plane, uint64_t next_ms)
{
    uint64_t now_ms = uc_plane_now_ms(plane);
    uint64_t at_ms = now_ms + (uint64_t)uc_progress_timeout(plane, next_ms);
    struct itimerspec timer = {
            .it_value = {.tv_sec = (time_t)(at_ms / MS_PER_S),
                    .tv_nsec = (long)(at_ms % MS_PER_S) * NS_PER_MS},
    };

    if (plane->timer_ms <= now_ms || plane->timer_ms > at_ms) {
        plane->timer_ms = at_ms;
        (void)timerfd_settime(plane->timer_fd, TFD_TIMER_ABSTIME, &timer, NULL);
    }
}

/* The caller may sleep on the descriptor now: it has to wake up for all that a round would do. */
static void
announce(struct uc_data_plane *plane, uint64_t next_ms, bool busy)
{
    bool may_sleep = !busy && uc_progress_arm(plane, &next_ms);

    if (!may_sleep && !busy && plane->accepted_count == plane->ended_count) {
        /* Just after a transfer some transports would rather be polled, but no job is left to gain from it. */
        next_ms = uc_time_add_ms(uc_plane_now_ms(plane), RELOOK_MS);
    } else if (!may_sleep) {
        wake(plane);
        return;
    }
    set_timer(plane, next_ms);
}

/* @return when there is something to do at the latest */
static uint64_t
look(struct uc_data_plane *plane, bool *busy_out)
{
    uint64_t next_ms;

    uc_progress_sleep(plane, 0, true, 0); /* notes what connections have */
    next_ms = uc_progress_round(plane, busy_out);
    *busy_out = *busy_out || next_ms <= uc_plane_now_ms(plane);
    return next_ms;
}

void
uc_caller_drive(void *context, int64_t left_ms)
{
    struct uc_data_plane *plane = context;
    uint64_t ended_count = plane->ended_count;
    bool busy = false;
    uint64_t next_ms = look(plane, &busy);

    if (left_ms != 0 && plane->ended_count == ended_count) {
        uc_progress_sleep(plane, next_ms, busy || uc_progress_spin(plane), left_ms);
    } else if (plane->caller_fd >= 0) {
        /* Whoever sleeps on the descriptor is not woken for what is done here as well. */
        for (unsigned round = 0; busy && round < ROUNDS_MAX; round++) {
            next_ms = look(plane, &busy);
        }
        announce(plane, next_ms, busy);
    }
}

static bool
watch(struct uc_data_plane *plane, int fd)
{
    struct epoll_event event = {.events = EPOLLIN};

    return fd >= 0 && epoll_ctl(plane->caller_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

int
uc_caller_event_fd(struct uc_data_plane *plane)
{
    if (plane->caller_fd >= 0) {
        return plane->caller_fd;
    }

    plane->caller_fd = epoll_create1(EPOLL_CLOEXEC);
    plane->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (plane->caller_fd < 0 || !watch(plane, plane->timer_fd) || !watch(plane, plane->epoll_fd) ||
            !watch(plane, uc_completion_queue_event_fd(plane->queue))) {
        (void)uc_log_errno(errno, "remote store: event_fd of `progress: caller`");
        uc_caller_close(plane);
        return -1;
    }

    plane->timer_ms = 0;
    uc_caller_drive(plane, 0); /* for what there may be already */
    return plane->caller_fd;
}

void
uc_caller_close(struct uc_data_plane *plane)
{
    if (plane->timer_fd >= 0) {
        (void)close(plane->timer_fd);
        plane->timer_fd = -1;
    }
    if (plane->caller_fd >= 0) {
        (void)close(plane->caller_fd);
        plane->caller_fd = -1;
    }
}
