/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One process of an inference node for tests, driven by lines: a command on standard input, one answer line
 * on standard output, "ok …" or "error STATUS text". Blocks are named by consecutive hash ids and hold the
 * bytes that tools/bench/block_content.h derives from them.
 *
 * Usage: ucm-test-node scheduler|worker|both TOPOLOGY.yaml BLOCK_BYTES (UCM_TEST_LOG: its log level)
 */

#include "test/integration/node.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ucm/log.h>

#include "core/config/fields.h"
#include "tools/bench/block_content.h"

enum {
    WORDS_MAX = 8,
};

void
node_answer(enum uc_status status)
{
    if (status == UC_OK) {
        (void)printf("ok\n");
    } else {
        (void)printf("error %s %s\n", uc_status_name(status), uc_last_error());
    }
}

uint64_t
node_number(const char *word)
{
    return strtoull(word, NULL, 10);
}

/* Keys of `count` hash ids from `first` on; @return the count, cut to what fits. */
size_t
node_make_keys(struct node *node, const char *first, const char *count)
{
    size_t keys = (size_t)node_number(count);

    keys = keys > NODE_KEYS_MAX ? NODE_KEYS_MAX : keys;
    for (size_t idx = 0; idx < keys; idx++) {
        node->keys[idx] = uc_block_id_from_hash(node_number(first) + idx);
    }
    return keys;
}

void
node_print_token(struct uc_token *token)
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

enum uc_status
node_read_token(const char *hex, struct uc_token **token_out)
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
        context.ttl_ms = node_number(words[2]);
    }
    node_answer(uc_scheduler_on_new_request(node->scheduler, &context));
}

static void
command_finish(struct node *node, char **words, size_t word_count)
{
    (void)word_count;
    node_answer(uc_scheduler_on_request_finished(node->scheduler, words[1]));
}

/* lookup RID FIRST COUNT: one digit per block, or "signal". */
static void
command_lookup(struct node *node, char **words, size_t word_count)
{
    size_t count = node_make_keys(node, words[2], words[3]);
    uint8_t hits[NODE_KEYS_MAX] = {0};
    bool prefetch_needed = false;
    enum uc_status status = uc_scheduler_lookup(
            node->scheduler, words[1], node->keys, count, hits, &prefetch_needed);

    (void)word_count;
    if (status != UC_OK) {
        node_answer(status);
        return;
    }
    if (prefetch_needed) {
        (void)printf("ok signal\n");
        return;
    }
    (void)printf("ok ");
    for (size_t idx = 0; idx < count; idx++) {
        (void)putchar(hits[idx] ? '1' : '0');
    }
    (void)printf("\n");
}

/* prefix RID FIRST COUNT: the last index of the prefix, or "signal". */
static void
command_prefix(struct node *node, char **words, size_t word_count)
{
    size_t count = node_make_keys(node, words[2], words[3]);
    bool prefetch_needed = false;
    int64_t index = -1;
    enum uc_status status = uc_scheduler_lookup_on_prefix(
            node->scheduler, words[1], node->keys, count, &index, &prefetch_needed);

    (void)word_count;
    if (status != UC_OK) {
        node_answer(status);
        return;
    }
    if (prefetch_needed) {
        (void)printf("ok signal\n");
        return;
    }
    (void)printf("ok %" PRId64 "\n", index);
}

static void
command_prepare(struct node *node, char **words, size_t word_count)
{
    size_t count = node_make_keys(node, words[2], words[3]);
    struct uc_token *token = NULL;
    bool put = strcmp(words[0], "prepare_put") == 0;
    enum uc_status status =
            put ? uc_scheduler_prepare_put(node->scheduler, words[1], node->keys, count, &token)
                : uc_scheduler_prepare_get(node->scheduler, words[1], node->keys, count, &token);

    (void)word_count;
    if (status != UC_OK) {
        node_answer(status);
        return;
    }
    node_print_token(token);
}

static void
command_prepare_prefetch(struct node *node, char **words, size_t word_count)
{
    struct uc_token *token = NULL;
    enum uc_status status = uc_scheduler_prepare_prefetch(node->scheduler, words[1], &token);

    (void)word_count;
    if (status != UC_OK) {
        node_answer(status);
        return;
    }
    node_print_token(token);
}

static void
command_complete_prefetch(struct node *node, char **words, size_t word_count)
{
    (void)word_count;
    node_answer(uc_scheduler_complete_prefetch(node->scheduler, words[1], words[2][0] == '1'));
}

static void
command_complete_get(struct node *node, char **words, size_t word_count)
{
    (void)word_count;
    node_answer(uc_scheduler_complete_get(node->scheduler, words[1]));
}

/* complete_put RID 0|1|MASK: one digit is a verdict for all keys, more are one verdict per key. */
static void
command_complete_put(struct node *node, char **words, size_t word_count)
{
    size_t count = strlen(words[2]);
    uint8_t mask[NODE_KEYS_MAX];

    (void)word_count;
    if (count == 1) {
        node_answer(uc_scheduler_complete_put(node->scheduler, words[1], words[2][0] == '1'));
        return;
    }
    for (size_t idx = 0; idx < count && idx < NODE_KEYS_MAX; idx++) {
        mask[idx] = words[2][idx] == '1';
    }
    node_answer(uc_scheduler_complete_put_mask(node->scheduler, words[1], mask, count));
}

/* key HASH_ID: its block id, for calls that bypass the store. */
static void
command_key(struct node *node, char **words, size_t word_count)
{
    (void)word_count;
    (void)node_make_keys(node, words[1], "1");
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
    node_answer(node->scheduler != NULL ? uc_scheduler_health(node->scheduler)
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
        {"prepare_prefetch", 2, false, command_prepare_prefetch},
        {"complete_prefetch", 3, false, command_complete_prefetch},
        {"complete_get", 2, false, command_complete_get},
        {"complete_put", 3, false, command_complete_put},
        {"put", 5, true, node_command_submit},
        {"get", 5, true, node_command_submit},
        {"prefetch", 3, true, node_command_prefetch},
        {"wait", 3, true, node_command_wait},
        {"memory", 2, true, node_command_memory},
        {"key", 2, false, command_key},
        {"describe", 1, false, node_command_describe},
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
    node.block_bytes = node_number(argv[3]);
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    status = node_open(&node, argv[1], argv[2]);
    node_answer(status);
    while (status == UC_OK && getline(&line, &line_bytes, stdin) > 0) {
        run_line(&node, line);
    }

    free(line);
    uc_assembler_destroy(node.assembler);
    return status == UC_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
