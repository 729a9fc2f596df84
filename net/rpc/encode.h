/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file encode.h
 * msgpack-c's packer over a uc_rpc_buffer. The functions are inline so that the compiler sees through
 * the packer's write callback.
 */

#ifndef UC_NET_RPC_ENCODE_H
#define UC_NET_RPC_ENCODE_H

#include <stdint.h>

#include <msgpack.h>

#include "net/rpc/buffer.h"
#include "net/rpc/messages.h"

static inline int
uc_encode_write_(void *data, const char *bytes, size_t length)
{
    struct uc_rpc_buffer *buffer = data;

    uc_rpc_buffer_append(buffer, bytes, length);
    return 0; /* the buffer remembers the failure */
}

static inline msgpack_packer
uc_encoder_init(struct uc_rpc_buffer *buffer)
{
    msgpack_packer packer;

    msgpack_packer_init(&packer, buffer, uc_encode_write_);
    return packer;
}

static inline void
uc_encode_uint(msgpack_packer *packer, uint64_t value)
{
    (void)msgpack_pack_uint64(packer, value);
}

static inline void
uc_encode_uint_or_nil(msgpack_packer *packer, bool has, uint64_t value)
{
    if (has) {
        uc_encode_uint(packer, value);
    } else {
        (void)msgpack_pack_nil(packer);
    }
}

static inline void
uc_encode_bool(msgpack_packer *packer, bool value)
{
    if (value) {
        (void)msgpack_pack_true(packer);
    } else {
        (void)msgpack_pack_false(packer);
    }
}

static inline void
uc_encode_bin(msgpack_packer *packer, const void *bytes, size_t length)
{
    (void)msgpack_pack_bin(packer, length);
    (void)msgpack_pack_bin_body(packer, bytes, length);
}

static inline void
uc_encode_text(msgpack_packer *packer, const char *bytes, size_t length)
{
    (void)msgpack_pack_str(packer, length);
    (void)msgpack_pack_str_body(packer, bytes, length);
}

static inline void
uc_encode_keys(msgpack_packer *packer, struct uc_keys_view keys)
{
    uc_encode_bin(packer, keys.ids, keys.count * UC_BLOCK_ID_BYTES);
}

#endif /* UC_NET_RPC_ENCODE_H */
