/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file huge_pages.h
 * Big tables that are read at random want big pages: with 4 KiB each access costs a walk of the page tables
 * beside its cache miss. Advice only; any thread.
 */

#ifndef UC_BASE_HUGE_PAGES_H
#define UC_BASE_HUGE_PAGES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

enum {
    UC_PAGE_BYTES = 65536,            /* or less: no page is bigger on the machines we know */
    UC_HUGE_PAGES_MIN_BYTES = 4 << 20 /* less is not worth a page that is never given back */
};

/** Before the first access. What the allocator shares with others at either end is left out. */
static inline void
uc_huge_pages_advise(void *memory, size_t length_bytes)
{
    size_t skip_bytes = (size_t)(-(uintptr_t)memory % UC_PAGE_BYTES);

    if (memory == NULL || length_bytes < UC_HUGE_PAGES_MIN_BYTES) {
        return;
    }

    /* A kernel without them refuses, and nothing is lost. */
    (void)madvise((char *)memory + skip_bytes,
            (length_bytes - skip_bytes) / UC_PAGE_BYTES * UC_PAGE_BYTES, MADV_HUGEPAGE);
}

#endif /* UC_BASE_HUGE_PAGES_H */
