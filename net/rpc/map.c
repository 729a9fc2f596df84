/* SPDX-License-Identifier: Apache-2.0 */

#include "net/rpc/map.h"

#include <assert.h>
#include <string.h>

static const char *const access_names[] = {
        [UC_ACCESS_RW] = "rw",
        [UC_ACCESS_RO] = "ro",
        [UC_ACCESS_ADMIN] = "admin",
};

enum {
    ACCESS_COUNT = sizeof(access_names) / sizeof(access_names[0]),
};

static void
encode_field(msgpack_packer *packer, const struct uc_map_field *field, const void *message)
{
    const void *place = (const char *)message + field->offset;
    const struct uc_rpc_text *text;
    const char *name;

    switch (field->type) {
    case UC_MAP_U16:
        uc_encode_uint(packer, *(const uint16_t *)place);
        break;
    case UC_MAP_U32:
        uc_encode_uint(packer, *(const uint32_t *)place);
        break;
    case UC_MAP_U64:
        uc_encode_uint(packer, *(const uint64_t *)place);
        break;
    case UC_MAP_TEXT:
        text = place;
        uc_encode_text(packer, text->bytes, text->length);
        break;
    case UC_MAP_BYTES:
        uc_encode_bin(packer, place, field->max);
        break;
    case UC_MAP_ACCESS:
        name = access_names[*(const enum uc_access *)place];
        uc_encode_text(packer, name, strlen(name));
        break;
    case UC_MAP_CUSTOM:
        field->encode(packer, message);
        break;
    }
}

void
uc_map_encode(msgpack_packer *packer, const struct uc_map_field *fields, size_t field_count,
        const void *message)
{
    (void)msgpack_pack_map(packer, field_count);
    for (size_t idx = 0; idx < field_count; idx++) {
        uc_encode_text(packer, fields[idx].key, strlen(fields[idx].key));
        encode_field(packer, &fields[idx], message);
    }
}

static enum uc_access
decode_access(struct uc_decoder *decoder, const char *key)
{
    struct uc_rpc_text text = uc_decode_text(decoder, key, UC_NAME_MAX);

    for (size_t idx = 0; idx < ACCESS_COUNT; idx++) {
        if (text.length == strlen(access_names[idx]) &&
                memcmp(text.bytes, access_names[idx], text.length) == 0) {
            return (enum uc_access)idx;
        }
    }

    uc_decoder_fail(decoder, key, "\"rw\", \"ro\" or \"admin\" is expected");
    return UC_ACCESS_RO;
}

static void
decode_field(struct uc_decoder *decoder, const struct uc_map_field *field, void *message)
{
    void *place = (char *)message + field->offset;

    switch (field->type) {
    case UC_MAP_U16:
        *(uint16_t *)place = (uint16_t)uc_decode_uint(decoder, field->key, UINT16_MAX);
        break;
    case UC_MAP_U32:
        *(uint32_t *)place = (uint32_t)uc_decode_uint(decoder, field->key, UINT32_MAX);
        break;
    case UC_MAP_U64:
        *(uint64_t *)place = uc_decode_uint(decoder, field->key, UINT64_MAX);
        break;
    case UC_MAP_TEXT:
        *(struct uc_rpc_text *)place = uc_decode_text(decoder, field->key, field->max);
        break;
    case UC_MAP_BYTES:
        uc_decode_bytes(decoder, field->key, place, field->max);
        break;
    case UC_MAP_ACCESS:
        *(enum uc_access *)place = decode_access(decoder, field->key);
        break;
    case UC_MAP_CUSTOM:
        field->decode(decoder, field->key, message);
        break;
    }
}

static size_t
find_field(const struct uc_map_field *fields, size_t field_count, const struct uc_rpc_item *key)
{
    for (size_t idx = 0; idx < field_count; idx++) {
        if (key->value == strlen(fields[idx].key) &&
                memcmp(key->bytes, fields[idx].key, key->value) == 0) {
            return idx;
        }
    }

    return field_count;
}

void
uc_map_decode(struct uc_decoder *decoder, const struct uc_map_field *fields, size_t field_count,
        void *message, size_t message_bytes)
{
    struct uc_rpc_item map = uc_rpc_item_read(&decoder->reader);
    uint64_t seen = 0;

    assert(field_count <= 64);
    memset(message, 0, message_bytes);
    if (map.kind != UC_RPC_KIND_MAP) {
        uc_decoder_fail(decoder, "message", "a map is expected");
        return;
    }

    for (uint64_t member = 0; member < map.value && !decoder->reader.failed; member++) {
        struct uc_rpc_item key = uc_rpc_item_read(&decoder->reader);
        size_t idx = field_count;

        if (key.kind != UC_RPC_KIND_TEXT) {
            uc_decoder_fail(decoder, "message", "the keys of the map must be strings");
            return;
        }
        idx = find_field(fields, field_count, &key);
        if (idx == field_count) {
            uc_decode_skip(decoder, "unknown key");
        } else {
            decode_field(decoder, &fields[idx], message);
            seen |= (uint64_t)1 << idx;
        }
    }

    for (size_t idx = 0; idx < field_count; idx++) {
        if (fields[idx].required && (seen >> idx & 1u) == 0) {
            uc_decoder_fail(decoder, fields[idx].key, "missing");
        }
    }
}
