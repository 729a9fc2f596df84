/* SPDX-License-Identifier: Apache-2.0 */

/* lookup, pin, unpin, alloc, commit, touch, write_begin, write_end: the messages of the two paths. */

#include "core/base/bytes.h"
#include "net/rpc/decode.h"
#include "net/rpc/encode.h"

void
uc_entry_put(uint8_t *bytes, const struct uc_entry *entry)
{
    uc_put_le32(bytes, entry->region_idx);
    uc_put_le32(bytes + 4, entry->flags);
    uc_put_le64(bytes + 8, entry->offset_bytes);
    uc_put_le64(bytes + 16, entry->generation);
    uc_put_le64(bytes + 24, entry->length_bytes);
}

void
uc_entry_get(const uint8_t *bytes, struct uc_entry *entry_out)
{
    entry_out->region_idx = uc_get_le32(bytes);
    entry_out->flags = uc_get_le32(bytes + 4);
    entry_out->offset_bytes = uc_get_le64(bytes + 8);
    entry_out->generation = uc_get_le64(bytes + 16);
    entry_out->length_bytes = uc_get_le64(bytes + 24);
}

void
uc_written_range_put(uint8_t *bytes, const struct uc_written_range *range)
{
    uc_put_le64(bytes, range->offset_bytes);
    uc_put_le64(bytes + 8, range->length_bytes);
    uc_put_le64(bytes + 16, range->announced_bytes);
}

void
uc_written_range_get(const uint8_t *bytes, struct uc_written_range *range_out)
{
    range_out->offset_bytes = uc_get_le64(bytes);
    range_out->length_bytes = uc_get_le64(bytes + 8);
    range_out->announced_bytes = uc_get_le64(bytes + 16);
}

void
uc_keys_request_encode(struct uc_rpc_buffer *buffer, struct uc_keys_view keys)
{
    msgpack_packer packer = uc_encoder_init(buffer);

    (void)msgpack_pack_array(&packer, 1);
    uc_encode_keys(&packer, keys);
}

enum uc_status
uc_keys_request_decode(struct uc_rpc_view params, struct uc_keys_view *out)
{
    struct uc_decoder decoder = uc_decoder_init(params, "lookup or pin");
    struct uc_keys_view keys;
    enum uc_status status;

    uc_decode_array(&decoder, "params", 1);
    keys = uc_decode_keys(&decoder, "keys");
    status = uc_decoder_finish(&decoder);
    if (status == UC_OK) {
        *out = keys;
    }
    return status;
}

void
uc_bitmap_reply_encode(struct uc_rpc_buffer *buffer, const uint8_t *bitmap, size_t key_count)
{
    msgpack_packer packer = uc_encoder_init(buffer);

    uc_encode_bin(&packer, bitmap, key_count / 8 + (key_count % 8 != 0));
}

enum uc_status
uc_bitmap_reply_decode(struct uc_rpc_view result, size_t key_count, const uint8_t **bitmap_out)
{
    struct uc_decoder decoder = uc_decoder_init(result, "lookup reply");
    size_t length;
    const uint8_t *bitmap = uc_decode_bin(&decoder, "bitmap", 1, SIZE_MAX, &length);
    enum uc_status status;

    if (bitmap != NULL && length != key_count / 8 + (key_count % 8 != 0)) {
        uc_decoder_fail(&decoder, "bitmap", "one bit per key of the request is expected");
    }
    status = uc_decoder_finish(&decoder);
    if (status == UC_OK) {
        *bitmap_out = bitmap;
    }
    return status;
}

void
uc_grant_reply_encode(struct uc_rpc_buffer *buffer, const struct uc_grant_reply *m)
{
    msgpack_packer packer = uc_encoder_init(buffer);

    (void)msgpack_pack_array(&packer, 2);
    uc_encode_uint(&packer, m->grant);
    uc_encode_bin(&packer, m->entries, m->count * UC_ENTRY_BYTES);
}

enum uc_status
uc_grant_reply_decode(struct uc_rpc_view result, struct uc_grant_reply *out)
{
    struct uc_decoder decoder = uc_decoder_init(result, "pin or alloc reply");
    struct uc_grant_reply reply;
    enum uc_status status;

    uc_decode_array(&decoder, "result", 2);
    reply.grant = uc_decode_uint(&decoder, "grant", UINT64_MAX);
    reply.entries =
            uc_decode_bin(&decoder, "entries", UC_ENTRY_BYTES, UC_KEYS_PER_CALL, &reply.count);
    status = uc_decoder_finish(&decoder);
    if (status == UC_OK) {
        *out = reply;
    }
    return status;
}

void
uc_grant_request_encode(struct uc_rpc_buffer *buffer, uint64_t grant)
{
    msgpack_packer packer = uc_encoder_init(buffer);

    (void)msgpack_pack_array(&packer, 1);
    uc_encode_uint(&packer, grant);
}

enum uc_status
uc_grant_request_decode(struct uc_rpc_view params, uint64_t *grant_out)
{
    struct uc_decoder decoder = uc_decoder_init(params, "unpin");
    uint64_t grant;
    enum uc_status status;

    uc_decode_array(&decoder, "params", 1);
    grant = uc_decode_uint(&decoder, "grant", UINT64_MAX);
    status = uc_decoder_finish(&decoder);
    if (status == UC_OK) {
        *grant_out = grant;
    }
    return status;
}

void
uc_alloc_request_encode(struct uc_rpc_buffer *buffer, const struct uc_alloc_request *m)
{
    msgpack_packer packer = uc_encoder_init(buffer);

    (void)msgpack_pack_array(&packer, 3);
    uc_encode_keys(&packer, m->keys);
    uc_encode_uint_or_nil(&packer, m->has_ttl, m->ttl_ms);
    (void)msgpack_pack_nil(&packer);
}

enum uc_status
uc_alloc_request_decode(struct uc_rpc_view params, struct uc_alloc_request *out)
{
    struct uc_decoder decoder = uc_decoder_init(params, "alloc");
    struct uc_alloc_request request;
    enum uc_status status;

    uc_decode_array(&decoder, "params", 3);
    request.keys = uc_decode_keys(&decoder, "keys");
    request.ttl_ms = uc_decode_uint_or_nil(&decoder, "ttl_ms", &request.has_ttl);
    uc_decode_skip(&decoder, "hints");
    status = uc_decoder_finish(&decoder);
    if (status == UC_OK) {
        *out = request;
    }
    return status;
}

void
uc_write_begin_request_encode(struct uc_rpc_buffer *buffer, const struct uc_write_begin_request *m)
{
    msgpack_packer packer = uc_encoder_init(buffer);

    (void)msgpack_pack_array(&packer, 4);
    uc_encode_uint(&packer, m->grant);
    uc_encode_uint(&packer, m->bracket);
    uc_encode_uint(&packer, m->first_key);
    uc_encode_uint(&packer, m->key_count);
}

enum uc_status
uc_write_begin_request_decode(struct uc_rpc_view params, struct uc_write_begin_request *out)
{
    struct uc_decoder decoder = uc_decoder_init(params, "write_begin");
    struct uc_write_begin_request request;
    enum uc_status status;

    uc_decode_array(&decoder, "params", 4);
    request.grant = uc_decode_uint(&decoder, "grant", UINT64_MAX);
    request.bracket = uc_decode_uint(&decoder, "bracket", UINT64_MAX);
    request.first_key = uc_decode_uint(&decoder, "first_key", UC_KEYS_PER_CALL);
    request.key_count = uc_decode_uint(&decoder, "key_count", UC_KEYS_PER_CALL);
    status = uc_decoder_finish(&decoder);
    if (status == UC_OK) {
        *out = request;
    }
    return status;
}

void
uc_write_end_request_encode(struct uc_rpc_buffer *buffer, const struct uc_write_end_request *m)
{
    msgpack_packer packer = uc_encoder_init(buffer);

    (void)msgpack_pack_array(&packer, 3);
    uc_encode_uint(&packer, m->bracket);
    uc_encode_bool(&packer, m->ok);
    uc_encode_bin(&packer, m->ranges, m->range_count * UC_WRITTEN_BYTES);
}

enum uc_status
uc_write_end_request_decode(struct uc_rpc_view params, struct uc_write_end_request *out)
{
    struct uc_decoder decoder = uc_decoder_init(params, "write_end");
    struct uc_write_end_request request;
    enum uc_status status;

    uc_decode_array(&decoder, "params", 3);
    request.bracket = uc_decode_uint(&decoder, "bracket", UINT64_MAX);
    request.ok = uc_decode_bool(&decoder, "ok");
    request.ranges = uc_decode_bin(
            &decoder, "ranges", UC_WRITTEN_BYTES, UC_KEYS_PER_CALL, &request.range_count);
    status = uc_decoder_finish(&decoder);
    if (status == UC_OK) {
        *out = request;
    }
    return status;
}

void
uc_commit_request_encode(struct uc_rpc_buffer *buffer, const struct uc_commit_request *m)
{
    msgpack_packer packer = uc_encoder_init(buffer);

    (void)msgpack_pack_array(&packer, 2);
    uc_encode_uint(&packer, m->grant);
    if (m->has_bitmap) {
        uc_encode_bin(&packer, m->bitmap, m->bitmap_bytes);
    } else {
        uc_encode_bool(&packer, m->success);
    }
}

enum uc_status
uc_commit_request_decode(struct uc_rpc_view params, struct uc_commit_request *out)
{
    struct uc_decoder decoder = uc_decoder_init(params, "commit");
    struct uc_commit_request request = {0};
    struct uc_rpc_item verdict;
    enum uc_status status;

    uc_decode_array(&decoder, "params", 2);
    request.grant = uc_decode_uint(&decoder, "grant", UINT64_MAX);
    verdict = uc_rpc_item_read(&decoder.reader);
    if (verdict.kind == UC_RPC_KIND_BOOL) {
        request.success = verdict.value != 0;
    } else if (verdict.kind == UC_RPC_KIND_BIN && verdict.value <= UC_KEYS_PER_CALL / 8) {
        request.has_bitmap = true;
        request.bitmap = verdict.bytes;
        request.bitmap_bytes = verdict.value;
    } else {
        uc_decoder_fail(&decoder, "verdict", "a bool, or a bin with one bit per key is expected");
    }
    status = uc_decoder_finish(&decoder);
    if (status == UC_OK) {
        *out = request;
    }
    return status;
}

void
uc_touch_request_encode(struct uc_rpc_buffer *buffer, const struct uc_touch_request *m)
{
    msgpack_packer packer = uc_encoder_init(buffer);

    (void)msgpack_pack_array(&packer, 2);
    uc_encode_keys(&packer, m->keys);
    uc_encode_uint_or_nil(&packer, m->has_ttl, m->ttl_ms);
}

enum uc_status
uc_touch_request_decode(struct uc_rpc_view params, struct uc_touch_request *out)
{
    struct uc_decoder decoder = uc_decoder_init(params, "touch");
    struct uc_touch_request request;
    enum uc_status status;

    uc_decode_array(&decoder, "params", 2);
    request.keys = uc_decode_keys(&decoder, "keys");
    request.ttl_ms = uc_decode_uint_or_nil(&decoder, "ttl_ms", &request.has_ttl);
    status = uc_decoder_finish(&decoder);
    if (status == UC_OK) {
        *out = request;
    }
    return status;
}
