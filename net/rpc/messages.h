/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file messages.h
 * One encode / decode pair per message of net/PROTOCOL.md. Structs are plain values; decoded ones borrow
 * from the message's bytes and live as long as those.
 *
 * encode: appends one msgpack object (params array, or result) to a buffer; running out of memory shows
 * as buffer->failed. decode: bytes are untrusted, already scanned; UC_ERR_INVALID_PARAM names the field.
 * Unknown keys of maps are ignored, missing optional ones keep zero.
 */

#ifndef UC_NET_RPC_MESSAGES_H
#define UC_NET_RPC_MESSAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/block.h>
#include <ucm/compiler.h>
#include <ucm/status.h>

#include "net/fabric.h"
#include "net/rpc/buffer.h"

enum {
    UC_PROTOCOL_VERSION = 1,
    UC_SERVER_ID_BYTES = 16,
    UC_ATTACH_KEY_BYTES = 16,
    UC_MAC_KEY_BYTES = 16,
    UC_NAME_MAX = 63,        /* bytes of a namespace, client or fabric name */
    UC_KEYS_PER_CALL = 65536 /* cap on keys of one call */
};

enum uc_access {
    UC_ACCESS_RW,    /* "rw" */
    UC_ACCESS_RO,    /* "ro" */
    UC_ACCESS_ADMIN, /* "admin" */
};

/** A borrowed text, not terminated. */
struct uc_rpc_text {
    const char *bytes;
    size_t length;
};

struct uc_hello_request {
    uint32_t version;
    struct uc_rpc_text name_space; /* "namespace" */
    enum uc_access access;
    struct uc_rpc_text credential; /* may be empty */
    struct uc_rpc_text client;     /* for logs */
};

struct uc_hello_reply {
    uint8_t server_id[UC_SERVER_ID_BYTES];
    uint64_t incarnation;
    uint64_t session;
    uint64_t lease_ms;
    uint64_t block_bytes;
    uint64_t slot_bytes;
    uint8_t attach_key[UC_ATTACH_KEY_BYTES];
    uint8_t mac_key[UC_MAC_KEY_BYTES];
};

struct uc_attach_request {
    uint32_t version;
    uint8_t attach_key[UC_ATTACH_KEY_BYTES];
    uint64_t incarnation; /* the token's; another one is Stale */
    struct uc_rpc_text client;
};

enum {
    UC_FABRICS_MAX = 8,
};

/** How to reach the server over one fabric. */
struct uc_attach_fabric {
    struct uc_rpc_text name;    /* "tcp", "verbs" */
    struct uc_rpc_text address; /* empty: the address of the RPC connection */
    uint16_t port;
    const uint8_t *keys; /* 16 bytes per region: u64 address, u64 key (little endian) */
};

struct uc_attach_reply {
    uint64_t attachment;
    uint64_t incarnation;
    uint64_t lease_ms;
    uint64_t block_bytes;
    uint64_t slot_bytes;
    enum uc_access access;
    uint8_t mac_key[UC_MAC_KEY_BYTES];
    uint8_t nonce[UC_FABRIC_NONCE_BYTES];
    size_t region_count;
    const uint8_t *region_lengths; /* 8 bytes per region, little endian */
    size_t fabric_count;
    struct uc_attach_fabric fabrics[UC_FABRICS_MAX];
};

/** Key lists travel as one bin of 16·n bytes. */
struct uc_keys_view {
    const struct uc_block_id *ids;
    size_t count;
};

/** Of pin and alloc: one packed entry per key, 32 bytes, little endian. */
enum {
    UC_ENTRY_BYTES = 32,
};
enum uc_entry_flags {
    UC_ENTRY_PRESENT = 1u << 0, /* committed already: transfer nothing */
    UC_ENTRY_SHARED = 1u << 1,  /* somebody else is writing it: transfer nothing */
    UC_ENTRY_LOST = 1u << 2,    /* of tokens only: no server has granted it, its dump fails */
};
struct uc_entry {
    uint32_t region_idx;
    uint32_t flags;
    uint64_t offset_bytes; /* of the slot in the region */
    uint64_t generation;
    uint64_t length_bytes; /* pin: stored length; alloc: block_bytes */
};
void uc_entry_put(uint8_t *bytes, const struct uc_entry *entry);
void uc_entry_get(const uint8_t *bytes, struct uc_entry *entry_out);

struct uc_grant_reply {
    uint64_t grant;
    const uint8_t *entries; /* UC_ENTRY_BYTES each */
    size_t count;
};

struct uc_alloc_request {
    struct uc_keys_view keys;
    bool has_ttl;
    uint64_t ttl_ms;
};

struct uc_write_begin_request {
    uint64_t grant;
    uint64_t bracket; /* chosen by the attachment, unique among its open ones */
    uint64_t first_key;
    uint64_t key_count;
};

/** Bytes of one block that a bracket wrote; 24 bytes packed. length 0: nothing. */
enum {
    UC_WRITTEN_BYTES = 24,
};
struct uc_written_range {
    uint64_t offset_bytes;
    uint64_t length_bytes;
    uint64_t announced_bytes; /* length of the whole block, as far as this writer knows */
};
void uc_written_range_put(uint8_t *bytes, const struct uc_written_range *range);
void uc_written_range_get(const uint8_t *bytes, struct uc_written_range *range_out);

struct uc_write_end_request {
    uint64_t bracket;
    bool ok;
    const uint8_t *ranges; /* UC_WRITTEN_BYTES per key of the bracket; empty if not ok */
    size_t range_count;
};

struct uc_commit_request {
    uint64_t grant;
    bool has_bitmap;
    bool success;          /* without bitmap */
    const uint8_t *bitmap; /* bit i = verdict of key i of the grant */
    size_t bitmap_bytes;
};

struct uc_touch_request {
    struct uc_keys_view keys;
    bool has_ttl;
    uint64_t ttl_ms;
};

struct uc_report_request {
    struct uc_block_id key;
    uint64_t generation;
    struct uc_rpc_text what;
};

struct uc_debug_flip_request {
    struct uc_block_id key;
    uint64_t offset_bytes;
};

struct uc_ping_reply {
    uint64_t server_time_ms;
    uint64_t session_count;
};

/* X(field): the counters of stat, a map of unsigned integers with exactly these names. */
#define UC_STAT_MAP(X)        \
    X(capacity_blocks)        \
    X(block_bytes)            \
    X(slot_bytes)             \
    X(blocks)                 \
    X(free_slots)             \
    X(reserved_slots)         \
    X(pinned_slots)           \
    X(draining_slots)         \
    X(evictable_slots)        \
    X(sessions)               \
    X(attachments)            \
    X(grants)                 \
    X(open_brackets)          \
    X(lookup_keys_total)      \
    X(lookup_hits_total)      \
    X(pinned_keys_total)      \
    X(alloc_keys_total)       \
    X(present_keys_total)     \
    X(shared_keys_total)      \
    X(committed_blocks_total) \
    X(evicted_blocks_total)   \
    X(released_blocks_total)  \
    X(holes_total)            \
    X(reports_total)          \
    X(revoked_blocks_total)   \
    X(fences_total)           \
    X(read_bytes_total)       \
    X(written_bytes_total)    \
    X(uptime_ms)              \
    X(incarnation)

#define UC_STAT_FIELD_(field) uint64_t field;
struct uc_stat_reply {
    UC_STAT_MAP(UC_STAT_FIELD_)
};
#undef UC_STAT_FIELD_

void uc_hello_request_encode(struct uc_rpc_buffer *buffer, const struct uc_hello_request *m);
UC_MUST_CHECK enum uc_status uc_hello_request_decode(
        struct uc_rpc_view params, struct uc_hello_request *out);
void uc_hello_reply_encode(struct uc_rpc_buffer *buffer, const struct uc_hello_reply *m);
UC_MUST_CHECK enum uc_status uc_hello_reply_decode(
        struct uc_rpc_view result, struct uc_hello_reply *out);
void uc_attach_request_encode(struct uc_rpc_buffer *buffer, const struct uc_attach_request *m);
UC_MUST_CHECK enum uc_status uc_attach_request_decode(
        struct uc_rpc_view params, struct uc_attach_request *out);
void uc_attach_reply_encode(struct uc_rpc_buffer *buffer, const struct uc_attach_reply *m);
UC_MUST_CHECK enum uc_status uc_attach_reply_decode(
        struct uc_rpc_view result, struct uc_attach_reply *out);

/** Params []: ping, stat. */
void uc_empty_request_encode(struct uc_rpc_buffer *buffer);
UC_MUST_CHECK enum uc_status uc_empty_request_decode(struct uc_rpc_view params);
void uc_ping_reply_encode(struct uc_rpc_buffer *buffer, const struct uc_ping_reply *m);
UC_MUST_CHECK enum uc_status uc_ping_reply_decode(
        struct uc_rpc_view result, struct uc_ping_reply *out);
void uc_stat_reply_encode(struct uc_rpc_buffer *buffer, const struct uc_stat_reply *m);
UC_MUST_CHECK enum uc_status uc_stat_reply_decode(
        struct uc_rpc_view result, struct uc_stat_reply *out);

/** Params [keys]: lookup, pin. */
void uc_keys_request_encode(struct uc_rpc_buffer *buffer, struct uc_keys_view keys);
UC_MUST_CHECK enum uc_status uc_keys_request_decode(
        struct uc_rpc_view params, struct uc_keys_view *out);
/** Result of lookup: bin of ceil(n / 8) bytes, bit i = key i. */
void uc_bitmap_reply_encode(struct uc_rpc_buffer *buffer, const uint8_t *bitmap, size_t key_count);
UC_MUST_CHECK enum uc_status uc_bitmap_reply_decode(
        struct uc_rpc_view result, size_t key_count, const uint8_t **bitmap_out);
/** Result of pin and alloc. */
void uc_grant_reply_encode(struct uc_rpc_buffer *buffer, const struct uc_grant_reply *m);
UC_MUST_CHECK enum uc_status uc_grant_reply_decode(
        struct uc_rpc_view result, struct uc_grant_reply *out);
/** Params [grant]: unpin. */
void uc_grant_request_encode(struct uc_rpc_buffer *buffer, uint64_t grant);
UC_MUST_CHECK enum uc_status uc_grant_request_decode(
        struct uc_rpc_view params, uint64_t *grant_out);
void uc_alloc_request_encode(struct uc_rpc_buffer *buffer, const struct uc_alloc_request *m);
UC_MUST_CHECK enum uc_status uc_alloc_request_decode(
        struct uc_rpc_view params, struct uc_alloc_request *out);
void uc_write_begin_request_encode(
        struct uc_rpc_buffer *buffer, const struct uc_write_begin_request *m);
UC_MUST_CHECK enum uc_status uc_write_begin_request_decode(
        struct uc_rpc_view params, struct uc_write_begin_request *out);
void uc_write_end_request_encode(
        struct uc_rpc_buffer *buffer, const struct uc_write_end_request *m);
UC_MUST_CHECK enum uc_status uc_write_end_request_decode(
        struct uc_rpc_view params, struct uc_write_end_request *out);
void uc_commit_request_encode(struct uc_rpc_buffer *buffer, const struct uc_commit_request *m);
UC_MUST_CHECK enum uc_status uc_commit_request_decode(
        struct uc_rpc_view params, struct uc_commit_request *out);
void uc_touch_request_encode(struct uc_rpc_buffer *buffer, const struct uc_touch_request *m);
UC_MUST_CHECK enum uc_status uc_touch_request_decode(
        struct uc_rpc_view params, struct uc_touch_request *out);
void uc_report_request_encode(struct uc_rpc_buffer *buffer, const struct uc_report_request *m);
UC_MUST_CHECK enum uc_status uc_report_request_decode(
        struct uc_rpc_view params, struct uc_report_request *out);
void uc_debug_flip_request_encode(
        struct uc_rpc_buffer *buffer, const struct uc_debug_flip_request *m);
UC_MUST_CHECK enum uc_status uc_debug_flip_request_decode(
        struct uc_rpc_view params, struct uc_debug_flip_request *out);

#endif /* UC_NET_RPC_MESSAGES_H */
