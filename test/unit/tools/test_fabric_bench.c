/* SPDX-License-Identifier: Apache-2.0 */

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <check.h>

#include "core/base/bytes.h"
#include "net/slot_footer.h"
#include "tools/bench/fabric_bench.h"
#include "tools/bench/fabric_control.h"
#include "tools/bench/fabric_slots.h"
#include "tools/bench/perftest.h"

enum {
    WORDS_MAX = 32,
    LINE_BYTES = 512,
    REPORT_BYTES = 8192,
};

static struct uc_fabric_bench_options options;
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
    return uc_fabric_bench_options_parse(count, words, &options);
}

START_TEST(defaults_are_the_documented_ones)
{
    ck_assert_int_eq(parse(""), UC_OK);
    ck_assert_str_eq(options.fabric, "tcp");
    ck_assert_str_eq(options.op, "read");
    ck_assert_str_eq(options.buffers, "cold");
    ck_assert_str_eq(options.limit, "on");
    ck_assert_str_eq(options.address, "127.0.0.1");
    ck_assert_uint_eq(options.block_bytes, 1 << 20);
    ck_assert_uint_eq(options.pieces, 1);
    ck_assert_uint_eq(options.depth, 8);
    ck_assert_uint_eq(options.connections, 0);
    ck_assert_uint_eq(options.seconds, 2);
    ck_assert_uint_eq(options.rounds, 5);
    ck_assert_uint_eq(options.working_set_bytes, 0);
    ck_assert_ptr_null(options.serve);
    ck_assert_ptr_null(options.connect);
    ck_assert(!options.json);
}
END_TEST

START_TEST(every_option_is_taken)
{
    ck_assert_int_eq(parse("--fabric verbs --op write --block-bytes 64KiB --pieces 32 --depth 16 "
                           "--connections 4 --seconds 7 --rounds 9 --working-set 1GiB --buffers "
                           "reused --limit off --address h --device d:1 --connect h:1 --json"),
            UC_OK);
    ck_assert_str_eq(options.fabric, "verbs");
    ck_assert_str_eq(options.op, "write");
    ck_assert_uint_eq(options.block_bytes, 65536);
    ck_assert_uint_eq(options.pieces, 32);
    ck_assert_uint_eq(options.depth, 16);
    ck_assert_uint_eq(options.connections, 4);
    ck_assert_uint_eq(options.seconds, 7);
    ck_assert_uint_eq(options.rounds, 9);
    ck_assert_uint_eq(options.working_set_bytes, 1 << 30);
    ck_assert_str_eq(options.buffers, "reused");
    ck_assert_str_eq(options.limit, "off");
    ck_assert_str_eq(options.address, "h");
    ck_assert_str_eq(options.device, "d:1");
    ck_assert_str_eq(options.connect, "h:1");
    ck_assert(options.json);
    ck_assert_int_eq(parse("--server h:2"), UC_OK);
    ck_assert_str_eq(options.serve, "h:2");
}
END_TEST

static const char *const wrong_lines[] = {
        "--fabric carrier-pigeon",
        "--op append",
        "--buffers warm",
        "--block-bytes 100 --pieces 3", /* pieces of different size */
        "--block-bytes 4",
        "--pieces 0",
        "--pieces 513",
        "--depth 0",
        "--depth 1025",
        "--rounds 0",
        "--rounds 100",
        "--seconds 0",
        "--connections 65",
        "--connections 9 --depth 8",
        "--block-bytes 1GiB --depth 17",
        "--server a:1 --connect b:1",
        "--no-such-option",
};

START_TEST(wrong_options_are_refused_by_name)
{
    const char *line = wrong_lines[_i];
    char name[LINE_BYTES];

    ck_assert_int_eq(parse(line), UC_ERR_INVALID_PARAM);
    (void)sscanf(line, "%s", name);
    ck_assert_msg(strstr(uc_last_error(), name) != NULL, "%s: %s", line, uc_last_error());
}
END_TEST

START_TEST(control_frame_comes_back)
{
    struct uc_fabric_control message = {.type = UC_FABRIC_CONTROL_SETUP,
            .numbers = {1, 2, 3, 4, 5, 6, 7, UINT64_MAX},
            .text = "tcp"};
    uint8_t frame[UC_FABRIC_CONTROL_FRAME_BYTES];
    struct uc_fabric_control out;

    uc_fabric_control_encode(&message, frame);
    ck_assert_int_eq(uc_fabric_control_decode(frame, &out), UC_OK);
    ck_assert_int_eq(out.type, message.type);
    ck_assert_mem_eq(out.numbers, message.numbers, sizeof(out.numbers));
    ck_assert_str_eq(out.text, "tcp");
}
END_TEST

START_TEST(control_frame_of_a_stranger_is_refused)
{
    struct uc_fabric_control message = {.type = UC_FABRIC_CONTROL_CPU};
    uint8_t frame[UC_FABRIC_CONTROL_FRAME_BYTES];
    struct uc_fabric_control out = {.type = UC_FABRIC_CONTROL_MOVE};

    uc_fabric_control_encode(&message, frame);
    frame[0] ^= 1;
    ck_assert_int_eq(uc_fabric_control_decode(frame, &out), UC_ERR_INVALID_PARAM);
    uc_fabric_control_encode(&message, frame);
    for (uint32_t type = 0; type < 1000; type++) {
        bool known = type >= UC_FABRIC_CONTROL_FAILED && type < UC_FABRIC_CONTROL_END_;

        uc_put_le32(frame + 4, type);
        ck_assert_int_eq(
                uc_fabric_control_decode(frame, &out), known ? UC_OK : UC_ERR_INVALID_PARAM);
    }
    uc_fabric_control_encode(&message, frame);
    memset(frame + UC_FABRIC_CONTROL_FRAME_BYTES - UC_FABRIC_CONTROL_TEXT_BYTES, 'x',
            UC_FABRIC_CONTROL_TEXT_BYTES);
    ck_assert_int_eq(uc_fabric_control_decode(frame, &out), UC_ERR_INVALID_PARAM);
}
END_TEST

START_TEST(call_hands_on_what_the_server_says)
{
    struct uc_fabric_control request = {.type = UC_FABRIC_CONTROL_CPU};
    struct uc_fabric_control failure = {.type = UC_FABRIC_CONTROL_FAILED, .text = "no such device"};
    struct uc_fabric_control other = {.type = UC_FABRIC_CONTROL_MOVE};
    struct uc_fabric_control answer = {.type = UC_FABRIC_CONTROL_END_};
    int ends[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    ck_assert_int_eq(uc_fabric_control_send(ends[1], &failure), UC_OK);
    ck_assert_int_eq(uc_fabric_control_call(ends[0], &request, 10000, &answer), UC_ERR_GENERAL);
    ck_assert_ptr_nonnull(strstr(uc_last_error(), "no such device"));
    ck_assert_int_eq(uc_fabric_control_send(ends[1], &other), UC_OK);
    ck_assert_int_eq(
            uc_fabric_control_call(ends[0], &request, 10000, &answer), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(close(ends[1]), 0);
    ck_assert_int_eq(uc_fabric_control_receive(ends[0], 10000, &answer), UC_ERR_UNHEALTHY);
    ck_assert_int_eq(answer.type, UC_FABRIC_CONTROL_END_);
    ck_assert_int_eq(close(ends[0]), 0);
}
END_TEST

START_TEST(slots_hold_the_working_set_and_the_depth)
{
    struct uc_fabric_bench_slots slots = uc_fabric_bench_slots_plan(65536, 1 << 20, 4);

    ck_assert_uint_eq(slots.count, 16);
    ck_assert_uint_eq(slots.slot_bytes, 65536 + 4096); /* the footer, and padding */
    ck_assert_uint_eq(uc_fabric_bench_slots_plan(65536, 1 << 20, 40).count, 40);
}
END_TEST

START_TEST(slots_show_what_was_written_wrong)
{
    struct uc_fabric_bench_slots slots = uc_fabric_bench_slots_plan(1000, 8000, 1);
    struct uc_fabric_bench_memory memory = {.fd = -1};
    uint64_t checked = 0;

    ck_assert_int_eq(uc_fabric_bench_memory_create(slots.count * slots.slot_bytes, &memory), UC_OK);
    uc_fabric_bench_slots_fill(&slots, memory.base, false);
    ck_assert_uint_eq(uc_fabric_bench_slots_check(&slots, memory.base, &checked), 0);
    ck_assert_uint_eq(checked, 0); /* nothing was written yet */
    uc_fabric_bench_slots_fill(&slots, memory.base, true);
    ck_assert_uint_eq(uc_fabric_bench_slots_check(&slots, memory.base, &checked), 0);
    ck_assert_uint_eq(checked, 8);
    memory.base[slots.slot_bytes + 999] ^= 1;
    memory.base[5 * slots.slot_bytes] ^= 1;
    ck_assert_uint_eq(uc_fabric_bench_slots_check(&slots, memory.base, &checked), 2);
    uc_fabric_bench_memory_destroy(&memory);
}
END_TEST

START_TEST(pieces_of_a_block_are_apart_and_overlap_nothing)
{
    struct uc_fabric_bench_buffers buffers = {
            .count = 3, .piece_bytes = 100, .pieces = 4, .footer_count = 2};
    uint8_t seen[1200] = {0};

    for (uint64_t buffer = 0; buffer < buffers.count; buffer++) {
        for (uint64_t piece = 0; piece < buffers.pieces; piece++) {
            uint64_t offset = uc_fabric_bench_piece_offset(&buffers, buffer, piece);

            ck_assert_uint_le(offset, sizeof(seen) - 100);
            for (uint64_t at = offset; at < offset + 100; at++) {
                ck_assert_uint_eq(seen[at]++, 0);
            }
        }
    }
    ck_assert_uint_ge(uc_fabric_bench_piece_offset(&buffers, 0, 1), 300);
    ck_assert_uint_eq(uc_fabric_bench_footer_offset(&buffers, 0), 4096);
    ck_assert_uint_eq(uc_fabric_bench_footer_offset(&buffers, 2), 4096 + 2 * UC_FOOTER_BYTES);
}
END_TEST

/* Limits write blocks from memory in one piece: a slot's checksum has to fit those, too. */
START_TEST(bytes_side_by_side_are_those_of_the_pieces)
{
    struct uc_fabric_bench_buffers buffers = {
            .count = 3, .piece_bytes = 100, .pieces = 4, .footer_count = 2};
    uint8_t memory[1200] = {0};
    uint8_t block[400];

    uc_fabric_bench_buffers_fill(&buffers, memory);
    for (uint64_t buffer = 0; buffer < buffers.count; buffer++) {
        for (uint64_t piece = 0; piece < buffers.pieces; piece++) {
            memcpy(block + piece * 100,
                    memory + uc_fabric_bench_piece_offset(&buffers, buffer, piece), 100);
        }
        ck_assert_mem_eq(block, memory + buffer * sizeof(block), sizeof(block));
        ck_assert_mem_eq(block, memory, sizeof(block));
    }
}
END_TEST

START_TEST(figures_of_perftest_are_found)
{
    static const char bandwidth[] =
            "---------\n Device         : rxe0\n #bytes     #iterations    BW peak[Gb/sec]    BW "
            "average[Gb/sec]   MsgRate[Mpps]\n 1048576    100              4.10               "
            "3.96                 0.000472\n---------\n";
    static const char latency[] =
            " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    "
            "t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec]\n 65536   200          "
            "50.12          99.34        55.25              57.71            5.88           80.40  "
            "         99.34\n";
    double figure = 0;

    ck_assert_int_eq(uc_perftest_parse(UC_PERFTEST_READ_BW, bandwidth, &figure), UC_OK);
    ck_assert_double_eq_tol(figure, 3.96, 1e-9);
    ck_assert_int_eq(uc_perftest_parse(UC_PERFTEST_READ_LAT, latency, &figure), UC_OK);
    ck_assert_double_eq_tol(figure, 55.25, 1e-9);
    ck_assert_int_eq(uc_perftest_parse(UC_PERFTEST_READ_BW, "", &figure), UC_ERR_NOT_FOUND);
    ck_assert_int_eq(uc_perftest_parse(UC_PERFTEST_READ_BW, " #bytes", &figure), UC_ERR_NOT_FOUND);
    ck_assert_int_eq(
            uc_perftest_parse(UC_PERFTEST_READ_BW, "#bytes\n1 2 3\n", &figure), UC_ERR_NOT_FOUND);
}
END_TEST

START_TEST(perftest_takes_no_numbers_out_of_bounds)
{
    static const struct uc_perftest wrong[] = {
            {.tool = UC_PERFTEST_TOOL_COUNT, .block_bytes = 64, .depth = 1, .operations = 10},
            {.block_bytes = 1, .depth = 1, .operations = 10},
            {.block_bytes = (1u << 30) + 1, .depth = 1, .operations = 10},
            {.block_bytes = 64, .depth = 0, .operations = 10},
            {.block_bytes = 64, .depth = 1 << 20, .operations = 10},
            {.block_bytes = 64, .depth = 1, .operations = 4},
            {.block_bytes = 64, .depth = 1, .operations = UINT64_MAX},
            {.block_bytes = 64, .depth = 1, .operations = 10, .queue_pairs = 65},
    };

    for (size_t idx = 0; idx < sizeof(wrong) / sizeof(wrong[0]); idx++) {
        ck_assert_int_eq(uc_perftest_validate(&wrong[idx]), UC_ERR_INVALID_PARAM);
    }
}
END_TEST

static json_t *
printed(const struct uc_fabric_bench_report *report)
{
    static char text[REPORT_BYTES];
    FILE *file = fmemopen(text, sizeof(text), "w");
    json_t *root;

    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(parse("--json"), UC_OK);
    uc_fabric_bench_report_print(&options, report, file);
    ck_assert_int_eq(fclose(file), 0);
    root = json_loads(text, 0, NULL);
    ck_assert_msg(root != NULL, "%s", text);
    return root;
}

static double
real_at(const json_t *root, const char *outer, const char *key)
{
    const json_t *object = outer == NULL ? root : json_object_get(root, outer);

    ck_assert_ptr_nonnull(json_object_get(object, key));
    return json_number_value(json_object_get(object, key));
}

START_TEST(report_has_the_figures_under_their_keys)
{
    struct uc_fabric_bench_report report = {
            .plain = {.measured = true, .gbytes_per_s = 4, .ratio = 0.8},
            .verified = {.measured = true, .gbytes_per_s = 3, .ratio = 0.6},
            .limit = {.name = "memcpy", .measured = true, .gbytes_per_s = 5},
            .latency = {.p50_us = 10, .p99_us = 20, .p999_us = 30},
            .client = {.s_per_gbyte = 0.5, .share = 0.9},
            .server = {.s_per_gbyte = 0.25, .share = 0.125},
    };
    json_t *root = printed(&report);

    ck_assert_double_eq_tol(real_at(root, NULL, "gbytes_per_s"), 4, 1e-6);
    ck_assert_double_eq_tol(real_at(root, NULL, "ratio"), 0.8, 1e-6);
    ck_assert_double_eq_tol(real_at(root, NULL, "p50_us"), 10, 1e-6);
    ck_assert_double_eq_tol(real_at(root, NULL, "p99_us"), 20, 1e-6);
    ck_assert_double_eq_tol(real_at(root, NULL, "p99_9_us"), 30, 1e-6);
    ck_assert_double_eq_tol(real_at(root, "verified", "gbytes_per_s"), 3, 1e-6);
    ck_assert_double_eq_tol(real_at(root, "verified", "ratio"), 0.6, 1e-6);
    ck_assert_double_eq_tol(real_at(root, "limit", "gbytes_per_s"), 5, 1e-6);
    ck_assert_double_eq_tol(real_at(root, "cpu_s_per_gbyte", "client"), 0.5, 1e-6);
    ck_assert_double_eq_tol(real_at(root, "cpu_s_per_gbyte", "server"), 0.25, 1e-6);
    ck_assert_double_eq_tol(real_at(root, "cpu_share", "server"), 0.125, 1e-6);
    ck_assert_str_eq(
            json_string_value(json_object_get(json_object_get(root, "limit"), "name")), "memcpy");
    json_decref(root);
}
END_TEST

START_TEST(report_without_a_limit_says_why)
{
    struct uc_fabric_bench_report report = {
            .plain = {.measured = true, .gbytes_per_s = 4},
            .verified = {.measured = true, .gbytes_per_s = 3},
            .limit = {.reason = "ib_read_bw is not in PATH"},
    };
    json_t *root = printed(&report);
    json_t *limit = json_object_get(root, "limit");

    ck_assert(json_is_null(json_object_get(root, "ratio")));
    ck_assert(json_is_null(json_object_get(json_object_get(root, "verified"), "ratio")));
    ck_assert(json_is_null(json_object_get(limit, "gbytes_per_s")));
    ck_assert_str_eq(
            json_string_value(json_object_get(limit, "reason")), "ib_read_bw is not in PATH");
    json_decref(root);
}
END_TEST

static Suite *
fabric_bench_suite(void)
{
    Suite *suite = suite_create("fabric_bench");
    TCase *tcase = tcase_create("fabric_bench");

    tcase_add_test(tcase, defaults_are_the_documented_ones);
    tcase_add_test(tcase, every_option_is_taken);
    tcase_add_loop_test(tcase, wrong_options_are_refused_by_name, 0,
            (int)(sizeof(wrong_lines) / sizeof(wrong_lines[0])));
    tcase_add_test(tcase, control_frame_comes_back);
    tcase_add_test(tcase, control_frame_of_a_stranger_is_refused);
    tcase_add_test(tcase, call_hands_on_what_the_server_says);
    tcase_add_test(tcase, slots_hold_the_working_set_and_the_depth);
    tcase_add_test(tcase, slots_show_what_was_written_wrong);
    tcase_add_test(tcase, pieces_of_a_block_are_apart_and_overlap_nothing);
    tcase_add_test(tcase, bytes_side_by_side_are_those_of_the_pieces);
    tcase_add_test(tcase, figures_of_perftest_are_found);
    tcase_add_test(tcase, perftest_takes_no_numbers_out_of_bounds);
    tcase_add_test(tcase, report_has_the_figures_under_their_keys);
    tcase_add_test(tcase, report_without_a_limit_says_why);
    suite_add_tcase(suite, tcase);
    return suite;
}

int
main(void)
{
    SRunner *runner = srunner_create(fabric_bench_suite());
    int failed;

    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
