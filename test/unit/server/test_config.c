/* SPDX-License-Identifier: Apache-2.0 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <check.h>

#include "server/config.h"

static struct uc_server_arguments arguments;

static void
setup(void)
{
    memset(&arguments, 0, sizeof(arguments));
}

static void
teardown(void)
{
    uc_server_config_fini(&arguments.config);
}

static enum uc_status
parse(const char *first, const char *second)
{
    char program[] = "ucm-server";
    char *texts[4] = {program, NULL, NULL, NULL};
    enum uc_status status;
    int count = 1;

    if (first != NULL) {
        texts[count++] = strdup(first);
    }
    if (second != NULL) {
        texts[count++] = strdup(second);
    }
    status = uc_server_arguments_parse(count, texts, &arguments);
    free(texts[1]);
    free(texts[2]);
    return status;
}

START_TEST(defaults_run_on_a_laptop)
{
    ck_assert_int_eq(parse(NULL, NULL), UC_OK);
    ck_assert_str_eq(arguments.config.listen, "127.0.0.1:7470");
    ck_assert_str_eq(arguments.config.fabric, "auto");
    ck_assert_uint_eq(arguments.config.fabric_port, 7471);
    ck_assert_uint_eq(arguments.config.lease_ms, 10000);
    ck_assert(!arguments.config.debug_calls);
    ck_assert_str_eq(arguments.config.name_space.name, "default");
    ck_assert_uint_eq(arguments.config.name_space.block_bytes, 1 << 20);
    ck_assert_uint_eq(arguments.config.name_space.capacity_bytes, 256 << 20);
}
END_TEST

START_TEST(short_and_long_names_mean_the_same_key)
{
    ck_assert_int_eq(parse("--block-bytes=64KiB", "--namespaces.0.capacity_blocks=3"), UC_OK);
    ck_assert_uint_eq(arguments.config.name_space.block_bytes, 64 << 10);
    ck_assert_uint_eq(arguments.config.name_space.capacity_blocks, 3);
}
END_TEST

START_TEST(value_may_stand_in_the_next_argument)
{
    ck_assert_int_eq(parse("--lease", "3s"), UC_OK);
    ck_assert_uint_eq(arguments.config.lease_ms, 3000);
}
END_TEST

START_TEST(namespace_option_names_the_namespace)
{
    ck_assert_int_eq(parse("--namespace=llama", "--debug-calls"), UC_OK);
    ck_assert_str_eq(arguments.config.name_space.name, "llama");
    ck_assert(arguments.config.debug_calls);
}
END_TEST

/* What is wrong, and what the text has to name. */
static const struct {
    const char *argument;
    const char *named;
} bad_arguments[] = {
        {"--blok-bytes=3", "block_bytes"},                    /* nearest known key */
        {"--bogus", "bogus"},                                 /* nothing near */
        {"lease=3s", "lease=3s"},                             /* not an option */
        {"--lease", "lease"},                                 /* no value */
        {"--lease=1ms", "lease"},                             /* below the minimum */
        {"--fabric=carrier-pigeon", "tcp"},                   /* choices are listed */
        {"--fabric-port=65536", "fabric_port"},               /* no such port */
        {"--listen=127.0.0.1:99999", "listen"},               /* likewise */
        {"--capacity=1KiB", "capacity"},                      /* less than one block (P50) */
        {"--capacity-blocks=3000000000", "3000000000"},       /* more than slots can be counted */
        {"--block-bytes=0", "block_bytes"},                   /* no block at all */
        {"--region-bytes=64KiB", "region_bytes"},             /* a slot does not fit a region */
        {"--align=96", "power of two"},                       /* alignment */
        {"--policy=random", "lru"},                           /* known policies are listed */
        {"--namespace=", "name"},                             /* empty name */
        {"--namespaces.1.name=b", "namespaces"},              /* only one for now */
        {"--namespaces.0.blockbytes=1", "block_bytes"},       /* nested unknown key */
        {"--config=/nonexistent/server.yaml", "server.yaml"}, /* no such file */
};

START_TEST(bad_argument_is_refused_and_named)
{
    ck_assert_int_ne(parse(bad_arguments[_i].argument, NULL), UC_OK);
    ck_assert_msg(strstr(uc_last_error(), bad_arguments[_i].named) != NULL,
            "'%s' does not name '%s'", uc_last_error(), bad_arguments[_i].named);
}
END_TEST

static void
write_yaml(char *path, const char *text)
{
    int fd = mkstemp(path);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    (void)close(fd);
}

static enum uc_status
parse_yaml(const char *text, const char *more)
{
    char path[] = "/tmp/test_config_XXXXXX";
    char option[64];
    enum uc_status status;

    write_yaml(path, text);
    (void)snprintf(option, sizeof(option), "--config=%s", path);
    status = parse(option, more);
    (void)unlink(path);
    return status;
}

START_TEST(command_line_wins_over_the_file)
{
    ck_assert_int_eq(parse_yaml("lease: 20s\nnamespaces:\n  - name: a\n    block_bytes: 4KiB\n",
                             "--block-bytes=8KiB"),
            UC_OK);
    ck_assert_uint_eq(arguments.config.lease_ms, 20000);
    ck_assert_str_eq(arguments.config.name_space.name, "a");
    ck_assert_uint_eq(arguments.config.name_space.block_bytes, 8 << 10);
}
END_TEST

START_TEST(unknown_key_of_a_file_is_named_with_its_line)
{
    ck_assert_int_ne(parse_yaml("lease: 20s\nlisten_on: 127.0.0.1:0\n", NULL), UC_OK);
    ck_assert_ptr_nonnull(strstr(uc_last_error(), ":2"));
    ck_assert_ptr_nonnull(strstr(uc_last_error(), "listen"));
}
END_TEST

START_TEST(second_namespace_is_refused)
{
    ck_assert_int_ne(parse_yaml("namespaces:\n  - name: a\n  - name: b\n", NULL), UC_OK);
    ck_assert_ptr_nonnull(strstr(uc_last_error(), "namespaces"));
}
END_TEST

static char *
printed(void (*print)(FILE *file))
{
    char *text = NULL;
    size_t length = 0;
    FILE *file = open_memstream(&text, &length);

    ck_assert_ptr_nonnull(file);
    print(file);
    (void)fclose(file);
    return text;
}

static void
print_arguments(FILE *file)
{
    uc_server_config_print(&arguments.config, file);
}

START_TEST(printed_configuration_reads_back_and_hides_the_credential)
{
    char *first;
    char *second;

    ck_assert_int_eq(parse("--capacity=3MiB", "--credential=hunter2"), UC_OK);
    first = printed(print_arguments);
    ck_assert_ptr_null(strstr(first, "hunter2"));
    uc_server_config_fini(&arguments.config);
    ck_assert_int_eq(parse_yaml(first, NULL), UC_OK);
    ck_assert_uint_eq(arguments.config.name_space.capacity_bytes, 3 << 20);
    second = printed(print_arguments);
    ck_assert_str_eq(first, second);
    free(first);
    free(second);
}
END_TEST

/* P44: the shipped file and the table say the same. */
START_TEST(shipped_file_holds_the_defaults)
{
    char *defaults;
    char *shipped;

    ck_assert_int_eq(parse(NULL, NULL), UC_OK);
    defaults = printed(print_arguments);
    uc_server_config_fini(&arguments.config);
    ck_assert_int_eq(parse("--config=" SHIPPED_CONFIG, NULL), UC_OK);
    shipped = printed(print_arguments);
    ck_assert_str_eq(defaults, shipped);
    free(defaults);
    free(shipped);
}
END_TEST

START_TEST(help_lists_every_key)
{
    const char *keys[UC_SERVER_KEYS_MAX];
    char *text = printed(uc_server_config_help);

    for (int of_namespace = 0; of_namespace <= 1; of_namespace++) {
        size_t count = uc_server_config_keys(of_namespace, keys);

        for (size_t idx = 0; idx < count; idx++) {
            ck_assert_msg(strstr(text, keys[idx]) != NULL, "%s is missing", keys[idx]);
        }
    }
    free(text);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("server/config");
    TCase *tcase = tcase_create("arguments");
    SRunner *runner;
    int failed_count;

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, defaults_run_on_a_laptop);
    tcase_add_test(tcase, short_and_long_names_mean_the_same_key);
    tcase_add_test(tcase, value_may_stand_in_the_next_argument);
    tcase_add_test(tcase, namespace_option_names_the_namespace);
    tcase_add_loop_test(tcase, bad_argument_is_refused_and_named, 0,
            (int)(sizeof(bad_arguments) / sizeof(bad_arguments[0])));
    tcase_add_test(tcase, command_line_wins_over_the_file);
    tcase_add_test(tcase, unknown_key_of_a_file_is_named_with_its_line);
    tcase_add_test(tcase, second_namespace_is_refused);
    tcase_add_test(tcase, printed_configuration_reads_back_and_hides_the_credential);
    tcase_add_test(tcase, shipped_file_holds_the_defaults);
    tcase_add_test(tcase, help_lists_every_key);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed_count = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed_count == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
