/* SPDX-License-Identifier: Apache-2.0 */

/** @file registry.h The disciplines of this build, for suites that run on each of them. One thread. */

#ifndef UC_TEST_POLICY_REGISTRY_H
#define UC_TEST_POLICY_REGISTRY_H

#include "test/unit/core/cache_fixture.h"

enum {
    NAMES_BYTES = 256,
    POLICIES_MAX = 16
};

static char names[NAMES_BYTES];
static const struct uc_policy_ops *policies[POLICIES_MAX];
static int policy_count;

static inline void
find_policies(void)
{
    char *rest = names;

    uc_policy_names(names, sizeof(names));
    while (rest != NULL && policy_count < POLICIES_MAX) {
        char *name = strsep(&rest, ",");

        policies[policy_count++] = uc_policy_find(name + strspn(name, " "));
    }
}

#endif /* UC_TEST_POLICY_REGISTRY_H */
