/* SPDX-License-Identifier: Apache-2.0 */

/** @file fake_store_internal.h What the base operations of a fake store share with its facets. */

#ifndef UC_FAKE_STORE_INTERNAL_H
#define UC_FAKE_STORE_INTERNAL_H

#include "test/fake/fake_store.h"

extern const struct uc_token_addressed_ops fake_token_ops;
extern const struct uc_prefetchable_ops fake_prefetch_ops;

struct uc_fake_store *fake_store_of(struct uc_store *store);

/** Count and log the call. @return the answer that was scripted for it */
enum uc_status fake_answer(struct uc_fake_store *fake, struct uc_fake_side *side,
        enum uc_fake_op op, const char *name);

void fake_record_ids(struct uc_fake_side *side, const struct uc_block_id *ids, size_t count);
void fake_record_context(struct uc_fake_side *side, const struct uc_request_context *context);

/** Begin a job, and end it unless events are held. */
enum uc_status fake_begin_job(struct uc_fake_store *fake, uint64_t job_id, size_t block_count);

/** Answer a load or dump, and begin its job if the answer is Ok. */
enum uc_status fake_start_job(struct uc_fake_store *fake, enum uc_fake_op op, const char *name,
        uint64_t job_id, const struct uc_job_descriptor *job);

#endif /* UC_FAKE_STORE_INTERNAL_H */
