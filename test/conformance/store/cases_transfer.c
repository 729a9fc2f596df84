/* SPDX-License-Identifier: Apache-2.0 */

/* Bytes in, the same bytes out. */

#include <string.h>

#include "test/conformance/store/suite.h"

START_TEST(one_block_comes_back_unchanged)
{
    suite_put(suite.ids, 1);
    ck_assert(suite_is_present(&suite.ids[0]));
    suite_get_and_compare(suite.ids, 1);
    suite_get_and_compare(suite.ids, 1); /* reading takes nothing away */
}
END_TEST

START_TEST(many_blocks_in_one_job_come_back_unchanged)
{
    suite_put(suite.ids, SUITE_KEYS_MAX);
    suite_get_and_compare(suite.ids, SUITE_KEYS_MAX);
}
END_TEST

/* Any order and subset of what was put together may be read together. */
START_TEST(blocks_are_read_in_any_order)
{
    struct uc_block_id ids[4];

    suite_put(suite.ids, 8);
    for (size_t idx = 0; idx < 4; idx++) {
        ids[idx] = suite.ids[6 - 2 * idx];
    }
    suite_get_and_compare(ids, 4);
}
END_TEST

/* an id may occur twice in a read. */
START_TEST(one_block_is_read_twice_in_one_job)
{
    struct uc_block_id ids[3] = {suite.ids[0], suite.ids[1], suite.ids[0]};

    suite_put(suite.ids, 2);
    suite_get_and_compare(ids, 3);
}
END_TEST

/* A payload of three pieces, the middle one unaligned, that covers [offset, offset + total). */
struct pieces {
    void *pointers[3];
    uint64_t sizes[3];
    struct uc_block_payload payload;
};

static void
cut(struct pieces *pieces, uint8_t *where, uint64_t offset, uint64_t total)
{
    uint64_t first = total / 3 + 1;
    uint64_t second = total / 3 - 2;

    /* Gaps between the pieces, and not in the order of their addresses. */
    pieces->pointers[0] = where + total + 64;
    pieces->pointers[1] = where + 3;
    pieces->pointers[2] = where + second + 17;
    pieces->sizes[0] = first;
    pieces->sizes[1] = second;
    pieces->sizes[2] = total - first - second;
    pieces->payload = (struct uc_block_payload){
            .pointers = pieces->pointers,
            .sizes = pieces->sizes,
            .pointer_count = 3,
            .block_offset = offset,
    };
}

static void
fill_pieces(const struct pieces *pieces, const struct uc_block_id *id)
{
    uint64_t offset = pieces->payload.block_offset;

    for (size_t idx = 0; idx < 3; idx++) {
        suite_fill(id, offset, pieces->pointers[idx], pieces->sizes[idx]);
        offset += pieces->sizes[idx];
    }
}

static bool
pieces_match(const struct pieces *pieces, const struct uc_block_id *id)
{
    uint64_t offset = pieces->payload.block_offset;

    for (size_t idx = 0; idx < 3; idx++) {
        if (!suite_matches(id, offset, pieces->pointers[idx], pieces->sizes[idx])) {
            return false;
        }
        offset += pieces->sizes[idx];
    }

    return true;
}

/* scattered in, contiguous out, and the other way round. */
START_TEST(scattered_payloads_are_put_together)
{
    struct pieces pieces;
    struct uc_token *token = suite_prepare_put(suite.ids, 1);

    cut(&pieces, suite_block(2), 0, suite.block_bytes);
    fill_pieces(&pieces, &suite.ids[0]);
    ck_assert_msg(uc_worker_submit_put(suite.worker, 100, &pieces.payload, 1, token, NULL) == UC_OK,
            "%s", uc_last_error());
    suite_expect(100, UC_OK);
    ck_assert_int_eq(uc_scheduler_complete_put(suite.scheduler, suite.request_id, true), UC_OK);
    uc_token_destroy(token);
    suite_get_and_compare(suite.ids, 1);
}
END_TEST

START_TEST(blocks_are_scattered_over_pieces)
{
    struct pieces pieces;
    struct uc_token *token;

    suite_put(suite.ids, 1);
    token = suite_prepare_get(suite.ids, 1);
    cut(&pieces, suite_block(2), 0, suite.block_bytes);
    suite_wipe(suite_block(2), 4 * suite.block_bytes);
    ck_assert_msg(uc_worker_submit_get(suite.worker, 100, &pieces.payload, 1, token, NULL) == UC_OK,
            "%s", uc_last_error());
    suite_expect(100, UC_OK);
    ck_assert(pieces_match(&pieces, &suite.ids[0]));
    ck_assert_uint_eq(suite_view(suite_block(2))[0], 0xee); /* nothing beside the pieces */
    ck_assert_uint_eq(suite_view(suite_block(2))[2], 0xee);
    ck_assert_int_eq(uc_scheduler_complete_get(suite.scheduler, suite.request_id), UC_OK);
    uc_token_destroy(token);
}
END_TEST

static void
transfer_part(const struct uc_token *token, bool is_put, uint64_t offset, uint64_t length)
{
    struct pieces pieces;
    uint64_t job_id = suite.next_job_id++;
    enum uc_status status;

    cut(&pieces, suite_block(4), offset, length);
    if (is_put) {
        fill_pieces(&pieces, &suite.ids[0]);
        status = uc_worker_submit_put(suite.worker, job_id, &pieces.payload, 1, token, NULL);
    } else {
        suite_wipe(suite_block(4), 4 * suite.block_bytes);
        status = uc_worker_submit_get(suite.worker, job_id, &pieces.payload, 1, token, NULL);
    }
    ck_assert_msg(status == UC_OK, "%s", uc_last_error());
    suite_expect(job_id, UC_OK);
    ck_assert(pieces_match(&pieces, &suite.ids[0]));
}

/* layer by layer, several jobs per block */
START_TEST(parts_of_a_block_are_written_and_read)
{
    uint64_t third = suite.block_bytes / 3;
    struct uc_token *token;

    if (!suite.has_offsets) {
        return;
    }
    token = suite_prepare_put(suite.ids, 1);
    transfer_part(token, true, 2 * third, suite.block_bytes - 2 * third);
    transfer_part(token, true, 0, third);
    transfer_part(token, true, third, third);
    ck_assert_msg(uc_scheduler_complete_put(suite.scheduler, suite.request_id, true) == UC_OK, "%s",
            uc_last_error());
    uc_token_destroy(token);
    suite_get_and_compare(suite.ids, 1);

    token = suite_prepare_get(suite.ids, 1);
    transfer_part(token, false, third, third);
    transfer_part(token, false, 1, 64);
    transfer_part(token, false, suite.block_bytes - 65, 65);
    ck_assert_int_eq(uc_scheduler_complete_get(suite.scheduler, suite.request_id), UC_OK);
    uc_token_destroy(token);
}
END_TEST

/* without block_bytes a plain store takes whole blocks only. */
START_TEST(offset_without_block_bytes_is_unsupported)
{
    struct pieces pieces;
    struct uc_token *token;

    if (suite.has_offsets) {
        return;
    }
    token = suite_prepare_put(suite.ids, 1);
    cut(&pieces, suite_block(4), 64, 128);
    ck_assert_int_eq(uc_worker_submit_put(suite.worker, 100, &pieces.payload, 1, token, NULL),
            UC_ERR_UNSUPPORTED);
    uc_token_destroy(token);
}
END_TEST

/* V-43: one window, a job per key; then one window, two jobs. */
START_TEST(jobs_cover_parts_of_a_token)
{
    struct uc_token *token = suite_prepare_put(suite.ids, 4);
    const struct uc_block_payload *payloads = suite_payloads(4);
    const uint64_t job_ids[] = {100, 101, 102, 103};
    struct uc_io_result results[4];
    size_t count = 0;

    for (size_t idx = 0; idx < 4; idx++) {
        struct uc_io_context io = {.first_key = idx, .key_count = 1};

        suite_fill(&suite.ids[idx], 0, suite_block(idx), suite.block_bytes);
        ck_assert_msg(uc_worker_submit_put(
                              suite.worker, job_ids[idx], &payloads[idx], 1, token, &io) == UC_OK,
                "%s", uc_last_error());
    }
    ck_assert_int_eq(
            uc_worker_wait(suite.worker, job_ids, 4, SUITE_WAIT_MS, results, 4, &count), UC_OK);
    ck_assert_uint_eq(count, 4);
    uc_io_results_release(results, 4);
    ck_assert_int_eq(uc_scheduler_complete_put(suite.scheduler, suite.request_id, true), UC_OK);
    uc_token_destroy(token);

    token = suite_prepare_get(suite.ids, 4);
    suite_wipe(suite.memory, 4 * suite.block_bytes);
    for (size_t half = 0; half < 2; half++) {
        struct uc_io_context io = {.first_key = 2 * half, .key_count = half == 0 ? 2 : 0};

        ck_assert_int_eq(uc_worker_submit_get(
                                 suite.worker, job_ids[half], &payloads[2 * half], 2, token, &io),
                UC_OK);
        suite_expect(job_ids[half], UC_OK);
    }
    for (size_t idx = 0; idx < 4; idx++) {
        ck_assert(suite_matches(&suite.ids[idx], 0, suite_block(idx), suite.block_bytes));
    }
    ck_assert_int_eq(uc_scheduler_complete_get(suite.scheduler, suite.request_id), UC_OK);
    uc_token_destroy(token);
}
END_TEST

/* V-43 */
START_TEST(range_that_does_not_fit_is_refused)
{
    static const struct uc_io_context past_end = {.first_key = 2};
    static const struct uc_io_context too_many = {.first_key = 1, .key_count = 2};
    struct uc_token *token = suite_prepare_put(suite.ids, 2);
    const struct uc_block_payload *payloads = suite_payloads(3);

    ck_assert_int_eq(
            uc_worker_submit_put(suite.worker, 1, payloads, 1, token, NULL), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(
            uc_worker_submit_put(suite.worker, 1, payloads, 3, token, NULL), UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_worker_submit_put(suite.worker, 1, payloads, 1, token, &past_end),
            UC_ERR_INVALID_PARAM);
    ck_assert_int_eq(uc_worker_submit_put(suite.worker, 1, payloads, 2, token, &too_many),
            UC_ERR_INVALID_PARAM);
    uc_token_destroy(token);
}
END_TEST

/* G10: equal ids mean equal bytes; writing again changes nothing. */
START_TEST(block_that_is_written_again_stays_whole)
{
    suite_put(suite.ids, 2);
    suite_put(suite.ids, 3);
    suite_get_and_compare(suite.ids, 3);
}
END_TEST

/* a missing block fails alone. */
START_TEST(missing_block_fails_alone_on_a_plain_store)
{
    struct uc_io_result result = {0};
    struct uc_token *token;
    uint64_t job_id = 100;
    size_t count = 0;

    if (suite.is_tokened) {
        return;
    }
    suite_put(&suite.ids[0], 1);
    suite_put(&suite.ids[2], 1);
    token = suite_prepare_get(suite.ids, 3); /* presence is not checked */
    suite_wipe(suite.memory, 3 * suite.block_bytes);
    ck_assert_int_eq(
            uc_worker_submit_get(suite.worker, job_id, suite_payloads(3), 3, token, NULL), UC_OK);
    ck_assert_int_eq(
            uc_worker_wait(suite.worker, &job_id, 1, SUITE_WAIT_MS, &result, 1, &count), UC_OK);
    ck_assert(!result.success);
    ck_assert_int_eq(result.code, UC_ERR_NOT_FOUND);
    if (result.blocks != NULL) {
        ck_assert_uint_eq(result.block_count, 3);
        ck_assert(uc_io_result_block_ok(&result, 0));
        ck_assert(!uc_io_result_block_ok(&result, 1));
        ck_assert(uc_io_result_block_ok(&result, 2));
        ck_assert(suite_matches(&suite.ids[2], 0, suite_block(2), suite.block_bytes));
    }
    uc_io_results_release(&result, 1);
    uc_token_destroy(token);
}
END_TEST

TCase *
suite_transfer_cases(void)
{
    TCase *tcase = tcase_create("transfer");

    tcase_add_test(tcase, one_block_comes_back_unchanged);
    tcase_add_test(tcase, many_blocks_in_one_job_come_back_unchanged);
    tcase_add_test(tcase, blocks_are_read_in_any_order);
    tcase_add_test(tcase, one_block_is_read_twice_in_one_job);
    tcase_add_test(tcase, scattered_payloads_are_put_together);
    tcase_add_test(tcase, blocks_are_scattered_over_pieces);
    tcase_add_test(tcase, parts_of_a_block_are_written_and_read);
    tcase_add_test(tcase, offset_without_block_bytes_is_unsupported);
    tcase_add_test(tcase, jobs_cover_parts_of_a_token);
    tcase_add_test(tcase, range_that_does_not_fit_is_refused);
    tcase_add_test(tcase, block_that_is_written_again_stays_whole);
    tcase_add_test(tcase, missing_block_fails_alone_on_a_plain_store);
    return tcase;
}
