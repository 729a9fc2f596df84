/* SPDX-License-Identifier: Apache-2.0 */

#include "client/proxy/branch_frame.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/bytes.h"

enum {
    BRANCH_AT = 4
};

static const uint8_t magic[BRANCH_AT] = {'U', 'C', 'P', '1'};

enum uc_status
uc_branch_frame_wrap(uint64_t branch, const struct uc_token *inner, struct uc_token **framed_out)
{
    enum uc_status status;
    size_t payload_bytes;
    uint8_t *payload;

    if (inner->payload_bytes > SIZE_MAX - UC_BRANCH_FRAME_BYTES) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "peer: a token of %zu bytes", inner->payload_bytes);
    }
    payload_bytes = UC_BRANCH_FRAME_BYTES + inner->payload_bytes;
    payload = malloc(payload_bytes);
    if (payload == NULL) {
        return uc_error(
                UC_ERR_OUT_OF_MEMORY, "peer: no memory for a token of %zu bytes", payload_bytes);
    }

    memcpy(payload, magic, sizeof(magic));
    uc_put_le64(payload + BRANCH_AT, branch);
    if (inner->payload_bytes != 0) {
        memcpy(payload + UC_BRANCH_FRAME_BYTES, inner->payload, inner->payload_bytes);
    }
    status = uc_token_create(inner->keys, inner->key_count, payload, payload_bytes, framed_out);
    free(payload);
    return status;
}

enum uc_status
uc_branch_frame_parse(const struct uc_token *framed, size_t branch_count, size_t *branch_out,
        struct uc_token *inner_out)
{
    uint64_t branch;

    if (framed->payload_bytes < UC_BRANCH_FRAME_BYTES ||
            memcmp(framed->payload, magic, sizeof(magic)) != 0) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "submit: the token (payload of %zu bytes) was not made by this peer",
                framed->payload_bytes);
    }
    branch = uc_get_le64(framed->payload + BRANCH_AT);
    if (branch >= branch_count) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "submit: the token names branch %llu of %zu: scheduler and worker need the same "
                "configuration",
                (unsigned long long)branch, branch_count);
    }

    *inner_out = *framed;
    inner_out->payload_bytes = framed->payload_bytes - UC_BRANCH_FRAME_BYTES;
    inner_out->payload =
            inner_out->payload_bytes == 0 ? NULL : framed->payload + UC_BRANCH_FRAME_BYTES;
    *branch_out = (size_t)branch;
    return UC_OK;
}
