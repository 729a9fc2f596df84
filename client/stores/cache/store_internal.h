/* SPDX-License-Identifier: Apache-2.0 */

/** @file store_internal.h What the files of the store's surface share. Threads. */

#ifndef UC_CACHE_STORE_STORE_INTERNAL_H
#define UC_CACHE_STORE_STORE_INTERNAL_H

#include "client/stores/cache/below.h"
#include "client/stores/cache/config.h"
#include "client/stores/cache/index.h"
#include "client/stores/cache/lift.h"
#include "client/stores/cache/plane.h"
#include "client/stores/cache/store.h"
#include "client/stores/cache/through.h"

struct cache_store {
    struct uc_store base;
    struct uc_completion_queue *events;
    struct uc_cache_index *index;     /* NULL in a worker process */
    struct uc_cache_plane *plane;     /* NULL in a scheduler process */
    struct uc_cache_below *below;     /* NULL without lower tier, or where there is no index */
    struct uc_cache_through *through; /* NULL without write-through, or where there is no index */
    struct uc_cache_lift *lift;       /* NULL without lower tier, or where there is no plane */
    struct uc_cache_store_config config;
    bool is_set_up;
};

static inline struct cache_store *
self_of(struct uc_store *store)
{
    return (struct cache_store *)(void *)store; /* first member */
}

/* Unsupported where that side is in another process. */
enum uc_status uc_cache_store_need_index(const struct cache_store *self);
enum uc_status uc_cache_store_need_plane(const struct cache_store *self);

/* store_prefetch.c: section 7. */
extern const struct uc_prefetchable_ops uc_cache_store_prefetch_ops;

#endif /* UC_CACHE_STORE_STORE_INTERNAL_H */
