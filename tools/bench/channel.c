/* SPDX-License-Identifier: Apache-2.0 */

#include "tools/bench/channel.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <ucm/log.h>

struct channel_header {
    uint64_t length;
    uint64_t type;
};

static void
reserve(struct uc_message *message, size_t more)
{
    size_t capacity = message->capacity == 0 ? 4096 : message->capacity;

    while (capacity < message->length + more) {
        capacity *= 2;
    }
    if (capacity == message->capacity) {
        return;
    }

    message->bytes = realloc(message->bytes, capacity);
    if (message->bytes == NULL) {
        uc_log_error("replay: out of memory for a message of %zu bytes", capacity);
        exit(EXIT_FAILURE);
    }
    message->capacity = capacity;
}

void
uc_message_begin(struct uc_message *message, uint32_t type)
{
    message->length = 0;
    message->cursor = 0;
    message->type = type;
}

void
uc_message_put(struct uc_message *message, const void *bytes, size_t length)
{
    if (length == 0) {
        return;
    }

    reserve(message, length);
    memcpy(message->bytes + message->length, bytes, length);
    message->length += length;
}

void
uc_message_put_u64(struct uc_message *message, uint64_t value)
{
    uc_message_put(message, &value, sizeof(value));
}

const void *
uc_message_get(struct uc_message *message, size_t length)
{
    const uint8_t *bytes = message->bytes + message->cursor;

    if (length > message->length - message->cursor) {
        uc_log_error("replay: message of type %u is too short", message->type);
        exit(EXIT_FAILURE);
    }

    message->cursor += length;
    return bytes;
}

uint64_t
uc_message_get_u64(struct uc_message *message)
{
    uint64_t value;

    memcpy(&value, uc_message_get(message, sizeof(value)), sizeof(value));
    return value;
}

void
uc_message_fini(struct uc_message *message)
{
    free(message->bytes);
    *message = (struct uc_message){0};
}

static bool
send_all(int fd, const void *bytes, size_t length)
{
    const uint8_t *cursor = bytes;

    while (length > 0) {
        ssize_t sent = send(fd, cursor, length, MSG_NOSIGNAL);

        if (sent < 0 && errno == EINTR) {
            continue;
        }
        if (sent <= 0) {
            return false;
        }
        cursor += sent;
        length -= (size_t)sent;
    }
    return true;
}

static bool
receive_all(int fd, void *bytes, size_t length)
{
    uint8_t *cursor = bytes;

    while (length > 0) {
        ssize_t received = recv(fd, cursor, length, 0);

        if (received < 0 && errno == EINTR) {
            continue;
        }
        if (received <= 0) {
            return false;
        }
        cursor += received;
        length -= (size_t)received;
    }
    return true;
}

enum uc_status
uc_channel_send(int fd, const struct uc_message *message)
{
    struct channel_header header = {.length = message->length, .type = message->type};

    if (!send_all(fd, &header, sizeof(header)) || !send_all(fd, message->bytes, message->length)) {
        return uc_error(UC_ERR_UNHEALTHY, "the other process of this node is gone");
    }

    return UC_OK;
}

enum uc_status
uc_channel_receive(int fd, struct uc_message *message)
{
    struct channel_header header;

    if (!receive_all(fd, &header, sizeof(header))) {
        return uc_error(UC_ERR_UNHEALTHY, "the other process of this node is gone");
    }

    uc_message_begin(message, (uint32_t)header.type);
    reserve(message, (size_t)header.length);
    if (!receive_all(fd, message->bytes, (size_t)header.length)) {
        return uc_error(UC_ERR_UNHEALTHY, "the other process of this node is gone");
    }
    message->length = (size_t)header.length;
    return UC_OK;
}
