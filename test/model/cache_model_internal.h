/* SPDX-License-Identifier: Apache-2.0 */

/** @file cache_model_internal.h What the two files of the model share. */

#ifndef UC_TEST_MODEL_CACHE_MODEL_INTERNAL_H
#define UC_TEST_MODEL_CACHE_MODEL_INTERNAL_H

#include "test/model/cache_model.h"

/* No pin of either kind is "unheld". */
bool model_is_held(const struct cache_model *model, int block);
/* */
bool model_is_evictable(const struct cache_model *model, int block);
int model_owner_of(const struct cache_model *model, uint32_t slot);
size_t model_count_slots(const struct cache_model *model, enum model_slot_state state);
size_t model_count_evictable(const struct cache_model *model);
/* Hook Released: the slot leaves the order of the discipline. */
void model_order_remove(struct cache_model *model, uint32_t slot);
/* Hook Admitted. */
void model_order_admit(struct cache_model *model, uint32_t slot);
void model_next_generation(struct model_slot *slot);
/* The slot is FREE, or DRAINING while transfers run. */
void model_remove_block(struct cache_model *model, int block);
/* The same for an expired or damaged one. */
void model_expire_block(struct cache_model *model, int block);
/* @return whether the block is visible */
bool model_probe(struct cache_model *model, int block);

#endif /* UC_TEST_MODEL_CACHE_MODEL_INTERNAL_H */
