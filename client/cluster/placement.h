/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file placement.h
 * Which server holds a key: weighted rendezvous hashing (net/PROTOCOL.md, "Placement"). A server's place
 * depends on its name and weight alone, never on the order of a list or on the other servers, so that a
 * server that joins takes keys and one that leaves gives its own away, and nothing else moves. The
 * results are a promise between all clients of a set of servers: test_placement pins them.
 *
 * Placement works on a view, so that a directory may bring another one. Pure functions; any thread.
 */

#ifndef UC_CLUSTER_PLACEMENT_H
#define UC_CLUSTER_PLACEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/block.h>

enum {
    UC_PLACEMENT_WEIGHT_MAX = 65535,
};

/** One server as placement sees it. A plain value. */
struct uc_placement_member {
    const char *name; /* borrowed; exactly as configured, without the weight */
    uint64_t seed;    /* of the name */
    uint32_t weight;  /* 1 to UC_PLACEMENT_WEIGHT_MAX: shares are in proportion */
};

/** The servers among which keys are placed. A plain value that borrows its members. */
struct uc_placement_view {
    const struct uc_placement_member *members;
    size_t count;
    bool equal_weights;
};

/** @param[in] name  borrowed for the member's life */
struct uc_placement_member uc_placement_member_init(const char *name, uint32_t weight);

/** @param[in] members  borrowed; names differ */
struct uc_placement_view uc_placement_view_init(
        const struct uc_placement_member *members, size_t count);

/** @return index of the member that holds @p key; the view has one at least */
size_t uc_placement_place(const struct uc_placement_view *view, const struct uc_block_id *key);

#endif /* UC_CLUSTER_PLACEMENT_H */
