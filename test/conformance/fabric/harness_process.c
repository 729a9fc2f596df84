/* SPDX-License-Identifier: Apache-2.0 */

/* Peers in processes of their own: the executable runs itself with --target or --initiator. */

#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/conformance/fabric/harness.h"

enum {
    LINE_BYTES = 1024,
    WORDS_MAX = 16,
    FIRST_KEY_WORD = 4, /* of an initiator: state, grant, address, port, keys */
};

extern char **environ;

static void
peer_start(struct peer_process *peer, char *const *arguments)
{
    posix_spawn_file_actions_t actions;
    int input[2];
    int output[2];

    ck_assert_int_eq(pipe(input), 0);
    ck_assert_int_eq(pipe(output), 0);
    ck_assert_int_eq(posix_spawn_file_actions_init(&actions), 0);
    ck_assert_int_eq(posix_spawn_file_actions_adddup2(&actions, input[0], 0), 0);
    ck_assert_int_eq(posix_spawn_file_actions_adddup2(&actions, output[1], 1), 0);
    ck_assert_int_eq(posix_spawn_file_actions_addclose(&actions, input[1]), 0);
    ck_assert_int_eq(posix_spawn_file_actions_addclose(&actions, output[0]), 0);
    ck_assert_int_eq(
            posix_spawn(&peer->pid, "/proc/self/exe", &actions, NULL, arguments, environ), 0);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)close(input[0]);
    (void)close(output[1]);
    peer->input = input[1];
    peer->output = output[0];
}

static void
read_line(int fd, char *line)
{
    size_t length = 0;

    while (length < LINE_BYTES - 1) {
        ck_assert_msg(read(fd, line + length, 1) == 1, "the other process ended");
        if (line[length] == '\n') {
            break;
        }
        length++;
    }
    line[length] = '\0';
}

void
peer_target_start(struct peer_process *peer, struct destination *where_out)
{
    char program[] = "fabric_conformance";
    char mode[] = "--target";
    char *arguments[] = {program, mode, NULL};
    char line[LINE_BYTES];
    char *rest;

    peer_start(peer, arguments);
    read_line(peer->output, line);
    rest = strchr(line, ' ');
    ck_assert_ptr_nonnull(rest);
    *rest++ = '\0';
    (void)snprintf(where_out->address, sizeof(where_out->address), "%.*s", ADDRESS_BYTES - 1, line);
    where_out->port = (uint16_t)strtoul(rest, &rest, 10);
    for (size_t idx = 0; idx < REGION_COUNT; idx++) {
        where_out->keys[idx].address = strtoull(rest, &rest, 10);
        where_out->keys[idx].key = strtoull(rest, &rest, 10);
        where_out->keys[idx].length_bytes = REGION_BYTES;
    }
}

void
peer_initiator_start(struct peer_process *peer, const struct grant *grant, const char *state)
{
    struct destination where = target_destination(grant->domain_idx);
    char texts[WORDS_MAX][ADDRESS_BYTES] = {"fabric_conformance", "--initiator"};
    char *arguments[WORDS_MAX] = {texts[0], texts[1], texts[2], texts[3], texts[4], texts[5]};
    char line[LINE_BYTES];
    size_t count = 2 + FIRST_KEY_WORD;

    (void)snprintf(texts[2], sizeof(texts[2]), "%s", state);
    (void)snprintf(texts[3], sizeof(texts[3]), "%zu", (size_t)(grant - target.grants));
    (void)snprintf(texts[4], sizeof(texts[4]), "%s", where.address);
    (void)snprintf(texts[5], sizeof(texts[5]), "%u", (unsigned)where.port);
    for (size_t idx = 0; idx < REGION_COUNT; idx++) {
        (void)snprintf(texts[count], sizeof(texts[count]), "%" PRIu64, where.keys[idx].address);
        arguments[count] = texts[count];
        count++;
        (void)snprintf(texts[count], sizeof(texts[count]), "%" PRIu64, where.keys[idx].key);
        arguments[count] = texts[count];
        count++;
    }
    peer_start(peer, arguments);
    read_line(peer->output, line);
    ck_assert_str_eq(line, state);
}

void
peer_freeze(const struct peer_process *peer)
{
    int state = 0;

    ck_assert_int_eq(kill(peer->pid, SIGSTOP), 0);
    ck_assert_int_eq(waitpid(peer->pid, &state, WUNTRACED), peer->pid);
    ck_assert(WIFSTOPPED(state));
}

void
peer_thaw(const struct peer_process *peer)
{
    ck_assert_int_eq(kill(peer->pid, SIGCONT), 0);
}

void
peer_kill(struct peer_process *peer)
{
    int state;

    if (peer->pid > 0) {
        ck_assert_int_eq(kill(peer->pid, SIGKILL), 0);
        ck_assert_int_eq(waitpid(peer->pid, &state, 0), peer->pid);
        (void)close(peer->input);
        (void)close(peer->output);
        peer->pid = 0;
    }
}

/* Serve until the input ends. */
static void
run_target(void)
{
    char byte;

    target_open();
    for (int idx = 0; idx < PEER_GRANT_COUNT; idx++) {
        (void)grant_make(0, UC_FABRIC_READ_WRITE);
    }
    (void)printf("%s %u", target.address, (unsigned)target.port);
    for (size_t idx = 0; idx < REGION_COUNT; idx++) {
        (void)printf(" %" PRIu64 " %" PRIu64, target.keys[0][idx].address, target.keys[0][idx].key);
    }
    (void)printf("\n");
    (void)fflush(stdout);
    while (read(0, &byte, 1) > 0) {
    }
    target_close();
}

static void
say(const char *state)
{
    (void)printf("%s\n", state);
    (void)fflush(stdout);
}

/* Get to the state, say so, and go on until killed. */
static void
reach(struct link *link, const char *state)
{
    static const struct {
        const char *state;
        enum uc_fabric_opcode even;
        enum uc_fabric_opcode odd;
    } flights[] = {
            {"reading", UC_FABRIC_READ, UC_FABRIC_READ},
            {"writing", UC_FABRIC_WRITE, UC_FABRIC_WRITE},
            {"flushing", UC_FABRIC_WRITE, UC_FABRIC_FLUSH},
    };
    struct flight flight = flight_make();

    if (strcmp(state, "connecting") != 0) {
        wait_until(link->ok_count + link->failure_count > 0);
    }
    for (size_t idx = 0; idx < sizeof(flights) / sizeof(flights[0]); idx++) {
        if (strcmp(state, flights[idx].state) == 0) {
            flight_post(&flight, link, flights[idx].even, flights[idx].odd);
        }
    }
    for (int idx = 0; idx < 3; idx++) {
        (void)initiator.ops->poll(initiator.fabric, 1);
    }
    say(state);
    for (;;) {
        initiator_step();
    }
}

static void
run_initiator(char **words)
{
    static struct link link;
    struct destination where = {.port = (uint16_t)strtoul(words[3], NULL, 10)};
    uint8_t nonce[UC_FABRIC_NONCE_BYTES];

    for (size_t idx = 0; idx < REGION_COUNT; idx++) {
        char **key = &words[FIRST_KEY_WORD + idx * 2];

        where.keys[idx].address = strtoull(key[0], NULL, 10);
        where.keys[idx].key = strtoull(key[1], NULL, 10);
        where.keys[idx].length_bytes = REGION_BYTES;
    }
    (void)snprintf(where.address, sizeof(where.address), "%s", words[2]);
    nonce_of_grant(strtoul(words[1], NULL, 10), nonce);
    initiator_open(where.port);
    link_start_nonce(&link, nonce, &where, 20000);
    reach(&link, words[0]);
}

static char **role; /* --target, or --initiator and its words */

/* Assertions work inside a case only. */
START_TEST(play_the_role)
{
    if (strcmp(role[0], "--target") == 0) {
        run_target();
    } else {
        run_initiator(&role[1]);
    }
}
END_TEST

int
peer_main(char **arguments)
{
    Suite *suite = suite_create("peer");
    TCase *tcase = tcase_create("peer");
    SRunner *runner;
    int failed;

    role = arguments;
    tcase_add_test(tcase, play_the_role);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_SILENT);
    failed = srunner_ntests_failed(runner);
    if (failed > 0) {
        TestResult **failures = srunner_failures(runner);

        (void)fprintf(stderr, "peer %s: %s\n", role[0], tr_msg(failures[0]));
        free(failures);
    }
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
