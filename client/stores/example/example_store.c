/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A store in one file, as anyone may write it outside this tree: it includes <ucm/…> only and links libucm_core.so.
 *
 *     cc -std=c17 -fPIC -shared -fvisibility=hidden $(pkg-config --cflags --libs-only-L ucm) \
 *         example_store.c -o libexample.so -lucm_core
 *
 * and in a configuration {type: store, store: /path/to/libexample.so, config: {capacity_blocks: 100}}.
 *
 * It keeps blocks in heap memory and moves bytes inside of load and dump, so that every job is finished when these
 * return; its event waits in a list. A store with a slow medium starts the transfer there and ends it in a thread
 * of its own. It is plain: no facets, no tokens. ucm-extending(7) explains the rules that are named here.
 */

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <ucm/plugin.h>
#include <ucm/setup.h>

struct block {
    struct uc_block_id id;
    uint8_t *bytes; /* NULL = the place is free */
    uint64_t length;
};

struct event {
    struct event *next;
    struct uc_io_result result;
};

struct example_store {
    struct uc_store base; /* first: the caller sees this alone */
    pthread_mutex_t lock; /* lookups come from another thread than transfers */
    struct block *blocks; /* guarded by lock */
    size_t capacity;
    struct event *first; /* data thread: finished jobs, oldest first */
    struct event **end;
    char node_path[96];
};

static struct example_store *
example_of(struct uc_store *store)
{
    return (struct example_store *)(void *)store;
}

/* Once, before anything else. The dictionary is borrowed: what is needed later is copied. */
static enum uc_status
example_setup(struct uc_store *store, const struct uc_dict *config)
{
    struct example_store *self = example_of(store);
    const char *node_path = "";
    int64_t capacity = 1024;
    enum uc_status status;

    if (self->blocks != NULL) {
        return uc_error(UC_ERR_INVALID_PARAM, "example store: set up twice");
    }
    status = uc_dict_get_int(config, "capacity_blocks", &capacity);
    if (status != UC_OK && status != UC_ERR_NOT_FOUND) {
        return status; /* the getter said what is wrong */
    }
    if (capacity < 1 || capacity > 1 << 20) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "example store: capacity_blocks is %lld, must be 1 to 1048576",
                (long long)capacity);
    }
    if (uc_dict_get_string(config, UC_SETUP_NODE_PATH, &node_path) == UC_OK) {
        strncpy(self->node_path, node_path, sizeof(self->node_path) - 1);
    }

    self->blocks = calloc((size_t)capacity, sizeof(self->blocks[0]));
    if (self->blocks == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "example store: no memory for %lld places",
                (long long)capacity);
    }
    self->capacity = (size_t)capacity;
    return UC_OK;
}

static struct block *
find_locked(struct example_store *self, const struct uc_block_id *id)
{
    for (size_t idx = 0; idx < self->capacity; idx++) {
        struct block *block = &self->blocks[idx];

        if (block->bytes != NULL && memcmp(&block->id, id, sizeof(*id)) == 0) {
            return block;
        }
    }

    return NULL;
}

/* Pure: no order, no retention changes. Index lookups are derived from it. */
static enum uc_status
example_lookup(
        struct uc_store *store, const struct uc_block_id *ids, size_t count, uint8_t *hits_out)
{
    struct example_store *self = example_of(store);

    (void)pthread_mutex_lock(&self->lock);
    for (size_t idx = 0; idx < count; idx++) {
        hits_out[idx] = find_locked(self, &ids[idx]) != NULL;
    }
    (void)pthread_mutex_unlock(&self->lock);
    return UC_OK;
}

static uint64_t
payload_bytes(const struct uc_block_payload *payload)
{
    uint64_t total = 0;

    for (size_t idx = 0; idx < payload->pointer_count; idx++) {
        total += payload->sizes[idx];
    }

    return total;
}

/* Storage to memory: any range of the stored block. */
static enum uc_status
load_block(struct example_store *self, const struct uc_block_id *id,
        const struct uc_block_payload *payload)
{
    const struct block *block = find_locked(self, id);
    uint64_t offset = payload->block_offset;

    if (block == NULL) {
        return UC_ERR_NOT_FOUND; /* a hit is a promise that can be withdrawn */
    }
    if (offset > block->length || payload_bytes(payload) > block->length - offset) {
        return UC_ERR_INVALID_PARAM;
    }
    for (size_t idx = 0; idx < payload->pointer_count; idx++) {
        memcpy(payload->pointers[idx], block->bytes + offset, payload->sizes[idx]);
        offset += payload->sizes[idx];
    }

    return UC_OK;
}

static struct block *
place_for_locked(struct example_store *self, const struct uc_block_id *id)
{
    struct block *block = find_locked(self, id);

    for (size_t idx = 0; block == NULL && idx < self->capacity; idx++) {
        if (self->blocks[idx].bytes == NULL) {
            block = &self->blocks[idx];
        }
    }

    return block;
}

/* Memory to storage: the new content replaces the old one as a whole or not at all. */
static enum uc_status
dump_block(struct example_store *self, const struct uc_block_id *id,
        const struct uc_block_payload *payload)
{
    struct block *block = place_for_locked(self, id);
    uint64_t length = payload_bytes(payload);
    uint64_t offset = 0;
    uint8_t *bytes;

    if (block == NULL) {
        return UC_ERR_NO_SPACE;
    }
    bytes = malloc(length + 1);
    if (bytes == NULL) {
        return UC_ERR_OUT_OF_MEMORY;
    }

    for (size_t idx = 0; idx < payload->pointer_count; idx++) {
        memcpy(bytes + offset, payload->pointers[idx], payload->sizes[idx]);
        offset += payload->sizes[idx];
    }
    free(block->bytes);
    *block = (struct block){.id = *id, .bytes = bytes, .length = length};
    return UC_OK;
}

/* What makes the whole job wrong is answered here, and no event will come. */
static enum uc_status
check_job(const struct example_store *self, uint64_t job_id, const struct uc_job_descriptor *job,
        bool is_dump)
{
    for (const struct event *event = self->first; event != NULL; event = event->next) {
        if (event->result.job_id == job_id) {
            return uc_error(UC_ERR_DUPLICATE_KEY, "example store: job %llu is not consumed yet",
                    (unsigned long long)job_id);
        }
    }
    if (job->prerequisite_handle != 0) {
        return uc_error(UC_ERR_UNSUPPORTED, "example store: it cannot wait for prerequisites");
    }
    for (size_t idx = 0; is_dump && idx < job->count; idx++) {
        if (job->payloads[idx].block_offset != 0) {
            return uc_error(UC_ERR_UNSUPPORTED,
                    "example store: block %zu has an offset, but a dump is a whole block", idx);
        }
    }

    return UC_OK;
}

/* One event per accepted job, with a bit per block that arrived. */
static enum uc_status
run_job(struct example_store *self, uint64_t job_id, const struct uc_job_descriptor *job,
        bool is_dump)
{
    struct event *event;
    enum uc_status status = check_job(self, job_id, job, is_dump);

    if (status != UC_OK) {
        return status;
    }
    event = calloc(1, sizeof(*event));
    if (event == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "example store: no memory for a job");
    }
    event->result = (struct uc_io_result){
            .job_id = job_id,
            .blocks = calloc(1, job->count / 8 + 1), /* freed by uc_io_results_release() */
            .block_count = job->count,
            .code = UC_OK,
    };
    if (event->result.blocks == NULL) {
        free(event);
        return uc_error(UC_ERR_OUT_OF_MEMORY, "example store: no memory for a job");
    }

    (void)pthread_mutex_lock(&self->lock);
    for (size_t idx = 0; idx < job->count; idx++) {
        status = is_dump ? dump_block(self, &job->block_ids[idx], &job->payloads[idx])
                         : load_block(self, &job->block_ids[idx], &job->payloads[idx]);
        if (status == UC_OK) {
            event->result.blocks[idx / 8] |= (uint8_t)(1u << idx % 8);
        } else if (event->result.code == UC_OK) {
            event->result.code = status; /* of the lowest index */
        }
    }
    (void)pthread_mutex_unlock(&self->lock);
    event->result.success = event->result.code == UC_OK;
    *self->end = event;
    self->end = &event->next;
    return UC_OK;
}

static enum uc_status
example_load(struct uc_store *store, uint64_t job_id, const struct uc_job_descriptor *job)
{
    return run_job(example_of(store), job_id, job, false);
}

static enum uc_status
example_dump(struct uc_store *store, uint64_t job_id, const struct uc_job_descriptor *job)
{
    return run_job(example_of(store), job_id, job, true);
}

/* Hand an event over: its id is free again. */
static struct uc_io_result
take_event(struct example_store *self, struct event **at)
{
    struct event *event = *at;
    struct uc_io_result result = event->result;

    *at = event->next;
    if (event->next == NULL) {
        self->end = at;
    }
    free(event);
    return result;
}

static enum uc_status
example_get_finished(
        struct uc_store *store, struct uc_io_result *results, size_t capacity, size_t *count_out)
{
    struct example_store *self = example_of(store);
    size_t count = 0;

    while (count < capacity && self->first != NULL) {
        results[count++] = take_event(self, &self->first);
    }
    *count_out = count;
    return UC_OK;
}

static bool
is_repeated(const uint64_t *job_ids, size_t idx)
{
    for (size_t before = 0; before < idx; before++) {
        if (job_ids[before] == job_ids[idx]) {
            return true;
        }
    }

    return false;
}

/* In the order of the list, once each, unknown ids ignored. All jobs are finished already. */
static enum uc_status
example_wait(struct uc_store *store, const uint64_t *job_ids, size_t job_count, int64_t timeout_ms,
        struct uc_io_result *results, size_t capacity, size_t *count_out)
{
    struct example_store *self = example_of(store);
    size_t distinct = 0;
    size_t count = 0;

    (void)timeout_ms;
    for (size_t idx = 0; idx < job_count; idx++) {
        distinct += is_repeated(job_ids, idx) ? 0 : 1;
    }
    if (capacity < distinct) {
        return uc_error(UC_ERR_INVALID_PARAM, "example store: room for %zu of %zu results",
                capacity, distinct);
    }
    for (size_t idx = 0; idx < job_count; idx++) {
        struct event **at = &self->first;

        while (*at != NULL && (*at)->result.job_id != job_ids[idx]) {
            at = &(*at)->next;
        }
        if (*at != NULL) {
            results[count++] = take_event(self, at);
        }
    }

    *count_out = count;
    return UC_OK;
}

static enum uc_status
example_describe(struct uc_store *store, struct uc_dict *description)
{
    enum uc_status status = uc_dict_set_string(description, "name", "example");

    if (status == UC_OK) {
        status = uc_dict_set_string(description, "version", "1");
    }
    if (status == UC_OK) {
        status = uc_dict_set_int(description, "abi_version", UC_STORE_ABI_VERSION);
    }
    return status == UC_OK ? uc_dict_set_string(
                                     description, UC_SETUP_NODE_PATH, example_of(store)->node_path)
                           : status;
}

/* Slots that are left out are null: touch has no effect, memory needs no registration, there are no facets. */
static const struct uc_store_ops example_ops = {
        .abi_version = UC_STORE_ABI_VERSION,
        .struct_size = sizeof(example_ops),
        .setup = example_setup,
        .lookup = example_lookup,
        .load = example_load,
        .dump = example_dump,
        .get_finished = example_get_finished,
        .wait = example_wait,
        .describe = example_describe,
};

struct uc_store *
UCCreateStore(void)
{
    struct example_store *self = calloc(1, sizeof(*self));

    if (self == NULL) {
        return NULL;
    }
    if (pthread_mutex_init(&self->lock, NULL) != 0) {
        free(self);
        return NULL;
    }

    self->base.ops = &example_ops;
    self->end = &self->first;
    return &self->base;
}

void
UCDestroyStore(struct uc_store *store)
{
    struct example_store *self = example_of(store);

    if (store == NULL) {
        return;
    }

    while (self->first != NULL) {
        struct uc_io_result result = take_event(self, &self->first);

        uc_io_results_release(&result, 1);
    }
    for (size_t idx = 0; self->blocks != NULL && idx < self->capacity; idx++) {
        free(self->blocks[idx].bytes);
    }
    free(self->blocks);
    (void)pthread_mutex_destroy(&self->lock);
    free(self);
}
