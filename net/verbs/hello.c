/* SPDX-License-Identifier: Apache-2.0 */

#include "net/verbs/hello.h"

#include <string.h>

#include "core/base/bytes.h"
#include "net/wire_status.h"

void
uc_verbs_hello_encode(const struct uc_verbs_hello *hello, uint8_t bytes_out[UC_VERBS_HELLO_BYTES])
{
    uc_put_le32(bytes_out, UC_VERBS_HELLO_MAGIC);
    uc_put_le32(bytes_out + 4, UC_VERBS_HELLO_VERSION);
    memcpy(bytes_out + 8, hello->nonce, UC_FABRIC_NONCE_BYTES);
    uc_put_le32(bytes_out + UC_VERBS_HELLO_NONCE_END,
            hello->idx | (uint32_t)hello->count << 8 | (uint32_t)hello->mtu_bytes << 16);
}

enum uc_status
uc_verbs_hello_decode(const uint8_t *bytes, size_t length, struct uc_verbs_hello *hello_out)
{
    struct uc_reader reader = uc_reader_init(bytes, length);
    uint32_t magic = uc_reader_le32(&reader);
    uint32_t version = uc_reader_le32(&reader);
    const uint8_t *nonce = uc_reader_take(&reader, UC_FABRIC_NONCE_BYTES);
    uint32_t wishes = uc_reader_le32(&reader); /* 0 if it is not there */
    struct uc_verbs_hello hello = {
            .idx = (uint8_t)wishes,
            .count = (uint8_t)(wishes >> 8),
            .mtu_bytes = (uint16_t)(wishes >> 16),
    };

    if (magic != UC_VERBS_HELLO_MAGIC) {
        return UC_ERR_INVALID_PARAM;
    }
    if (version != UC_VERBS_HELLO_VERSION) {
        return UC_ERR_UNSUPPORTED;
    }
    if (hello.count == 0) {
        hello.count = 1;
    } else if (hello.count > UC_VERBS_PAIRS_MAX) {
        hello.count = UC_VERBS_PAIRS_MAX;
    }
    if (nonce == NULL || hello.idx >= hello.count) {
        return UC_ERR_INVALID_PARAM;
    }

    memcpy(hello.nonce, nonce, UC_FABRIC_NONCE_BYTES);
    *hello_out = hello;
    return UC_OK;
}

void
uc_verbs_answer_encode(
        const struct uc_verbs_answer *answer, uint8_t bytes_out[UC_VERBS_ANSWER_BYTES])
{
    uc_put_le32(bytes_out, UC_VERBS_HELLO_MAGIC);
    uc_put_le32(bytes_out + 4, UC_VERBS_HELLO_VERSION);
    uc_put_le32(bytes_out + 8, answer->count | (uint32_t)answer->mtu_bytes << 16);
}

struct uc_verbs_answer
uc_verbs_answer_decode(const uint8_t *bytes, size_t length)
{
    struct uc_reader reader = uc_reader_init(bytes, length);
    uint32_t magic = uc_reader_le32(&reader);
    uint32_t version = uc_reader_le32(&reader);
    uint32_t grants = uc_reader_le32(&reader);
    struct uc_verbs_answer answer = {.count = 1};

    if (reader.failed || magic != UC_VERBS_HELLO_MAGIC || version != UC_VERBS_HELLO_VERSION) {
        return answer;
    }

    answer.mtu_bytes = (uint16_t)(grants >> 16);
    if ((uint16_t)grants > 1) {
        answer.count =
                (uint16_t)grants > UC_VERBS_PAIRS_MAX ? UC_VERBS_PAIRS_MAX : (uint16_t)grants;
    }
    return answer;
}

void
uc_verbs_reject_encode(enum uc_status status, uint8_t bytes_out[UC_VERBS_REJECT_BYTES])
{
    uc_put_le32(bytes_out, UC_VERBS_HELLO_MAGIC);
    uc_put_le32(bytes_out + 4, UC_VERBS_HELLO_VERSION);
    uc_put_le32(bytes_out + 8, (uint32_t)status);
}

enum uc_status
uc_verbs_reject_decode(const uint8_t *bytes, size_t length)
{
    struct uc_reader reader = uc_reader_init(bytes, length);
    uint32_t magic = uc_reader_le32(&reader);
    uint32_t version = uc_reader_le32(&reader);
    int32_t number = (int32_t)uc_reader_le32(&reader);
    enum uc_status status = UC_OK;

    /* A refusal that says Ok is no refusal we understand. */
    if (reader.failed || magic != UC_VERBS_HELLO_MAGIC || version != UC_VERBS_HELLO_VERSION ||
            number == UC_OK) {
        return UC_ERR_UNHEALTHY;
    }

    return uc_wire_status(number, &status) ? status : UC_ERR_UNHEALTHY;
}
