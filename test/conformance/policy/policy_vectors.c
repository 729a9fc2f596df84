/* SPDX-License-Identifier: Apache-2.0 */

/* The vectors of 20.3 on every discipline; where the contract names victims, these. */

#include "test/conformance/policy/registry.h"

static void
make_cache_of(int idx, size_t capacity)
{
    make_cache_with(capacity, policies[idx]);
}

/* One block each, a second apart. @return the victims, joined */
static const char *
admit_each(const char *letters)
{
    static char victims[LIST_MAX + 1];
    size_t used = 0;

    for (; *letters != '\0'; letters++) {
        char one[2] = {*letters, '\0'};
        const char *victim = admit(one, NO_TTL);

        memcpy(victims + used, victim, strlen(victim));
        used += strlen(victim);
        now_ms += 1000;
    }
    victims[used] = '\0';
    return victims;
}

/* V-14 to V-16, where the contract names the victims; "" = it does not. */
static const struct {
    const char *policy;
    const char *v14;
    const char *v15;
    const char *v16;
} vectors[] = {
        {"lru", "BCA", "ACD", "BC"},
        {"clock", "ABC", "ACB", "BC"},
        {"fifo", "ABC", "ABC", "BC"},
};

static int
vector_of(int idx)
{
    for (int row = 0; row < (int)(sizeof(vectors) / sizeof(vectors[0])); row++) {
        if (strcmp(vectors[row].policy, policies[idx]->name) == 0) {
            return row;
        }
    }

    return -1;
}

START_TEST(v14_touch_and_three_admissions)
{
    int row = vector_of(_i);
    const char *victims;

    make_cache_of(_i, 3);
    (void)admit_each("ABC");
    touch("A", NO_TTL);
    victims = admit_each("DEF");
    ck_assert_uint_eq(strlen(victims), 3);
    if (row >= 0) {
        ck_assert_str_eq(victims, vectors[row].v14);
    }
}
END_TEST

START_TEST(v15_touch_after_an_eviction)
{
    int row = vector_of(_i);
    char victims[8];

    make_cache_of(_i, 3);
    strcpy(victims, admit_each("ABCD"));
    ck_assert_uint_eq(strlen(victims), 1);
    touch("B", NO_TTL);
    strcat(victims, admit_each("EF"));
    ck_assert_uint_eq(strlen(victims), 3);
    if (row >= 0) {
        ck_assert_str_eq(victims, vectors[row].v15);
    }
}
END_TEST

START_TEST(v16_pinned_block_is_passed_over)
{
    int row = vector_of(_i);
    const char *victims;

    make_cache_of(_i, 3);
    (void)admit_each("ABC");
    ck_assert_int_eq(pin("A"), UC_OK);
    victims = admit_each("DE");
    ck_assert_uint_eq(strlen(victims), 2);
    ck_assert_ptr_null(strchr(victims, 'A'));
    if (row >= 0) {
        ck_assert_str_eq(victims, vectors[row].v16);
    }
}
END_TEST

/* Two caches with the same past; one of them is asked for too much. */
START_TEST(v17_infeasible_batch_leaves_no_trace)
{
    char want[8];

    make_cache_of(_i, 3);
    (void)admit_each("ABC");
    strcpy(want, admit_each("DEF"));
    drop_cache();

    make_cache_of(_i, 3);
    (void)admit_each("ABC");
    ck_assert_int_eq(reserve("WXYZ", NO_TTL), UC_ERR_NO_SPACE);
    ck_assert_str_eq(lookup("ABCWXYZ"), "1110000");
    ck_assert_str_eq(admit_each("DEF"), want);
}
END_TEST

/* known and new blocks of one batch in each of its orders. */
START_TEST(v18_survivors_do_not_depend_on_the_order_in_a_batch)
{
    static const char *const orders[] = {"BXY", "BYX", "XBY", "XYB", "YBX", "YXB"};
    char want[8] = "";

    for (size_t order = 0; order < sizeof(orders) / sizeof(orders[0]); order++) {
        make_cache_of(_i, 3);
        (void)admit_each("ABC");
        ck_assert_int_eq(reserve(orders[order], NO_TTL), UC_OK);
        ck_assert_int_eq(commit(orders[order], true), UC_OK);
        if (order == 0) {
            strcpy(want, lookup("ABCXY"));
        }
        ck_assert_str_eq(lookup("ABCXY"), want);
        ck_assert_str_eq(lookup("BXY"), "111");
        drop_cache();
    }
}
END_TEST

int
main(void)
{
    const TTest *const cases[] = {
            v14_touch_and_three_admissions,
            v15_touch_after_an_eviction,
            v16_pinned_block_is_passed_over,
            v17_infeasible_batch_leaves_no_trace,
            v18_survivors_do_not_depend_on_the_order_in_a_batch,
    };
    Suite *suite = suite_create("policy_vectors");
    TCase *tcase = tcase_create("capacity_3");

    find_policies();
    tcase_add_checked_fixture(tcase, NULL, drop_cache);
    for (size_t idx = 0; idx < sizeof(cases) / sizeof(cases[0]); idx++) {
        tcase_add_loop_test(tcase, cases[idx], 0, policy_count);
    }
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
