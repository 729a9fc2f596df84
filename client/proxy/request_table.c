/* SPDX-License-Identifier: Apache-2.0 */

#include "client/proxy/request_table.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/list.h"

struct uc_request_table {
    struct uc_text_map by_id;
};

enum uc_status
uc_request_table_create(struct uc_request_table **table_out)
{
    struct uc_request_table *table = calloc(1, sizeof(*table));

    if (table == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "no memory for the request table");
    }

    uc_text_map_init(&table->by_id);
    *table_out = table;
    return UC_OK;
}

static void
destroy_request(struct uc_request *request)
{
    for (size_t window = 0; window < UC_WINDOW_COUNT; window++) {
        assert(request->windows[window] == NULL);
    }
    free(request->context);
    free(request);
}

void
uc_request_table_destroy(struct uc_request_table *table)
{
    struct uc_request *request;

    if (table == NULL) {
        return;
    }

    while ((request = uc_request_table_any(table)) != NULL) {
        uc_request_table_remove(table, request);
    }
    uc_text_map_fini(&table->by_id);
    free(table);
}

static struct uc_request *
request_of(struct uc_text_node *node)
{
    return node == NULL ? NULL : uc_list_entry(node, struct uc_request, node);
}

struct uc_request *
uc_request_table_find(struct uc_request_table *table, const char *request_id)
{
    return request_of(uc_text_map_find(&table->by_id, request_id));
}

/* The whole struct, so that facts of a newer caller reach a newer store through this proxy. */
static struct uc_request *
copy_request(const struct uc_request_context *context)
{
    size_t id_bytes = strlen(context->request_id) + 1;
    size_t context_bytes =
            context->struct_size > sizeof(*context) ? context->struct_size : sizeof(*context);
    struct uc_request *request;

    request = calloc(1, sizeof(*request) + id_bytes);
    if (request == NULL) {
        return NULL;
    }
    request->context = calloc(1, context_bytes);
    if (request->context == NULL) {
        goto err_free_request;
    }

    memcpy(request->id, context->request_id, id_bytes);
    memcpy(request->context, context, context->struct_size);
    request->context->request_id = request->id;
    /* What an older caller's struct is too short for is absent, whatever its bits say. */
    if (context->struct_size < offsetof(struct uc_request_context, ttl_ms) + sizeof(uint64_t)) {
        request->context->present &= ~UC_REQUEST_TTL;
    }
    if (context->struct_size <
            offsetof(struct uc_request_context, total_block_count) + sizeof(uint64_t)) {
        request->context->present &= ~UC_REQUEST_TOTAL_BLOCK_COUNT;
    }
    request->context->struct_size = (uint32_t)context_bytes;
    return request;

err_free_request:
    free(request);
    return NULL;
}

enum uc_status
uc_request_table_add(struct uc_request_table *table, const struct uc_request_context *context,
        struct uc_request **request_out)
{
    struct uc_request *request;

    if (uc_request_table_find(table, context->request_id) != NULL) {
        return uc_error(
                UC_ERR_DUPLICATE_KEY, "request %.64s is registered already", context->request_id);
    }
    request = copy_request(context);
    if (request == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "no memory for request %.64s", context->request_id);
    }

    uc_text_map_add(&table->by_id, &request->node, request->id);
    *request_out = request;
    return UC_OK;
}

void
uc_request_table_remove(struct uc_request_table *table, struct uc_request *request)
{
    uc_text_map_remove(&table->by_id, &request->node);
    destroy_request(request);
}

struct uc_request *
uc_request_table_any(struct uc_request_table *table)
{
    return request_of(uc_text_map_next(&table->by_id, NULL));
}

size_t
uc_request_table_count(const struct uc_request_table *table)
{
    return table->by_id.count;
}
