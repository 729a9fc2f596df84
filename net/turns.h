/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file turns.h
 * What fabrics over sockets share: one epoll, sources that take turns, deadlines, and the dead.
 *
 * The epoll is edge-triggered. A source remembers what it may still do and waits in the ring of turns
 * while it has something to do. No registration changes afterwards, so the data path costs the
 * transfers themselves and one epoll_wait per poll.
 *
 * All of it belongs to the polling thread. Nothing here allocates or blocks.
 */

#ifndef UC_NET_TURNS_H
#define UC_NET_TURNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/clock.h>
#include <ucm/compiler.h>
#include <ucm/status.h>

#include "core/base/list.h"
#include "core/base/warn_gate.h"

struct uc_source;

struct uc_turns {
    const char *name; /* of the fabric, in messages; static */
    int epoll_fd;
    bool is_polling;
    struct uc_clock clock; /* monotonic; tests replace it */
    struct uc_warn_gate warn_gate;
    struct uc_list ready;
    struct uc_list timed;
    struct uc_list dead;
};

/** What a kind of source does. All mandatory, but for expire where no deadline is ever set. */
struct uc_source_ops {
    /** Note what an event allows; the turn follows. @param[in] events EPOLLIN and so on */
    void (*event)(struct uc_source *source, uint32_t events);

    /** Do what there is to do, within the budget. May end the source. @return true to get another turn at once */
    bool (*turn)(struct uc_source *source, size_t *budget);

    /** The deadline has come, and counts no more. May end the source. */
    void (*expire)(struct uc_source *source);
};

/** A socket in the epoll, and its place in the ring of turns and among the deadlines. */
struct uc_source {
    const struct uc_source_ops *ops;
    struct uc_turns *turns;
    struct uc_list turn_node;  /* in turns->ready while there may be something to do */
    struct uc_list timed_node; /* in turns->timed while deadline_ms counts */
    uint64_t deadline_ms;
    int fd;        /* -1 once closed */
    bool readable; /* since the last event, nothing said that there is no more */
};

/** First member of what is freed at the end of poll, because a caller up the stack may point to it. */
struct uc_mortal {
    struct uc_list node; /* in turns->dead */
    void *memory;        /* freed with it; may be NULL */
};

/** @param[in] name of the fabric, static */
UC_MUST_CHECK enum uc_status uc_turns_init(struct uc_turns *turns, const char *name);

/** Nothing is left in it, and no poll is running. */
void uc_turns_fini(struct uc_turns *turns);

/**
 * Fetch events, end deadlines, give turns until the budget is used up or everybody had one, free the dead.
 *
 * @return how much of the budget was used, and deadlines
 */
size_t uc_turns_poll(struct uc_turns *turns, size_t budget);

/**
 * Nothing to do but what an event would tell: events keep the epoll readable until they are fetched,
 * only turns are invisible to it.
 */
static inline bool
uc_turns_are_over(const struct uc_turns *turns)
{
    return uc_list_is_empty(&turns->ready);
}

/** @return the earliest deadline, or UC_TIME_NEVER_MS. */
uint64_t uc_turns_next_deadline_ms(const struct uc_turns *turns);

/** @return whether a warning about a peer may be logged now: one a second for each fabric. */
bool uc_turns_may_warn(struct uc_turns *turns);

/** Free now, or at the end of the poll that is running. */
void uc_turns_bury(struct uc_turns *turns, struct uc_mortal *mortal);

void uc_source_init(
        struct uc_source *source, struct uc_turns *turns, const struct uc_source_ops *ops);

/** Register the descriptor, which the source owns from now on. @param[in] events beside EPOLLET */
UC_MUST_CHECK enum uc_status uc_source_watch(struct uc_source *source, int fd, uint32_t events);

/** End the connection and close the socket, that is open. The rings stay as they are. */
void uc_source_release(struct uc_source *source);

/** Close the socket and leave all rings. Idempotent. */
void uc_source_close(struct uc_source *source);

/** Give the source a turn in this or the next poll. */
void uc_source_wake(struct uc_source *source);

/** Start the deadline, or move it: @p delay_ms from now. */
void uc_source_expire_in(struct uc_source *source, uint64_t delay_ms);

/** Likewise, at a time. */
void uc_source_expire_at(struct uc_source *source, uint64_t deadline_ms);

/** There is no deadline any more. */
static inline void
uc_source_never_expire(struct uc_source *source)
{
    uc_list_remove(&source->timed_node);
}

#endif /* UC_NET_TURNS_H */
