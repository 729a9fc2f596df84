/* SPDX-License-Identifier: Apache-2.0 */

/* Blocks in memory of a device, over a driver without one whose memory the processor cannot touch. */

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ucm/clock.h>

#include "client/stores/cache/segment.h"
#include "test/fake/fake_cuda.h"
#include "test/unit/client/cache/cache_env.h"

enum {
    BLOCKS = 64, /* more than a device copies at a time */
    MEMORY_BYTES = BLOCKS * ENV_BLOCK_BYTES,
};

static struct uc_store *store;
static uint8_t *memory; /* of the device */
static uint64_t next_job_id = 1000;

static void
register_memory(struct uc_store *data, uint8_t *address)
{
    ck_assert_msg(uc_store_register_memory(data, 0, address, MEMORY_BYTES, UC_MEMORY_CUDA) == UC_OK,
            "%s", uc_last_error());
}

static void
start(void)
{
    struct env_options options = {.capacity_blocks = BLOCKS};

    memory = fake_cuda_alloc(MEMORY_BYTES);
    store = env_store(&options);
    register_memory(store, memory);
}

static void
stop(void)
{
    uc_cache_store_destroy(store);
    fake_cuda_free(memory);
    ck_assert_uint_eq(fake_cuda_objects(), 0);
}

static struct uc_token *
reserve(struct uc_store *control, unsigned first, size_t count)
{
    struct uc_block_id ids[BLOCKS];
    struct uc_token *token = NULL;

    for (size_t idx = 0; idx < count; idx++) {
        ids[idx] = env_id(first + (unsigned)idx);
    }
    ck_assert_msg(
            uc_store_as_token_addressed(control)->alloc(control, ids, count, NULL, &token) == UC_OK,
            "%s", uc_last_error());
    return token;
}

static enum uc_status
commit(struct uc_store *control, struct uc_token *token, bool success)
{
    enum uc_status status =
            uc_store_as_token_addressed(control)->commit(control, token, NULL, success);

    uc_token_destroy(token);
    return status;
}

/* Blocks one after the other at an address. @return the job, or 0 if it was refused with @p status_out */
static uint64_t
submit(struct uc_store *data, bool is_load, const struct uc_token *token, uint8_t *address,
        uint64_t timeout_ms, enum uc_status *status_out)
{
    const struct uc_token_addressed_ops *ops = uc_store_as_token_addressed(data);
    struct uc_block_payload payloads[BLOCKS] = {0};
    void *pointers[BLOCKS];
    uint64_t size = ENV_BLOCK_BYTES;
    struct uc_job_descriptor job = {.block_ids = token->keys,
            .payloads = payloads,
            .count = token->key_count,
            .timeout_ms = timeout_ms};
    uint64_t job_id = next_job_id++;

    for (size_t idx = 0; idx < token->key_count; idx++) {
        pointers[idx] = address + idx * ENV_BLOCK_BYTES;
        payloads[idx].pointers = &pointers[idx];
        payloads[idx].sizes = &size;
        payloads[idx].pointer_count = 1;
    }
    *status_out = is_load ? ops->load(data, job_id, &job, token, 0)
                          : ops->dump(data, job_id, &job, token, 0);
    return *status_out == UC_OK ? job_id : 0;
}

static uint64_t
must_submit(bool is_load, const struct uc_token *token, uint8_t *address, uint64_t timeout_ms)
{
    enum uc_status status = UC_OK;
    uint64_t job_id = submit(store, is_load, token, address, timeout_ms, &status);

    ck_assert_msg(status == UC_OK, "%s", uc_last_error());
    return job_id;
}

static void
fill_device(unsigned number, uint8_t *address)
{
    env_fill(number, fake_cuda_bytes(address));
}

static bool
device_matches(unsigned number, const uint8_t *address)
{
    return env_matches(number, fake_cuda_bytes(address));
}

/* Put one block from memory of the device. */
static void
put_from_device(unsigned number)
{
    struct uc_token *token = reserve(store, number, 1);

    fill_device(number, memory);
    ck_assert_int_eq(env_wait(store, must_submit(false, token, memory, 0), NULL), UC_OK);
    ck_assert_msg(commit(store, token, true) == UC_OK, "%s", uc_last_error());
}

static enum uc_status
get_to(unsigned number, uint8_t *address)
{
    const struct uc_token_addressed_ops *ops = uc_store_as_token_addressed(store);
    struct uc_block_id id = env_id(number);
    struct uc_token *token = NULL;
    enum uc_status code;

    ck_assert_int_eq(ops->pin(store, &id, 1, &token), UC_OK);
    code = env_move(store, true, token, address, NULL);
    ops->unpin(store, token);
    uc_token_destroy(token);
    return code;
}

/* Bounded by the clock; the copies are started by threads of the store. */
static void
wait_for_copies(size_t count)
{
    uint64_t until_ns = uc_clock_now_ns() + (uint64_t)ENV_WAIT_MS * 1000000u;

    while (fake_cuda_held() < count && uc_clock_now_ns() < until_ns) {
        (void)sched_yield();
    }
    ck_assert_uint_eq(fake_cuda_held(), count);
}

static bool
has_event(void)
{
    struct uc_io_result result;
    size_t count = 0;

    ck_assert_int_eq(uc_store_get_finished(store, &result, 1, &count), UC_OK);
    return count > 0;
}

START_TEST(block_goes_from_a_device_to_a_device_and_to_the_host)
{
    uint8_t bytes[ENV_BLOCK_BYTES] = {0};

    put_from_device(1);
    ck_assert_int_eq(get_to(1, memory + ENV_BLOCK_BYTES), UC_OK);
    ck_assert(device_matches(1, memory + ENV_BLOCK_BYTES));
    ck_assert_int_eq(get_to(1, bytes), UC_OK);
    ck_assert(env_matches(1, bytes));
    env_put(store, store, 2);
    ck_assert_int_eq(get_to(2, memory), UC_OK);
    ck_assert(device_matches(2, memory));
    ck_assert_int_eq(env_number(store, "blocks_loaded"), 3);
    ck_assert_int_eq(env_number(store, "blocks_dumped"), 2);
}
END_TEST

/* Many in one job, more than are copied at a time; the device's memory is that of one region. */
START_TEST(job_of_many_blocks_comes_back)
{
    struct uc_token *token = reserve(store, 1, BLOCKS);
    const struct uc_token_addressed_ops *ops = uc_store_as_token_addressed(store);
    struct uc_token *pinned = NULL;

    for (unsigned idx = 0; idx < BLOCKS; idx++) {
        fill_device(1 + idx, memory + idx * ENV_BLOCK_BYTES);
    }
    ck_assert_int_eq(env_wait(store, must_submit(false, token, memory, 0), NULL), UC_OK);
    ck_assert_int_eq(commit(store, token, true), UC_OK);
    memset(fake_cuda_bytes(memory), 0, MEMORY_BYTES);
    for (unsigned idx = 0; idx < BLOCKS; idx++) {
        struct uc_block_id id = env_id(1 + idx);

        ck_assert_int_eq(ops->pin(store, &id, 1, &pinned), UC_OK);
        ck_assert_int_eq(
                env_move(store, true, pinned, memory + idx * ENV_BLOCK_BYTES, NULL), UC_OK);
        ops->unpin(store, pinned);
        uc_token_destroy(pinned);
        ck_assert(device_matches(1 + idx, memory + idx * ENV_BLOCK_BYTES));
    }
}
END_TEST

/* One block each in host memory, in the device's, and in pieces of both. */
START_TEST(blocks_of_host_and_device_share_a_job)
{
    struct uc_token *token = reserve(store, 1, 3);
    const struct uc_token_addressed_ops *ops = uc_store_as_token_addressed(store);
    uint8_t host[2][ENV_BLOCK_BYTES];
    uint64_t half = ENV_BLOCK_BYTES / 2;
    uint64_t whole = ENV_BLOCK_BYTES;
    uint64_t halves[2] = {half, half};
    void *first = host[0];
    void *second = memory;
    void *third[2] = {memory + ENV_BLOCK_BYTES, host[1] + half};
    struct uc_block_payload payloads[3] = {
            {.pointers = &first, .sizes = &whole, .pointer_count = 1},
            {.pointers = &second, .sizes = &whole, .pointer_count = 1},
            {.pointers = third, .sizes = halves, .pointer_count = 2},
    };
    struct uc_job_descriptor job = {.block_ids = token->keys, .payloads = payloads, .count = 3};

    env_fill(1, host[0]);
    fill_device(2, memory);
    env_fill(3, host[1]);
    memcpy(fake_cuda_bytes(memory + ENV_BLOCK_BYTES), host[1], half);
    ck_assert_int_eq(ops->dump(store, 1, &job, token, 0), UC_OK);
    ck_assert_int_eq(env_wait(store, 1, NULL), UC_OK);
    ck_assert_int_eq(
            ops->commit(store, token, NULL, true), UC_OK); /* the token serves once more below */
    uc_token_destroy(token);
    for (unsigned number = 1; number <= 3; number++) {
        ck_assert(env_can_get(store, store, number));
        ck_assert_int_eq(get_to(number, memory), UC_OK);
        ck_assert(device_matches(number, memory));
    }
}
END_TEST

/* the deadline passes under the copy; the event comes after it, with the real outcome. */
START_TEST(no_event_comes_before_the_copy_is_over)
{
    struct uc_token *token = reserve(store, 1, 1);
    uint64_t until_ns;
    uint64_t job_id;

    fill_device(1, memory);
    fake_cuda_hold();
    job_id = must_submit(false, token, memory, 500);
    wait_for_copies(1);
    until_ns = uc_clock_now_ns() + 550 * 1000000u;
    while (uc_clock_now_ns() < until_ns) {
        ck_assert(!has_event());
    }
    ck_assert_int_eq(uc_store_deregister_memory(store, 0), UC_ERR_RETRY); /* */
    fake_cuda_release();
    ck_assert_int_eq(env_wait(store, job_id, NULL), UC_OK);
    ck_assert_int_eq(commit(store, token, true), UC_OK);
    ck_assert(env_can_get(store, store, 1));
    ck_assert_int_eq(uc_store_deregister_memory(store, 0), UC_OK);
}
END_TEST

/* what has not begun ends in time, though the device does not move. Host memory is not held up either. */
START_TEST(jobs_behind_a_stuck_device_end_in_time)
{
    struct uc_token *stuck = reserve(store, 1, BLOCKS - 8);
    struct uc_token *behind = reserve(store, 100, 4);
    uint64_t bits = 0;
    uint64_t stuck_id;

    fake_cuda_hold();
    stuck_id = must_submit(false, stuck, memory, 0);
    wait_for_copies(32);
    ck_assert_int_eq(
            env_wait(store, must_submit(false, behind, memory, 20), &bits), UC_ERR_TIMEOUT);
    ck_assert_uint_eq(bits, 0);
    env_put(store, store, 200);
    ck_assert(env_can_get(store, store, 200));
    fake_cuda_release();
    ck_assert_int_eq(env_wait(store, stuck_id, NULL), UC_OK);
    ck_assert_int_eq(commit(store, stuck, false), UC_OK);
    ck_assert_int_eq(commit(store, behind, true), UC_ERR_INVALID_PARAM); /* */
}
END_TEST

START_TEST(copy_that_fails_makes_no_block)
{
    struct uc_token *token = reserve(store, 1, 2);
    uint64_t bits = 0;
    enum uc_status code;

    fill_device(1, memory);
    fill_device(2, memory + ENV_BLOCK_BYTES);
    fake_cuda_fail_copies(1);
    code = env_wait(store, must_submit(false, token, memory, 0), &bits);
    ck_assert_int_eq(code, UC_ERR_OS_API);
    ck_assert(bits == 1 || bits == 2); /* the other one came */
    ck_assert_int_eq(commit(store, token, true), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(env_is_hit(store, 1), (bits & 1) != 0);
    ck_assert_int_eq(env_is_hit(store, 2), (bits & 2) != 0);
    put_from_device(3); /* and the place of the copy is free again */
    fake_cuda_fail_copies(1);
    ck_assert_int_eq(get_to(3, memory), UC_ERR_OS_API);
    ck_assert_int_eq(get_to(3, memory), UC_OK); /* nothing is wrong with the block */
    ck_assert(device_matches(3, memory));
}
END_TEST

/* The device took the copy and then failed at it. */
START_TEST(copy_that_breaks_makes_no_block)
{
    struct uc_token *token = reserve(store, 1, 1);

    fill_device(1, memory);
    fake_cuda_break_copies(1);
    ck_assert_int_eq(env_wait(store, must_submit(false, token, memory, 0), NULL), UC_ERR_OS_API);
    ck_assert_int_eq(commit(store, token, true), UC_ERR_INVALID_PARAM);
    ck_assert(!env_is_hit(store, 1));
    put_from_device(1);
    fake_cuda_break_copies(1);
    ck_assert_int_eq(get_to(1, memory), UC_ERR_OS_API);
    ck_assert_int_eq(get_to(1, memory), UC_OK);
}
END_TEST

/* A piece is refused while the one before it still runs: that one is waited for. */
START_TEST(failed_copy_waits_for_those_before_it)
{
    struct uc_token *token = reserve(store, 1, 1);
    const struct uc_token_addressed_ops *ops = uc_store_as_token_addressed(store);
    uint64_t half = ENV_BLOCK_BYTES / 2;
    uint64_t halves[2] = {half, half};
    void *pieces[2] = {memory, memory + half};
    struct uc_block_payload payload = {.pointers = pieces, .sizes = halves, .pointer_count = 2};
    struct uc_job_descriptor job = {.block_ids = token->keys, .payloads = &payload, .count = 1};

    fake_cuda_hold();
    fake_cuda_fail_copies_after(1, 1);
    ck_assert_int_eq(ops->dump(store, 1, &job, token, 0), UC_OK);
    wait_for_copies(1);
    ck_assert(!has_event());
    fake_cuda_release();
    ck_assert_int_eq(env_wait(store, 1, NULL), UC_ERR_OS_API);
    ck_assert_int_eq(commit(store, token, true), UC_ERR_INVALID_PARAM);
    ck_assert(!env_is_hit(store, 1));
}
END_TEST

/* */
START_TEST(memory_is_what_it_was_registered_as)
{
    struct uc_token *token = reserve(store, 1, 1);
    uint8_t host[ENV_BLOCK_BYTES];
    enum uc_status status = UC_OK;

    ck_assert_int_eq(uc_store_register_memory(store, 1, host, sizeof(host), UC_MEMORY_CUDA),
            UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_store_register_memory(store, 1, host, sizeof(host), (enum uc_memory_kind)7),
            UC_ERR_UNSUPPORTED);
    ck_assert_int_eq(uc_store_deregister_memory(store, 1), UC_ERR_NOT_FOUND);
    ck_assert_int_eq(uc_store_register_memory(store, 0, memory, 1, UC_MEMORY_CUDA),
            UC_ERR_INVALID_PARAM); /* taken */
    ck_assert_uint_eq(submit(store, false, token, memory + MEMORY_BYTES - 1, 0, &status), 0);
    ck_assert_int_eq(status, UC_ERR_INVALID_PARAM);
    ck_assert_uint_eq(submit(store, false, token, memory - 1, 0, &status), 0);
    ck_assert_int_eq(status, UC_ERR_INVALID_PARAM);
    ck_assert_ptr_nonnull(strstr(uc_last_error(), "as a whole"));
    ck_assert_int_eq(commit(store, token, false), UC_OK);
}
END_TEST

static void
damage(const char *domain)
{
    struct uc_cache_segment *segment = NULL;

    ck_assert_int_eq(uc_cache_segment_attach(domain, ENV_BLOCK_BYTES, &segment), UC_OK);
    for (uint32_t slot = 0; slot < segment->slot_count; slot++) {
        uc_cache_segment_bytes(segment, slot)[7] ^= 0x40;
    }
    uc_cache_segment_close(segment);
}

/* a checksum that there is counts for loads to a device, too; a block that came from one has none. */
START_TEST(checksum_is_verified_where_there_is_one)
{
    struct env_options options = {.domain = env_domain()};

    memory = fake_cuda_alloc(MEMORY_BYTES);
    store = env_store(&options);
    register_memory(store, memory);
    env_put(store, store, 1);
    put_from_device(2);
    damage(env_domain());
    ck_assert_int_eq(get_to(1, memory), UC_ERR_NOT_FOUND);
    ck_assert(!env_is_hit(store, 1)); /* */
    ck_assert_int_eq(get_to(2, memory), UC_OK);
    stop();
}
END_TEST

/* A worker attaches with its first token, or finds the segment when it registers: either way a device knows it. */
START_TEST(worker_of_another_process_copies)
{
    struct env_options control_options = {.role = "scheduler", .domain = env_domain()};
    struct env_options worker_options = {.role = "worker", .domain = env_domain()};
    struct uc_store *control = NULL;

    memory = fake_cuda_alloc(MEMORY_BYTES);
    if (_i == 1) {
        control = env_store(&control_options);
    }
    store = env_store(&worker_options);
    register_memory(store, memory);
    if (_i == 0) {
        control = env_store(&control_options);
    }
    for (unsigned life = 0; life < 2; life++) {
        struct uc_token *token = reserve(control, 1, 1);

        fill_device(1, memory);
        ck_assert_int_eq(env_wait(store, must_submit(false, token, memory, 0), NULL), UC_OK);
        ck_assert_int_eq(commit(control, token, true), UC_OK);
        ck_assert(env_can_get(control, store, 1));
        uc_cache_store_destroy(control);
        control = env_store(&control_options); /* another segment of that name */
    }
    uc_cache_store_destroy(control);
    stop();
}
END_TEST

/* the block is lifted and written through from host memory, whatever it came from. */
START_TEST(block_of_a_device_travels_through_the_tiers)
{
    struct env_options lower_options = {.capacity_blocks = BLOCKS};
    struct env_options options = {.write = "through"};
    struct uc_store *lower = env_store(&lower_options);
    uint64_t until_ns = uc_clock_now_ns() + (uint64_t)ENV_WAIT_MS * 1000000u;
    uint8_t hit = 0;

    options.lower = lower;
    memory = fake_cuda_alloc(MEMORY_BYTES);
    store = env_store(&options);
    register_memory(store, memory);
    register_memory(lower, memory); /* as a pipe does */
    for (unsigned number = 1; number <= 2 * ENV_BLOCKS; number++) {
        put_from_device(number);
        while (env_number(store, "write_queued") > 0 && uc_clock_now_ns() < until_ns) {
            (void)sched_yield();
        }
    }
    ck_assert_int_eq(env_number(store, "written_total"), 2 * ENV_BLOCKS);
    ck_assert(env_can_get(lower, lower, 1));
    ck_assert(env_ask(store, 1, &hit)); /* evicted here */
    ck_assert_int_eq(env_run_round(store, true), UC_OK);
    ck_assert_int_eq(get_to(1, memory), UC_OK);
    ck_assert(device_matches(1, memory));
    uc_cache_store_destroy(store);
    uc_cache_store_destroy(lower);
    fake_cuda_free(memory);
    ck_assert_uint_eq(fake_cuda_objects(), 0);
}
END_TEST

/* In the child: begin to put, and be killed before the device is done. */
static void
hang_in_a_copy(struct uc_token *token, int ready)
{
    struct env_options options = {.role = "worker", .domain = "", .capacity_blocks = 1};
    char domain[64];
    enum uc_status status = UC_OK;

    (void)snprintf(domain, sizeof(domain), "test-%d", (int)getppid());
    options.domain = domain;
    memory = fake_cuda_alloc(MEMORY_BYTES);
    store = env_store(&options);
    register_memory(store, memory);
    fake_cuda_hold();
    (void)submit(store, false, token, memory, 0, &status);
    while (fake_cuda_held() < token->key_count) {
        (void)sched_yield();
    }
    (void)!write(ready, "x", 1);
    for (;;) {
        (void)pause();
    }
}

/* The owner notes when it saw that the worker is dead: until a while later, the device may still copy. */
static bool
is_given_time(void)
{
    struct uc_cache_segment *segment = NULL;
    bool any = false;

    ck_assert_int_eq(uc_cache_segment_attach(env_domain(), ENV_BLOCK_BYTES, &segment), UC_OK);
    for (uint32_t row = 1; row < UC_CACHE_ROWS; row++) {
        any = any || atomic_load(&segment->header->dead_since_ms[row]) != 0;
    }
    uc_cache_segment_close(segment);
    return any;
}

/* G2: what the killed worker wrote is no block, and its slot serves others, but not at once. */
START_TEST(killed_worker_leaves_no_block)
{
    struct env_options options = {
            .role = "scheduler", .domain = env_domain(), .capacity_blocks = 1};
    struct env_options worker_options = {.role = "worker", .domain = env_domain()};
    struct uc_store *control = env_store(&options);
    const struct uc_token_addressed_ops *ops = uc_store_as_token_addressed(control);
    struct uc_token *token = reserve(control, 1, 1);
    uint64_t until_ns = uc_clock_now_ns() + (uint64_t)ENV_WAIT_MS * 1000000u;
    struct uc_block_id id = env_id(2);
    struct uc_store *worker;
    char byte = 0;
    int ends[2];
    pid_t pid;

    ck_assert_int_eq(pipe(ends), 0);
    pid = fork();
    if (pid == 0) {
        hang_in_a_copy(token, ends[1]);
    }
    ck_assert_int_eq(read(ends[0], &byte, 1), 1);
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    ck_assert_int_eq(commit(control, token, true), UC_ERR_INVALID_PARAM);
    ck_assert(!env_is_hit(control, 1));
    ck_assert(is_given_time());
    worker = env_store(&worker_options);
    while (ops->alloc(control, &id, 1, NULL, &token) == UC_ERR_NO_SPACE) {
        ck_assert_uint_lt(uc_clock_now_ns(), until_ns);
        (void)sched_yield();
    }
    ck_assert(!is_given_time());
    ck_assert_int_eq(commit(control, token, false), UC_OK);
    env_put(control, worker, 2);
    ck_assert(env_can_get(control, worker, 2));
    uc_cache_store_destroy(worker);
    uc_cache_store_destroy(control);
    (void)close(ends[0]);
    (void)close(ends[1]);
}
END_TEST

/* Whatever the driver refuses: an error, or blocks that failed; no wrong bytes, and nothing that stays. */
START_TEST(refused_call_of_the_driver_costs_its_block_at_most)
{
    struct env_options options = {.capacity_blocks = BLOCKS};
    unsigned good_count = 0;
    bool was_refused;

    do {
        uc_cache_store_destroy(store);
        store = env_store(&options);
        env_put(store, store, 2);
        fake_cuda_refuse_calls_after(good_count++, 1);
        if (uc_store_register_memory(store, 0, memory, MEMORY_BYTES, UC_MEMORY_CUDA) == UC_OK) {
            struct uc_token *token = reserve(store, 1, 1);
            enum uc_status code;

            fill_device(1, memory);
            code = env_move(store, false, token, memory, NULL);
            ck_assert_int_eq(commit(store, token, code == UC_OK), UC_OK);
            if (code == UC_OK && get_to(1, memory + ENV_BLOCK_BYTES) == UC_OK) {
                ck_assert(device_matches(1, memory + ENV_BLOCK_BYTES));
            }
            if (get_to(2, memory) == UC_OK) {
                ck_assert(device_matches(2, memory));
            }
        }
        was_refused = fake_cuda_left_to_refuse() == 0;
        fake_cuda_refuse_calls_after(0, 0);
    } while (was_refused);
    ck_assert_uint_gt(good_count, 10);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("cache_device");
    TCase *one = tcase_create("one store");
    TCase *more = tcase_create("more");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(one, start, stop);
    tcase_add_test(one, block_goes_from_a_device_to_a_device_and_to_the_host);
    tcase_add_test(one, job_of_many_blocks_comes_back);
    tcase_add_test(one, blocks_of_host_and_device_share_a_job);
    tcase_add_test(one, no_event_comes_before_the_copy_is_over);
    tcase_add_test(one, jobs_behind_a_stuck_device_end_in_time);
    tcase_add_test(one, copy_that_fails_makes_no_block);
    tcase_add_test(one, copy_that_breaks_makes_no_block);
    tcase_add_test(one, failed_copy_waits_for_those_before_it);
    tcase_add_test(one, refused_call_of_the_driver_costs_its_block_at_most);
    tcase_add_test(one, memory_is_what_it_was_registered_as);
    tcase_add_test(more, checksum_is_verified_where_there_is_one);
    tcase_add_loop_test(more, worker_of_another_process_copies, 0, 2);
    tcase_add_test(more, block_of_a_device_travels_through_the_tiers);
    tcase_add_test(more, killed_worker_leaves_no_block);
    suite_add_tcase(suite, one);
    suite_add_tcase(suite, more);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
