/* SPDX-License-Identifier: Apache-2.0 */

/* The four frames of the tcp fabric, two of which a server decodes and two a client. */

#include <stdlib.h>
#include <string.h>

#include "net/tcp/tcp_wire.h"
#include "test/fuzz/fuzz.h"

/* What was read is what would be written. */
static void
require_same(const uint8_t *again, const uint8_t *bytes, size_t length)
{
    if (memcmp(again, bytes, length) != 0) {
        abort();
    }
}

static void
hello(const uint8_t *bytes)
{
    uint8_t again[UC_TCP_HELLO_BYTES];
    struct uc_tcp_hello value;

    if (uc_tcp_hello_get(bytes, &value) == UC_OK) {
        if (value.lane_count > UC_TCP_LANES_MAX || value.lane_idx >= value.lane_count) {
            abort();
        }
        uc_tcp_hello_put(again, &value);
        require_same(again, bytes, sizeof(again));
    }
}

static void
answer(const uint8_t *bytes)
{
    uint8_t again[UC_TCP_ANSWER_BYTES];
    enum uc_status status;

    if (uc_tcp_answer_get(bytes, &status) == UC_OK) {
        uc_tcp_answer_put(again, status);
        memcpy(again + 4, bytes + 4, 4); /* any version may refuse */
        require_same(again, bytes, sizeof(again));
    }
}

static void
request(const uint8_t *bytes)
{
    uint8_t again[UC_TCP_REQUEST_BYTES];
    struct uc_tcp_request value;

    if (uc_tcp_request_get(bytes, &value) == UC_OK) {
        if (value.length_bytes > UC_TCP_MAX_OP_BYTES) {
            abort();
        }
        uc_tcp_request_put(again, &value);
        require_same(again, bytes, sizeof(again));
    }
}

static void
response(const uint8_t *bytes)
{
    uint8_t again[UC_TCP_RESPONSE_BYTES];
    struct uc_tcp_response value;

    if (uc_tcp_response_get(bytes, &value) == UC_OK) {
        if (value.length_bytes > UC_TCP_MAX_OP_BYTES) {
            abort();
        }
        uc_tcp_response_put(again, &value);
        require_same(again, bytes, sizeof(again));
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    if (length >= UC_TCP_HELLO_BYTES) {
        hello(bytes);
    }
    if (length >= UC_TCP_ANSWER_BYTES) {
        answer(bytes);
    }
    if (length >= UC_TCP_REQUEST_BYTES) {
        request(bytes);
    }
    if (length >= UC_TCP_RESPONSE_BYTES) {
        response(bytes);
    }
    return 0;
}
