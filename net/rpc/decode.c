/* SPDX-License-Identifier: Apache-2.0 */

#include "net/rpc/decode.h"

#include <string.h>

struct uc_decoder
uc_decoder_init(struct uc_rpc_view view, const char *message)
{
    struct uc_decoder decoder = {
            .reader = uc_reader_init(view.bytes, view.length),
            .message = message,
    };

    return decoder;
}

void
uc_decoder_fail(struct uc_decoder *decoder, const char *field, const char *text)
{
    if (decoder->fault_text == NULL) {
        decoder->fault_field = field;
        decoder->fault_text = text;
    }
    decoder->reader.failed = true;
}

enum uc_status
uc_decoder_finish(const struct uc_decoder *decoder)
{
    if (decoder->fault_text != NULL) {
        return uc_error(UC_ERR_INVALID_PARAM, "%s: %s: %s", decoder->message, decoder->fault_field,
                decoder->fault_text);
    }
    if (decoder->reader.failed || decoder->reader.left != 0) {
        return uc_error(UC_ERR_INVALID_PARAM, "%s: %s", decoder->message,
                decoder->reader.failed ? "cut short" : "bytes follow the last field");
    }

    return UC_OK;
}

void
uc_decode_array(struct uc_decoder *decoder, const char *field, size_t count)
{
    struct uc_rpc_item item = uc_rpc_item_read(&decoder->reader);

    if (item.kind != UC_RPC_KIND_ARRAY) {
        uc_decoder_fail(decoder, field, "an array is expected");
    } else if (item.value != count) {
        uc_decoder_fail(decoder, field, "another number of members is expected");
    }
}

uint64_t
uc_decode_uint(struct uc_decoder *decoder, const char *field, uint64_t max)
{
    struct uc_rpc_item item = uc_rpc_item_read(&decoder->reader);

    if (item.kind != UC_RPC_KIND_UINT || item.value > max) {
        uc_decoder_fail(decoder, field,
                item.kind == UC_RPC_KIND_UINT ? "the number is too large"
                                              : "an unsigned number is expected");
        return 0;
    }

    return item.value;
}

uint64_t
uc_decode_uint_or_nil(struct uc_decoder *decoder, const char *field, bool *has_out)
{
    struct uc_rpc_item item = uc_rpc_item_read(&decoder->reader);

    if (item.kind == UC_RPC_KIND_UINT) {
        *has_out = true;
        return item.value;
    }
    if (item.kind != UC_RPC_KIND_NIL) {
        uc_decoder_fail(decoder, field, "an unsigned number or nil is expected");
    }

    *has_out = false;
    return 0;
}

bool
uc_decode_bool(struct uc_decoder *decoder, const char *field)
{
    struct uc_rpc_item item = uc_rpc_item_read(&decoder->reader);

    if (item.kind != UC_RPC_KIND_BOOL) {
        uc_decoder_fail(decoder, field, "true or false is expected");
        return false;
    }

    return item.value != 0;
}

/* Texts end up in logs and error messages, where control characters could forge lines. */
static bool
is_printable(const uint8_t *bytes, size_t length)
{
    for (size_t idx = 0; idx < length; idx++) {
        if (bytes[idx] < 0x20 || bytes[idx] == 0x7f) {
            return false;
        }
    }

    return true;
}

struct uc_rpc_text
uc_decode_text(struct uc_decoder *decoder, const char *field, size_t max)
{
    struct uc_rpc_item item = uc_rpc_item_read(&decoder->reader);
    struct uc_rpc_text text = {.bytes = ""};

    if (item.kind != UC_RPC_KIND_TEXT) {
        uc_decoder_fail(decoder, field, "a string is expected");
    } else if (item.value > max) {
        uc_decoder_fail(decoder, field, "the string is too long");
    } else if (!is_printable(item.bytes, item.value)) {
        uc_decoder_fail(decoder, field, "the string has control characters");
    } else {
        text.bytes = (const char *)item.bytes;
        text.length = item.value;
    }
    return text;
}

const uint8_t *
uc_decode_bin(struct uc_decoder *decoder, const char *field, size_t unit_bytes, size_t count_max,
        size_t *count_out)
{
    struct uc_rpc_item item = uc_rpc_item_read(&decoder->reader);

    if (item.kind != UC_RPC_KIND_BIN) {
        uc_decoder_fail(decoder, field, "a bin is expected");
    } else if (item.value % unit_bytes != 0) {
        uc_decoder_fail(decoder, field, "the bin is not a whole number of entries");
    } else if (item.value / unit_bytes > count_max) {
        uc_decoder_fail(decoder, field, "too many entries in one call");
    } else {
        *count_out = item.value / unit_bytes;
        return item.bytes;
    }

    *count_out = 0;
    return NULL;
}

void
uc_decode_bytes(struct uc_decoder *decoder, const char *field, uint8_t *target, size_t length)
{
    struct uc_rpc_item item = uc_rpc_item_read(&decoder->reader);

    if (item.kind != UC_RPC_KIND_BIN || item.value != length) {
        uc_decoder_fail(decoder, field, "a bin of its fixed length is expected");
        memset(target, 0, length);
        return;
    }

    memcpy(target, item.bytes, length);
}

void
uc_decode_skip(struct uc_decoder *decoder, const char *field)
{
    if (!uc_rpc_item_skip(&decoder->reader)) {
        uc_decoder_fail(decoder, field, "not a valid value");
    }
}

struct uc_keys_view
uc_decode_keys(struct uc_decoder *decoder, const char *field)
{
    struct uc_keys_view keys = {0};
    const uint8_t *bytes =
            uc_decode_bin(decoder, field, UC_BLOCK_ID_BYTES, UC_KEYS_PER_CALL, &keys.count);

    keys.ids = (const struct uc_block_id *)(const void *)bytes;
    return keys;
}
