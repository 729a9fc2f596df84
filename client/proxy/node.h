/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file node.h
 * Elements of a topology and how the assembler builds them: one constructor per type, in a table.
 *
 * Threads: assembly and destruction belong to one thread.
 */

#ifndef UC_PROXY_NODE_H
#define UC_PROXY_NODE_H

#include <stddef.h>
#include <stdint.h>

#include <ucm/assembler.h>
#include <ucm/dict.h>
#include <ucm/setup.h>
#include <ucm/status.h>

/** What is the same for every node of a tree; outlives them. */
struct uc_build {
    enum uc_role role;
    struct uc_prerequisite prerequisite; /* poll is NULL without a hook */
};

/** First member of what a constructor makes. */
struct uc_node {
    struct uc_scheduler *scheduler; /* borrowed from the node itself */
    struct uc_worker *worker;
    void (*destroy)(struct uc_node *node); /* undoes the constructor, head first */
};

struct uc_node_type {
    const char *name; /* as in `type` */

    /**
     * Validate @p config and build. Mandatory.
     *
     * @param[in]  build     borrowed until the node is destroyed
     * @param[in]  path      of this node, for messages and UC_SETUP_NODE_PATH
     * @param[out] node_out  set on success only
     */
    enum uc_status (*create)(const struct uc_build *build, const struct uc_dict *config,
            const char *path, struct uc_node **node_out);
};

/** Build the node that @p config describes by its `type`. The text of a failure names path and key. */
UC_MUST_CHECK enum uc_status uc_node_create(const struct uc_build *build,
        const struct uc_dict *config, const char *path, struct uc_node **node_out);

/** NULL is allowed. */
void uc_node_destroy(struct uc_node *node);

/** {type: "store", store: name or path, config: {…}} (R-14.1). */
UC_MUST_CHECK enum uc_status uc_node_create_store(const struct uc_build *build,
        const struct uc_dict *config, const char *path, struct uc_node **node_out);

/**
 * Check that @p config has no other keys than @p known.
 *
 * @retval UC_ERR_INVALID_PARAM  it has; the text names path, key, line, and the nearest known key
 */
UC_MUST_CHECK enum uc_status uc_node_check_keys(const struct uc_dict *config, const char *path,
        const char *const *known, size_t known_count);

#endif /* UC_PROXY_NODE_H */
