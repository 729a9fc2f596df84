/* SPDX-License-Identifier: Apache-2.0 */

/* ucm: look into a server and move single blocks. */

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ucm/log.h>

#include "core/base/standard_streams.h"
#include "core/config/fields.h"
#include "tools/ucm/command.h"

static const struct uc_command commands[] = {
        {"put", "KEY FILE", "store a file (at most one block) under a key", 2, uc_command_put},
        {"get", "KEY FILE", "read the block of a key into a file", 2, uc_command_get},
        {"exists", "KEY", "say whether a key is present", 1, uc_command_exists},
        {"stat", "", "show capacity, occupancy and counters of the server", 0, uc_command_stat},
};

enum {
    COMMAND_COUNT = sizeof(commands) / sizeof(commands[0])
};

static void
print_help(FILE *file)
{
    (void)fprintf(file, "usage: ucm [OPTION…] COMMAND [ARGUMENT…]\n\ncommands:\n");
    for (size_t idx = 0; idx < COMMAND_COUNT; idx++) {
        (void)fprintf(file, "  %-7s %-9s  %s\n", commands[idx].name, commands[idx].arguments,
                commands[idx].help);
    }
    (void)fprintf(file, "%s",
            "\nA KEY of 32 hexadecimal digits is a block id; any other text is hashed to one.\n"
            "FILE - is standard input or output.\n"
            "\noptions:\n"
            "  --server=HOST:PORT     the server (default $UCM_SERVER, else 127.0.0.1:7470)\n"
            "  --namespace=NAME       its namespace (default \"default\")\n"
            "  --credential=TEXT      what the server expects (default $UCM_CREDENTIAL)\n"
            "  --fabric=auto|shm|tcp|verbs  how bytes move (default auto)\n"
            "  --timeout=TIME         limit for each step (default 10s)\n"
            "  --json                 one JSON object instead of text\n"
            "  --log-level=LEVEL      error, warn, info, debug, trace (default warn)\n"
            "  --help, --version\n"
            "\nexit codes: 0 done, 1 failed, 2 wrong usage, 3 not found\n");
}

enum uc_exit
uc_cli_fail(const char *what, enum uc_status status)
{
    char text[1024];

    (void)fprintf(stderr, "ucm: %s: %s\n", what,
            uc_status_format(status, uc_last_error(), text, sizeof(text)));
    return status == UC_ERR_NOT_FOUND ? UC_EXIT_NOT_FOUND : UC_EXIT_FAILED;
}

void
uc_cli_print_json(json_t *object)
{
    char *text = json_dumps(object, JSON_COMPACT | JSON_SORT_KEYS);

    (void)printf("%s\n", text == NULL ? "{}" : text);
    free(text);
    json_decref(object);
}

static const char *
environment_or(const char *name, const char *otherwise)
{
    const char *value = getenv(name);

    return value == NULL || value[0] == '\0' ? otherwise : value;
}

enum option_code {
    OPTION_SERVER = 256,
    OPTION_NAMESPACE,
    OPTION_CREDENTIAL,
    OPTION_FABRIC,
    OPTION_TIMEOUT,
    OPTION_JSON,
    OPTION_LOG_LEVEL,
    OPTION_HELP,
    OPTION_VERSION,
};

static const struct option long_options[] = {
        {"server", required_argument, NULL, OPTION_SERVER},
        {"namespace", required_argument, NULL, OPTION_NAMESPACE},
        {"credential", required_argument, NULL, OPTION_CREDENTIAL},
        {"fabric", required_argument, NULL, OPTION_FABRIC},
        {"timeout", required_argument, NULL, OPTION_TIMEOUT},
        {"json", no_argument, NULL, OPTION_JSON},
        {"log-level", required_argument, NULL, OPTION_LOG_LEVEL},
        {"help", no_argument, NULL, OPTION_HELP},
        {"version", no_argument, NULL, OPTION_VERSION},
        {NULL, 0, NULL, 0},
};

/* @return −1 to go on, else the exit code. */
static int
take_option(struct uc_cli_options *options, int code)
{
    enum uc_log_level level;

    switch (code) {
    case OPTION_SERVER:
        options->server = optarg;
        return -1;
    case OPTION_NAMESPACE:
        options->name_space = optarg;
        return -1;
    case OPTION_CREDENTIAL:
        options->credential = optarg;
        return -1;
    case OPTION_FABRIC:
        options->fabric = optarg;
        return -1;
    case OPTION_TIMEOUT:
        if (uc_config_parse_ms(optarg, &options->timeout_ms) != UC_OK) {
            (void)fprintf(stderr, "ucm: --timeout: %s\n", uc_last_error());
            return UC_EXIT_USAGE;
        }
        return -1;
    case OPTION_JSON:
        options->json = true;
        return -1;
    case OPTION_LOG_LEVEL:
        if (uc_log_level_parse(optarg, &level) != UC_OK) {
            (void)fprintf(stderr, "ucm: --log-level: %s\n", uc_last_error());
            return UC_EXIT_USAGE;
        }
        uc_log_set_level(level);
        return -1;
    case OPTION_HELP:
        print_help(stdout);
        return UC_EXIT_OK;
    case OPTION_VERSION:
        (void)printf("ucm %s\n", UC_VERSION);
        return UC_EXIT_OK;
    default:
        (void)fprintf(stderr, "ucm: see ucm --help\n");
        return UC_EXIT_USAGE;
    }
}

static int
run_command(const struct uc_cli_options *options, char **words, int word_count)
{
    const char *names[COMMAND_COUNT];
    const char *nearest;

    for (size_t idx = 0; idx < COMMAND_COUNT; idx++) {
        const struct uc_command *command = &commands[idx];

        names[idx] = command->name;
        if (strcmp(words[0], command->name) != 0) {
            continue;
        }
        if (word_count - 1 != command->argument_count) {
            (void)fprintf(stderr, "usage: ucm %s %s\n", command->name, command->arguments);
            return UC_EXIT_USAGE;
        }
        return (int)command->run(options, words + 1);
    }

    nearest = uc_field_nearest(words[0], names, COMMAND_COUNT);
    (void)fprintf(stderr, "ucm: unknown command '%s'%s%s%s; see ucm --help\n", words[0],
            nearest == NULL ? "" : ", did you mean '", nearest == NULL ? "" : nearest,
            nearest == NULL ? "" : "'?");
    return UC_EXIT_USAGE;
}

static int
run(int argc, char **argv)
{
    struct uc_cli_options options = {
            .server = environment_or("UCM_SERVER", "127.0.0.1:7470"),
            .name_space = "default",
            .credential = environment_or("UCM_CREDENTIAL", ""),
            .fabric = "auto",
            .timeout_ms = 10000,
    };
    int code;

    uc_log_set_level(UC_LOG_WARN);
    while ((code = getopt_long(argc, argv, "h", long_options, NULL)) != -1) {
        int exit_code = take_option(&options, code == 'h' ? OPTION_HELP : code);

        if (exit_code >= 0) {
            return exit_code;
        }
    }
    if (optind >= argc) {
        print_help(stderr);
        return UC_EXIT_USAGE;
    }

    return run_command(&options, argv + optind, argc - optind);
}

int
main(int argc, char **argv)
{
    int code;

    if (uc_standard_streams_hold() != UC_OK) {
        (void)fprintf(stderr, "ucm: %s\n", uc_last_error());
        return UC_EXIT_FAILED;
    }

    code = run(argc, argv);
    if (uc_standard_streams_finish() != UC_OK && code == UC_EXIT_OK) {
        (void)fprintf(stderr, "ucm: %s\n", uc_last_error());
        code = UC_EXIT_FAILED;
    }
    return code;
}
