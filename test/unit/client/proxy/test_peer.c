/* SPDX-License-Identifier: Apache-2.0 */

/* The control half of StorePeer over fake stores, V-50, R-14.19. */

#include <stdio.h>
#include <string.h>

#include "test/unit/client/proxy/tree_fixture.h"

/* Branch 0 from 1000 ms on, branch 1 for the rest. */
static const char two[] = "{type: peer, branches: [{type: store, store: fake, config: {tokened: "
                          "true, prefetchable: true}}, {type: store, store: fake}], routing: "
                          "{strategy: ttl, config: {thresholds: [1000]}}}";

/* A strategy of the host that counts, and chooses what the test says. */
static struct {
    size_t select_count;
    size_t choice;
    size_t branch_count;
    size_t destroy_count;
    uint64_t ttl_ms;
    enum uc_status create_answer;
} host;

static enum uc_status
host_create(const struct uc_dict *config, size_t branch_count, struct uc_routing **routing_out)
{
    int64_t parameter = 0;

    host.branch_count = branch_count;
    if (host.create_answer != UC_OK) {
        return uc_error(host.create_answer, "host strategy: told to fail");
    }
    if (uc_dict_get_int(config, "parameter", &parameter) == UC_OK && parameter != 42) {
        return uc_error(UC_ERR_INVALID_PARAM, "key 'parameter' is not 42");
    }
    *routing_out = (struct uc_routing *)(void *)&host;
    return UC_OK;
}

static size_t
host_select(const struct uc_routing *routing, const struct uc_request_context *context)
{
    ck_assert_ptr_eq(routing, (const void *)&host);
    host.select_count++;
    host.ttl_ms = 0;
    (void)uc_request_ttl(context, &host.ttl_ms);
    return host.choice;
}

static void
host_destroy(struct uc_routing *routing)
{
    ck_assert_ptr_eq(routing, (void *)&host);
    host.destroy_count++;
}

static const struct uc_routing_ops host_ops = {.struct_size = sizeof(host_ops),
        .name = "host",
        .create = host_create,
        .select = host_select,
        .destroy = host_destroy};
static const struct uc_routing_ops *const host_tables[] = {&host_ops, &host_ops};
static const char by_host[] =
        "{type: peer, branches: [{type: store, store: fake}, {type: store, store: fake}], routing: "
        "{strategy: host, config: {parameter: 42}}}";

static struct uc_assembler_options
host_options(void)
{
    struct uc_assembler_options options = {
            .struct_size = sizeof(options),
            .routing_tables = host_tables,
            .routing_table_count = 1,
    };

    return options;
}

static void
setup(void)
{
    tree_reset();
    memset(&host, 0, sizeof(host));
}

/* G8: chosen once, with the facts; everything of the request goes there. */
START_TEST(strategy_is_asked_once_per_request)
{
    struct uc_assembler_options options = host_options();
    struct uc_request_context context = uc_request_context_init("r");
    uint8_t hits[1];
    bool signal = false;

    tree_start_with(by_host, &options);
    ck_assert_uint_eq(host.branch_count, 2);
    host.choice = 1;
    tree_register("r", 77);
    ck_assert_uint_eq(host.ttl_ms, 77);
    ck_assert_int_eq(uc_scheduler_on_new_request(tree.scheduler, &context), UC_ERR_DUPLICATE_KEY);
    host.choice = 0;
    ck_assert_int_eq(uc_scheduler_lookup(tree.scheduler, "r", tree_keys, 1, hits, &signal), UC_OK);
    ck_assert_int_eq(uc_scheduler_touch(tree.scheduler, "r", tree_keys, 1), UC_OK);
    uc_token_destroy(tree_get_token("r", 1));
    ck_assert_int_eq(uc_scheduler_complete_get(tree.scheduler, "r"), UC_OK);
    ck_assert_uint_eq(host.select_count, 1);
    ck_assert_str_eq(tree.stores[0]->control.log, "setup ");
    ck_assert_str_eq(tree.stores[1]->control.log, "setup lookup touch ");
    tree_stop();
    ck_assert_uint_eq(host.destroy_count, 1);
}
END_TEST

/* */
START_TEST(choice_out_of_range_fails_the_registration)
{
    struct uc_assembler_options options = host_options();
    struct uc_request_context context = uc_request_context_init("r");

    tree_start_with(by_host, &options);
    host.choice = _i == 0 ? 2 : SIZE_MAX;
    ck_assert_int_eq(uc_scheduler_on_new_request(tree.scheduler, &context), UC_ERR_GENERAL);
    ck_assert_msg(strstr(uc_last_error(), "'host'") != NULL, "%s", uc_last_error());
    ck_assert_msg(
            strstr(uc_last_error(), _i == 0 ? "branch 2" : "branch 18446744073709551615") != NULL,
            "%s", uc_last_error());
    ck_assert_int_eq(uc_scheduler_on_request_finished(tree.scheduler, "r"), UC_ERR_NOT_FOUND);
    host.choice = 1;
    ck_assert_int_eq(uc_scheduler_on_new_request(tree.scheduler, &context), UC_OK);
    tree_stop();
}
END_TEST

/* the strategy's status and text; tables of the options. */
START_TEST(strategy_that_refuses_fails_the_assembly)
{
    struct uc_assembler_options options = host_options();
    struct uc_dict *config = tree_config(by_host);
    struct uc_assembler *assembler = NULL;

    host.create_answer = UC_ERR_NO_SPACE;
    ck_assert_int_eq(uc_assembler_create(config, &options, &assembler), UC_ERR_NO_SPACE);
    ck_assert_str_eq(uc_last_error(), "routing.config: host strategy: told to fail");
    ck_assert_str_eq(tree.trace, ""); /* before any store */
    ck_assert_uint_eq(host.destroy_count, 0);
    ck_assert_int_eq(uc_assembler_create(config, NULL, &assembler), UC_ERR_INVALID_PARAM);
    ck_assert_ptr_nonnull(strstr(uc_last_error(), "'host' is unknown"));
    options.routing_table_count = 2; /* the same name twice */
    ck_assert_int_eq(uc_assembler_create(config, &options, &assembler), UC_ERR_DUPLICATE_KEY);
    options.routing_tables = NULL;
    ck_assert_int_eq(uc_assembler_create(config, &options, &assembler), UC_ERR_INVALID_PARAM);
    uc_dict_destroy(config);
}
END_TEST

/* positions in the tree; the example's shape (section 14) with fakes in place of cache and posix. */
START_TEST(example_of_the_contract_is_assembled)
{
    static const struct {
        int64_t ttl_ms;
        size_t store; /* whose lookup is asked */
    } routes[] = {{60001, 0}, {60000, 1}, {10001, 1}, {10000, 3}, {0, 3}, {-1, 3}};
    static const char *const paths[] = {
            "branches[0]", "branches[1].stores[0]", "branches[1].stores[1]", "branches[2]"};
    static const int64_t below[] = {0, 1, 0, 0};

    tree_start("{type: peer, branches: [{type: store, store: fake}, {type: pipe, stores: [{store: "
               "fake}, {store: fake}]}, {type: store, store: fake}], routing: {strategy: ttl, "
               "config: {thresholds: [60000, 10000]}}}");
    for (size_t idx = 0; idx < 4; idx++) {
        ck_assert_str_eq(tree.stores[idx]->node_path, paths[idx]);
        ck_assert_int_eq(tree.stores[idx]->tiers_below, below[idx]);
    }
    for (size_t idx = 0; idx < sizeof(routes) / sizeof(routes[0]); idx++) {
        size_t before = tree.stores[routes[idx].store]->calls[UC_FAKE_LOOKUP];
        uint8_t hits[1];
        bool signal = false;

        tree_register("r", routes[idx].ttl_ms);
        ck_assert_int_eq(
                uc_scheduler_lookup(tree.scheduler, "r", tree_keys, 1, hits, &signal), UC_OK);
        ck_assert_uint_eq(tree.stores[routes[idx].store]->calls[UC_FAKE_LOOKUP], before + 1);
        ck_assert_int_eq(uc_scheduler_on_request_finished(tree.scheduler, "r"), UC_OK);
    }
    tree_stop();
    ck_assert_str_eq(tree.trace,
            "+branches[0] +branches[1].stores[1] +branches[1].stores[0] +branches[2] "
            "-branches[0] -branches[1].stores[0] -branches[1].stores[1] -branches[2] ");
}
END_TEST

/* V-1: all three kinds of token, also when the branch's payload is empty; keys unchanged. */
START_TEST(every_token_is_framed)
{
    static const uint8_t plain_frame[] = {'U', 'C', 'P', '1', 1, 0, 0, 0, 0, 0, 0, 0};
    static const uint8_t frame[] = {'U', 'C', 'P', '1', 0, 0, 0, 0, 0, 0, 0, 0, 'F'};
    const uint8_t *want = _i == 0 ? frame : plain_frame;
    size_t want_bytes = _i == 0 ? 18 : sizeof(plain_frame);
    struct uc_token *tokens[3] = {NULL, NULL, NULL};

    tree_start(two);
    tree_register("r", _i == 0 ? 5000 : -1);
    ck_assert_int_eq(uc_scheduler_prepare_prefetch(tree.scheduler, "r", &tokens[0]), UC_OK);
    tokens[1] = tree_get_token("r", 3);
    tokens[2] = tree_put_token("r", 3);
    for (size_t idx = 0; idx < 3; idx++) {
        ck_assert_uint_eq(tokens[idx]->payload_bytes, want_bytes);
        ck_assert_mem_eq(tokens[idx]->payload, want, _i == 0 ? sizeof(frame) : want_bytes);
        if (idx != 0) {
            ck_assert_uint_eq(tokens[idx]->key_count, 3);
            ck_assert_mem_eq(tokens[idx]->keys, tree_keys, 3 * sizeof(tree_keys[0]));
        }
        uc_token_destroy(tokens[idx]);
    }
    tree_stop();
}
END_TEST

/* the branch concludes with its own record, which has no frame. */
START_TEST(conclusions_use_the_record_of_the_branch)
{
    static const uint8_t mask[2] = {1, 0};

    tree_start(two);
    tree_register("r", 5000);
    uc_token_destroy(tree_get_token("r", 2));
    ck_assert_int_eq(uc_scheduler_complete_get(tree.scheduler, "r"), UC_OK);
    ck_assert_uint_eq(tree.stores[0]->control.payload_bytes, 6);
    ck_assert_mem_eq(tree.stores[0]->control.payload, "FR", 2);
    uc_token_destroy(tree_put_token("r", 2));
    ck_assert_int_eq(
            uc_scheduler_complete_put_mask(tree.scheduler, "r", mask, 1), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_scheduler_complete_put_mask(tree.scheduler, "r", mask, 2), UC_OK);
    ck_assert_uint_eq(tree.stores[0]->control.payload_bytes, 6);
    ck_assert_mem_eq(tree.stores[0]->control.payload, "FW", 2);
    ck_assert(tree.stores[0]->control.has_mask);
    ck_assert_int_eq(uc_scheduler_complete_put(tree.scheduler, "r", true), UC_ERR_INVALID_PARAM);
    tree_stop();
}
END_TEST

/* safety net at the end of a request, and at the end of everything. */
START_TEST(open_windows_are_concluded_in_their_branch)
{
    struct uc_token *plan = NULL;

    tree_start(two);
    tree_register("r", 5000);
    uc_token_destroy(tree_get_token("r", 2));
    uc_token_destroy(tree_put_token("r", 2));
    ck_assert_int_eq(uc_scheduler_prepare_prefetch(tree.scheduler, "r", &plan), UC_OK);
    uc_token_destroy(plan);
    if (_i == 0) {
        ck_assert_int_eq(uc_scheduler_on_request_finished(tree.scheduler, "r"), UC_OK);
        ck_assert_uint_eq(tree.stores[0]->pin_count, 0);
        ck_assert_uint_eq(tree.stores[0]->reservation_count, 0);
        ck_assert_uint_eq(tree.stores[0]->plan_count, 0);
        tree_register("r", -1); /* reusable, and routed anew */
        plan = tree_get_token("r", 1);
        ck_assert_uint_eq(plan->payload[4], 1);
        uc_token_destroy(plan);
    }
    tree.trace[0] = '\0';
    tree_stop();
    ck_assert_str_eq(tree.trace, "-branches[0] -branches[1] ");
}
END_TEST

/* the first error is answered, the request is gone all the same. */
START_TEST(failed_conclusion_forgets_the_request)
{
    tree_start(two);
    tree_register("r", 5000);
    uc_token_destroy(tree_put_token("r", 1));
    tree.stores[0]->answers[UC_FAKE_COMMIT] = UC_ERR_OS_API;
    ck_assert_int_eq(uc_scheduler_on_request_finished(tree.scheduler, "r"), UC_ERR_OS_API);
    ck_assert_int_eq(uc_scheduler_on_request_finished(tree.scheduler, "r"), UC_ERR_NOT_FOUND);
    tree_stop();
}
END_TEST

/* V-48, R-4.38 */
START_TEST(unknown_requests_are_not_found)
{
    struct uc_token *token = NULL;
    int64_t index = 0;
    uint8_t hits[1];
    uint8_t mask[1] = {1};
    bool signal = false;

    tree_start(two);
#define NOT_FOUND(call) ck_assert_int_eq(call, UC_ERR_NOT_FOUND)
    NOT_FOUND(uc_scheduler_on_request_finished(tree.scheduler, "x"));
    NOT_FOUND(uc_scheduler_lookup(tree.scheduler, "x", tree_keys, 1, hits, &signal));
    NOT_FOUND(uc_scheduler_lookup_on_prefix(tree.scheduler, "x", tree_keys, 1, &index, &signal));
    NOT_FOUND(uc_scheduler_lookup_on_reverse(tree.scheduler, "x", tree_keys, 1, &index, &signal));
    NOT_FOUND(uc_scheduler_touch(tree.scheduler, "x", tree_keys, 1));
    NOT_FOUND(uc_scheduler_prepare_prefetch(tree.scheduler, "x", &token));
    NOT_FOUND(uc_scheduler_complete_prefetch(tree.scheduler, "x", true));
    NOT_FOUND(uc_scheduler_prepare_get(tree.scheduler, "x", tree_keys, 1, &token));
    NOT_FOUND(uc_scheduler_complete_get(tree.scheduler, "x"));
    NOT_FOUND(uc_scheduler_prepare_put(tree.scheduler, "x", tree_keys, 1, &token));
    NOT_FOUND(uc_scheduler_complete_put(tree.scheduler, "x", true));
    NOT_FOUND(uc_scheduler_complete_put_mask(tree.scheduler, "x", mask, 1));
#undef NOT_FOUND
    tree_stop();
}
END_TEST

/* V-50, A-38: branches are namespaces. Null stores keep real blocks. */
START_TEST(block_of_one_branch_is_absent_in_another)
{
    static const char null_branches[] =
            "{type: peer, branches: [{type: store, store: 'null'}, {type: store, store: 'null'}], "
            "routing: {strategy: ttl, config: {thresholds: [1000]}}}";
    struct uc_io_result result;
    struct uc_token *token;
    size_t count = 0;
    uint8_t hits[1] = {9};
    uint64_t job_id = 1;
    bool signal = false;

    tree_start(null_branches);
    tree_register("long", 5000);
    tree_register("short", 10);
    token = tree_put_token("long", 1);
    ck_assert_int_eq(
            uc_worker_submit_put(tree.worker, job_id, tree_payloads, 1, token, NULL), UC_OK);
    ck_assert_int_eq(uc_worker_wait(tree.worker, &job_id, 1, -1, &result, 1, &count), UC_OK);
    ck_assert(result.success);
    uc_io_results_release(&result, 1);
    ck_assert_int_eq(uc_scheduler_complete_put(tree.scheduler, "long", true), UC_OK);
    uc_token_destroy(token);
    ck_assert_int_eq(
            uc_scheduler_lookup(tree.scheduler, "long", tree_keys, 1, hits, &signal), UC_OK);
    ck_assert_uint_eq(hits[0], 1);
    ck_assert_int_eq(
            uc_scheduler_lookup(tree.scheduler, "short", tree_keys, 1, hits, &signal), UC_OK);
    ck_assert_uint_eq(hits[0], 0);
    tree_stop();
}
END_TEST

/* signals come through. */
START_TEST(signals_of_a_branch_come_through)
{
    uint8_t hits[1];
    bool signal = false;

    tree_start(two);
    tree_register("r", 5000);
    tree.stores[0]->signal = true;
    ck_assert_int_eq(uc_scheduler_lookup(tree.scheduler, "r", tree_keys, 1, hits, &signal), UC_OK);
    ck_assert(signal);
    ck_assert_str_eq(tree.stores[0]->control.request_id, "r");
    tree_stop();
}
END_TEST

/* */
START_TEST(health_names_the_branches)
{
    tree_start(two);
    ck_assert_int_eq(uc_scheduler_health(tree.scheduler), UC_OK);
    ck_assert_int_eq(uc_worker_health(tree.worker), UC_OK);
    tree.stores[1]->answers[UC_FAKE_HEALTH] = UC_ERR_UNHEALTHY;
    ck_assert_int_eq(uc_scheduler_health(tree.scheduler), UC_ERR_UNHEALTHY);
    ck_assert_msg(strstr(uc_last_error(), "branch 1: ") != NULL, "%s", uc_last_error());
    ck_assert_ptr_null(strstr(uc_last_error(), "branch 0"));
    tree.stores[0]->answers[UC_FAKE_HEALTH] = UC_ERR_UNHEALTHY;
    ck_assert_int_eq(uc_worker_health(tree.worker), UC_ERR_UNHEALTHY);
    ck_assert_ptr_nonnull(strstr(uc_last_error(), "branch 0: "));
    ck_assert_ptr_nonnull(strstr(uc_last_error(), "branch 1: "));
    tree_stop();
}
END_TEST

/* */
START_TEST(description_lists_the_branches)
{
    struct uc_dict *description = NULL;
    const struct uc_dict *branch = NULL;
    const char *text = NULL;
    size_t count = 0;
    bool flag = true;

    tree_start(two);
    ck_assert_int_eq(uc_dict_create(&description), UC_OK);
    ck_assert_int_eq(uc_worker_describe(tree.worker, description), UC_OK);
    ck_assert_int_eq(uc_dict_get_string(description, "name", &text), UC_OK);
    ck_assert_str_eq(text, "peer");
    ck_assert_int_eq(uc_dict_get_string(description, "routing", &text), UC_OK);
    ck_assert_str_eq(text, "ttl");
    ck_assert_int_eq(uc_dict_get_string(description, "node_path", &text), UC_OK);
    ck_assert_str_eq(text, "root");
    ck_assert_int_eq(uc_dict_get_bool(description, "token_addressed", &flag), UC_OK);
    ck_assert(!flag); /* not all branches are */
    ck_assert_int_eq(uc_dict_get_list_count(description, "branches", &count), UC_OK);
    ck_assert_uint_eq(count, 2);
    ck_assert_int_eq(uc_dict_get_dict_at(description, "branches", 0, &branch), UC_OK);
    ck_assert_int_eq(uc_dict_get_bool(branch, "token_addressed", &flag), UC_OK);
    ck_assert(flag);
    uc_dict_destroy(description);
    tree_stop();
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("peer");
    TCase *tcase = tcase_create("all");

    tcase_add_checked_fixture(tcase, setup, NULL);
    tcase_add_test(tcase, strategy_is_asked_once_per_request);
    tcase_add_loop_test(tcase, choice_out_of_range_fails_the_registration, 0, 2);
    tcase_add_test(tcase, strategy_that_refuses_fails_the_assembly);
    tcase_add_test(tcase, example_of_the_contract_is_assembled);
    tcase_add_loop_test(tcase, every_token_is_framed, 0, 2);
    tcase_add_test(tcase, conclusions_use_the_record_of_the_branch);
    tcase_add_loop_test(tcase, open_windows_are_concluded_in_their_branch, 0, 2);
    tcase_add_test(tcase, failed_conclusion_forgets_the_request);
    tcase_add_test(tcase, unknown_requests_are_not_found);
    tcase_add_test(tcase, block_of_one_branch_is_absent_in_another);
    tcase_add_test(tcase, signals_of_a_branch_come_through);
    tcase_add_test(tcase, health_names_the_branches);
    tcase_add_test(tcase, description_lists_the_branches);
    suite_add_tcase(suite, tcase);
    return tree_run(suite);
}
