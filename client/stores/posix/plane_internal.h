/* SPDX-License-Identifier: Apache-2.0 */

/** @file plane_internal.h What plane.c and progress.c share. */

#ifndef UC_POSIX_PLANE_INTERNAL_H
#define UC_POSIX_PLANE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include <ucm/clock.h>

#include "client/stores/posix/assembly.h"
#include "client/stores/posix/engine.h"
#include "client/stores/posix/job.h"
#include "client/stores/posix/plane.h"
#include "core/base/mutex.h"

struct uc_posix_plane {
    const struct uc_posix_env *env;
    struct uc_posix_helper *helper;
    const struct uc_posix_engine_ops *engine_ops;
    struct uc_posix_engine *engine;
    struct uc_completion_queue *queue;
    struct uc_clock clock;
    int wake_fd; /* jobs were submitted, calls have ended, or the helper is through */
    pthread_t thread;
    atomic_bool is_stopping;
    atomic_size_t device_jobs; /* in flight, that use memory of a device */

    struct uc_mutex lock;
    struct uc_list submitted; /* guarded by lock: jobs */
    struct uc_list free_jobs; /* guarded by lock */

    /* Of the progress thread. */
    struct uc_list prerequisites; /* jobs */
    struct uc_list running;       /* jobs */
    struct uc_list ready;         /* ops that wait for the engine */
    struct uc_list ended;         /* ops that the engine or the helper gave back */
    struct uc_posix_assemblies assemblies;
    uint64_t next_deadline_ms;
    uint64_t next_expiry_ms; /* of assemblies */
};

void *uc_posix_progress_main(void *plane);

#endif /* UC_POSIX_PLANE_INTERNAL_H */
