/* SPDX-License-Identifier: Apache-2.0 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <check.h>

#include "tools/bench/trace.h"

#define GOOD_LINE \
    "{\"timestamp\": 5, \"input_length\": 700, \"output_length\": 3, \"hash_ids\": [0, 9]}\n"

static char path[64];
static struct uc_trace trace;

static void
setup(void)
{
    int fd;

    strcpy(path, "/tmp/ucm_trace_XXXXXX");
    fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(close(fd), 0);
    memset(&trace, 0, sizeof(trace));
}

static void
teardown(void)
{
    uc_trace_fini(&trace);
    (void)unlink(path);
}

static enum uc_status
read_text(const char *text, size_t length, uint64_t limit)
{
    FILE *file = fopen(path, "w");

    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(text, 1, length, file), length);
    ck_assert_int_eq(fclose(file), 0);
    return uc_trace_read(path, limit, &trace);
}

START_TEST(lines_become_requests)
{
    static const char text[] =
            GOOD_LINE "\n"
                      "{\"hash_ids\": [], \"timestamp\": 6, \"input_length\": 1, "
                      "\"output_length\": 0, \"more\": \"ignored\"}";

    ck_assert_int_eq(read_text(text, strlen(text), 0), UC_OK);
    ck_assert_uint_eq(trace.request_count, 2);
    ck_assert_uint_eq(trace.requests[0].timestamp_ms, 5);
    ck_assert_uint_eq(trace.requests[0].input_length, 700);
    ck_assert_uint_eq(trace.requests[0].output_length, 3);
    ck_assert_uint_eq(trace.requests[0].count, 2);
    ck_assert_uint_eq(uc_trace_hash_ids(&trace, &trace.requests[0])[1], 9);
    ck_assert_uint_eq(trace.requests[1].count, 0);
}
END_TEST

START_TEST(limit_reads_the_first_requests)
{
    static const char text[] = GOOD_LINE GOOD_LINE "broken";

    ck_assert_int_eq(read_text(text, strlen(text), 2), UC_OK);
    ck_assert_uint_eq(trace.request_count, 2);
}
END_TEST

/* What is wrong with the second line, and what the error says after "file:2:". */
static const struct {
    const char *line;
    const char *named;
} refused_cases[] = {
        {"{\"timestamp\": 5, \"input_length\": 700, \"output_length\": 3, \"hash_ids\": [0,",
                "JSON"},
        {"{\"timestamp\": 5, \"input_length\": 700", "JSON"}, /* a file that was cut */
        {"nonsense", "JSON"},
        {"[1, 2]", "object"},
        {"{\"timestamp\": 5, \"input_length\": 7, \"output_length\": 3}", "hash_ids"},
        {"{\"timestamp\": 5, \"input_length\": 7, \"output_length\": 3, \"hash_ids\": 4}",
                "hash_ids"},
        {"{\"timestamp\": 5, \"input_length\": 7, \"output_length\": 3, \"hash_ids\": [-1]}",
                "hash_ids"},
        {"{\"timestamp\": 5, \"input_length\": 7, \"output_length\": 3, \"hash_ids\": [\"1\"]}",
                "hash_ids"},
        {"{\"timestamp\": 5, \"input_length\": 7, \"output_length\": 3, \"hash_ids\": [4, 5, 4]}",
                "twice"},
        {"{\"timestamp\": -5, \"input_length\": 7, \"output_length\": 3, \"hash_ids\": []}",
                "timestamp"},
        {"{\"timestamp\": 5, \"input_length\": \"7\", \"output_length\": 3, \"hash_ids\": []}",
                "input_length"},
        {"{\"timestamp\": 5, \"input_length\": 7, \"hash_ids\": []}", "output_length"},
        {"{\"timestamp\": 5, \"timestamp\": 6, \"input_length\": 7, \"output_length\": 3, "
         "\"hash_ids\": []}",
                "JSON"},
        {"{\"timestamp\": 99999999999999999999, \"input_length\": 7}", "JSON"},
};

START_TEST(bad_line_is_named_with_file_and_line)
{
    char text[1024];
    char place[80];

    (void)snprintf(text, sizeof(text), "%s%s", GOOD_LINE, refused_cases[_i].line);
    (void)snprintf(place, sizeof(place), "%s:2:", path);
    ck_assert_int_eq(read_text(text, strlen(text), 0), UC_ERR_INVALID_PARAM);
    ck_assert_msg(strstr(uc_last_error(), place) != NULL, "%s", uc_last_error());
    ck_assert_msg(strstr(uc_last_error(), refused_cases[_i].named) != NULL, "%s", uc_last_error());
    ck_assert_ptr_null(trace.requests);
}
END_TEST

/* What stands behind a NUL byte is part of the line. */
START_TEST(nul_byte_hides_nothing)
{
    static const char in_front[] = "\0" GOOD_LINE;
    char behind[] = GOOD_LINE "x\n";

    *strchr(behind, '\n') = '\0';
    ck_assert_int_eq(read_text(behind, sizeof(behind) - 1, 0), UC_ERR_INVALID_PARAM);
    ck_assert_ptr_nonnull(strstr(uc_last_error(), ":1:"));
    ck_assert_int_eq(read_text(in_front, sizeof(in_front) - 1, 0), UC_ERR_INVALID_PARAM);
    ck_assert_ptr_nonnull(strstr(uc_last_error(), ":1:"));
}
END_TEST

/* Pitfall P51: sizes are bounded before anything grows. */
START_TEST(endless_line_and_endless_list_are_refused)
{
    size_t length = (size_t)UC_TRACE_LINE_BYTES_MAX + 100;
    char *text = malloc(length);
    size_t used;

    ck_assert_ptr_nonnull(text);
    memset(text, ' ', length);
    ck_assert_int_eq(read_text(text, length, 0), UC_ERR_INVALID_PARAM);
    ck_assert_ptr_nonnull(strstr(uc_last_error(), "longer"));

    used = (size_t)sprintf(text, "{\"timestamp\": 5, \"input_length\": 7, \"output_length\": 3, "
                                 "\"hash_ids\": [0");
    for (unsigned id = 1; id <= UC_TRACE_REQUEST_IDS_MAX; id++) {
        used += (size_t)sprintf(text + used, ",%u", id);
    }
    used += (size_t)sprintf(text + used, "]}\n");
    ck_assert_int_eq(read_text(text, used, 0), UC_ERR_INVALID_PARAM);
    ck_assert_ptr_nonnull(strstr(uc_last_error(), "65536"));
    free(text);
}
END_TEST

START_TEST(empty_and_missing_files_are_errors)
{
    ck_assert_int_eq(read_text("\n\n", 2, 0), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_trace_read("no/such/file", 0, &trace), UC_ERR_OS_API);
    ck_assert_ptr_nonnull(strstr(uc_last_error(), "no/such/file"));
}
END_TEST

START_TEST(same_seed_same_trace_other_seed_other_trace)
{
    struct uc_trace again;
    struct uc_trace other;

    ck_assert_int_eq(uc_trace_generate(7, 200, &trace), UC_OK);
    ck_assert_int_eq(uc_trace_generate(7, 200, &again), UC_OK);
    ck_assert_int_eq(uc_trace_generate(8, 200, &other), UC_OK);
    ck_assert_uint_eq(trace.hash_id_count, again.hash_id_count);
    ck_assert_mem_eq(
            trace.hash_ids, again.hash_ids, trace.hash_id_count * sizeof(trace.hash_ids[0]));
    ck_assert(trace.hash_id_count != other.hash_id_count ||
              memcmp(trace.hash_ids, other.hash_ids,
                      trace.hash_id_count * sizeof(trace.hash_ids[0])) != 0);
    uc_trace_fini(&again);
    uc_trace_fini(&other);
}
END_TEST

static int
compare_ids(const void *left, const void *right)
{
    uint64_t first = *(const uint64_t *)left;
    uint64_t second = *(const uint64_t *)right;

    return first < second ? -1 : first > second;
}

START_TEST(generated_requests_are_plausible)
{
    ck_assert_int_eq(uc_trace_generate(3, 500, &trace), UC_OK);
    ck_assert_uint_eq(trace.request_count, 500);
    for (size_t idx = 0; idx < trace.request_count; idx++) {
        const struct uc_trace_request *request = &trace.requests[idx];
        uint64_t ids[512];

        ck_assert_uint_ge(request->count, 1);
        ck_assert_uint_lt(request->count, 512);
        ck_assert_uint_eq(request->count,
                (request->input_length + UC_TRACE_BLOCK_TOKENS - 1) / UC_TRACE_BLOCK_TOKENS);
        ck_assert(idx == 0 || request->timestamp_ms >= trace.requests[idx - 1].timestamp_ms);
        memcpy(ids, uc_trace_hash_ids(&trace, request), request->count * sizeof(ids[0]));
        qsort(ids, request->count, sizeof(ids[0]), compare_ids);
        for (size_t at = 1; at < request->count; at++) {
            ck_assert_uint_ne(ids[at - 1], ids[at]);
        }
    }
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("trace");
    TCase *tcase = tcase_create("all");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, lines_become_requests);
    tcase_add_test(tcase, limit_reads_the_first_requests);
    tcase_add_loop_test(tcase, bad_line_is_named_with_file_and_line, 0,
            sizeof(refused_cases) / sizeof(refused_cases[0]));
    tcase_add_test(tcase, nul_byte_hides_nothing);
    tcase_add_test(tcase, endless_line_and_endless_list_are_refused);
    tcase_add_test(tcase, empty_and_missing_files_are_errors);
    tcase_add_test(tcase, same_seed_same_trace_other_seed_other_trace);
    tcase_add_test(tcase, generated_requests_are_plausible);
    suite_add_tcase(suite, tcase);

    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
