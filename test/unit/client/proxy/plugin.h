/* SPDX-License-Identifier: Apache-2.0 */

/** @file plugin.h What the test plugin writes into the memory that `report` of its configuration names. */

#ifndef UC_TEST_PLUGIN_H
#define UC_TEST_PLUGIN_H

#include <stdbool.h>
#include <stdint.h>

#include <ucm/status.h>

struct plugin_report {
    int setup_count;
    int destroy_count;
    char node_path[64];
    char role[16];
    int64_t tiers_below;
    bool has_lower;
    enum uc_status prerequisite_answer; /* of handle 42, if there was a hook */
};

#endif /* UC_TEST_PLUGIN_H */
