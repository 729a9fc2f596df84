/* SPDX-License-Identifier: Apache-2.0 */

/* hello, attach, ping: what opens and keeps sessions and attachments. */

#include "net/rpc/map.h"

enum {
    CREDENTIAL_MAX = 1024,
    ADDRESS_MAX = 255,
    REGIONS_MAX = 65536,
};

#define COUNT_OF(table) (sizeof(table) / sizeof((table)[0]))

#define FIELD(structure, member, wire, kind, need, limit)                  \
    {                                                                      \
        .key = (wire), .type = (kind), .required = (need), .max = (limit), \
        .offset = offsetof(struct structure, member),                      \
    }
#define U64(structure, wire, member, need) FIELD(structure, member, #wire, UC_MAP_U64, need, 0)

static const struct uc_map_field hello_request_fields[] = {
        FIELD(uc_hello_request, version, "version", UC_MAP_U32, true, 0),
        FIELD(uc_hello_request, name_space, "namespace", UC_MAP_TEXT, true, UC_NAME_MAX),
        FIELD(uc_hello_request, access, "access", UC_MAP_ACCESS, true, 0),
        FIELD(uc_hello_request, credential, "credential", UC_MAP_TEXT, false, CREDENTIAL_MAX),
        FIELD(uc_hello_request, client, "client", UC_MAP_TEXT, false, UC_NAME_MAX),
};

static const struct uc_map_field hello_reply_fields[] = {
        FIELD(uc_hello_reply, server_id, "server_id", UC_MAP_BYTES, true, UC_SERVER_ID_BYTES),
        U64(uc_hello_reply, incarnation, incarnation, true),
        U64(uc_hello_reply, session, session, true),
        U64(uc_hello_reply, lease_ms, lease_ms, true),
        U64(uc_hello_reply, block_bytes, block_bytes, true),
        U64(uc_hello_reply, slot_bytes, slot_bytes, true),
        FIELD(uc_hello_reply, attach_key, "attach_key", UC_MAP_BYTES, true, UC_ATTACH_KEY_BYTES),
        FIELD(uc_hello_reply, mac_key, "mac_key", UC_MAP_BYTES, true, UC_MAC_KEY_BYTES),
};

static const struct uc_map_field attach_request_fields[] = {
        FIELD(uc_attach_request, version, "version", UC_MAP_U32, true, 0),
        FIELD(uc_attach_request, attach_key, "attach_key", UC_MAP_BYTES, true, UC_ATTACH_KEY_BYTES),
        U64(uc_attach_request, incarnation, incarnation, true),
        FIELD(uc_attach_request, client, "client", UC_MAP_TEXT, false, UC_NAME_MAX),
};

/* The keys of a fabric have as many entries as there are regions: checked when the map is complete. */
struct fabric_row {
    struct uc_attach_fabric fabric;
    size_t region_count;
};

static void
encode_fabric_keys(msgpack_packer *packer, const void *message)
{
    const struct fabric_row *row = message;

    uc_encode_bin(packer, row->fabric.keys, 16 * row->region_count);
}

static void
decode_fabric_keys(struct uc_decoder *decoder, const char *key, void *message)
{
    struct fabric_row *row = message;

    row->fabric.keys = uc_decode_bin(decoder, key, 16, REGIONS_MAX, &row->region_count);
}

static const struct uc_map_field fabric_fields[] = {
        FIELD(fabric_row, fabric.name, "name", UC_MAP_TEXT, true, UC_NAME_MAX),
        FIELD(fabric_row, fabric.address, "address", UC_MAP_TEXT, false, ADDRESS_MAX),
        FIELD(fabric_row, fabric.port, "port", UC_MAP_U16, true, 0),
        {.key = "keys",
                .type = UC_MAP_CUSTOM,
                .required = true,
                .encode = encode_fabric_keys,
                .decode = decode_fabric_keys},
};

/* What a reply is decoded into: the counts of keys wait until the number of regions is known. */
struct attach_row {
    struct uc_attach_reply reply;
    size_t key_counts[UC_FABRICS_MAX];
};

static void
encode_regions(msgpack_packer *packer, const void *message)
{
    const struct attach_row *row = message;

    uc_encode_bin(packer, row->reply.region_lengths, 8 * row->reply.region_count);
}

static void
decode_regions(struct uc_decoder *decoder, const char *key, void *message)
{
    struct attach_row *row = message;

    row->reply.region_lengths =
            uc_decode_bin(decoder, key, 8, REGIONS_MAX, &row->reply.region_count);
}

static void
encode_fabrics(msgpack_packer *packer, const void *message)
{
    const struct attach_row *row = message;

    (void)msgpack_pack_array(packer, row->reply.fabric_count);
    for (size_t idx = 0; idx < row->reply.fabric_count; idx++) {
        struct fabric_row fabric_row = {
                .fabric = row->reply.fabrics[idx],
                .region_count = row->reply.region_count,
        };

        uc_map_encode(packer, fabric_fields, COUNT_OF(fabric_fields), &fabric_row);
    }
}

static void
decode_fabrics(struct uc_decoder *decoder, const char *key, void *message)
{
    struct attach_row *row = message;
    struct uc_rpc_item array = uc_rpc_item_read(&decoder->reader);

    row->reply.fabric_count = 0;
    if (array.kind != UC_RPC_KIND_ARRAY) {
        uc_decoder_fail(decoder, key, "an array is expected");
        return;
    }

    for (uint64_t member = 0; member < array.value && !decoder->reader.failed; member++) {
        struct fabric_row fabric_row;
        size_t idx = row->reply.fabric_count;

        if (idx == UC_FABRICS_MAX) {
            /* A newer server offers more than this build can choose from. */
            uc_decode_skip(decoder, key);
            continue;
        }
        uc_map_decode(
                decoder, fabric_fields, COUNT_OF(fabric_fields), &fabric_row, sizeof(fabric_row));
        row->reply.fabrics[idx] = fabric_row.fabric;
        row->key_counts[idx] = fabric_row.region_count;
        row->reply.fabric_count++;
    }
}

static const struct uc_map_field attach_reply_fields[] = {
        U64(attach_row, attachment, reply.attachment, true),
        U64(attach_row, incarnation, reply.incarnation, true),
        U64(attach_row, lease_ms, reply.lease_ms, true),
        U64(attach_row, block_bytes, reply.block_bytes, true),
        U64(attach_row, slot_bytes, reply.slot_bytes, true),
        FIELD(attach_row, reply.access, "access", UC_MAP_ACCESS, true, 0),
        FIELD(attach_row, reply.mac_key, "mac_key", UC_MAP_BYTES, true, UC_MAC_KEY_BYTES),
        FIELD(attach_row, reply.nonce, "nonce", UC_MAP_BYTES, true, UC_FABRIC_NONCE_BYTES),
        {.key = "regions",
                .type = UC_MAP_CUSTOM,
                .required = true,
                .encode = encode_regions,
                .decode = decode_regions},
        {.key = "fabrics",
                .type = UC_MAP_CUSTOM,
                .required = true,
                .encode = encode_fabrics,
                .decode = decode_fabrics},
};

static const struct uc_map_field ping_reply_fields[] = {
        U64(uc_ping_reply, server_time_ms, server_time_ms, true),
        U64(uc_ping_reply, session_count, session_count, false),
};

/* Params of one map inside the array that every request carries. */
static void
encode_params(struct uc_rpc_buffer *buffer, const struct uc_map_field *fields, size_t field_count,
        const void *message)
{
    msgpack_packer packer = uc_encoder_init(buffer);

    (void)msgpack_pack_array(&packer, 1);
    uc_map_encode(&packer, fields, field_count, message);
}

static void
encode_result(struct uc_rpc_buffer *buffer, const struct uc_map_field *fields, size_t field_count,
        const void *message)
{
    msgpack_packer packer = uc_encoder_init(buffer);

    uc_map_encode(&packer, fields, field_count, message);
}

void
uc_hello_request_encode(struct uc_rpc_buffer *buffer, const struct uc_hello_request *m)
{
    encode_params(buffer, hello_request_fields, COUNT_OF(hello_request_fields), m);
}

enum uc_status
uc_hello_request_decode(struct uc_rpc_view params, struct uc_hello_request *out)
{
    struct uc_decoder decoder = uc_decoder_init(params, "hello");
    struct uc_hello_request message;
    enum uc_status status;

    uc_decode_array(&decoder, "params", 1);
    uc_map_decode(&decoder, hello_request_fields, COUNT_OF(hello_request_fields), &message,
            sizeof(message));
    status = uc_decoder_finish(&decoder);
    if (status == UC_OK) {
        *out = message;
    }
    return status;
}

void
uc_hello_reply_encode(struct uc_rpc_buffer *buffer, const struct uc_hello_reply *m)
{
    encode_result(buffer, hello_reply_fields, COUNT_OF(hello_reply_fields), m);
}

enum uc_status
uc_hello_reply_decode(struct uc_rpc_view result, struct uc_hello_reply *out)
{
    struct uc_decoder decoder = uc_decoder_init(result, "hello reply");
    struct uc_hello_reply message;
    enum uc_status status;

    uc_map_decode(
            &decoder, hello_reply_fields, COUNT_OF(hello_reply_fields), &message, sizeof(message));
    status = uc_decoder_finish(&decoder);
    if (status == UC_OK) {
        *out = message;
    }
    return status;
}

void
uc_attach_request_encode(struct uc_rpc_buffer *buffer, const struct uc_attach_request *m)
{
    encode_params(buffer, attach_request_fields, COUNT_OF(attach_request_fields), m);
}

enum uc_status
uc_attach_request_decode(struct uc_rpc_view params, struct uc_attach_request *out)
{
    struct uc_decoder decoder = uc_decoder_init(params, "attach");
    struct uc_attach_request message;
    enum uc_status status;

    uc_decode_array(&decoder, "params", 1);
    uc_map_decode(&decoder, attach_request_fields, COUNT_OF(attach_request_fields), &message,
            sizeof(message));
    status = uc_decoder_finish(&decoder);
    if (status == UC_OK) {
        *out = message;
    }
    return status;
}

void
uc_attach_reply_encode(struct uc_rpc_buffer *buffer, const struct uc_attach_reply *m)
{
    struct attach_row row = {.reply = *m};

    encode_result(buffer, attach_reply_fields, COUNT_OF(attach_reply_fields), &row);
}

enum uc_status
uc_attach_reply_decode(struct uc_rpc_view result, struct uc_attach_reply *out)
{
    struct uc_decoder decoder = uc_decoder_init(result, "attach reply");
    struct attach_row row;
    enum uc_status status;

    uc_map_decode(&decoder, attach_reply_fields, COUNT_OF(attach_reply_fields), &row, sizeof(row));
    for (size_t idx = 0; idx < row.reply.fabric_count; idx++) {
        if (row.key_counts[idx] != row.reply.region_count) {
            uc_decoder_fail(&decoder, "fabrics", "a fabric needs one key per region");
        }
    }
    status = uc_decoder_finish(&decoder);
    if (status == UC_OK) {
        *out = row.reply;
    }
    return status;
}

void
uc_empty_request_encode(struct uc_rpc_buffer *buffer)
{
    msgpack_packer packer = uc_encoder_init(buffer);

    (void)msgpack_pack_array(&packer, 0);
}

enum uc_status
uc_empty_request_decode(struct uc_rpc_view params)
{
    struct uc_decoder decoder = uc_decoder_init(params, "request");

    uc_decode_array(&decoder, "params", 0);
    return uc_decoder_finish(&decoder);
}

void
uc_ping_reply_encode(struct uc_rpc_buffer *buffer, const struct uc_ping_reply *m)
{
    encode_result(buffer, ping_reply_fields, COUNT_OF(ping_reply_fields), m);
}

enum uc_status
uc_ping_reply_decode(struct uc_rpc_view result, struct uc_ping_reply *out)
{
    struct uc_decoder decoder = uc_decoder_init(result, "ping reply");
    struct uc_ping_reply message;
    enum uc_status status;

    uc_map_decode(
            &decoder, ping_reply_fields, COUNT_OF(ping_reply_fields), &message, sizeof(message));
    status = uc_decoder_finish(&decoder);
    if (status == UC_OK) {
        *out = message;
    }
    return status;
}
