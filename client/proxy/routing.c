/* SPDX-License-Identifier: Apache-2.0 */

#include "client/proxy/routing.h"

#include <stdio.h>
#include <string.h>

#include "client/proxy/routing_builtin.h"

/* destroy is optional and may lie beyond an older table. */
#define OPS_MIN_BYTES \
    (offsetof(struct uc_routing_ops, select) + sizeof(((struct uc_routing_ops *)0)->select))

const struct uc_routing_ops *
uc_routing_builtin_at(size_t idx)
{
    for (size_t at = 0; at <= idx; at++) {
        if (uc_routing_builtin[at] == NULL) {
            return NULL;
        }
    }

    return uc_routing_builtin[idx];
}

const struct uc_routing_ops *
uc_routing_find(const struct uc_routing_extra *extra, const char *name)
{
    for (size_t idx = 0; uc_routing_builtin[idx] != NULL; idx++) {
        if (strcmp(uc_routing_builtin[idx]->name, name) == 0) {
            return uc_routing_builtin[idx];
        }
    }
    for (size_t idx = 0; extra != NULL && idx < extra->count; idx++) {
        if (strcmp(extra->tables[idx]->name, name) == 0) {
            return extra->tables[idx];
        }
    }

    return NULL;
}

enum uc_status
uc_routing_check_extra(const struct uc_routing_extra *extra)
{
    if (extra->tables == NULL && extra->count != 0) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "assembler options: %zu routing tables announced, but the list is null",
                extra->count);
    }
    for (size_t idx = 0; idx < extra->count; idx++) {
        struct uc_routing_extra earlier = {.tables = extra->tables, .count = idx};
        const struct uc_routing_ops *ops = extra->tables[idx];

        if (ops == NULL || ops->struct_size < OPS_MIN_BYTES || ops->create == NULL ||
                ops->select == NULL || ops->name == NULL || ops->name[0] == '\0') {
            return uc_error(UC_ERR_INVALID_PARAM,
                    "assembler options: routing table %zu is null or lacks struct_size, name, create "
                    "or select",
                    idx);
        }
        if (uc_routing_find(&earlier, ops->name) != NULL) {
            return uc_error(UC_ERR_DUPLICATE_KEY,
                    "assembler options: routing strategy '%.64s' exists already: choose another name",
                    ops->name);
        }
    }

    return UC_OK;
}

static size_t
append_name(char *buffer, size_t buffer_bytes, size_t used, const char *name)
{
    int written;

    if (used >= buffer_bytes) {
        return used;
    }
    written = snprintf(buffer + used, buffer_bytes - used, "%s%.64s", used == 0 ? "" : ", ", name);
    return used + (written < 0 ? 0 : (size_t)written);
}

void
uc_routing_names(const struct uc_routing_extra *extra, char *buffer, size_t buffer_bytes)
{
    size_t used = 0;

    if (buffer_bytes != 0) {
        buffer[0] = '\0';
    }
    for (size_t idx = 0; uc_routing_builtin[idx] != NULL; idx++) {
        used = append_name(buffer, buffer_bytes, used, uc_routing_builtin[idx]->name);
    }
    for (size_t idx = 0; extra != NULL && idx < extra->count; idx++) {
        used = append_name(buffer, buffer_bytes, used, extra->tables[idx]->name);
    }
}
