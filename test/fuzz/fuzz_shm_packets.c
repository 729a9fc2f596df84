/* SPDX-License-Identifier: Apache-2.0 */

/* The packets of the shm fabric: greeting, answer, and what follows them in both directions. */

#include <stdlib.h>
#include <string.h>

#include "net/shm/shm_wire.h"
#include "test/fuzz/fuzz.h"

/* What was read is what would be written. */
static void
require_same(const uint8_t *again, size_t again_length, const uint8_t *bytes, size_t length)
{
    if (again_length != length || memcmp(again, bytes, length) != 0) {
        abort();
    }
}

static void
hello(const uint8_t *bytes, size_t length)
{
    uint8_t nonce[UC_FABRIC_NONCE_BYTES];
    uint8_t again[UC_SHM_HELLO_BYTES];

    if (uc_shm_hello_get(bytes, length, nonce) == UC_OK) {
        uc_shm_hello_put(again, nonce);
        require_same(again, sizeof(again), bytes, length);
    }
}

static void
answer(const uint8_t *bytes, size_t length)
{
    uint8_t again[UC_SHM_ANSWER_BYTES];
    struct uc_shm_answer value;

    if (uc_shm_answer_get(bytes, length, &value) != UC_OK) {
        return;
    }
    if (value.file_count > UC_SHM_FILE_COUNT || (value.status != UC_OK && value.file_count != 0)) {
        abort();
    }
    uc_shm_answer_put(again, &value);
    if (memcmp(again + 4, bytes + 4, 4) == 0) { /* another version says no more than Unsupported */
        require_same(again, sizeof(again), bytes, length);
    } else if (value.status != UC_ERR_UNSUPPORTED) {
        abort();
    }
}

static void
packet(const uint8_t *bytes, size_t length)
{
    uint8_t again[UC_SHM_PACKET_BYTES];
    struct uc_shm_packet value;

    if (uc_shm_packet_get(bytes, length, &value) != UC_OK) {
        return;
    }
    if (value.slot >= UC_SHM_SLOT_COUNT ||
            (value.kind == UC_SHM_REGION && value.length_bytes == 0)) {
        abort();
    }
    require_same(again, uc_shm_packet_put(again, &value), bytes, length);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    hello(bytes, length);
    answer(bytes, length);
    packet(bytes, length);
    return 0;
}
