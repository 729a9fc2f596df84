/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file token.h
 * Addressed tokens: the keys that a window covers and the opaque payload by which
 * the store that minted it finds them again in another process. Immutable; any thread may read.
 */

#ifndef UC_TOKEN_H
#define UC_TOKEN_H

#include <stddef.h>
#include <stdint.h>

#include <ucm/block.h>
#include <ucm/compiler.h>
#include <ucm/status.h>

/** Made by uc_token_create() or uc_token_deserialize(), released by uc_token_destroy(). */
struct uc_token {
    const struct uc_block_id *keys;
    size_t key_count;
    const uint8_t *payload;
    size_t payload_bytes;
};

/**
 * Copy keys and payload into a new token; the caller owns it.
 *
 * @retval UC_ERR_INVALID_PARAM  a count without its array, or sizes that overflow
 * @retval UC_ERR_OUT_OF_MEMORY
 */
UC_API UC_MUST_CHECK enum uc_status uc_token_create(const struct uc_block_id *keys,
        size_t key_count, const uint8_t *payload, size_t payload_bytes,
        struct uc_token **token_out);

/** NULL is allowed. */
UC_API void uc_token_destroy(struct uc_token *token);

/** @return bytes that uc_token_serialize() writes: 16 + 16 keys + payload. */
UC_API size_t uc_token_serialized_bytes(const struct uc_token *token);

/** Write the form of. @p buffer has room for uc_token_serialized_bytes(). */
UC_API void uc_token_serialize(const struct uc_token *token, uint8_t *buffer);

/**
 * Parse untrusted bytes.
 *
 * @retval UC_ERR_INVALID_PARAM  wrong magic, or a length other than the header announces
 * @retval UC_ERR_OUT_OF_MEMORY
 */
UC_API UC_MUST_CHECK enum uc_status uc_token_deserialize(
        const uint8_t *bytes, size_t length_bytes, struct uc_token **token_out);

#endif /* UC_TOKEN_H */
