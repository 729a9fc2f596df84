/* SPDX-License-Identifier: Apache-2.0 */

#include "test/fake/slot_store.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ucm/setup.h>

#include "client/device/device.h"
#include "core/base/bytes.h"
#include "test/fake/slot_store_internal.h"

enum {
    TOKEN_HEADER_BYTES = 12, /* "SLT1", identity of the file */
    TOKEN_KEY_BYTES = 16,    /* slot, generation, length */
    MAX_SLOTS = 1 << 20
};

static const uint8_t token_magic[4] = {'S', 'L', 'T', '1'};

struct slot_store *
slot_store_of(struct uc_store *store)
{
    return (struct slot_store *)(void *)store; /* first member */
}

/* The sizes, which decide about the shape of the file. */
static enum uc_status
read_sizes(struct slot_store *self, const struct uc_dict *config)
{
    int64_t slot_count = 256;
    enum uc_status status;

    self->table.block_bytes = 4096;
    status = uc_dict_get_bytes(config, "block_bytes", &self->table.block_bytes);
    if (status == UC_OK || status == UC_ERR_NOT_FOUND) {
        status = uc_dict_get_int(config, "slots", &slot_count);
    }
    if (status != UC_OK && status != UC_ERR_NOT_FOUND) {
        return status;
    }
    if (slot_count < 1 || slot_count > MAX_SLOTS || self->table.block_bytes == 0 ||
            self->table.block_bytes > UINT32_MAX) {
        return uc_error(UC_ERR_INVALID_PARAM, "slot store: 'slots' or 'block_bytes' out of range");
    }

    self->table.slot_count = (size_t)slot_count;
    return UC_OK;
}

static enum uc_status
slot_setup(struct uc_store *store, const struct uc_dict *config)
{
    struct slot_store *self = slot_store_of(store);
    const char *node_path = "root";
    const char *role = "both";
    const char *path = NULL;
    bool keep = false;
    enum uc_status status = uc_dict_get_string(config, "path", &path);

    if (status != UC_OK) {
        return uc_error(UC_ERR_INVALID_PARAM, "slot store: key 'path' is missing");
    }
    (void)!uc_dict_get_string(config, UC_SETUP_STORE_ROLE, &role);
    (void)!uc_dict_get_string(config, UC_SETUP_NODE_PATH, &node_path);
    (void)!uc_dict_get_bool(config, "keep", &keep);
    (void)snprintf(self->node_path, sizeof(self->node_path), "%s", node_path);
    status = read_sizes(self, config);
    if (status == UC_OK) {
        status = slot_table_open(&self->table, path);
    }
    keep = keep && status == UC_OK && self->table.header->identity != 0; /* a new file is cleared */
    if (status == UC_OK && strcmp(role, "worker") != 0 && !keep) {
        status = slot_table_clear(&self->table);
    }

    return status == UC_OK ? slot_prefetch_setup(self, config, strcmp(role, "scheduler") != 0)
                           : status;
}

enum uc_status
slot_lookup(struct uc_store *store, const struct uc_block_id *ids, size_t count, uint8_t *hits_out)
{
    for (size_t idx = 0; idx < count; idx++) {
        hits_out[idx] =
                slot_is_visible(slot_table_find(&slot_store_of(store)->table, &ids[idx])) ? 1 : 0;
    }

    return UC_OK;
}

static enum uc_status
mint(const struct slot_store *self, const struct uc_block_id *ids, size_t count,
        struct uc_token **token_out)
{
    size_t payload_bytes = TOKEN_HEADER_BYTES + count * TOKEN_KEY_BYTES;
    uint8_t *payload = malloc(payload_bytes);
    enum uc_status status;

    if (payload == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "slot store: no memory for a token");
    }

    memcpy(payload, token_magic, sizeof(token_magic));
    uc_put_le64(payload + 4, self->table.header->identity);
    for (size_t idx = 0; idx < count; idx++) {
        const struct slot *slot = slot_table_find(&self->table, &ids[idx]);
        uint8_t *entry = payload + TOKEN_HEADER_BYTES + idx * TOKEN_KEY_BYTES;

        uc_put_le32(entry, (uint32_t)(slot - self->table.slots));
        uc_put_le32(entry + 4, atomic_load_explicit(&slot->generation, memory_order_relaxed));
        uc_put_le64(entry + 8, self->table.block_bytes);
    }
    status = uc_token_create(ids, count, payload, payload_bytes, token_out);
    free(payload);
    return status;
}

static enum uc_status
slot_pin(struct uc_store *store, const struct uc_block_id *ids, size_t count,
        struct uc_token **token_out)
{
    struct slot_store *self = slot_store_of(store);
    enum uc_status status;

    for (size_t idx = 0; idx < count; idx++) {
        if (!slot_is_visible(slot_table_find(&self->table, &ids[idx]))) {
            return uc_error(UC_ERR_NOT_FOUND, "slot store: block %zu of the list is absent", idx);
        }
    }
    status = mint(self, ids, count, token_out);
    for (size_t idx = 0; status == UC_OK && idx < count; idx++) {
        slot_table_find(&self->table, &ids[idx])->pins++;
    }
    return status;
}

static void
slot_unpin(struct uc_store *store, const struct uc_token *token)
{
    for (size_t idx = 0; idx < token->key_count; idx++) {
        struct slot *slot = slot_table_find(&slot_store_of(store)->table, &token->keys[idx]);

        if (slot != NULL && slot->pins != 0) {
            slot->pins--;
        }
    }
}

static enum uc_status
slot_commit(struct uc_store *store, const struct uc_token *token, const uint8_t *mask, bool success)
{
    enum uc_status first = UC_OK;

    for (size_t idx = 0; idx < token->key_count; idx++) {
        bool verdict = mask == NULL ? success : mask[idx] != 0;
        enum uc_status status =
                slot_table_conclude(&slot_store_of(store)->table, &token->keys[idx], verdict);

        first = first == UC_OK ? status : first;
    }

    return first;
}

enum uc_status
slot_alloc(struct uc_store *store, const struct uc_block_id *ids, size_t count,
        const struct uc_request_context *context, struct uc_token **token_out)
{
    struct slot_store *self = slot_store_of(store);
    enum uc_status status = UC_OK;
    size_t done = 0;

    (void)context; /* nothing expires here */
    while (done < count && slot_table_reserve(&self->table, &ids[done]) != NULL) {
        done++;
    }
    if (done < count) {
        status = uc_error(
                UC_ERR_NO_SPACE, "slot store: all %zu slots are taken", self->table.slot_count);
    } else {
        status = mint(self, ids, count, token_out);
    }
    if (status != UC_OK) {
        for (size_t idx = 0; idx < done; idx++) {
            (void)slot_table_conclude(&self->table, &ids[idx], false);
        }
    }
    return status;
}

/* What a token says about one key; every byte of it is foreign. */
struct slot *
slot_of_token(const struct slot_store *self, const struct uc_token *token, size_t key,
        uint32_t *generation_out)
{
    const uint8_t *entry = token->payload + TOKEN_HEADER_BYTES + key * TOKEN_KEY_BYTES;
    uint32_t slot_idx = uc_get_le32(entry);

    *generation_out = uc_get_le32(entry + 4);
    return slot_idx < self->table.slot_count && *generation_out != 0 &&
                           uc_get_le64(entry + 8) == self->table.block_bytes
                   ? &self->table.slots[slot_idx]
                   : NULL;
}

bool
slot_token_is_ours(const struct slot_store *self, const struct uc_token *token)
{
    return token->payload_bytes >= TOKEN_HEADER_BYTES &&
           (token->payload_bytes - TOKEN_HEADER_BYTES) / TOKEN_KEY_BYTES == token->key_count &&
           (token->payload_bytes - TOKEN_HEADER_BYTES) % TOKEN_KEY_BYTES == 0 &&
           memcmp(token->payload, token_magic, sizeof(token_magic)) == 0 &&
           uc_get_le64(token->payload + 4) == self->table.header->identity;
}

/* Goes on to the tier below with the same ids; nothing is ordered or expires here. */
static enum uc_status
slot_touch(struct uc_store *store, const struct uc_block_id *ids, size_t count,
        const struct uc_request_context *context)
{
    struct slot_store *self = slot_store_of(store);

    return self->lower.store == NULL ? UC_OK
                                     : uc_store_touch(self->lower.store, ids, count, context);
}

static enum uc_status
check_job(const struct slot_store *self, const struct uc_job_descriptor *job,
        const struct uc_token *token, size_t first_key)
{
    uint32_t generation;

    if (job->prerequisite_handle != 0) {
        return uc_error(UC_ERR_UNSUPPORTED, "slot store: no prerequisite hook");
    }
    if (!slot_token_is_ours(self, token)) {
        return uc_error(UC_ERR_INVALID_PARAM, "slot store: the token is not one of this store");
    }
    for (size_t idx = 0; idx < job->count; idx++) {
        if (slot_of_token(self, token, first_key + idx, &generation) == NULL) {
            return uc_error(UC_ERR_INVALID_PARAM, "slot store: key %zu names no slot", idx);
        }
    }

    return UC_OK;
}

/* Memory of a device, in a process that has its driver: one copy after the other, each waited for. */
static enum uc_status
move_on_device(const struct uc_device_ops *ops, struct uc_device *device, void *memory,
        uint8_t *bytes, uint64_t length, bool is_load)
{
    struct uc_device_ticket *ticket = NULL;
    enum uc_status status = ops->register_host(device, bytes, length);

    if (status != UC_OK) {
        return status;
    }
    status = ops->ticket_create(device, &ticket);
    if (status == UC_OK) {
        status = ops->copy(ticket, is_load, memory, bytes, length);
    }
    if (status == UC_OK) {
        status = ops->mark(ticket);
    }
    while (status == UC_OK && ops->poll(ticket) == UC_ERR_RETRY) {
        (void)sched_yield();
    }
    ops->ticket_destroy(ticket);
    ops->unregister_host(device, bytes);
    return status;
}

static enum uc_status
move_piece(void *memory, uint8_t *bytes, uint64_t length, bool is_load)
{
    const struct uc_device_ops *ops = uc_device_find(UC_MEMORY_CUDA);
    struct uc_device *device = NULL;
    enum uc_status status;

    if (length > 0 && ops->has_events() && ops->open(memory, length, &device) == UC_OK) {
        status = move_on_device(ops, device, memory, bytes, length, is_load);
        ops->close(device);
        return status;
    }

    memcpy(is_load ? memory : bytes, is_load ? bytes : memory, length);
    return UC_OK;
}

static enum uc_status
move_block(const struct slot_store *self, struct slot *slot, uint32_t generation,
        const struct uc_block_payload *payload, bool is_load)
{
    uint64_t offset = payload->block_offset;
    uint8_t *bytes =
            self->table.data + (size_t)(slot - self->table.slots) * (size_t)self->table.block_bytes;

    if (atomic_load_explicit(&slot->generation, memory_order_acquire) != generation) {
        return UC_ERR_NOT_FOUND; /* */
    }
    if (!is_load && atomic_load_explicit(&slot->state, memory_order_acquire) == SLOT_COMMITTED) {
        return UC_OK; /* equal ids mean equal bytes */
    }
    for (size_t idx = 0; idx < payload->pointer_count; idx++) {
        uint64_t length = payload->sizes[idx];
        enum uc_status status;

        if (offset > self->table.block_bytes || length > self->table.block_bytes - offset) {
            return UC_ERR_INVALID_PARAM; /* */
        }
        status = move_piece(payload->pointers[idx], bytes + offset, length, is_load);
        if (status != UC_OK) {
            return status;
        }
        offset += length;
    }

    return atomic_load_explicit(&slot->generation, memory_order_acquire) == generation
                   ? UC_OK
                   : UC_ERR_NOT_FOUND;
}

static enum uc_status
run_job(struct slot_store *self, uint64_t job_id, const struct uc_job_descriptor *job,
        const struct uc_token *token, size_t first_key, bool is_load)
{
    enum uc_status code = UC_OK;
    uint8_t *blocks;
    enum uc_status status = check_job(self, job, token, first_key);

    if (status != UC_OK) {
        return status;
    }
    blocks = calloc(1, job->count / 8 + 1);
    if (blocks == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "slot store: no memory for a job");
    }
    status = uc_completion_queue_begin(self->events, job_id, job->count);
    if (status != UC_OK) {
        goto out_free_blocks;
    }

    for (size_t idx = 0; idx < job->count; idx++) {
        uint32_t generation;
        struct slot *slot = slot_of_token(self, token, first_key + idx, &generation);
        enum uc_status block_status =
                move_block(self, slot, generation, &job->payloads[idx], is_load);

        if (block_status == UC_OK) {
            blocks[idx / 8] = (uint8_t)(blocks[idx / 8] | 1u << idx % 8);
        } else if (code == UC_OK) {
            code = block_status; /* that of the lowest index */
        }
    }
    uc_completion_queue_finish(self->events, job_id, code, blocks);

out_free_blocks:
    free(blocks);
    return status;
}

static enum uc_status
slot_token_load(struct uc_store *store, uint64_t job_id, const struct uc_job_descriptor *job,
        const struct uc_token *token, size_t first_key)
{
    return run_job(slot_store_of(store), job_id, job, token, first_key, true);
}

static enum uc_status
slot_token_dump(struct uc_store *store, uint64_t job_id, const struct uc_job_descriptor *job,
        const struct uc_token *token, size_t first_key)
{
    return run_job(slot_store_of(store), job_id, job, token, first_key, false);
}

static enum uc_status
refuse_transfer(struct uc_store *store, uint64_t job_id, const struct uc_job_descriptor *job)
{
    (void)store;
    (void)job_id;
    (void)job;
    return uc_error(UC_ERR_UNSUPPORTED, "slot store: transfers need a token");
}

static enum uc_status
slot_get_finished(
        struct uc_store *store, struct uc_io_result *results, size_t capacity, size_t *count_out)
{
    return uc_completion_queue_get_finished(
            slot_store_of(store)->events, results, capacity, count_out);
}

static enum uc_status
slot_wait(struct uc_store *store, const uint64_t *job_ids, size_t job_count, int64_t timeout_ms,
        struct uc_io_result *results, size_t capacity, size_t *count_out)
{
    return uc_completion_queue_wait(slot_store_of(store)->events, job_ids, job_count, timeout_ms,
            results, capacity, count_out);
}

static int
slot_event_fd(struct uc_store *store)
{
    return uc_completion_queue_event_fd(slot_store_of(store)->events);
}

static enum uc_status
slot_describe(struct uc_store *store, struct uc_dict *description)
{
    const struct slot_store *self = slot_store_of(store);
    const struct {
        const char *key;
        int64_t value;
    } numbers[] = {
            {"abi_version", UC_STORE_ABI_VERSION},
            {"block_bytes", (int64_t)self->table.block_bytes},
            {"pinned", (int64_t)slot_table_pins(&self->table)},
            {"reserved", (int64_t)slot_table_refs(&self->table)},
    };
    enum uc_status status = uc_dict_set_string(description, "name", "slots");

    if (status == UC_OK) {
        status = uc_dict_set_string(description, "version", "1");
    }
    if (status == UC_OK) {
        status = uc_dict_set_string(description, "node_path", self->node_path);
    }
    for (size_t idx = 0; status == UC_OK && idx < sizeof(numbers) / sizeof(numbers[0]); idx++) {
        status = uc_dict_set_int(description, numbers[idx].key, numbers[idx].value);
    }
    return status;
}

static const struct uc_token_addressed_ops token_ops = {
        .struct_size = sizeof(token_ops),
        .pin = slot_pin,
        .unpin = slot_unpin,
        .alloc = slot_alloc,
        .commit = slot_commit,
        .load = slot_token_load,
        .dump = slot_token_dump,
};

static const struct uc_token_addressed_ops *
as_token_addressed(struct uc_store *store)
{
    (void)store;
    return &token_ops;
}

/* Without a tier below there is nothing to prefetch from (R-8.11: the answer never changes). */
static const struct uc_prefetchable_ops *
as_prefetchable(struct uc_store *store)
{
    return slot_store_of(store)->lower.store == NULL ? NULL : &slot_prefetch_ops;
}

static const struct uc_store_ops store_ops = {
        .abi_version = UC_STORE_ABI_VERSION,
        .struct_size = sizeof(store_ops),
        .setup = slot_setup,
        .lookup = slot_lookup,
        .touch = slot_touch,
        .load = refuse_transfer,
        .dump = refuse_transfer,
        .get_finished = slot_get_finished,
        .wait = slot_wait,
        .as_token_addressed = as_token_addressed,
        .as_prefetchable = as_prefetchable,
        .describe = slot_describe,
        .event_fd = slot_event_fd,
};

struct uc_store *
uc_slot_store_create(void)
{
    struct slot_store *self = calloc(1, sizeof(*self));

    if (self == NULL) {
        return NULL;
    }
    if (uc_completion_queue_create(0, 0, &self->events) != UC_OK) {
        free(self);
        return NULL;
    }

    self->base.ops = &store_ops;
    return &self->base;
}

void
uc_slot_store_destroy(struct uc_store *store)
{
    struct slot_store *self = slot_store_of(store);

    if (store == NULL) {
        return;
    }

    slot_prefetch_fini(self); /* the tier below is still there */
    slot_table_close(&self->table);
    uc_completion_queue_destroy(self->events);
    free(self);
}
