/* SPDX-License-Identifier: Apache-2.0 */

#include "client/stores/remote/partition.h"

#include <stdlib.h>
#include <string.h>

static enum uc_status
reserve(struct uc_partition *partition, size_t share_count, size_t key_count)
{
    if (share_count > partition->share_capacity) {
        struct uc_share *shares = realloc(partition->shares, share_count * sizeof(shares[0]));

        if (shares == NULL) {
            return uc_error(
                    UC_ERR_OUT_OF_MEMORY, "remote store: no memory for %zu servers", share_count);
        }
        partition->shares = shares;
        partition->share_capacity = share_count;
    }
    if (share_count > 1 && key_count > partition->key_capacity) {
        free(partition->ids);
        free(partition->positions);
        free(partition->places);
        partition->key_capacity = 0;
        partition->ids = malloc(key_count * sizeof(partition->ids[0]));
        partition->positions = malloc(key_count * sizeof(partition->positions[0]));
        partition->places = malloc(key_count * sizeof(partition->places[0]));
        if (partition->ids == NULL || partition->positions == NULL || partition->places == NULL) {
            return uc_error(
                    UC_ERR_OUT_OF_MEMORY, "remote store: no memory for %zu keys", key_count);
        }
        partition->key_capacity = key_count;
    }

    return UC_OK;
}

enum uc_status
uc_partition_make(struct uc_partition *partition, const struct uc_placement_view *view,
        const struct uc_block_id *ids, size_t count)
{
    enum uc_status status = reserve(partition, view->count, count);
    size_t first = 0;

    if (status != UC_OK) {
        return status;
    }
    memset(partition->shares, 0, view->count * sizeof(partition->shares[0]));
    if (view->count == 1) {
        partition->shares[0] = (struct uc_share){.ids = ids, .count = count};
        return UC_OK;
    }

    for (size_t idx = 0; idx < count; idx++) {
        partition->places[idx] = (uint32_t)uc_placement_place(view, &ids[idx]);
        partition->shares[partition->places[idx]].count++;
    }
    for (size_t server = 0; server < view->count; server++) {
        struct uc_share *share = &partition->shares[server];

        share->ids = &partition->ids[first];
        share->positions = &partition->positions[first];
        first += share->count;
        share->count = 0;
    }
    for (size_t idx = 0; idx < count; idx++) {
        struct uc_share *share = &partition->shares[partition->places[idx]];
        size_t at = (size_t)(share->positions - partition->positions) + share->count++;

        partition->ids[at] = ids[idx];
        partition->positions[at] = (uint32_t)idx;
    }
    return UC_OK;
}

void
uc_partition_fini(struct uc_partition *partition)
{
    free(partition->shares);
    free(partition->ids);
    free(partition->positions);
    free(partition->places);
}
