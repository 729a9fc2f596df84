/* SPDX-License-Identifier: Apache-2.0 */

#include "net/tcp/tcp_wire.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "core/base/bytes.h"
#include "net/wire_status.h"

/* The four letters as they appear on the wire. */
#define HELLO_MAGIC    UINT32_C(0x48544355) /* "UCTH" */
#define ANSWER_MAGIC   UINT32_C(0x41544355) /* "UCTA" */
#define REQUEST_MAGIC  UINT32_C(0x51544355) /* "UCTQ" */
#define RESPONSE_MAGIC UINT32_C(0x50544355) /* "UCTP" */

/* Every frame starts with its magic. */
enum {
    HELLO_VERSION_OFFSET = 4,
    HELLO_NONCE_OFFSET = 8,
    HELLO_LANE_OFFSET = 24,
    HELLO_MORE_OFFSET = 25, /* lanes besides the first */
    HELLO_ZERO_OFFSET = 26,
    HELLO_ZERO32_OFFSET = 28,

    ANSWER_VERSION_OFFSET = 4,
    ANSWER_STATUS_OFFSET = 8,
    ANSWER_ZERO_OFFSET = 12,

    REQUEST_OPCODE_OFFSET = 4,
    REQUEST_SEQUENCE_OFFSET = 8,
    REQUEST_REGION_OFFSET = 16,
    REQUEST_ZERO_OFFSET = 20,
    REQUEST_OFFSET_OFFSET = 24,
    REQUEST_LENGTH_OFFSET = 32,
    REQUEST_GENERATION_OFFSET = 40,

    RESPONSE_STATUS_OFFSET = 4,
    RESPONSE_SEQUENCE_OFFSET = 8,
    RESPONSE_LENGTH_OFFSET = 16,
};

static_assert(HELLO_NONCE_OFFSET + UC_FABRIC_NONCE_BYTES == HELLO_LANE_OFFSET, "hello");
static_assert(HELLO_ZERO_OFFSET + 2 == HELLO_ZERO32_OFFSET, "hello");
static_assert(HELLO_ZERO32_OFFSET + 4 == UC_TCP_HELLO_BYTES, "hello");
static_assert(ANSWER_ZERO_OFFSET + 4 == UC_TCP_ANSWER_BYTES, "answer");
static_assert(REQUEST_GENERATION_OFFSET + 8 == UC_TCP_REQUEST_BYTES, "request");
static_assert(RESPONSE_LENGTH_OFFSET + 8 == UC_TCP_RESPONSE_BYTES, "response");

/* Opcodes on the wire; the enum of net/fabric.h may be renumbered, these may not. */
enum {
    WIRE_READ = 1,
    WIRE_WRITE = 2,
    WIRE_FLUSH = 3,
};

static uint32_t
opcode_to_wire(enum uc_fabric_opcode opcode)
{
    switch (opcode) {
    case UC_FABRIC_READ:
        return WIRE_READ;
    case UC_FABRIC_WRITE:
        return WIRE_WRITE;
    case UC_FABRIC_FLUSH:
        return WIRE_FLUSH;
    }
    assert(false);
    return 0;
}

static bool
opcode_from_wire(uint32_t wire, enum uc_fabric_opcode *opcode_out)
{
    switch (wire) {
    case WIRE_READ:
        *opcode_out = UC_FABRIC_READ;
        return true;
    case WIRE_WRITE:
        *opcode_out = UC_FABRIC_WRITE;
        return true;
    case WIRE_FLUSH:
        *opcode_out = UC_FABRIC_FLUSH;
        return true;
    default:
        return false;
    }
}

void
uc_tcp_hello_put(uint8_t *bytes, const struct uc_tcp_hello *hello)
{
    uc_put_le32(bytes, HELLO_MAGIC);
    uc_put_le32(bytes + HELLO_VERSION_OFFSET, UC_TCP_VERSION);
    memcpy(bytes + HELLO_NONCE_OFFSET, hello->nonce, UC_FABRIC_NONCE_BYTES);
    bytes[HELLO_LANE_OFFSET] = (uint8_t)hello->lane_idx;
    bytes[HELLO_MORE_OFFSET] = (uint8_t)(hello->lane_count - 1);
    bytes[HELLO_ZERO_OFFSET] = 0;
    bytes[HELLO_ZERO_OFFSET + 1] = 0;
    uc_put_le32(bytes + HELLO_ZERO32_OFFSET, 0);
}

enum uc_status
uc_tcp_hello_get(const uint8_t *bytes, struct uc_tcp_hello *hello_out)
{
    struct uc_tcp_hello hello = {.lane_idx = bytes[HELLO_LANE_OFFSET],
            .lane_count = (uint32_t)bytes[HELLO_MORE_OFFSET] + 1};

    if (uc_get_le32(bytes) != HELLO_MAGIC) {
        return UC_ERR_INVALID_PARAM;
    }
    /* Checked before the rest, which another version may use otherwise. */
    if (uc_get_le32(bytes + HELLO_VERSION_OFFSET) != UC_TCP_VERSION) {
        return UC_ERR_UNSUPPORTED;
    }
    if (hello.lane_count > UC_TCP_LANES_MAX || hello.lane_idx >= hello.lane_count ||
            bytes[HELLO_ZERO_OFFSET] != 0 || bytes[HELLO_ZERO_OFFSET + 1] != 0 ||
            uc_get_le32(bytes + HELLO_ZERO32_OFFSET) != 0) {
        return UC_ERR_INVALID_PARAM;
    }

    memcpy(hello.nonce, bytes + HELLO_NONCE_OFFSET, UC_FABRIC_NONCE_BYTES);
    *hello_out = hello;
    return UC_OK;
}

void
uc_tcp_answer_put(uint8_t *bytes, enum uc_status status)
{
    uc_put_le32(bytes, ANSWER_MAGIC);
    uc_put_le32(bytes + ANSWER_VERSION_OFFSET, UC_TCP_VERSION);
    uc_put_le32(bytes + ANSWER_STATUS_OFFSET, (uint32_t)status);
    uc_put_le32(bytes + ANSWER_ZERO_OFFSET, 0);
}

enum uc_status
uc_tcp_answer_get(const uint8_t *bytes, enum uc_status *status_out)
{
    enum uc_status status;

    if (uc_get_le32(bytes) != ANSWER_MAGIC || uc_get_le32(bytes + ANSWER_ZERO_OFFSET) != 0 ||
            !uc_wire_status((int32_t)uc_get_le32(bytes + ANSWER_STATUS_OFFSET), &status)) {
        return UC_ERR_INVALID_PARAM;
    }

    *status_out = status;
    return UC_OK;
}

void
uc_tcp_request_put(uint8_t *bytes, const struct uc_tcp_request *request)
{
    uc_put_le32(bytes, REQUEST_MAGIC);
    uc_put_le32(bytes + REQUEST_OPCODE_OFFSET, opcode_to_wire(request->opcode));
    uc_put_le64(bytes + REQUEST_SEQUENCE_OFFSET, request->sequence);
    uc_put_le32(bytes + REQUEST_REGION_OFFSET, request->region_idx);
    uc_put_le32(bytes + REQUEST_ZERO_OFFSET, 0);
    uc_put_le64(bytes + REQUEST_OFFSET_OFFSET, request->offset_bytes);
    uc_put_le64(bytes + REQUEST_LENGTH_OFFSET, request->length_bytes);
    uc_put_le64(bytes + REQUEST_GENERATION_OFFSET, request->generation);
}

enum uc_status
uc_tcp_request_get(const uint8_t *bytes, struct uc_tcp_request *request_out)
{
    struct uc_tcp_request request = {
            .sequence = uc_get_le64(bytes + REQUEST_SEQUENCE_OFFSET),
            .region_idx = uc_get_le32(bytes + REQUEST_REGION_OFFSET),
            .offset_bytes = uc_get_le64(bytes + REQUEST_OFFSET_OFFSET),
            .length_bytes = uc_get_le64(bytes + REQUEST_LENGTH_OFFSET),
            .generation = uc_get_le64(bytes + REQUEST_GENERATION_OFFSET),
    };

    if (uc_get_le32(bytes) != REQUEST_MAGIC || uc_get_le32(bytes + REQUEST_ZERO_OFFSET) != 0 ||
            !opcode_from_wire(uc_get_le32(bytes + REQUEST_OPCODE_OFFSET), &request.opcode)) {
        return UC_ERR_INVALID_PARAM;
    }
    if ((request.opcode == UC_FABRIC_FLUSH) != (request.length_bytes == 0) ||
            request.length_bytes > UC_TCP_MAX_OP_BYTES) {
        return UC_ERR_INVALID_PARAM;
    }

    *request_out = request;
    return UC_OK;
}

void
uc_tcp_response_put(uint8_t *bytes, const struct uc_tcp_response *response)
{
    uc_put_le32(bytes, RESPONSE_MAGIC);
    uc_put_le32(bytes + RESPONSE_STATUS_OFFSET, (uint32_t)response->status);
    uc_put_le64(bytes + RESPONSE_SEQUENCE_OFFSET, response->sequence);
    uc_put_le64(bytes + RESPONSE_LENGTH_OFFSET, response->length_bytes);
}

enum uc_status
uc_tcp_response_get(const uint8_t *bytes, struct uc_tcp_response *response_out)
{
    struct uc_tcp_response response = {
            .sequence = uc_get_le64(bytes + RESPONSE_SEQUENCE_OFFSET),
            .length_bytes = uc_get_le64(bytes + RESPONSE_LENGTH_OFFSET),
    };

    if (uc_get_le32(bytes) != RESPONSE_MAGIC ||
            !uc_wire_status(
                    (int32_t)uc_get_le32(bytes + RESPONSE_STATUS_OFFSET), &response.status)) {
        return UC_ERR_INVALID_PARAM;
    }
    if (response.length_bytes > UC_TCP_MAX_OP_BYTES ||
            (response.status != UC_OK && response.length_bytes != 0)) {
        return UC_ERR_INVALID_PARAM;
    }

    *response_out = response;
    return UC_OK;
}
