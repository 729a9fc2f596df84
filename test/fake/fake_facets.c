/* SPDX-License-Identifier: Apache-2.0 */

#include <stdio.h>
#include <string.h>

#include "core/base/bytes.h"
#include "test/fake/fake_store_internal.h"

static void
fake_record_token(struct uc_fake_side *side, const struct uc_token *token)
{
    size_t kept = token->payload_bytes < sizeof(side->payload) ? token->payload_bytes
                                                               : sizeof(side->payload);

    fake_record_ids(side, token->keys, token->key_count);
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
fake_pin(struct uc_store *store, const struct uc_block_id *ids, size_t count,
        struct uc_token **token_out)
{
    struct uc_fake_store *fake = fake_store_of(store);
    enum uc_status status = fake_answer(fake, &fake->control, UC_FAKE_PIN, "pin");

    fake_record_ids(&fake->control, ids, count);
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
    struct uc_fake_store *fake = fake_store_of(store);

    (void)fake_answer(fake, &fake->control, UC_FAKE_UNPIN, "unpin");
    fake_record_token(&fake->control, token);
    fake->pin_count--;
}

static enum uc_status
fake_alloc(struct uc_store *store, const struct uc_block_id *ids, size_t count,
        const struct uc_request_context *context, struct uc_token **token_out)
{
    struct uc_fake_store *fake = fake_store_of(store);
    enum uc_status status = fake_answer(fake, &fake->control, UC_FAKE_ALLOC, "alloc");

    fake_record_ids(&fake->control, ids, count);
    fake_record_context(&fake->control, context);
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
    struct uc_fake_store *fake = fake_store_of(store);

    fake_record_token(&fake->control, token);
    fake->control.has_mask = mask != NULL;
    if (mask != NULL) {
        memcpy(fake->control.mask, mask, token->key_count);
    }
    fake->control.success = success;
    fake->reservation_count--;
    return fake_answer(fake, &fake->control, UC_FAKE_COMMIT, "commit");
}

static enum uc_status
fake_token_load(struct uc_store *store, uint64_t job_id, const struct uc_job_descriptor *job,
        const struct uc_token *token, size_t first_key)
{
    struct uc_fake_store *fake = fake_store_of(store);

    fake_record_token(&fake->data, token);
    fake->data.first_key = first_key;
    return fake_start_job(fake, UC_FAKE_TOKEN_LOAD, "token_load", job_id, job);
}

static enum uc_status
fake_token_dump(struct uc_store *store, uint64_t job_id, const struct uc_job_descriptor *job,
        const struct uc_token *token, size_t first_key)
{
    struct uc_fake_store *fake = fake_store_of(store);

    fake_record_token(&fake->data, token);
    fake->data.first_key = first_key;
    return fake_start_job(fake, UC_FAKE_TOKEN_DUMP, "token_dump", job_id, job);
}

static enum uc_status
facet_lookup(struct uc_store *store, const char *request_id, const struct uc_block_id *ids,
        size_t count, uint8_t *hits_out, bool *prefetch_needed_out)
{
    struct uc_fake_store *fake = fake_store_of(store);
    enum uc_status status = fake_answer(fake, &fake->control, UC_FAKE_FACET_LOOKUP, "facet_lookup");

    fake_record_ids(&fake->control, ids, count);
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
    enum uc_status status = fake_answer(fake, &fake->control, op, name);

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
    return facet_index(fake_store_of(store), UC_FAKE_FACET_LOOKUP_ON_PREFIX, "facet_prefix", count,
            index_out, prefetch_needed_out);
}

static enum uc_status
facet_lookup_on_reverse(struct uc_store *store, const char *request_id,
        const struct uc_block_id *ids, size_t count, int64_t *index_out, bool *prefetch_needed_out)
{
    (void)request_id;
    (void)ids;
    return facet_index(fake_store_of(store), UC_FAKE_FACET_LOOKUP_ON_REVERSE, "facet_reverse",
            count, index_out, prefetch_needed_out);
}

static enum uc_status
fake_prepare_prefetch(struct uc_store *store, const char *request_id,
        const struct uc_request_context *context, struct uc_token **plan_out)
{
    static const struct uc_block_id destination = {.bytes = "prefetched"};
    struct uc_fake_store *fake = fake_store_of(store);
    enum uc_status status =
            fake_answer(fake, &fake->control, UC_FAKE_PREPARE_PREFETCH, "prepare_prefetch");

    (void)request_id;
    fake_record_context(&fake->control, context);
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
    struct uc_fake_store *fake = fake_store_of(store);
    enum uc_status status = fake_answer(fake, &fake->data, UC_FAKE_PREFETCH, "prefetch");

    fake_record_token(&fake->data, plan);
    return status == UC_OK ? fake_begin_job(fake, job_id, 1) : status;
}

static enum uc_status
fake_complete_prefetch(struct uc_store *store, const struct uc_token *plan, bool success)
{
    struct uc_fake_store *fake = fake_store_of(store);

    fake_record_token(&fake->control, plan);
    fake->control.success = success;
    fake->plan_count--;
    return fake_answer(fake, &fake->control, UC_FAKE_COMPLETE_PREFETCH, "complete_prefetch");
}

static void
fake_forget(struct uc_store *store, const char *request_id)
{
    struct uc_fake_store *fake = fake_store_of(store);

    (void)fake_answer(fake, &fake->control, UC_FAKE_FORGET, "forget");
    (void)snprintf(fake->control.request_id, sizeof(fake->control.request_id), "%s", request_id);
}

const struct uc_token_addressed_ops fake_token_ops = {
        .struct_size = sizeof(fake_token_ops),
        .pin = fake_pin,
        .unpin = fake_unpin,
        .alloc = fake_alloc,
        .commit = fake_commit,
        .load = fake_token_load,
        .dump = fake_token_dump,
};

const struct uc_prefetchable_ops fake_prefetch_ops = {
        .struct_size = sizeof(fake_prefetch_ops),
        .lookup = facet_lookup,
        .lookup_on_prefix = facet_lookup_on_prefix,
        .lookup_on_reverse = facet_lookup_on_reverse,
        .prepare_prefetch = fake_prepare_prefetch,
        .prefetch = fake_prefetch,
        .complete_prefetch = fake_complete_prefetch,
        .forget = fake_forget,
};
