/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file item.h
 * One msgpack value at a time, read from untrusted bytes without allocating. What it returns points
 * into those bytes. Pure functions; any thread.
 */

#ifndef UC_NET_RPC_ITEM_H
#define UC_NET_RPC_ITEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/bytes.h"

enum uc_rpc_kind {
    UC_RPC_KIND_INVALID, /* cut short, a count above the bytes left, or an extension type */
    UC_RPC_KIND_NIL,
    UC_RPC_KIND_BOOL,
    UC_RPC_KIND_UINT,
    UC_RPC_KIND_NEGATIVE, /* an integer below zero */
    UC_RPC_KIND_FLOAT,    /* used by no message; can only be skipped */
    UC_RPC_KIND_TEXT,
    UC_RPC_KIND_BIN,
    UC_RPC_KIND_ARRAY, /* the members follow */
    UC_RPC_KIND_MAP,   /* key, value, key, value … follow */
};

/** A plain value that borrows its bytes. */
struct uc_rpc_item {
    enum uc_rpc_kind kind;
    uint64_t value;       /* BOOL, UINT: itself; NEGATIVE: two's complement; else length or count */
    const uint8_t *bytes; /* TEXT and BIN */
};

enum {
    UC_RPC_DEPTH_MAX = 8, /* arrays and maps inside each other */
};

/** Read a value, of an array or map only its head. A bad one is INVALID and fails the reader. */
struct uc_rpc_item uc_rpc_item_read(struct uc_reader *reader);

/** Pass over one value with all its members. @return false if it is not valid; the reader failed */
bool uc_rpc_item_skip(struct uc_reader *reader);

#endif /* UC_NET_RPC_ITEM_H */
