/* SPDX-License-Identifier: Apache-2.0 */

#include "test/fake/slot_table.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ucm/log.h>

enum uc_status
slot_table_open(struct slot_table *table, const char *path)
{
    size_t slots_bytes = table->slot_count * sizeof(struct slot);
    struct stat info;
    void *mapping;
    int fd;

    table->mapped_bytes =
            sizeof(*table->header) + slots_bytes + table->slot_count * (size_t)table->block_bytes;
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
        return uc_log_errno(errno, "slot store %s: open", path);
    }
    if (fstat(fd, &info) != 0 || ((size_t)info.st_size < table->mapped_bytes &&
                                         ftruncate(fd, (off_t)table->mapped_bytes) != 0)) {
        enum uc_status status = uc_log_errno(errno, "slot store %s: ftruncate", path);

        (void)close(fd);
        return status;
    }
    mapping = mmap(NULL, table->mapped_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    (void)close(fd);
    if (mapping == MAP_FAILED) {
        return uc_log_errno(errno, "slot store %s: mmap", path);
    }

    table->header = mapping;
    table->slots = (struct slot *)(void *)(table->header + 1);
    table->data = (uint8_t *)table->slots + slots_bytes;
    return UC_OK;
}

enum uc_status
slot_table_clear(struct slot_table *table)
{
    if (table->header->identity == 0 &&
            getrandom(&table->header->identity, sizeof(table->header->identity), 0) < 0) {
        return uc_log_errno(errno, "slot store: getrandom");
    }
    for (size_t idx = 0; idx < table->slot_count; idx++) {
        struct slot *slot = &table->slots[idx];

        atomic_fetch_add_explicit(&slot->generation, 1, memory_order_release);
        atomic_store_explicit(&slot->state, SLOT_FREE, memory_order_release);
        slot->pins = 0;
        slot->refs = 0;
    }

    return UC_OK;
}

struct slot *
slot_table_find(const struct slot_table *table, const struct uc_block_id *id)
{
    for (size_t idx = 0; idx < table->slot_count; idx++) {
        struct slot *slot = &table->slots[idx];

        if (atomic_load_explicit(&slot->state, memory_order_relaxed) != SLOT_FREE &&
                memcmp(&slot->id, id, sizeof(*id)) == 0) {
            return slot;
        }
    }

    return NULL;
}

bool
slot_is_visible(const struct slot *slot)
{
    return slot != NULL &&
           atomic_load_explicit(&slot->state, memory_order_relaxed) == SLOT_COMMITTED;
}

static void
release(struct slot *slot)
{
    /* Generation first: a worker that sees the slot free has seen its token become stale. */
    atomic_fetch_add_explicit(&slot->generation, 1, memory_order_release);
    atomic_store_explicit(&slot->state, SLOT_FREE, memory_order_release);
}

enum uc_status
slot_table_conclude(struct slot_table *table, const struct uc_block_id *id, bool success)
{
    struct slot *slot = slot_table_find(table, id);

    if (slot == NULL || slot->refs == 0) {
        return uc_error(UC_ERR_NOT_FOUND, "slot store: commit of a block without reservation");
    }

    slot->refs--;
    slot->has_success |= success ? 1 : 0;
    if (slot->refs != 0 || slot_is_visible(slot)) {
        return UC_OK;
    }
    if (slot->has_success != 0) {
        atomic_store_explicit(&slot->state, SLOT_COMMITTED, memory_order_release);
    } else {
        release(slot);
    }
    return UC_OK;
}

struct slot *
slot_table_reserve(struct slot_table *table, const struct uc_block_id *id)
{
    struct slot *slot = slot_table_find(table, id);

    for (size_t idx = 0; slot == NULL && idx < table->slot_count; idx++) {
        if (atomic_load_explicit(&table->slots[idx].state, memory_order_relaxed) == SLOT_FREE) {
            slot = &table->slots[idx];
            slot->id = *id;
            slot->has_success = 0;
            atomic_store_explicit(&slot->state, SLOT_PENDING, memory_order_release);
        }
    }
    if (slot != NULL) {
        slot->refs++;
    }
    return slot;
}

void
slot_table_close(struct slot_table *table)
{
    if (table->header != NULL) {
        (void)munmap(table->header, table->mapped_bytes);
        table->header = NULL;
    }
}

size_t
slot_table_pins(const struct slot_table *table)
{
    size_t pins = 0;

    for (size_t idx = 0; idx < table->slot_count; idx++) {
        pins += table->slots[idx].pins;
    }

    return pins;
}

size_t
slot_table_refs(const struct slot_table *table)
{
    size_t refs = 0;

    for (size_t idx = 0; idx < table->slot_count; idx++) {
        refs += table->slots[idx].refs;
    }

    return refs;
}
