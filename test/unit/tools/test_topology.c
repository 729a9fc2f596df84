/* SPDX-License-Identifier: Apache-2.0 */

#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "core/config/fields.h"
#include "tools/bench/replay_tiers.h"
#include "tools/bench/topology.h"
#include "tools/bench/trace_lifetimes.h"

static struct uc_dict *
read_text(const char *text)
{
    struct uc_dict *dict = NULL;

    ck_assert_int_eq(uc_yaml_read_text(text, strlen(text), "t.yaml", &dict), UC_OK);
    return dict;
}

/* @return the status; the copy, if there is one, is the caller's */
static enum uc_status
expand(const char *text, const struct uc_dict *servers, struct uc_dict **expanded_out)
{
    struct uc_topology_values values = {
            .servers = servers, .fabric = "tcp", .block_bytes = 4096, .node = 7};
    struct uc_dict *dict = read_text(text);
    enum uc_status status = uc_topology_expand(dict, "t.yaml", &values, expanded_out);

    uc_dict_destroy(dict);
    return status;
}

START_TEST(placeholders_are_replaced_at_every_depth)
{
    struct uc_dict *servers = read_text("servers: [\"a:1\", \"b:2=3\"]\n");
    struct uc_dict *expanded = NULL;
    const struct uc_dict *inner = NULL;
    const char *text = NULL;
    size_t count = 0;
    int64_t bytes = 0;

    ck_assert_int_eq(
            expand("a: x-$NODE-$FABRIC$\n"
                   "b:\n"
                   "  - c: {servers: $SERVERS, n: $BLOCK_BYTES, d: 1.5, e: true, f: [1, 2]}\n",
                    servers, &expanded),
            UC_OK);
    ck_assert_int_eq(uc_dict_get_string(expanded, "a", &text), UC_OK);
    ck_assert_str_eq(text, "x-7-tcp$");
    ck_assert_int_eq(uc_dict_get_dict_at(expanded, "b", 0, &inner), UC_OK);
    ck_assert_int_eq(uc_dict_get_dict(inner, "c", &inner), UC_OK);
    ck_assert_int_eq(uc_dict_get_list_count(inner, "servers", &count), UC_OK);
    ck_assert_uint_eq(count, 2);
    ck_assert_int_eq(uc_dict_get_int(inner, "n", &bytes), UC_OK);
    ck_assert_int_eq(bytes, 4096);
    ck_assert_uint_eq(uc_dict_count(inner), 5);
    uc_dict_destroy(expanded);
    uc_dict_destroy(servers);
}
END_TEST

static const char *const refused[] = {
        "a: 1\nb: $NOSUCH\n",
        "a: 1\nb: x$SERVERS\n",
        "a: 1\nb: x$BLOCK_BYTES\n",
        "a: 1\nb: $SERVERS\n",
        "a: 1\nb: http://$SERVER/\n",
        "a: 1\nb: [$SERVER]\n",
};

START_TEST(what_cannot_be_replaced_is_named_by_line)
{
    struct uc_dict *expanded = NULL;

    ck_assert_int_eq(expand(refused[_i], NULL, &expanded), UC_ERR_INVALID_PARAM);
    ck_assert_ptr_null(expanded);
    ck_assert_msg(strstr(uc_last_error(), "t.yaml:2: b: ") != NULL, "%s", uc_last_error());
}
END_TEST

/* A pipe's head without a counter gets what came from nowhere else; what was lifted is no hit of the head. */
/* Errors of the assembler name a key by its path; the file was written in lines. */
START_TEST(path_of_an_error_leads_to_a_line)
{
    static const struct {
        const char *text;
        unsigned line;
    } cases[] = {
            {"typ: key 'typ' is unknown", 0},
            {"branches: key 'branches' is empty", 2},
            {"branches[0].store: must be a text", 4},
            {"branches[1].confg: key 'confg' is unknown", 7},
            {"branches[1].config.block_bytes: wrong", 9},
            {"branches[1].config: posix store: no root", 8},
            {"branches[1].routing: key 'routing' is missing", 5},
            {"branches[2].store: there are two", 2},
            {"branches[18446744073709551616].store: there are two", 2},
            {"branches[1", 5},
            {"", 0},
    };
    struct uc_dict *topology = read_text("type: peer\n"
                                         "branches:\n"
                                         "  - type: store\n"
                                         "    store: remote\n"
                                         "  - type: store\n"
                                         "    store: posix\n"
                                         "    confg: 1\n"
                                         "    config:\n"
                                         "      block_bytes: 1\n");

    for (size_t idx = 0; idx < sizeof(cases) / sizeof(cases[0]); idx++) {
        ck_assert_msg(uc_topology_line(topology, cases[idx].text) == cases[idx].line,
                "\"%s\" gives line %u", cases[idx].text,
                uc_topology_line(topology, cases[idx].text));
    }
    ck_assert_int_eq(uc_error(UC_ERR_INVALID_PARAM, "%s", cases[3].text), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_topology_error(topology, "t.yaml", UC_ERR_NOT_FOUND), UC_ERR_NOT_FOUND);
    ck_assert_str_eq(uc_last_error(), "t.yaml:7: branches[1].confg: key 'confg' is unknown");
    uc_dict_destroy(topology);
}
END_TEST

START_TEST(hits_are_told_by_the_tier_that_had_the_block)
{
    struct uc_dict *description = read_text(
            "branches:\n"
            "  - {name: remote, node_path: \"branches[0]\", blocks_read: 30, blocks_written: 5}\n"
            "  - name: cache\n"
            "    tiers:\n"
            "      - {name: cache, node_path: \"branches[1].stores[0]\"}\n"
            "      - {name: posix, node_path: \"branches[1].stores[1]\", blocks_loaded: 8}\n");
    struct uc_replay_tiers tiers;

    uc_replay_tiers_read(description, &tiers);
    uc_dict_destroy(description);
    ck_assert_uint_eq(tiers.count, 3);
    ck_assert(!tiers.tiers[1].is_counted);
    uc_replay_tiers_complete(&tiers, 100);
    ck_assert(tiers.tiers[1].is_counted);
    ck_assert_uint_eq(uc_replay_tier_hits(&tiers, 0), 30);
    ck_assert_uint_eq(uc_replay_tier_hits(&tiers, 1), 62);
    ck_assert_uint_eq(uc_replay_tier_hits(&tiers, 2), 8);
    ck_assert_uint_eq(tiers.tiers[0].blocks_dumped, 5);
}
END_TEST

START_TEST(lifetimes_depend_on_the_seed_alone)
{
    uint64_t without = 0;
    uint64_t long_count = 0;

    for (uint64_t sequence = 0; sequence < 8000; sequence++) {
        uint64_t ttl_ms = uc_trace_ttl_ms(3, sequence);

        ck_assert_uint_eq(ttl_ms, uc_trace_ttl_ms(3, sequence));
        ck_assert(ttl_ms == 0 || (ttl_ms >= 60000 && ttl_ms < 60000u << 10));
        without += ttl_ms == 0;
        long_count += ttl_ms > 3600000;
    }
    ck_assert_uint_ge(without, 900);
    ck_assert_uint_le(without, 1100);
    ck_assert_uint_ge(long_count, 2000);
    ck_assert_uint_ne(uc_trace_ttl_ms(3, 1), uc_trace_ttl_ms(4, 1));
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("topology");
    TCase *tcase = tcase_create("all");
    SRunner *runner;
    int failed;

    tcase_add_test(tcase, placeholders_are_replaced_at_every_depth);
    tcase_add_loop_test(tcase, what_cannot_be_replaced_is_named_by_line, 0,
            sizeof(refused) / sizeof(refused[0]));
    tcase_add_test(tcase, path_of_an_error_leads_to_a_line);
    tcase_add_test(tcase, hits_are_told_by_the_tier_that_had_the_block);
    tcase_add_test(tcase, lifetimes_depend_on_the_seed_alone);
    suite_add_tcase(suite, tcase);

    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
