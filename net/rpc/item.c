/* SPDX-License-Identifier: Apache-2.0 */

#include "net/rpc/item.h"

/* What a head byte from 0xc0 to 0xdf means, and how many big-endian bytes of number follow it. */
static const struct {
    uint8_t kind; /* enum uc_rpc_kind */
    uint8_t width;
} forms[32] = {
        [0x00] = {UC_RPC_KIND_NIL, 0},
        [0x02] = {UC_RPC_KIND_BOOL, 0}, /* false */
        [0x03] = {UC_RPC_KIND_BOOL, 0}, /* true */
        [0x04] = {UC_RPC_KIND_BIN, 1},
        [0x05] = {UC_RPC_KIND_BIN, 2},
        [0x06] = {UC_RPC_KIND_BIN, 4},
        [0x0a] = {UC_RPC_KIND_FLOAT, 4},
        [0x0b] = {UC_RPC_KIND_FLOAT, 8},
        [0x0c] = {UC_RPC_KIND_UINT, 1},
        [0x0d] = {UC_RPC_KIND_UINT, 2},
        [0x0e] = {UC_RPC_KIND_UINT, 4},
        [0x0f] = {UC_RPC_KIND_UINT, 8},
        [0x10] = {UC_RPC_KIND_NEGATIVE, 1}, /* signed: may still turn out to be positive */
        [0x11] = {UC_RPC_KIND_NEGATIVE, 2},
        [0x12] = {UC_RPC_KIND_NEGATIVE, 4},
        [0x13] = {UC_RPC_KIND_NEGATIVE, 8},
        [0x19] = {UC_RPC_KIND_TEXT, 1},
        [0x1a] = {UC_RPC_KIND_TEXT, 2},
        [0x1b] = {UC_RPC_KIND_TEXT, 4},
        [0x1c] = {UC_RPC_KIND_ARRAY, 2},
        [0x1d] = {UC_RPC_KIND_ARRAY, 4},
        [0x1e] = {UC_RPC_KIND_MAP, 2},
        [0x1f] = {UC_RPC_KIND_MAP, 4},
};

static uint64_t
read_number(struct uc_reader *reader, size_t width)
{
    const uint8_t *bytes = uc_reader_take(reader, width);
    uint64_t value = 0;

    if (bytes == NULL) {
        return 0;
    }
    for (size_t idx = 0; idx < width; idx++) {
        value = value << 8 | bytes[idx];
    }
    return value;
}

static struct uc_rpc_item
read_head(struct uc_reader *reader)
{
    const uint8_t *head = uc_reader_take(reader, 1);
    struct uc_rpc_item item = {.kind = UC_RPC_KIND_INVALID};

    if (head == NULL) {
        return item;
    }
    if (*head <= 0x7f) {
        item.kind = UC_RPC_KIND_UINT;
        item.value = *head;
    } else if (*head <= 0x8f) {
        item.kind = UC_RPC_KIND_MAP;
        item.value = *head & 0x0fu;
    } else if (*head <= 0x9f) {
        item.kind = UC_RPC_KIND_ARRAY;
        item.value = *head & 0x0fu;
    } else if (*head <= 0xbf) {
        item.kind = UC_RPC_KIND_TEXT;
        item.value = *head & 0x1fu;
    } else if (*head >= 0xe0) {
        item.kind = UC_RPC_KIND_NEGATIVE;
        item.value = ~(uint64_t)0xff | *head;
    } else {
        size_t width = forms[*head - 0xc0].width;

        item.kind = (enum uc_rpc_kind)forms[*head - 0xc0].kind;
        item.value = width == 0 ? *head & 1u : read_number(reader, width);
        if (item.kind == UC_RPC_KIND_NEGATIVE) {
            uint64_t sign = (uint64_t)1 << (8 * width - 1);

            /* Extend the sign; without one it is an ordinary unsigned number. */
            item.kind = (item.value & sign) != 0 ? UC_RPC_KIND_NEGATIVE : UC_RPC_KIND_UINT;
            item.value = (item.value ^ sign) - sign;
        }
    }
    return item;
}

struct uc_rpc_item
uc_rpc_item_read(struct uc_reader *reader)
{
    struct uc_rpc_item item = read_head(reader);

    /* Every member takes a byte at least, so a count above the bytes left is a lie. */
    switch (item.kind) {
    case UC_RPC_KIND_TEXT:
    case UC_RPC_KIND_BIN:
        item.bytes = uc_reader_take(reader, item.value);
        break;
    case UC_RPC_KIND_ARRAY:
        reader->failed |= item.value > reader->left;
        break;
    case UC_RPC_KIND_MAP:
        reader->failed |= item.value > reader->left / 2;
        break;
    case UC_RPC_KIND_INVALID:
        reader->failed = true;
        break;
    case UC_RPC_KIND_NIL:
    case UC_RPC_KIND_BOOL:
    case UC_RPC_KIND_UINT:
    case UC_RPC_KIND_NEGATIVE:
    case UC_RPC_KIND_FLOAT:
        break;
    }
    if (reader->failed) {
        item = (struct uc_rpc_item){.kind = UC_RPC_KIND_INVALID};
    }
    return item;
}

bool
uc_rpc_item_skip(struct uc_reader *reader)
{
    uint64_t members_left[UC_RPC_DEPTH_MAX];
    size_t depth = 0;

    /* Ends: each turn takes a byte at least. */
    do {
        struct uc_rpc_item item = uc_rpc_item_read(reader);

        if (item.kind == UC_RPC_KIND_INVALID) {
            return false;
        }
        if (item.kind == UC_RPC_KIND_ARRAY || item.kind == UC_RPC_KIND_MAP) {
            if (depth == UC_RPC_DEPTH_MAX) {
                reader->failed = true;
                return false;
            }
            if (item.value > 0) {
                members_left[depth] = item.kind == UC_RPC_KIND_MAP ? 2 * item.value : item.value;
                depth++;
                continue;
            }
        }
        while (depth > 0 && --members_left[depth - 1] == 0) {
            depth--;
        }
    } while (depth > 0);
    return true;
}
