/* SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <ucm/clock.h>
#include <ucm/log.h>

#include "core/base/standard_streams.h"
#include "server/config.h"
#include "server/ready.h"
#include "server/server.h"

enum {
    EXIT_CONFIG = 2
};

static enum uc_status
set_up_log(const struct uc_server_config *config)
{
    enum uc_log_level level;
    enum uc_status status = uc_log_level_parse(config->log_level, &level);

    if (status == UC_OK) {
        uc_log_set_level(level);
        uc_log_set_json(strcmp(config->log_format, "json") == 0);
    }
    return status;
}

/* As many descriptors as we may have; what is missing shows in the connection limit. */
static void
raise_descriptor_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* From now on the signals that end us are read from a descriptor. */
static enum uc_status
open_signals(int *fd_out)
{
    sigset_t signals;
    int fd;

    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGINT);
    (void)sigaddset(&signals, SIGTERM);
    if (sigprocmask(SIG_BLOCK, &signals, NULL) != 0) {
        return uc_log_errno(errno, "server: sigprocmask");
    }
    fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0) {
        return uc_log_errno(errno, "server: signalfd");
    }

    *fd_out = fd;
    return UC_OK;
}

static enum uc_status
serve(const struct uc_server_config *config)
{
    struct uc_clock clock = uc_clock_monotonic();
    struct uc_server *server = NULL;
    int signal_fd = -1;
    enum uc_status status = uc_ready_clear(config->ready_file);

    /* Making the memory takes a while: until it is there a signal simply ends the process. */
    if (status == UC_OK) {
        status = uc_server_create(config, &clock, &server);
    }
    if (status == UC_OK) {
        status = open_signals(&signal_fd);
    }
    if (status == UC_OK) {
        status = uc_ready_write(config->ready_file, server);
    }
    if (status == UC_OK) {
        status = uc_server_run(server, signal_fd);
    }
    if (status != UC_OK) {
        (void)fprintf(stderr, "ucm-server: %s\n", uc_last_error());
    }
    uc_server_destroy(server);
    if (signal_fd >= 0) {
        (void)close(signal_fd);
    }
    return status;
}

/* @return an exit status */
static int
run(int argc, char **argv)
{
    struct uc_server_arguments arguments;
    enum uc_status status = uc_server_arguments_parse(argc, argv, &arguments);

    if (status == UC_OK && !arguments.help && !arguments.version) {
        status = set_up_log(&arguments.config);
    }
    if (status != UC_OK) {
        (void)fprintf(stderr, "ucm-server: %s\n", uc_last_error());
        return EXIT_CONFIG;
    }
    if (arguments.help) {
        uc_server_config_help(stdout);
    } else if (arguments.version) {
        (void)puts("ucm-server " UC_VERSION);
    } else if (arguments.check_config) {
        uc_server_config_print(&arguments.config, stdout);
    } else {
        (void)signal(SIGPIPE, SIG_IGN);
        raise_descriptor_limit();
        status = serve(&arguments.config);
    }

    uc_server_config_fini(&arguments.config);
    return status == UC_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}

int
main(int argc, char **argv)
{
    int code;

    if (uc_standard_streams_hold() != UC_OK) {
        (void)fprintf(stderr, "ucm-server: %s\n", uc_last_error());
        return EXIT_FAILURE;
    }

    code = run(argc, argv);
    if (uc_standard_streams_finish() != UC_OK && code == EXIT_SUCCESS) {
        (void)fprintf(stderr, "ucm-server: %s\n", uc_last_error());
        code = EXIT_FAILURE;
    }
    return code;
}
