/* SPDX-License-Identifier: Apache-2.0 */

#include "tools/bench/store_memory.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

#include <ucm/worker.h>

enum uc_status
uc_store_memory_alloc(uint64_t bytes, bool huge_pages, uint8_t **memory_out)
{
    void *memory = NULL;
    enum uc_status status;

    if (huge_pages) {
        memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) {
            return uc_error(UC_ERR_OUT_OF_MEMORY, "store: %" PRIu64 " bytes for the blocks: %s",
                    bytes, strerror(errno));
        }
        (void)madvise(memory, bytes, MADV_HUGEPAGE); /* a kernel without them gives small ones */
    } else {
        status = uc_memory_alloc(bytes, &memory);
        if (status != UC_OK) {
            return status;
        }
    }
    *memory_out = memory;
    return UC_OK;
}

void
uc_store_memory_free(uint8_t *memory, uint64_t bytes, bool huge_pages)
{
    if (memory == NULL) {
        return;
    }
    if (huge_pages) {
        (void)munmap(memory, bytes);
    } else {
        uc_memory_free(memory, bytes);
    }
}
