/* SPDX-License-Identifier: Apache-2.0 */

#include "net/rpc/buffer.h"

#include <stdlib.h>
#include <string.h>

enum {
    CAPACITY_MIN = 256,
};

void
uc_rpc_buffer_reset(struct uc_rpc_buffer *buffer)
{
    buffer->length = 0;
    buffer->failed = false;
}

void
uc_rpc_buffer_fini(struct uc_rpc_buffer *buffer)
{
    free(buffer->bytes);
    *buffer = (struct uc_rpc_buffer){0};
}

static bool
grow(struct uc_rpc_buffer *buffer, size_t needed)
{
    size_t capacity = buffer->capacity < CAPACITY_MIN ? CAPACITY_MIN : buffer->capacity;
    uint8_t *bytes;

    while (capacity < needed) {
        if (capacity > SIZE_MAX / 2) {
            return false;
        }
        capacity *= 2;
    }

    bytes = realloc(buffer->bytes, capacity);
    if (bytes == NULL) {
        return false;
    }

    buffer->bytes = bytes;
    buffer->capacity = capacity;
    return true;
}

void
uc_rpc_buffer_append(struct uc_rpc_buffer *buffer, const void *bytes, size_t length)
{
    if (buffer->failed || length == 0) {
        return;
    }
    if (length > buffer->capacity - buffer->length &&
            (length > SIZE_MAX - buffer->length || !grow(buffer, buffer->length + length))) {
        buffer->failed = true;
        return;
    }

    memcpy(buffer->bytes + buffer->length, bytes, length);
    buffer->length += length;
}
