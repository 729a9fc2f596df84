/* SPDX-License-Identifier: Apache-2.0 */

#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "tools/bench/replay_options.h"

enum {
    WORDS_MAX = 24,
    LINE_BYTES = 512
};

static struct uc_replay_options options;
static char line_copy[LINE_BYTES];

/* Parse a command line, split at blanks. */
static enum uc_status
parse(const char *line)
{
    char *words[WORDS_MAX];
    char *rest = NULL;
    int count = 0;

    ck_assert_uint_lt(strlen(line), LINE_BYTES);
    strcpy(line_copy, line); /* the options borrow from it */
    for (char *word = strtok_r(line_copy, " ", &rest); word != NULL;
            word = strtok_r(NULL, " ", &rest)) {
        ck_assert_int_lt(count, WORDS_MAX);
        words[count++] = word;
    }
    return uc_replay_options_parse(count, words, &options);
}

START_TEST(defaults_are_the_documented_ones)
{
    ck_assert_int_eq(parse("--generate 5 --simulate"), UC_OK);
    ck_assert_uint_eq(options.generate.seed, 5);
    ck_assert_uint_eq(options.generate.requests, 1000);
    ck_assert_uint_eq(options.nodes, 2);
    ck_assert_uint_eq(options.capacity_blocks, 10000);
    ck_assert_uint_eq(options.block_bytes, 65536);
    ck_assert_uint_eq(options.timeout_ms, 30000);
    ck_assert_uint_eq(options.limit, 0);
    ck_assert_str_eq(options.policy, "lru");
    ck_assert_str_eq(options.fabric, "auto");
    ck_assert_str_eq(options.namespace_name, "default");
    ck_assert(options.checksum);
    ck_assert(!options.json);
    ck_assert_ptr_null(options.trace_path);
    ck_assert_uint_eq(options.capacities.count, 1);
    ck_assert_str_eq(options.half, "all");
    ck_assert_uint_eq(options.thin, 1);
    ck_assert_double_eq(options.time_scale, 1);
    ck_assert(!uc_replay_options_ask_curve(&options));
}
END_TEST

/* Pitfall P43: every option does something. */
START_TEST(every_option_is_taken)
{
    ck_assert_int_eq(parse("--trace t.jsonl --nodes 4 --capacity-blocks=77 --block-bytes 1MiB "
                           "--policy fifo --fabric tcp --server h:1 --namespace n --timeout-ms 9 "
                           "--limit 3 --json --checksum off"),
            UC_OK);
    ck_assert_str_eq(options.trace_path, "t.jsonl");
    ck_assert_uint_eq(options.nodes, 4);
    ck_assert_uint_eq(options.capacity_blocks, 77);
    ck_assert_uint_eq(options.block_bytes, 1 << 20);
    ck_assert_str_eq(options.policy, "fifo");
    ck_assert_str_eq(options.fabric, "tcp");
    ck_assert_str_eq(options.server, "h:1");
    ck_assert_str_eq(options.namespace_name, "n");
    ck_assert_uint_eq(options.timeout_ms, 9);
    ck_assert_uint_eq(options.limit, 3);
    ck_assert(options.json);
    ck_assert(!options.checksum);
    ck_assert_int_eq(parse("--generate=1:20 --spawn-server"), UC_OK);
    ck_assert(options.spawn_server);
    ck_assert_uint_eq(options.generate.requests, 20);
    ck_assert_int_eq(parse("--help"), UC_OK);
    ck_assert(options.help);
}
END_TEST

START_TEST(lists_and_plots_ask_for_a_curve)
{
    ck_assert_int_eq(parse("--generate 1 --simulate --policy lru,pwa:ghost=0"), UC_OK);
    ck_assert(uc_replay_options_ask_curve(&options));
    ck_assert_int_eq(parse("--generate 1 --simulate --plot a.png"), UC_OK);
    ck_assert(uc_replay_options_ask_curve(&options));
    ck_assert_int_eq(parse("--generate 1 --simulate --capacity-blocks 10,2147483647 --thin 3 "
                           "--half second --mix b.jsonl --time-scale 0.5"),
            UC_OK);
    ck_assert(uc_replay_options_ask_curve(&options));
    ck_assert_uint_eq(options.capacities.count, 2);
    ck_assert_uint_eq(options.capacities.blocks[1], 2147483647);
    ck_assert_uint_eq(options.capacity_blocks, 10);
    ck_assert_uint_eq(options.thin, 3);
    ck_assert_str_eq(options.half, "second");
    ck_assert_str_eq(options.mix_path, "b.jsonl");
    ck_assert_double_eq(options.time_scale, 0.5);
}
END_TEST

/* A command line, and what its error has to name. */
static const struct {
    const char *line;
    const char *named;
} refused_cases[] = {
        {"--nosuch", "--nosuch"},
        {"trace.jsonl", "trace.jsonl"},
        {"--simulate", "--trace"},
        {"--simulate --trace a --generate 1", "--generate"},
        {"--trace a", "--simulate"},
        {"--trace a --simulate --spawn-server", "--spawn-server"},
        {"--trace a --server h:1 --spawn-server", "--server"},
        {"--trace", "--trace"},
        {"--trace=", "--trace"},
        {"--simulate=yes --trace a", "--simulate"},
        {"--trace a --simulate --nodes 0", "--nodes"},
        {"--trace a --simulate --nodes 257", "--nodes"},
        {"--trace a --simulate --nodes -1", "--nodes"},
        {"--trace a --simulate --nodes 2x", "--nodes"},
        {"--trace a --simulate --capacity-blocks 0", "--capacity-blocks"},
        {"--trace a --simulate --capacity-blocks 99999999999999999999", "--capacity-blocks"},
        {"--trace a --simulate --capacity-blocks 1,", "--capacity-blocks"},
        {"--trace a --simulate --capacity-blocks 1,,2", "--capacity-blocks"},
        {"--trace a --simulate --capacity-blocks "
         "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1",
                "32"},
        {"--trace a --spawn-server --capacity-blocks 1,2", "--simulate"},
        {"--trace a --spawn-server --policy lru,fifo", "--simulate"},
        {"--trace a --spawn-server --policy pwa:ghost=0", "--simulate"},
        {"--trace a --spawn-server --plot a.png", "--simulate"},
        {"--trace a --simulate --thin 0", "--thin"},
        {"--trace a --simulate --half third", "all|first|second"},
        {"--trace a --simulate --time-scale 0", "--time-scale"},
        {"--trace a --simulate --time-scale nan", "--time-scale"},
        {"--trace a --simulate --time-scale 2x", "--time-scale"},
        {"--trace a --simulate --block-bytes 64Kibble", "--block-bytes"},
        {"--trace a --simulate --fabric smoke", "tcp|verbs|auto"},
        {"--trace a --simulate --checksum maybe", "--checksum"},
        {"--simulate --generate x", "--generate"},
        {"--simulate --generate 1:", "--generate"},
        {"--simulate --generate 1:0", "--generate"},
        {"--simulate --generate 1:99999999", "--generate"},
        {"--simulate --generate 111111111111111111111111111111111111111111", "--generate"},
};

START_TEST(faults_are_named)
{
    ck_assert_int_eq(parse(refused_cases[_i].line), UC_ERR_INVALID_PARAM);
    ck_assert_msg(strstr(uc_last_error(), refused_cases[_i].named) != NULL, "%s: %s",
            refused_cases[_i].line, uc_last_error());
}
END_TEST

START_TEST(help_lists_every_option)
{
    char *text = NULL;
    size_t length = 0;
    FILE *file = open_memstream(&text, &length);

    uc_replay_options_print_help(file);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_ptr_nonnull(strstr(text, "--capacity-blocks N[,N…]"));
    ck_assert_ptr_nonnull(strstr(text, "(default 64KiB)"));
    ck_assert_ptr_nonnull(strstr(text, "--timeout-ms MS"));
    free(text);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("replay_options");
    TCase *tcase = tcase_create("all");
    SRunner *runner;
    int failed;

    tcase_add_test(tcase, defaults_are_the_documented_ones);
    tcase_add_test(tcase, every_option_is_taken);
    tcase_add_test(tcase, lists_and_plots_ask_for_a_curve);
    tcase_add_loop_test(
            tcase, faults_are_named, 0, sizeof(refused_cases) / sizeof(refused_cases[0]));
    tcase_add_test(tcase, help_lists_every_option);
    suite_add_tcase(suite, tcase);

    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
