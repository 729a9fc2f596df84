/* SPDX-License-Identifier: Apache-2.0 */

#include "test/fake/fake_store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/bytes.h"
#include "core/base/completion_queue.h"

static struct uc_fake_store *
fake_of(struct uc_store *store)
{
    return (struct uc_fake_store *)(void *)store; /* first member */
}

/* Count and log the call; the answer that was scripted for it. */
static enum uc_status
answer(struct uc_fake_store *fake, struct uc_fake_side *side, enum uc_fake_op op, const char *name)
{
    size_t used = strlen(side->log);

    (void)snprintf(side->log + used, sizeof(side->log) - used, "%s ", name);
    fake->calls[op]++;
    if (fake->answers[op] != UC_OK) {
        return uc_error(fake->answers[op], "fake store: %s was told to fail", name);
    }

    return UC_OK;
}

static void
record_ids(struct uc_fake_side *side, const struct uc_block_id *ids, size_t count)
{
    size_t kept = count < UC_FAKE_KEYS_MAX ? count : UC_FAKE_KEYS_MAX;

    side->count = count;
    if (kept != 0) {
        memcpy(side->ids, ids, kept * sizeof(ids[0]));
    }
}

static void
record_context(struct uc_fake_side *side, const struct uc_request_context *context)
{
    side->has_ttl = uc_request_ttl(context, &side->ttl_ms);
    (void)snprintf(side->request_id, sizeof(side->request_id), "%s",
            context == NULL ? "" : context->request_id);
}

static void
record_token(struct uc_fake_side *side, const struct uc_token *token)
{
    size_t kept = token->payload_bytes < sizeof(side->payload) ? token->payload_bytes
                                                               : sizeof(side->payload);

    record_ids(side, token->keys, token->key_count);
    side->payload_bytes = token->payload_bytes;
    if (kept != 0) {
        memcpy(side->payload, token->payload, kept);
    }
}

/* The payload is 'F', the kind of token and a serial. */
static enum uc_status
mint(struct uc_fake_store *fake, char kind, const struct uc_block_id *ids, size_t count,
        struct uc_token **token_out)
{
    uint8_t payload[6] = {'F', (uint8_t)kind};

    if (fake->no_token) {
        *token_out = NULL;
        return UC_OK;
    }

    uc_put_le32(payload + 2, ++fake->last_serial);
    return uc_token_create(
            ids, fake->short_token ? count - 1 : count, payload, sizeof(payload), token_out);
}

static enum uc_status
fake_setup(struct uc_store *store, const struct uc_dict *config)
{
    (void)config;
    return answer(fake_of(store), &fake_of(store)->control, UC_FAKE_SETUP, "setup");
}

/* Everything is present: tests of lookups look at what is passed on. */
static enum uc_status
fake_lookup(struct uc_store *store, const struct uc_block_id *ids, size_t count, uint8_t *hits_out)
{
    struct uc_fake_store *fake = fake_of(store);
    enum uc_status status = answer(fake, &fake->control, UC_FAKE_LOOKUP, "lookup");

    record_ids(&fake->control, ids, count);
    if (status == UC_OK && count != 0) {
        memset(hits_out, 1, count);
    }
    return status;
}

static enum uc_status
fake_lookup_on_prefix(
        struct uc_store *store, const struct uc_block_id *ids, size_t count, int64_t *index_out)
{
    struct uc_fake_store *fake = fake_of(store);
    enum uc_status status = answer(fake, &fake->control, UC_FAKE_LOOKUP_ON_PREFIX, "prefix");

    record_ids(&fake->control, ids, count);
    if (status == UC_OK) {
        *index_out = (int64_t)count - 1;
    }
    return status;
}

static enum uc_status
fake_lookup_on_reverse(
        struct uc_store *store, const struct uc_block_id *ids, size_t count, int64_t *index_out)
{
    struct uc_fake_store *fake = fake_of(store);
    enum uc_status status = answer(fake, &fake->control, UC_FAKE_LOOKUP_ON_REVERSE, "reverse");

    record_ids(&fake->control, ids, count);
    if (status == UC_OK) {
        *index_out = (int64_t)count - 1;
    }
    return status;
}

static enum uc_status
fake_touch(struct uc_store *store, const struct uc_block_id *ids, size_t count,
        const struct uc_request_context *context)
{
    struct uc_fake_store *fake = fake_of(store);
    enum uc_status status = answer(fake, &fake->control, UC_FAKE_TOUCH, "touch");

    record_ids(&fake->control, ids, count);
    record_context(&fake->control, context);
    return status;
}

static enum uc_status
begin_job(struct uc_fake_store *fake, uint64_t job_id, size_t block_count)
{
    enum uc_status status = uc_completion_queue_begin(fake->events, job_id, block_count);

    if (status == UC_OK && !fake->hold_events) {
        uc_completion_queue_finish(fake->events, job_id, UC_OK, NULL);
    }
    return status;
}

static enum uc_status
start_job(struct uc_fake_store *fake, enum uc_fake_op op, const char *name, uint64_t job_id,
        const struct uc_job_descriptor *job)
{
    enum uc_status status = answer(fake, &fake->data, op, name);

    record_ids(&fake->data, job->block_ids, job->count);
    fake->data.prerequisite_handle = job->prerequisite_handle;
    fake->data.timeout_ms = job->timeout_ms;
    return status == UC_OK ? begin_job(fake, job_id, job->count) : status;
}

static enum uc_status
fake_load(struct uc_store *store, uint64_t job_id, const struct uc_job_descriptor *job)
{
    return start_job(fake_of(store), UC_FAKE_LOAD, "load", job_id, job);
}

static enum uc_status
fake_dump(struct uc_store *store, uint64_t job_id, const struct uc_job_descriptor *job)
{
    return start_job(fake_of(store), UC_FAKE_DUMP, "dump", job_id, job);
}

static enum uc_status
fake_get_finished(
        struct uc_store *store, struct uc_io_result *results, size_t capacity, size_t *count_out)
{
    struct uc_fake_store *fake = fake_of(store);
    enum uc_status status = answer(fake, &fake->data, UC_FAKE_GET_FINISHED, "get_finished");

    return status == UC_OK
                   ? uc_completion_queue_get_finished(fake->events, results, capacity, count_out)
                   : status;
}

static enum uc_status
fake_wait(struct uc_store *store, const uint64_t *job_ids, size_t job_count, int64_t timeout_ms,
        struct uc_io_result *results, size_t capacity, size_t *count_out)
{
    struct uc_fake_store *fake = fake_of(store);
    enum uc_status status = answer(fake, &fake->data, UC_FAKE_WAIT, "wait");

    return status == UC_OK ? uc_completion_queue_wait(fake->events, job_ids, job_count, timeout_ms,
                                     results, capacity, count_out)
                           : status;
}

static enum uc_status
fake_register_memory(struct uc_store *store, uint32_t region_idx, void *address,
        uint64_t length_bytes, enum uc_memory_kind kind)
{
    struct uc_fake_store *fake = fake_of(store);

    (void)address;
    (void)length_bytes;
    (void)kind;
    fake->data.region_idx = region_idx;
    return answer(fake, &fake->data, UC_FAKE_REGISTER_MEMORY, "register");
}

static enum uc_status
fake_deregister_memory(struct uc_store *store, uint32_t region_idx)
{
    struct uc_fake_store *fake = fake_of(store);

    fake->data.region_idx = region_idx;
    return answer(fake, &fake->data, UC_FAKE_DEREGISTER_MEMORY, "deregister");
}

static enum uc_status
fake_health(struct uc_store *store)
{
    return answer(fake_of(store), &fake_of(store)->control, UC_FAKE_HEALTH, "health");
}

static enum uc_status
fake_describe(struct uc_store *store, struct uc_dict *description)
{
    enum uc_status status =
            answer(fake_of(store), &fake_of(store)->control, UC_FAKE_DESCRIBE, "describe");

    return status == UC_OK ? uc_dict_set_string(description, "name", "fake") : status;
}

static int
fake_event_fd(struct uc_store *store)
{
    struct uc_fake_store *fake = fake_of(store);

    return fake->no_event_fd ? -1 : uc_completion_queue_event_fd(fake->events);
}

static enum uc_status
fake_pin(struct uc_store *store, const struct uc_block_id *ids, size_t count,
        struct uc_token **token_out)
{
    struct uc_fake_store *fake = fake_of(store);
    enum uc_status status = answer(fake, &fake->control, UC_FAKE_PIN, "pin");

    record_ids(&fake->control, ids, count);
    if (status == UC_OK) {
        status = mint(fake, 'R', ids, count, token_out);
    }
    if (status == UC_OK && !fake->no_token) {
        fake->pin_count++;
    }
    return status;
}

static void
fake_unpin(struct uc_store *store, const struct uc_token *token)
{
    struct uc_fake_store *fake = fake_of(store);

    (void)answer(fake, &fake->control, UC_FAKE_UNPIN, "unpin");
    record_token(&fake->control, token);
    fake->pin_count--;
}

static enum uc_status
fake_alloc(struct uc_store *store, const struct uc_block_id *ids, size_t count,
        const struct uc_request_context *context, struct uc_token **token_out)
{
    struct uc_fake_store *fake = fake_of(store);
    enum uc_status status = answer(fake, &fake->control, UC_FAKE_ALLOC, "alloc");

    record_ids(&fake->control, ids, count);
    record_context(&fake->control, context);
    if (status == UC_OK) {
        status = mint(fake, 'W', ids, count, token_out);
    }
    if (status == UC_OK && !fake->no_token) {
        fake->reservation_count++;
    }
    return status;
}

static enum uc_status
fake_commit(struct uc_store *store, const struct uc_token *token, const uint8_t *mask, bool success)
{
    struct uc_fake_store *fake = fake_of(store);

    record_token(&fake->control, token);
    fake->control.has_mask = mask != NULL;
    if (mask != NULL) {
        memcpy(fake->control.mask, mask, token->key_count);
    }
    fake->control.success = success;
    fake->reservation_count--;
    return answer(fake, &fake->control, UC_FAKE_COMMIT, "commit");
}

static enum uc_status
fake_token_load(struct uc_store *store, uint64_t job_id, const struct uc_job_descriptor *job,
        const struct uc_token *token, size_t first_key)
{
    struct uc_fake_store *fake = fake_of(store);

    record_token(&fake->data, token);
    fake->data.first_key = first_key;
    return start_job(fake, UC_FAKE_TOKEN_LOAD, "token_load", job_id, job);
}

static enum uc_status
fake_token_dump(struct uc_store *store, uint64_t job_id, const struct uc_job_descriptor *job,
        const struct uc_token *token, size_t first_key)
{
    struct uc_fake_store *fake = fake_of(store);

    record_token(&fake->data, token);
    fake->data.first_key = first_key;
    return start_job(fake, UC_FAKE_TOKEN_DUMP, "token_dump", job_id, job);
}

static enum uc_status
facet_lookup(struct uc_store *store, const char *request_id, const struct uc_block_id *ids,
        size_t count, uint8_t *hits_out, bool *prefetch_needed_out)
{
    struct uc_fake_store *fake = fake_of(store);
    enum uc_status status = answer(fake, &fake->control, UC_FAKE_FACET_LOOKUP, "facet_lookup");

    record_ids(&fake->control, ids, count);
    (void)snprintf(fake->control.request_id, sizeof(fake->control.request_id), "%s", request_id);
    if (status == UC_OK) {
        *prefetch_needed_out = fake->signal;
        if (!fake->signal && count != 0) {
            memset(hits_out, 1, count);
        }
    }
    return status;
}

static enum uc_status
facet_index(struct uc_fake_store *fake, enum uc_fake_op op, const char *name, size_t count,
        int64_t *index_out, bool *prefetch_needed_out)
{
    enum uc_status status = answer(fake, &fake->control, op, name);

    if (status == UC_OK) {
        *prefetch_needed_out = fake->signal;
        if (!fake->signal) {
            *index_out = (int64_t)count - 1;
        }
    }
    return status;
}

static enum uc_status
facet_lookup_on_prefix(struct uc_store *store, const char *request_id,
        const struct uc_block_id *ids, size_t count, int64_t *index_out, bool *prefetch_needed_out)
{
    (void)request_id;
    (void)ids;
    return facet_index(fake_of(store), UC_FAKE_FACET_LOOKUP_ON_PREFIX, "facet_prefix", count,
            index_out, prefetch_needed_out);
}

static enum uc_status
facet_lookup_on_reverse(struct uc_store *store, const char *request_id,
        const struct uc_block_id *ids, size_t count, int64_t *index_out, bool *prefetch_needed_out)
{
    (void)request_id;
    (void)ids;
    return facet_index(fake_of(store), UC_FAKE_FACET_LOOKUP_ON_REVERSE, "facet_reverse", count,
            index_out, prefetch_needed_out);
}

static enum uc_status
fake_prepare_prefetch(struct uc_store *store, const char *request_id,
        const struct uc_request_context *context, struct uc_token **plan_out)
{
    static const struct uc_block_id destination = {.bytes = "prefetched"};
    struct uc_fake_store *fake = fake_of(store);
    enum uc_status status =
            answer(fake, &fake->control, UC_FAKE_PREPARE_PREFETCH, "prepare_prefetch");

    (void)request_id;
    record_context(&fake->control, context);
    if (status == UC_OK) {
        status = mint(fake, 'P', &destination, 1, plan_out);
    }
    if (status == UC_OK && !fake->no_token) {
        fake->plan_count++;
    }
    return status;
}

static enum uc_status
fake_prefetch(struct uc_store *store, uint64_t job_id, const struct uc_token *plan)
{
    struct uc_fake_store *fake = fake_of(store);
    enum uc_status status = answer(fake, &fake->data, UC_FAKE_PREFETCH, "prefetch");

    record_token(&fake->data, plan);
    return status == UC_OK ? begin_job(fake, job_id, 1) : status;
}

static enum uc_status
fake_complete_prefetch(struct uc_store *store, const struct uc_token *plan, bool success)
{
    struct uc_fake_store *fake = fake_of(store);

    record_token(&fake->control, plan);
    fake->control.success = success;
    fake->plan_count--;
    return answer(fake, &fake->control, UC_FAKE_COMPLETE_PREFETCH, "complete_prefetch");
}

static void
fake_forget(struct uc_store *store, const char *request_id)
{
    struct uc_fake_store *fake = fake_of(store);

    (void)answer(fake, &fake->control, UC_FAKE_FORGET, "forget");
    (void)snprintf(fake->control.request_id, sizeof(fake->control.request_id), "%s", request_id);
}

static const struct uc_token_addressed_ops token_ops = {
        .struct_size = sizeof(token_ops),
        .pin = fake_pin,
        .unpin = fake_unpin,
        .alloc = fake_alloc,
        .commit = fake_commit,
        .load = fake_token_load,
        .dump = fake_token_dump,
};

static const struct uc_prefetchable_ops prefetch_ops = {
        .struct_size = sizeof(prefetch_ops),
        .lookup = facet_lookup,
        .lookup_on_prefix = facet_lookup_on_prefix,
        .lookup_on_reverse = facet_lookup_on_reverse,
        .prepare_prefetch = fake_prepare_prefetch,
        .prefetch = fake_prefetch,
        .complete_prefetch = fake_complete_prefetch,
        .forget = fake_forget,
};

static const struct uc_token_addressed_ops *
as_token_addressed(struct uc_store *store)
{
    fake_of(store)->calls[UC_FAKE_AS_TOKEN_ADDRESSED]++;
    return fake_of(store)->tokened ? &token_ops : NULL;
}

static const struct uc_prefetchable_ops *
as_prefetchable(struct uc_store *store)
{
    fake_of(store)->calls[UC_FAKE_AS_PREFETCHABLE]++;
    return fake_of(store)->prefetchable ? &prefetch_ops : NULL;
}

static const struct uc_store_ops store_ops = {
        .abi_version = UC_STORE_ABI_VERSION,
        .struct_size = sizeof(store_ops),
        .setup = fake_setup,
        .lookup = fake_lookup,
        .lookup_on_prefix = fake_lookup_on_prefix,
        .lookup_on_reverse = fake_lookup_on_reverse,
        .touch = fake_touch,
        .load = fake_load,
        .dump = fake_dump,
        .get_finished = fake_get_finished,
        .wait = fake_wait,
        .as_token_addressed = as_token_addressed,
        .as_prefetchable = as_prefetchable,
        .register_memory = fake_register_memory,
        .deregister_memory = fake_deregister_memory,
        .health = fake_health,
        .describe = fake_describe,
        .event_fd = fake_event_fd,
};

struct uc_fake_store *
uc_fake_store_create(bool tokened, bool prefetchable)
{
    struct uc_fake_store *fake = calloc(1, sizeof(*fake));

    if (fake == NULL) {
        return NULL;
    }
    if (uc_completion_queue_create(0, 0, &fake->events) != UC_OK) {
        free(fake);
        return NULL;
    }

    fake->base.ops = &store_ops;
    fake->tokened = tokened;
    fake->prefetchable = prefetchable;
    return fake;
}

void
uc_fake_store_destroy(struct uc_store *store)
{
    struct uc_fake_store *fake = fake_of(store);

    if (store == NULL) {
        return;
    }

    if (fake->destroyed != NULL) {
        *fake->destroyed = true;
    }
    uc_completion_queue_destroy(fake->events);
    free(fake);
}

void
uc_fake_store_finish(struct uc_fake_store *fake, uint64_t job_id, enum uc_status code)
{
    uc_completion_queue_finish(fake->events, job_id, code, NULL);
}

void
uc_fake_store_deliver_stray(struct uc_fake_store *fake, uint64_t job_id)
{
    if (uc_completion_queue_begin(fake->events, job_id, 1) == UC_OK) {
        uc_completion_queue_finish(fake->events, job_id, UC_OK, NULL);
    }
}
