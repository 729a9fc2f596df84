/* SPDX-License-Identifier: Apache-2.0 */

/* Owner and workers in processes of their own, killed at their worst moments.. */

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/stores/cache/payload.h"
#include "client/stores/cache/segment.h"
#include "client/stores/cache/slots.h"
#include "test/unit/client/cache/cache_env.h"

struct child {
    pid_t pid;
    int ready; /* one byte comes when it did its part */
};

typedef void (*child_fn)(const void *argument);

/* A process that does its part, says so, and then waits to be killed. Only plain calls inside. */
static struct child
start_child(child_fn act, const void *argument)
{
    struct child child;
    int ends[2];
    char byte = 0;

    ck_assert_int_eq(pipe(ends), 0);
    child.pid = fork();
    ck_assert_int_ge(child.pid, 0);
    if (child.pid == 0) {
        act(argument);
        (void)!write(ends[1], "x", 1);
        for (;;) {
            (void)pause();
        }
    }
    (void)close(ends[1]);
    child.ready = ends[0];
    ck_assert_int_eq(read(child.ready, &byte, 1), 1);
    return child;
}

static void
kill_child(struct child *child)
{
    int status = 0;

    ck_assert_int_eq(kill(child->pid, SIGKILL), 0);
    ck_assert_int_eq(waitpid(child->pid, &status, 0), child->pid);
    ck_assert(WIFSIGNALED(status));
    (void)close(child->ready);
}

static void
own_segment(const void *domain)
{
    struct uc_cache_segment *segment;

    if (uc_cache_segment_create(domain, ENV_BLOCK_BYTES, ENV_BLOCKS, true, &segment) != UC_OK) {
        _exit(1);
    }
}

/* More than the file system has is refused before any of it is taken: others live there, too. */
START_TEST(segment_beyond_the_file_system_is_refused)
{
    struct uc_cache_segment *segment = NULL;
    struct statvfs before;
    uint64_t slot_count;

    ck_assert_int_eq(statvfs("/dev/shm", &before), 0);
    slot_count = before.f_blocks * before.f_frsize / ENV_BLOCK_BYTES + 1;
    ck_assert_int_eq(uc_cache_segment_create("", ENV_BLOCK_BYTES, slot_count, true, &segment),
            UC_ERR_NO_SPACE);
    ck_assert_ptr_null(segment);
}
END_TEST

/* A live owner's segment is not touched; a dead one's is replaced. */
START_TEST(dead_owner_is_replaced_and_a_live_one_is_not)
{
    struct env_options options = {.role = "scheduler", .domain = env_domain()};
    enum uc_status status = UC_OK;
    struct child child = start_child(own_segment, env_domain());
    struct uc_cache_segment *peer = NULL;
    struct uc_store *store;
    uint64_t incarnation;

    ck_assert_ptr_null(env_try_store(&options, &status));
    ck_assert_int_eq(status, UC_ERR_DUPLICATE_KEY);
    ck_assert_ptr_nonnull(strstr(uc_last_error(), "domain"));
    ck_assert_int_eq(uc_cache_segment_attach(env_domain(), ENV_BLOCK_BYTES, &peer), UC_OK);
    incarnation = peer->incarnation;

    kill_child(&child);
    store = env_store(&options);
    uc_cache_segment_close(peer);
    ck_assert_int_eq(uc_cache_segment_attach(env_domain(), ENV_BLOCK_BYTES, &peer), UC_OK);
    ck_assert_uint_ne(peer->incarnation, incarnation);
    uc_cache_segment_close(peer);
    uc_cache_store_destroy(store);
    ck_assert_int_eq(
            uc_cache_segment_attach(env_domain(), ENV_BLOCK_BYTES, &peer), UC_ERR_NOT_FOUND);
}
END_TEST

struct transfer {
    const char *domain;
    struct uc_cache_place place;
    bool holds_ranges;
};

static void
begin_and_hang(const void *argument)
{
    const struct transfer *transfer = argument;
    struct uc_cache_segment *segment;

    if (uc_cache_segment_attach(transfer->domain, ENV_BLOCK_BYTES, &segment) != UC_OK ||
            uc_cache_slot_begin(segment, transfer->place.slot, transfer->place.generation) !=
                    UC_OK) {
        _exit(1);
    }
    if (transfer->holds_ranges) {
        atomic_store(&segment->slots[transfer->place.slot].lock, segment->row + 1);
    }
}

/* while it lives, its slot waits; when it is killed, the slot is free at once. */
START_TEST(killed_worker_blocks_no_slot)
{
    struct env_options options = {.domain = env_domain()};
    struct uc_store *store = env_store(&options);
    const struct uc_token_addressed_ops *ops = uc_store_as_token_addressed(store);
    struct uc_block_id id = env_id(1);
    struct transfer transfer = {.domain = env_domain()};
    struct uc_token *token = NULL;
    struct child child;

    ck_assert_int_eq(ops->alloc(store, &id, 1, NULL, &token), UC_OK);
    transfer.place = uc_cache_payload_key(token->payload, 0);
    child = start_child(begin_and_hang, &transfer);
    ck_assert_int_eq(ops->commit(store, token, NULL, false), UC_OK);
    ck_assert_int_eq(env_number(store, "draining"), 1);
    kill_child(&child);
    ck_assert_int_eq(env_number(store, "draining"), 0);
    ck_assert_int_eq(env_number(store, "free"), ENV_BLOCKS);
    uc_token_destroy(token);
    env_put(store, store, 1);
    ck_assert(env_can_get(store, store, 1));
    uc_cache_store_destroy(store);
}
END_TEST

/* Killed inside the critical section of a slot: the next writer takes its lock over. */
START_TEST(lock_of_a_killed_worker_is_taken_over)
{
    struct env_options options = {.domain = env_domain()};
    struct uc_store *store = env_store(&options);
    const struct uc_token_addressed_ops *ops = uc_store_as_token_addressed(store);
    struct uc_block_id id = env_id(1);
    struct transfer transfer = {.domain = env_domain(), .holds_ranges = true};
    struct uc_token *token = NULL;
    uint8_t bytes[ENV_BLOCK_BYTES];
    struct child child;

    ck_assert_int_eq(ops->alloc(store, &id, 1, NULL, &token), UC_OK);
    transfer.place = uc_cache_payload_key(token->payload, 0);
    child = start_child(begin_and_hang, &transfer);
    kill_child(&child);
    env_fill(1, bytes);
    ck_assert_int_eq(env_move(store, false, token, bytes, NULL), UC_OK);
    ck_assert_msg(ops->commit(store, token, NULL, true) == UC_OK, "%s", uc_last_error());
    uc_token_destroy(token);
    ck_assert(env_can_get(store, store, 1));
    uc_cache_store_destroy(store);
}
END_TEST

/* a worker follows its scheduler into the next life; tokens of the last one are misses. */
START_TEST(worker_follows_a_restarted_scheduler)
{
    struct env_options options = {.role = "scheduler", .domain = env_domain()};
    struct env_options worker_options = {.role = "worker", .domain = env_domain()};
    struct uc_store *control = env_store(&options);
    struct uc_store *worker = env_store(&worker_options);
    const struct uc_token_addressed_ops *ops = uc_store_as_token_addressed(control);
    struct uc_block_id id = env_id(1);
    struct uc_token *old = NULL;
    uint8_t bytes[ENV_BLOCK_BYTES] = {0};

    env_put(control, worker, 1);
    ck_assert(env_can_get(control, worker, 1));
    ck_assert_int_eq(ops->pin(control, &id, 1, &old), UC_OK);
    uc_cache_store_destroy(control);
    control = env_store(&options);
    ck_assert(!env_is_hit(control, 1));
    env_put(control, worker, 1);
    ck_assert(env_can_get(control, worker, 1));
    ck_assert_int_eq(env_move(worker, true, old, bytes, NULL), UC_ERR_NOT_FOUND);
    ops->unpin(control, old); /* another life's: no effect */
    ck_assert(env_can_get(control, worker, 1));
    uc_token_destroy(old);
    uc_cache_store_destroy(worker);
    uc_cache_store_destroy(control);
}
END_TEST

/* each side refuses the other's operations with a text. */
START_TEST(roles_refuse_each_others_operations)
{
    struct env_options options = {.role = "scheduler", .domain = env_domain()};
    struct env_options worker_options = {.role = "worker", .domain = env_domain()};
    struct uc_store *control = env_store(&options);
    struct uc_store *worker = env_store(&worker_options);
    const struct uc_token_addressed_ops *ops = uc_store_as_token_addressed(control);
    struct uc_block_id id = env_id(1);
    struct uc_token *token = NULL;
    uint8_t bytes[ENV_BLOCK_BYTES] = {0};
    uint8_t hit;

    ck_assert_int_eq(uc_store_lookup(worker, &id, 1, &hit), UC_ERR_UNSUPPORTED);
    ck_assert_int_eq(ops->alloc(worker, &id, 1, NULL, &token), UC_ERR_UNSUPPORTED);
    ck_assert_int_eq(ops->alloc(control, &id, 1, NULL, &token), UC_OK);
    ck_assert_int_eq(env_move(control, false, token, bytes, NULL), UC_ERR_UNSUPPORTED);
    ck_assert_int_eq(ops->commit(control, token, NULL, false), UC_OK);
    uc_token_destroy(token);
    uc_cache_store_destroy(worker);
    uc_cache_store_destroy(control);
}
END_TEST

/* A segment that is not what it says is refused, not followed. */
START_TEST(damaged_segment_is_refused)
{
    struct env_options options = {.role = "scheduler", .domain = env_domain()};
    struct uc_store *control = env_store(&options);
    struct uc_cache_segment *peer = NULL;
    struct uc_cache_segment *other = NULL;

    ck_assert_int_eq(uc_cache_segment_attach(env_domain(), ENV_BLOCK_BYTES, &peer), UC_OK);
    ck_assert_int_eq(uc_cache_segment_attach(env_domain(), ENV_BLOCK_BYTES * 2, &other),
            UC_ERR_INVALID_PARAM);
    peer->header->slot_count = UINT64_MAX / 2;
    ck_assert_int_eq(
            uc_cache_segment_attach(env_domain(), ENV_BLOCK_BYTES, &other), UC_ERR_INVALID_PARAM);
    peer->header->slot_count = ENV_BLOCKS + 1;
    ck_assert_int_eq(
            uc_cache_segment_attach(env_domain(), ENV_BLOCK_BYTES, &other), UC_ERR_INVALID_PARAM);
    peer->header->slot_count = ENV_BLOCKS;
    peer->header->version++;
    ck_assert_int_eq(
            uc_cache_segment_attach(env_domain(), ENV_BLOCK_BYTES, &other), UC_ERR_INVALID_PARAM);
    uc_cache_segment_close(peer);
    uc_cache_store_destroy(control);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("cache_processes");
    TCase *tcase = tcase_create("processes");
    SRunner *runner;
    int failed;

    tcase_add_test(tcase, segment_beyond_the_file_system_is_refused);
    tcase_add_test(tcase, dead_owner_is_replaced_and_a_live_one_is_not);
    tcase_add_test(tcase, killed_worker_blocks_no_slot);
    tcase_add_test(tcase, lock_of_a_killed_worker_is_taken_over);
    tcase_add_test(tcase, worker_follows_a_restarted_scheduler);
    tcase_add_test(tcase, roles_refuse_each_others_operations);
    tcase_add_test(tcase, damaged_segment_is_refused);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
