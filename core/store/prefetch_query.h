/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file prefetch_query.h
 * Query states of a prefetchable store: the table of section 7.2 of core/CONTRACT.md, one state per
 * request id, and the plans that are not concluded yet. Moves nothing and asks nobody; prefetch_ask.h does the
 * lookups on top of it.
 *
 * A store's lookup calls begin, then exactly one of signal, answer and fail. Its prepare_prefetch calls
 * begin_prepare, and prepared once everything is held. Its complete_prefetch finds the plan, concludes what the
 * plan holds, and calls conclude. Its forget calls forget, its destruction any_plan until there is none.
 *
 * Threads: the control thread.
 */

#ifndef UC_STORE_PREFETCH_QUERY_H
#define UC_STORE_PREFETCH_QUERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/block.h>
#include <ucm/compiler.h>
#include <ucm/status.h>

enum uc_prefetch_state {
    UC_PREFETCH_IDLE,       /* nothing is known of the request; lookups may signal */
    UC_PREFETCH_SIGNALLED,  /* the last lookup said "prefetch"; a list of blocks is waiting */
    UC_PREFETCH_PREPARED,   /* a plan is out; lookups are concrete */
    UC_PREFETCH_PROGRESSED, /* the last round lifted something; one more may be signalled */
    UC_PREFETCH_FAILED,     /* the last round lifted nothing; the next answer is concrete */
    UC_PREFETCH_STATE_COUNT,
};

/** What a round is to lift. Borrowed from the query until its state changes. */
struct uc_prefetch_need {
    const struct uc_block_id *ids; /* distinct */
    size_t count;
    bool is_delegated; /* the lower tier signalled: its round is ours */
};

/** Queries by request id. */
struct uc_prefetch_queries;

/** @param[in] tiers_below  as UC_SETUP_TIERS_BELOW: bounds the rounds */
UC_PRIVATE_API UC_MUST_CHECK enum uc_status uc_prefetch_queries_create(
        size_t tiers_below, struct uc_prefetch_queries **queries_out);

/** Plans must be concluded. NULL is allowed. */
UC_PRIVATE_API void uc_prefetch_queries_destroy(struct uc_prefetch_queries *queries);

/**
 * A lookup starts.
 *
 * @param[out] may_signal_out    whether it may end as a signal; else its answer is concrete
 * @retval UC_ERR_INVALID_PARAM  the request has another list under way
 */
UC_PRIVATE_API UC_MUST_CHECK enum uc_status uc_prefetch_queries_begin(
        struct uc_prefetch_queries *queries, const char *request_id, const struct uc_block_id *ids,
        size_t count, bool *may_signal_out);

/**
 * The lookup ends as a signal. @p ids and @p need are copied.
 *
 * @retval UC_ERR_OUT_OF_MEMORY  the lookup has failed then: no further call for it
 */
UC_PRIVATE_API UC_MUST_CHECK enum uc_status uc_prefetch_queries_signal(
        struct uc_prefetch_queries *queries, const char *request_id, const struct uc_block_id *ids,
        size_t count, const struct uc_prefetch_need *need);

/** The lookup ends with a concrete answer. */
UC_PRIVATE_API void uc_prefetch_queries_answer(
        struct uc_prefetch_queries *queries, const char *request_id);

/** The lookup ends with an error. */
UC_PRIVATE_API void uc_prefetch_queries_fail(
        struct uc_prefetch_queries *queries, const char *request_id);

/**
 * A prepare starts. Nothing changes until uc_prefetch_queries_prepared(), so a failure in between leaves the
 * state as it was.
 *
 * @param[out] need_out          without ids and not delegated: an empty plan
 * @retval UC_ERR_INVALID_PARAM  a plan of the request is not concluded yet
 * @retval UC_ERR_OUT_OF_MEMORY
 */
UC_PRIVATE_API UC_MUST_CHECK enum uc_status uc_prefetch_queries_begin_prepare(
        struct uc_prefetch_queries *queries, const char *request_id,
        struct uc_prefetch_need *need_out);

/**
 * The prepare has succeeded; follows uc_prefetch_queries_begin_prepare(). Never fails.
 *
 * @param[in] plan  the store's own record, kept until the plan is concluded; may be NULL
 * @return the plan's number, never 0 and never reused, for its payload
 */
UC_PRIVATE_API uint64_t uc_prefetch_queries_prepared(
        struct uc_prefetch_queries *queries, const char *request_id, void *plan);

/**
 * @param[out] plan_out          what uc_prefetch_queries_prepared() was given
 * @retval UC_ERR_INVALID_PARAM  no such plan, or it is concluded
 */
UC_PRIVATE_API UC_MUST_CHECK enum uc_status uc_prefetch_queries_find_plan(
        const struct uc_prefetch_queries *queries, uint64_t plan_number, void **plan_out);

/** The plan is concluded. @p progressed: at least one destination was committed. */
UC_PRIVATE_API void uc_prefetch_queries_conclude(
        struct uc_prefetch_queries *queries, uint64_t plan_number, bool progressed);

/** Drop the state of a request; a plan of it stays to be concluded. */
UC_PRIVATE_API void uc_prefetch_queries_forget(
        struct uc_prefetch_queries *queries, const char *request_id);

/** @return the number of any plan that is not concluded, or 0. */
UC_PRIVATE_API uint64_t uc_prefetch_queries_any_plan(const struct uc_prefetch_queries *queries);

/** @return requests whose state is kept, and, of these, the state of one; for tests and describe. */
UC_PRIVATE_API size_t uc_prefetch_queries_count(const struct uc_prefetch_queries *queries);
UC_PRIVATE_API enum uc_prefetch_state uc_prefetch_queries_state(
        const struct uc_prefetch_queries *queries, const char *request_id);

#endif /* UC_STORE_PREFETCH_QUERY_H */
