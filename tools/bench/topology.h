/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file topology.h
 * Topologies from files (YAML), with placeholders for what is known only when a command runs:
 *
 *   $SERVERS      all servers, as a list; as a whole value only
 *   $BLOCK_BYTES  size of a block, as a number; as a whole value only
 *   $SERVER       the first server
 *   $NODE         number of the node, from 0
 *   $FABRIC       transport of the blocks
 *
 * One thread.
 */

#ifndef UC_BENCH_TOPOLOGY_H
#define UC_BENCH_TOPOLOGY_H

#include <stddef.h>
#include <stdint.h>

#include <ucm/compiler.h>
#include <ucm/dict.h>
#include <ucm/status.h>

/** What the placeholders stand for. Borrowed. */
struct uc_topology_values {
    const struct uc_dict *servers; /* {servers: […]}; NULL = there is none */
    const char *fabric;
    uint64_t block_bytes;
    size_t node;
};

/**
 * Read a file as it stands.
 *
 * @retval UC_ERR_OS_API         it cannot be read
 * @retval UC_ERR_INVALID_PARAM  not YAML, or no topology; the text gives file and line
 */
UC_MUST_CHECK enum uc_status uc_topology_read(const char *path, struct uc_dict **topology_out);

/**
 * Copy @p topology with the placeholders replaced.
 *
 * @param[in] path  of its file, for errors
 * @retval UC_ERR_INVALID_PARAM  unknown placeholder, one for a server where there is none, or one that does
 *                               not stand alone; the text gives file, line and key
 */
UC_MUST_CHECK enum uc_status uc_topology_expand(const struct uc_dict *topology, const char *path,
        const struct uc_topology_values *values, struct uc_dict **expanded_out);

/**
 * @param[in] path  of a key, as errors of the assembler start with: "branches[1].stores[0].config: …"
 * @return the line of that key, or of the innermost part of the path that is there; 0 = not known
 */
unsigned uc_topology_line(const struct uc_dict *topology, const char *path);

/** Put file and line before the text of the last error, which names a key by its path. @return @p status */
enum uc_status uc_topology_error(
        const struct uc_dict *topology, const char *file, enum uc_status status);

#endif /* UC_BENCH_TOPOLOGY_H */
