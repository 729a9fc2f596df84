/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One side of a cache store as a process, for test/fault/test_cache_store.py. Commands come as lines on standard
 * input, one answer line each:
 *
 *     ucm-test-cache scheduler|worker DOMAIN
 *
 *     scheduler:  alloc N → token in hex      commit 0|1 → status
 *                 pin N → token, or "-"       unpin → ok
 *                 number KEY → value of its description
 *     worker:     dump|load N TOKEN → status, "damaged" if the bytes are not those of block N
 *                 hammer N TOKEN → loads again and again; answers "started" and nothing more
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/unit/client/cache/cache_env.h"

enum {
    LINE_MAX_BYTES = 4096
};

static struct uc_store *store;
static struct uc_token *held; /* of the last alloc or pin */

static void
print_token(const struct uc_token *token)
{
    size_t length = uc_token_serialized_bytes(token);
    uint8_t *bytes = malloc(length);

    if (bytes == NULL) {
        abort();
    }
    uc_token_serialize(token, bytes);
    for (size_t idx = 0; idx < length; idx++) {
        (void)printf("%02x", bytes[idx]);
    }
    (void)printf("\n");
    free(bytes);
}

static struct uc_token *
parse_token(const char *text)
{
    uint8_t bytes[LINE_MAX_BYTES / 2];
    struct uc_token *token = NULL;
    size_t length = 0;
    unsigned byte = 0;

    while (length < sizeof(bytes) && sscanf(text + 2 * length, "%2x", &byte) == 1) {
        bytes[length++] = (uint8_t)byte;
    }
    return uc_token_deserialize(bytes, length, &token) == UC_OK ? token : NULL;
}

static void
control(const char *command, const char *argument)
{
    const struct uc_token_addressed_ops *ops = uc_store_as_token_addressed(store);
    struct uc_block_id id = env_id((unsigned)strtoul(argument, NULL, 10));
    enum uc_status status = UC_OK;

    if (strcmp(command, "number") == 0) {
        (void)printf("%" PRId64 "\n", env_number(store, argument));
        return;
    }
    if (strcmp(command, "alloc") == 0 || strcmp(command, "pin") == 0) {
        status = command[0] == 'a' ? ops->alloc(store, &id, 1, NULL, &held)
                                   : ops->pin(store, &id, 1, &held);
        if (status == UC_OK) {
            print_token(held);
        } else {
            (void)printf("-\n");
        }
        return;
    }
    if (strcmp(command, "commit") == 0) {
        status = ops->commit(store, held, NULL, strcmp(argument, "1") == 0);
    } else {
        ops->unpin(store, held);
    }
    uc_token_destroy(held);
    held = NULL;
    (void)printf("%s\n", uc_status_name(status));
}

static void
move(const char *command, unsigned number, const char *text)
{
    struct uc_token *token = parse_token(text);
    uint8_t bytes[ENV_BLOCK_BYTES] = {0};
    bool is_load = strcmp(command, "dump") != 0;
    enum uc_status status;

    if (token == NULL) {
        (void)printf("no token\n");
        return;
    }
    if (!is_load) {
        env_fill(number, bytes);
    }
    if (strcmp(command, "hammer") == 0) {
        (void)printf("started\n");
        (void)fflush(stdout);
    }
    do {
        status = env_move(store, is_load, token, bytes, NULL);
    } while (strcmp(command, "hammer") == 0);
    uc_token_destroy(token);
    (void)printf("%s\n",
            status == UC_OK && !env_matches(number, bytes) ? "damaged" : uc_status_name(status));
}

static char **arguments;

/* The short forms of the tests assert, which Check allows inside of a case only. */
START_TEST(serve_until_the_input_ends)
{
    struct env_options options = {.role = arguments[1], .domain = arguments[2]};
    char line[LINE_MAX_BYTES];
    char command[16];
    char argument[64];
    char token[LINE_MAX_BYTES];

    store = env_try_store(&options, NULL);
    (void)printf("%s\n", store == NULL ? uc_last_error() : "ready");
    (void)fflush(stdout);
    while (store != NULL && fgets(line, sizeof(line), stdin) != NULL) {
        int count = sscanf(line, "%15s %63s %4095s", command, argument, token);

        if (count == 3) {
            move(command, (unsigned)strtoul(argument, NULL, 10), token);
        } else if (count >= 1) {
            control(command, count == 2 ? argument : "");
        }
        (void)fflush(stdout);
    }
    uc_token_destroy(held);
    uc_cache_store_destroy(store);
}
END_TEST

int
main(int argc, char **argv)
{
    Suite *suite = suite_create("cache_process");
    TCase *tcase = tcase_create("process");
    SRunner *runner;
    int failed;

    if (argc != 3) {
        return EXIT_FAILURE;
    }
    arguments = argv;
    tcase_add_test(tcase, serve_until_the_input_ends);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_SILENT);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
