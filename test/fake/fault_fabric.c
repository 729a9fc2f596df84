/* SPDX-License-Identifier: Apache-2.0 */

/* Commands and counters, and the table with what concerns no endpoint. */

#include "test/fake/fault_fabric.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <check.h>

#include "test/fake/fault_fabric_internal.h"

#define PREFIX "fault+"

enum {
    NAME_BYTES = 64,
    WAIT_S = 20,
};

/** The next count calls fail. */
struct failure {
    unsigned count;
    enum uc_status status;
};

/* One of each: a test commands one transport. Everything is guarded by the lock. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct uc_list fabrics;
    struct uc_fault_counts counts;
    struct failure registrations;
    struct failure connects;
    enum uc_fault_connect how;
    struct failure posts;
    struct failure operations;
    struct failure corruptions;
    unsigned failing_opcodes;
    unsigned held_opcodes;
    unsigned hold_count;
    enum uc_fault_point point;
    unsigned cut_after; /* completions until then; 0 = never */
    const struct uc_fabric_ops *inner;
    bool needs_registration;
    char name[NAME_BYTES]; /* found under it, "" = under "fault+…" only */
    char inner_name[NAME_BYTES];
    char hidden_name[NAME_BYTES];
    char found_name[NAME_BYTES];
} faults = {
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .changed = PTHREAD_COND_INITIALIZER,
        .fabrics = {&faults.fabrics, &faults.fabrics},
};

static void
lock(void)
{
    (void)pthread_mutex_lock(&faults.lock);
}

static void
unlock(void)
{
    (void)pthread_cond_broadcast(&faults.changed);
    (void)pthread_mutex_unlock(&faults.lock);
}

/* @return whether this one fails */
static bool
take(struct failure *failure)
{
    if (failure->count == 0) {
        return false;
    }
    if (failure->count != UINT32_MAX) {
        failure->count--;
    }
    return true;
}

static enum uc_status
take_status(struct failure *failure, const char *what)
{
    enum uc_status status;

    lock();
    status = take(failure) ? failure->status : UC_OK;
    unlock();
    return status == UC_OK ? UC_OK : uc_error(status, "%s: %s fails as told", PREFIX, what);
}

enum uc_status
fault_take_registration(void)
{
    return take_status(&faults.registrations, "registration");
}

enum uc_status
fault_take_post(void)
{
    return take_status(&faults.posts, "post");
}

bool
fault_take_connect(enum uc_fault_connect *how_out, enum uc_status *status_out)
{
    bool fails;

    lock();
    faults.counts.connects++;
    fails = take(&faults.connects);
    *how_out = faults.how;
    *status_out = faults.connects.status;
    unlock();
    return fails;
}

void
fault_take_operation(struct fault_op *fault_op)
{
    unsigned opcode = 1u << fault_op->op->opcode;

    lock();
    fault_op->is_corrupt = fault_op->op->opcode == UC_FABRIC_READ && take(&faults.corruptions);
    if ((faults.failing_opcodes & opcode) != 0 && take(&faults.operations)) {
        fault_op->is_forced = true;
        fault_op->status = faults.operations.status;
    } else if ((faults.held_opcodes & opcode) != 0 && faults.hold_count > 0) {
        if (faults.hold_count != UINT32_MAX) {
            faults.hold_count--;
        }
        fault_op->hold_after = faults.point == UC_FAULT_AFTER;
        fault_op->is_held = faults.point == UC_FAULT_BEFORE;
        faults.counts.held += fault_op->is_held ? 1 : 0;
    }
    unlock();
}

void
fault_count(const struct uc_fault_counts *delta)
{
    lock();
    faults.counts.registrations += delta->registrations;
    faults.counts.endpoints += delta->endpoints;
    faults.counts.posted += delta->posted;
    faults.counts.completed += delta->completed;
    faults.counts.in_flight += delta->in_flight;
    faults.counts.held += delta->held;
    faults.counts.fences += delta->fences;
    unlock();
}

/* Tell every open fabric. The lock is held. */
static void
order(const struct fault_orders *orders)
{
    uint64_t one = 1;

    uc_list_for_each (node, &faults.fabrics) {
        struct uc_fabric *fabric = uc_list_entry(node, struct uc_fabric, link);

        fabric->orders.cut = fabric->orders.cut || orders->cut;
        if (orders->release) {
            fabric->orders.release = true;
            fabric->orders.reversed = orders->reversed;
        }
        (void)!write(fabric->wake_fd, &one, sizeof(one));
    }
}

void
fault_note_completion(void)
{
    lock();
    if (faults.cut_after > 0 && --faults.cut_after == 0) {
        order(&(struct fault_orders){.cut = true});
    }
    unlock();
}

struct fault_orders
fault_take_orders(struct uc_fabric *fabric)
{
    struct fault_orders orders;
    uint64_t value;

    lock();
    orders = fabric->orders;
    fabric->orders = (struct fault_orders){.release = false};
    (void)!read(fabric->wake_fd, &value, sizeof(value));
    unlock();
    return orders;
}

bool
fault_has_orders(struct uc_fabric *fabric)
{
    bool any;

    lock();
    any = fabric->orders.release || fabric->orders.cut;
    unlock();
    return any;
}

void
uc_fault_fabric_use(const char *name, const char *inner, bool needs_registration)
{
    lock();
    (void)snprintf(faults.name, sizeof(faults.name), "%s", name);
    (void)snprintf(faults.inner_name, sizeof(faults.inner_name), "%s", inner);
    faults.needs_registration = needs_registration;
    unlock();
}

void
uc_fault_fabric_hide(const char *name)
{
    lock();
    (void)snprintf(faults.hidden_name, sizeof(faults.hidden_name), "%s", name);
    unlock();
}

void
uc_fault_reset(void)
{
    uc_fault_reach_devices(false, NULL);
    lock();
    ck_assert(uc_list_is_empty(&faults.fabrics));
    faults.counts = (struct uc_fault_counts){.registrations = 0};
    faults.registrations.count = 0;
    faults.connects.count = 0;
    faults.posts.count = 0;
    faults.operations.count = 0;
    faults.corruptions.count = 0;
    faults.hold_count = 0;
    faults.cut_after = 0;
    faults.needs_registration = false;
    faults.name[0] = '\0';
    faults.hidden_name[0] = '\0';
    unlock();
}

struct uc_fault_counts
uc_fault_counts(void)
{
    struct uc_fault_counts counts;

    lock();
    counts = faults.counts;
    unlock();
    return counts;
}

static bool
enough_held(unsigned count)
{
    return faults.counts.held >= count;
}

static bool
is_idle(unsigned count)
{
    return faults.counts.in_flight <= count;
}

static bool
enough_connects(unsigned count)
{
    return faults.counts.connects >= count;
}

static void
wait_for(bool (*holds)(unsigned count), unsigned count, const char *what)
{
    struct timespec until;
    bool in_time = true;

    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += WAIT_S;
    (void)pthread_mutex_lock(&faults.lock);
    while (!holds(count) && in_time) {
        in_time = pthread_cond_timedwait(&faults.changed, &faults.lock, &until) == 0;
    }
    in_time = holds(count);
    (void)pthread_mutex_unlock(&faults.lock);
    ck_assert_msg(in_time, "never: %u %s", count, what);
}

void
uc_fault_wait_held(unsigned count)
{
    wait_for(enough_held, count, "operations held");
}

void
uc_fault_wait_idle(void)
{
    wait_for(is_idle, 0, "operations in flight");
}

void
uc_fault_wait_connects(unsigned count)
{
    wait_for(enough_connects, count, "connects");
}

void
uc_fault_fail_registrations(unsigned count, enum uc_status status)
{
    lock();
    faults.registrations = (struct failure){count, status};
    unlock();
}

void
uc_fault_fail_connects(unsigned count, enum uc_fault_connect how, enum uc_status status)
{
    lock();
    faults.connects = (struct failure){count, status};
    faults.how = how;
    unlock();
}

void
uc_fault_fail_posts(unsigned count, enum uc_status status)
{
    lock();
    faults.posts = (struct failure){count, status};
    unlock();
}

void
uc_fault_fail_operations(unsigned opcodes, unsigned count, enum uc_status status)
{
    lock();
    faults.operations = (struct failure){count, status};
    faults.failing_opcodes = opcodes;
    unlock();
}

void
uc_fault_corrupt_reads(unsigned count)
{
    lock();
    faults.corruptions.count = count;
    unlock();
}

void
uc_fault_hold(unsigned opcodes, enum uc_fault_point point, unsigned count)
{
    lock();
    faults.held_opcodes = opcodes;
    faults.point = point;
    faults.hold_count = count;
    unlock();
}

void
uc_fault_release(bool reversed)
{
    lock();
    faults.hold_count = 0;
    order(&(struct fault_orders){.release = true, .reversed = reversed});
    unlock();
}

void
uc_fault_cut(void)
{
    lock();
    order(&(struct fault_orders){.cut = true});
    unlock();
}

void
uc_fault_cut_after(unsigned count)
{
    lock();
    faults.cut_after = count;
    unlock();
}

enum uc_status
fault_fabric_open(const struct uc_fabric_config *config, struct uc_fabric **fabric_out)
{
    struct uc_fabric *fabric = calloc(1, sizeof(*fabric));
    enum uc_status status;

    ck_assert_ptr_nonnull(fabric);
    lock();
    fabric->ops = faults.inner;
    fabric->needs_registration = faults.needs_registration;
    unlock();
    status = fabric->ops->open(config, &fabric->inner);
    if (status != UC_OK) {
        free(fabric);
        return status;
    }

    uc_list_init(&fabric->endpoints);
    uc_list_init(&fabric->targets);
    fabric->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    fabric->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    ck_assert_int_ge(fabric->wake_fd, 0);
    ck_assert_int_ge(fabric->epoll_fd, 0);
    for (int idx = 0; idx < 2; idx++) {
        struct epoll_event event = {.events = EPOLLIN};
        int fd = idx == 0 ? fabric->wake_fd : fabric->ops->event_fd(fabric->inner);

        ck_assert_int_eq(epoll_ctl(fabric->epoll_fd, EPOLL_CTL_ADD, fd, &event), 0);
    }
    lock();
    uc_list_add(&faults.fabrics, &fabric->link);
    unlock();
    *fabric_out = fabric;
    return UC_OK;
}

void
fault_fabric_close(struct uc_fabric *fabric)
{
    struct uc_list *node;

    if (fabric == NULL) {
        return;
    }
    lock();
    uc_list_remove(&fabric->link);
    unlock();
    fabric->ops->close(fabric->inner);
    (void)close(fabric->epoll_fd);
    (void)close(fabric->wake_fd);
    while ((node = uc_list_take(&fabric->targets)) != NULL) {
        free(uc_list_entry(node, struct fault_target, link));
    }
    free(fabric);
}

extern enum uc_status __real_uc_fabric_find(const char *name, const struct uc_fabric_ops **ops_out);
extern enum uc_status __wrap_uc_fabric_find(const char *name, const struct uc_fabric_ops **ops_out);

/* Where the linker sends the test's calls of uc_fabric_find(). */
enum uc_status
__wrap_uc_fabric_find(const char *name, const struct uc_fabric_ops **ops_out)
{
    const struct uc_fabric_ops *inner = NULL;
    const char *inner_name = NULL;
    bool is_hidden;
    enum uc_status status;

    if (name == NULL) {
        return __real_uc_fabric_find(name, ops_out);
    }
    lock();
    is_hidden = strcmp(name, faults.hidden_name) == 0;
    if (strcmp(name, faults.name) == 0) {
        inner_name = faults.inner_name;
    } else if (strncmp(name, PREFIX, strlen(PREFIX)) == 0) {
        inner_name = name + strlen(PREFIX);
    }
    unlock();
    if (is_hidden) {
        return uc_error(UC_ERR_UNSUPPORTED, "fault: no %s on this machine, as told", name);
    }
    status = __real_uc_fabric_find(inner_name == NULL ? name : inner_name, &inner);
    if (status != UC_OK || inner_name == NULL) {
        if (status == UC_OK) {
            *ops_out = inner;
        }
        return status;
    }

    lock();
    faults.inner = inner;
    (void)snprintf(faults.found_name, sizeof(faults.found_name), "%s", name);
    *ops_out = fault_fabric_table(faults.found_name);
    unlock();
    return UC_OK;
}
