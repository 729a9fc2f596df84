/* SPDX-License-Identifier: Apache-2.0 */

#include "client/proxy/request_table.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum {
    FIRST_BUCKETS = 64 /* a power of two, as all later counts */
};

struct uc_request_table {
    uint64_t seed; /* request ids come from users: their buckets must not be foreseeable */
    size_t count;
    size_t bucket_count;
    struct uc_request **buckets;
};

static uint64_t
hash_text(uint64_t seed, const char *text)
{
    uint64_t hash = seed ^ 0xcbf29ce484222325ull;

    for (const char *at = text; *at != '\0'; at++) {
        hash = (hash ^ (uint8_t)*at) * 0x9e3779b97f4a7c15ull;
        hash ^= hash >> 29;
    }

    return hash ^ hash >> 32;
}

static struct uc_request **
bucket_of(const struct uc_request_table *table, uint64_t hash)
{
    return &table->buckets[(size_t)hash & (table->bucket_count - 1)];
}

/* Longer chains are slower, nothing else: without memory the table stays as it is. */
static void
grow(struct uc_request_table *table)
{
    size_t new_count = table->bucket_count * 2;
    struct uc_request **buckets = calloc(new_count, sizeof(buckets[0]));

    if (buckets == NULL) {
        return;
    }

    for (size_t idx = 0; idx < table->bucket_count; idx++) {
        struct uc_request *request = table->buckets[idx];

        while (request != NULL) {
            struct uc_request *next = request->next;
            struct uc_request **bucket = &buckets[(size_t)request->hash & (new_count - 1)];

            request->next = *bucket;
            *bucket = request;
            request = next;
        }
    }
    free(table->buckets);
    table->buckets = buckets;
    table->bucket_count = new_count;
}

enum uc_status
uc_request_table_create(struct uc_request_table **table_out)
{
    struct uc_request_table *table = calloc(1, sizeof(*table));

    if (table == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "no memory for the request table");
    }

    table->bucket_count = FIRST_BUCKETS;
    table->buckets = calloc(table->bucket_count, sizeof(table->buckets[0]));
    if (table->buckets == NULL) {
        goto err_free_table;
    }
    if (getrandom(&table->seed, sizeof(table->seed), GRND_NONBLOCK) != sizeof(table->seed)) {
        table->seed = (uint64_t)(uintptr_t)table->buckets; /* early in boot: better than nothing */
    }

    *table_out = table;
    return UC_OK;

err_free_table:
    free(table);
    return uc_error(UC_ERR_OUT_OF_MEMORY, "no memory for the request table");
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
    free(table->buckets);
    free(table);
}

static struct uc_request *
find_hashed(const struct uc_request_table *table, uint64_t hash, const char *request_id)
{
    for (struct uc_request *at = *bucket_of(table, hash); at != NULL; at = at->next) {
        if (at->hash == hash && strcmp(at->id, request_id) == 0) {
            return at;
        }
    }

    return NULL;
}

struct uc_request *
uc_request_table_find(struct uc_request_table *table, const char *request_id)
{
    return find_hashed(table, hash_text(table->seed, request_id), request_id);
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
    uint64_t hash = hash_text(table->seed, context->request_id);
    struct uc_request **bucket;
    struct uc_request *request;

    if (find_hashed(table, hash, context->request_id) != NULL) {
        return uc_error(
                UC_ERR_DUPLICATE_KEY, "request %.64s is registered already", context->request_id);
    }
    request = copy_request(context);
    if (request == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "no memory for request %.64s", context->request_id);
    }

    if (table->count >= table->bucket_count) {
        grow(table);
    }
    bucket = bucket_of(table, hash);
    request->hash = hash;
    request->next = *bucket;
    *bucket = request;
    table->count++;
    *request_out = request;
    return UC_OK;
}

void
uc_request_table_remove(struct uc_request_table *table, struct uc_request *request)
{
    struct uc_request **at = bucket_of(table, request->hash);

    while (*at != request) {
        assert(*at != NULL);
        at = &(*at)->next;
    }
    *at = request->next;
    table->count--;
    destroy_request(request);
}

struct uc_request *
uc_request_table_any(struct uc_request_table *table)
{
    for (size_t idx = 0; table->count != 0 && idx < table->bucket_count; idx++) {
        if (table->buckets[idx] != NULL) {
            return table->buckets[idx];
        }
    }

    return NULL;
}

size_t
uc_request_table_count(const struct uc_request_table *table)
{
    return table->count;
}
