/* SPDX-License-Identifier: Apache-2.0 */

/* order by weighted age. The running median starts at 60 s, so the floor is at 90 s, stale is 480 s. */

#include "core/config/fields.h"
#include "test/unit/core/policy_fixture.h"

enum {
    SECOND_MS = 1000,
    CAPACITY = 8
};

static const struct uc_policy_hints unknown;
static const struct uc_policy_hints partial = {.partial = true};
static const struct uc_policy_hints once = {.seen = 1};
static const struct uc_policy_hints more = {.seen = 2};

static struct uc_dict *parameters;

static void
setup(void)
{
    ck_assert_int_eq(uc_dict_create(&parameters), UC_OK);
}

static void
teardown(void)
{
    drop_policy();
    drop_cache();
    uc_dict_destroy(parameters);
}

/* Admit one at that time; slots come in order. */
static void
admit_at(uint64_t time_s, struct uc_policy_hints hints)
{
    now_ms = time_s * SECOND_MS;
    commit_slot(acquire(), hints);
}

/* A pool that is full after the admissions of the case. */
static void
make_pool(size_t capacity, const char *assignment)
{
    if (assignment != NULL) {
        ck_assert_int_eq(uc_config_set_text(parameters, assignment), UC_OK);
    }
    make_policy("pwa", capacity, parameters);
}

static void
expect_victims_at(uint64_t time_s, const uint32_t *slots_want, size_t count)
{
    now_ms = time_s * SECOND_MS;
    for (size_t idx = 0; idx < count; idx++) {
        ck_assert_uint_eq(acquire(), slots_want[idx]);
    }
}

/* Below the floor age does not matter between classes; within one the oldest goes first. */
START_TEST(young_blocks_go_by_class)
{
    static const uint32_t want[] = {3, 2, 5, 1, 4, 0};

    make_pool(6, NULL);
    admit_at(1, more);
    admit_at(2, once);
    admit_at(3, unknown);
    admit_at(4, partial);
    admit_at(5, once);
    admit_at(6, unknown);
    expect_victims_at(60, want, 6);
}
END_TEST

/* 0.7 × 300 s against 1.5 × 100 s, and against 1.5 × 150 s */
START_TEST(weights_decide_above_the_floor)
{
    static const uint32_t seen_first[] = {0};
    static const uint32_t new_first[] = {1};

    make_pool(2, NULL);
    admit_at(0, more);
    admit_at(_i == 0 ? 200 : 150, unknown);
    expect_victims_at(300, _i == 0 ? seen_first : new_first, 1);
}
END_TEST

START_TEST(stale_blocks_go_before_all_others_oldest_first)
{
    static const uint32_t want[] = {0, 1, 2};

    make_pool(4, NULL);
    admit_at(0, more);
    admit_at(1, once);
    admit_at(10, partial);
    admit_at(400, partial); /* 4 × 90 s: the highest score, but not stale */
    expect_victims_at(491, want, 3);
}
END_TEST

/* A touch moves up: new to once, once to more. */
START_TEST(touched_block_moves_up)
{
    static const uint32_t want[] = {2, 1, 0};

    make_pool(3, NULL);
    admit_at(0, unknown);
    admit_at(0, partial);
    admit_at(0, unknown);
    touch_slot(0, unknown);
    touch_slot(0, unknown);
    touch_slot(1, unknown);
    expect_victims_at(1, want, 3);
}
END_TEST

START_TEST(pinned_head_is_passed_over)
{
    make_pool(2, NULL);
    admit_at(0, partial);
    admit_at(0, more);
    ck_assert_int_eq(uc_policy_pin_slot(policy, 0), UC_OK);
    ck_assert_uint_eq(acquire(), 1);
    ck_assert_uint_eq(acquire(), UC_SLOT_NONE);
}
END_TEST

/* Without memory of what left, a floor would only keep the returned ones too long. */
START_TEST(without_ghost_there_is_no_floor)
{
    static const uint32_t want[] = {1, 0};
    static const uint32_t with_floor[] = {0, 1};

    make_pool(2, _i == 0 ? "ghost=0" : NULL);
    if (_i == 0) {
        ck_assert_uint_eq(uc_policy_ghost_ids(policy), 0);
    } else {
        ck_assert_uint_eq(uc_policy_ghost_ids(policy), 8);
    }
    now_ms = 0;
    ck_assert_uint_eq(acquire(), 0);
    ck_assert_uint_eq(acquire(), 1);
    now_ms = 50 * SECOND_MS;
    commit_slot(0, unknown); /* 10 s × 1.5 at the end */
    now_ms = 0;
    commit_slot(1, once); /* 60 s × 1 */
    expect_victims_at(60, _i == 0 ? want : with_floor, 2);
}
END_TEST

START_TEST(floor_that_was_asked_for_stays_without_ghost)
{
    ck_assert_int_eq(uc_config_set_text(parameters, "floor=1.5"), UC_OK);
    make_pool(2, "ghost=0");
    now_ms = 0;
    ck_assert_uint_eq(acquire(), 0);
    ck_assert_uint_eq(acquire(), 1);
    commit_slot(1, once);
    now_ms = 50 * SECOND_MS;
    commit_slot(0, unknown);
    ck_assert_uint_eq(acquire(), 0);
}
END_TEST

/* Hits at 1 s pull the median down, until 60 s are stale; those on the first block of a chain do not. */
START_TEST(median_follows_the_hits_behind_the_first_block)
{
    struct uc_policy_hints hit = {.position = _i == 0 ? 2 : 1};

    make_pool(3, NULL);
    admit_at(0, more);
    admit_at(0, more);
    for (uint64_t time_s = 1; time_s <= 5000; time_s++) {
        now_ms = time_s * SECOND_MS;
        touch_slot(1, hit);
    }
    touch_slot(0, (struct uc_policy_hints){.position = 1});
    admit_at(5061, partial);
    now_ms = 5061 * SECOND_MS;
    ck_assert_uint_eq(acquire(), _i == 0 ? 1 : 2);
}
END_TEST

/* What a block was before its eviction is known when it comes back. */
START_TEST(cache_remembers_blocks_that_left)
{
    struct uc_cache_config config = {
            .capacity = 3, .policy = "pwa", .clock = {.now_ms = fixture_now_ms}};

    now_ms = 0;
    ck_assert_int_eq(uc_cache_buffer_create(&config, &buffer), UC_OK);
    (void)admit("A", NO_TTL);
    now_ms += 1;
    (void)admit("B", NO_TTL);
    now_ms += 1;
    (void)admit("C", NO_TTL);
    now_ms += 1;
    ck_assert_str_eq(admit("D", NO_TTL), "A");
    now_ms += 1;
    ck_assert_str_eq(admit("A", NO_TTL), "B"); /* seen once before */
    now_ms += 1;
    ck_assert_str_eq(admit("E", NO_TTL), "C");
    ck_assert_str_eq(admit("F", NO_TTL), "D");
    ck_assert_str_eq(admit("G", NO_TTL), "E"); /* A is older than E */
    ck_assert_str_eq(lookup("A"), "1");
}
END_TEST

START_TEST(expired_block_is_remembered_too)
{
    struct uc_cache_config config = {
            .capacity = 2, .policy = "pwa", .clock = {.now_ms = fixture_now_ms}};

    now_ms = 0;
    ck_assert_int_eq(uc_cache_buffer_create(&config, &buffer), UC_OK);
    (void)admit("A", 10);
    ck_assert_str_eq(lookup_at(10, "A"), "0");
    (void)admit("A", NO_TTL);
    now_ms += 1;
    (void)admit("B", NO_TTL);
    ck_assert_str_eq(admit("C", NO_TTL), "B");
}
END_TEST

/* pins, which are hits, move a block up through the cache as well. */
START_TEST(pinned_block_counts_as_seen)
{
    make_cache_with(2, uc_policy_find("pwa"));
    (void)admit("A", NO_TTL);
    now_ms += 1;
    (void)admit("B", NO_TTL);
    ck_assert_int_eq(pin("A"), UC_OK);
    unpin("A");
    ck_assert_str_eq(admit("C", NO_TTL), "B");
    ck_assert_str_eq(admit("D", NO_TTL), "C");
}
END_TEST

/*
 * Without positions the block that leads a list counts as the first of its chain: hits at 1 s on A alone do
 * not make D stale, those on B behind it do.
 */
START_TEST(block_that_leads_a_list_moves_no_median)
{
    const char *list = _i == 0 ? "A" : "AB";
    const char *want = _i == 0 ? "N" : "D";

    make_cache_with(4, uc_policy_find("pwa"));
    (void)admit("ABD", NO_TTL);
    for (uint64_t time_s = 1; time_s <= 5000; time_s++) {
        now_ms = time_s * SECOND_MS;
        ck_assert_int_eq(pin(list), UC_OK);
        unpin(list);
    }
    touch("D", NO_TTL);
    touch("D", NO_TTL); /* seen twice: goes last, unless it is stale */
    now_ms += 61 * SECOND_MS;
    touch("A", NO_TTL);
    touch("B", NO_TTL);
    (void)admit("N", NO_TTL);
    ck_assert_str_eq(admit("X", NO_TTL), want);
}
END_TEST

/* Leaf before root: of a chain admitted in one batch the deepest goes first. */
START_TEST(chain_is_shortened_from_its_end)
{
    make_cache_with(4, uc_policy_find("pwa"));
    (void)admit("ABCD", NO_TTL);
    ck_assert_str_eq(admit("X", NO_TTL), "D");
    ck_assert_str_eq(admit("Y", NO_TTL), "C");
}
END_TEST

START_TEST(ghost_counts_in_the_memory_of_the_cache)
{
    struct uc_cache_config config = {.capacity = 10000,
            .policy = "pwa",
            .parameters = parameters,
            .clock = {.now_ms = fixture_now_ms}};
    size_t without;

    ck_assert_int_eq(uc_dict_set_int(parameters, "ghost", 0), UC_OK);
    ck_assert_int_eq(uc_cache_buffer_create(&config, &buffer), UC_OK);
    without = stats().memory_bytes;
    drop_cache();
    ck_assert_int_eq(uc_dict_set_int(parameters, "ghost", 4), UC_OK);
    ck_assert_int_eq(uc_cache_buffer_create(&config, &buffer), UC_OK);
    ck_assert_uint_ge(stats().memory_bytes - without, 40000 * 10);
    ck_assert_uint_le(stats().memory_bytes - without, 40000 * 11 + 16384);
}
END_TEST

static const struct {
    const char *assignment;
    bool good;
} parameter_cases[] = {
        {"ghost=0", true},
        {"ghost=1.5", true},
        {"ghost=-1", false},
        {"ghost=65", false},
        {"ghost=four", false},
        {"ghost=.nan", false},
        {"floor=2", true},
        {"stale=0.5", false},
        {"stale=100", true},
        {"median_start_ms=1000", true},
        {"median_start_ms=0", false},
        {"median_step=1.001", true},
        {"median_step=0.9", false},
        {"weight_partial=1", true},
        {"weight_new=1", true},
        {"weight_once=1", true},
        {"weight_more=1", true},
        {"weight_more=-1", false},
        {"weight=1", false},
};

/* */
START_TEST(parameters_are_checked)
{
    enum uc_status status;

    ck_assert_int_eq(uc_config_set_text(parameters, parameter_cases[_i].assignment), UC_OK);
    status = uc_policy_create(uc_policy_find("pwa"), CAPACITY, parameters, &fake_clock, &policy);
    ck_assert_int_eq(status, parameter_cases[_i].good ? UC_OK : UC_ERR_INVALID_PARAM);
    if (!parameter_cases[_i].good) {
        ck_assert_ptr_nonnull(strstr(uc_last_error(), "policy pwa: parameter '"));
    }
}
END_TEST

START_TEST(policy_without_a_clock_is_refused)
{
    ck_assert_int_eq(uc_policy_create(uc_policy_find("pwa"), CAPACITY, NULL, NULL, &policy),
            UC_ERR_INVALID_PARAM);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("policy_pwa");
    TCase *tcase = tcase_create("all");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, young_blocks_go_by_class);
    tcase_add_loop_test(tcase, weights_decide_above_the_floor, 0, 2);
    tcase_add_test(tcase, stale_blocks_go_before_all_others_oldest_first);
    tcase_add_test(tcase, touched_block_moves_up);
    tcase_add_test(tcase, pinned_head_is_passed_over);
    tcase_add_loop_test(tcase, without_ghost_there_is_no_floor, 0, 2);
    tcase_add_test(tcase, floor_that_was_asked_for_stays_without_ghost);
    tcase_add_loop_test(tcase, median_follows_the_hits_behind_the_first_block, 0, 2);
    tcase_add_test(tcase, cache_remembers_blocks_that_left);
    tcase_add_test(tcase, expired_block_is_remembered_too);
    tcase_add_test(tcase, pinned_block_counts_as_seen);
    tcase_add_loop_test(tcase, block_that_leads_a_list_moves_no_median, 0, 2);
    tcase_add_test(tcase, chain_is_shortened_from_its_end);
    tcase_add_test(tcase, ghost_counts_in_the_memory_of_the_cache);
    tcase_add_loop_test(
            tcase, parameters_are_checked, 0, sizeof(parameter_cases) / sizeof(parameter_cases[0]));
    tcase_add_test(tcase, policy_without_a_clock_is_refused);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
