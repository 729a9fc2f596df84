/* SPDX-License-Identifier: Apache-2.0 */

/* Operations cut into work requests: nothing is lost, doubled or beyond what the device takes. */

#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "net/verbs/verbs.h"

enum {
    MEMORY_BYTES = 4096,
    LOCAL_KEY = 77,
    REMOTE_KEY = 99,
};

static uint8_t memory[MEMORY_BYTES];
static struct ibv_mr mr = {.lkey = LOCAL_KEY};
static struct uc_fabric_region region = {
        .mr = &mr, .address = memory, .length_bytes = MEMORY_BYTES};
static const struct uc_fabric_region_key remote = {
        .address = 0x100000, .key = REMOTE_KEY, .length_bytes = MEMORY_BYTES};
static const struct uc_verbs_scratch scratch = {.address = memory, .local_key = 5};
static struct uc_verbs_chain chain;

static struct uc_fabric_piece
piece(size_t offset, uint64_t length)
{
    return (struct uc_fabric_piece){memory + offset, length, &region};
}

static void
expect_request(size_t idx, uint64_t remote_offset, int sge_count, uint64_t bytes)
{
    const struct ibv_send_wr *request = &chain.requests[idx];
    uint64_t sum = 0;

    ck_assert_uint_lt(idx, chain.count);
    ck_assert_uint_eq(request->wr.rdma.remote_addr, remote.address + remote_offset);
    ck_assert_uint_eq(request->wr.rdma.rkey, REMOTE_KEY);
    ck_assert_int_eq(request->num_sge, sge_count);
    for (int sge = 0; sge < request->num_sge; sge++) {
        sum += request->sg_list[sge].length;
    }
    ck_assert_uint_eq(sum, bytes);
    ck_assert_ptr_eq(request->next, idx + 1 < chain.count ? &chain.requests[idx + 1] : NULL);
}

START_TEST(pieces_are_spread_over_requests)
{
    struct uc_fabric_piece pieces[5];
    struct uc_verbs_limits limits = {.sge_count = 2, .message_bytes = 1 << 20};
    struct uc_fabric_op op = {.opcode = UC_FABRIC_WRITE, .offset_bytes = 64, .pieces = pieces};

    op.piece_count = 5;
    for (size_t idx = 0; idx < 5; idx++) {
        pieces[idx] = piece(idx * 200, 100);
    }
    uc_verbs_chain_reset(&chain);
    ck_assert(uc_verbs_chain_add(&chain, UC_VERBS_CHAIN_MAX, &limits, &remote, &scratch, &op));
    ck_assert_uint_eq(chain.count, 3);
    expect_request(0, 64, 2, 200);
    expect_request(1, 264, 2, 200);
    expect_request(2, 464, 1, 100);
    ck_assert_int_eq(chain.requests[0].opcode, IBV_WR_RDMA_WRITE);
    ck_assert_uint_eq(chain.requests[2].sg_list[0].addr, (uintptr_t)(memory + 800));
    ck_assert_uint_eq(chain.requests[2].sg_list[0].lkey, LOCAL_KEY);
}
END_TEST

START_TEST(messages_are_cut_at_the_limit_of_the_device)
{
    struct uc_fabric_piece pieces[] = {piece(0, 250), piece(1000, 60)};
    struct uc_verbs_limits limits = {.sge_count = 4, .message_bytes = 100};
    struct uc_fabric_op op = {.opcode = UC_FABRIC_READ, .pieces = pieces, .piece_count = 2};

    uc_verbs_chain_reset(&chain);
    ck_assert(uc_verbs_chain_add(&chain, UC_VERBS_CHAIN_MAX, &limits, &remote, &scratch, &op));
    ck_assert_uint_eq(chain.count, 4);
    expect_request(0, 0, 1, 100);
    expect_request(1, 100, 1, 100);
    expect_request(2, 200, 2, 100);
    expect_request(3, 300, 1, 10);
    ck_assert_int_eq(chain.requests[0].opcode, IBV_WR_RDMA_READ);
    ck_assert_uint_eq(chain.requests[3].sg_list[0].addr, (uintptr_t)(memory + 1050));
}
END_TEST

START_TEST(an_operation_continues_in_the_next_chain)
{
    struct uc_fabric_piece pieces[] = {piece(0, MEMORY_BYTES)};
    struct uc_verbs_limits limits = {.sge_count = 1, .message_bytes = 1000};
    struct uc_fabric_op op = {.opcode = UC_FABRIC_READ, .pieces = pieces, .piece_count = 1};

    uc_verbs_chain_reset(&chain);
    ck_assert(!uc_verbs_chain_add(&chain, 2, &limits, &remote, &scratch, &op));
    ck_assert_uint_eq(chain.count, 2);
    expect_request(1, 1000, 1, 1000);
    uc_verbs_chain_reset(&chain);
    ck_assert(!uc_verbs_chain_add(&chain, 2, &limits, &remote, &scratch, &op));
    uc_verbs_chain_reset(&chain);
    ck_assert(uc_verbs_chain_add(&chain, 2, &limits, &remote, &scratch, &op));
    ck_assert_uint_eq(chain.count, 1);
    expect_request(0, 4000, 1, 96);
}
END_TEST

START_TEST(a_full_chain_takes_nothing)
{
    struct uc_fabric_piece pieces[] = {piece(0, 8)};
    struct uc_verbs_limits limits = {.sge_count = 1, .message_bytes = 1000};
    struct uc_fabric_op op = {.opcode = UC_FABRIC_READ, .pieces = pieces, .piece_count = 1};
    struct uc_fabric_op flush = {.opcode = UC_FABRIC_FLUSH};

    uc_verbs_chain_reset(&chain);
    ck_assert(uc_verbs_chain_add(&chain, 1, &limits, &remote, &scratch, &op));
    ck_assert(!uc_verbs_chain_add(&chain, 1, &limits, &remote, &scratch, &flush));
    ck_assert_uint_eq(chain.count, 1);
}
END_TEST

START_TEST(a_flush_is_a_read_of_eight_bytes_into_the_scratch)
{
    struct uc_verbs_limits limits = {.sge_count = 1, .message_bytes = 1000};
    struct uc_fabric_op op = {.opcode = UC_FABRIC_FLUSH, .offset_bytes = 128};

    uc_verbs_chain_reset(&chain);
    ck_assert(uc_verbs_chain_add(&chain, 1, &limits, &remote, &scratch, &op));
    expect_request(0, 128, 1, 8);
    ck_assert_int_eq(chain.requests[0].opcode, IBV_WR_RDMA_READ);
    ck_assert_uint_eq(chain.requests[0].sg_list[0].lkey, scratch.local_key);
}
END_TEST

/* The largest chain of the largest requests fits what a chain holds. */
START_TEST(a_chain_of_full_requests_fits)
{
    enum {
        PIECES = UC_VERBS_CHAIN_MAX * UC_VERBS_SGE_MAX
    };
    static struct uc_fabric_piece pieces[PIECES];
    struct uc_verbs_limits limits = {.sge_count = UC_VERBS_SGE_MAX, .message_bytes = 1 << 30};
    struct uc_fabric_op op = {.opcode = UC_FABRIC_READ, .pieces = pieces, .piece_count = PIECES};

    for (size_t idx = 0; idx < PIECES; idx++) {
        pieces[idx] = piece(idx * 8, 8);
    }
    uc_verbs_chain_reset(&chain);
    ck_assert(uc_verbs_chain_add(&chain, UC_VERBS_CHAIN_MAX, &limits, &remote, &scratch, &op));
    ck_assert_uint_eq(chain.count, UC_VERBS_CHAIN_MAX);
    ck_assert_uint_eq(chain.sge_count, PIECES);
    expect_request(UC_VERBS_CHAIN_MAX - 1, UINT64_C(31) * 128, UC_VERBS_SGE_MAX, 128);
}
END_TEST

int
main(void)
{
    TCase *cases = tcase_create("chain");
    Suite *suite = suite_create("verbs_chain");
    SRunner *runner;
    int failed;

    tcase_add_test(cases, pieces_are_spread_over_requests);
    tcase_add_test(cases, messages_are_cut_at_the_limit_of_the_device);
    tcase_add_test(cases, an_operation_continues_in_the_next_chain);
    tcase_add_test(cases, a_full_chain_takes_nothing);
    tcase_add_test(cases, a_flush_is_a_read_of_eight_bytes_into_the_scratch);
    tcase_add_test(cases, a_chain_of_full_requests_fits);
    suite_add_tcase(suite, cases);

    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
