/* SPDX-License-Identifier: Apache-2.0 */

#include "client/stores/cache/payload.h"

#include <string.h>

#include "client/stores/cache/config.h"
#include "core/base/bytes.h"

enum {
    DOMAIN_LENGTH_AT = 4,
    INCARNATION_AT = 8,
    BLOCK_BYTES_AT = 16,
    DOMAIN_AT = 24
};

static const uint8_t magic[4] = {'U', 'C', 'C', '1'};

void
uc_cache_payload_put_header(
        uint8_t *payload, const char *domain, uint64_t incarnation, uint64_t block_bytes)
{
    size_t length = strlen(domain); /* at most UC_CACHE_DOMAIN_MAX, by configuration */

    memset(payload, 0, UC_CACHE_PAYLOAD_HEADER_BYTES);
    memcpy(payload, magic, sizeof(magic));
    uc_put_le32(payload + DOMAIN_LENGTH_AT, (uint32_t)length);
    uc_put_le64(payload + INCARNATION_AT, incarnation);
    uc_put_le64(payload + BLOCK_BYTES_AT, block_bytes);
    memcpy(payload + DOMAIN_AT, domain, length);
}

void
uc_cache_payload_put_key(uint8_t *payload, size_t key, struct uc_cache_place place)
{
    uint8_t *entry = payload + UC_CACHE_PAYLOAD_HEADER_BYTES + key * UC_CACHE_PAYLOAD_KEY_BYTES;

    uc_put_le32(entry, place.slot);
    uc_put_le32(entry + 4, 0);
    uc_put_le64(entry + 8, place.generation);
}

enum uc_status
uc_cache_payload_check(const uint8_t *payload, size_t payload_bytes, size_t key_count,
        const char *domain, uint64_t block_bytes, uint64_t *incarnation_out)
{
    size_t length = strlen(domain);

    if (payload_bytes < UC_CACHE_PAYLOAD_HEADER_BYTES ||
            (payload_bytes - UC_CACHE_PAYLOAD_HEADER_BYTES) / UC_CACHE_PAYLOAD_KEY_BYTES !=
                    key_count ||
            (payload_bytes - UC_CACHE_PAYLOAD_HEADER_BYTES) % UC_CACHE_PAYLOAD_KEY_BYTES != 0 ||
            memcmp(payload, magic, sizeof(magic)) != 0) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "cache store: %zu bytes for %zu keys are no token of a cache store", payload_bytes,
                key_count);
    }
    if (uc_get_le32(payload + DOMAIN_LENGTH_AT) != length ||
            memcmp(payload + DOMAIN_AT, domain, length) != 0) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "cache store: the token is of another domain than \"%s\"; use one configuration in "
                "all processes",
                domain);
    }
    if (uc_get_le64(payload + BLOCK_BYTES_AT) != block_bytes) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "cache store: the token is of blocks of %llu bytes, block_bytes is %llu here",
                (unsigned long long)uc_get_le64(payload + BLOCK_BYTES_AT),
                (unsigned long long)block_bytes);
    }

    *incarnation_out = uc_get_le64(payload + INCARNATION_AT);
    return UC_OK;
}

struct uc_cache_place
uc_cache_payload_key(const uint8_t *payload, size_t key)
{
    const uint8_t *entry =
            payload + UC_CACHE_PAYLOAD_HEADER_BYTES + key * UC_CACHE_PAYLOAD_KEY_BYTES;
    struct uc_cache_place place = {
            .slot = uc_get_le32(entry), .generation = uc_get_le64(entry + 8)};

    return place;
}
