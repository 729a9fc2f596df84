/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file map.h
 * Messages that are maps, as tables: one row per key both encodes and decodes it. Unknown keys are
 * ignored, missing optional ones stay zero, and of a repeated one the last value counts.
 */

#ifndef UC_NET_RPC_MAP_H
#define UC_NET_RPC_MAP_H

#include <stdbool.h>
#include <stddef.h>

#include "net/rpc/decode.h"
#include "net/rpc/encode.h"

enum uc_map_type {
    UC_MAP_U16,
    UC_MAP_U32,
    UC_MAP_U64,
    UC_MAP_TEXT,   /* struct uc_rpc_text of at most `max` bytes */
    UC_MAP_BYTES,  /* uint8_t[max], a bin of exactly that length */
    UC_MAP_ACCESS, /* enum uc_access as text */
    UC_MAP_CUSTOM, /* the row's functions see the whole struct */
};

struct uc_map_field {
    const char *key;
    enum uc_map_type type;
    bool required;
    size_t max;
    size_t offset;
    void (*encode)(msgpack_packer *packer, const void *message);
    void (*decode)(struct uc_decoder *decoder, const char *key, void *message);
};

/** At most 64 fields. */
void uc_map_encode(msgpack_packer *packer, const struct uc_map_field *fields, size_t field_count,
        const void *message);

/** @p message is zeroed first. */
void uc_map_decode(struct uc_decoder *decoder, const struct uc_map_field *fields,
        size_t field_count, void *message, size_t message_bytes);

#endif /* UC_NET_RPC_MAP_H */
