/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file routing.h
 * Finds routing strategies by name: the constant table of this build, and tables that come with the
 * options of an assembler.
 *
 * Threads: no shared state.
 */

#ifndef UC_PROXY_ROUTING_H
#define UC_PROXY_ROUTING_H

#include <stddef.h>

#include <ucm/compiler.h>
#include <ucm/routing.h>
#include <ucm/status.h>

/** Tables of the host, checked by uc_routing_check_extra(); borrowed. */
struct uc_routing_extra {
    const struct uc_routing_ops *const *tables;
    size_t count;
};

/**
 * Check the tables of a host.
 *
 * @retval UC_ERR_INVALID_PARAM  a table is null, too short, without name, create or select
 * @retval UC_ERR_DUPLICATE_KEY  a name is taken
 */
UC_PRIVATE_API UC_MUST_CHECK enum uc_status uc_routing_check_extra(
        const struct uc_routing_extra *extra);

/** @return the strategy, or NULL. @p extra may be NULL. */
UC_PRIVATE_API const struct uc_routing_ops *uc_routing_find(
        const struct uc_routing_extra *extra, const char *name);

/** @return strategy @p idx of this build, NULL past the last. */
UC_PRIVATE_API const struct uc_routing_ops *uc_routing_builtin_at(size_t idx);

/** Write the known names, separated by ", "; always terminated. @p extra may be NULL. */
UC_PRIVATE_API void uc_routing_names(
        const struct uc_routing_extra *extra, char *buffer, size_t buffer_bytes);

#endif /* UC_PROXY_ROUTING_H */
