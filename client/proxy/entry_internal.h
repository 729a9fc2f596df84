/* SPDX-License-Identifier: Apache-2.0 */

/** @file entry_internal.h What the halves of an entry share: the store and its facets, all constant. */

#ifndef UC_PROXY_ENTRY_INTERNAL_H
#define UC_PROXY_ENTRY_INTERNAL_H

#include <stddef.h>

#include "client/proxy/entry.h"
#include "client/proxy/finished_queue.h"
#include "client/proxy/job_table.h"
#include "client/proxy/region_set.h"
#include "client/proxy/request_table.h"
#include "client/proxy/scheduler.h"
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

    /* Scratch of wait, kept so that waiting allocates only when a list is longer than all before. */
    struct uc_job_table
            seen;  /* distinct ids of the call; value = position of the store's result + 1 */
    uint64_t *ids; /* distinct ids, then those of the store */
    struct uc_io_result *merged;
    size_t scratch_count;

    /* Made by the first event_fd; −1 until then and where the store has none. */
    int epoll_fd;
    int finished_fd; /* readable while `finished` holds something */
};

struct uc_entry {
    struct uc_scheduler scheduler;
    struct uc_store *store;                       /* borrowed */
    const struct uc_token_addressed_ops *tokened; /* asked for once; NULL = plain */
    const struct uc_prefetchable_ops *prefetchable;
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

/** What the store says of itself, and which facets it has. Any thread. */
UC_MUST_CHECK enum uc_status uc_entry_describe(
        const struct uc_entry *entry, struct uc_dict *description);

#endif /* UC_PROXY_ENTRY_INTERNAL_H */
