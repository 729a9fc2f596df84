/* SPDX-License-Identifier: Apache-2.0 */

/** @file secret.h Random bytes and comparison without a timing trace. Any thread. */

#ifndef UC_SERVER_SECRET_H
#define UC_SERVER_SECRET_H

#include <stdbool.h>
#include <stddef.h>

#include <ucm/compiler.h>
#include <ucm/status.h>

/** Fill from the kernel's generator. */
UC_MUST_CHECK enum uc_status uc_secret_random(void *bytes, size_t length);

/** @return whether the bytes are equal; takes the same time wherever they differ. */
bool uc_secret_equal(const void *left, const void *right, size_t length);

#endif /* UC_SERVER_SECRET_H */
