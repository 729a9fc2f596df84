/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The remote store over three servers: blocks spread over them, all or nothing across them, and one of them
 * full, dead or silent (ARCHITECTURE.md §8, R-6.6, G1, G19).
 */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include <ucm/clock.h>

#include "client/cluster/server_list.h"
#include "client/cluster/server_stat.h"
#include "client/stores/remote/store.h"
#include "test/unit/client/remote/remote_env.h"

enum {
    SERVERS = 3,
    SEARCHED = 100000,
    RPC_TIMEOUT_MS = 300,
};

static struct env_server servers[SERVERS];
static struct uc_server_list list;
static struct uc_dict *config;
static struct uc_store *store;
static const struct uc_token_addressed_ops *ops;
static uint8_t *memory;

static struct uc_dict *
make_config(const char *role)
{
    struct uc_dict *made = env_config(&servers[0], role);

    for (size_t idx = 1; idx < SERVERS; idx++) {
        char address[64];

        (void)snprintf(address, sizeof(address), "127.0.0.1:%u", (unsigned)servers[idx].port);
        ck_assert_int_eq(uc_dict_append_string(made, "servers", address), UC_OK);
    }
    ck_assert_int_eq(uc_dict_set_string(made, "rpc_timeout", "300ms"), UC_OK);
    ck_assert_int_eq(uc_dict_set_string(made, "connect_timeout", "300ms"), UC_OK);
    return made;
}

static struct uc_store *
open_store(const struct uc_dict *with)
{
    struct uc_store *opened = uc_remote_store_create();

    ck_assert_msg(uc_store_setup(opened, with) == UC_OK, "setup: %s", uc_last_error());
    return opened;
}

static void
setup(void)
{
    for (size_t idx = 0; idx < SERVERS; idx++) {
        servers[idx] = env_server_start(0, NULL);
    }
    config = make_config("both");
    ck_assert_int_eq(uc_server_list_read(config, "servers", &list), UC_OK);
    store = open_store(config);
    ops = uc_store_as_token_addressed(store);
    memory = calloc(BLOCKS, BLOCK_BYTES);
}

static void
teardown(void)
{
    env_store_destroy(store);
    uc_server_list_fini(&list);
    uc_dict_destroy(config);
    for (size_t idx = 0; idx < SERVERS; idx++) {
        env_server_stop(&servers[idx], SIGKILL);
    }
    free(memory);
}

/* The next number from *at on whose key this server holds. */
static uint32_t
number_on(size_t server, uint32_t *at)
{
    for (; *at < SEARCHED; ++*at) {
        struct uc_block_id key = env_key(*at);

        if (uc_server_list_place(&list, &key) == server) {
            return (*at)++;
        }
    }
    ck_abort_msg("no key for the server");
}

static size_t
server_of(uint32_t number)
{
    struct uc_block_id key = env_key(number);

    return uc_server_list_place(&list, &key);
}

static struct uc_stat_reply
stat_of(size_t server)
{
    struct uc_session_config session_config = {
            .server = &list.servers[server],
            .name_space = "default",
            .credential = "",
            .client = "stat",
            .access = UC_ACCESS_RO,
            .connect_timeout_ms = 5000,
            .rpc_timeout_ms = 5000,
            .clock = uc_clock_monotonic(),
    };
    struct uc_stat_reply reply;

    ck_assert_msg(uc_server_stat(&session_config, &reply) == UC_OK, "%s", uc_last_error());
    return reply;
}

static void
wait_quiet(size_t server)
{
    for (unsigned round = 0; round < 2000; round++) {
        struct uc_stat_reply reply = stat_of(server);

        if (reply.reserved_slots == 0 && reply.pinned_slots == 0 && reply.draining_slots == 0) {
            return;
        }
        env_pass_time(2);
    }
    ck_abort_msg("something stays held");
}

static uint64_t
now_ms(void)
{
    return uc_clock_now_ns() / 1000000;
}

/* one token, one job, one event, whatever the number of servers. */
START_TEST(blocks_spread_over_all_servers_and_read_back)
{
    uint64_t held = 0;

    env_put(store, 0, BLOCKS);
    ck_assert_int_eq(env_get(store, 0, BLOCKS), UC_OK);
    for (size_t server = 0; server < SERVERS; server++) {
        uint64_t wanted = 0;

        for (uint32_t number = 0; number < BLOCKS; number++) {
            wanted += server_of(number) == server ? 1 : 0;
        }
        ck_assert_uint_gt(wanted, 0);
        ck_assert_uint_eq(stat_of(server).blocks, wanted);
        held += wanted;
        wait_quiet(server);
    }
    ck_assert_uint_eq(held, BLOCKS);
}
END_TEST

/* A part of a token, from its middle: the grant's keys are counted per server. */
START_TEST(part_of_a_token_moves_its_own_blocks)
{
    struct uc_block_id keys[BLOCKS];
    struct uc_token *token = NULL;
    struct env_job job;

    for (uint32_t idx = 0; idx < BLOCKS; idx++) {
        keys[idx] = env_key(idx);
        env_fill(memory + idx * BLOCK_BYTES, BLOCK_BYTES, idx);
    }
    ck_assert_int_eq(ops->alloc(store, keys, BLOCKS, NULL, &token), UC_OK);
    for (uint32_t first = 0; first < BLOCKS; first += 8) {
        env_job_init(&job, keys + first, 8, memory + first * BLOCK_BYTES, 0, BLOCK_BYTES);
        ck_assert_int_eq(ops->dump(store, 1 + first, &job.descriptor, token, first), UC_OK);
    }
    for (uint32_t first = 0; first < BLOCKS; first += 8) {
        env_expect(store, 1 + first, UC_OK);
    }
    ck_assert_int_eq(ops->commit(store, token, NULL, true), UC_OK);
    uc_token_destroy(token);
    ck_assert_int_eq(env_get(store, 0, BLOCKS), UC_OK);
}
END_TEST

/* every server gets the verdicts of its own keys. */
START_TEST(mask_of_a_commit_is_split)
{
    struct uc_block_id keys[BLOCKS];
    uint8_t mask[BLOCKS];
    struct uc_token *token = NULL;
    struct env_job job;

    for (uint32_t idx = 0; idx < BLOCKS; idx++) {
        keys[idx] = env_key(idx);
        mask[idx] = idx % 3 != 1;
    }
    ck_assert_int_eq(ops->alloc(store, keys, BLOCKS, NULL, &token), UC_OK);
    env_job_init(&job, keys, BLOCKS, memory, 0, BLOCK_BYTES);
    ck_assert_int_eq(ops->dump(store, 1, &job.descriptor, token, 0), UC_OK);
    env_expect(store, 1, UC_OK);
    ck_assert_int_eq(ops->commit(store, token, mask, false), UC_OK);
    ck_assert_int_eq(ops->commit(store, token, mask, false), UC_ERR_NOT_FOUND); /* */
    uc_token_destroy(token);
    for (uint32_t idx = 0; idx < BLOCKS; idx++) {
        ck_assert_int_eq(env_has(store, idx), mask[idx] != 0);
    }
    for (size_t server = 0; server < SERVERS; server++) {
        wait_quiet(server);
    }
}
END_TEST

/* G1: one server is full, so nothing stays reserved anywhere. */
START_TEST(full_server_gives_everything_back)
{
    struct uc_block_id keys[BLOCKS];
    struct uc_token *full = NULL;
    struct uc_token *token = NULL;
    struct uc_block_id *filling = calloc(64, sizeof(filling[0]));
    uint32_t at = 1000;

    for (size_t idx = 0; idx < 64; idx++) { /* its capacity */
        filling[idx] = env_key(number_on(1, &at));
    }
    ck_assert_int_eq(ops->alloc(store, filling, 64, NULL, &full), UC_OK);
    for (uint32_t idx = 0; idx < BLOCKS; idx++) {
        keys[idx] = env_key(idx);
    }
    ck_assert_int_eq(ops->alloc(store, keys, BLOCKS, NULL, &token), UC_ERR_NO_SPACE);
    ck_assert_ptr_null(token);
    ck_assert_uint_eq(stat_of(0).reserved_slots, 0);
    ck_assert_uint_eq(stat_of(1).reserved_slots, 64);
    ck_assert_uint_eq(stat_of(2).reserved_slots, 0);

    ck_assert_int_eq(ops->commit(store, full, NULL, false), UC_OK);
    env_put(store, 0, BLOCKS);
    uc_token_destroy(full);
    free(filling);
}
END_TEST

/* */
START_TEST(absent_block_on_one_server_leaves_no_pin)
{
    struct uc_block_id keys[3];
    struct uc_token *token = NULL;
    uint32_t at = 0;

    for (size_t server = 0; server < SERVERS; server++) {
        uint32_t number = number_on(server, &at);

        keys[server] = env_key(number);
        if (server != 2) {
            env_put(store, number, 1);
        }
    }
    ck_assert_int_eq(ops->pin(store, keys, 3, &token), UC_ERR_NOT_FOUND);
    for (size_t server = 0; server < SERVERS; server++) {
        wait_quiet(server);
    }
}
END_TEST

/* G19, V-60: a dead server is misses, and nothing else. */
START_TEST(dead_server_is_misses_and_comes_back)
{
    static uint8_t hits[BLOCKS];
    struct uc_block_id keys[BLOCKS];
    struct uc_token *token = NULL;
    uint16_t port = servers[1].port;
    uint32_t at = 0;
    uint64_t start_ms;

    env_put(store, 0, BLOCKS);
    env_server_stop(&servers[1], SIGKILL);
    for (uint32_t idx = 0; idx < BLOCKS; idx++) {
        keys[idx] = env_key(idx);
    }
    start_ms = now_ms();
    for (unsigned round = 0; round < 100; round++) {
        ck_assert_int_eq(uc_store_lookup(store, keys, BLOCKS, hits), UC_OK);
        for (uint32_t idx = 0; idx < BLOCKS; idx++) {
            ck_assert_uint_eq(hits[idx], server_of(idx) != 1);
        }
    }
    ck_assert_uint_lt(now_ms() - start_ms, 1000);
    ck_assert_int_eq(uc_store_health(store), UC_OK);
    ck_assert_int_eq(ops->pin(store, keys, BLOCKS, &token), UC_ERR_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(uc_last_error(), list.servers[1].name));
    ck_assert_int_eq(env_get(store, number_on(0, &at), 1), UC_OK);
    wait_quiet(0);
    wait_quiet(2);

    servers[1] = env_server_start(port, NULL);
    at = 0;
    keys[0] = env_key(number_on(1, &at));
    for (unsigned round = 0; round < 10000; round++) {
        if (ops->alloc(store, keys, 1, NULL, &token) == UC_OK) {
            break;
        }
        env_pass_time(2);
    }
    ck_assert_ptr_nonnull(token);
    ck_assert_int_eq(ops->commit(store, token, NULL, false), UC_OK);
    uc_token_destroy(token);
    env_put(store, 0, BLOCKS);
    ck_assert_int_eq(env_get(store, 0, BLOCKS), UC_OK);
}
END_TEST

/* G5, G19: what lies on the living servers is stored; the rest fails block by block, and nothing stays. */
START_TEST(put_goes_on_without_a_dead_server)
{
    struct uc_block_id keys[BLOCKS];
    uint8_t mask[BLOCKS];
    struct uc_token *token = NULL;
    struct uc_block_id lost;
    struct env_job job;
    uint32_t at = 0;

    env_server_stop(&servers[0], SIGKILL);
    lost = env_key(number_on(0, &at));
    ck_assert_int_eq(ops->alloc(store, &lost, 1, NULL, &token), UC_ERR_UNHEALTHY);
    for (uint32_t idx = 0; idx < BLOCKS; idx++) {
        keys[idx] = env_key(idx);
        mask[idx] = server_of(idx) != 0;
        env_fill(memory + idx * BLOCK_BYTES, BLOCK_BYTES, idx);
    }
    ck_assert_msg(ops->alloc(store, keys, BLOCKS, NULL, &token) == UC_OK, "%s", uc_last_error());
    for (uint32_t idx = 0; idx < BLOCKS; idx++) { /* also parts that no server is left for */
        struct uc_io_result result;

        env_job_init(&job, &keys[idx], 1, memory + idx * BLOCK_BYTES, 0, BLOCK_BYTES);
        ck_assert_int_eq(ops->dump(store, 1, &job.descriptor, token, idx), UC_OK);
        result = env_wait(store, 1);
        ck_assert_int_eq(result.code, mask[idx] ? UC_OK : UC_ERR_UNHEALTHY);
        uc_io_results_release(&result, 1);
    }
    ck_assert_int_eq(ops->commit(store, token, mask, false), UC_OK);
    uc_token_destroy(token);
    for (uint32_t idx = 0; idx < BLOCKS; idx++) {
        ck_assert_int_eq(env_has(store, idx), mask[idx] != 0);
        if (mask[idx]) {
            ck_assert_int_eq(env_get(store, idx, 1), UC_OK);
        }
    }

    ck_assert_int_eq(ops->alloc(store, keys, BLOCKS, NULL, &token), UC_OK);
    ck_assert_int_eq(ops->commit(store, token, NULL, true), UC_ERR_NOT_FOUND); /* */
    uc_token_destroy(token);
    wait_quiet(1);
    wait_quiet(2);
}
END_TEST

/* G15: the blocks of the dead server fail, the others have moved; commit tells, and the rest stays. */
START_TEST(server_that_dies_under_a_grant_fails_its_own_blocks)
{
    struct uc_block_id keys[BLOCKS];
    struct uc_token *token = NULL;
    struct uc_io_result result;
    struct env_job job;

    for (uint32_t idx = 0; idx < BLOCKS; idx++) {
        keys[idx] = env_key(idx);
    }
    ck_assert_int_eq(ops->alloc(store, keys, BLOCKS, NULL, &token), UC_OK);
    env_server_stop(&servers[2], SIGKILL);
    env_job_init(&job, keys, BLOCKS, memory, 0, BLOCK_BYTES);
    ck_assert_int_eq(ops->dump(store, 1, &job.descriptor, token, 0), UC_OK);
    result = env_wait(store, 1);
    ck_assert_int_eq(result.code, UC_ERR_UNHEALTHY);
    for (uint32_t idx = 0; idx < BLOCKS; idx++) {
        ck_assert_int_eq(uc_io_result_block_ok(&result, idx), server_of(idx) != 2);
    }
    uc_io_results_release(&result, 1);
    ck_assert_int_eq(ops->commit(store, token, NULL, true), UC_ERR_NOT_FOUND);
    uc_token_destroy(token);
    for (uint32_t idx = 0; idx < BLOCKS; idx++) {
        ck_assert_int_eq(env_has(store, idx), server_of(idx) != 2);
    }
}
END_TEST

/* A server that does not answer costs one rpc_timeout, once; a job ends by its deadline. */
START_TEST(silent_server_costs_one_timeout)
{
    static uint8_t hits[BLOCKS];
    struct uc_block_id keys[BLOCKS];
    struct uc_token *token = NULL;
    struct uc_io_result result;
    struct env_job job;
    uint64_t start_ms;

    env_put(store, 0, BLOCKS);
    for (uint32_t idx = 0; idx < BLOCKS; idx++) {
        keys[idx] = env_key(idx);
    }
    ck_assert_int_eq(ops->pin(store, keys, BLOCKS, &token), UC_OK);
    env_server_freeze(&servers[0]);

    env_job_init(&job, keys, BLOCKS, memory, 0, BLOCK_BYTES);
    job.descriptor.timeout_ms = 500;
    ck_assert_int_eq(ops->load(store, 1, &job.descriptor, token, 0), UC_OK);
    start_ms = now_ms();
    for (unsigned round = 0; round < 50; round++) {
        ck_assert_int_eq(uc_store_lookup(store, keys, BLOCKS, hits), UC_OK);
        for (uint32_t idx = 0; idx < BLOCKS; idx++) {
            ck_assert_uint_eq(hits[idx], server_of(idx) != 0);
        }
    }
    ck_assert_uint_lt(now_ms() - start_ms, 3 * RPC_TIMEOUT_MS);
    result = env_wait(store, 1);
    ck_assert_int_eq(result.code, UC_ERR_TIMEOUT);
    for (uint32_t idx = 0; idx < BLOCKS; idx++) {
        ck_assert_int_eq(uc_io_result_block_ok(&result, idx), server_of(idx) != 0);
    }
    uc_io_results_release(&result, 1);
    ops->unpin(store, token);
    uc_token_destroy(token);
    wait_quiet(1);
    wait_quiet(2);
    env_server_thaw(&servers[0]);
    for (unsigned round = 0; round < 10000 && !env_has(store, 0); round++) {
        env_pass_time(2);
    }
    wait_quiet(0);
}
END_TEST

/* ARCHITECTURE.md §6: the MAC of every node covers the whole token. */
START_TEST(flipped_bits_of_a_token_never_succeed)
{
    struct uc_block_id keys[SERVERS];
    struct uc_token *token = NULL;
    struct env_job whole;
    uint8_t *bytes;
    size_t length;
    uint32_t at = 0;

    for (size_t server = 0; server < SERVERS; server++) {
        uint32_t number = number_on(server, &at);

        env_put(store, number, 1);
        keys[server] = env_key(number);
    }
    ck_assert_int_eq(ops->pin(store, keys, 2, &token), UC_OK); /* two nodes */
    length = uc_token_serialized_bytes(token);
    bytes = malloc(length);
    for (size_t idx = 16 + 2 * UC_BLOCK_ID_BYTES; idx < length; idx++) {
        struct uc_token *forged = NULL;
        struct env_job job;

        uc_token_serialize(token, bytes);
        bytes[idx] ^= (uint8_t)(1u << (idx % 8));
        if (uc_token_deserialize(bytes, length, &forged) != UC_OK) {
            continue;
        }
        env_job_init(&job, keys, 2, memory, 0, BLOCK_BYTES);
        if (ops->load(store, 1, &job.descriptor, forged, 0) == UC_OK) {
            struct uc_io_result result = env_wait(store, 1);

            ck_assert_msg(!result.success, "byte %zu", idx);
            uc_io_results_release(&result, 1);
        }
        ops->unpin(store, forged); /* concludes nothing */
        uc_token_destroy(forged);
    }
    ck_assert_uint_eq(stat_of(0).pinned_slots, 1);
    ck_assert_uint_eq(stat_of(1).pinned_slots, 1);
    env_wait_health(store, UC_OK);
    env_job_init(&whole, keys, 2, memory, 0, BLOCK_BYTES);
    ck_assert_int_eq(ops->load(store, 2, &whole.descriptor, token, 0), UC_OK);
    env_expect(store, 2, UC_OK);
    ops->unpin(store, token);
    wait_quiet(0);
    wait_quiet(1);
    uc_token_destroy(token);
    free(bytes);
}
END_TEST

/* G19: setup needs one server; the others join whenever they come. */
START_TEST(setup_tolerates_servers_that_are_away)
{
    uint16_t port = servers[2].port;
    struct uc_store *other;

    env_server_stop(&servers[2], SIGKILL);
    other = open_store(config);
    ck_assert_int_eq(uc_store_health(other), UC_OK);
    servers[2] = env_server_start(port, NULL);
    for (unsigned round = 0; round < 10000; round++) {
        const struct uc_token_addressed_ops *other_ops = uc_store_as_token_addressed(other);
        uint32_t at = 0;
        struct uc_block_id key = env_key(number_on(2, &at));
        struct uc_token *token = NULL;

        if (other_ops->alloc(other, &key, 1, NULL, &token) == UC_OK) {
            uc_token_destroy(token);
            env_store_destroy(other);
            return;
        }
        env_pass_time(2);
    }
    ck_abort_msg("the server that came later was not found");
}
END_TEST

START_TEST(setup_refuses_servers_that_do_not_fit)
{
    static const char *const other_size[] = {"--block_bytes=128KiB", NULL};
    uint16_t port = servers[2].port;
    const char *roles[] = {"scheduler", "worker"};

    env_server_stop(&servers[2], SIGKILL);
    servers[2] = env_server_start(port, other_size);
    for (size_t idx = 0; idx < 2; idx++) {
        struct uc_dict *other_config = make_config(roles[idx]);
        struct uc_store *other = uc_remote_store_create();

        ck_assert_int_eq(uc_store_setup(other, other_config), UC_ERR_INVALID_PARAM);
        ck_assert_ptr_nonnull(strstr(uc_last_error(), list.servers[2].name));
        env_store_destroy(other);
        uc_dict_destroy(other_config);
    }
}
END_TEST

/* Unhealthy without any server; the text names them. */
START_TEST(store_is_unhealthy_without_any_server)
{
    struct uc_dict *description = NULL;
    int64_t down_count = 0;

    env_server_stop(&servers[0], SIGKILL);
    env_server_stop(&servers[1], SIGKILL);
    for (unsigned round = 0; round < 10000 && down_count != 2; round++) {
        uc_dict_destroy(description);
        ck_assert_int_eq(uc_dict_create(&description), UC_OK);
        ck_assert_int_eq(uc_store_describe(store, description), UC_OK);
        ck_assert_int_eq(uc_dict_get_int(description, "servers_down_count", &down_count), UC_OK);
        env_pass_time(2);
    }
    ck_assert_int_eq(down_count, 2);
    uc_dict_destroy(description);
    ck_assert_int_eq(uc_store_health(store), UC_OK);
    env_server_stop(&servers[2], SIGKILL);
    env_wait_health(store, UC_ERR_UNHEALTHY);
    ck_assert_int_eq(uc_store_health(store), UC_ERR_UNHEALTHY);
    for (size_t idx = 0; idx < SERVERS; idx++) {
        ck_assert_ptr_nonnull(strstr(uc_last_error(), list.servers[idx].name));
    }
    ck_assert(!env_has(store, 1));
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("remote_cluster");
    TCase *tcase = tcase_create("three servers");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_set_timeout(tcase, 100);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, blocks_spread_over_all_servers_and_read_back);
    tcase_add_test(tcase, part_of_a_token_moves_its_own_blocks);
    tcase_add_test(tcase, mask_of_a_commit_is_split);
    tcase_add_test(tcase, full_server_gives_everything_back);
    tcase_add_test(tcase, absent_block_on_one_server_leaves_no_pin);
    tcase_add_test(tcase, dead_server_is_misses_and_comes_back);
    tcase_add_test(tcase, put_goes_on_without_a_dead_server);
    tcase_add_test(tcase, server_that_dies_under_a_grant_fails_its_own_blocks);
    tcase_add_test(tcase, silent_server_costs_one_timeout);
    tcase_add_test(tcase, flipped_bits_of_a_token_never_succeed);
    tcase_add_test(tcase, setup_tolerates_servers_that_are_away);
    tcase_add_test(tcase, setup_refuses_servers_that_do_not_fit);
    tcase_add_test(tcase, store_is_unhealthy_without_any_server);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
