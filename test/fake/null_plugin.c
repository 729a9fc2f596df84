/* SPDX-License-Identifier: Apache-2.0 */

/* The null store as a plugin. */

#include <ucm/plugin.h>

struct uc_store *
UCCreateStore(void)
{
    return uc_null_store_create();
}

void
UCDestroyStore(struct uc_store *store)
{
    uc_null_store_destroy(store);
}
