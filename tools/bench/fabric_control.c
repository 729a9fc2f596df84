/* SPDX-License-Identifier: Apache-2.0 */

#include "tools/bench/fabric_control.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

#include <ucm/clock.h>

#include "core/base/bytes.h"

enum {
    MAGIC = 0x31424355, /* "UCB1" */
    TYPE_OFFSET = 4,
    NUMBERS_OFFSET = 8,
    TEXT_OFFSET = NUMBERS_OFFSET + 8 * UC_FABRIC_CONTROL_NUMBERS,
    SEND_TIMEOUT_MS = 10000,
};

void
uc_fabric_control_encode(const struct uc_fabric_control *message, uint8_t *frame)
{
    uc_put_le32(frame, MAGIC);
    uc_put_le32(frame + TYPE_OFFSET, (uint32_t)message->type);
    for (size_t idx = 0; idx < UC_FABRIC_CONTROL_NUMBERS; idx++) {
        uc_put_le64(frame + NUMBERS_OFFSET + 8 * idx, message->numbers[idx]);
    }
    memcpy(frame + TEXT_OFFSET, message->text, UC_FABRIC_CONTROL_TEXT_BYTES);
}

enum uc_status
uc_fabric_control_decode(const uint8_t *frame, struct uc_fabric_control *message_out)
{
    uint32_t type = uc_get_le32(frame + TYPE_OFFSET);

    if (uc_get_le32(frame) != MAGIC) {
        return uc_error(UC_ERR_INVALID_PARAM, "the peer is no ucm-bench fabric of this release");
    }
    if (type < UC_FABRIC_CONTROL_FAILED || type >= UC_FABRIC_CONTROL_END_) {
        return uc_error(UC_ERR_INVALID_PARAM, "the peer sent a frame of unknown type %u", type);
    }
    if (memchr(frame + TEXT_OFFSET, '\0', UC_FABRIC_CONTROL_TEXT_BYTES) == NULL) {
        return uc_error(UC_ERR_INVALID_PARAM, "the peer sent a text without end");
    }

    message_out->type = (enum uc_fabric_control_type)type;
    for (size_t idx = 0; idx < UC_FABRIC_CONTROL_NUMBERS; idx++) {
        message_out->numbers[idx] = uc_get_le64(frame + NUMBERS_OFFSET + 8 * idx);
    }
    memcpy(message_out->text, frame + TEXT_OFFSET, UC_FABRIC_CONTROL_TEXT_BYTES);
    return UC_OK;
}

static enum uc_status
wait_for(int fd, short events, uint64_t deadline_ns)
{
    for (;;) {
        struct pollfd pollfd = {.fd = fd, .events = events};
        uint64_t now_ns = uc_clock_now_ns();
        int ready;

        if (now_ns >= deadline_ns) {
            return uc_error(UC_ERR_TIMEOUT, "the other side of the benchmark does not answer");
        }
        ready = poll(&pollfd, 1, (int)((deadline_ns - now_ns) / 1000000) + 1);
        if (ready > 0) {
            return UC_OK;
        }
        if (ready < 0 && errno != EINTR) {
            return uc_error(UC_ERR_OS_API, "poll: %s", strerror(errno));
        }
    }
}

/* Move a whole frame in either direction. */
static enum uc_status
move_frame(int fd, uint8_t *frame, bool sending, uint64_t timeout_ms)
{
    uint64_t deadline_ns = uc_clock_now_ns() + timeout_ms * 1000000;
    size_t done = 0;

    while (done < UC_FABRIC_CONTROL_FRAME_BYTES) {
        size_t left = UC_FABRIC_CONTROL_FRAME_BYTES - done;
        enum uc_status status = wait_for(fd, sending ? POLLOUT : POLLIN, deadline_ns);
        ssize_t count;

        if (status != UC_OK) {
            return status;
        }
        count = sending ? send(fd, frame + done, left, MSG_NOSIGNAL | MSG_DONTWAIT)
                        : recv(fd, frame + done, left, MSG_DONTWAIT);
        if (count < 0 && (errno == EINTR || errno == EAGAIN)) {
            continue;
        }
        if (count <= 0) {
            return uc_error(UC_ERR_UNHEALTHY, "the other side of the benchmark is gone");
        }
        done += (size_t)count;
    }
    return UC_OK;
}

enum uc_status
uc_fabric_control_send(int fd, const struct uc_fabric_control *message)
{
    uint8_t frame[UC_FABRIC_CONTROL_FRAME_BYTES];

    uc_fabric_control_encode(message, frame);
    return move_frame(fd, frame, true, SEND_TIMEOUT_MS);
}

enum uc_status
uc_fabric_control_receive(int fd, uint64_t timeout_ms, struct uc_fabric_control *message_out)
{
    uint8_t frame[UC_FABRIC_CONTROL_FRAME_BYTES];
    enum uc_status status = move_frame(fd, frame, false, timeout_ms);

    return status == UC_OK ? uc_fabric_control_decode(frame, message_out) : status;
}

enum uc_status
uc_fabric_control_call(int fd, const struct uc_fabric_control *request, uint64_t timeout_ms,
        struct uc_fabric_control *answer_out)
{
    struct uc_fabric_control answer = {.type = UC_FABRIC_CONTROL_END_};
    enum uc_status status = uc_fabric_control_send(fd, request);

    if (status == UC_OK) {
        status = uc_fabric_control_receive(fd, timeout_ms, &answer);
    }
    if (status != UC_OK) {
        return status;
    }
    if (answer.type == UC_FABRIC_CONTROL_FAILED) {
        return uc_error(UC_ERR_GENERAL, "server: %s", answer.text);
    }
    if (answer.type != request->type) {
        return uc_error(UC_ERR_INVALID_PARAM, "the server gave an answer of the wrong type");
    }

    *answer_out = answer;
    return UC_OK;
}
