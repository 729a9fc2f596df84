/* SPDX-License-Identifier: Apache-2.0 */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include <ucm/store.h>

/* A store that answers lookups from a string of 0 and 1 and counts its calls. */
struct fake_store {
    struct uc_store base;
    const char *presence; /* indexed by the first id byte, then the second */
    enum uc_status status;
    size_t calls;
    size_t longest_lookup;
    int64_t index;
    size_t result_count;
};

static struct uc_store_ops ops;
static struct uc_token_addressed_ops token_ops;
static struct uc_prefetchable_ops prefetch_ops;
static struct fake_store fake;

static struct fake_store *
fake_of(struct uc_store *store)
{
    return (struct fake_store *)(void *)store;
}

static enum uc_status
fake_setup(struct uc_store *store, const struct uc_dict *config)
{
    (void)config;
    fake_of(store)->calls++;
    return fake_of(store)->status;
}

static enum uc_status
fake_lookup(struct uc_store *store, const struct uc_block_id *ids, size_t count, uint8_t *hits_out)
{
    struct fake_store *self = fake_of(store);

    self->calls++;
    self->longest_lookup = count > self->longest_lookup ? count : self->longest_lookup;
    for (size_t idx = 0; idx < count; idx++) {
        hits_out[idx] = self->presence[ids[idx].bytes[0] + 256 * ids[idx].bytes[1]] == '1';
    }
    return self->status;
}

static enum uc_status
fake_index(struct uc_store *store, const struct uc_block_id *ids, size_t count, int64_t *index_out)
{
    (void)ids;
    (void)count;
    fake_of(store)->calls++;
    *index_out = fake_of(store)->index;
    return fake_of(store)->status;
}

static enum uc_status
fake_touch(struct uc_store *store, const struct uc_block_id *ids, size_t count,
        const struct uc_request_context *context)
{
    (void)ids;
    (void)count;
    (void)context;
    fake_of(store)->calls++;
    return UC_OK;
}

static enum uc_status
fake_job(struct uc_store *store, uint64_t job_id, const struct uc_job_descriptor *job)
{
    (void)job_id;
    (void)job;
    fake_of(store)->calls++;
    return fake_of(store)->status;
}

static enum uc_status
fake_get_finished(
        struct uc_store *store, struct uc_io_result *results, size_t capacity, size_t *count_out)
{
    (void)results;
    (void)capacity;
    *count_out = fake_of(store)->result_count;
    return fake_of(store)->status;
}

static enum uc_status
fake_wait(struct uc_store *store, const uint64_t *job_ids, size_t job_count, int64_t timeout_ms,
        struct uc_io_result *results, size_t capacity, size_t *count_out)
{
    (void)job_ids;
    (void)job_count;
    (void)timeout_ms;
    return fake_get_finished(store, results, capacity, count_out);
}

static enum uc_status
fake_register(struct uc_store *store, uint32_t region_idx, void *address, uint64_t length_bytes,
        enum uc_memory_kind kind)
{
    (void)region_idx;
    (void)address;
    (void)length_bytes;
    (void)kind;
    fake_of(store)->calls++;
    return fake_of(store)->status;
}

static enum uc_status
fake_health(struct uc_store *store)
{
    return fake_of(store)->status;
}

static enum uc_status
fake_describe(struct uc_store *store, struct uc_dict *description)
{
    (void)store;
    return uc_dict_set_string(description, "name", "fake");
}

static int
fake_event_fd(struct uc_store *store)
{
    (void)store;
    return 77;
}

static enum uc_status
fake_pin(struct uc_store *store, const struct uc_block_id *ids, size_t count,
        struct uc_token **token_out)
{
    (void)store;
    return uc_token_create(ids, count, NULL, 0, token_out);
}

static void
fake_unpin(struct uc_store *store, const struct uc_token *token)
{
    (void)store;
    (void)token;
}

static enum uc_status
fake_alloc(struct uc_store *store, const struct uc_block_id *ids, size_t count,
        const struct uc_request_context *context, struct uc_token **token_out)
{
    (void)store;
    (void)context;
    return uc_token_create(ids, count, NULL, 0, token_out);
}

static enum uc_status
fake_commit(struct uc_store *store, const struct uc_token *token, const uint8_t *mask, bool success)
{
    (void)store;
    (void)token;
    (void)mask;
    (void)success;
    return UC_OK;
}

static enum uc_status
fake_token_job(struct uc_store *store, uint64_t job_id, const struct uc_job_descriptor *job,
        const struct uc_token *token, size_t first_key)
{
    (void)store;
    (void)job_id;
    (void)job;
    (void)token;
    (void)first_key;
    return UC_OK;
}

static enum uc_status
fake_prefetch_lookup(struct uc_store *store, const char *request_id, const struct uc_block_id *ids,
        size_t count, uint8_t *hits_out, bool *needed_out)
{
    (void)request_id;
    *needed_out = false;
    return fake_lookup(store, ids, count, hits_out);
}

static enum uc_status
fake_prefetch_index(struct uc_store *store, const char *request_id, const struct uc_block_id *ids,
        size_t count, int64_t *index_out, bool *needed_out)
{
    (void)request_id;
    *needed_out = false;
    return fake_index(store, ids, count, index_out);
}

static enum uc_status
fake_prepare(struct uc_store *store, const char *request_id,
        const struct uc_request_context *context, struct uc_token **plan_out)
{
    (void)store;
    (void)request_id;
    (void)context;
    return uc_token_create(NULL, 0, NULL, 0, plan_out);
}

static enum uc_status
fake_prefetch(struct uc_store *store, uint64_t job_id, const struct uc_token *plan)
{
    (void)store;
    (void)job_id;
    (void)plan;
    return UC_OK;
}

static enum uc_status
fake_complete(struct uc_store *store, const struct uc_token *plan, bool success)
{
    (void)store;
    (void)plan;
    (void)success;
    return UC_OK;
}

static const struct uc_token_addressed_ops *
fake_as_token_addressed(struct uc_store *store)
{
    (void)store;
    return &token_ops;
}

static const struct uc_prefetchable_ops *
fake_as_prefetchable(struct uc_store *store)
{
    (void)store;
    return &prefetch_ops;
}

static void
setup(void)
{
    ops = (struct uc_store_ops){
            .abi_version = UC_STORE_ABI_VERSION,
            .struct_size = sizeof(ops),
            .setup = fake_setup,
            .lookup = fake_lookup,
            .load = fake_job,
            .dump = fake_job,
            .get_finished = fake_get_finished,
            .wait = fake_wait,
    };
    token_ops = (struct uc_token_addressed_ops){
            .struct_size = sizeof(token_ops),
            .pin = fake_pin,
            .unpin = fake_unpin,
            .alloc = fake_alloc,
            .commit = fake_commit,
            .load = fake_token_job,
            .dump = fake_token_job,
    };
    prefetch_ops = (struct uc_prefetchable_ops){
            .struct_size = sizeof(prefetch_ops),
            .lookup = fake_prefetch_lookup,
            .lookup_on_prefix = fake_prefetch_index,
            .lookup_on_reverse = fake_prefetch_index,
            .prepare_prefetch = fake_prepare,
            .prefetch = fake_prefetch,
            .complete_prefetch = fake_complete,
    };
    fake = (struct fake_store){.base = {.ops = &ops}, .presence = ""};
}

/* in its order */
START_TEST(table_is_checked_before_use)
{
    fake.base.ops = NULL;
    ck_assert_int_eq(uc_store_check(&fake.base), UC_ERR_GENERAL);
    ck_assert_int_eq(uc_store_check(NULL), UC_ERR_GENERAL);
    fake.base.ops = &ops;
    ck_assert_int_eq(uc_store_check(&fake.base), UC_OK);

    ops.lookup = NULL;
    ops.struct_size = offsetof(struct uc_store_ops, wait);
    ops.abi_version = UC_STORE_ABI_VERSION + 1;
    ck_assert_int_eq(uc_store_check(&fake.base), UC_ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(uc_last_error(), "ABI"));
    ops.abi_version = UC_STORE_ABI_VERSION;
    ck_assert_int_eq(uc_store_check(&fake.base), UC_ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(uc_last_error(), "bytes"));
    ops.struct_size = sizeof(ops);
    ck_assert_int_eq(uc_store_check(&fake.base), UC_ERR_INVALID_PARAM);
    ck_assert_ptr_nonnull(strstr(uc_last_error(), "lookup"));
}
END_TEST

/* each mandatory slot */
START_TEST(mandatory_slot_must_not_be_null)
{
    static const char *const names[] = {"setup", "lookup", "load", "dump", "get_finished", "wait"};

    ops.setup = _i == 0 ? NULL : ops.setup;
    ops.lookup = _i == 1 ? NULL : ops.lookup;
    ops.load = _i == 2 ? NULL : ops.load;
    ops.dump = _i == 3 ? NULL : ops.dump;
    ops.get_finished = _i == 4 ? NULL : ops.get_finished;
    ops.wait = _i == 5 ? NULL : ops.wait;
    ck_assert_int_eq(uc_store_check(&fake.base), UC_ERR_INVALID_PARAM);
    ck_assert_ptr_nonnull(strstr(uc_last_error(), names[_i]));
}
END_TEST

/* Every optional slot does something that shows. */
static void
fill_optional_slots(void)
{
    ops.lookup_on_prefix = fake_index;
    ops.lookup_on_reverse = fake_index;
    ops.touch = fake_touch;
    ops.as_token_addressed = fake_as_token_addressed;
    ops.as_prefetchable = fake_as_prefetchable;
    ops.register_memory = fake_register;
    ops.health = fake_health;
    ops.describe = fake_describe;
    ops.event_fd = fake_event_fd;
}

static void
check_that_optional_slots_are_absent(void)
{
    struct uc_dict *description = NULL;
    char memory[8];

    ck_assert_int_eq(uc_store_check(&fake.base), UC_OK);
    ck_assert_int_eq(uc_store_health(&fake.base), UC_OK);
    ck_assert_int_eq(uc_store_event_fd(&fake.base), -1);
    ck_assert_ptr_null(uc_store_as_token_addressed(&fake.base));
    ck_assert_ptr_null(uc_store_as_prefetchable(&fake.base));
    ck_assert_int_eq(
            uc_store_register_memory(&fake.base, 0, memory, sizeof(memory), UC_MEMORY_HOST), UC_OK);
    ck_assert_int_eq(uc_store_deregister_memory(&fake.base, 0), UC_OK);
    ck_assert_int_eq(uc_dict_create(&description), UC_OK);
    ck_assert_int_eq(uc_store_describe(&fake.base, description), UC_OK);
    ck_assert_uint_eq(uc_dict_count(description), 0);
    uc_dict_destroy(description);
}

START_TEST(absent_optional_slots_have_their_meaning)
{
    struct uc_block_id id = {{0}};

    check_that_optional_slots_are_absent();
    ck_assert_int_eq(uc_store_touch(&fake.base, &id, 1, NULL), UC_OK);
}
END_TEST

/* an older plugin's table ends early; what lies behind is not its own. */
START_TEST(slots_beyond_struct_size_count_as_null)
{
    fill_optional_slots();
    fake.status = UC_ERR_UNHEALTHY;
    ops.struct_size = offsetof(struct uc_store_ops, as_token_addressed);
    check_that_optional_slots_are_absent();
    ck_assert_uint_eq(fake.calls, 0);
}
END_TEST

/* a newer plugin's table is longer */
START_TEST(slots_the_caller_does_not_know_are_ignored)
{
    fill_optional_slots();
    ops.struct_size = sizeof(ops) + 64;
    ck_assert_int_eq(uc_store_check(&fake.base), UC_OK);
    ck_assert_int_eq(uc_store_event_fd(&fake.base), 77);
}
END_TEST

START_TEST(present_optional_slots_are_called)
{
    struct uc_dict *description = NULL;
    char memory[8];

    fill_optional_slots();
    fake.status = UC_ERR_UNHEALTHY;
    ck_assert_int_eq(uc_store_health(&fake.base), UC_ERR_UNHEALTHY);
    ck_assert_int_eq(
            uc_store_register_memory(&fake.base, 0, memory, sizeof(memory), UC_MEMORY_HOST),
            UC_ERR_UNHEALTHY);
    ck_assert_int_eq(uc_dict_create(&description), UC_OK);
    ck_assert_int_eq(uc_store_describe(&fake.base, description), UC_OK);
    ck_assert(uc_dict_has(description, "name"));
    uc_dict_destroy(description);
}
END_TEST

/* */
START_TEST(facets_are_given_out_and_stay_the_same)
{
    fill_optional_slots();
    ck_assert_ptr_eq(uc_store_as_token_addressed(&fake.base), &token_ops);
    ck_assert_ptr_eq(uc_store_as_token_addressed(&fake.base), &token_ops);
    ck_assert_ptr_eq(uc_store_as_prefetchable(&fake.base), &prefetch_ops);
    prefetch_ops.struct_size = offsetof(struct uc_prefetchable_ops, forget); /* optional */
    ck_assert_ptr_eq(uc_store_as_prefetchable(&fake.base), &prefetch_ops);
}
END_TEST

/* facet tables are checked the same way */
START_TEST(incomplete_facet_is_no_facet)
{
    fill_optional_slots();
    token_ops.commit = NULL;
    ck_assert_ptr_null(uc_store_as_token_addressed(&fake.base));
    token_ops.commit = fake_commit;
    token_ops.struct_size = offsetof(struct uc_token_addressed_ops, dump);
    ck_assert_ptr_null(uc_store_as_token_addressed(&fake.base));
    prefetch_ops.prefetch = NULL;
    ck_assert_ptr_null(uc_store_as_prefetchable(&fake.base));
    prefetch_ops.prefetch = fake_prefetch;
    prefetch_ops.struct_size = offsetof(struct uc_prefetchable_ops, complete_prefetch);
    ck_assert_ptr_null(uc_store_as_prefetchable(&fake.base));
}
END_TEST

static void
make_ids(struct uc_block_id *ids, size_t count)
{
    for (size_t idx = 0; idx < count; idx++) {
        ids[idx] = (struct uc_block_id){{(uint8_t)(idx % 256), (uint8_t)(idx / 256)}};
    }
}

/* V-8, V-9 */
static const struct {
    const char *presence;
    int64_t prefix;
    int64_t reverse;
} derived_cases[] = {
        {"11010", 1, 3},
        {"011", -1, 2},
        {"000", -1, -1},
        {"", -1, -1},
        {"1", 0, 0},
        {"111", 2, 2},
};

START_TEST(prefix_and_reverse_are_derived_from_lookup)
{
    size_t count = strlen(derived_cases[_i].presence);
    struct uc_block_id ids[8] = {0};
    uint8_t hits[8] = {9, 9, 9, 9, 9, 9, 9, 9};
    int64_t index = 42;

    make_ids(ids, count);
    fake.presence = derived_cases[_i].presence;
    ck_assert_int_eq(uc_store_lookup(&fake.base, ids, count, hits), UC_OK);
    for (size_t idx = 0; idx < count; idx++) {
        ck_assert_uint_eq(hits[idx], fake.presence[idx] == '1');
    }
    ck_assert_int_eq(uc_store_lookup_on_prefix(&fake.base, ids, count, &index), UC_OK);
    ck_assert_int_eq(index, derived_cases[_i].prefix);
    ck_assert_int_eq(uc_store_lookup_on_reverse(&fake.base, ids, count, &index), UC_OK);
    ck_assert_int_eq(index, derived_cases[_i].reverse);
}
END_TEST

/* Longer than one internal batch: the only gap or the only hit wanders through. */
START_TEST(derived_lookups_work_across_batches)
{
    static struct uc_block_id ids[700];
    static char presence[701];
    const size_t places[] = {0, 1, 254, 255, 256, 257, 511, 512, 698, 699};
    int64_t index = 42;

    make_ids(ids, 700);
    fake.presence = presence;
    for (size_t idx = 0; idx < sizeof(places) / sizeof(places[0]); idx++) {
        memset(presence, '1', 700);
        presence[places[idx]] = '0';
        ck_assert_int_eq(uc_store_lookup_on_prefix(&fake.base, ids, 700, &index), UC_OK);
        ck_assert_int_eq(index, (int64_t)places[idx] - 1);
        memset(presence, '0', 700);
        presence[places[idx]] = '1';
        ck_assert_int_eq(uc_store_lookup_on_reverse(&fake.base, ids, 700, &index), UC_OK);
        ck_assert_int_eq(index, (int64_t)places[idx]);
    }
    memset(presence, '1', 700);
    ck_assert_int_eq(uc_store_lookup_on_prefix(&fake.base, ids, 700, &index), UC_OK);
    ck_assert_int_eq(index, 699);
}
END_TEST

/* */
START_TEST(outputs_are_written_on_success_only)
{
    struct uc_block_id id = {{0}};
    struct uc_io_result result;
    int64_t index = 42;
    size_t count = 42;

    fake.presence = "1";
    fake.status = UC_ERR_GENERAL;
    fake.result_count = 1;
    ck_assert_int_eq(uc_store_lookup_on_prefix(&fake.base, &id, 1, &index), UC_ERR_GENERAL);
    ck_assert_int_eq(uc_store_lookup_on_reverse(&fake.base, &id, 1, &index), UC_ERR_GENERAL);
    ops.lookup_on_prefix = fake_index;
    ck_assert_int_eq(uc_store_lookup_on_prefix(&fake.base, &id, 1, &index), UC_ERR_GENERAL);
    ck_assert_int_eq(index, 42);
    ck_assert_int_eq(uc_store_get_finished(&fake.base, &result, 1, &count), UC_ERR_GENERAL);
    ck_assert_int_eq(uc_store_wait(&fake.base, NULL, 0, 0, &result, 1, &count), UC_ERR_GENERAL);
    ck_assert_uint_eq(count, 42);
    fake.status = UC_ERR_TIMEOUT; /* */
    ck_assert_int_eq(uc_store_wait(&fake.base, NULL, 0, 0, &result, 1, &count), UC_ERR_TIMEOUT);
    ck_assert_uint_eq(count, 1);
}
END_TEST

START_TEST(plugin_that_answers_out_of_range_is_caught)
{
    struct uc_block_id id = {{0}};
    struct uc_io_result result;
    int64_t index = 42;
    size_t count = 42;

    fill_optional_slots();
    fake.index = 1;
    ck_assert_int_eq(uc_store_lookup_on_prefix(&fake.base, &id, 1, &index), UC_ERR_GENERAL);
    fake.index = -2;
    ck_assert_int_eq(uc_store_lookup_on_reverse(&fake.base, &id, 1, &index), UC_ERR_GENERAL);
    fake.result_count = 2;
    ck_assert_int_eq(uc_store_get_finished(&fake.base, &result, 1, &count), UC_ERR_GENERAL);
    ck_assert_int_eq(uc_store_wait(&fake.base, NULL, 0, 0, &result, 1, &count), UC_ERR_GENERAL);
    ck_assert_uint_eq(count, 42);
    ck_assert_int_eq(index, 42);
}
END_TEST

START_TEST(null_arguments_never_reach_the_plugin)
{
    struct uc_block_id id = {{0}};
    struct uc_io_result result;
    uint64_t job_id = 1;
    char byte = 0;
    uint8_t hit = 0;
    size_t count = 0;
    int64_t index = 0;

    fill_optional_slots();
    ck_assert_int_eq(uc_store_setup(&fake.base, NULL), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_store_lookup(&fake.base, NULL, 1, &hit), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_store_lookup(&fake.base, &id, 1, NULL), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_store_lookup(&fake.base, NULL, 0, NULL), UC_OK);
    ck_assert_int_eq(uc_store_lookup_on_prefix(&fake.base, &id, 1, NULL), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_store_lookup_on_reverse(&fake.base, NULL, 1, &index), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_store_touch(&fake.base, NULL, 1, NULL), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_store_load(&fake.base, 1, NULL), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_store_get_finished(&fake.base, NULL, 1, &count), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_store_get_finished(&fake.base, &result, 1, NULL), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(
            uc_store_wait(&fake.base, NULL, 1, 0, &result, 1, &count), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(
            uc_store_wait(&fake.base, &job_id, 1, -2, &result, 1, &count), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_store_describe(&fake.base, NULL), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(
            uc_store_register_memory(&fake.base, 0, NULL, 1, UC_MEMORY_HOST), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_store_register_memory(&fake.base, 0, &byte, 0, UC_MEMORY_HOST),
            UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_store_register_memory(&fake.base, 0, &byte, UINT64_MAX, UC_MEMORY_HOST),
            UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(
            uc_store_register_memory(&fake.base, UC_MEMORY_REGION_NONE, &byte, 1, UC_MEMORY_HOST),
            UC_ERR_INVALID_PARAM);
    ck_assert_uint_eq(fake.calls, 0);
}
END_TEST

/* a good payload with one thing wrong */
enum job_fault {
    JOB_GOOD,
    JOB_NO_IDS,
    JOB_NO_PAYLOADS,
    JOB_NO_POINTERS,
    JOB_NO_SIZES,
    JOB_NULL_POINTER,
    JOB_POINTER_WRAPS,
    JOB_SIZES_WRAP,
    JOB_OFFSET_WRAPS,
    JOB_REGION_COUNT,
    JOB_NO_REGIONS,
    JOB_GROUP_SUM_LOW,
    JOB_GROUP_SUM_HIGH,
    JOB_GROUP_SUM_WRAPS,
    JOB_NO_GROUPS,
    JOB_FAULT_COUNT
};

START_TEST(job_of_bad_shape_never_reaches_the_plugin)
{
    static char bytes[8];
    void *pointers[] = {_i == JOB_NULL_POINTER ? NULL : bytes, bytes + 4};
    uint64_t sizes[] = {4, _i == JOB_POINTER_WRAPS ? UINT64_MAX - 8 : 4};
    const uint32_t regions[] = {0, UC_MEMORY_REGION_NONE};
    uint64_t groups[] = {1, 1};
    struct uc_block_id id = {{0}};
    struct uc_block_payload payload = {
            .pointers = _i == JOB_NO_POINTERS ? NULL : pointers,
            .sizes = _i == JOB_NO_SIZES ? NULL : sizes,
            .pointer_count = 2,
            .memory_region_indices = _i == JOB_NO_REGIONS ? NULL : regions,
            .memory_region_index_count = _i == JOB_REGION_COUNT ? 1 : 2,
            .group_sizes = _i == JOB_NO_GROUPS ? NULL : groups,
            .group_count = 2,
            .block_offset = _i == JOB_OFFSET_WRAPS ? UINT64_MAX - 7 : 0,
    };
    struct uc_job_descriptor job = {
            .block_ids = _i == JOB_NO_IDS ? NULL : &id,
            .payloads = _i == JOB_NO_PAYLOADS ? NULL : &payload,
            .count = 1,
    };
    enum uc_status want = _i == JOB_GOOD ? UC_OK : UC_ERR_INVALID_PARAM;

    groups[0] = _i == JOB_GROUP_SUM_LOW ? 0 : _i == JOB_GROUP_SUM_HIGH ? 2 : 1;
    if (_i == JOB_GROUP_SUM_WRAPS) {
        groups[0] = UINT64_MAX;
        groups[1] = 3;
    }
    if (_i == JOB_SIZES_WRAP) {
        sizes[0] = UINT64_MAX - 3;
        pointers[0] = (void *)1;
    }
    ck_assert_int_eq(uc_store_load(&fake.base, 1, &job), want);
    ck_assert_int_eq(uc_store_dump(&fake.base, 1, &job), want);
    ck_assert_uint_eq(fake.calls, _i == JOB_GOOD ? 2 : 0);
}
END_TEST

static Suite *
store_suite(void)
{
    Suite *suite = suite_create("store");
    TCase *tcase = tcase_create("all");

    tcase_add_checked_fixture(tcase, setup, NULL);
    tcase_add_test(tcase, table_is_checked_before_use);
    tcase_add_loop_test(tcase, mandatory_slot_must_not_be_null, 0, 6);
    tcase_add_test(tcase, absent_optional_slots_have_their_meaning);
    tcase_add_test(tcase, slots_beyond_struct_size_count_as_null);
    tcase_add_test(tcase, slots_the_caller_does_not_know_are_ignored);
    tcase_add_test(tcase, present_optional_slots_are_called);
    tcase_add_test(tcase, facets_are_given_out_and_stay_the_same);
    tcase_add_test(tcase, incomplete_facet_is_no_facet);
    tcase_add_loop_test(tcase, prefix_and_reverse_are_derived_from_lookup, 0,
            sizeof(derived_cases) / sizeof(derived_cases[0]));
    tcase_add_test(tcase, derived_lookups_work_across_batches);
    tcase_add_test(tcase, outputs_are_written_on_success_only);
    tcase_add_test(tcase, plugin_that_answers_out_of_range_is_caught);
    tcase_add_test(tcase, null_arguments_never_reach_the_plugin);
    tcase_add_loop_test(tcase, job_of_bad_shape_never_reaches_the_plugin, 0, JOB_FAULT_COUNT);
    suite_add_tcase(suite, tcase);
    return suite;
}

int
main(void)
{
    SRunner *runner = srunner_create(store_suite());
    int failed;

    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
