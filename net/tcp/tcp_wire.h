/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file tcp_wire.h
 * Frames of the tcp transport, little endian (net/PROTOCOL.md, "tcp fabric"):
 *
 *   hello     0 u32 "UCTH"   4 u32 version     8 16 bytes nonce
 *            24 u8 lane     25 u8 lanes - 1   26 u16 zero         28 u32 zero                      32
 *   answer    0 u32 "UCTA"   4 u32 version     8 i32 status       12 u32 zero                      16
 *   request   0 u32 "UCTQ"   4 u32 opcode      8 u64 sequence     16 u32 region   20 u32 zero
 *            24 u64 offset  32 u64 length     40 u64 generation                                    48
 *   response  0 u32 "UCTP"   4 i32 status      8 u64 sequence     16 u64 length                    24
 *
 * A WRITE's data follows its request, a READ's data its response. Decoders take bytes from anywhere
 * and write their output on success only. Any thread; pure functions.
 */

#ifndef UC_NET_TCP_WIRE_H
#define UC_NET_TCP_WIRE_H

#include <stdint.h>

#include <ucm/compiler.h>
#include <ucm/status.h>

#include "net/fabric.h"

enum {
    UC_TCP_VERSION = 1,
    UC_TCP_HELLO_BYTES = 32,
    UC_TCP_ANSWER_BYTES = 16,
    UC_TCP_REQUEST_BYTES = 48,
    UC_TCP_RESPONSE_BYTES = 24,
    UC_TCP_LANES_MAX = 8, /* streams of one endpoint */
};

/** Most bytes of one operation: nothing honest is larger, so a larger length closes the connection. */
#define UC_TCP_MAX_OP_BYTES (UINT64_C(1) << 40)

/** A plain value. */
struct uc_tcp_hello {
    uint8_t nonce[UC_FABRIC_NONCE_BYTES];
    uint32_t lane_idx;   /* below lane_count */
    uint32_t lane_count; /* 1 … UC_TCP_LANES_MAX */
};

/** A plain value. */
struct uc_tcp_request {
    enum uc_fabric_opcode opcode;
    uint32_t region_idx;
    uint64_t sequence;
    uint64_t offset_bytes;
    uint64_t length_bytes; /* 0 for a FLUSH, else 1 … UC_TCP_MAX_OP_BYTES */
    uint64_t generation;
};

/** A plain value. */
struct uc_tcp_response {
    enum uc_status status;
    uint64_t sequence;
    uint64_t length_bytes; /* of the data that follows; 0 unless status is Ok */
};

void uc_tcp_hello_put(uint8_t *bytes, const struct uc_tcp_hello *hello);

/**
 * @retval UC_ERR_INVALID_PARAM  not a hello
 * @retval UC_ERR_UNSUPPORTED    another version
 */
UC_MUST_CHECK enum uc_status uc_tcp_hello_get(const uint8_t *bytes, struct uc_tcp_hello *hello_out);

void uc_tcp_answer_put(uint8_t *bytes, enum uc_status status);

/**
 * Whatever its version: a target of another one says Unsupported in this layout.
 *
 * @retval UC_ERR_INVALID_PARAM  not an answer, or a status nobody knows
 */
UC_MUST_CHECK enum uc_status uc_tcp_answer_get(const uint8_t *bytes, enum uc_status *status_out);

void uc_tcp_request_put(uint8_t *bytes, const struct uc_tcp_request *request);

/** @retval UC_ERR_INVALID_PARAM magic, opcode, length or reserved field is wrong */
UC_MUST_CHECK enum uc_status uc_tcp_request_get(
        const uint8_t *bytes, struct uc_tcp_request *request_out);

void uc_tcp_response_put(uint8_t *bytes, const struct uc_tcp_response *response);

/** @retval UC_ERR_INVALID_PARAM wrong magic, unknown status, or a failure that announces data */
UC_MUST_CHECK enum uc_status uc_tcp_response_get(
        const uint8_t *bytes, struct uc_tcp_response *response_out);

#endif /* UC_NET_TCP_WIRE_H */
