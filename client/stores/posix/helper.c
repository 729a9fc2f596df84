/* SPDX-License-Identifier: Apache-2.0 */

#include "client/stores/posix/helper.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <ucm/log.h>

#include "client/stores/posix/collect.h"

enum {
    PROBE_FIRST_MS = 100,
    PROBE_LAST_MS = 5000,
    IDLE_MS = 1000, /* at least so often it looks whether a probe is due */
};

struct uc_posix_helper {
    const struct uc_posix_env *env;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct uc_list given; /* guarded by lock, as all that follows */
    struct uc_list done;
    int wake_fd;
    bool is_stopping;
    bool is_probing;
    struct uc_posix_collector collector; /* of the helper's thread */
    pthread_t thread;
};

/* What has been given is worked off together: one pass serves them all. */
static void
collect(struct uc_posix_helper *helper, struct uc_list *ops)
{
    bool is_due = false;

    uc_list_for_each (node, ops) {
        const struct uc_posix_op *op = uc_list_entry(node, struct uc_posix_op, link);
        uint64_t block_bytes = op->assembly != NULL ? helper->env->config->block_bytes : op->bytes;

        is_due = uc_posix_collector_add(&helper->collector, block_bytes) || is_due;
    }
    if (is_due) {
        uc_posix_collector_pass(&helper->collector);
    }
}

static void
move_all(struct uc_list *from, struct uc_list *to)
{
    struct uc_list *node;

    while ((node = uc_list_take(from)) != NULL) {
        uc_list_add(to, node);
    }
}

/* With the lock held, until there is something to do or the time is over. */
static void
sleep_for(struct uc_posix_helper *helper, uint64_t pause_ms)
{
    struct timespec until;

    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)(pause_ms / 1000);
    until.tv_nsec += (long)(pause_ms % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    (void)pthread_cond_timedwait(&helper->wake, &helper->lock, &until);
}

static void *
helper_main(void *argument)
{
    struct uc_posix_helper *helper = argument;
    uint64_t pause_ms = PROBE_FIRST_MS;
    uint64_t one = 1;
    struct uc_list ops;

    uc_list_init(&ops);
    (void)pthread_mutex_lock(&helper->lock);
    while (!helper->is_stopping) {
        bool is_bad = !uc_posix_health_is_ok(helper->env->health);

        if (uc_list_is_empty(&helper->given)) {
            sleep_for(helper, is_bad ? pause_ms : IDLE_MS);
        }
        move_all(&helper->given, &ops);
        (void)pthread_mutex_unlock(&helper->lock);

        if (!uc_list_is_empty(&ops)) {
            collect(helper, &ops);
        }
        if (is_bad && uc_posix_roots_probe(helper->env->roots) == UC_OK) {
            uc_posix_health_set_ok(helper->env->health);
        }
        pause_ms = !is_bad ? PROBE_FIRST_MS : pause_ms * 2;
        pause_ms = pause_ms > PROBE_LAST_MS ? PROBE_LAST_MS : pause_ms;

        (void)pthread_mutex_lock(&helper->lock);
        if (!uc_list_is_empty(&ops)) {
            move_all(&ops, &helper->done);
            (void)!write(helper->wake_fd, &one, sizeof(one));
        }
    }
    (void)pthread_mutex_unlock(&helper->lock);
    return NULL;
}

enum uc_status
uc_posix_helper_create(const struct uc_posix_env *env, struct uc_posix_helper **helper_out)
{
    struct uc_posix_helper *helper = calloc(1, sizeof(*helper));
    pthread_condattr_t attributes;
    int error;

    if (helper == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "posix store: no memory for the helper thread");
    }
    helper->env = env;
    helper->collector.env = env;
    helper->wake_fd = -1;
    uc_list_init(&helper->given);
    uc_list_init(&helper->done);
    (void)pthread_mutex_init(&helper->lock, NULL);
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&helper->wake, &attributes);
    (void)pthread_condattr_destroy(&attributes);

    error = pthread_create(&helper->thread, NULL, helper_main, helper);
    if (error != 0) {
        (void)pthread_cond_destroy(&helper->wake);
        (void)pthread_mutex_destroy(&helper->lock);
        free(helper);
        return uc_log_errno(error, "posix store: helper thread");
    }
    *helper_out = helper;
    return UC_OK;
}

void
uc_posix_helper_destroy(struct uc_posix_helper *helper)
{
    if (helper == NULL) {
        return;
    }

    (void)pthread_mutex_lock(&helper->lock);
    helper->is_stopping = true;
    (void)pthread_cond_signal(&helper->wake);
    (void)pthread_mutex_unlock(&helper->lock);
    (void)pthread_join(helper->thread, NULL);
    (void)pthread_cond_destroy(&helper->wake);
    (void)pthread_mutex_destroy(&helper->lock);
    free(helper);
}

void
uc_posix_helper_give(struct uc_posix_helper *helper, struct uc_posix_op *op, int wake_fd)
{
    (void)pthread_mutex_lock(&helper->lock);
    helper->wake_fd = wake_fd;
    uc_list_add(&helper->given, &op->link);
    (void)pthread_cond_signal(&helper->wake);
    (void)pthread_mutex_unlock(&helper->lock);
}

void
uc_posix_helper_take(struct uc_posix_helper *helper, struct uc_list *ended)
{
    (void)pthread_mutex_lock(&helper->lock);
    move_all(&helper->done, ended);
    (void)pthread_mutex_unlock(&helper->lock);
}

void
uc_posix_helper_probe(struct uc_posix_helper *helper)
{
    (void)pthread_mutex_lock(&helper->lock);
    (void)pthread_cond_signal(&helper->wake);
    (void)pthread_mutex_unlock(&helper->lock);
}
