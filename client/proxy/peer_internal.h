/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file peer_internal.h
 * StorePeer (section 12 of core/CONTRACT.md): requests and tokens go to the branch that a routing strategy chose.
 * The halves share only what is constant: strategy and branches.
 */

#ifndef UC_PROXY_PEER_INTERNAL_H
#define UC_PROXY_PEER_INTERNAL_H

#include <stddef.h>

#include "client/proxy/job_table.h"
#include "client/proxy/node.h"
#include "client/proxy/region_set.h"
#include "client/proxy/request_table.h"
#include "client/proxy/scheduler.h"
#include "client/proxy/wait_scratch.h"
#include "client/proxy/worker.h"

/* Owned by the data thread. */
struct uc_peer_data {
    struct uc_job_table jobs; /* in flight, all branches; the value is the branch */
    struct uc_region_set regions;
    struct uc_wait_scratch scratch;
    size_t next_branch; /* get_finished starts here */
    int epoll_fd;       /* over the branches; made by the first event_fd, −1 until then */
};

struct uc_peer {
    struct uc_node node;
    struct uc_scheduler scheduler;
    struct uc_worker worker;
    const struct uc_routing_ops *routing_ops;
    struct uc_routing *routing; /* owned */
    size_t branch_count;
    struct uc_node **branches;         /* owned */
    struct uc_request_table *requests; /* with the branch of each; control thread */
    struct uc_peer_data data;
};

extern const struct uc_scheduler_ops uc_peer_scheduler_ops;
extern const struct uc_worker_ops uc_peer_worker_ops;

void uc_peer_data_init(struct uc_peer_data *data);
void uc_peer_data_fini(struct uc_peer_data *data);

/** Unhealthy if any branch is; the text names all that are. Any thread. */
UC_MUST_CHECK enum uc_status uc_peer_health(const struct uc_peer *peer);

/** Facts of the peer, and list `branches`. Any thread. */
UC_MUST_CHECK enum uc_status uc_peer_describe(
        const struct uc_peer *peer, struct uc_dict *description);

/** As uc_worker_wait(), one deadline over all branches. */
UC_MUST_CHECK enum uc_status uc_peer_wait(struct uc_peer *peer, const uint64_t *job_ids,
        size_t job_count, int64_t timeout_ms, struct uc_io_result *results, size_t capacity,
        size_t *count_out);

#endif /* UC_PROXY_PEER_INTERNAL_H */
