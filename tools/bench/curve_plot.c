/* SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/bench/curve.h"

extern char **environ;

enum {
    PICTURE_PART_BYTES = 1 << 14
};

/* A string of gnuplot: single quotes are doubled, and nothing else is special. */
static void
write_quoted(const char *text, FILE *file)
{
    (void)fputc('\'', file);
    for (; *text != '\0'; text++) {
        if (*text == '\'') {
            (void)fputc('\'', file);
        }
        (void)fputc((unsigned char)*text < ' ' ? '?' : *text, file);
    }
    (void)fputc('\'', file);
}

/* One row per capacity: blocks, every policy, the optimum. */
static void
write_data(const struct uc_curve *curve, FILE *file)
{
    (void)fputs("$curve << END\n", file);
    for (size_t idx = 0; idx < curve->capacities.count; idx++) {
        (void)fprintf(file, "%" PRIu64, curve->capacities.blocks[idx]);
        for (size_t policy = 0; policy < curve->policy_count; policy++) {
            (void)fprintf(
                    file, " %.4f", uc_curve_hit_pct(curve, curve->counts[policy][idx].prefix_hits));
        }
        (void)fprintf(file, " %.4f\n", uc_curve_hit_pct(curve, curve->optimum_hits[idx]));
    }
    (void)fputs("END\n", file);
}

void
uc_curve_write_gnuplot(
        const struct uc_replay_options *options, const struct uc_curve *curve, FILE *file)
{
    write_data(curve, file);
    (void)fputs("set terminal png size 960,600 noenhanced\nset title ", file);
    write_quoted(options->trace_path == NULL ? "generated trace" : options->trace_path, file);
    (void)fputs("\nset xlabel 'capacity (blocks)'\n"
                "set ylabel 'prefix hits (% of block references)'\n"
                "set logscale x\nset yrange [0:*]\nset grid\nset key left top\nplot ",
            file);
    for (size_t policy = 0; policy < curve->policy_count; policy++) {
        (void)fprintf(file, "$curve using 1:%zu with linespoints linewidth 2 title ", policy + 2);
        write_quoted(curve->policies[policy].text, file);
        (void)fputs(", ", file);
    }
    (void)fprintf(file,
            "$curve using 1:%zu with lines linewidth 2 linecolor 'gray50' title 'optimum'\n",
            curve->policy_count + 2);
}

/* gnuplot with its program on standard input and the picture on standard output. */
static enum uc_status
run_gnuplot(int program_fd, int picture_fd)
{
    static char name[] = "gnuplot";
    static char from_stdin[] = "-";
    char *arguments[] = {name, from_stdin, NULL};
    posix_spawn_file_actions_t actions;
    int child_status = 0;
    pid_t child;
    int error = posix_spawn_file_actions_init(&actions);

    if (error == 0) {
        error = posix_spawn_file_actions_adddup2(&actions, program_fd, STDIN_FILENO);
        if (error == 0) {
            error = posix_spawn_file_actions_adddup2(&actions, picture_fd, STDOUT_FILENO);
        }
        if (error == 0) {
            error = posix_spawnp(&child, name, &actions, NULL, arguments, environ);
        }
        (void)posix_spawn_file_actions_destroy(&actions);
    }
    if (error == ENOENT) {
        return uc_error(UC_ERR_NOT_FOUND,
                "--plot needs gnuplot, which is not installed (Debian: apt-get install gnuplot-nox)");
    }
    if (error != 0) {
        return uc_error(UC_ERR_OS_API, "gnuplot cannot be started: %s", strerror(error));
    }

    while (waitpid(child, &child_status, 0) < 0 && errno == EINTR) {
    }
    if (!WIFEXITED(child_status) || WEXITSTATUS(child_status) != 0) {
        return uc_error(UC_ERR_OS_API, "gnuplot failed; what it said is above");
    }
    return UC_OK;
}

static enum uc_status
write_program(const struct uc_replay_options *options, const struct uc_curve *curve, int fd)
{
    int copy = dup(fd);
    FILE *file = copy < 0 ? NULL : fdopen(copy, "w");
    bool good;

    if (file == NULL) {
        if (copy >= 0) {
            (void)close(copy);
        }
        return uc_error(UC_ERR_OS_API, "--plot: %s", strerror(errno));
    }

    uc_curve_write_gnuplot(options, curve, file);
    good = ferror(file) == 0;
    good = fclose(file) == 0 && good;
    if (!good || lseek(fd, 0, SEEK_SET) != 0) {
        return uc_error(UC_ERR_OS_API, "--plot: %s", strerror(errno));
    }
    return UC_OK;
}

static enum uc_status
draw(const struct uc_replay_options *options, const struct uc_curve *curve, int picture_fd)
{
    int program_fd = memfd_create("gnuplot", MFD_CLOEXEC);
    enum uc_status status;

    if (program_fd < 0) {
        return uc_error(UC_ERR_OS_API, "--plot: memfd_create: %s", strerror(errno));
    }

    status = write_program(options, curve, program_fd);
    if (status == UC_OK) {
        status = run_gnuplot(program_fd, picture_fd);
    }
    (void)close(program_fd);
    return status;
}

/* All of the picture into the file that was asked for. */
static enum uc_status
save(const struct uc_replay_options *options, int picture_fd, size_t length)
{
    int fd = open(options->plot_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    enum uc_status status = UC_OK;
    off_t offset = 0;

    if (fd < 0) {
        return uc_error(UC_ERR_OS_API, "--plot: %s: %s", options->plot_path, strerror(errno));
    }
    while ((size_t)offset < length && status == UC_OK) {
        char bytes[PICTURE_PART_BYTES];
        ssize_t part = pread(picture_fd, bytes, sizeof(bytes), offset);

        if (part <= 0 || write(fd, bytes, (size_t)part) != part) {
            status = uc_error(UC_ERR_OS_API, "--plot: %s: %s", options->plot_path, strerror(errno));
        }
        offset += part;
    }
    if (close(fd) != 0 && status == UC_OK) {
        status = uc_error(UC_ERR_OS_API, "--plot: %s: %s", options->plot_path, strerror(errno));
    }
    return status;
}

/*
 * gnuplot draws into memory: to it a name may be a command, and a file that is there is replaced only by a
 * whole picture.
 */
enum uc_status
uc_curve_plot(const struct uc_replay_options *options, const struct uc_curve *curve)
{
    int picture_fd = memfd_create("picture", MFD_CLOEXEC);
    struct stat drawn = {0};
    enum uc_status status;

    if (picture_fd < 0) {
        return uc_error(UC_ERR_OS_API, "--plot: memfd_create: %s", strerror(errno));
    }

    status = draw(options, curve, picture_fd);
    if (status == UC_OK && (fstat(picture_fd, &drawn) != 0 || drawn.st_size == 0)) {
        status = uc_error(UC_ERR_OS_API, "--plot: gnuplot drew nothing for %s", options->plot_path);
    }
    if (status == UC_OK) {
        status = save(options, picture_fd, (size_t)drawn.st_size);
    }
    (void)close(picture_fd);
    return status;
}
