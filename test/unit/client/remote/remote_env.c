/* SPDX-License-Identifier: Apache-2.0 */

#include "test/unit/client/remote/remote_env.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <check.h>

#include <ucm/clock.h>

#include "client/stores/remote/store.h"

enum {
    ARGUMENTS_MAX = 32,
    WAIT_MS = 20000,
};

/* Read the ready line. @return the port */
static uint16_t
read_port(int output)
{
    char line[512];
    size_t length = 0;
    const char *field;
    unsigned port = 0;

    while (length < sizeof(line) - 1) {
        ssize_t got = read(output, line + length, 1);

        ck_assert_msg(got == 1, "the server ended before it served");
        if (line[length++] == '\n') {
            break;
        }
    }
    line[length] = '\0';
    field = strstr(line, "\"rpc_port\"");
    ck_assert_ptr_nonnull(field);
    ck_assert_int_eq(sscanf(field, "\"rpc_port\" : %u", &port), 1);
    return (uint16_t)port;
}

struct env_server
env_server_start(uint16_t port, const char *const *extra)
{
    struct env_server server = {.pid = -1};
    posix_spawn_file_actions_t actions;
    char listen_text[64];
    const char *arguments[ARGUMENTS_MAX] = {UCM_SERVER_PATH, listen_text, "--fabric=tcp",
            "--fabric_port=0", "--ready_file=-", "--log_level=warn", "--block_bytes=64KiB",
            "--capacity_blocks=64", "--debug_calls=true"};
    char *copies[ARGUMENTS_MAX] = {NULL};
    /* Leaks of the server are looked for by its own tests; the search may hang in a spawned process. */
    char no_leak_search[] = "ASAN_OPTIONS=detect_leaks=0";
    char *environment[] = {no_leak_search, NULL};
    size_t count = 9;
    int pipe_fds[2];

    (void)snprintf(listen_text, sizeof(listen_text), "--listen=127.0.0.1:%u", (unsigned)port);
    for (size_t idx = 0; extra != NULL && extra[idx] != NULL; idx++) {
        arguments[count++] = extra[idx];
    }
    for (size_t idx = 0; idx < count; idx++) {
        copies[idx] = strdup(arguments[idx]);
    }
    ck_assert_int_eq(pipe(pipe_fds), 0);
    ck_assert_int_eq(posix_spawn_file_actions_init(&actions), 0);
    ck_assert_int_eq(posix_spawn_file_actions_adddup2(&actions, pipe_fds[1], 1), 0);
    ck_assert_int_eq(posix_spawn_file_actions_addclose(&actions, pipe_fds[0]), 0);
    ck_assert_int_eq(posix_spawn(&server.pid, copies[0], &actions, NULL, copies, environment), 0);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)close(pipe_fds[1]);
    for (size_t idx = 0; idx < count; idx++) {
        free(copies[idx]);
    }

    server.output = pipe_fds[0];
    server.port = read_port(server.output);
    return server;
}

void
env_server_stop(struct env_server *server, int signal_number)
{
    int state;

    if (server->pid > 0) {
        (void)kill(server->pid, signal_number);
        (void)kill(server->pid, SIGCONT);
        (void)waitpid(server->pid, &state, 0);
        (void)close(server->output);
        server->pid = -1;
    }
}

void
env_server_freeze(const struct env_server *server)
{
    int state = 0;

    ck_assert_int_eq(kill(server->pid, SIGSTOP), 0);
    ck_assert_int_eq(waitpid(server->pid, &state, WUNTRACED), server->pid);
    ck_assert(WIFSTOPPED(state));
}

void
env_server_thaw(const struct env_server *server)
{
    ck_assert_int_eq(kill(server->pid, SIGCONT), 0);
}

struct uc_dict *
env_config(const struct env_server *server, const char *role)
{
    struct uc_dict *config = NULL;
    char address[64];

    (void)snprintf(address, sizeof(address), "127.0.0.1:%u", (unsigned)server->port);
    ck_assert_int_eq(uc_dict_create(&config), UC_OK);
    ck_assert_int_eq(uc_dict_append_string(config, "servers", address), UC_OK);
    ck_assert_int_eq(uc_dict_set_string(config, "fabric", "tcp"), UC_OK);
    ck_assert_int_eq(uc_dict_set_string(config, "store_role", role), UC_OK);
    ck_assert_int_eq(uc_dict_set_string(config, "node_path", "/"), UC_OK);
    return config;
}

struct uc_store *
env_store(const struct env_server *server, const char *role)
{
    struct uc_dict *config = env_config(server, role);
    struct uc_store *store = uc_remote_store_create();

    ck_assert_ptr_nonnull(store);
    ck_assert_int_eq(uc_store_check(store), UC_OK);
    ck_assert_msg(uc_store_setup(store, config) == UC_OK, "setup: %s", uc_last_error());
    uc_dict_destroy(config);
    return store;
}

void
env_store_destroy(struct uc_store *store)
{
    uc_remote_store_destroy(store);
}

struct uc_block_id
env_key(uint32_t number)
{
    struct uc_block_id key = {.bytes = {0x5a}};

    memcpy(&key.bytes[8], &number, sizeof(number));
    return key;
}

void
env_fill(uint8_t *bytes, size_t length, uint32_t number)
{
    uint32_t state = number * 2654435761u + 1;

    for (size_t idx = 0; idx < length; idx++) {
        state = state * 1664525u + 1013904223u;
        bytes[idx] = (uint8_t)(state >> 24);
    }
}

void
env_job_init(struct env_job *job, const struct uc_block_id *keys, size_t count, uint8_t *memory,
        uint64_t offset, uint64_t size)
{
    memset(job, 0, sizeof(*job));
    for (size_t idx = 0; idx < count; idx++) {
        job->pointers[idx] = memory + idx * size;
        job->sizes[idx] = size;
        job->payloads[idx].pointers = &job->pointers[idx];
        job->payloads[idx].sizes = &job->sizes[idx];
        job->payloads[idx].pointer_count = 1;
        job->payloads[idx].block_offset = offset;
    }
    job->descriptor.block_ids = keys;
    job->descriptor.payloads = job->payloads;
    job->descriptor.count = count;
}

struct uc_io_result
env_wait(struct uc_store *store, uint64_t job_id)
{
    struct uc_io_result result = {.job_id = 0};
    size_t count = 0;

    ck_assert_int_eq(uc_store_wait(store, &job_id, 1, WAIT_MS, &result, 1, &count), UC_OK);
    ck_assert_uint_eq(count, 1);
    ck_assert_uint_eq(result.job_id, job_id);
    return result;
}

void
env_expect(struct uc_store *store, uint64_t job_id, enum uc_status code)
{
    struct uc_io_result result = env_wait(store, job_id);

    ck_assert_msg(result.code == code, "job %llu: %s instead of %s", (unsigned long long)job_id,
            uc_status_name(result.code), uc_status_name(code));
    uc_io_results_release(&result, 1);
}

static void
make_keys(struct uc_block_id *keys, uint32_t first, size_t count)
{
    for (size_t idx = 0; idx < count; idx++) {
        keys[idx] = env_key(first + (uint32_t)idx);
    }
}

void
env_put(struct uc_store *store, uint32_t first, size_t count)
{
    const struct uc_token_addressed_ops *ops = uc_store_as_token_addressed(store);
    struct uc_block_id keys[BLOCKS];
    struct uc_token *token = NULL;
    uint8_t *memory = malloc(count * BLOCK_BYTES);
    struct env_job job;

    make_keys(keys, first, count);
    for (size_t idx = 0; idx < count; idx++) {
        env_fill(memory + idx * BLOCK_BYTES, BLOCK_BYTES, first + (uint32_t)idx);
    }
    ck_assert_msg(ops->alloc(store, keys, count, NULL, &token) == UC_OK, "%s", uc_last_error());
    env_job_init(&job, keys, count, memory, 0, BLOCK_BYTES);
    ck_assert_int_eq(ops->dump(store, 900, &job.descriptor, token, 0), UC_OK);
    env_expect(store, 900, UC_OK);
    ck_assert_int_eq(ops->commit(store, token, NULL, true), UC_OK);
    uc_token_destroy(token);
    free(memory);
}

enum uc_status
env_get(struct uc_store *store, uint32_t first, size_t count)
{
    const struct uc_token_addressed_ops *ops = uc_store_as_token_addressed(store);
    struct uc_block_id keys[BLOCKS];
    struct uc_token *token = NULL;
    uint8_t *memory = calloc(count, BLOCK_BYTES);
    uint8_t *expected = malloc(BLOCK_BYTES);
    struct uc_io_result result;
    enum uc_status status;
    struct env_job job;

    make_keys(keys, first, count);
    status = ops->pin(store, keys, count, &token);
    if (status == UC_OK) {
        env_job_init(&job, keys, count, memory, 0, BLOCK_BYTES);
        ck_assert_int_eq(ops->load(store, 901, &job.descriptor, token, 0), UC_OK);
        result = env_wait(store, 901);
        status = result.code;
        for (size_t idx = 0; idx < count; idx++) {
            env_fill(expected, BLOCK_BYTES, first + (uint32_t)idx);
            if (uc_io_result_block_ok(&result, idx)) {
                ck_assert_mem_eq(memory + idx * BLOCK_BYTES, expected, BLOCK_BYTES);
            }
        }
        uc_io_results_release(&result, 1);
        ops->unpin(store, token);
        uc_token_destroy(token);
    }
    free(expected);
    free(memory);
    return status;
}

bool
env_has(struct uc_store *store, uint32_t number)
{
    struct uc_block_id key = env_key(number);
    uint8_t hit = 0;

    ck_assert_int_eq(uc_store_lookup(store, &key, 1, &hit), UC_OK);
    return hit != 0;
}

void
env_wait_health(struct uc_store *store, enum uc_status wanted)
{
    struct uc_clock clock = uc_clock_monotonic();
    uint64_t end_ms = uc_time_add_ms(uc_clock_now_ms(&clock), WAIT_MS);
    struct timespec pause = {.tv_nsec = 2000000};

    while (uc_store_health(store) != wanted) {
        ck_assert_msg(
                uc_clock_now_ms(&clock) < end_ms, "health never became %s", uc_status_name(wanted));
        (void)nanosleep(&pause, NULL);
    }
}

void
env_pass_time(unsigned wait_ms)
{
    struct timespec pause = {.tv_sec = wait_ms / 1000, .tv_nsec = wait_ms % 1000 * 1000000};

    (void)nanosleep(&pause, NULL);
}

struct uc_token *
env_token_copy(const struct uc_token *token)
{
    size_t length = uc_token_serialized_bytes(token);
    uint8_t *bytes = malloc(length);
    struct uc_token *copy = NULL;

    uc_token_serialize(token, bytes);
    ck_assert_int_eq(uc_token_deserialize(bytes, length, &copy), UC_OK);
    free(bytes);
    return copy;
}
