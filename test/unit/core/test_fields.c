/* SPDX-License-Identifier: Apache-2.0 */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "core/config/fields.h"
#include "test/fake/fake_alloc.h"

struct sample {
    bool enabled;
    uint64_t queue_pairs;
    uint64_t block_bytes;
    uint64_t lease_ms;
    char name[UC_FIELD_STRING_BYTES];
    char fabric[UC_FIELD_STRING_BYTES];
};

static const char *const fabrics[] = {"auto", "verbs", "tcp", NULL};
static const char *const ignored_keys[] = {"namespaces", NULL};

static const struct uc_field fields[] = {
        {
                .key = "enabled",
                .type = UC_FIELD_BOOL,
                .default_text = "true",
                .offset = offsetof(struct sample, enabled),
                .help = "whether it runs",
        },
        {
                .key = "queue_pairs",
                .type = UC_FIELD_COUNT,
                .default_text = "2",
                .min = 1,
                .max = 4,
                .offset = offsetof(struct sample, queue_pairs),
                .help = "per server",
        },
        {
                .key = "block_bytes",
                .type = UC_FIELD_BYTES,
                .default_text = "1MiB",
                .min = 4096,
                .max = UINT64_MAX,
                .offset = offsetof(struct sample, block_bytes),
                .help = "size of a block",
        },
        {
                .key = "lease",
                .type = UC_FIELD_MS,
                .default_text = "10s",
                .min = 1000,
                .max = 3600000,
                .offset = offsetof(struct sample, lease_ms),
                .help = "how long a silent session lives",
        },
        {
                .key = "name",
                .type = UC_FIELD_STRING,
                .offset = offsetof(struct sample, name),
                .help = "name of the server",
        },
        {
                .key = "fabric",
                .type = UC_FIELD_STRING,
                .default_text = "auto",
                .choices = fabrics,
                .offset = offsetof(struct sample, fabric),
                .help = "transport",
        },
};
static const size_t field_count = sizeof(fields) / sizeof(fields[0]);

static struct uc_dict *dict;
static struct sample sample;

static void
setup(void)
{
    sample = (struct sample){0};
    dict = NULL;
}

static void
teardown(void)
{
    uc_fake_alloc_reset();
    uc_dict_destroy(dict);
}

static enum uc_status
apply(const char *text)
{
    uc_dict_destroy(dict);
    dict = NULL;
    ck_assert_int_eq(uc_yaml_read_text(text, strlen(text), "t.yaml", &dict), UC_OK);
    return uc_field_apply(fields, field_count, dict, "t.yaml", ignored_keys, &sample);
}

START_TEST(defaults_fill_what_is_not_given)
{
    ck_assert_int_eq(apply("name: n1"), UC_OK);
    ck_assert(sample.enabled);
    ck_assert_uint_eq(sample.queue_pairs, 2);
    ck_assert_uint_eq(sample.block_bytes, 1 << 20);
    ck_assert_uint_eq(sample.lease_ms, 10000);
    ck_assert_str_eq(sample.name, "n1");
    ck_assert_str_eq(sample.fabric, "auto");
}
END_TEST

START_TEST(given_values_win)
{
    ck_assert_int_eq(apply("name: n1\nenabled: false\nqueue_pairs: 4\nblock_bytes: 64KiB\n"
                           "lease: 1500\nfabric: tcp\nnamespaces: [a, b]\n"),
            UC_OK);
    ck_assert(!sample.enabled);
    ck_assert_uint_eq(sample.queue_pairs, 4);
    ck_assert_uint_eq(sample.block_bytes, 65536);
    ck_assert_uint_eq(sample.lease_ms, 1500);
    ck_assert_str_eq(sample.fabric, "tcp");
}
END_TEST

/* Each is refused with a text that says where, what and what to do. */
static const struct {
    const char *text;
    const char *want;
} bad_cases[] = {
        {"name: n\nblok_bytes: 1MiB", "t.yaml:2: key 'blok_bytes' is not known; did you mean "
                                      "'block_bytes'?"},
        {"name: n\nnamespace: x", "did you mean 'namespaces'?"},
        {"name: n\nzzzzzzzz: x", "t.yaml:2: key 'zzzzzzzz' is not known"},
        {"fabric: tcp", "t.yaml: key 'name' is missing: name of the server"},
        {"name: 7", "t.yaml:1: key 'name' must be text, but is an integer"},
        {"name: n\nenabled: 1", "t.yaml:2: key 'enabled' must be a bool, but is an integer"},
        {"name: n\nenabled: yes", "must be a bool, but is text"},
        {"name: n\nqueue_pairs: 0", "t.yaml:2: key 'queue_pairs' is 0, must be from 1 to 4"},
        {"name: n\nqueue_pairs: 5", "is 5, must be from 1 to 4"},
        {"name: n\nqueue_pairs: -1", "must not be negative"},
        {"name: n\nqueue_pairs: 1.5", "must be an integer"},
        {"name: n\nqueue_pairs: two", "must be an integer, but is text"},
        {"name: n\nblock_bytes: 1KiB", "key 'block_bytes' is 1KiB, must be at least 4KiB"},
        {"name: n\nblock_bytes: 1M", "t.yaml:2: key 'block_bytes': '1M': unit 'M' is not known"},
        {"name: n\nblock_bytes: [1]", "t.yaml:2: key 'block_bytes' must be a size"},
        {"name: n\nlease: 2h", "is 2h, must be from 1s to 1h"},
        {"name: n\nfabric: udp", "is 'udp', must be one of: auto, verbs, tcp"},
};

START_TEST(fault_is_explained)
{
    ck_assert_int_eq(apply(bad_cases[_i].text), UC_ERR_INVALID_PARAM);
    ck_assert_msg(strstr(uc_last_error(), bad_cases[_i].want) != NULL, "%s", uc_last_error());
}
END_TEST

START_TEST(text_that_does_not_fit_is_refused)
{
    char text[UC_FIELD_STRING_BYTES + 16] = "name: ";

    memset(text + 6, 'x', UC_FIELD_STRING_BYTES);
    ck_assert_int_eq(apply(text), UC_ERR_INVALID_PARAM);
    ck_assert_ptr_nonnull(strstr(uc_last_error(), "at most 255"));
    text[6 + UC_FIELD_STRING_BYTES - 1] = '\0';
    ck_assert_int_eq(apply(text), UC_OK);
    ck_assert_uint_eq(strlen(sample.name), UC_FIELD_STRING_BYTES - 1);
}
END_TEST

START_TEST(unknown_key_is_reported_without_memory_too)
{
    enum uc_status status;

    ck_assert_int_eq(apply("name: n"), UC_OK);
    ck_assert_int_eq(uc_dict_set_int(dict, "lese", 1), UC_OK);
    uc_fake_alloc_fail_after(0);
    status = uc_field_apply(fields, field_count, dict, "here", NULL, &sample);
    uc_fake_alloc_reset();
    ck_assert_int_eq(status, UC_ERR_INVALID_PARAM);
    ck_assert_str_eq(uc_last_error(), "here: key 'lese' is not known");
}
END_TEST

static const struct {
    const char *text;
    const char *want;
} nearest_cases[] = {
        {"lease", "lease"},
        {"leese", "lease"},
        {"lese", "lease"},
        {"leases", "lease"},
        {"blockbytes", "block_bytes"},
        {"block_size", "block_bytes"},
        {"x", NULL},
        {"", NULL},
        {"completely_else", NULL},
        {NULL, NULL},
};

START_TEST(nearest_name_is_close_or_none)
{
    static const char *const names[] = {"block_bytes", "lease", "fabric"};
    char longer[200];

    ck_assert_pstr_eq(uc_field_nearest(nearest_cases[_i].text, names, 3), nearest_cases[_i].want);
    memset(longer, 'l', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    ck_assert_ptr_null(uc_field_nearest(longer, names, 3));
}
END_TEST

/* What is printed reads back as the same configuration. */
START_TEST(printed_configuration_reads_back)
{
    char text[4096] = "";
    FILE *file = fmemopen(text, sizeof(text), "w");
    struct sample first;

    ck_assert_int_eq(apply("name: \"q\\\"b\\\\n\\n\"\nlease: 90s\nblock_bytes: 4097\n"), UC_OK);
    first = sample;
    uc_field_print(fields, field_count, &sample, "", file);
    (void)fclose(file);
    ck_assert_ptr_nonnull(strstr(text, "lease: 90s  # how long a silent session lives\n"));
    ck_assert_ptr_nonnull(strstr(text, "block_bytes: 4097B  # size of a block\n"));
    sample = (struct sample){0};
    ck_assert_int_eq(apply(text), UC_OK);
    ck_assert_str_eq(sample.name, first.name);
    ck_assert_uint_eq(sample.lease_ms, first.lease_ms);
    ck_assert_uint_eq(sample.block_bytes, first.block_bytes);
    ck_assert_uint_eq(sample.queue_pairs, first.queue_pairs);
    ck_assert_int_eq(sample.enabled, first.enabled);
}
END_TEST

START_TEST(help_names_every_key_with_its_default)
{
    char text[4096] = "";
    FILE *file = fmemopen(text, sizeof(text), "w");

    uc_field_print_help(fields, field_count, file);
    (void)fclose(file);
    ck_assert_ptr_nonnull(strstr(text, "--lease=TIME"));
    ck_assert_ptr_nonnull(strstr(text, "how long a silent session lives (default 10s)\n"));
    ck_assert_ptr_nonnull(strstr(text, "name of the server (required)\n"));
    ck_assert_ptr_nonnull(strstr(text, "transport: auto, verbs, tcp (default auto)\n"));
}
END_TEST

static Suite *
fields_suite(void)
{
    Suite *suite = suite_create("fields");
    TCase *tcase = tcase_create("all");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, defaults_fill_what_is_not_given);
    tcase_add_test(tcase, given_values_win);
    tcase_add_loop_test(tcase, fault_is_explained, 0, sizeof(bad_cases) / sizeof(bad_cases[0]));
    tcase_add_test(tcase, text_that_does_not_fit_is_refused);
    tcase_add_test(tcase, unknown_key_is_reported_without_memory_too);
    tcase_add_loop_test(tcase, nearest_name_is_close_or_none, 0,
            sizeof(nearest_cases) / sizeof(nearest_cases[0]));
    tcase_add_test(tcase, printed_configuration_reads_back);
    tcase_add_test(tcase, help_names_every_key_with_its_default);
    suite_add_tcase(suite, tcase);
    return suite;
}

int
main(void)
{
    SRunner *runner = srunner_create(fields_suite());
    int failed;

    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
