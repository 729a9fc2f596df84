/* SPDX-License-Identifier: Apache-2.0 */

/* The remote store on a transport that needs registration but no device: tcp, which claims so. */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <check.h>

#include "client/stores/remote/store.h"
#include "test/fake/fault_fabric.h"

struct uc_store *uc_bounced_store_create(void);

struct uc_store *
uc_bounced_store_create(void)
{
    uc_fault_fabric_use("tcp", "tcp", true);
    return uc_remote_store_create();
}

/* The transport asserts by these two functions of Check, but a worker process of a suite runs no suite. */
void
_mark_point(const char *file, int line)
{
    (void)file;
    (void)line;
}

void
_ck_assert_failed(const char *file, int line, const char *expr, const char *msg, ...)
{
    va_list arguments;

    (void)fprintf(stderr, "%s:%d: %s ", file, line, expr);
    if (msg != NULL) {
        va_start(arguments, msg);
        (void)vfprintf(stderr, msg, arguments);
        va_end(arguments);
    }
    (void)fputc('\n', stderr);
    abort();
}
