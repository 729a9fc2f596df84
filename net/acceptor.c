/* SPDX-License-Identifier: Apache-2.0 */

#include "net/acceptor.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <ucm/log.h>

enum {
    BATCH_COUNT = 16, /* accepted before others have their turn */
};

static struct uc_acceptor *
acceptor_of(struct uc_source *source)
{
    return uc_list_entry(source, struct uc_acceptor, source);
}

static void
enlist(struct uc_acceptor *acceptor, struct uc_newcomer *newcomer, struct uc_source *source)
{
    newcomer->acceptor = acceptor;
    uc_list_init(&newcomer->node);
    uc_list_add(&acceptor->newcomers, &newcomer->node);
    acceptor->newcomer_count++;
    uc_source_expire_in(source, UC_ACCEPTOR_NEWCOMER_MS);
}

void
uc_newcomer_leave(struct uc_newcomer *newcomer)
{
    if (newcomer->acceptor != NULL) {
        uc_list_remove(&newcomer->node);
        newcomer->acceptor->newcomer_count--;
        newcomer->acceptor = NULL;
    }
}

/* The peer that has been silent longest. */
static struct uc_newcomer *
oldest(const struct uc_acceptor *acceptor)
{
    return uc_list_entry(acceptor->newcomers.next, struct uc_newcomer, node);
}

static enum uc_status
greet(struct uc_acceptor *acceptor, int fd)
{
    struct uc_newcomer *newcomer = NULL;
    struct uc_source *source = NULL;
    enum uc_status status;

    if (acceptor->newcomer_count >= UC_ACCEPTOR_NEWCOMER_COUNT) {
        if (uc_turns_may_warn(acceptor->source.turns)) {
            uc_log_warn("%s: %d peers have not said hello, dropping the oldest", acceptor->name,
                    UC_ACCEPTOR_NEWCOMER_COUNT);
        }
        acceptor->ops->drop(oldest(acceptor));
    }

    status = acceptor->ops->greet(acceptor, fd, &newcomer, &source);
    if (status == UC_OK) {
        enlist(acceptor, newcomer, source);
    }
    return status;
}

/* Descriptors or memory have run out. Edge-triggered, so nothing spins meanwhile. */
static void
pause_accepting(struct uc_acceptor *acceptor, const char *why, const char *remedy)
{
    if (!acceptor->is_starved) {
        uc_log_error("%s: cannot accept: %s; %s; trying again every %d ms", acceptor->name, why,
                remedy, UC_ACCEPTOR_RETRY_MS);
        acceptor->is_starved = true;
    }
    acceptor->source.readable = false;
    uc_source_expire_in(&acceptor->source, UC_ACCEPTOR_RETRY_MS);
}

/* @return whether others may be waiting */
static bool
accept_one(struct uc_acceptor *acceptor, size_t *budget)
{
    int fd = accept4(acceptor->source.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

    if (fd < 0) {
        switch (errno) {
        case EAGAIN:
            acceptor->source.readable = false;
            return false;
        case EMFILE:
        case ENFILE:
        case ENOBUFS:
        case ENOMEM:
            pause_accepting(acceptor, strerror(errno),
                    "raise the limit of open files (ulimit -n) or free memory");
            return false;
        default: /* a fault of that one connection, or a signal */
            return true;
        }
    }

    *budget -= 1;
    if (greet(acceptor, fd) != UC_OK) {
        (void)close(fd);
        pause_accepting(acceptor, uc_last_error(), "the peer was turned away");
        return false;
    }
    acceptor->is_starved = false;
    return true;
}

static void
on_event(struct uc_source *source, uint32_t events)
{
    (void)events;
    source->readable = true;
}

static bool
on_turn(struct uc_source *source, size_t *budget)
{
    struct uc_acceptor *acceptor = acceptor_of(source);

    for (size_t count = 0; count < BATCH_COUNT && source->readable && *budget > 0; count++) {
        if (!accept_one(acceptor, budget)) {
            return false;
        }
    }
    return source->readable;
}

/* The pause is over. */
static void
on_expire(struct uc_source *source)
{
    source->readable = true;
    uc_source_wake(source);
}

static const struct uc_source_ops source_ops = {
        .event = on_event,
        .turn = on_turn,
        .expire = on_expire,
};

void
uc_acceptor_init(
        struct uc_acceptor *acceptor, struct uc_turns *turns, const struct uc_acceptor_ops *ops)
{
    uc_source_init(&acceptor->source, turns, &source_ops);
    acceptor->ops = ops;
    uc_list_init(&acceptor->newcomers);
    acceptor->newcomer_count = 0;
    acceptor->is_starved = false;
    acceptor->name[0] = '\0';
}

enum uc_status
uc_acceptor_watch(struct uc_acceptor *acceptor, int fd)
{
    return uc_source_watch(&acceptor->source, fd, EPOLLIN);
}

void
uc_acceptor_close(struct uc_acceptor *acceptor)
{
    while (acceptor->newcomer_count > 0) {
        acceptor->ops->drop(oldest(acceptor));
    }
    uc_source_close(&acceptor->source);
}
