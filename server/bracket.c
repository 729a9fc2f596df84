/* SPDX-License-Identifier: Apache-2.0 */

#include "server/bracket.h"

#include <stdlib.h>

enum uc_status
uc_bracket_open(struct uc_namespace *ns, struct uc_grant *grant, uint64_t id, size_t first,
        size_t count, struct uc_bracket **bracket_out)
{
    struct uc_bracket *bracket = calloc(1, sizeof(*bracket) + count * sizeof(bracket->slots[0]));

    if (bracket == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "no memory for a bracket of %zu keys", count);
    }

    bracket->node.id = id;
    bracket->grant = grant;
    bracket->first = first;
    bracket->count = count;
    bracket->writable = true;
    for (size_t idx = first; idx < first + count; idx++) {
        struct uc_grant_write *write = &grant->writes[idx];

        /* A reserved slot cannot have moved on while its grant lives; if it had, its key stays a hole. */
        if (write->role != UC_GRANT_NEWCOMER || uc_cache_buffer_transfer_begin(ns->index,
                                                        write->slot, write->generation) != UC_OK) {
            continue;
        }
        write->open_brackets++;
        uc_namespace_allow_writes(ns, write->slot);
        bracket->slots[bracket->slot_count++] = write->slot;
    }
    uc_list_add(&grant->brackets, &bracket->grant_node);
    *bracket_out = bracket;
    return UC_OK;
}

static enum uc_status
check_ranges(const struct uc_namespace *ns, const struct uc_bracket *bracket, const uint8_t *ranges,
        size_t range_count)
{
    uint64_t block_bytes = ns->layout.block_bytes;

    if (range_count != bracket->count) {
        return uc_error(UC_ERR_INVALID_PARAM, "write_end: %zu ranges for a bracket of %zu keys",
                range_count, bracket->count);
    }
    for (size_t idx = 0; idx < range_count; idx++) {
        struct uc_written_range range;

        uc_written_range_get(ranges + idx * UC_WRITTEN_BYTES, &range);
        if (range.offset_bytes > block_bytes ||
                range.length_bytes > block_bytes - range.offset_bytes ||
                range.announced_bytes > block_bytes) {
            return uc_error(UC_ERR_INVALID_PARAM,
                    "write_end: the range of key %zu does not fit a block of %llu bytes", idx,
                    (unsigned long long)block_bytes);
        }
    }
    return UC_OK;
}

enum uc_status
uc_bracket_record(const struct uc_namespace *ns, struct uc_bracket *bracket, const uint8_t *ranges,
        size_t range_count)
{
    enum uc_status status = check_ranges(ns, bracket, ranges, range_count);

    if (status != UC_OK || bracket->grant == NULL) {
        return status;
    }
    for (size_t idx = 0; idx < range_count; idx++) {
        struct uc_grant_write *write = &bracket->grant->writes[bracket->first + idx];
        struct uc_written_range range;
        uint64_t end;
        enum uc_status added;

        uc_written_range_get(ranges + idx * UC_WRITTEN_BYTES, &range);
        end = range.offset_bytes + range.length_bytes;
        if (range.length_bytes == 0) {
            end = 0;
        }
        /* Several writers may each know a part: the block is as long as the longest says. */
        if (range.announced_bytes > write->announced_bytes) {
            write->announced_bytes = range.announced_bytes;
        }
        if (end > write->announced_bytes) {
            write->announced_bytes = end;
        }
        added = uc_coverage_add(&write->coverage, range.offset_bytes, end);
        if (added != UC_OK) {
            status = added;
        }
    }
    return status;
}

void
uc_bracket_forbid_writes(struct uc_namespace *ns, struct uc_bracket *bracket)
{
    if (!bracket->writable) {
        return;
    }

    for (size_t idx = 0; idx < bracket->slot_count; idx++) {
        uc_namespace_forbid_writes(ns, bracket->slots[idx]);
    }
    bracket->writable = false;
}

/* Take the bracket off its grant's keys. */
static void
leave_grant(struct uc_bracket *bracket)
{
    struct uc_grant *grant = bracket->grant;

    for (size_t idx = bracket->first; idx < bracket->first + bracket->count; idx++) {
        if (grant->writes[idx].role == UC_GRANT_NEWCOMER && grant->writes[idx].open_brackets > 0) {
            grant->writes[idx].open_brackets--;
        }
    }
    uc_list_remove(&bracket->grant_node);
    bracket->grant = NULL;
}

void
uc_bracket_close(struct uc_namespace *ns, struct uc_bracket *bracket)
{
    uc_bracket_forbid_writes(ns, bracket);
    if (bracket->grant != NULL) {
        leave_grant(bracket);
    }
    for (size_t idx = 0; idx < bracket->slot_count; idx++) {
        uc_cache_buffer_transfer_end(ns->index, bracket->slots[idx]);
    }
    free(bracket);
}

void
uc_bracket_detach_all(struct uc_namespace *ns, struct uc_grant *grant)
{
    struct uc_list *node;

    while ((node = uc_list_take(&grant->brackets)) != NULL) {
        struct uc_bracket *bracket = uc_list_entry(node, struct uc_bracket, grant_node);

        uc_bracket_forbid_writes(ns, bracket);
        bracket->grant = NULL; /* open_brackets stays up: the conclusion sees that it was open */
    }
}
