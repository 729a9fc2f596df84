/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One process of an inference node for tests, driven by lines: a command on standard input, one answer line
 * on standard output, "ok …" or "error STATUS text". Blocks are named by consecutive hash ids and hold the
 * bytes that tools/bench/block_content.h derives from them.
 *
 * Usage: ucm-test-node scheduler|worker|both TOPOLOGY.yaml BLOCK_BYTES (UCM_TEST_LOG: its log level)
 */

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ucm/assembler.h>
#include <ucm/log.h>

#include "core/config/fields.h"
#include "tools/bench/block_content.h"

enum {
    KEYS_MAX = 4096,
    JOBS_MAX = 64,
    WORDS_MAX = 8,
};

struct job {
    uint64_t id;
    uint64_t first;
    size_t count;
    uint8_t *memory;
    uint64_t memory_bytes;
    uint32_t region_idx;
    bool in_use;
    bool put;
};

struct node {
    struct uc_assembler *assembler;
    struct uc_scheduler *scheduler;
    struct uc_worker *worker;
    uint64_t block_bytes;
    struct job jobs[JOBS_MAX];
    struct uc_block_id keys[KEYS_MAX];
};

typedef void (*command_fn)(struct node *node, char **words, size_t word_count);

static void
answer(enum uc_status status)
{
    if (status == UC_OK) {
        (void)printf("ok\n");
    } else {
        (void)printf("error %s %s\n", uc_status_name(status), uc_last_error());
    }
}

static uint64_t
number(const char *word)
{
    return strtoull(word, NULL, 10);
}

/* Keys of `count` hash ids from `first` on; @return the count, cut to what fits. */
static size_t
make_keys(struct node *node, const char *first, const char *count)
{
    size_t keys = (size_t)number(count);

    keys = keys > KEYS_MAX ? KEYS_MAX : keys;
    for (size_t idx = 0; idx < keys; idx++) {
        node->keys[idx] = uc_block_id_from_hash(number(first) + idx);
    }
    return keys;
}

static void
print_token(struct uc_token *token)
{
    size_t length = uc_token_serialized_bytes(token);
    uint8_t *bytes = malloc(length);

    if (bytes == NULL) {
        abort();
    }
    uc_token_serialize(token, bytes);
    (void)printf("ok ");
    for (size_t idx = 0; idx < length; idx++) {
        (void)printf("%02x", bytes[idx]);
    }
    (void)printf("\n");
    free(bytes);
    uc_token_destroy(token);
}

static enum uc_status
read_token(const char *hex, struct uc_token **token_out)
{
    size_t length = strlen(hex) / 2;
    uint8_t *bytes = malloc(length + 1);
    enum uc_status status;

    if (bytes == NULL) {
        abort();
    }
    for (size_t idx = 0; idx < length; idx++) {
        unsigned value = 0;

        (void)sscanf(hex + 2 * idx, "%2x", &value);
        bytes[idx] = (uint8_t)value;
    }
    status = uc_token_deserialize(bytes, length, token_out);
    free(bytes);
    return status;
}

static void
command_request(struct node *node, char **words, size_t word_count)
{
    struct uc_request_context context = uc_request_context_init(words[1]);

    if (word_count > 2) {
        context.present |= UC_REQUEST_TTL;
        context.ttl_ms = number(words[2]);
    }
    answer(uc_scheduler_on_new_request(node->scheduler, &context));
}

static void
command_finish(struct node *node, char **words, size_t word_count)
{
    (void)word_count;
    answer(uc_scheduler_on_request_finished(node->scheduler, words[1]));
}

static void
command_lookup(struct node *node, char **words, size_t word_count)
{
    size_t count = make_keys(node, words[2], words[3]);
    uint8_t hits[KEYS_MAX];
    bool prefetch_needed = false;
    enum uc_status status = uc_scheduler_lookup(
            node->scheduler, words[1], node->keys, count, hits, &prefetch_needed);

    (void)word_count;
    if (status != UC_OK) {
        answer(status);
        return;
    }
    (void)printf("ok ");
    for (size_t idx = 0; idx < count; idx++) {
        (void)putchar(hits[idx] ? '1' : '0');
    }
    (void)printf("\n");
}

static void
command_prefix(struct node *node, char **words, size_t word_count)
{
    size_t count = make_keys(node, words[2], words[3]);
    bool prefetch_needed = false;
    int64_t index = -1;
    enum uc_status status = uc_scheduler_lookup_on_prefix(
            node->scheduler, words[1], node->keys, count, &index, &prefetch_needed);

    (void)word_count;
    if (status != UC_OK) {
        answer(status);
        return;
    }
    (void)printf("ok %" PRId64 "\n", index);
}

static void
command_prepare(struct node *node, char **words, size_t word_count)
{
    size_t count = make_keys(node, words[2], words[3]);
    struct uc_token *token = NULL;
    bool put = strcmp(words[0], "prepare_put") == 0;
    enum uc_status status =
            put ? uc_scheduler_prepare_put(node->scheduler, words[1], node->keys, count, &token)
                : uc_scheduler_prepare_get(node->scheduler, words[1], node->keys, count, &token);

    (void)word_count;
    if (status != UC_OK) {
        answer(status);
        return;
    }
    print_token(token);
}

static void
command_complete_get(struct node *node, char **words, size_t word_count)
{
    (void)word_count;
    answer(uc_scheduler_complete_get(node->scheduler, words[1]));
}

/* complete_put RID 0|1|MASK: one digit is a verdict for all keys, more are one verdict per key. */
static void
command_complete_put(struct node *node, char **words, size_t word_count)
{
    size_t count = strlen(words[2]);
    uint8_t mask[KEYS_MAX];

    (void)word_count;
    if (count == 1) {
        answer(uc_scheduler_complete_put(node->scheduler, words[1], words[2][0] == '1'));
        return;
    }
    for (size_t idx = 0; idx < count && idx < KEYS_MAX; idx++) {
        mask[idx] = words[2][idx] == '1';
    }
    answer(uc_scheduler_complete_put_mask(node->scheduler, words[1], mask, count));
}

static struct job *
find_job(struct node *node, uint64_t id, bool in_use)
{
    for (size_t idx = 0; idx < JOBS_MAX; idx++) {
        struct job *job = &node->jobs[idx];

        if (job->in_use == in_use && (!in_use || job->id == id)) {
            return job;
        }
    }
    return NULL;
}

static void
job_release(struct node *node, struct job *job)
{
    (void)uc_worker_deregister_memory(node->worker, job->region_idx);
    uc_memory_free(job->memory, job->memory_bytes);
    *job = (struct job){0};
}

static enum uc_status
job_submit(struct node *node, struct job *job, const struct uc_token *token, uint64_t timeout_ms)
{
    static struct uc_block_payload payloads[KEYS_MAX];
    static void *pointers[KEYS_MAX];
    struct uc_io_context io = {.timeout_ms = timeout_ms};

    for (size_t idx = 0; idx < job->count; idx++) {
        pointers[idx] = job->memory + idx * node->block_bytes;
        payloads[idx] = (struct uc_block_payload){
                .pointers = &pointers[idx],
                .sizes = &node->block_bytes,
                .pointer_count = 1,
                .memory_region_indices = &job->region_idx,
                .memory_region_index_count = 1,
        };
        if (job->put) {
            uc_block_content_fill(job->first + idx, pointers[idx], node->block_bytes);
        }
    }
    return job->put ? uc_worker_submit_put(node->worker, job->id, payloads, job->count, token, &io)
                    : uc_worker_submit_get(node->worker, job->id, payloads, job->count, token, &io);
}

/* put|get JOB FIRST COUNT TOKEN [TIMEOUT_MS]: submit; "wait" collects. */
static void
command_submit(struct node *node, char **words, size_t word_count)
{
    struct job *job = find_job(node, 0, false);
    struct uc_token *token = NULL;
    void *memory;
    enum uc_status status = read_token(words[4], &token);

    if (status != UC_OK || job == NULL) {
        answer(status == UC_OK ? UC_ERR_RETRY : status);
        uc_token_destroy(token);
        return;
    }
    job->count = make_keys(node, words[2], words[3]);
    job->memory_bytes = job->count * node->block_bytes;
    status = uc_memory_alloc(job->memory_bytes, &memory);
    if (status == UC_OK) {
        job->memory = memory;
        job->id = number(words[1]);
        job->first = number(words[2]);
        job->put = strcmp(words[0], "put") == 0;
        status = uc_worker_register_memory(
                node->worker, memory, job->memory_bytes, UC_MEMORY_HOST, &job->region_idx);
    }
    if (status == UC_OK) {
        job->in_use = true;
        status = job_submit(node, job, token, word_count > 5 ? number(words[5]) : 0);
        if (status != UC_OK) {
            job_release(node, job);
        }
    }
    uc_token_destroy(token);
    answer(status);
}

/* wait JOB TIMEOUT_MS: "ok STATUS BITS good=N wrong=N": of a get, blocks with right and wrong bytes. */
static void
command_wait(struct node *node, char **words, size_t word_count)
{
    uint64_t id = number(words[1]);
    struct job *job = find_job(node, id, true);
    struct uc_io_result result = {0};
    size_t result_count = 0;
    uint64_t good = 0;
    uint64_t wrong = 0;
    enum uc_status status = uc_worker_wait(
            node->worker, &id, 1, (int64_t)strtoll(words[2], NULL, 10), &result, 1, &result_count);

    (void)word_count;
    if (status != UC_OK || result_count == 0 || job == NULL) {
        answer(status == UC_OK ? UC_ERR_NOT_FOUND : status);
        return;
    }
    (void)printf("ok %s ", uc_status_name(result.code));
    for (size_t idx = 0; idx < job->count; idx++) {
        bool block_ok = uc_io_result_block_ok(&result, idx);
        uint64_t offset;

        (void)putchar(block_ok ? '1' : '0');
        if (block_ok && !job->put) {
            bool same = uc_block_content_check(job->first + idx,
                    job->memory + idx * node->block_bytes, node->block_bytes, &offset);

            good += same;
            wrong += !same;
        }
    }
    (void)printf(" good=%" PRIu64 " wrong=%" PRIu64 "\n", good, wrong);
    uc_io_results_release(&result, 1);
    job_release(node, job);
}

/* key HASH_ID: its block id, for calls that bypass the store. */
static void
command_key(struct node *node, char **words, size_t word_count)
{
    (void)word_count;
    (void)make_keys(node, words[1], "1");
    (void)printf("ok ");
    for (size_t idx = 0; idx < UC_BLOCK_ID_BYTES; idx++) {
        (void)printf("%02x", node->keys[0].bytes[idx]);
    }
    (void)printf("\n");
}

static void
command_health(struct node *node, char **words, size_t word_count)
{
    (void)words;
    (void)word_count;
    answer(node->scheduler != NULL ? uc_scheduler_health(node->scheduler)
                                   : uc_worker_health(node->worker));
}

static const struct {
    const char *name;
    size_t word_count; /* at least, with the name */
    bool worker;
    command_fn run;
} commands[] = {
        {"request", 2, false, command_request},
        {"finish", 2, false, command_finish},
        {"lookup", 4, false, command_lookup},
        {"prefix", 4, false, command_prefix},
        {"prepare_get", 4, false, command_prepare},
        {"prepare_put", 4, false, command_prepare},
        {"complete_get", 2, false, command_complete_get},
        {"complete_put", 3, false, command_complete_put},
        {"put", 5, true, command_submit},
        {"get", 5, true, command_submit},
        {"wait", 3, true, command_wait},
        {"key", 2, false, command_key},
        {"health", 1, false, command_health},
};

static void
run_line(struct node *node, char *line)
{
    char *words[WORDS_MAX] = {NULL};
    char *rest = NULL;
    size_t word_count = 0;

    for (char *word = strtok_r(line, " \n", &rest); word != NULL && word_count < WORDS_MAX;
            word = strtok_r(NULL, " \n", &rest)) {
        words[word_count++] = word;
    }
    for (size_t idx = 0; word_count > 0 && idx < sizeof(commands) / sizeof(commands[0]); idx++) {
        if (strcmp(words[0], commands[idx].name) == 0 && word_count >= commands[idx].word_count) {
            if (commands[idx].worker && node->worker == NULL) {
                break;
            }
            commands[idx].run(node, words, word_count);
            return;
        }
    }
    (void)printf("error InvalidParam bad command\n");
}

static enum uc_status
node_open(struct node *node, const char *role, const char *path)
{
    struct uc_assembler_options options = {.struct_size = sizeof(options)};
    struct uc_dict *topology = NULL;
    enum uc_status status = uc_yaml_read_file(path, &topology);

    if (status != UC_OK) {
        return status;
    }
    options.role = strcmp(role, "scheduler") == 0 ? UC_ROLE_SCHEDULER
                   : strcmp(role, "worker") == 0  ? UC_ROLE_WORKER
                                                  : UC_ROLE_BOTH;
    status = uc_assembler_create(topology, &options, &node->assembler);
    uc_dict_destroy(topology);
    if (status == UC_OK && options.role != UC_ROLE_WORKER) {
        status = uc_assembler_scheduler(node->assembler, &node->scheduler);
    }
    if (status == UC_OK && options.role != UC_ROLE_SCHEDULER) {
        status = uc_assembler_worker(node->assembler, &node->worker);
    }
    return status;
}

int
main(int argc, char **argv)
{
    static struct node node;
    enum uc_log_level level;
    const char *log_level = getenv("UCM_TEST_LOG");
    char *line = NULL;
    size_t line_bytes = 0;
    enum uc_status status;

    if (argc != 4) {
        (void)fprintf(
                stderr, "usage: %s scheduler|worker|both TOPOLOGY.yaml BLOCK_BYTES\n", argv[0]);
        return 2;
    }
    if (log_level != NULL && uc_log_level_parse(log_level, &level) == UC_OK) {
        uc_log_set_level(level);
    }
    node.block_bytes = number(argv[3]);
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    status = node_open(&node, argv[1], argv[2]);
    answer(status);
    while (status == UC_OK && getline(&line, &line_bytes, stdin) > 0) {
        run_line(&node, line);
    }

    free(line);
    uc_assembler_destroy(node.assembler);
    return status == UC_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
