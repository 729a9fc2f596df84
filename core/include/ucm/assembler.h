/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file assembler.h
 * Builds a topology from a dictionary (section 14 of core/CONTRACT.md) and hands out its two
 * interfaces. The same dictionary is used in every process of an engine.
 */

#ifndef UC_ASSEMBLER_H
#define UC_ASSEMBLER_H

#include <stddef.h>
#include <stdint.h>

#include <ucm/compiler.h>
#include <ucm/dict.h>
#include <ucm/routing.h>
#include <ucm/scheduler.h>
#include <ucm/setup.h>
#include <ucm/status.h>
#include <ucm/worker.h>

struct uc_assembler;

enum uc_role {
    UC_ROLE_BOTH,
    UC_ROLE_SCHEDULER, /* control only: moves no bytes */
    UC_ROLE_WORKER,
};

/** All optional; NULL options mean defaults. Grows at the end. */
struct uc_assembler_options {
    uint32_t struct_size;
    enum uc_role role;
    /* Without it, handles are events of CUDA (CUevent) where this process has loaded its driver. */
    uc_prerequisite_fn prerequisite_hook;
    void *prerequisite_context;
    /* Strategies of the host, beside the built-in ones; borrowed until destroy. */
    const struct uc_routing_ops *const *routing_tables;
    size_t routing_table_count;
};

/**
 * Build the tree. @p config and @p options are borrowed for the call.
 *
 * @param[out] assembler_out  set on success only; the caller owns it
 * @retval UC_ERR_INVALID_PARAM  the configuration is wrong; uc_last_error() names the path and key, e.g.
 *                               branches[1].stores[0].store
 * @retval UC_ERR_DUPLICATE_KEY  a routing table of the options has a name that is taken
 * @retval other                 a plugin could not be loaded or set up
 */
UC_API UC_MUST_CHECK enum uc_status uc_assembler_create(const struct uc_dict *config,
        const struct uc_assembler_options *options, struct uc_assembler **assembler_out);

/** Jobs must be drained; open windows are concluded. NULL is allowed. */
UC_API void uc_assembler_destroy(struct uc_assembler *assembler);

/** Borrowed until the assembler is destroyed. Unsupported if the role excludes it. */
UC_API UC_MUST_CHECK enum uc_status uc_assembler_scheduler(
        struct uc_assembler *assembler, struct uc_scheduler **scheduler_out);
UC_API UC_MUST_CHECK enum uc_status uc_assembler_worker(
        struct uc_assembler *assembler, struct uc_worker **worker_out);

#endif /* UC_ASSEMBLER_H */
