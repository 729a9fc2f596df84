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

#include "client/proxy/routing.h"

enum {
    /* "branches[N].stores[N]" with numbers of 20 digits at most */
    UC_NODE_PATH_BYTES = 96
};

/** What is the same for every node of a tree; outlives them. */
struct uc_build {
    enum uc_role role;
    struct uc_routing_extra routing;
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

    /** Validate @p config, children included, before anything is built. Mandatory. */
    enum uc_status (*check)(
            const struct uc_build *build, const struct uc_dict *config, const char *path);

    /**
     * Build what was validated. Mandatory.
     *
     * @param[in]  build     borrowed until the node is destroyed
     * @param[in]  path      of this node, for messages and UC_SETUP_NODE_PATH
     * @param[out] node_out  set on success only
     */
    enum uc_status (*create)(const struct uc_build *build, const struct uc_dict *config,
            const char *path, struct uc_node **node_out);
};

/** Find the type that @p config names and validate. The text of a failure names path and key. */
UC_MUST_CHECK enum uc_status uc_node_check(
        const struct uc_build *build, const struct uc_dict *config, const char *path);

/** Build a node that was validated. */
UC_MUST_CHECK enum uc_status uc_node_create(const struct uc_build *build,
        const struct uc_dict *config, const char *path, struct uc_node **node_out);

/** NULL is allowed. */
void uc_node_destroy(struct uc_node *node);

/** {type: "store", store: name or path, config: {…}} (R-14.1). */
enum uc_status uc_node_check_store(
        const struct uc_build *build, const struct uc_dict *config, const char *path);
enum uc_status uc_node_create_store(const struct uc_build *build, const struct uc_dict *config,
        const char *path, struct uc_node **node_out);

/** {type: "pipe", stores: […]} (R-14.2). */
enum uc_status uc_node_check_pipe(
        const struct uc_build *build, const struct uc_dict *config, const char *path);
enum uc_status uc_node_create_pipe(const struct uc_build *build, const struct uc_dict *config,
        const char *path, struct uc_node **node_out);

/** {type: "peer", branches: […], routing: {strategy: name, config: {…}}} (R-14.3). */
enum uc_status uc_node_check_peer(
        const struct uc_build *build, const struct uc_dict *config, const char *path);
enum uc_status uc_node_create_peer(const struct uc_build *build, const struct uc_dict *config,
        const char *path, struct uc_node **node_out);

/**
 * Check that @p config has no other keys than @p known.
 *
 * @retval UC_ERR_INVALID_PARAM  it has; the text names path, key, line, and the nearest known key
 */
UC_MUST_CHECK enum uc_status uc_node_check_keys(const struct uc_dict *config, const char *path,
        const char *const *known, size_t known_count);

/**
 * Check that @p key is a list of dictionaries and not empty.
 *
 * @param[in] what  an element of it, for the message
 */
UC_MUST_CHECK enum uc_status uc_node_check_children(const struct uc_dict *config, const char *path,
        const char *key, const char *what, size_t *count_out);

/** The path of child @p idx, of UC_NODE_PATH_BYTES. Children of the root have no prefix. */
void uc_node_child_path(const char *path, const char *key, size_t idx, char *buffer);

/** uc_error() with "<path of the key>: key '<key>' <text>" in front, e.g. "branches[1].stores[0].store: …". */
enum uc_status uc_node_error(enum uc_status status, const char *path, const char *key,
        const char *format, ...) UC_PRINTF(4, 5);

/** Put the path of the key before the text of the failure that just happened. */
enum uc_status uc_node_prefix_error(enum uc_status status, const char *path, const char *key);

/** The position of a root, e.g. of a single store; equal in all processes. */
#define UC_NODE_ROOT_PATH "root"

#endif /* UC_PROXY_NODE_H */
