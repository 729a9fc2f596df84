/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file server_list.h
 * The servers a client knows, by the names they were configured under, and which of them holds a key.
 * Immutable after create; any thread may read.
 */

#ifndef UC_CLUSTER_SERVER_LIST_H
#define UC_CLUSTER_SERVER_LIST_H

#include <stddef.h>
#include <stdint.h>

#include <ucm/block.h>
#include <ucm/compiler.h>
#include <ucm/dict.h>
#include <ucm/status.h>

#include "client/cluster/placement.h"

enum {
    UC_SERVER_NAME_MAX = 255, /* bytes of "HOST:PORT" or of a socket path, without terminator */
    UC_SERVER_PORT_DEFAULT = 7470,
    UC_SERVERS_MAX = 1024, /* as many as a token names */
};

/** Where a server listens. A plain value. */
struct uc_server_address {
    char name[UC_SERVER_NAME_MAX + 1]; /* exactly as configured: tokens carry it */
    char host[UC_SERVER_NAME_MAX + 1]; /* "" never; starts with '/' for a unix socket */
    uint16_t port;                     /* 0 for a unix socket */
};

struct uc_server_list {
    struct uc_server_address *servers;
    struct uc_placement_member *members; /* parallel to servers */
    size_t count;
    struct uc_placement_view view; /* of all members */
};

/** Parse "HOST", "HOST:PORT", "[V6]:PORT" or "/path/of/socket". @retval UC_ERR_INVALID_PARAM */
UC_MUST_CHECK enum uc_status uc_server_address_parse(
        const char *text, struct uc_server_address *address_out);

/**
 * Read `key`, a list of texts (a single text counts as a list of one). Each is an address, and may end in
 * "=WEIGHT" with a whole number from 1 to UC_PLACEMENT_WEIGHT_MAX (1 where it is left out): a server of weight
 * 2 holds twice as many blocks as one of weight 1. The weight is no part of the server's name.
 *
 * @param[out] list_out  set on success only; released by uc_server_list_fini()
 * @retval UC_ERR_INVALID_PARAM  missing, empty, not text, malformed, a server named twice, or a bad weight
 */
UC_MUST_CHECK enum uc_status uc_server_list_read(
        const struct uc_dict *config, const char *key, struct uc_server_list *list_out);

/** Zeroed lists are allowed. */
void uc_server_list_fini(struct uc_server_list *list);

/** @return index of the server of that name, or SIZE_MAX. @p name need not be terminated. */
size_t uc_server_list_find(const struct uc_server_list *list, const char *name, size_t length);

/** @return index of the server that holds @p key: uc_placement_place() among all of them. */
size_t uc_server_list_place(const struct uc_server_list *list, const struct uc_block_id *key);

#endif /* UC_CLUSTER_SERVER_LIST_H */
