/* SPDX-License-Identifier: Apache-2.0 */

#include "tools/bench/optimum.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define NEVER UINT32_MAX /* no int, so no enumerator */

/* A block in the cache: the farther and then the deeper goes first. Stale when its block was used again. */
struct item {
    uint32_t next; /* request that uses it */
    uint32_t depth;
    uint32_t block;
};

struct uc_optimum {
    const struct uc_trace *trace;
    uint32_t *blocks; /* per reference: its block, counted from 0 */
    uint32_t *nexts;  /* per reference: the next request that uses its block, or NEVER */
    uint32_t block_count;
    /* Of one run. */
    uint32_t *kept; /* per block: next use while in the cache, else NEVER */
    struct item *heap;
    size_t heap_count;
    uint64_t kept_count;
};

static int
compare_ids(const void *left, const void *right)
{
    uint64_t first = *(const uint64_t *)left;
    uint64_t second = *(const uint64_t *)right;

    return first < second ? -1 : first > second;
}

/* Number the blocks by the rank of their ids. */
static enum uc_status
number_blocks(struct uc_optimum *optimum)
{
    const struct uc_trace *trace = optimum->trace;
    uint64_t *ids = calloc(trace->hash_id_count + 1, sizeof(ids[0]));
    size_t count = 0;

    if (ids == NULL) {
        return UC_ERR_OUT_OF_MEMORY;
    }

    memcpy(ids, trace->hash_ids, trace->hash_id_count * sizeof(ids[0]));
    qsort(ids, trace->hash_id_count, sizeof(ids[0]), compare_ids);
    for (size_t idx = 0; idx < trace->hash_id_count; idx++) {
        if (count == 0 || ids[idx] != ids[count - 1]) {
            ids[count++] = ids[idx];
        }
    }
    for (size_t idx = 0; idx < trace->hash_id_count; idx++) {
        const uint64_t *found =
                bsearch(&trace->hash_ids[idx], ids, count, sizeof(ids[0]), compare_ids);

        optimum->blocks[idx] = (uint32_t)(found - ids);
    }
    optimum->block_count = (uint32_t)count;
    free(ids);
    return UC_OK;
}

static void
forget_all(struct uc_optimum *optimum)
{
    for (uint32_t block = 0; block < optimum->block_count; block++) {
        optimum->kept[block] = NEVER;
    }
    optimum->kept_count = 0;
    optimum->heap_count = 0;
}

static void
find_next_uses(struct uc_optimum *optimum)
{
    forget_all(optimum);
    for (size_t idx = optimum->trace->request_count; idx > 0; idx--) {
        const struct uc_trace_request *request = &optimum->trace->requests[idx - 1];

        for (size_t at = request->first; at < request->first + request->count; at++) {
            optimum->nexts[at] = optimum->kept[optimum->blocks[at]];
            optimum->kept[optimum->blocks[at]] = (uint32_t)idx - 1;
        }
    }
}

enum uc_status
uc_optimum_create(const struct uc_trace *trace, struct uc_optimum **optimum_out)
{
    struct uc_optimum *optimum;

    if (trace->request_count >= NEVER || trace->hash_id_count >= NEVER) {
        return uc_error(UC_ERR_INVALID_PARAM, "optimum: the trace has more than %u references",
                (unsigned)NEVER - 1);
    }
    optimum = calloc(1, sizeof(*optimum));
    if (optimum == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "optimum: no memory");
    }

    optimum->trace = trace;
    optimum->blocks = calloc(trace->hash_id_count + 1, sizeof(optimum->blocks[0]));
    optimum->nexts = calloc(trace->hash_id_count + 1, sizeof(optimum->nexts[0]));
    optimum->kept = calloc(trace->hash_id_count + 1, sizeof(optimum->kept[0]));
    optimum->heap = calloc(trace->hash_id_count + 1, sizeof(optimum->heap[0]));
    if (optimum->blocks == NULL || optimum->nexts == NULL || optimum->kept == NULL ||
            optimum->heap == NULL || number_blocks(optimum) != UC_OK) {
        uc_optimum_destroy(optimum);
        return uc_error(UC_ERR_OUT_OF_MEMORY, "optimum: no memory for %zu references",
                trace->hash_id_count);
    }

    find_next_uses(optimum);
    *optimum_out = optimum;
    return UC_OK;
}

void
uc_optimum_destroy(struct uc_optimum *optimum)
{
    if (optimum == NULL) {
        return;
    }

    free(optimum->heap);
    free(optimum->kept);
    free(optimum->nexts);
    free(optimum->blocks);
    free(optimum);
}

static bool
goes_before(const struct item *left, const struct item *right)
{
    return left->next != right->next ? left->next > right->next : left->depth > right->depth;
}

/* At most one push per reference, so the heap never overflows. */
static void
push(struct uc_optimum *optimum, struct item item)
{
    struct item *heap = optimum->heap;
    size_t at = optimum->heap_count++;

    while (at > 0 && goes_before(&item, &heap[(at - 1) / 2])) {
        heap[at] = heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap[at] = item;
}

static struct item
pop(struct uc_optimum *optimum)
{
    struct item *heap = optimum->heap;
    struct item top = heap[0];
    struct item last = heap[--optimum->heap_count];
    size_t at = 0;

    for (;;) {
        size_t child = 2 * at + 1;

        if (child + 1 < optimum->heap_count && goes_before(&heap[child + 1], &heap[child])) {
            child++;
        }
        if (child >= optimum->heap_count || !goes_before(&heap[child], &last)) {
            break;
        }
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = last;
    return top;
}

/* Keep every block that is used again; the caller trims to the capacity. */
static void
keep(struct uc_optimum *optimum, size_t at, uint32_t depth)
{
    uint32_t block = optimum->blocks[at];

    optimum->kept_count -= optimum->kept[block] != NEVER ? 1 : 0;
    optimum->kept[block] = optimum->nexts[at];
    if (optimum->nexts[at] == NEVER) {
        return;
    }

    optimum->kept_count++;
    push(optimum, (struct item){.next = optimum->nexts[at], .depth = depth, .block = block});
}

static void
trim(struct uc_optimum *optimum, uint64_t capacity_blocks)
{
    while (optimum->kept_count > capacity_blocks) {
        struct item item = pop(optimum);

        if (optimum->kept[item.block] == item.next) {
            optimum->kept[item.block] = NEVER;
            optimum->kept_count--;
        }
    }
}

uint64_t
uc_optimum_prefix_hits(struct uc_optimum *optimum, uint64_t capacity_blocks)
{
    uint64_t hits = 0;

    forget_all(optimum);
    for (size_t idx = 0; idx < optimum->trace->request_count; idx++) {
        const struct uc_trace_request *request = &optimum->trace->requests[idx];
        size_t present = 0;

        while (present < request->count &&
                optimum->kept[optimum->blocks[request->first + present]] != NEVER) {
            present++;
        }
        hits += present;
        for (size_t depth = 0; depth < request->count; depth++) {
            keep(optimum, request->first + depth, (uint32_t)depth);
        }
        trim(optimum, capacity_blocks);
    }
    return hits;
}
