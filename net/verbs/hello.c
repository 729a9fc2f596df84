/* SPDX-License-Identifier: Apache-2.0 */

#include "net/verbs/hello.h"

#include <string.h>

#include "core/base/bytes.h"

#define KNOWN_STATUS_CASE_(name, number, text) case UC_##name:

void
uc_verbs_hello_encode(
        const uint8_t nonce[UC_FABRIC_NONCE_BYTES], uint8_t bytes_out[UC_VERBS_HELLO_BYTES])
{
    uc_put_le32(bytes_out, UC_VERBS_HELLO_MAGIC);
    uc_put_le32(bytes_out + 4, UC_VERBS_HELLO_VERSION);
    memcpy(bytes_out + 8, nonce, UC_FABRIC_NONCE_BYTES);
}

enum uc_status
uc_verbs_hello_decode(const uint8_t *bytes, size_t length, uint8_t nonce_out[UC_FABRIC_NONCE_BYTES])
{
    struct uc_reader reader = uc_reader_init(bytes, length);
    uint32_t magic = uc_reader_le32(&reader);
    uint32_t version = uc_reader_le32(&reader);
    const uint8_t *nonce = uc_reader_take(&reader, UC_FABRIC_NONCE_BYTES);

    if (magic != UC_VERBS_HELLO_MAGIC) {
        return UC_ERR_INVALID_PARAM;
    }
    if (version != UC_VERBS_HELLO_VERSION) {
        return UC_ERR_UNSUPPORTED;
    }
    if (nonce == NULL) {
        return UC_ERR_INVALID_PARAM;
    }

    memcpy(nonce_out, nonce, UC_FABRIC_NONCE_BYTES);
    return UC_OK;
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

    /* A refusal that says Ok is no refusal we understand. */
    if (reader.failed || magic != UC_VERBS_HELLO_MAGIC || version != UC_VERBS_HELLO_VERSION ||
            number == UC_OK) {
        return UC_ERR_UNHEALTHY;
    }

    switch (number) {
        UC_STATUS_MAP(KNOWN_STATUS_CASE_)
        return (enum uc_status)number;
    default:
        return UC_ERR_UNHEALTHY;
    }
}
