/* SPDX-License-Identifier: Apache-2.0 */

#include "test/conformance/store/suite.h"

enum uc_memory_kind
suite_memory_kind(void)
{
    return UC_MEMORY_HOST;
}

enum uc_status
suite_memory_alloc(uint64_t length_bytes, void **memory_out)
{
    return uc_memory_alloc(length_bytes, memory_out);
}

void
suite_memory_free(void *memory, uint64_t length_bytes)
{
    uc_memory_free(memory, length_bytes);
}

uint8_t *
suite_view(const void *address)
{
    return (uint8_t *)(uintptr_t)address;
}
