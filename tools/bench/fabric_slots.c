/* SPDX-License-Identifier: Apache-2.0 */

#include "tools/bench/fabric_slots.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <ucm/log.h>

#include "core/base/file_reserve.h"
#include "net/slot_footer.h"
#include "tools/bench/block_content.h"

enum {
    PAGE_BYTES = 4096,
    CACHES = 4,       /* a working set is so many times the last-level cache */
    MEMORY_SHARE = 8, /* … and this part of what is free at most */
    WORKING_SET_MIN_BYTES = 64 << 20,
    WORKING_SET_UNKNOWN_BYTES = 512 << 20, /* where no cache is told of */
    LINE_BYTES = 256,
};

enum uc_status
uc_fabric_bench_memory_create(uint64_t bytes, struct uc_fabric_bench_memory *memory_out)
{
    struct uc_fabric_bench_memory memory = {.bytes = bytes};
    enum uc_status status;
    int error;

    memory.fd = memfd_create("ucm-bench-fabric", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (memory.fd < 0) {
        return uc_log_errno(errno, "fabric: memfd_create");
    }
    /* The pages first: memory that runs out is an error here, and a signal later. */
    error = uc_file_reserve(memory.fd, 0, bytes);
    if (error != 0) {
        status = uc_log_errno(error == EFBIG ? ENOMEM : error,
                "fabric: %" PRIu64 " bytes of memory (lower --working-set)", bytes);
        goto err_close;
    }
    if (fcntl(memory.fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) {
        status = uc_log_errno(errno, "fabric: sealing memory");
        goto err_close;
    }
    memory.base =
            mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, memory.fd, 0);
    if (memory.base == MAP_FAILED) {
        status = uc_log_errno(errno, "fabric: mmap of %" PRIu64 " bytes", bytes);
        goto err_close;
    }

    *memory_out = memory;
    return UC_OK;

err_close:
    (void)close(memory.fd);
    return status;
}

void
uc_fabric_bench_memory_destroy(struct uc_fabric_bench_memory *memory)
{
    if (memory->base != NULL) {
        (void)munmap(memory->base, memory->bytes);
        (void)close(memory->fd);
    }
    *memory = (struct uc_fabric_bench_memory){.fd = -1};
}

struct uc_fabric_memory
uc_fabric_bench_memory_range(const struct uc_fabric_bench_memory *memory)
{
    struct uc_fabric_memory range = uc_fabric_host_memory(memory->base, memory->bytes);

    range.fd = memory->fd;
    return range;
}

struct uc_fabric_bench_slots
uc_fabric_bench_slots_plan(uint64_t block_bytes, uint64_t working_set_bytes, uint64_t at_least)
{
    struct uc_fabric_bench_slots slots = {.block_bytes = block_bytes};

    slots.slot_bytes = (block_bytes + UC_FOOTER_BYTES + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    slots.count = working_set_bytes / block_bytes;
    slots.count = slots.count < at_least ? at_least : slots.count;
    return slots;
}

void
uc_fabric_bench_slots_fill(const struct uc_fabric_bench_slots *slots, uint8_t *base, bool committed)
{
    for (uint64_t idx = 0; idx < slots->count; idx++) {
        uint8_t *block = base + uc_fabric_bench_slot_offset(slots, idx);
        uint8_t *footer = block + slots->block_bytes;
        struct uc_block_id key = uc_block_id_from_hash(idx);
        uint64_t generation = uc_fabric_bench_slot_generation(idx);
        struct uc_checksum_piece piece = {.address = block, .length_bytes = slots->block_bytes};

        uc_block_content_fill(idx, block, slots->block_bytes);
        uc_slot_footer_put_server(footer, committed ? UC_FOOTER_COMMITTED : UC_FOOTER_RESERVED,
                generation, &key, true);
        if (committed) {
            uc_slot_footer_put_writer(footer + UC_FOOTER_WRITER_OFFSET, slots->block_bytes,
                    UC_CHECKSUM_XXH3_64, uc_slot_checksum(&key, generation, &piece, 1));
        }
    }
}

uint64_t
uc_fabric_bench_slots_check(
        const struct uc_fabric_bench_slots *slots, const uint8_t *base, uint64_t *checked_out)
{
    uint64_t checked = 0;
    uint64_t wrong = 0;

    for (uint64_t idx = 0; idx < slots->count; idx++) {
        const uint8_t *block = base + uc_fabric_bench_slot_offset(slots, idx);
        struct uc_block_id key = uc_block_id_from_hash(idx);
        struct uc_checksum_piece piece = {.address = block, .length_bytes = slots->block_bytes};
        struct uc_slot_footer footer = {.checksum_kind = UC_CHECKSUM_UNWRITTEN};

        if (uc_slot_footer_get(block + slots->block_bytes, &footer) != UC_OK) {
            wrong++;
            continue;
        }
        if (footer.checksum_kind == UC_CHECKSUM_UNWRITTEN) {
            continue;
        }
        checked++;
        wrong += footer.length_bytes != slots->block_bytes ||
                 footer.checksum !=
                         uc_slot_checksum(&key, uc_fabric_bench_slot_generation(idx), &piece, 1);
    }

    *checked_out = checked;
    return wrong;
}

uint64_t
uc_fabric_bench_footer_offset(const struct uc_fabric_bench_buffers *buffers, uint64_t footer)
{
    uint64_t pieces_bytes = buffers->count * buffers->pieces * buffers->piece_bytes;
    uint64_t start = (pieces_bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;

    return start + footer * UC_FOOTER_BYTES;
}

void
uc_fabric_bench_buffers_fill(const struct uc_fabric_bench_buffers *buffers, uint8_t *base)
{
    for (uint64_t piece = 0; piece < buffers->pieces; piece++) {
        uint8_t *first = base + uc_fabric_bench_piece_offset(buffers, 0, piece);

        uc_block_content_fill(0, first, buffers->piece_bytes);
        for (uint64_t buffer = 1; buffer < buffers->count; buffer++) {
            memcpy(base + uc_fabric_bench_piece_offset(buffers, buffer, piece), first,
                    buffers->piece_bytes);
        }
    }
}

uint64_t
uc_fabric_bench_cache_bytes(void)
{
    long bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);

    if (bytes <= 0) {
        bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
    }
    return bytes <= 0 ? 0 : (uint64_t)bytes;
}

/* What a program can have without others being pushed out; 0 if the system does not say. */
static uint64_t
available_bytes(void)
{
    FILE *file = fopen("/proc/meminfo", "re");
    char line[LINE_BYTES];
    uint64_t kib = 0;

    if (file == NULL) {
        return 0;
    }
    while (kib == 0 && fgets(line, sizeof(line), file) != NULL) {
        if (sscanf(line, "MemAvailable: %" SCNu64 " kB", &kib) != 1) {
            kib = 0;
        }
    }
    (void)fclose(file);
    return kib * 1024;
}

uint64_t
uc_fabric_bench_working_set_bytes(void)
{
    uint64_t cache_bytes = uc_fabric_bench_cache_bytes();
    uint64_t bytes = cache_bytes == 0 ? WORKING_SET_UNKNOWN_BYTES : CACHES * cache_bytes;
    uint64_t most = available_bytes() / MEMORY_SHARE;

    bytes = bytes > most ? most : bytes;
    return bytes < WORKING_SET_MIN_BYTES ? WORKING_SET_MIN_BYTES : bytes;
}
