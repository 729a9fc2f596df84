/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file payload.h
 * Token payload of the cache store, little endian:
 *
 *     "UCC1" | u32 length of domain | u64 incarnation | u64 block_bytes | domain, padded to 64
 *     | per key: u32 slot, u32 0, u64 generation
 *
 * Pure; any thread. Every byte is foreign to the reader.
 */

#ifndef UC_CACHE_STORE_PAYLOAD_H
#define UC_CACHE_STORE_PAYLOAD_H

#include <stddef.h>
#include <stdint.h>

#include <ucm/compiler.h>
#include <ucm/status.h>
#include <ucm/token.h>

enum {
    UC_CACHE_PAYLOAD_HEADER_BYTES = 88,
    UC_CACHE_PAYLOAD_KEY_BYTES = 16
};

struct uc_cache_place {
    uint32_t slot;
    uint64_t generation;
};

static inline size_t
uc_cache_payload_bytes(size_t key_count)
{
    return UC_CACHE_PAYLOAD_HEADER_BYTES + key_count * UC_CACHE_PAYLOAD_KEY_BYTES;
}

void uc_cache_payload_put_header(
        uint8_t *payload, const char *domain, uint64_t incarnation, uint64_t block_bytes);
void uc_cache_payload_put_key(uint8_t *payload, size_t key, struct uc_cache_place place);

/**
 * Check form, domain and block length of a payload for @p key_count keys.
 *
 * @retval UC_ERR_INVALID_PARAM
 */
UC_MUST_CHECK enum uc_status uc_cache_payload_check(const uint8_t *payload, size_t payload_bytes,
        size_t key_count, const char *domain, uint64_t block_bytes, uint64_t *incarnation_out);

/** Of a checked payload. The slot may still be out of range. */
struct uc_cache_place uc_cache_payload_key(const uint8_t *payload, size_t key);

#endif /* UC_CACHE_STORE_PAYLOAD_H */
