/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The scan, and every message decoder. The first byte picks the decoder, the rest are its bytes. They are
 * decoded also where the scan refused them: a decoder may not rely on it for memory safety.
 */

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "net/rpc/connection.h"
#include "net/rpc/messages.h"
#include "test/fuzz/fuzz.h"

/* Read what was decoded to its last byte, so that a sanitizer sees a wrong pointer. */
static volatile uint8_t sink;

static void
touch(const void *bytes, size_t length)
{
    const uint8_t *at = bytes;

    for (size_t idx = 0; idx < length; idx++) {
        sink = (uint8_t)(sink + at[idx]);
    }
}

static void
touch_text(struct uc_rpc_text text)
{
    touch(text.bytes, text.length);
}

static void
decode_hello(struct uc_rpc_view view)
{
    struct uc_hello_request m;

    if (uc_hello_request_decode(view, &m) == UC_OK) {
        touch_text(m.name_space);
        touch_text(m.credential);
        touch_text(m.client);
        if (m.name_space.length > UC_NAME_MAX || m.access > UC_ACCESS_ADMIN) {
            abort();
        }
    }
}

static void
decode_hello_reply(struct uc_rpc_view view)
{
    struct uc_hello_reply m;

    if (uc_hello_reply_decode(view, &m) == UC_OK) {
        touch(&m, sizeof(m));
    }
}

static void
decode_attach(struct uc_rpc_view view)
{
    struct uc_attach_request m;

    if (uc_attach_request_decode(view, &m) == UC_OK) {
        touch_text(m.client);
    }
}

static void
decode_attach_reply(struct uc_rpc_view view)
{
    struct uc_attach_reply m;

    if (uc_attach_reply_decode(view, &m) != UC_OK) {
        return;
    }
    if (m.fabric_count > UC_FABRICS_MAX) {
        abort();
    }
    touch(m.region_lengths, 8 * m.region_count);
    for (size_t idx = 0; idx < m.fabric_count; idx++) {
        touch_text(m.fabrics[idx].name);
        touch_text(m.fabrics[idx].address);
        touch(m.fabrics[idx].keys, 16 * m.region_count);
    }
}

static void
decode_ping_reply(struct uc_rpc_view view)
{
    struct uc_ping_reply m;

    (void)!uc_ping_reply_decode(view, &m);
}

static void
decode_stat_reply(struct uc_rpc_view view)
{
    struct uc_stat_reply m;

    (void)!uc_stat_reply_decode(view, &m);
}

static void
decode_empty(struct uc_rpc_view view)
{
    (void)!uc_empty_request_decode(view);
}

static void
check_keys(struct uc_keys_view keys)
{
    if (keys.count > UC_KEYS_PER_CALL) {
        abort();
    }
    touch(keys.ids, keys.count * UC_BLOCK_ID_BYTES);
}

static void
decode_keys(struct uc_rpc_view view)
{
    struct uc_keys_view m;

    if (uc_keys_request_decode(view, &m) == UC_OK) {
        check_keys(m);
    }
}

static void
decode_bitmap(struct uc_rpc_view view)
{
    const uint8_t *bitmap;

    if (uc_bitmap_reply_decode(view, 9, &bitmap) == UC_OK) {
        touch(bitmap, 2);
    }
}

static void
decode_grant_reply(struct uc_rpc_view view)
{
    struct uc_grant_reply m;
    struct uc_entry entry;

    if (uc_grant_reply_decode(view, &m) == UC_OK) {
        for (size_t idx = 0; idx < m.count; idx++) {
            uc_entry_get(m.entries + idx * UC_ENTRY_BYTES, &entry);
            touch(&entry, sizeof(entry));
        }
    }
}

static void
decode_grant(struct uc_rpc_view view)
{
    uint64_t grant;

    (void)!uc_grant_request_decode(view, &grant);
}

static void
decode_alloc(struct uc_rpc_view view)
{
    struct uc_alloc_request m;

    if (uc_alloc_request_decode(view, &m) == UC_OK) {
        check_keys(m.keys);
    }
}

static void
decode_write_begin(struct uc_rpc_view view)
{
    struct uc_write_begin_request m;

    (void)!uc_write_begin_request_decode(view, &m);
}

static void
decode_write_end(struct uc_rpc_view view)
{
    struct uc_write_end_request m;

    if (uc_write_end_request_decode(view, &m) == UC_OK) {
        touch(m.ranges, m.range_count * UC_WRITTEN_BYTES);
    }
}

static void
decode_commit(struct uc_rpc_view view)
{
    struct uc_commit_request m;

    if (uc_commit_request_decode(view, &m) == UC_OK && m.has_bitmap) {
        touch(m.bitmap, m.bitmap_bytes);
    }
}

static void
decode_touch(struct uc_rpc_view view)
{
    struct uc_touch_request m;

    if (uc_touch_request_decode(view, &m) == UC_OK) {
        check_keys(m.keys);
    }
}

static void
decode_report(struct uc_rpc_view view)
{
    struct uc_report_request m;

    if (uc_report_request_decode(view, &m) == UC_OK) {
        touch_text(m.what);
    }
}

static void
decode_debug_flip(struct uc_rpc_view view)
{
    struct uc_debug_flip_request m;

    (void)!uc_debug_flip_request_decode(view, &m);
}

static void (*const decoders[])(struct uc_rpc_view view) = {decode_hello, decode_hello_reply,
        decode_attach, decode_attach_reply, decode_ping_reply, decode_stat_reply, decode_empty,
        decode_keys, decode_bitmap, decode_grant_reply, decode_grant, decode_alloc,
        decode_write_begin, decode_write_end, decode_commit, decode_touch, decode_report,
        decode_debug_flip};

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct uc_rpc_view view = {.bytes = bytes + 1, .length = length - 1};

    if (length == 0) {
        return 0;
    }

    (void)!uc_rpc_scan(view.bytes, view.length);
    decoders[bytes[0] % (sizeof(decoders) / sizeof(decoders[0]))](view);
    return 0;
}
