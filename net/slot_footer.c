/* SPDX-License-Identifier: Apache-2.0 */

#include "net/slot_footer.h"

#include <assert.h>
#include <string.h>

#include "core/base/bytes.h"

enum {
    FOOTER_MAGIC = 0x31464355, /* "UCF1" */

    MAGIC_OFFSET = 0,
    STATE_OFFSET = 4,
    GENERATION_OFFSET = 8,
    KEY_OFFSET = 16,

    /* From the start of the writer part. */
    LENGTH_OFFSET = 0,
    KIND_OFFSET = 8,
    ZERO_OFFSET = 12,
    CHECKSUM_OFFSET = 16,
    SPARE_OFFSET = 24,
};

static_assert(KEY_OFFSET + UC_BLOCK_ID_BYTES == UC_FOOTER_WRITER_OFFSET, "server part");
static_assert(SPARE_OFFSET + 8 == UC_FOOTER_WRITER_BYTES, "writer part");
static_assert(UC_FOOTER_WRITER_OFFSET + UC_FOOTER_WRITER_BYTES == UC_FOOTER_BYTES, "footer");

void
uc_slot_footer_put_server(uint8_t *footer, enum uc_footer_state state, uint64_t generation,
        const struct uc_block_id *key, bool clear_writer)
{
    uc_put_le32(footer + MAGIC_OFFSET, FOOTER_MAGIC);
    uc_put_le32(footer + STATE_OFFSET, (uint32_t)state);
    uc_put_le64(footer + GENERATION_OFFSET, generation);
    memcpy(footer + KEY_OFFSET, key->bytes, UC_BLOCK_ID_BYTES);
    if (clear_writer) {
        memset(footer + UC_FOOTER_WRITER_OFFSET, 0, UC_FOOTER_WRITER_BYTES);
    }
}

void
uc_slot_footer_put_writer(
        uint8_t *writer_part, uint64_t length_bytes, enum uc_checksum_kind kind, uint64_t checksum)
{
    uc_put_le64(writer_part + LENGTH_OFFSET, length_bytes);
    uc_put_le32(writer_part + KIND_OFFSET, (uint32_t)kind);
    uc_put_le32(writer_part + ZERO_OFFSET, 0);
    uc_put_le64(writer_part + CHECKSUM_OFFSET, checksum);
    uc_put_le64(writer_part + SPARE_OFFSET, 0);
}

enum uc_status
uc_slot_footer_get(const uint8_t *footer, struct uc_slot_footer *footer_out)
{
    const uint8_t *writer_part = footer + UC_FOOTER_WRITER_OFFSET;

    if (uc_get_le32(footer + MAGIC_OFFSET) != FOOTER_MAGIC) {
        return UC_ERR_NOT_FOUND; /* no text: an ordinary outcome of reading a slot that moved on */
    }

    footer_out->state = uc_get_le32(footer + STATE_OFFSET);
    footer_out->generation = uc_get_le64(footer + GENERATION_OFFSET);
    memcpy(footer_out->key.bytes, footer + KEY_OFFSET, UC_BLOCK_ID_BYTES);
    footer_out->length_bytes = uc_get_le64(writer_part + LENGTH_OFFSET);
    footer_out->checksum_kind = uc_get_le32(writer_part + KIND_OFFSET);
    footer_out->checksum = uc_get_le64(writer_part + CHECKSUM_OFFSET);
    return UC_OK;
}

uint64_t
uc_slot_checksum(const struct uc_block_id *key, uint64_t generation,
        const struct uc_checksum_piece *pieces, size_t piece_count)
{
    struct uc_checksum_stream stream;

    uc_checksum_stream_init(&stream, key, generation);
    for (size_t idx = 0; idx < piece_count; idx++) {
        uc_copy_hash_add(&stream.hash, pieces[idx].address, pieces[idx].length_bytes);
    }
    return uc_copy_hash_sum(&stream.hash);
}

void
uc_checksum_stream_init(
        struct uc_checksum_stream *stream, const struct uc_block_id *key, uint64_t generation)
{
    uint8_t generation_bytes[8];

    uc_put_le64(generation_bytes, generation);
    uc_copy_hash_init(&stream->hash);
    uc_copy_hash_add(&stream->hash, key->bytes, UC_BLOCK_ID_BYTES);
    uc_copy_hash_add(&stream->hash, generation_bytes, sizeof(generation_bytes));
}

void
uc_checksum_stream_add(struct uc_checksum_stream *stream, const void *bytes, size_t length_bytes)
{
    uc_copy_hash_add(&stream->hash, bytes, length_bytes);
}

uint64_t
uc_checksum_stream_value(const struct uc_checksum_stream *stream)
{
    return uc_copy_hash_sum(&stream->hash);
}
