/* SPDX-License-Identifier: Apache-2.0 */

/** @file describe.h What the posix store says of itself. */

#ifndef UC_POSIX_DESCRIBE_H
#define UC_POSIX_DESCRIBE_H

#include <ucm/compiler.h>
#include <ucm/dict.h>
#include <ucm/status.h>

#include "client/stores/posix/op.h"

/** @param[in] engine  name, or "" where no bytes move */
UC_MUST_CHECK enum uc_status uc_posix_describe(
        const struct uc_posix_env *env, const char *engine, struct uc_dict *description);

#endif /* UC_POSIX_DESCRIBE_H */
