/* SPDX-License-Identifier: Apache-2.0 */

/* The fake store as a plugin, for trees that an assembler builds. */

#include <ucm/plugin.h>

#include "test/fake/fake_store.h"

struct uc_store *
UCCreateStore(void)
{
    return &uc_fake_store_create(false, false)->base;
}

void
UCDestroyStore(struct uc_store *store)
{
    uc_fake_store_destroy(store);
}
