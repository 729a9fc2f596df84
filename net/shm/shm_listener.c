/* SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <ucm/log.h>

#include "net/shm/shm_object.h"

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
            listen(fd, UC_ACCEPTOR_BACKLOG) != 0) {
        status = uc_log_errno(errno, "shm: listen on %s", listener->address);
        (void)close(fd);
        return status;
    }

    *fd_out = fd;
    return UC_OK;
}

static struct uc_fabric *
fabric_of(const struct uc_fabric_listener *listener)
{
    return uc_list_entry(listener->acceptor.source.turns, struct uc_fabric, turns);
}

static enum uc_status
greet(struct uc_acceptor *acceptor, int fd, struct uc_newcomer **newcomer_out,
        struct uc_source **source_out)
{
    struct uc_fabric_listener *listener =
            uc_list_entry(acceptor, struct uc_fabric_listener, acceptor);
    struct uc_shm_target *target = calloc(1, sizeof(*target));
    enum uc_status status;

    if (target == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "shm: no memory for a connection; free some");
    }

    uc_shm_endpoint_init(&target->base, fabric_of(listener), &uc_shm_target_ops);
    status = uc_shm_endpoint_watch(&target->base, fd);
    if (status != UC_OK) {
        free(target);
        return status;
    }

    target->base.state = UC_SHM_GREETING;
    target->ops = listener->ops;
    target->context = listener->context;
    fabric_of(listener)->endpoint_count++;
    *newcomer_out = &target->newcomer;
    *source_out = &target->base.source;
    return UC_OK;
}

static void
drop(struct uc_newcomer *newcomer)
{
    uc_shm_target_drop(uc_list_entry(newcomer, struct uc_shm_target, newcomer));
}

static const struct uc_acceptor_ops acceptor_ops = {
        .greet = greet,
        .drop = drop,
};

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

    uc_acceptor_init(&listener->acceptor, &fabric->turns, &acceptor_ops);
    (void)snprintf(listener->acceptor.name, sizeof(listener->acceptor.name), "shm");
    listener->ops = params->ops;
    listener->context = params->context;
    status = open_socket(listener, &fd);
    if (status != UC_OK) {
        goto err_free_listener;
    }
    status = uc_acceptor_watch(&listener->acceptor, fd);
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

void
uc_shm_listener_close(struct uc_fabric_listener *listener)
{
    if (listener == NULL) {
        return;
    }

    uc_acceptor_close(&listener->acceptor);
    fabric_of(listener)->listener_count--;
    free(listener);
}
