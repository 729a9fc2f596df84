/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file token_payload.h
 * The payload "UCR1" of the remote store's tokens (ARCHITECTURE.md §6, R-2.16): where each key's block
 * lies, on which server, under which grant. Position independent, little endian, without padding:
 *
 *   header, 32 bytes
 *     0 u32 magic "UCR1"   4 u32 version 1     8 u32 nodes     12 u32 keys
 *    16 u32 copies        20 u32 zero         24 u64 bytes of the whole payload
 *   nodes × 80 bytes
 *     0 16 bytes server id  16 u64 incarnation  24 16 bytes attach key  40 u64 grant
 *    48 16 bytes MAC        64 u32 name offset  68 u32 name bytes  72 u32 kind  76 u32 zero
 *   keys × copies × 40 bytes: key 0 copy 0, key 0 copy 1, …
 *     0 u32 node            4 u32 region        8 u64 slot offset  16 u64 generation
 *    24 u64 length         32 u32 flags        36 u32 zero
 *   names, one after the other in the order of the nodes, not terminated
 *
 * The MAC of a node is SipHash-2-4-128 under that server's mac_key over the token's keys and then the
 * payload with every node's MAC zeroed. It is checked before anything is posted to that server: a
 * flipped bit must not become a write into a neighbour's slot.
 *
 * Threads: a uc_token_mac belongs to one thread at a time; the rest are pure functions. Only create
 * allocates.
 */

#ifndef UC_NET_TOKEN_PAYLOAD_H
#define UC_NET_TOKEN_PAYLOAD_H

#include <stddef.h>
#include <stdint.h>

#include <ucm/block.h>
#include <ucm/compiler.h>
#include <ucm/status.h>

enum {
    UC_TOKEN_MAC_BYTES = 16,
    UC_TOKEN_KEY_BYTES = 16, /* of a server id, an attach key, a mac key */
    UC_TOKEN_NAME_MAX = 255,
    UC_TOKEN_NODES_MAX = 1024,
    UC_TOKEN_COPIES_MAX = 8,
};

enum uc_token_kind {
    UC_TOKEN_READ = 1,  /* the grant is a pin */
    UC_TOKEN_WRITE = 2, /* the grant is an alloc */
};

/** A server that the token names. A plain value that borrows its name (not terminated). */
struct uc_token_node {
    const char *name; /* exactly as configured; workers resolve it as the scheduler did */
    size_t name_bytes;
    uint8_t server_id[UC_TOKEN_KEY_BYTES];
    uint8_t attach_key[UC_TOKEN_KEY_BYTES];
    uint64_t incarnation;
    uint64_t grant;
    enum uc_token_kind kind;
};

/** Where one copy of one key's block lies. A plain value. */
struct uc_token_entry {
    uint32_t node_idx;
    uint32_t region_idx;
    uint64_t offset_bytes; /* of the slot in its region; not checked here */
    uint64_t generation;
    uint64_t length_bytes;
    uint32_t flags; /* enum uc_entry_flags of net/rpc/messages.h */
};

/** What a payload is made of. A plain value that borrows its arrays. */
struct uc_token_content {
    const struct uc_token_node *nodes;
    const uint8_t (*mac_keys)[UC_TOKEN_KEY_BYTES]; /* one per node; they do not travel */
    size_t node_count;
    const struct uc_block_id *keys; /* of the token; they travel outside the payload */
    size_t key_count;
    size_t copies;                        /* entries per key, usually 1 */
    const struct uc_token_entry *entries; /* key_count · copies */
};

/** A parsed payload; borrows the bytes. A plain value. */
struct uc_token_view {
    const uint8_t *bytes;
    size_t length_bytes;
    size_t node_count;
    size_t key_count;
    size_t copies;
};

struct uc_token_mac;

/** Look the MAC up once; all later use is free of allocation. @retval UC_ERR_UNSUPPORTED */
UC_MUST_CHECK enum uc_status uc_token_mac_create(struct uc_token_mac **mac_out);
/** NULL is allowed. */
void uc_token_mac_destroy(struct uc_token_mac *mac);

/** @retval UC_ERR_INVALID_PARAM  a count or a name is 0 or above its limit */
UC_MUST_CHECK enum uc_status uc_token_payload_bytes(
        const struct uc_token_content *content, size_t *bytes_out);

/**
 * Write the payload with its MACs.
 *
 * @param[in] buffer_bytes  at least what uc_token_payload_bytes() gave
 * @retval UC_ERR_INVALID_PARAM  as above, an entry names no node, or the buffer is too small
 */
UC_MUST_CHECK enum uc_status uc_token_payload_encode(struct uc_token_mac *mac,
        const struct uc_token_content *content, uint8_t *buffer, size_t buffer_bytes);

/**
 * Check untrusted bytes completely: afterwards every node and entry can be read. It says nothing about
 * who wrote them; see uc_token_payload_verify().
 *
 * @param[in] key_count  of the token that carries the payload
 * @retval UC_ERR_INVALID_PARAM  the text names the field
 */
UC_MUST_CHECK enum uc_status uc_token_payload_parse(const uint8_t *bytes, size_t length_bytes,
        size_t key_count, struct uc_token_view *view_out);

/** @p idx below view->node_count. */
void uc_token_payload_node(
        const struct uc_token_view *view, size_t idx, struct uc_token_node *node_out);
/** Entry of copy @p copy of key @p key_idx; both below their counts. */
void uc_token_payload_entry(const struct uc_token_view *view, size_t key_idx, size_t copy,
        struct uc_token_entry *entry_out);

/**
 * Check the MAC of one node; constant time in the comparison.
 *
 * @param[in] keys     view->key_count of them, as the token carries them
 * @param[in] mac_key  from that server's hello or attach reply
 * @retval UC_ERR_INVALID_PARAM  the token was changed, or another server or session signed it
 */
UC_MUST_CHECK enum uc_status uc_token_payload_verify(struct uc_token_mac *mac,
        const struct uc_token_view *view, const struct uc_block_id *keys, size_t node_idx,
        const uint8_t mac_key[UC_TOKEN_KEY_BYTES]);

#endif /* UC_NET_TOKEN_PAYLOAD_H */
