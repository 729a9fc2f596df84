/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Core/cache against the model of test/model, on random programs: batches, repetitions, overlaps, pins,
 * transfers, TTL, failures. Programs run in child processes, so that a crash, a failed assertion or an endless
 * loop is a failure like any other. A program that fails is cut down until nothing more can be left out, and
 * printed.
 *
 * Usage: test_cache_property [--long] [--seed N] [--operations N]
 * Without --seed the seeds are 1, 2, 3, … and follow the clock with --long, which the environment can ask for as
 * UCM_TEST_LONG=1. UCM_TEST_OPERATIONS=N serves where a failure is expected and time short: nothing is cut down.
 */

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ucm/clock.h>

#include "test/model/cache_duel.h"

#if defined(__has_feature)
#    if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#        define SANITIZED 1
#    endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#    define SANITIZED 1
#endif

enum {
    PROGRAM_SECONDS = 20, /* of a child that says nothing: a hang */
    SHRINK_SECONDS = 60,  /* all tries together */
    PROGRAMS_PER_CHILD = 256
};

#if defined(SANITIZED) || !defined(__OPTIMIZE__)
static const uint64_t ci_operations = 400000;
#else
static const uint64_t ci_operations = 6000000;
#endif
static const uint64_t long_factor = 20;

struct options {
    uint64_t seed;
    uint64_t operations;
    bool one_seed;
    bool no_shrinking;
};

/* Shared with the children. */
struct board {
    uint64_t seed; /* that is running */
    uint64_t operations;
    bool failed;
    struct duel_result result;
};

static struct board *board;
static struct cache_program program; /* half a hundred kilobytes */

/* @return whether the child came to its end without a complaint */
static bool
wait_for(pid_t child, int *wait_status_out)
{
    while (waitpid(child, wait_status_out, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(*wait_status_out) && WEXITSTATUS(*wait_status_out) == 0 && !board->failed;
}

static void
run_seeds(uint64_t first_seed, uint64_t count, uint64_t operations)
{
    for (uint64_t seed = first_seed; seed < first_seed + count; seed++) {
        board->seed = seed;
        (void)alarm(PROGRAM_SECONDS);
        program_generate(&program, seed);
        duel_run(&program, &board->result);
        if (!board->result.agreed) {
            board->failed = true;
            _exit(1);
        }
        board->operations += program.step_count;
        if (board->operations >= operations) {
            break;
        }
    }

    exit(0); /* the leak checker gets its turn */
}

/* Run the program at hand in a child. @return whether it failed */
static bool
fails(void)
{
    int wait_status;
    pid_t child;

    board->failed = false;
    child = fork();
    if (child == 0) {
        (void)freopen("/dev/null", "w", stderr); /* a hundred reports of the same failure */
        (void)alarm(PROGRAM_SECONDS);
        duel_run(&program, &board->result);
        _exit(board->result.agreed ? 0 : 1);
    }
    return child > 0 && !wait_for(child, &wait_status);
}

/* One try to go on with the smaller program at hand. */
static bool
still_fails(uint64_t end_ns)
{
    return uc_clock_now_ns() < end_ns && fails();
}

/* Leave out ever smaller parts as long as the program keeps failing. */
static void
cut_steps(uint64_t end_ns)
{
    for (size_t part = program.step_count / 2; part > 0;) {
        bool again = false;

        for (size_t first = 0; first + part <= program.step_count;) {
            struct cache_program whole = program;

            program_cut(&program, first, part);
            if (still_fails(end_ns)) {
                again = true;
            } else {
                program = whole;
                first += part;
            }
        }
        part = again && part == 1 ? 1 : part / 2;
    }
}

static void
cut_blocks(uint64_t end_ns)
{
    for (size_t at = 0; at < program.step_count; at++) {
        struct program_step *step = &program.steps[at];

        for (size_t idx = 0; idx < step->count && step->count > 1;) {
            struct program_step whole = *step;

            step->count--;
            memmove(&step->blocks[idx], &step->blocks[idx + 1], step->count - idx);
            if (!still_fails(end_ns)) {
                *step = whole;
                idx++;
            }
        }
    }
}

static void
report_failure(const struct options *options, int wait_status)
{
    uint64_t end_ns = uc_clock_now_ns() + SHRINK_SECONDS * UINT64_C(1000000000);

    (void)fprintf(stderr, "cache property: seed %" PRIu64 " fails: %s\n", board->seed,
            WIFSIGNALED(wait_status) ? strsignal(WTERMSIG(wait_status)) : board->result.complaint);
    if (options->no_shrinking) {
        return;
    }
    program_generate(&program, board->seed);
    if (!fails()) {
        (void)fprintf(stderr, "... but not a second time, alone\n");
        return;
    }

    cut_steps(end_ns);
    cut_blocks(end_ns);
    cut_steps(end_ns);
    board->result = (struct duel_result){0};
    (void)fails();
    (void)fprintf(stderr, "smallest program found (step %zu: %s):\n", board->result.step,
            board->result.complaint[0] == '\0' ? "a crash" : board->result.complaint);
    program_print(&program, stderr);
}

static bool
parse_options(int argc, char *argv[], struct options *options)
{
    const char *more = getenv("UCM_TEST_LONG");
    const char *operations = getenv("UCM_TEST_OPERATIONS");
    bool is_long = more != NULL && strcmp(more, "1") == 0;

    *options = (struct options){.seed = 1, .operations = ci_operations};
    if (operations != NULL) {
        options->operations = strtoull(operations, NULL, 10);
        options->no_shrinking = true;
    }
    for (int idx = 1; idx < argc; idx++) {
        if (strcmp(argv[idx], "--long") == 0) {
            is_long = true;
        } else if (strcmp(argv[idx], "--seed") == 0 && idx + 1 < argc) {
            options->seed = strtoull(argv[++idx], NULL, 10);
            options->one_seed = true;
        } else if (strcmp(argv[idx], "--operations") == 0 && idx + 1 < argc) {
            options->operations = strtoull(argv[++idx], NULL, 10);
        } else {
            return false;
        }
    }
    if (is_long && !options->one_seed) {
        options->operations *= long_factor;
        options->seed = uc_clock_now_ns();
    }
    return true;
}

static bool
run_all(const struct options *options)
{
    uint64_t seed = options->seed;

    while (board->operations < options->operations) {
        int wait_status = 0;
        pid_t child = fork();

        if (child < 0) {
            perror("cache property: fork");
            return false;
        }
        if (child == 0) {
            run_seeds(seed, options->one_seed ? 1 : PROGRAMS_PER_CHILD, options->operations);
        }
        if (!wait_for(child, &wait_status)) {
            report_failure(options, wait_status);
            return false;
        }
        if (options->one_seed) {
            break;
        }
        seed += PROGRAMS_PER_CHILD;
    }

    (void)printf("cache property: %" PRIu64 " operations agreed, seeds %" PRIu64 " to %" PRIu64
                 "\n",
            board->operations, options->seed, board->seed);
    return true;
}

int
main(int argc, char *argv[])
{
    struct options options;

    if (!parse_options(argc, argv, &options)) {
        (void)fprintf(stderr, "usage: %s [--long] [--seed N] [--operations N]\n", argv[0]);
        return 2;
    }

    board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (board == MAP_FAILED) {
        perror("cache property: mmap");
        return EXIT_FAILURE;
    }

    return run_all(&options) ? EXIT_SUCCESS : EXIT_FAILURE;
}
