/* SPDX-License-Identifier: Apache-2.0 */

#include "core/store/null_blocks.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/bytes.h"

enum {
    FIRST_BUCKET_COUNT = 64
};

static enum uc_status
no_memory(uint64_t bytes)
{
    return uc_error(UC_ERR_OUT_OF_MEMORY, "null store: no memory for a block of %llu bytes",
            (unsigned long long)bytes);
}

static void
block_destroy(struct uc_null_block *block)
{
    uc_range_set_fini(&block->written);
    free(block->bytes);
    free(block);
}

void
uc_null_blocks_fini(struct uc_null_blocks *blocks)
{
    for (size_t idx = 0; idx < blocks->bucket_count; idx++) {
        while (blocks->buckets[idx] != NULL) {
            struct uc_null_block *block = blocks->buckets[idx];

            blocks->buckets[idx] = block->next;
            block_destroy(block);
        }
    }
    free(blocks->buckets);
    memset(blocks, 0, sizeof(*blocks));
}

/* Ids are hashes already: any eight bytes of them are as good as a hash of all. */
static size_t
bucket_of(const struct uc_block_id *id, size_t bucket_count)
{
    return (size_t)uc_get_le64(id->bytes) & (bucket_count - 1);
}

struct uc_null_block *
uc_null_blocks_find(const struct uc_null_blocks *blocks, const struct uc_block_id *id)
{
    struct uc_null_block *block = NULL;

    if (blocks->bucket_count > 0) {
        block = blocks->buckets[bucket_of(id, blocks->bucket_count)];
    }
    while (block != NULL && memcmp(&block->id, id, sizeof(*id)) != 0) {
        block = block->next;
    }
    return block;
}

static enum uc_status
grow(struct uc_null_blocks *blocks)
{
    size_t bucket_count = blocks->bucket_count == 0 ? FIRST_BUCKET_COUNT : blocks->bucket_count * 2;
    struct uc_null_block **buckets;

    if (blocks->count < blocks->bucket_count) {
        return UC_OK;
    }

    buckets = calloc(bucket_count, sizeof(*buckets));
    if (buckets == NULL) {
        return UC_ERR_OUT_OF_MEMORY;
    }

    for (size_t idx = 0; idx < blocks->bucket_count; idx++) {
        while (blocks->buckets[idx] != NULL) {
            struct uc_null_block *block = blocks->buckets[idx];
            size_t bucket = bucket_of(&block->id, bucket_count);

            blocks->buckets[idx] = block->next;
            block->next = buckets[bucket];
            buckets[bucket] = block;
        }
    }
    free(blocks->buckets);
    blocks->buckets = buckets;
    blocks->bucket_count = bucket_count;
    return UC_OK;
}

/* The block of that id; a new one has no bytes and is not complete. NULL without memory. */
static struct uc_null_block *
find_or_add(struct uc_null_blocks *blocks, const struct uc_block_id *id)
{
    struct uc_null_block *block = uc_null_blocks_find(blocks, id);
    size_t bucket;

    if (block != NULL) {
        return block;
    }
    if (grow(blocks) != UC_OK) {
        return NULL;
    }

    block = calloc(1, sizeof(*block));
    if (block == NULL) {
        return NULL;
    }

    bucket = bucket_of(id, blocks->bucket_count);
    block->id = *id;
    block->next = blocks->buckets[bucket];
    blocks->buckets[bucket] = block;
    blocks->count++;
    return block;
}

static uint8_t *
allocate(uint64_t length_bytes)
{
    return length_bytes >= SIZE_MAX ? NULL : malloc((size_t)length_bytes + 1); /* 0 is a length */
}

static void
gather(const struct uc_block_payload *payload, uint8_t *bytes)
{
    for (size_t idx = 0; idx < payload->pointer_count; idx++) {
        if (payload->sizes[idx] > 0) {
            memcpy(bytes, payload->pointers[idx], (size_t)payload->sizes[idx]);
            bytes += payload->sizes[idx];
        }
    }
}

enum uc_status
uc_null_blocks_replace(struct uc_null_blocks *blocks, const struct uc_block_id *id,
        const struct uc_block_payload *payload, uint64_t payload_bytes)
{
    uint8_t *bytes = allocate(payload_bytes);
    struct uc_null_block *block = bytes == NULL ? NULL : find_or_add(blocks, id);

    if (block == NULL) {
        free(bytes);
        return no_memory(payload_bytes);
    }

    gather(payload, bytes);
    free(block->bytes);
    uc_range_set_fini(&block->written);
    block->bytes = bytes;
    block->length_bytes = payload_bytes;
    block->is_complete = true;
    return UC_OK;
}

enum uc_status
uc_null_blocks_write_part(struct uc_null_blocks *blocks, const struct uc_block_id *id,
        const struct uc_block_payload *payload, uint64_t payload_bytes, uint64_t block_bytes)
{
    struct uc_null_block *block = find_or_add(blocks, id);

    if (block == NULL) {
        return no_memory(block_bytes);
    }
    if (block->is_complete) {
        return UC_OK;
    }

    if (block->bytes == NULL) {
        block->bytes = allocate(block_bytes);
        block->length_bytes = block_bytes;
    }
    if (block->bytes == NULL ||
            uc_range_set_add(&block->written, payload->block_offset, payload_bytes) != UC_OK) {
        return no_memory(block_bytes);
    }

    gather(payload, block->bytes + payload->block_offset);
    if (uc_range_set_covers(&block->written, block_bytes)) {
        block->is_complete = true;
        uc_range_set_fini(&block->written);
    }
    return UC_OK;
}

void
uc_null_block_read(const struct uc_null_block *block, const struct uc_block_payload *payload)
{
    const uint8_t *bytes = block->bytes + payload->block_offset;

    for (size_t idx = 0; idx < payload->pointer_count; idx++) {
        if (payload->sizes[idx] > 0) {
            memcpy(payload->pointers[idx], bytes, (size_t)payload->sizes[idx]);
            bytes += payload->sizes[idx];
        }
    }
}
