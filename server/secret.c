/* SPDX-License-Identifier: Apache-2.0 */

#include "server/secret.h"

#include <errno.h>
#include <stdint.h>
#include <sys/random.h>
#include <sys/types.h>

#include <ucm/log.h>

enum uc_status
uc_secret_random(void *bytes, size_t length)
{
    uint8_t *cursor = bytes;

    while (length > 0) {
        ssize_t got = getrandom(cursor, length, 0);

        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return uc_log_errno(errno, "getrandom of %zu bytes", length);
        }
        cursor += got;
        length -= (size_t)got;
    }
    return UC_OK;
}

bool
uc_secret_equal(const void *left, const void *right, size_t length)
{
    const volatile uint8_t *a = left;
    const volatile uint8_t *b = right;
    uint8_t difference = 0;

    for (size_t idx = 0; idx < length; idx++) {
        difference = (uint8_t)(difference | (a[idx] ^ b[idx]));
    }
    return difference == 0;
}
