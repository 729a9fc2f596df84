/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file request_table.h
 * Registered requests by id: their facts and, per window, the recorded token.
 *
 * Threads: owned by the control thread.
 */

#ifndef UC_PROXY_REQUEST_TABLE_H
#define UC_PROXY_REQUEST_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include <ucm/request.h>
#include <ucm/status.h>
#include <ucm/token.h>

#include "core/base/text_map.h"

enum uc_window {
    UC_WINDOW_PREFETCH, /* in the order of the safety net */
    UC_WINDOW_GET,
    UC_WINDOW_PUT,
    UC_WINDOW_COUNT,
};

struct uc_request {
    struct uc_text_node node;                  /* by id */
    size_t branch;                             /* of a peer; 0 in an entry */
    struct uc_request_context *context;        /* owned copy; request_id points to `id` */
    struct uc_token *windows[UC_WINDOW_COUNT]; /* owned; NULL = closed */
    char id[];
};

struct uc_request_table;

UC_MUST_CHECK enum uc_status uc_request_table_create(struct uc_request_table **table_out);

/** Forgets every request; windows must be closed. NULL is allowed. */
void uc_request_table_destroy(struct uc_request_table *table);

/**
 * Register a request; the context is copied as far as its struct_size goes.
 *
 * @param[in] context       checked by scheduler.c: size and id are in bounds
 * @param[out] request_out  lives until it is removed
 * @retval UC_ERR_DUPLICATE_KEY  the id is registered
 * @retval UC_ERR_OUT_OF_MEMORY
 */
UC_MUST_CHECK enum uc_status uc_request_table_add(struct uc_request_table *table,
        const struct uc_request_context *context, struct uc_request **request_out);

/** @return the request, or NULL. */
struct uc_request *uc_request_table_find(struct uc_request_table *table, const char *request_id);

/** Forget one; its windows must be closed. */
void uc_request_table_remove(struct uc_request_table *table, struct uc_request *request);

/** @return any one of the registered requests, or NULL: for emptying the table. */
struct uc_request *uc_request_table_any(struct uc_request_table *table);

size_t uc_request_table_count(const struct uc_request_table *table);

#endif /* UC_PROXY_REQUEST_TABLE_H */
