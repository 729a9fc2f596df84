/* SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <ucm/log.h>

#include "net/shm/shm_object.h"

enum {
    BACKLOG = 1024,
};

static enum uc_status
open_socket(struct uc_fabric_listener *listener, int *fd_out)
{
    struct uc_shm_address address;
    enum uc_status status = uc_shm_address_make(listener->address, &address);
    int fd;

    if (status != UC_OK) {
        return status;
    }

    fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return uc_log_errno(errno, "shm: socket");
    }
    if (bind(fd, (const struct sockaddr *)&address.socket, address.length_bytes) != 0 ||
            listen(fd, BACKLOG) != 0) {
        status = uc_log_errno(errno, "shm: listen on %s", listener->address);
        (void)close(fd);
        return status;
    }

    *fd_out = fd;
    return UC_OK;
}

enum uc_status
uc_shm_listen(struct uc_fabric *fabric, const struct uc_fabric_listen *params,
        struct uc_fabric_listener **listener_out)
{
    struct uc_fabric_listener *listener = calloc(1, sizeof(*listener));
    enum uc_status status;
    int fd = -1;

    if (listener == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "shm: no memory for a listener; free some");
    }

    uc_shm_source_init(&listener->source, fabric, UC_SHM_LISTENER);
    listener->ops = params->ops;
    listener->context = params->context;
    status = open_socket(listener, &fd);
    if (status != UC_OK) {
        goto err_free_listener;
    }
    status = uc_shm_source_watch(&listener->source, fd);
    if (status != UC_OK) {
        goto err_close_fd;
    }

    fabric->listener_count++;
    *listener_out = listener;
    return UC_OK;

err_close_fd:
    (void)close(fd);
err_free_listener:
    free(listener);
    return status;
}

uint16_t
uc_shm_listener_port(const struct uc_fabric_listener *listener)
{
    (void)listener;
    return 0;
}

const char *
uc_shm_listener_address(const struct uc_fabric_listener *listener)
{
    return listener->address;
}

/* The peer of this listener that has been silent longest, or NULL. Deadlines are in order of age. */
static struct uc_shm_target *
oldest_half_open(const struct uc_fabric_listener *listener)
{
    uc_list_for_each (node, &listener->source.fabric->timed) {
        struct uc_shm_source *source = uc_list_entry(node, struct uc_shm_source, timed_node);

        if (source->kind == UC_SHM_TARGET &&
                ((struct uc_shm_target *)source)->listener == listener) {
            return (struct uc_shm_target *)source;
        }
    }
    return NULL;
}

void
uc_shm_listener_close(struct uc_fabric_listener *listener)
{
    struct uc_shm_target *target;

    if (listener == NULL) {
        return;
    }

    while ((target = oldest_half_open(listener)) != NULL) {
        uc_shm_target_drop(target);
    }
    uc_shm_source_close(&listener->source);
    listener->source.fabric->listener_count--;
    free(listener);
}

static enum uc_status
greet(struct uc_fabric_listener *listener, int fd)
{
    struct uc_fabric *fabric = listener->source.fabric;
    struct uc_shm_target *target;
    enum uc_status status;

    if (listener->half_open_count >= UC_SHM_HALF_OPEN_COUNT) {
        if (uc_shm_fabric_may_warn(fabric)) {
            uc_log_warn("shm: %d peers have not said hello, dropping the oldest",
                    UC_SHM_HALF_OPEN_COUNT);
        }
        uc_shm_target_drop(oldest_half_open(listener));
    }

    target = calloc(1, sizeof(*target));
    if (target == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "shm: no memory for a connection; free some");
    }

    uc_shm_source_init(&target->base.source, fabric, UC_SHM_TARGET);
    status = uc_shm_source_watch(&target->base.source, fd);
    if (status != UC_OK) {
        free(target);
        return status;
    }

    target->base.state = UC_SHM_GREETING;
    target->listener = listener;
    target->ops = listener->ops;
    target->context = listener->context;
    listener->half_open_count++;
    fabric->endpoint_count++;
    uc_shm_source_set_deadline(&target->base.source,
            uc_time_add_ms(uc_clock_now_ms(&fabric->clock), UC_SHM_HALF_OPEN_MS));
    return UC_OK;
}

/* Descriptors or memory have run out. Edge-triggered, so nothing spins meanwhile. */
static void
pause_accepting(struct uc_fabric_listener *listener, const char *why, const char *remedy)
{
    struct uc_fabric *fabric = listener->source.fabric;

    if (!listener->is_starved) {
        uc_log_error("shm: cannot accept: %s; %s; trying again every %d ms", why, remedy,
                UC_SHM_ACCEPT_RETRY_MS);
        listener->is_starved = true;
    }
    listener->source.readable = false;
    uc_shm_source_set_deadline(&listener->source,
            uc_time_add_ms(uc_clock_now_ms(&fabric->clock), UC_SHM_ACCEPT_RETRY_MS));
}

void
uc_shm_listener_expire(struct uc_fabric_listener *listener)
{
    listener->source.readable = true;
    uc_shm_source_wake(&listener->source);
}

bool
uc_shm_listener_turn(struct uc_fabric_listener *listener, size_t *budget)
{
    for (size_t count = 0; count < (size_t)UC_SHM_ACCEPT_BATCH_COUNT; count++) {
        int fd;

        if (!listener->source.readable) {
            return false;
        }
        if (*budget == 0) {
            return true;
        }

        fd = accept4(listener->source.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            switch (errno) {
            case EAGAIN:
                listener->source.readable = false;
                return false;
            case EMFILE:
            case ENFILE:
            case ENOBUFS:
            case ENOMEM:
                pause_accepting(listener, strerror(errno),
                        "raise the limit of open files (ulimit -n) or free memory");
                return false;
            default: /* a fault of that one connection, or a signal */
                continue;
            }
        }

        *budget -= 1;
        if (greet(listener, fd) != UC_OK) {
            (void)close(fd);
            pause_accepting(listener, uc_last_error(), "the peer was turned away");
            return false;
        }
        listener->is_starved = false;
    }

    return true;
}
