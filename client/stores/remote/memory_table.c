/* SPDX-License-Identifier: Apache-2.0 */

#include "client/stores/remote/memory_table.h"

#include <stdlib.h>
#include <string.h>

/* Number of entries that start at or below address: the last of them is the first candidate. */
static size_t
count_up_to_address(const struct uc_memory_table *table, const uint8_t *address)
{
    size_t low = 0;
    size_t high = table->count;

    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if ((uintptr_t)table->by_address[mid]->address <= (uintptr_t)address) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }

    return low;
}

/* Number of entries whose index is below region_idx. */
static size_t
count_below_index(const struct uc_memory_table *table, uint32_t region_idx)
{
    size_t low = 0;
    size_t high = table->count;

    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (table->by_index[mid]->region_idx < region_idx) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }

    return low;
}

static enum uc_status
table_grow(struct uc_memory_table *table)
{
    size_t capacity = table->capacity == 0 ? 64 : table->capacity * 2;
    struct uc_memory **array;

    if (table->count < table->capacity) {
        return UC_OK;
    }

    array = realloc(table->by_address, capacity * sizeof(*array));
    if (array == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "remote store: no memory for the region table");
    }
    table->by_address = array;
    array = realloc(table->by_index, capacity * sizeof(*array));
    if (array == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "remote store: no memory for the region table");
    }
    table->by_index = array;
    table->capacity = capacity;
    return UC_OK;
}

static void
array_insert(struct uc_memory **array, size_t count, size_t pos, struct uc_memory *memory)
{
    memmove(&array[pos + 1], &array[pos], (count - pos) * sizeof(array[0]));
    array[pos] = memory;
}

static void
array_remove(struct uc_memory **array, size_t count, const struct uc_memory *memory)
{
    for (size_t pos = 0; pos < count; pos++) {
        if (array[pos] == memory) {
            memmove(&array[pos], &array[pos + 1], (count - pos - 1) * sizeof(array[0]));
            return;
        }
    }
}

static enum uc_status
check_range(const struct uc_memory_table *table, uint32_t region_idx, const void *address,
        uint64_t length_bytes)
{
    if (address == NULL || length_bytes == 0 || length_bytes > UINTPTR_MAX - (uintptr_t)address) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "remote store: region %u is empty or wraps the address space", region_idx);
    }
    if (region_idx == UC_MEMORY_REGION_NONE || uc_memory_table_find(table, region_idx) != NULL) {
        return uc_error(UC_ERR_INVALID_PARAM, "remote store: region index %u is taken", region_idx);
    }

    return UC_OK;
}

static enum uc_status
register_range(struct uc_memory *memory, struct uc_transports *transports,
        const struct uc_fabric_memory *range)
{
    bool reached;

    if (memory->device.ops == NULL) {
        return uc_transports_register(
                transports, range->address, range->length_bytes, &memory->local);
    }

    reached = memory->device.in_place &&
              uc_transports_register_device(transports, range, &memory->local);
    if (!reached && !memory->device.can_stage) {
        uc_transports_deregister(transports, &memory->local);
        return uc_error(UC_ERR_UNSUPPORTED,
                "remote store: region %u: the transport does not reach this memory of a device, and "
                "`bounce_bytes: 0` leaves no buffers to go through: set it to some blocks",
                memory->region_idx);
    }
    return UC_OK;
}

static void
memory_free(struct uc_memory *memory, struct uc_transports *transports)
{
    uc_transports_deregister(transports, &memory->local);
    if (memory->device.ops != NULL) {
        memory->device.ops->close(memory->device.handle);
    }
    free(memory);
}

enum uc_status
uc_memory_table_add(struct uc_memory_table *table, struct uc_transports *transports,
        uint32_t region_idx, const struct uc_fabric_memory *range,
        const struct uc_memory_device *device)
{
    enum uc_status status = check_range(table, region_idx, range->address, range->length_bytes);
    struct uc_memory *memory;

    if (status == UC_OK) {
        status = table_grow(table);
    }
    if (status != UC_OK) {
        return status;
    }

    memory = calloc(1, sizeof(*memory));
    if (memory == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "remote store: no memory for a region");
    }
    memory->address = range->address;
    memory->length_bytes = range->length_bytes;
    memory->region_idx = region_idx;
    memory->kind = range->kind;
    if (device != NULL) {
        memory->device = *device;
    }
    status = register_range(memory, transports, range);
    if (status != UC_OK) {
        free(memory);
        return status;
    }

    array_insert(
            table->by_address, table->count, count_up_to_address(table, memory->address), memory);
    array_insert(table->by_index, table->count, count_below_index(table, region_idx), memory);
    table->count++;
    if (memory->length_bytes > table->length_bytes_max) {
        table->length_bytes_max = memory->length_bytes;
    }
    return UC_OK;
}

enum uc_status
uc_memory_table_remove(
        struct uc_memory_table *table, struct uc_transports *transports, uint32_t region_idx)
{
    struct uc_memory *memory = uc_memory_table_find(table, region_idx);

    if (memory == NULL) {
        return uc_error(
                UC_ERR_NOT_FOUND, "remote store: region index %u is not registered", region_idx);
    }
    if (atomic_load_explicit(&memory->job_count, memory_order_acquire) != 0) {
        return uc_error(UC_ERR_RETRY,
                "remote store: a job in flight uses region %u; collect its event first",
                region_idx);
    }

    array_remove(table->by_address, table->count, memory);
    array_remove(table->by_index, table->count, memory);
    table->count--;
    memory_free(memory, transports);
    return UC_OK;
}

void
uc_memory_table_fini(struct uc_memory_table *table, struct uc_transports *transports)
{
    for (size_t idx = 0; idx < table->count; idx++) {
        memory_free(table->by_address[idx], transports);
    }
    free(table->by_address);
    free(table->by_index);
    memset(table, 0, sizeof(*table));
}

struct uc_memory *
uc_memory_table_find(const struct uc_memory_table *table, uint32_t region_idx)
{
    size_t pos = count_below_index(table, region_idx);

    if (pos == table->count || table->by_index[pos]->region_idx != region_idx) {
        return NULL;
    }

    return table->by_index[pos];
}

bool
uc_memory_covers(const struct uc_memory *memory, const void *address, uint64_t length_bytes)
{
    uintptr_t first = (uintptr_t)memory->address;
    uintptr_t start = (uintptr_t)address;

    return start >= first && start - first <= memory->length_bytes &&
           length_bytes <= memory->length_bytes - (start - first);
}

struct uc_memory *
uc_memory_table_cover(
        const struct uc_memory_table *table, const void *address, uint64_t length_bytes)
{
    /* Ranges may overlap, so the nearest one below need not be the one that covers. */
    for (size_t pos = count_up_to_address(table, address); pos > 0; pos--) {
        struct uc_memory *memory = table->by_address[pos - 1];

        if ((uintptr_t)address - (uintptr_t)memory->address >= table->length_bytes_max) {
            return NULL;
        }
        if (uc_memory_covers(memory, address, length_bytes)) {
            return memory;
        }
    }

    return NULL;
}

bool
uc_memory_table_touches_device(
        const struct uc_memory_table *table, const void *address, uint64_t length_bytes)
{
    uintptr_t start = (uintptr_t)address;

    for (size_t pos = 0; pos < table->count; pos++) {
        const struct uc_memory *memory = table->by_address[pos];
        uintptr_t first = (uintptr_t)memory->address;

        if (memory->kind != UC_MEMORY_HOST &&
                (start <= first ? first - start < length_bytes
                                : start - first < memory->length_bytes)) {
            return true;
        }
    }
    return false;
}
