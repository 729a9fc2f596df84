/* SPDX-License-Identifier: Apache-2.0 */

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "client/proxy/entry_internal.h"

enum {
    SAVED_TEXT_BYTES = 512
};

static const char *const window_names[UC_WINDOW_COUNT] = {
        [UC_WINDOW_PREFETCH] = "prefetch",
        [UC_WINDOW_GET] = "get",
        [UC_WINDOW_PUT] = "put",
};

static struct uc_entry *
entry_of(struct uc_scheduler *scheduler)
{
    return (struct uc_entry *)(void *)((char *)scheduler - offsetof(struct uc_entry, scheduler));
}

static enum uc_status
find_request(const struct uc_entry *entry, const char *request_id, struct uc_request **request_out)
{
    struct uc_request *request = uc_request_table_find(entry->control.requests, request_id);

    if (request == NULL) {
        return uc_error(UC_ERR_NOT_FOUND,
                "request %.64s is not registered: call on_new_request first", request_id);
    }

    *request_out = request;
    return UC_OK;
}

/* Find the request and see that the window is open, or closed. */
static enum uc_status
find_window(const struct uc_entry *entry, const char *request_id, enum uc_window window,
        bool want_open, struct uc_request **request_out)
{
    struct uc_request *request = NULL;
    enum uc_status status = find_request(entry, request_id, &request);

    if (status != UC_OK) {
        return status;
    }
    if (want_open != (request->windows[window] != NULL)) {
        return uc_error(UC_ERR_INVALID_PARAM, "request %.64s: the %s window is %s", request_id,
                window_names[window],
                want_open ? "not open: prepare first" : "open already: complete it first");
    }

    *request_out = request;
    return UC_OK;
}

/* Release what a token holds in the store. */
static enum uc_status
conclude_token(const struct uc_entry *entry, enum uc_window window, const struct uc_token *token,
        const uint8_t *mask, bool success)
{
    switch (window) {
    case UC_WINDOW_PREFETCH:
        return entry->prefetchable == NULL
                       ? UC_OK
                       : entry->prefetchable->complete_prefetch(entry->store, token, success);
    case UC_WINDOW_GET:
        if (entry->tokened != NULL) {
            entry->tokened->unpin(entry->store, token);
        }
        return UC_OK;
    case UC_WINDOW_PUT:
        return entry->tokened == NULL ? UC_OK
                                      : entry->tokened->commit(entry->store, token, mask, success);
    case UC_WINDOW_COUNT:
        break;
    }

    return UC_OK;
}

static enum uc_status
close_window(const struct uc_entry *entry, struct uc_request *request, enum uc_window window,
        const uint8_t *mask, bool success)
{
    struct uc_token *token = request->windows[window];
    enum uc_status status;

    /* The record goes first: whatever the store answers, no conclusion is repeated. */
    request->windows[window] = NULL;
    status = conclude_token(entry, window, token, mask, success);
    uc_token_destroy(token);
    return status;
}

/*
 * Record the store's token and hand a copy out: the caller may destroy its own at any time. A window that
 * cannot be opened after all leaves nothing held.
 */
static enum uc_status
open_window(const struct uc_entry *entry, struct uc_request *request, enum uc_window window,
        struct uc_token *minted, struct uc_token **token_out)
{
    struct uc_token *copy = NULL;
    enum uc_status status;

    status = uc_token_create(
            minted->keys, minted->key_count, minted->payload, minted->payload_bytes, &copy);
    if (status != UC_OK) {
        (void)conclude_token(entry, window, minted, NULL, false);
        uc_token_destroy(minted);
        return status;
    }

    request->windows[window] = minted;
    *token_out = copy;
    return UC_OK;
}

/* A token that does not cover what was asked for would break every later check against its keys. */
static enum uc_status
check_minted(const struct uc_entry *entry, enum uc_window window, struct uc_token *minted,
        size_t want_count)
{
    if (minted == NULL) {
        return uc_error(
                UC_ERR_GENERAL, "%s: the store answered Ok without a token", window_names[window]);
    }
    if (window != UC_WINDOW_PREFETCH && minted->key_count != want_count) {
        size_t key_count = minted->key_count;

        (void)conclude_token(entry, window, minted, NULL, false);
        uc_token_destroy(minted);
        return uc_error(UC_ERR_GENERAL, "%s: the store's token covers %zu keys instead of %zu",
                window_names[window], key_count, want_count);
    }

    return UC_OK;
}

static enum uc_status
mint(const struct uc_entry *entry, const struct uc_request *request, enum uc_window window,
        const struct uc_block_id *ids, size_t count, struct uc_token **minted_out)
{
    if (window == UC_WINDOW_PREFETCH) {
        return entry->prefetchable == NULL ? uc_token_create(NULL, 0, NULL, 0, minted_out)
                                           : entry->prefetchable->prepare_prefetch(entry->store,
                                                     request->id, request->context, minted_out);
    }
    if (entry->tokened == NULL) {
        return uc_token_create(
                ids, count, NULL, 0, minted_out); /* presence is not checked */
    }

    return window == UC_WINDOW_GET
                   ? entry->tokened->pin(entry->store, ids, count, minted_out)
                   : entry->tokened->alloc(entry->store, ids, count, request->context, minted_out);
}

static enum uc_status
prepare(struct uc_scheduler *scheduler, const char *request_id, enum uc_window window,
        const struct uc_block_id *ids, size_t count, struct uc_token **token_out)
{
    struct uc_entry *entry = entry_of(scheduler);
    struct uc_request *request = NULL;
    struct uc_token *minted = NULL;
    enum uc_status status;

    status = find_window(entry, request_id, window, false, &request);
    if (status != UC_OK) {
        return status;
    }
    status = mint(entry, request, window, ids, count, &minted);
    if (status != UC_OK) {
        return status;
    }
    status = check_minted(entry, window, minted, count);
    if (status != UC_OK) {
        return status;
    }

    return open_window(entry, request, window, minted, token_out);
}

static enum uc_status
on_new_request(struct uc_scheduler *scheduler, const struct uc_request_context *context)
{
    struct uc_request *request = NULL;

    return uc_request_table_add(entry_of(scheduler)->control.requests, context, &request);
}

/* The slot is optional, and a plugin built against a shorter table does not have it. */
static void
forget_query(const struct uc_entry *entry, const char *request_id)
{
    const struct uc_prefetchable_ops *ops = entry->prefetchable;

    if (ops != NULL &&
            ops->struct_size >=
                    offsetof(struct uc_prefetchable_ops, forget) + sizeof(ops->forget) &&
            ops->forget != NULL) {
        ops->forget(entry->store, request_id);
    }
}

/* Conclude what is open, going on after errors, and forget the request in every case. */
static enum uc_status
finish_request(struct uc_entry *entry, struct uc_request *request)
{
    char text[SAVED_TEXT_BYTES] = "";
    enum uc_status first = UC_OK;

    for (enum uc_window window = 0; window < UC_WINDOW_COUNT; window++) {
        enum uc_status status;

        if (request->windows[window] == NULL) {
            continue;
        }
        status = close_window(entry, request, window, NULL, false);
        if (first == UC_OK && status != UC_OK) {
            first = status;
            (void)snprintf(text, sizeof(text), "%s", uc_last_error());
        }
    }
    forget_query(entry, request->id);
    uc_request_table_remove(entry->control.requests, request);

    /* The text that belongs to the status, not that of a later failure. */
    return first == UC_OK ? UC_OK : uc_error(first, "%s", text);
}

static enum uc_status
on_request_finished(struct uc_scheduler *scheduler, const char *request_id)
{
    struct uc_entry *entry = entry_of(scheduler);
    struct uc_request *request = NULL;
    enum uc_status status = find_request(entry, request_id, &request);

    if (status != UC_OK) {
        return status;
    }

    return finish_request(entry, request);
}

static enum uc_status
lookup(struct uc_scheduler *scheduler, const char *request_id, const struct uc_block_id *ids,
        size_t count, uint8_t *hits_out, bool *prefetch_needed_out)
{
    struct uc_entry *entry = entry_of(scheduler);
    struct uc_request *request = NULL;
    bool signal = false;
    enum uc_status status = find_request(entry, request_id, &request);

    if (status != UC_OK) {
        return status;
    }
    status = entry->prefetchable == NULL ? uc_store_lookup(entry->store, ids, count, hits_out)
                                         : entry->prefetchable->lookup(entry->store, request_id,
                                                   ids, count, hits_out, &signal);
    if (status == UC_OK) {
        *prefetch_needed_out = signal;
    }
    return status;
}

static enum uc_status
lookup_on_prefix(struct uc_scheduler *scheduler, const char *request_id,
        const struct uc_block_id *ids, size_t count, int64_t *index_out, bool *prefetch_needed_out)
{
    struct uc_entry *entry = entry_of(scheduler);
    struct uc_request *request = NULL;
    bool signal = false;
    enum uc_status status = find_request(entry, request_id, &request);

    if (status != UC_OK) {
        return status;
    }
    status = entry->prefetchable == NULL
                     ? uc_store_lookup_on_prefix(entry->store, ids, count, index_out)
                     : entry->prefetchable->lookup_on_prefix(
                               entry->store, request_id, ids, count, index_out, &signal);
    if (status == UC_OK) {
        *prefetch_needed_out = signal;
    }
    return status;
}

static enum uc_status
lookup_on_reverse(struct uc_scheduler *scheduler, const char *request_id,
        const struct uc_block_id *ids, size_t count, int64_t *index_out, bool *prefetch_needed_out)
{
    struct uc_entry *entry = entry_of(scheduler);
    struct uc_request *request = NULL;
    bool signal = false;
    enum uc_status status = find_request(entry, request_id, &request);

    if (status != UC_OK) {
        return status;
    }
    status = entry->prefetchable == NULL
                     ? uc_store_lookup_on_reverse(entry->store, ids, count, index_out)
                     : entry->prefetchable->lookup_on_reverse(
                               entry->store, request_id, ids, count, index_out, &signal);
    if (status == UC_OK) {
        *prefetch_needed_out = signal;
    }
    return status;
}

static enum uc_status
touch(struct uc_scheduler *scheduler, const char *request_id, const struct uc_block_id *ids,
        size_t count)
{
    struct uc_entry *entry = entry_of(scheduler);
    struct uc_request *request = NULL;
    enum uc_status status = find_request(entry, request_id, &request);

    if (status != UC_OK) {
        return status;
    }

    return uc_store_touch(entry->store, ids, count, request->context);
}

static enum uc_status
prepare_prefetch(
        struct uc_scheduler *scheduler, const char *request_id, struct uc_token **token_out)
{
    return prepare(scheduler, request_id, UC_WINDOW_PREFETCH, NULL, 0, token_out);
}

static enum uc_status
complete_prefetch(struct uc_scheduler *scheduler, const char *request_id, bool success)
{
    struct uc_entry *entry = entry_of(scheduler);
    struct uc_request *request = NULL;
    enum uc_status status = find_window(entry, request_id, UC_WINDOW_PREFETCH, true, &request);

    if (status != UC_OK) {
        return status;
    }

    return close_window(entry, request, UC_WINDOW_PREFETCH, NULL, success);
}

static enum uc_status
prepare_get(struct uc_scheduler *scheduler, const char *request_id, const struct uc_block_id *ids,
        size_t count, struct uc_token **token_out)
{
    return prepare(scheduler, request_id, UC_WINDOW_GET, ids, count, token_out);
}

static enum uc_status
complete_get(struct uc_scheduler *scheduler, const char *request_id)
{
    struct uc_entry *entry = entry_of(scheduler);
    struct uc_request *request = NULL;
    enum uc_status status = find_window(entry, request_id, UC_WINDOW_GET, true, &request);

    if (status != UC_OK) {
        return status;
    }

    return close_window(entry, request, UC_WINDOW_GET, NULL, true);
}

static enum uc_status
prepare_put(struct uc_scheduler *scheduler, const char *request_id, const struct uc_block_id *ids,
        size_t count, struct uc_token **token_out)
{
    return prepare(scheduler, request_id, UC_WINDOW_PUT, ids, count, token_out);
}

static enum uc_status
complete_put(struct uc_scheduler *scheduler, const char *request_id, const uint8_t *mask,
        size_t mask_count, bool success)
{
    struct uc_entry *entry = entry_of(scheduler);
    struct uc_request *request = NULL;
    enum uc_status status = find_window(entry, request_id, UC_WINDOW_PUT, true, &request);

    if (status != UC_OK) {
        return status;
    }
    if (mask != NULL && mask_count != request->windows[UC_WINDOW_PUT]->key_count) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "request %.64s: a mask of %zu flags for %zu keys: the put window stays open",
                request_id, mask_count, request->windows[UC_WINDOW_PUT]->key_count);
    }

    return close_window(entry, request, UC_WINDOW_PUT, mask, success);
}

static enum uc_status
health(struct uc_scheduler *scheduler)
{
    return uc_entry_health(entry_of(scheduler));
}

static enum uc_status
describe(struct uc_scheduler *scheduler, struct uc_dict *description)
{
    return uc_entry_describe(entry_of(scheduler), description);
}

void
uc_entry_control_fini(struct uc_entry *entry)
{
    struct uc_request *request;

    while ((request = uc_request_table_any(entry->control.requests)) != NULL) {
        (void)finish_request(entry, request);
    }
    uc_request_table_destroy(entry->control.requests);
}

const struct uc_scheduler_ops uc_entry_scheduler_ops = {
        .on_new_request = on_new_request,
        .on_request_finished = on_request_finished,
        .lookup = lookup,
        .lookup_on_prefix = lookup_on_prefix,
        .lookup_on_reverse = lookup_on_reverse,
        .touch = touch,
        .prepare_prefetch = prepare_prefetch,
        .complete_prefetch = complete_prefetch,
        .prepare_get = prepare_get,
        .complete_get = complete_get,
        .prepare_put = prepare_put,
        .complete_put = complete_put,
        .health = health,
        .describe = describe,
};
