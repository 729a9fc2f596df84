/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file acceptor.h
 * A listening socket among the turns, and the peers that it has accepted and that have not said who they
 * are. Those are bounded in number and time: strangers cost little, and the oldest goes first.
 *
 * All of it belongs to the polling thread.
 */

#ifndef UC_NET_ACCEPTOR_H
#define UC_NET_ACCEPTOR_H

#include <stdbool.h>
#include <stddef.h>

#include <ucm/compiler.h>
#include <ucm/status.h>

#include "core/base/list.h"
#include "net/turns.h"

struct uc_acceptor;

enum {
    UC_ACCEPTOR_BACKLOG = 1024,       /* peers not accepted yet; more have to try again */
    UC_ACCEPTOR_NEWCOMER_COUNT = 256, /* peers of an acceptor that have not said hello */
    UC_ACCEPTOR_NEWCOMER_MS = 5000,   /* … and how long they may take */
    UC_ACCEPTOR_RETRY_MS = 100,       /* pause when descriptors or memory have run out */
    UC_ACCEPTOR_NAME_BYTES = 32,
};

/** In the target of a peer that has not said hello. */
struct uc_newcomer {
    struct uc_list node;          /* in the acceptor's newcomers, in order of age */
    struct uc_acceptor *acceptor; /* NULL: not one any more */
};

struct uc_acceptor_ops {
    /**
     * Make what serves the peer: its source watches @p fd.
     *
     * @param[out] newcomer_out  in it
     * @param[out] source_out    in it
     */
    enum uc_status (*greet)(struct uc_acceptor *acceptor, int fd, struct uc_newcomer **newcomer_out,
            struct uc_source **source_out);

    /** Close and free what greet has made; leaves the acceptor. */
    void (*drop)(struct uc_newcomer *newcomer);
};

struct uc_acceptor {
    struct uc_source source; /* timed: accepting again after a pause */
    const struct uc_acceptor_ops *ops;
    struct uc_list newcomers;
    size_t newcomer_count;
    bool is_starved;                   /* said once that descriptors or memory ran out */
    char name[UC_ACCEPTOR_NAME_BYTES]; /* in messages */
};

void uc_acceptor_init(
        struct uc_acceptor *acceptor, struct uc_turns *turns, const struct uc_acceptor_ops *ops);

/** Start. @param[in] fd listens, without blocking; the acceptor's from now on */
UC_MUST_CHECK enum uc_status uc_acceptor_watch(struct uc_acceptor *acceptor, int fd);

/** Drop all newcomers, stop listening. */
void uc_acceptor_close(struct uc_acceptor *acceptor);

/** The peer has said hello, or is gone. Idempotent. */
void uc_newcomer_leave(struct uc_newcomer *newcomer);

#endif /* UC_NET_ACCEPTOR_H */
