/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file fabric_control.h
 * What client and server of ucm-bench fabric tell each other beside the transfers: frames of one size over a
 * stream, little endian. The peer may be on another machine, so nothing in a frame is believed unchecked.
 *
 *   0  u32 magic "UCB1"    4  u32 type    8  8 × u64 numbers    72  256 bytes text, ends with NUL
 *
 * One thread.
 */

#ifndef UC_BENCH_FABRIC_CONTROL_H
#define UC_BENCH_FABRIC_CONTROL_H

#include <stdint.h>

#include <ucm/compiler.h>
#include <ucm/status.h>

enum {
    UC_FABRIC_CONTROL_NUMBERS = 8,
    UC_FABRIC_CONTROL_TEXT_BYTES = 256,
    UC_FABRIC_CONTROL_FRAME_BYTES =
            8 + 8 * UC_FABRIC_CONTROL_NUMBERS + UC_FABRIC_CONTROL_TEXT_BYTES,
};

/** Each request is answered by the same type, or by FAILED. */
enum uc_fabric_control_type {
    UC_FABRIC_CONTROL_FAILED = 1, /* numbers: status; text: why */
    /** numbers: op, block_bytes, slots, connections; text: fabric.
        Answer: port, nonce (2), region address, key, length; text: address, empty = where we met */
    UC_FABRIC_CONTROL_SETUP,
    /** Answer: nanoseconds of processor time */
    UC_FABRIC_CONTROL_CPU,
    /** numbers: streams. Answer: port to connect them to */
    UC_FABRIC_CONTROL_STREAMS,
    /** numbers: blocks to move over them, whether to spin. Answer: before it starts */
    UC_FABRIC_CONTROL_MOVE,
    /** numbers: enum uc_perftest_tool, block bytes, depth, queue pairs, operations. Answer: port */
    UC_FABRIC_CONTROL_PERFTEST,
    /** Answer: slots whose checksum is wrong, slots that were looked at */
    UC_FABRIC_CONTROL_CHECK,
    UC_FABRIC_CONTROL_END_, /* no type */
};

/** A plain value. */
struct uc_fabric_control {
    enum uc_fabric_control_type type;
    uint64_t numbers[UC_FABRIC_CONTROL_NUMBERS];
    char text[UC_FABRIC_CONTROL_TEXT_BYTES];
};

void uc_fabric_control_encode(const struct uc_fabric_control *message, uint8_t *frame);

/** @retval UC_ERR_INVALID_PARAM wrong magic, unknown type, text without end */
UC_MUST_CHECK enum uc_status uc_fabric_control_decode(
        const uint8_t *frame, struct uc_fabric_control *message_out);

/** Send or receive one frame. @retval UC_ERR_UNHEALTHY the peer is gone; UC_ERR_TIMEOUT */
UC_MUST_CHECK enum uc_status uc_fabric_control_send(
        int fd, const struct uc_fabric_control *message);
UC_MUST_CHECK enum uc_status uc_fabric_control_receive(
        int fd, uint64_t timeout_ms, struct uc_fabric_control *message_out);

/** Ask and wait. @retval what the other side failed with, with its text */
UC_MUST_CHECK enum uc_status uc_fabric_control_call(int fd, const struct uc_fabric_control *request,
        uint64_t timeout_ms, struct uc_fabric_control *answer_out);

#endif /* UC_BENCH_FABRIC_CONTROL_H */
