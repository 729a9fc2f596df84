/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file helper.h
 * A thread for what takes long: removing the oldest blocks, and probing a medium that failed.
 *
 * Threads: create and destroy by one; the rest any.
 */

#ifndef UC_POSIX_HELPER_H
#define UC_POSIX_HELPER_H

#include <ucm/compiler.h>
#include <ucm/status.h>

#include "client/stores/posix/op.h"
#include "core/base/list.h"

struct uc_posix_helper;

/** @retval UC_ERR_OUT_OF_MEMORY, UC_ERR_OS_API */
UC_MUST_CHECK enum uc_status uc_posix_helper_create(
        const struct uc_posix_env *env, struct uc_posix_helper **helper_out);

/** NULL is allowed. Every op that was given has been taken back. */
void uc_posix_helper_destroy(struct uc_posix_helper *helper);

/**
 * Hand over an op that has published a block; take() returns it when the store is within its capacity, or
 * another process sees to it.
 *
 * @param[in] wake_fd  eventfd that is written then
 */
void uc_posix_helper_give(struct uc_posix_helper *helper, struct uc_posix_op *op, int wake_fd);

/** Append the ops that are through to @p ended. */
void uc_posix_helper_take(struct uc_posix_helper *helper, struct uc_list *ended);

/** The store turned unhealthy: start probing. */
void uc_posix_helper_probe(struct uc_posix_helper *helper);

#endif /* UC_POSIX_HELPER_H */
