/* SPDX-License-Identifier: Apache-2.0 */

#include "test/fake/fake_alloc.h"

#include <stdbool.h>

#include <ucm/compiler.h>

/* Names fixed by the linker's --wrap option. Visible: some linkers let shared libraries refer to them. */
void *__real_malloc(size_t size_bytes);
UC_API void *__wrap_malloc(size_t size_bytes);
void *__real_calloc(size_t count, size_t size_bytes);
UC_API void *__wrap_calloc(size_t count, size_t size_bytes);
void *__real_realloc(void *memory, size_t size_bytes);
UC_API void *__wrap_realloc(void *memory, size_t size_bytes);

/* Fakes may keep file-scope state, the product may not: a wrapped symbol takes no context. */
static bool armed;
static bool only_once;
static size_t pass_left;

static bool
fails(void)
{
    if (!armed) {
        return false;
    }
    if (pass_left == 0) {
        armed = !only_once;
        return true;
    }

    pass_left--;
    return false;
}

void *
__wrap_malloc(size_t size_bytes)
{
    return fails() ? NULL : __real_malloc(size_bytes);
}

void *
__wrap_calloc(size_t count, size_t size_bytes)
{
    return fails() ? NULL : __real_calloc(count, size_bytes);
}

void *
__wrap_realloc(void *memory, size_t size_bytes)
{
    return fails() ? NULL : __real_realloc(memory, size_bytes);
}

void
uc_fake_alloc_fail_after(size_t pass_count)
{
    armed = true;
    only_once = false;
    pass_left = pass_count;
}

void
uc_fake_alloc_fail_once(size_t pass_count)
{
    uc_fake_alloc_fail_after(pass_count);
    only_once = true;
}

void
uc_fake_alloc_reset(void)
{
    armed = false;
}
