/* SPDX-License-Identifier: Apache-2.0 */

#include "net/token_payload.h"

#include <assert.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/bytes.h"

enum {
    TOKEN_MAGIC = 0x31524355, /* "UCR1" */
    TOKEN_VERSION = 1,

    HEADER_BYTES = 32,
    NODE_BYTES = 80,
    ENTRY_BYTES = 40,

    NODE_MAC_OFFSET = 48,
    NODE_NAME_OFFSET = 64,
    NODE_NAME_BYTES_OFFSET = 68,
    NODE_KIND_OFFSET = 72,
    NODE_ZERO_OFFSET = 76,

    ENTRY_ZERO_OFFSET = 36,

    /* So that sizes below fit 32 bits, names included. */
    TOKEN_ENTRIES_MAX = 1 << 26,
};

static_assert(NODE_MAC_OFFSET + UC_TOKEN_MAC_BYTES == NODE_NAME_OFFSET, "node");
static_assert(NODE_ZERO_OFFSET + 4 == NODE_BYTES, "node");
static_assert(ENTRY_ZERO_OFFSET + 4 == ENTRY_BYTES, "entry");
static_assert((uint64_t)TOKEN_ENTRIES_MAX * ENTRY_BYTES +
                              (uint64_t)UC_TOKEN_NODES_MAX * (NODE_BYTES + UC_TOKEN_NAME_MAX) <
                      UINT32_MAX,
        "name offsets are 32 bits");

struct uc_token_mac {
    EVP_MAC_CTX *context;
};

enum uc_status
uc_token_mac_create(struct uc_token_mac **mac_out)
{
    struct uc_token_mac *mac;
    EVP_MAC *algorithm;

    mac = calloc(1, sizeof(*mac));
    if (mac == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "token: no memory for the MAC");
    }

    algorithm = EVP_MAC_fetch(NULL, "SIPHASH", NULL);
    if (algorithm == NULL) {
        goto err_free_mac;
    }
    mac->context = EVP_MAC_CTX_new(algorithm);
    EVP_MAC_free(algorithm); /* the context holds its own reference */
    if (mac->context == NULL) {
        goto err_free_mac;
    }

    *mac_out = mac;
    return UC_OK;

err_free_mac:
    free(mac);
    return uc_error(UC_ERR_UNSUPPORTED,
            "token: OpenSSL offers no SIPHASH; its default provider must be active");
}

void
uc_token_mac_destroy(struct uc_token_mac *mac)
{
    if (mac == NULL) {
        return;
    }

    EVP_MAC_CTX_free(mac->context);
    free(mac);
}

/* Feed the keys and the payload, with zeros in place of the nodes' MACs. */
static bool
mac_update(EVP_MAC_CTX *context, const struct uc_token_view *view, const struct uc_block_id *keys)
{
    static const uint8_t zeros[UC_TOKEN_MAC_BYTES];
    const uint8_t *from = view->bytes;
    bool ok = EVP_MAC_update(context, keys[0].bytes, view->key_count * UC_BLOCK_ID_BYTES) == 1;

    for (size_t idx = 0; idx < view->node_count && ok; idx++) {
        const uint8_t *place = view->bytes + HEADER_BYTES + idx * NODE_BYTES + NODE_MAC_OFFSET;

        ok = EVP_MAC_update(context, from, (size_t)(place - from)) == 1 &&
             EVP_MAC_update(context, zeros, sizeof(zeros)) == 1;
        from = place + UC_TOKEN_MAC_BYTES;
    }
    return ok &&
           EVP_MAC_update(context, from, view->length_bytes - (size_t)(from - view->bytes)) == 1;
}

static enum uc_status
mac_compute(struct uc_token_mac *mac, const struct uc_token_view *view,
        const struct uc_block_id *keys, const uint8_t *mac_key, uint8_t *result)
{
    size_t size = UC_TOKEN_MAC_BYTES;
    OSSL_PARAM params[] = {
            OSSL_PARAM_construct_size_t(OSSL_MAC_PARAM_SIZE, &size),
            OSSL_PARAM_construct_end(),
    };
    size_t written = 0;

    if (EVP_MAC_init(mac->context, mac_key, UC_TOKEN_KEY_BYTES, params) != 1 ||
            !mac_update(mac->context, view, keys) ||
            EVP_MAC_final(mac->context, result, &written, UC_TOKEN_MAC_BYTES) != 1 ||
            written != UC_TOKEN_MAC_BYTES) {
        return uc_error(UC_ERR_GENERAL, "token: OpenSSL could not compute the MAC");
    }

    return UC_OK;
}

static size_t
entries_offset(size_t node_count)
{
    return HEADER_BYTES + node_count * NODE_BYTES;
}

static size_t
names_offset(size_t node_count, size_t key_count, size_t copies)
{
    return entries_offset(node_count) + key_count * copies * ENTRY_BYTES;
}

/* @return NULL, or what is wrong; afterwards no size computed from them overflows */
static const char *
check_counts(uint64_t node_count, uint64_t key_count, uint64_t copies)
{
    if (node_count == 0 || node_count > UC_TOKEN_NODES_MAX) {
        return "the number of nodes is 0 or too large";
    }
    if (copies == 0 || copies > UC_TOKEN_COPIES_MAX) {
        return "the number of copies is 0 or too large";
    }
    if (key_count == 0 || key_count > TOKEN_ENTRIES_MAX / copies) {
        return "the number of keys is 0 or too large";
    }
    return NULL;
}

enum uc_status
uc_token_payload_bytes(const struct uc_token_content *content, size_t *bytes_out)
{
    const char *fault = check_counts(content->node_count, content->key_count, content->copies);
    size_t bytes;

    if (fault != NULL) {
        return uc_error(UC_ERR_INVALID_PARAM, "token: %s", fault);
    }

    bytes = names_offset(content->node_count, content->key_count, content->copies);
    for (size_t idx = 0; idx < content->node_count; idx++) {
        if (content->nodes[idx].name_bytes == 0 ||
                content->nodes[idx].name_bytes > UC_TOKEN_NAME_MAX) {
            return uc_error(UC_ERR_INVALID_PARAM, "token: a server name has 1 to %d bytes",
                    UC_TOKEN_NAME_MAX);
        }
        bytes += content->nodes[idx].name_bytes;
    }
    *bytes_out = bytes;
    return UC_OK;
}

static void
put_header(uint8_t *bytes, const struct uc_token_content *content, size_t length)
{
    uc_put_le32(bytes, TOKEN_MAGIC);
    uc_put_le32(bytes + 4, TOKEN_VERSION);
    uc_put_le32(bytes + 8, (uint32_t)content->node_count);
    uc_put_le32(bytes + 12, (uint32_t)content->key_count);
    uc_put_le32(bytes + 16, (uint32_t)content->copies);
    uc_put_le32(bytes + 20, 0);
    uc_put_le64(bytes + 24, length);
}

/* The MAC is left out. */
static void
put_node(uint8_t *bytes, const struct uc_token_node *node, size_t name_offset)
{
    memcpy(bytes, node->server_id, UC_TOKEN_KEY_BYTES);
    uc_put_le64(bytes + 16, node->incarnation);
    memcpy(bytes + 24, node->attach_key, UC_TOKEN_KEY_BYTES);
    uc_put_le64(bytes + 40, node->grant);
    uc_put_le32(bytes + NODE_NAME_OFFSET, (uint32_t)name_offset);
    uc_put_le32(bytes + NODE_NAME_BYTES_OFFSET, (uint32_t)node->name_bytes);
    uc_put_le32(bytes + NODE_KIND_OFFSET, (uint32_t)node->kind);
    uc_put_le32(bytes + NODE_ZERO_OFFSET, 0);
}

static void
put_entry(uint8_t *bytes, const struct uc_token_entry *entry)
{
    uc_put_le32(bytes, entry->node_idx);
    uc_put_le32(bytes + 4, entry->region_idx);
    uc_put_le64(bytes + 8, entry->offset_bytes);
    uc_put_le64(bytes + 16, entry->generation);
    uc_put_le64(bytes + 24, entry->length_bytes);
    uc_put_le32(bytes + 32, entry->flags);
    uc_put_le32(bytes + ENTRY_ZERO_OFFSET, 0);
}

static enum uc_status
put_macs(struct uc_token_mac *mac, const struct uc_token_content *content, uint8_t *buffer,
        size_t length)
{
    struct uc_token_view view = {
            .bytes = buffer,
            .length_bytes = length,
            .node_count = content->node_count,
            .key_count = content->key_count,
            .copies = content->copies,
    };

    for (size_t idx = 0; idx < content->node_count; idx++) {
        uint8_t *place = buffer + HEADER_BYTES + idx * NODE_BYTES + NODE_MAC_OFFSET;
        enum uc_status status =
                mac_compute(mac, &view, content->keys, content->mac_keys[idx], place);

        if (status != UC_OK) {
            return status;
        }
    }
    return UC_OK;
}

enum uc_status
uc_token_payload_encode(struct uc_token_mac *mac, const struct uc_token_content *content,
        uint8_t *buffer, size_t buffer_bytes)
{
    uint8_t *place = buffer + HEADER_BYTES;
    size_t name_offset;
    size_t length;
    enum uc_status status = uc_token_payload_bytes(content, &length);

    if (status != UC_OK) {
        return status;
    }
    if (buffer_bytes < length) {
        return uc_error(
                UC_ERR_INVALID_PARAM, "token: %zu bytes of room, %zu needed", buffer_bytes, length);
    }

    put_header(buffer, content, length);
    name_offset = names_offset(content->node_count, content->key_count, content->copies);
    for (size_t idx = 0; idx < content->node_count; idx++, place += NODE_BYTES) {
        const struct uc_token_node *node = &content->nodes[idx];

        put_node(place, node, name_offset);
        memcpy(buffer + name_offset, node->name, node->name_bytes);
        name_offset += node->name_bytes;
    }
    for (size_t idx = 0; idx < content->key_count * content->copies; idx++, place += ENTRY_BYTES) {
        if (content->entries[idx].node_idx >= content->node_count) {
            return uc_error(UC_ERR_INVALID_PARAM, "token: entry %zu names node %u of %zu", idx,
                    content->entries[idx].node_idx, content->node_count);
        }
        put_entry(place, &content->entries[idx]);
    }
    return put_macs(mac, content, buffer, length);
}

/* Names lie one after the other behind the entries and end with the payload. NULL, or the fault. */
static const char *
check_nodes(const struct uc_token_view *view)
{
    const uint8_t *node = view->bytes + HEADER_BYTES;
    size_t name_offset = names_offset(view->node_count, view->key_count, view->copies);

    for (size_t idx = 0; idx < view->node_count; idx++, node += NODE_BYTES) {
        uint32_t name_bytes = uc_get_le32(node + NODE_NAME_BYTES_OFFSET);
        uint32_t kind = uc_get_le32(node + NODE_KIND_OFFSET);

        if (uc_get_le32(node + NODE_NAME_OFFSET) != name_offset || name_bytes == 0 ||
                name_bytes > UC_TOKEN_NAME_MAX || name_bytes > view->length_bytes - name_offset) {
            return "a server name lies elsewhere";
        }
        if (kind != UC_TOKEN_READ && kind != UC_TOKEN_WRITE) {
            return "a grant is neither for reading nor for writing";
        }
        if (uc_get_le32(node + NODE_ZERO_OFFSET) != 0) {
            return "a spare field of a node is not zero";
        }
        name_offset += name_bytes;
    }
    return name_offset == view->length_bytes ? NULL : "bytes follow the names";
}

static const char *
check_entries(const struct uc_token_view *view)
{
    const uint8_t *entry = view->bytes + entries_offset(view->node_count);

    for (size_t idx = 0; idx < view->key_count * view->copies; idx++, entry += ENTRY_BYTES) {
        if (uc_get_le32(entry) >= view->node_count) {
            return "an entry names a node that is not there";
        }
        if (uc_get_le32(entry + ENTRY_ZERO_OFFSET) != 0) {
            return "a spare field of an entry is not zero";
        }
    }
    return NULL;
}

/* Fill the view from a header of enough bytes. NULL, or the fault. */
static const char *
check_header(
        const uint8_t *bytes, size_t length_bytes, size_t key_count, struct uc_token_view *view)
{
    const char *fault;

    if (uc_get_le32(bytes) != TOKEN_MAGIC || uc_get_le32(bytes + 4) != TOKEN_VERSION) {
        return "not a UCR1 payload of version 1; another store or release made it";
    }
    view->bytes = bytes;
    view->length_bytes = length_bytes;
    view->node_count = uc_get_le32(bytes + 8);
    view->key_count = uc_get_le32(bytes + 12);
    view->copies = uc_get_le32(bytes + 16);
    if (view->key_count != key_count) {
        return "another number of keys than the token has";
    }
    if (uc_get_le64(bytes + 24) != length_bytes || uc_get_le32(bytes + 20) != 0) {
        return "another length than its header says";
    }
    fault = check_counts(view->node_count, view->key_count, view->copies);
    if (fault != NULL) {
        return fault;
    }
    if (names_offset(view->node_count, view->key_count, view->copies) > length_bytes) {
        return "cut short";
    }
    return NULL;
}

enum uc_status
uc_token_payload_parse(
        const uint8_t *bytes, size_t length_bytes, size_t key_count, struct uc_token_view *view_out)
{
    struct uc_token_view view;
    const char *fault = "cut short";

    if (length_bytes >= HEADER_BYTES) {
        fault = check_header(bytes, length_bytes, key_count, &view);
        if (fault == NULL) {
            fault = check_nodes(&view);
        }
        if (fault == NULL) {
            fault = check_entries(&view);
        }
    }
    if (fault != NULL) {
        return uc_error(
                UC_ERR_INVALID_PARAM, "token payload of %zu bytes: %s", length_bytes, fault);
    }

    *view_out = view;
    return UC_OK;
}

void
uc_token_payload_node(const struct uc_token_view *view, size_t idx, struct uc_token_node *node_out)
{
    const uint8_t *node = view->bytes + HEADER_BYTES + idx * NODE_BYTES;

    assert(idx < view->node_count);
    memcpy(node_out->server_id, node, UC_TOKEN_KEY_BYTES);
    node_out->incarnation = uc_get_le64(node + 16);
    memcpy(node_out->attach_key, node + 24, UC_TOKEN_KEY_BYTES);
    node_out->grant = uc_get_le64(node + 40);
    node_out->name = (const char *)view->bytes + uc_get_le32(node + NODE_NAME_OFFSET);
    node_out->name_bytes = uc_get_le32(node + NODE_NAME_BYTES_OFFSET);
    node_out->kind = (enum uc_token_kind)uc_get_le32(node + NODE_KIND_OFFSET);
}

void
uc_token_payload_entry(const struct uc_token_view *view, size_t key_idx, size_t copy,
        struct uc_token_entry *entry_out)
{
    const uint8_t *entry = view->bytes + entries_offset(view->node_count) +
                           (key_idx * view->copies + copy) * ENTRY_BYTES;

    assert(key_idx < view->key_count && copy < view->copies);
    entry_out->node_idx = uc_get_le32(entry);
    entry_out->region_idx = uc_get_le32(entry + 4);
    entry_out->offset_bytes = uc_get_le64(entry + 8);
    entry_out->generation = uc_get_le64(entry + 16);
    entry_out->length_bytes = uc_get_le64(entry + 24);
    entry_out->flags = uc_get_le32(entry + 32);
}

enum uc_status
uc_token_payload_verify(struct uc_token_mac *mac, const struct uc_token_view *view,
        const struct uc_block_id *keys, size_t node_idx, const uint8_t mac_key[UC_TOKEN_KEY_BYTES])
{
    const uint8_t *claimed = view->bytes + HEADER_BYTES + node_idx * NODE_BYTES + NODE_MAC_OFFSET;
    uint8_t expected[UC_TOKEN_MAC_BYTES];
    enum uc_status status;

    assert(node_idx < view->node_count);
    status = mac_compute(mac, view, keys, mac_key, expected);
    if (status != UC_OK) {
        return status;
    }
    if (CRYPTO_memcmp(expected, claimed, sizeof(expected)) != 0) {
        return uc_error(UC_ERR_INVALID_PARAM, "token: its MAC does not fit: it was changed on the "
                                              "way, or made under another session");
    }

    return UC_OK;
}
