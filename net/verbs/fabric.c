/* SPDX-License-Identifier: Apache-2.0 */

#include <assert.h>
#include <sys/epoll.h>

#include <ucm/clock.h>

#include "net/verbs/verbs.h"

enum {
    /* Looking at the descriptors is a system call: a busy poller makes it once in so many polls. */
    BUSY_POLLS = 64,
};

static const uint64_t op_bytes_max = UINT64_C(1) << 40;

uint64_t
uc_verbs_now_ms(void)
{
    struct uc_clock clock = uc_clock_monotonic();

    return uc_clock_now_ms(&clock);
}

void
uc_verbs_fabric_caps(const struct uc_fabric *fabric, struct uc_fabric_caps *caps_out)
{
    (void)fabric;
    *caps_out = (struct uc_fabric_caps){
            .needs_registration = true,
            .checks_generation = false,
            .max_piece_count = UC_VERBS_MAX_PIECES,
            .max_op_bytes = op_bytes_max,
    };
}

void
uc_verbs_fabric_enter(struct uc_fabric *fabric)
{
    fabric->depth++;
}

void
uc_verbs_fabric_leave(struct uc_fabric *fabric)
{
    assert(fabric->depth > 0);
    fabric->depth--;
    if (fabric->depth == 0) {
        uc_verbs_endpoints_sweep(fabric);
    }
}

static struct uc_fabric_endpoint *
first_endpoint(struct uc_list *list)
{
    return uc_list_is_empty(list) ? NULL
                                  : uc_list_entry(list->next, struct uc_fabric_endpoint, node);
}

static size_t
conclude_failed(struct uc_fabric *fabric, size_t budget)
{
    size_t handled = 0;

    while (handled < budget && !uc_list_is_empty(&fabric->failed)) {
        handled += uc_verbs_endpoint_conclude(first_endpoint(&fabric->failed));
    }
    return handled;
}

/* Callbacks may move any endpoint to another list, so no place in the list is kept across them. */
static size_t
poll_active(struct uc_fabric *fabric, size_t budget)
{
    size_t turns = fabric->active_count;
    size_t handled = 0;

    while (turns > 0 && handled < budget && !uc_list_is_empty(&fabric->active)) {
        struct uc_fabric_endpoint *endpoint = first_endpoint(&fabric->active);

        uc_list_remove(&endpoint->node);
        uc_list_add(&fabric->active, &endpoint->node);
        handled += uc_verbs_endpoint_poll(endpoint, budget - handled);
        turns--;
    }
    return handled;
}

static size_t
poll_events(struct uc_fabric *fabric, size_t budget)
{
    struct epoll_event events[4];
    int count = epoll_wait(fabric->epoll_fd, events, 4, 0);
    size_t handled = 0;

    for (int idx = 0; idx < count; idx++) {
        if (events[idx].data.fd == fabric->completion_channel->fd) {
            uc_verbs_wakeups_read(fabric);
        } else if (events[idx].data.fd == fabric->cm_channel->fd) {
            handled += uc_verbs_cm_poll(fabric, budget);
        } else {
            handled += uc_verbs_async_poll(fabric);
        }
    }
    return handled;
}

static void
poll_deadlines(struct uc_fabric *fabric)
{
    uint64_t now_ms;

    if (uc_list_is_empty(&fabric->pending)) {
        return;
    }

    now_ms = uc_verbs_now_ms();
    uc_list_for_each_safe (node, following, &fabric->pending) {
        struct uc_fabric_endpoint *endpoint = uc_list_entry(node, struct uc_fabric_endpoint, node);

        if (now_ms >= endpoint->deadline_ms) {
            uc_verbs_endpoint_fail(endpoint, UC_ERR_TIMEOUT, "no answer within %llu ms",
                    (unsigned long long)endpoint->timeout_ms);
        }
    }
}

size_t
uc_verbs_fabric_poll(struct uc_fabric *fabric, size_t budget)
{
    size_t handled;

    uc_verbs_fabric_enter(fabric);
    handled = poll_active(fabric, budget);
    fabric->busy_polls++;
    if (handled < budget && (handled == 0 || fabric->busy_polls >= BUSY_POLLS)) {
        fabric->busy_polls = 0;
        handled += poll_events(fabric, budget - handled);
    }
    poll_deadlines(fabric);
    if (handled < budget) {
        handled += conclude_failed(fabric, budget - handled);
    }
    uc_verbs_fabric_leave(fabric);
    return handled;
}

bool
uc_verbs_fabric_arm(struct uc_fabric *fabric)
{
    if (!uc_list_is_empty(&fabric->failed) || fabric->stash_owner != NULL) {
        return false;
    }

    uc_list_for_each_safe (node, following, &fabric->active) {
        if (!uc_verbs_endpoint_arm(uc_list_entry(node, struct uc_fabric_endpoint, node))) {
            return false;
        }
    }
    return true;
}

uint64_t
uc_verbs_fabric_next_deadline_ms(const struct uc_fabric *fabric)
{
    uint64_t deadline_ms = UC_TIME_NEVER_MS;

    if (!uc_list_is_empty(&fabric->failed)) {
        return uc_verbs_now_ms();
    }

    uc_list_for_each (node, &fabric->pending) {
        const struct uc_fabric_endpoint *endpoint =
                uc_list_entry(node, struct uc_fabric_endpoint, node);

        if (endpoint->deadline_ms < deadline_ms) {
            deadline_ms = endpoint->deadline_ms;
        }
    }
    return deadline_ms;
}
