/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file engine.h
 * Who runs the kernel calls of ops: a ring of io_uring, driven by the progress thread, or a pool of threads.
 *
 * Threads: every function but the pool's own threads is called by the progress thread; create and destroy
 * while there is none.
 */

#ifndef UC_POSIX_ENGINE_H
#define UC_POSIX_ENGINE_H

#include <stdbool.h>
#include <stddef.h>

#include <ucm/compiler.h>
#include <ucm/status.h>

#include "client/stores/posix/op.h"
#include "core/base/list.h"

struct uc_posix_engine;

struct uc_posix_engine_ops {
    const char *name;

    /**
     * @param[in] wake_fd  eventfd that is written when poll has something
     * @retval UC_ERR_UNSUPPORTED    the kernel, or who configured it, does not permit it
     * @retval UC_ERR_OUT_OF_MEMORY, UC_ERR_OS_API
     */
    enum uc_status (*create)(
            const struct uc_posix_config *config, int wake_fd, struct uc_posix_engine **engine_out);
    void (*destroy)(struct uc_posix_engine *engine);

    /** Take ops from the front of @p ready as far as there is room, and start them. */
    void (*start)(struct uc_posix_engine *engine, struct uc_list *ready);
    /** Append ops that have ended to @p ended. */
    void (*poll)(struct uc_posix_engine *engine, struct uc_list *ended);
    /** An op in the engine was cancelled: shorten what it waits for. May do nothing. */
    void (*cancel)(struct uc_posix_engine *engine, struct uc_posix_op *op);
};

extern const struct uc_posix_engine_ops uc_posix_pool_ops;
extern const struct uc_posix_engine_ops
        uc_posix_ring_ops; /* refuses to be created where not built in */

#endif /* UC_POSIX_ENGINE_H */
