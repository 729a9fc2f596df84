/* SPDX-License-Identifier: Apache-2.0 */

#include "test/fake/alloc_count.h"

#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <ucm/compiler.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#    define OWN_ALLOCATOR 0
#elif defined(__has_feature)
#    if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#        define OWN_ALLOCATOR 0
#    endif
#endif
#ifndef OWN_ALLOCATOR
#    define OWN_ALLOCATOR 1
#endif

static atomic_bool is_counting;
static atomic_size_t count;

bool
uc_alloc_count_works(void)
{
    return OWN_ALLOCATOR;
}

void
uc_alloc_count_start(void)
{
    atomic_store(&count, 0);
    atomic_store(&is_counting, true);
}

size_t
uc_alloc_count_stop(void)
{
    atomic_store(&is_counting, false);
    return atomic_load(&count);
}

#if OWN_ALLOCATOR

/* glibc's own, under the names that it keeps for those who stand before it. */
void *__libc_malloc(size_t size_bytes);
void *__libc_calloc(size_t count, size_t size_bytes);
void *__libc_realloc(void *memory, size_t size_bytes);
void *__libc_memalign(size_t alignment, size_t size_bytes);

static void
note(void)
{
    if (atomic_load_explicit(&is_counting, memory_order_relaxed)) {
        atomic_fetch_add_explicit(&count, 1, memory_order_relaxed);
    }
}

UC_API void *
malloc(size_t size_bytes)
{
    note();
    return __libc_malloc(size_bytes);
}

UC_API void *
calloc(size_t item_count, size_t size_bytes)
{
    note();
    return __libc_calloc(item_count, size_bytes);
}

UC_API void *
realloc(void *memory, size_t size_bytes)
{
    note();
    return __libc_realloc(memory, size_bytes);
}

UC_API void *
aligned_alloc(size_t alignment, size_t size_bytes)
{
    note();
    return __libc_memalign(alignment, size_bytes);
}

UC_API void *
memalign(size_t alignment, size_t size_bytes)
{
    note();
    return __libc_memalign(alignment, size_bytes);
}

UC_API int
posix_memalign(void **memory_out, size_t alignment, size_t size_bytes)
{
    void *memory;

    note();
    memory = __libc_memalign(alignment, size_bytes);
    if (memory == NULL) {
        return ENOMEM;
    }
    *memory_out = memory;
    return 0;
}

#endif
