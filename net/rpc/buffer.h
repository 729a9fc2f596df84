/* SPDX-License-Identifier: Apache-2.0 */

/** @file buffer.h Growable bytes that messages are encoded into. One thread. */

#ifndef UC_NET_RPC_BUFFER_H
#define UC_NET_RPC_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/compiler.h>

/** Zero-initialise; reuse after uc_rpc_buffer_reset(); keeps its capacity. */
struct uc_rpc_buffer {
    uint8_t *bytes;
    size_t length;
    size_t capacity;
    bool failed; /* an append ran out of memory: the content is not usable */
};

/** Borrowed bytes of a received message. */
struct uc_rpc_view {
    const uint8_t *bytes;
    size_t length;
};

void uc_rpc_buffer_reset(struct uc_rpc_buffer *buffer);
void uc_rpc_buffer_fini(struct uc_rpc_buffer *buffer);
/** Append; on failure sets `failed` and drops the bytes. */
void uc_rpc_buffer_append(struct uc_rpc_buffer *buffer, const void *bytes, size_t length);

#endif /* UC_NET_RPC_BUFFER_H */
