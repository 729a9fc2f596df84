/* SPDX-License-Identifier: Apache-2.0 */

/* stat, report, debug_flip: what watches and checks a server. */

#include "net/rpc/map.h"

enum {
    REPORT_TEXT_MAX = 255,
};

/* A counter that an older server does not have yet reads as 0. */
#define STAT_ROW_(field)                                     \
    {                                                        \
            .key = #field,                                   \
            .type = UC_MAP_U64,                              \
            .offset = offsetof(struct uc_stat_reply, field), \
    },
static const struct uc_map_field stat_fields[] = {UC_STAT_MAP(STAT_ROW_)};

enum {
    STAT_FIELD_COUNT = sizeof(stat_fields) / sizeof(stat_fields[0]),
};

void
uc_stat_reply_encode(struct uc_rpc_buffer *buffer, const struct uc_stat_reply *m)
{
    msgpack_packer packer = uc_encoder_init(buffer);

    uc_map_encode(&packer, stat_fields, STAT_FIELD_COUNT, m);
}

enum uc_status
uc_stat_reply_decode(struct uc_rpc_view result, struct uc_stat_reply *out)
{
    struct uc_decoder decoder = uc_decoder_init(result, "stat reply");
    struct uc_stat_reply message;
    enum uc_status status;

    uc_map_decode(&decoder, stat_fields, STAT_FIELD_COUNT, &message, sizeof(message));
    status = uc_decoder_finish(&decoder);
    if (status == UC_OK) {
        *out = message;
    }
    return status;
}

void
uc_report_request_encode(struct uc_rpc_buffer *buffer, const struct uc_report_request *m)
{
    msgpack_packer packer = uc_encoder_init(buffer);

    (void)msgpack_pack_array(&packer, 3);
    uc_encode_bin(&packer, m->key.bytes, UC_BLOCK_ID_BYTES);
    uc_encode_uint(&packer, m->generation);
    uc_encode_text(&packer, m->what.bytes, m->what.length);
}

enum uc_status
uc_report_request_decode(struct uc_rpc_view params, struct uc_report_request *out)
{
    struct uc_decoder decoder = uc_decoder_init(params, "report");
    struct uc_report_request request;
    enum uc_status status;

    uc_decode_array(&decoder, "params", 3);
    uc_decode_bytes(&decoder, "key", request.key.bytes, UC_BLOCK_ID_BYTES);
    request.generation = uc_decode_uint(&decoder, "generation", UINT64_MAX);
    request.what = uc_decode_text(&decoder, "what", REPORT_TEXT_MAX);
    status = uc_decoder_finish(&decoder);
    if (status == UC_OK) {
        *out = request;
    }
    return status;
}

void
uc_debug_flip_request_encode(struct uc_rpc_buffer *buffer, const struct uc_debug_flip_request *m)
{
    msgpack_packer packer = uc_encoder_init(buffer);

    (void)msgpack_pack_array(&packer, 2);
    uc_encode_bin(&packer, m->key.bytes, UC_BLOCK_ID_BYTES);
    uc_encode_uint(&packer, m->offset_bytes);
}

enum uc_status
uc_debug_flip_request_decode(struct uc_rpc_view params, struct uc_debug_flip_request *out)
{
    struct uc_decoder decoder = uc_decoder_init(params, "debug_flip");
    struct uc_debug_flip_request request;
    enum uc_status status;

    uc_decode_array(&decoder, "params", 2);
    uc_decode_bytes(&decoder, "key", request.key.bytes, UC_BLOCK_ID_BYTES);
    request.offset_bytes = uc_decode_uint(&decoder, "offset", UINT64_MAX);
    status = uc_decoder_finish(&decoder);
    if (status == UC_OK) {
        *out = request;
    }
    return status;
}
