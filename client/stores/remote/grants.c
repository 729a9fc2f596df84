/* SPDX-License-Identifier: Apache-2.0 */

#include "client/stores/remote/grants.h"

#include <stdlib.h>
#include <string.h>

void
uc_grants_init(struct uc_grants *grants)
{
    for (size_t idx = 0; idx < UC_GRANT_BUCKETS; idx++) {
        uc_list_init(&grants->buckets[idx]);
    }
    grants->count = 0;
}

static void
drop(struct uc_grants *grants, struct uc_held_grant *held)
{
    uc_list_remove(&held->link);
    grants->count--;
    free(held);
}

void
uc_grants_fini(struct uc_grants *grants)
{
    for (size_t idx = 0; idx < UC_GRANT_BUCKETS; idx++) {
        uc_list_for_each_safe (node, following, &grants->buckets[idx]) {
            drop(grants, uc_list_entry(node, struct uc_held_grant, link));
        }
    }
}

/* Grant ids are counters: the low bits spread them. */
static struct uc_list *
bucket_of(struct uc_grants *grants, uint64_t grant)
{
    return &grants->buckets[grant % UC_GRANT_BUCKETS];
}

void
uc_grants_add(struct uc_grants *grants, struct uc_held_grant *held)
{
    uc_list_add(bucket_of(grants, held->grant), &held->link);
    grants->count++;
}

struct uc_held_grant *
uc_grants_take(struct uc_grants *grants, const struct uc_token_node *node, enum uc_token_kind kind,
        size_t key_count)
{
    struct uc_list *bucket = bucket_of(grants, node->grant);

    if (node->kind != kind) {
        return NULL;
    }
    uc_list_for_each (link, bucket) {
        struct uc_held_grant *held = uc_list_entry(link, struct uc_held_grant, link);

        if (held->grant == node->grant && held->kind == kind && held->key_count == key_count &&
                memcmp(held->attach_key, node->attach_key, UC_ATTACH_KEY_BYTES) == 0) {
            uc_list_remove(&held->link);
            grants->count--;
            return held;
        }
    }

    return NULL;
}

void
uc_grants_forget_others(struct uc_grants *grants, size_t server, uint64_t epoch)
{
    for (size_t idx = 0; idx < UC_GRANT_BUCKETS; idx++) {
        uc_list_for_each_safe (node, following, &grants->buckets[idx]) {
            struct uc_held_grant *held = uc_list_entry(node, struct uc_held_grant, link);

            if (held->server == server && held->epoch != epoch) {
                drop(grants, held);
            }
        }
    }
}
