/* SPDX-License-Identifier: Apache-2.0 */

#include "test/conformance/store/suite.h"
#include "test/fake/fake_cuda.h"

static uintptr_t start; /* of the one allocation */
static uint64_t start_bytes;

enum uc_memory_kind
suite_memory_kind(void)
{
    return UC_MEMORY_CUDA;
}

enum uc_status
suite_memory_alloc(uint64_t length_bytes, void **memory_out)
{
    *memory_out = fake_cuda_alloc((size_t)length_bytes);
    start = (uintptr_t)*memory_out;
    start_bytes = length_bytes;
    return UC_OK;
}

void
suite_memory_free(void *memory, uint64_t length_bytes)
{
    (void)length_bytes;
    start_bytes = 0;
    fake_cuda_free(memory);
}

uint8_t *
suite_view(const void *address)
{
    return (uintptr_t)address - start < start_bytes ? fake_cuda_bytes(address)
                                                    : (uint8_t *)(uintptr_t)address;
}
