/* SPDX-License-Identifier: Apache-2.0 */

#include "test/fake/fake_store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ucm/setup.h>

#include "core/base/completion_queue.h"
#include "test/fake/fake_store_internal.h"

struct uc_fake_store *
fake_store_of(struct uc_store *store)
{
    return (struct uc_fake_store *)(void *)store; /* first member */
}

/* Count and log the call; the answer that was scripted for it. */
enum uc_status
fake_answer(
        struct uc_fake_store *fake, struct uc_fake_side *side, enum uc_fake_op op, const char *name)
{
    size_t used = strlen(side->log);

    (void)snprintf(side->log + used, sizeof(side->log) - used, "%s ", name);
    fake->calls[op]++;
    if (fake->answers[op] != UC_OK) {
        return uc_error(fake->answers[op], "fake store: %s was told to fail", name);
    }

    return UC_OK;
}

void
fake_record_ids(struct uc_fake_side *side, const struct uc_block_id *ids, size_t count)
{
    size_t kept = count < UC_FAKE_KEYS_MAX ? count : UC_FAKE_KEYS_MAX;

    side->count = count;
    if (kept != 0) {
        memcpy(side->ids, ids, kept * sizeof(ids[0]));
    }
}

void
fake_record_context(struct uc_fake_side *side, const struct uc_request_context *context)
{
    side->has_ttl = uc_request_ttl(context, &side->ttl_ms);
    (void)snprintf(side->request_id, sizeof(side->request_id), "%s",
            context == NULL ? "" : context->request_id);
}

static void
fake_trace(struct uc_fake_store *fake, char sign)
{
    size_t used;

    if (fake->trace == NULL) {
        return;
    }
    used = strlen(fake->trace);
    (void)snprintf(fake->trace + used, UC_FAKE_LOG_BYTES - used, "%c%s ", sign, fake->node_path);
}

/* What an assembler injects, and what the test wants of this instance. */
static void
read_config(struct uc_fake_store *fake, const struct uc_dict *config)
{
    const char *text = NULL;
    void *pointer = NULL;

    if (uc_dict_get_pointer(config, "self", &pointer) == UC_OK) {
        *(struct uc_fake_store **)pointer = fake;
    }
    if (uc_dict_get_pointer(config, "trace", &pointer) == UC_OK) {
        fake->trace = pointer;
    }
    if (uc_dict_get_pointer(config, UC_SETUP_PIPED_LOWER_STORE, &pointer) == UC_OK) {
        fake->lower = pointer;
    }
    if (uc_dict_get_string(config, UC_SETUP_NODE_PATH, &text) == UC_OK) {
        (void)snprintf(fake->node_path, sizeof(fake->node_path), "%s", text);
    }
    if (uc_dict_get_string(config, UC_SETUP_STORE_ROLE, &text) == UC_OK) {
        (void)snprintf(fake->role, sizeof(fake->role), "%s", text);
    }
    (void)!uc_dict_get_bool(config, "tokened", &fake->tokened);
    (void)!uc_dict_get_bool(config, "prefetchable", &fake->prefetchable);
    (void)!uc_dict_get_int(config, UC_SETUP_TIERS_BELOW, &fake->tiers_below);
}

static enum uc_status
fake_setup(struct uc_store *store, const struct uc_dict *config)
{
    struct uc_fake_store *fake = fake_store_of(store);
    bool fail = false;

    if (config != NULL) {
        read_config(fake, config);
        (void)!uc_dict_get_bool(config, "fail", &fail);
    }
    fake_trace(fake, '+');
    if (fail) {
        return uc_error(UC_ERR_NO_SPACE, "fake store: told to fail");
    }
    return fake_answer(fake, &fake->control, UC_FAKE_SETUP, "setup");
}

/* Everything is present: tests of lookups look at what is passed on. */
static enum uc_status
fake_lookup(struct uc_store *store, const struct uc_block_id *ids, size_t count, uint8_t *hits_out)
{
    struct uc_fake_store *fake = fake_store_of(store);
    enum uc_status status = fake_answer(fake, &fake->control, UC_FAKE_LOOKUP, "lookup");

    fake_record_ids(&fake->control, ids, count);
    if (status == UC_OK && count != 0) {
        memset(hits_out, 1, count);
    }
    return status;
}

static enum uc_status
fake_lookup_on_prefix(
        struct uc_store *store, const struct uc_block_id *ids, size_t count, int64_t *index_out)
{
    struct uc_fake_store *fake = fake_store_of(store);
    enum uc_status status = fake_answer(fake, &fake->control, UC_FAKE_LOOKUP_ON_PREFIX, "prefix");

    fake_record_ids(&fake->control, ids, count);
    if (status == UC_OK) {
        *index_out = (int64_t)count - 1;
    }
    return status;
}

static enum uc_status
fake_lookup_on_reverse(
        struct uc_store *store, const struct uc_block_id *ids, size_t count, int64_t *index_out)
{
    struct uc_fake_store *fake = fake_store_of(store);
    enum uc_status status = fake_answer(fake, &fake->control, UC_FAKE_LOOKUP_ON_REVERSE, "reverse");

    fake_record_ids(&fake->control, ids, count);
    if (status == UC_OK) {
        *index_out = (int64_t)count - 1;
    }
    return status;
}

static enum uc_status
fake_touch(struct uc_store *store, const struct uc_block_id *ids, size_t count,
        const struct uc_request_context *context)
{
    struct uc_fake_store *fake = fake_store_of(store);
    enum uc_status status = fake_answer(fake, &fake->control, UC_FAKE_TOUCH, "touch");

    fake_record_ids(&fake->control, ids, count);
    fake_record_context(&fake->control, context);
    return status;
}

enum uc_status
fake_begin_job(struct uc_fake_store *fake, uint64_t job_id, size_t block_count)
{
    enum uc_status status = uc_completion_queue_begin(fake->events, job_id, block_count);

    if (status == UC_OK && !fake->hold_events) {
        uc_completion_queue_finish(fake->events, job_id, UC_OK, NULL);
    }
    return status;
}

enum uc_status
fake_start_job(struct uc_fake_store *fake, enum uc_fake_op op, const char *name, uint64_t job_id,
        const struct uc_job_descriptor *job)
{
    enum uc_status status = fake_answer(fake, &fake->data, op, name);

    fake_record_ids(&fake->data, job->block_ids, job->count);
    fake->data.prerequisite_handle = job->prerequisite_handle;
    fake->data.timeout_ms = job->timeout_ms;
    return status == UC_OK ? fake_begin_job(fake, job_id, job->count) : status;
}

static enum uc_status
fake_load(struct uc_store *store, uint64_t job_id, const struct uc_job_descriptor *job)
{
    return fake_start_job(fake_store_of(store), UC_FAKE_LOAD, "load", job_id, job);
}

static enum uc_status
fake_dump(struct uc_store *store, uint64_t job_id, const struct uc_job_descriptor *job)
{
    return fake_start_job(fake_store_of(store), UC_FAKE_DUMP, "dump", job_id, job);
}

static enum uc_status
fake_get_finished(
        struct uc_store *store, struct uc_io_result *results, size_t capacity, size_t *count_out)
{
    struct uc_fake_store *fake = fake_store_of(store);
    enum uc_status status = fake_answer(fake, &fake->data, UC_FAKE_GET_FINISHED, "get_finished");

    return status == UC_OK
                   ? uc_completion_queue_get_finished(fake->events, results, capacity, count_out)
                   : status;
}

static enum uc_status
fake_wait(struct uc_store *store, const uint64_t *job_ids, size_t job_count, int64_t timeout_ms,
        struct uc_io_result *results, size_t capacity, size_t *count_out)
{
    struct uc_fake_store *fake = fake_store_of(store);
    enum uc_status status = fake_answer(fake, &fake->data, UC_FAKE_WAIT, "wait");

    fake->data.wait_timeout_ms = timeout_ms;
    return status == UC_OK ? uc_completion_queue_wait(fake->events, job_ids, job_count, timeout_ms,
                                     results, capacity, count_out)
                           : status;
}

static enum uc_status
fake_register_memory(struct uc_store *store, uint32_t region_idx, void *address,
        uint64_t length_bytes, enum uc_memory_kind kind)
{
    struct uc_fake_store *fake = fake_store_of(store);

    (void)address;
    (void)length_bytes;
    (void)kind;
    fake->data.region_idx = region_idx;
    return fake_answer(fake, &fake->data, UC_FAKE_REGISTER_MEMORY, "register");
}

static enum uc_status
fake_deregister_memory(struct uc_store *store, uint32_t region_idx)
{
    struct uc_fake_store *fake = fake_store_of(store);

    fake->data.region_idx = region_idx;
    return fake_answer(fake, &fake->data, UC_FAKE_DEREGISTER_MEMORY, "deregister");
}

static enum uc_status
fake_health(struct uc_store *store)
{
    return fake_answer(
            fake_store_of(store), &fake_store_of(store)->control, UC_FAKE_HEALTH, "health");
}

static enum uc_status
fake_describe(struct uc_store *store, struct uc_dict *description)
{
    enum uc_status status = fake_answer(
            fake_store_of(store), &fake_store_of(store)->control, UC_FAKE_DESCRIBE, "describe");

    return status == UC_OK ? uc_dict_set_string(description, "name", "fake") : status;
}

static int
fake_event_fd(struct uc_store *store)
{
    struct uc_fake_store *fake = fake_store_of(store);

    return fake->no_event_fd ? -1 : uc_completion_queue_event_fd(fake->events);
}

static const struct uc_token_addressed_ops *
as_token_addressed(struct uc_store *store)
{
    fake_store_of(store)->calls[UC_FAKE_AS_TOKEN_ADDRESSED]++;
    return fake_store_of(store)->tokened ? &fake_token_ops : NULL;
}

static const struct uc_prefetchable_ops *
as_prefetchable(struct uc_store *store)
{
    fake_store_of(store)->calls[UC_FAKE_AS_PREFETCHABLE]++;
    return fake_store_of(store)->prefetchable ? &fake_prefetch_ops : NULL;
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
    struct uc_fake_store *fake = fake_store_of(store);
    bool is_held;

    if (store == NULL) {
        return;
    }

    is_held = fake->pin_count + fake->reservation_count + fake->plan_count != 0;
    fake_trace(fake, is_held ? '!' : '-');
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
