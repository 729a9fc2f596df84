/* SPDX-License-Identifier: Apache-2.0 */

#include "client/stores/posix/block_footer.h"

#include <assert.h>
#include <string.h>

/* Inlined: the hash is the largest cost of a transfer that is served from memory. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "core/base/bytes.h"

enum {
    FOOTER_MAGIC = 0x31424355, /* "UCB1" */

    MAGIC_OFFSET = 0,
    KIND_OFFSET = 4,
    GENERATION_OFFSET = 8,
    KEY_OFFSET = 16,
    LENGTH_OFFSET = 32,
    CHECKSUM_OFFSET = 40,
    SPARE_OFFSET = 48,
    SUM_OFFSET = 56,
};

static_assert(KEY_OFFSET + UC_BLOCK_ID_BYTES == LENGTH_OFFSET, "key");
static_assert(SUM_OFFSET + 8 == UC_BLOCK_FOOTER_BYTES, "footer");

void
uc_block_footer_put(uint8_t *bytes, const struct uc_block_footer *footer)
{
    uc_put_le32(bytes + MAGIC_OFFSET, FOOTER_MAGIC);
    uc_put_le32(bytes + KIND_OFFSET, footer->checksum_kind);
    uc_put_le64(bytes + GENERATION_OFFSET, footer->generation);
    memcpy(bytes + KEY_OFFSET, footer->key.bytes, UC_BLOCK_ID_BYTES);
    uc_put_le64(bytes + LENGTH_OFFSET, footer->length_bytes);
    uc_put_le64(bytes + CHECKSUM_OFFSET, footer->checksum);
    uc_put_le64(bytes + SPARE_OFFSET, 0);
    uc_put_le64(bytes + SUM_OFFSET, XXH3_64bits(bytes, SUM_OFFSET));
}

enum uc_status
uc_block_footer_get(const uint8_t *bytes, struct uc_block_footer *footer_out)
{
    uint32_t kind = uc_get_le32(bytes + KIND_OFFSET);

    /* No text: a damaged file is an ordinary outcome, told by whoever removes it. */
    if (uc_get_le32(bytes + MAGIC_OFFSET) != FOOTER_MAGIC ||
            uc_get_le64(bytes + SUM_OFFSET) != XXH3_64bits(bytes, SUM_OFFSET)) {
        return UC_ERR_NOT_FOUND;
    }
    if ((kind != UC_BLOCK_CHECKSUM_NONE && kind != UC_BLOCK_CHECKSUM_XXH3_64) ||
            uc_get_le64(bytes + GENERATION_OFFSET) == 0 || uc_get_le64(bytes + SPARE_OFFSET) != 0) {
        return UC_ERR_NOT_FOUND;
    }

    footer_out->checksum_kind = kind;
    footer_out->generation = uc_get_le64(bytes + GENERATION_OFFSET);
    memcpy(footer_out->key.bytes, bytes + KEY_OFFSET, UC_BLOCK_ID_BYTES);
    footer_out->length_bytes = uc_get_le64(bytes + LENGTH_OFFSET);
    footer_out->checksum = uc_get_le64(bytes + CHECKSUM_OFFSET);
    return UC_OK;
}

enum uc_status
uc_block_footer_offset(uint64_t file_bytes, uint64_t *offset_out)
{
    uint64_t past_page = file_bytes % UC_BLOCK_PAGE_BYTES;

    if (file_bytes == 0 || file_bytes > INT64_MAX ||
            (past_page != 0 && past_page != UC_BLOCK_FOOTER_BYTES)) {
        return UC_ERR_NOT_FOUND;
    }

    *offset_out = (file_bytes - 1) / UC_BLOCK_PAGE_BYTES * UC_BLOCK_PAGE_BYTES;
    return UC_OK;
}

uint64_t
uc_block_checksum(const struct uc_block_id *key, uint64_t generation, void *const *pointers,
        const uint64_t *sizes, size_t piece_count)
{
    XXH3_state_t state;
    uint8_t head[UC_BLOCK_ID_BYTES + 16];
    uint64_t length = 0;

    for (size_t idx = 0; idx < piece_count; idx++) {
        length += sizes[idx];
    }
    memcpy(head, key->bytes, UC_BLOCK_ID_BYTES);
    uc_put_le64(head + UC_BLOCK_ID_BYTES, generation);
    uc_put_le64(head + UC_BLOCK_ID_BYTES + 8, length);
    /* None of these fails for a state on the stack and pieces that exist. */
    (void)XXH3_64bits_reset(&state);
    (void)XXH3_64bits_update(&state, head, sizeof(head));
    for (size_t idx = 0; idx < piece_count; idx++) {
        if (sizes[idx] > 0) {
            (void)XXH3_64bits_update(&state, pointers[idx], sizes[idx]);
        }
    }
    return XXH3_64bits_digest(&state);
}
