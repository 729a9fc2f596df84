/* SPDX-License-Identifier: Apache-2.0 */

/** @file entry_internal.h What the halves of an entry share: the store and its facets, all constant. */

#ifndef UC_PROXY_ENTRY_INTERNAL_H
#define UC_PROXY_ENTRY_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "client/proxy/entry.h"
#include "client/proxy/finished_queue.h"
#include "client/proxy/job_table.h"
#include "client/proxy/region_set.h"
#include "client/proxy/request_table.h"
#include "client/proxy/scheduler.h"
#include "client/proxy/wait_scratch.h"
#include "client/proxy/worker.h"

/* Owned by the control thread. */
struct uc_entry_control {
    struct uc_request_table *requests;
};

/* Owned by the data thread. */
struct uc_entry_data {
    struct uc_job_table jobs; /* in flight; value 0 = job of the store, else serial in `finished` */
    struct uc_finished_queue finished;
    struct uc_region_set regions;

    struct uc_wait_scratch scratch;

    /* Made by the first event_fd; −1 until then and where the store has none. */
    int epoll_fd;
    int finished_fd; /* readable while `finished` holds something */
};

/* A store below the head of a pipe; constant. */
struct uc_entry_tier {
    struct uc_store *store; /* borrowed */
    bool is_tokened;
    bool is_prefetchable;
};

struct uc_entry {
    struct uc_scheduler scheduler;
    struct uc_store *store;                       /* borrowed; the head if there are lower tiers */
    const struct uc_token_addressed_ops *tokened; /* asked for once; NULL = plain */
    const struct uc_prefetchable_ops *prefetchable;
    struct uc_entry_tier
            *lower; /* owned array, from the second tier down; NULL for a single store */
    size_t lower_count;
    struct uc_entry_control control;
    struct uc_entry_data data;
    struct uc_worker worker;
};

extern const struct uc_scheduler_ops uc_entry_scheduler_ops;
extern const struct uc_worker_ops uc_entry_worker_ops;

/** Conclude every window of every request and forget them. */
void uc_entry_control_fini(struct uc_entry *entry);

void uc_entry_data_init(struct uc_entry_data *data);
void uc_entry_data_fini(struct uc_entry_data *data);

/** Unhealthy if any tier is; the text names it. Any thread. */
UC_MUST_CHECK enum uc_status uc_entry_health(const struct uc_entry *entry);

/** What the store says of itself, and which facets it has; with `tiers` in a pipe. Any thread. */
UC_MUST_CHECK enum uc_status uc_entry_describe(
        const struct uc_entry *entry, struct uc_dict *description);

/** Register with every tier, or with none. Data thread. */
UC_MUST_CHECK enum uc_status uc_entry_register(
        struct uc_entry *entry, const struct uc_region *region);

/** Deregister from every tier; after a failure it is registered with all of them again. Data thread. */
UC_MUST_CHECK enum uc_status uc_entry_deregister(struct uc_entry *entry, uint32_t region_idx);

#endif /* UC_PROXY_ENTRY_INTERNAL_H */
