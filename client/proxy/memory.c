/* SPDX-License-Identifier: Apache-2.0 */

/* The public names of core's allocator, in the library that applications link. */

#include <ucm/worker.h>

#include "core/base/host_memory.h"

enum uc_status
uc_memory_alloc(uint64_t length_bytes, void **memory_out)
{
    return uc_host_memory_alloc(length_bytes, memory_out);
}

void
uc_memory_free(void *memory, uint64_t length_bytes)
{
    uc_host_memory_free(memory, length_bytes);
}
