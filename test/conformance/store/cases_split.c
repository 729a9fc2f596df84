/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Scheduler and worker in different processes, tokens as bytes between them,
 * For tokened stores; the blocks of a plain one may be private to its process.
 */

#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/conformance/store/suite.h"

extern char **environ;

enum command {
    COMMAND_PUT,
    COMMAND_GET,
};

/* Before the bytes of a token; both ends are this program on this host. */
struct order {
    uint32_t command;
    uint32_t token_bytes;
    uint64_t first_key;
    uint64_t key_count;
};

struct answer {
    int32_t status;      /* of the submit, or of the event */
    uint32_t good_count; /* blocks with the right bytes */
    char text[256];
};

enum {
    ARGUMENTS_MAX = 32
};

struct worker_process {
    pid_t pid;
    int fd;
};

static bool
send_all(int fd, const void *bytes, size_t length)
{
    return send(fd, bytes, length, MSG_NOSIGNAL) == (ssize_t)length;
}

static bool
receive_all(int fd, void *bytes, size_t length)
{
    return recv(fd, bytes, length, MSG_WAITALL) == (ssize_t)length;
}

/* ---- scheduler side ---- */

static struct worker_process
start_worker(void)
{
    struct worker_process process = {0};
    char *arguments[ARGUMENTS_MAX] = {NULL};
    char fd_text[16];
    size_t count = 0;
    int ends[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    ck_assert_int_eq(fcntl(ends[0], F_SETFD, FD_CLOEXEC), 0);
    (void)snprintf(fd_text, sizeof(fd_text), "%d", ends[1]);
    arguments[count++] = (char *)(uintptr_t) "store_conformance";
    arguments[count++] = (char *)(uintptr_t) "--worker";
    arguments[count++] = fd_text;
    for (char *const *argument = suite.arguments; *argument != NULL; argument++) {
        ck_assert_uint_lt(count, ARGUMENTS_MAX - 1);
        arguments[count++] = *argument;
    }
    ck_assert_int_eq(
            posix_spawn(&process.pid, "/proc/self/exe", NULL, NULL, arguments, environ), 0);
    (void)close(ends[1]);
    process.fd = ends[0];
    return process;
}

static void
stop_worker(struct worker_process *process)
{
    int exit_status = -1;

    (void)close(process->fd);
    ck_assert_int_eq(waitpid(process->pid, &exit_status, 0), process->pid);
    ck_assert(WIFEXITED(exit_status));
    ck_assert_int_eq(WEXITSTATUS(exit_status), 0);
}

static struct answer
ask(const struct worker_process *process, enum command command, const struct uc_token *token,
        uint64_t first_key, uint64_t key_count)
{
    struct answer answer = {0};
    struct order order = {
            .command = command,
            .token_bytes = (uint32_t)uc_token_serialized_bytes(token),
            .first_key = first_key,
            .key_count = key_count,
    };
    uint8_t *bytes = malloc(order.token_bytes);

    ck_assert_ptr_nonnull(bytes);
    uc_token_serialize(token, bytes);
    ck_assert(send_all(process->fd, &order, sizeof(order)));
    ck_assert(send_all(process->fd, bytes, order.token_bytes));
    ck_assert(receive_all(process->fd, &answer, sizeof(answer)));
    free(bytes);
    return answer;
}

static void
expect_answer(struct answer answer, enum uc_status status, size_t good_count)
{
    ck_assert_msg(answer.status == status, "worker: %s: %s",
            uc_status_name((enum uc_status)answer.status), answer.text);
    ck_assert_uint_eq(answer.good_count, good_count);
}

/* The scheduler of the case moves no bytes itself. */
static void
become_scheduler_only(void)
{
    struct uc_assembler_options options = {
            .struct_size = sizeof(options), .role = UC_ROLE_SCHEDULER};
    struct uc_request_context context = suite_context(suite.request_id);

    ck_assert_int_eq(uc_scheduler_on_request_finished(suite.scheduler, suite.request_id), UC_OK);
    uc_assembler_destroy(suite.assembler);
    ck_assert_msg(uc_assembler_create(suite.config, &options, &suite.assembler) == UC_OK, "%s",
            uc_last_error());
    ck_assert_int_eq(uc_assembler_scheduler(suite.assembler, &suite.scheduler), UC_OK);
    ck_assert_int_eq(uc_assembler_worker(suite.assembler, &suite.worker), UC_ERR_UNSUPPORTED);
    ck_assert_int_eq(uc_scheduler_on_new_request(suite.scheduler, &context), UC_OK);
}

START_TEST(block_travels_through_a_worker_process)
{
    struct worker_process worker;
    struct uc_token *token;

    if (!suite.is_tokened) {
        return;
    }
    become_scheduler_only();
    worker = start_worker();
    token = suite_prepare_put(suite.ids, 4);
    expect_answer(ask(&worker, COMMAND_PUT, token, 0, 0), UC_OK, 4);
    ck_assert(!suite_is_present(&suite.ids[0]));
    ck_assert_int_eq(uc_scheduler_complete_put(suite.scheduler, suite.request_id, true), UC_OK);
    ck_assert(suite_is_present(&suite.ids[3]));
    uc_token_destroy(token);
    token = suite_prepare_get(suite.ids, 4);
    expect_answer(ask(&worker, COMMAND_GET, token, 0, 0), UC_OK, 4);
    expect_answer(ask(&worker, COMMAND_GET, token, 1, 2), UC_OK, 2);
    ck_assert_int_eq(uc_scheduler_complete_get(suite.scheduler, suite.request_id), UC_OK);
    uc_token_destroy(token);
    stop_worker(&worker);
}
END_TEST

/* Tensor parallel: two workers share a window, each with its part; either reads what both wrote. */
START_TEST(two_worker_processes_share_one_window)
{
    struct worker_process workers[2];
    struct uc_token *token;

    if (!suite.is_tokened) {
        return;
    }
    become_scheduler_only();
    workers[0] = start_worker();
    workers[1] = start_worker();
    token = suite_prepare_put(suite.ids, 6);
    expect_answer(ask(&workers[0], COMMAND_PUT, token, 0, 3), UC_OK, 3);
    expect_answer(ask(&workers[1], COMMAND_PUT, token, 3, 3), UC_OK, 3);
    ck_assert_int_eq(uc_scheduler_complete_put(suite.scheduler, suite.request_id, true), UC_OK);
    uc_token_destroy(token);
    token = suite_prepare_get(suite.ids, 6);
    expect_answer(ask(&workers[0], COMMAND_GET, token, 0, 0), UC_OK, 6);
    expect_answer(ask(&workers[1], COMMAND_GET, token, 0, 0), UC_OK, 6);
    ck_assert_int_eq(uc_scheduler_complete_get(suite.scheduler, suite.request_id), UC_OK);
    uc_token_destroy(token);
    stop_worker(&workers[0]);
    stop_worker(&workers[1]);
}
END_TEST

/* G17: a token that was concluded as failed, and whose room may have a new owner, writes nothing. */
START_TEST(released_token_harms_nobody_from_another_process)
{
    struct worker_process worker;
    struct uc_token *released;
    struct uc_token *token;

    if (!suite.is_tokened) {
        return;
    }
    become_scheduler_only();
    worker = start_worker();
    released = suite_prepare_put(suite.ids, 2);
    expect_answer(ask(&worker, COMMAND_PUT, released, 0, 0), UC_OK, 2);
    ck_assert_int_eq(uc_scheduler_complete_put(suite.scheduler, suite.request_id, false), UC_OK);
    token = suite_prepare_put(&suite.ids[2], 2);
    expect_answer(ask(&worker, COMMAND_PUT, token, 0, 0), UC_OK, 2);
    ck_assert_int_eq(uc_scheduler_complete_put(suite.scheduler, suite.request_id, true), UC_OK);
    uc_token_destroy(token);
    ck_assert_int_ne(ask(&worker, COMMAND_PUT, released, 0, 0).status, UC_OK);
    token = suite_prepare_get(&suite.ids[2], 2);
    expect_answer(ask(&worker, COMMAND_GET, token, 0, 0), UC_OK, 2);
    ck_assert_int_eq(uc_scheduler_complete_get(suite.scheduler, suite.request_id), UC_OK);
    uc_token_destroy(token);
    uc_token_destroy(released);
    stop_worker(&worker);
}
END_TEST

TCase *
suite_split_cases(void)
{
    TCase *tcase = tcase_create("split");

    tcase_add_test(tcase, block_travels_through_a_worker_process);
    tcase_add_test(tcase, two_worker_processes_share_one_window);
    tcase_add_test(tcase, released_token_harms_nobody_from_another_process);
    return tcase;
}

/* ---- worker side: no Check here, failures go into the answer ---- */

static struct answer
failure(enum uc_status status)
{
    struct answer answer = {.status = status};

    (void)snprintf(answer.text, sizeof(answer.text), "%s", uc_last_error());
    return answer;
}

static struct answer
run_job(struct uc_worker *worker, const struct order *order, const struct uc_token *token)
{
    static uint64_t last_job_id;
    struct uc_io_context io = {.first_key = order->first_key, .key_count = order->key_count};
    size_t count = order->key_count == 0 ? token->key_count : (size_t)order->key_count;
    const struct uc_block_payload *payloads = suite_payloads(count);
    const struct uc_block_id *keys = token->keys + order->first_key;
    struct answer answer = {0};
    struct uc_io_result result = {0};
    uint64_t job_id = ++last_job_id;
    size_t result_count = 0;
    enum uc_status status;

    for (size_t idx = 0; idx < count; idx++) {
        if (order->command == COMMAND_PUT) {
            suite_fill(&keys[idx], 0, suite_block(idx), suite.block_bytes);
        } else {
            suite_wipe(suite_block(idx), suite.block_bytes);
        }
    }
    status = order->command == COMMAND_PUT
                     ? uc_worker_submit_put(worker, job_id, payloads, count, token, &io)
                     : uc_worker_submit_get(worker, job_id, payloads, count, token, &io);
    if (status != UC_OK) {
        return failure(status);
    }
    status = uc_worker_wait(worker, &job_id, 1, SUITE_WAIT_MS, &result, 1, &result_count);
    if (status != UC_OK) {
        return failure(status);
    }

    answer.status = result.code;
    for (size_t idx = 0; idx < count; idx++) {
        answer.good_count += suite_matches(&keys[idx], 0, suite_block(idx), suite.block_bytes);
    }
    uc_io_results_release(&result, result_count);
    return answer;
}

/* @return false when the scheduler closed the channel. */
static bool
serve(int fd, struct uc_worker *worker)
{
    struct uc_token *token = NULL;
    struct answer answer;
    struct order order;
    enum uc_status status;
    uint8_t *bytes;

    if (!receive_all(fd, &order, sizeof(order))) {
        return false;
    }
    bytes = malloc(order.token_bytes);
    if (bytes == NULL || !receive_all(fd, bytes, order.token_bytes)) {
        free(bytes);
        return false;
    }
    status = uc_token_deserialize(bytes, order.token_bytes, &token);
    answer = status == UC_OK ? run_job(worker, &order, token) : failure(status);
    uc_token_destroy(token);
    free(bytes);
    return send_all(fd, &answer, sizeof(answer));
}

int
suite_run_worker(int fd)
{
    struct uc_assembler_options options = {.struct_size = sizeof(options), .role = UC_ROLE_WORKER};
    struct uc_dict *description = NULL;
    void *memory = NULL;

    if (uc_assembler_create(suite.config, &options, &suite.assembler) != UC_OK ||
            uc_assembler_worker(suite.assembler, &suite.worker) != UC_OK ||
            uc_dict_create(&description) != UC_OK ||
            uc_worker_describe(suite.worker, description) != UC_OK) {
        (void)fprintf(stderr, "worker process: %s\n", uc_last_error());
        return EXIT_FAILURE;
    }
    suite_read_block_bytes(suite_branch_of(description));
    uc_dict_destroy(description);
    if (suite_memory_alloc(SUITE_KEYS_MAX * suite.block_bytes, &memory) != UC_OK) {
        (void)fprintf(stderr, "worker process: %s\n", uc_last_error());
        return EXIT_FAILURE;
    }
    suite.memory = memory;
    (void)suite_register_memory(suite.worker);

    while (serve(fd, suite.worker)) {
    }
    uc_assembler_destroy(suite.assembler);
    suite_memory_free(suite.memory, SUITE_KEYS_MAX * suite.block_bytes);
    return EXIT_SUCCESS;
}
