/* SPDX-License-Identifier: Apache-2.0 */

#include "client/proxy/job_table.h"

#include <stdlib.h>

enum {
    FIRST_SLOTS = 64
};

/* Callers count their jobs up or use addresses; both need mixing. */
static size_t
home_of(const struct uc_job_table *table, uint64_t job_id)
{
    uint64_t hash = job_id ^ job_id >> 32;

    hash *= 0xd6e8feb86659fd93ull;
    hash ^= hash >> 32;
    return (size_t)hash & (table->slot_count - 1);
}

/* The slot of the id, or the free one where it belongs. The table is never full. */
static size_t
probe(const struct uc_job_table *table, uint64_t job_id)
{
    size_t at = home_of(table, job_id);

    while (table->slots[at].used && table->slots[at].job_id != job_id) {
        at = (at + 1) & (table->slot_count - 1);
    }

    return at;
}

void
uc_job_table_fini(struct uc_job_table *table)
{
    free(table->slots);
    *table = (struct uc_job_table){0};
}

static enum uc_status
grow(struct uc_job_table *table)
{
    struct uc_job_table larger = {
            .slot_count = table->slot_count == 0 ? FIRST_SLOTS : table->slot_count * 2,
            .count = table->count,
    };

    larger.slots = calloc(larger.slot_count, sizeof(larger.slots[0]));
    if (larger.slots == NULL) {
        return uc_error(
                UC_ERR_OUT_OF_MEMORY, "no memory for more than %zu jobs in flight", table->count);
    }

    for (size_t idx = 0; idx < table->slot_count; idx++) {
        if (table->slots[idx].used) {
            larger.slots[probe(&larger, table->slots[idx].job_id)] = table->slots[idx];
        }
    }
    free(table->slots);
    *table = larger;
    return UC_OK;
}

enum uc_status
uc_job_table_add(struct uc_job_table *table, uint64_t job_id, uint64_t value)
{
    struct uc_job_slot *slot;

    if (uc_job_table_find(table, job_id) != NULL) {
        return uc_error(UC_ERR_DUPLICATE_KEY, "job %llu is in flight: consume its event first",
                (unsigned long long)job_id);
    }
    /* At most three quarters full, so that probes stay short. */
    if (table->count >= table->slot_count - table->slot_count / 4) {
        enum uc_status status = grow(table);

        if (status != UC_OK) {
            return status;
        }
    }

    slot = &table->slots[probe(table, job_id)];
    *slot = (struct uc_job_slot){.job_id = job_id, .value = value, .used = true};
    table->count++;
    return UC_OK;
}

bool
uc_job_table_remove(struct uc_job_table *table, uint64_t job_id)
{
    size_t mask = table->slot_count - 1;
    size_t hole;

    if (uc_job_table_find(table, job_id) == NULL) {
        return false;
    }

    hole = probe(table, job_id);
    /* Move back every follower whose home does not lie behind the hole, until a free slot ends the run. */
    for (size_t at = (hole + 1) & mask; table->slots[at].used; at = (at + 1) & mask) {
        size_t home = home_of(table, table->slots[at].job_id);

        if (((at - home) & mask) >= ((at - hole) & mask)) {
            table->slots[hole] = table->slots[at];
            hole = at;
        }
    }
    table->slots[hole].used = false;
    table->count--;
    return true;
}

uint64_t *
uc_job_table_find(const struct uc_job_table *table, uint64_t job_id)
{
    struct uc_job_slot *slot;

    if (table->count == 0) {
        return NULL;
    }

    slot = &table->slots[probe(table, job_id)];
    return slot->used ? &slot->value : NULL;
}
