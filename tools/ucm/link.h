/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file link.h
 * A remote store of one server behind scheduler and worker, for commands that move one block, and what is
 * asked of the server directly. One thread.
 */

#ifndef UC_TOOLS_UCM_LINK_H
#define UC_TOOLS_UCM_LINK_H

#include <stdint.h>

#include <ucm/assembler.h>
#include <ucm/compiler.h>

#include "net/rpc/messages.h"
#include "tools/ucm/command.h"

/** An open link. Zero-initialise. */
struct uc_link {
    struct uc_assembler *assembler;
    struct uc_scheduler *scheduler; /* both borrowed from the assembler */
    struct uc_worker *worker;
    uint64_t block_bytes; /* of the namespace */
};

/** The id of the one request that a command makes. */
#define UC_LINK_REQUEST "ucm"

/** Check server, namespace and credential, assemble, register the request. */
UC_MUST_CHECK enum uc_status uc_link_open(
        struct uc_link *link, const struct uc_cli_options *options);
/** Concludes what is open. */
void uc_link_close(struct uc_link *link);

/**
 * Move one block of @p length bytes at @p memory with the token, and wait.
 *
 * @param[in] put  memory → server; else server → memory
 * @return the status of the block
 */
UC_MUST_CHECK enum uc_status uc_link_move(struct uc_link *link, bool put,
        const struct uc_token *token, void *memory, uint64_t length);

/** Ask a server for its counters. */
UC_MUST_CHECK enum uc_status uc_link_stat(
        const struct uc_cli_options *options, struct uc_stat_reply *stat_out);

#endif /* UC_TOOLS_UCM_LINK_H */
