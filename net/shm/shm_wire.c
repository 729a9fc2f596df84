/* SPDX-License-Identifier: Apache-2.0 */

#include "net/shm/shm_wire.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "core/base/bytes.h"
#include "net/wire_status.h"

/* The four letters as they appear on the wire. */
#define HELLO_MAGIC   UINT32_C(0x484d4355) /* "UCMH" */
#define ANSWER_MAGIC  UINT32_C(0x414d4355) /* "UCMA" */
#define REGION_MAGIC  UINT32_C(0x524d4355) /* "UCMR" */
#define VERDICT_MAGIC UINT32_C(0x564d4355) /* "UCMV" */
#define FORGET_MAGIC  UINT32_C(0x464d4355) /* "UCMF" */
#define WAKE_MAGIC    UINT32_C(0x574d4355) /* "UCMW" */

/* Every packet starts with its magic. */
enum {
    HELLO_VERSION_OFFSET = 4,
    HELLO_NONCE_OFFSET = 8,
    HELLO_ZERO_OFFSET = 24,

    ANSWER_VERSION_OFFSET = 4,
    ANSWER_STATUS_OFFSET = 8,
    ANSWER_FILES_OFFSET = 12,

    SLOT_OFFSET = 4, /* of region, verdict, forget */
    REGION_OFFSET_OFFSET = 8,
    REGION_LENGTH_OFFSET = 16,
    VERDICT_STATUS_OFFSET = 8,
    VERDICT_ZERO_OFFSET = 12,
    WAKE_ZERO_OFFSET = 4,
};

static_assert(HELLO_NONCE_OFFSET + UC_FABRIC_NONCE_BYTES == HELLO_ZERO_OFFSET, "hello");
static_assert(HELLO_ZERO_OFFSET + 8 == UC_SHM_HELLO_BYTES, "hello");
static_assert(ANSWER_FILES_OFFSET + 4 == UC_SHM_ANSWER_BYTES, "answer");
static_assert(REGION_LENGTH_OFFSET + 8 == UC_SHM_REGION_BYTES, "region");
static_assert(VERDICT_ZERO_OFFSET + 4 == UC_SHM_VERDICT_BYTES, "verdict");
static_assert((int)UC_SHM_HELLO_BYTES <= (int)UC_SHM_PACKET_BYTES, "longest packet");

void
uc_shm_hello_put(uint8_t *bytes, const uint8_t nonce[UC_FABRIC_NONCE_BYTES])
{
    uc_put_le32(bytes, HELLO_MAGIC);
    uc_put_le32(bytes + HELLO_VERSION_OFFSET, UC_SHM_VERSION);
    memcpy(bytes + HELLO_NONCE_OFFSET, nonce, UC_FABRIC_NONCE_BYTES);
    uc_put_le64(bytes + HELLO_ZERO_OFFSET, 0);
}

enum uc_status
uc_shm_hello_get(const uint8_t *bytes, size_t length, uint8_t nonce_out[UC_FABRIC_NONCE_BYTES])
{
    if (length != UC_SHM_HELLO_BYTES || uc_get_le32(bytes) != HELLO_MAGIC) {
        return UC_ERR_INVALID_PARAM;
    }
    if (uc_get_le32(bytes + HELLO_VERSION_OFFSET) != UC_SHM_VERSION) {
        return UC_ERR_UNSUPPORTED;
    }
    if (uc_get_le64(bytes + HELLO_ZERO_OFFSET) != 0) {
        return UC_ERR_INVALID_PARAM;
    }

    memcpy(nonce_out, bytes + HELLO_NONCE_OFFSET, UC_FABRIC_NONCE_BYTES);
    return UC_OK;
}

void
uc_shm_answer_put(uint8_t *bytes, const struct uc_shm_answer *answer)
{
    uc_put_le32(bytes, ANSWER_MAGIC);
    uc_put_le32(bytes + ANSWER_VERSION_OFFSET, UC_SHM_VERSION);
    uc_put_le32(bytes + ANSWER_STATUS_OFFSET, (uint32_t)answer->status);
    uc_put_le32(bytes + ANSWER_FILES_OFFSET, answer->file_count);
}

enum uc_status
uc_shm_answer_get(const uint8_t *bytes, size_t length, struct uc_shm_answer *answer_out)
{
    struct uc_shm_answer answer;

    if (length != UC_SHM_ANSWER_BYTES || uc_get_le32(bytes) != ANSWER_MAGIC ||
            !uc_wire_status((int32_t)uc_get_le32(bytes + ANSWER_STATUS_OFFSET), &answer.status)) {
        return UC_ERR_INVALID_PARAM;
    }
    answer.file_count = uc_get_le32(bytes + ANSWER_FILES_OFFSET);
    if (answer.file_count > UC_SHM_FILE_COUNT ||
            (answer.status != UC_OK && answer.file_count != 0)) {
        return UC_ERR_INVALID_PARAM;
    }
    /* A server of another version says Unsupported in this layout; nothing else can be believed. */
    if (uc_get_le32(bytes + ANSWER_VERSION_OFFSET) != UC_SHM_VERSION) {
        answer = (struct uc_shm_answer){.status = UC_ERR_UNSUPPORTED};
    }

    *answer_out = answer;
    return UC_OK;
}

size_t
uc_shm_packet_put(uint8_t *bytes, const struct uc_shm_packet *packet)
{
    switch (packet->kind) {
    case UC_SHM_REGION:
        uc_put_le32(bytes, REGION_MAGIC);
        uc_put_le32(bytes + SLOT_OFFSET, packet->slot);
        uc_put_le64(bytes + REGION_OFFSET_OFFSET, packet->offset_bytes);
        uc_put_le64(bytes + REGION_LENGTH_OFFSET, packet->length_bytes);
        return UC_SHM_REGION_BYTES;
    case UC_SHM_VERDICT:
        uc_put_le32(bytes, VERDICT_MAGIC);
        uc_put_le32(bytes + SLOT_OFFSET, packet->slot);
        uc_put_le32(bytes + VERDICT_STATUS_OFFSET, (uint32_t)packet->status);
        uc_put_le32(bytes + VERDICT_ZERO_OFFSET, 0);
        return UC_SHM_VERDICT_BYTES;
    case UC_SHM_FORGET:
        uc_put_le32(bytes, FORGET_MAGIC);
        uc_put_le32(bytes + SLOT_OFFSET, packet->slot);
        return UC_SHM_FORGET_BYTES;
    case UC_SHM_WAKE:
        break;
    }
    uc_put_le32(bytes, WAKE_MAGIC);
    uc_put_le32(bytes + WAKE_ZERO_OFFSET, 0);
    return UC_SHM_WAKE_BYTES;
}

static bool
region_get(const uint8_t *bytes, size_t length, struct uc_shm_packet *packet)
{
    if (length != UC_SHM_REGION_BYTES) {
        return false;
    }

    packet->kind = UC_SHM_REGION;
    packet->slot = uc_get_le32(bytes + SLOT_OFFSET);
    packet->offset_bytes = uc_get_le64(bytes + REGION_OFFSET_OFFSET);
    packet->length_bytes = uc_get_le64(bytes + REGION_LENGTH_OFFSET);
    return packet->slot < UC_SHM_SLOT_COUNT && packet->length_bytes > 0;
}

static bool
verdict_get(const uint8_t *bytes, size_t length, struct uc_shm_packet *packet)
{
    if (length != UC_SHM_VERDICT_BYTES) {
        return false;
    }

    packet->kind = UC_SHM_VERDICT;
    packet->slot = uc_get_le32(bytes + SLOT_OFFSET);
    return packet->slot < UC_SHM_SLOT_COUNT && uc_get_le32(bytes + VERDICT_ZERO_OFFSET) == 0 &&
           uc_wire_status((int32_t)uc_get_le32(bytes + VERDICT_STATUS_OFFSET), &packet->status);
}

static bool
forget_get(const uint8_t *bytes, size_t length, struct uc_shm_packet *packet)
{
    if (length != UC_SHM_FORGET_BYTES) {
        return false;
    }

    packet->kind = UC_SHM_FORGET;
    packet->slot = uc_get_le32(bytes + SLOT_OFFSET);
    return packet->slot < UC_SHM_SLOT_COUNT;
}

enum uc_status
uc_shm_packet_get(const uint8_t *bytes, size_t length, struct uc_shm_packet *packet_out)
{
    struct uc_shm_packet packet = {.kind = UC_SHM_WAKE, .status = UC_OK};
    bool good = false;

    if (length < 8) {
        return UC_ERR_INVALID_PARAM;
    }

    switch (uc_get_le32(bytes)) {
    case REGION_MAGIC:
        good = region_get(bytes, length, &packet);
        break;
    case VERDICT_MAGIC:
        good = verdict_get(bytes, length, &packet);
        break;
    case FORGET_MAGIC:
        good = forget_get(bytes, length, &packet);
        break;
    case WAKE_MAGIC:
        good = length == UC_SHM_WAKE_BYTES && uc_get_le32(bytes + WAKE_ZERO_OFFSET) == 0;
        break;
    default:
        break;
    }
    if (!good) {
        return UC_ERR_INVALID_PARAM;
    }

    *packet_out = packet;
    return UC_OK;
}
