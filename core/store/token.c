/* SPDX-License-Identifier: Apache-2.0 */

#include <stdlib.h>
#include <string.h>

#include <ucm/token.h>

#include "core/base/bytes.h"

enum {
    HEADER_BYTES = 16
};

static const uint8_t magic[4] = {'U', 'C', 'T', '1'};

/* The token is one piece of memory: keys and payload follow it. */
struct token_box {
    struct uc_token token;
    uint8_t bytes[];
};

enum uc_status
uc_token_create(const struct uc_block_id *keys, size_t key_count, const uint8_t *payload,
        size_t payload_bytes, struct uc_token **token_out)
{
    struct token_box *box;
    size_t keys_bytes;

    if ((keys == NULL && key_count > 0) || (payload == NULL && payload_bytes > 0)) {
        return uc_error(UC_ERR_INVALID_PARAM, "token: %zu keys and %zu payload bytes, but no array",
                key_count, payload_bytes);
    }
    /* The serialised form counts keys in 32 bits. */
    if (key_count > UINT32_MAX || key_count > (SIZE_MAX - sizeof(*box)) / sizeof(*keys) ||
            payload_bytes > SIZE_MAX - HEADER_BYTES - sizeof(*box) - key_count * sizeof(*keys)) {
        return uc_error(UC_ERR_INVALID_PARAM, "token: %zu keys and %zu payload bytes are too much",
                key_count, payload_bytes);
    }

    keys_bytes = key_count * sizeof(*keys);
    box = malloc(sizeof(*box) + keys_bytes + payload_bytes);
    if (box == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "token: no memory for %zu keys and %zu payload bytes",
                key_count, payload_bytes);
    }

    if (keys_bytes > 0) {
        memcpy(box->bytes, keys, keys_bytes);
    }
    if (payload_bytes > 0) {
        memcpy(box->bytes + keys_bytes, payload, payload_bytes);
    }
    box->token.keys = (const struct uc_block_id *)(const void *)box->bytes;
    box->token.key_count = key_count;
    box->token.payload = box->bytes + keys_bytes;
    box->token.payload_bytes = payload_bytes;
    *token_out = &box->token;
    return UC_OK;
}

void
uc_token_destroy(struct uc_token *token)
{
    free(token); /* first member of its box */
}

size_t
uc_token_serialized_bytes(const struct uc_token *token)
{
    return HEADER_BYTES + token->key_count * sizeof(*token->keys) + token->payload_bytes;
}

void
uc_token_serialize(const struct uc_token *token, uint8_t *buffer)
{
    size_t keys_bytes = token->key_count * sizeof(*token->keys);

    memcpy(buffer, magic, sizeof(magic));
    uc_put_le32(buffer + 4, (uint32_t)token->key_count);
    uc_put_le64(buffer + 8, token->payload_bytes);
    if (keys_bytes > 0) {
        memcpy(buffer + HEADER_BYTES, token->keys, keys_bytes);
    }
    if (token->payload_bytes > 0) {
        memcpy(buffer + HEADER_BYTES + keys_bytes, token->payload, token->payload_bytes);
    }
}

enum uc_status
uc_token_deserialize(const uint8_t *bytes, size_t length_bytes, struct uc_token **token_out)
{
    struct uc_reader reader = uc_reader_init(bytes, bytes == NULL ? 0 : length_bytes);
    const uint8_t *found_magic = uc_reader_take(&reader, sizeof(magic));
    uint32_t key_count = uc_reader_le32(&reader);
    uint64_t payload_bytes = uc_reader_le64(&reader);
    const uint8_t *keys;

    if (reader.failed) {
        return uc_error(UC_ERR_INVALID_PARAM, "token: %zu bytes, fewer than a header of %d",
                length_bytes, HEADER_BYTES);
    }
    if (memcmp(found_magic, magic, sizeof(magic)) != 0) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "token: does not start with UCT1; not a serialised token of this version");
    }
    if (key_count > reader.left / UC_BLOCK_ID_BYTES ||
            payload_bytes != reader.left - (size_t)key_count * UC_BLOCK_ID_BYTES) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "token: header announces %u keys and %llu payload bytes, but %zu bytes follow",
                key_count, (unsigned long long)payload_bytes, reader.left);
    }

    keys = uc_reader_take(&reader, (size_t)key_count * UC_BLOCK_ID_BYTES);
    return uc_token_create((const struct uc_block_id *)(const void *)keys, key_count, reader.bytes,
            reader.left, token_out);
}
