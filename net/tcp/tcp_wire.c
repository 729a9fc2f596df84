/* SPDX-License-Identifier: Apache-2.0 */

#include "net/tcp/tcp_wire.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "core/base/bytes.h"

/* The four letters as they appear on the wire. */
#define HELLO_MAGIC    UINT32_C(0x48544355) /* "UCTH" */
#define ANSWER_MAGIC   UINT32_C(0x41544355) /* "UCTA" */
#define REQUEST_MAGIC  UINT32_C(0x51544355) /* "UCTQ" */
#define RESPONSE_MAGIC UINT32_C(0x50544355) /* "UCTP" */

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

static bool
status_from_wire(uint32_t wire, enum uc_status *status_out)
{
    switch ((int32_t)wire) {
#define STATUS_CASE_(name, number, text) case (number):
        UC_STATUS_MAP(STATUS_CASE_)
#undef STATUS_CASE_
        *status_out = (enum uc_status)(int32_t)wire;
        return true;
    default:
        return false;
    }
}

void
uc_tcp_hello_put(uint8_t *bytes, const uint8_t nonce[UC_FABRIC_NONCE_BYTES])
{
    uc_put_le32(bytes, HELLO_MAGIC);
    uc_put_le32(bytes + 4, UC_TCP_VERSION);
    memcpy(bytes + 8, nonce, UC_FABRIC_NONCE_BYTES);
    uc_put_le64(bytes + 24, 0);
}

enum uc_status
uc_tcp_hello_get(const uint8_t *bytes, uint8_t nonce_out[UC_FABRIC_NONCE_BYTES])
{
    if (uc_get_le32(bytes) != HELLO_MAGIC) {
        return UC_ERR_INVALID_PARAM;
    }
    /* Checked before the rest, which another version may use otherwise. */
    if (uc_get_le32(bytes + 4) != UC_TCP_VERSION) {
        return UC_ERR_UNSUPPORTED;
    }
    if (uc_get_le64(bytes + 24) != 0) {
        return UC_ERR_INVALID_PARAM;
    }

    memcpy(nonce_out, bytes + 8, UC_FABRIC_NONCE_BYTES);
    return UC_OK;
}

void
uc_tcp_answer_put(uint8_t *bytes, enum uc_status status)
{
    uc_put_le32(bytes, ANSWER_MAGIC);
    uc_put_le32(bytes + 4, UC_TCP_VERSION);
    uc_put_le32(bytes + 8, (uint32_t)status);
    uc_put_le32(bytes + 12, 0);
}

enum uc_status
uc_tcp_answer_get(const uint8_t *bytes, enum uc_status *status_out)
{
    enum uc_status status;

    if (uc_get_le32(bytes) != ANSWER_MAGIC || uc_get_le32(bytes + 12) != 0 ||
            !status_from_wire(uc_get_le32(bytes + 8), &status)) {
        return UC_ERR_INVALID_PARAM;
    }

    *status_out = status;
    return UC_OK;
}

void
uc_tcp_request_put(uint8_t *bytes, const struct uc_tcp_request *request)
{
    uc_put_le32(bytes, REQUEST_MAGIC);
    uc_put_le32(bytes + 4, opcode_to_wire(request->opcode));
    uc_put_le64(bytes + 8, request->sequence);
    uc_put_le32(bytes + 16, request->region_idx);
    uc_put_le32(bytes + 20, 0);
    uc_put_le64(bytes + 24, request->offset_bytes);
    uc_put_le64(bytes + 32, request->length_bytes);
    uc_put_le64(bytes + 40, request->generation);
}

enum uc_status
uc_tcp_request_get(const uint8_t *bytes, struct uc_tcp_request *request_out)
{
    struct uc_tcp_request request = {
            .sequence = uc_get_le64(bytes + 8),
            .region_idx = uc_get_le32(bytes + 16),
            .offset_bytes = uc_get_le64(bytes + 24),
            .length_bytes = uc_get_le64(bytes + 32),
            .generation = uc_get_le64(bytes + 40),
    };

    if (uc_get_le32(bytes) != REQUEST_MAGIC || uc_get_le32(bytes + 20) != 0 ||
            !opcode_from_wire(uc_get_le32(bytes + 4), &request.opcode)) {
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
    uc_put_le32(bytes + 4, (uint32_t)response->status);
    uc_put_le64(bytes + 8, response->sequence);
    uc_put_le64(bytes + 16, response->length_bytes);
}

enum uc_status
uc_tcp_response_get(const uint8_t *bytes, struct uc_tcp_response *response_out)
{
    struct uc_tcp_response response = {
            .sequence = uc_get_le64(bytes + 8),
            .length_bytes = uc_get_le64(bytes + 16),
    };

    if (uc_get_le32(bytes) != RESPONSE_MAGIC ||
            !status_from_wire(uc_get_le32(bytes + 4), &response.status)) {
        return UC_ERR_INVALID_PARAM;
    }
    if (response.length_bytes > UC_TCP_MAX_OP_BYTES ||
            (response.status != UC_OK && response.length_bytes != 0)) {
        return UC_ERR_INVALID_PARAM;
    }

    *response_out = response;
    return UC_OK;
}
