/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file command.h
 * The subcommands of `ucm`: one file each, one row in main.c's table. Text for people, JSON with --json.
 */

#ifndef UC_TOOLS_UCM_COMMAND_H
#define UC_TOOLS_UCM_COMMAND_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include <ucm/status.h>

/** Exit codes, the same for every command (ucm --help lists them). */
enum uc_exit {
    UC_EXIT_OK = 0,
    UC_EXIT_FAILED = 1,
    UC_EXIT_USAGE = 2,
    UC_EXIT_NOT_FOUND = 3,
};

/** Options that every command takes. Borrowed texts. */
struct uc_cli_options {
    const char *server;     /* HOST:PORT */
    const char *name_space; /* of the server */
    const char *credential;
    const char *fabric;
    uint64_t timeout_ms;
    bool json;
};

struct uc_command {
    const char *name;
    const char *arguments; /* for the help, e.g. "KEY FILE" */
    const char *help;      /* one line */
    int argument_count;
    enum uc_exit (*run)(const struct uc_cli_options *options, char **arguments);
};

enum uc_exit uc_command_put(const struct uc_cli_options *options, char **arguments);
enum uc_exit uc_command_get(const struct uc_cli_options *options, char **arguments);
enum uc_exit uc_command_exists(const struct uc_cli_options *options, char **arguments);
enum uc_exit uc_command_stat(const struct uc_cli_options *options, char **arguments);

/** Say what failed ("ucm: what: NotFound (-50005): why") and pick the exit code. */
enum uc_exit uc_cli_fail(const char *what, enum uc_status status);

/** Print @p object as one line of JSON and release it. */
void uc_cli_print_json(json_t *object);

#endif /* UC_TOOLS_UCM_COMMAND_H */
