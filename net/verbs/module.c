/* SPDX-License-Identifier: Apache-2.0 */

#include "net/verbs/module.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <ucm/log.h>

#include "net/verbs/verbs.h"

static enum uc_status
watch(struct uc_fabric *fabric, int fd, const char *what)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    int flags = fcntl(fd, F_GETFL);

    /* Reading events until there are none must not sleep. */
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0) {
        return uc_log_errno(errno, "verbs %s: %s: fcntl", fabric->device_name, what);
    }
    if (epoll_ctl(fabric->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0) {
        return uc_log_errno(errno, "verbs %s: %s: epoll_ctl", fabric->device_name, what);
    }
    return UC_OK;
}

static enum uc_status
watch_all(struct uc_fabric *fabric)
{
    enum uc_status status = watch(fabric, fabric->cm_channel->fd, "rdma_cm events");

    if (status == UC_OK) {
        status = watch(fabric, fabric->completion_channel->fd, "completion events");
    }
    if (status == UC_OK) {
        status = watch(fabric, fabric->device->async_fd, "device events");
    }
    return status;
}

/* What a fabric holds beside its device. Undone by channels_close, also in part. */
static enum uc_status
channels_open(struct uc_fabric *fabric)
{
    fabric->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (fabric->epoll_fd < 0) {
        return uc_log_errno(errno, "verbs %s: epoll_create1", fabric->device_name);
    }
    fabric->cm_channel = rdma_create_event_channel();
    if (fabric->cm_channel == NULL) {
        return uc_log_errno(errno, "verbs %s: rdma_create_event_channel", fabric->device_name);
    }
    fabric->completion_channel = ibv_create_comp_channel(fabric->device);
    if (fabric->completion_channel == NULL) {
        return uc_log_errno(errno, "verbs %s: ibv_create_comp_channel", fabric->device_name);
    }
    fabric->idle_cq = ibv_create_cq(fabric->device, 1, NULL, NULL, 0);
    if (fabric->idle_cq == NULL) {
        return uc_log_errno(errno, "verbs %s: ibv_create_cq", fabric->device_name);
    }
    return watch_all(fabric);
}

static void
channels_close(struct uc_fabric *fabric)
{
    if (fabric->idle_cq != NULL) {
        (void)ibv_destroy_cq(fabric->idle_cq);
    }
    if (fabric->completion_channel != NULL) {
        (void)ibv_destroy_comp_channel(fabric->completion_channel);
    }
    if (fabric->cm_channel != NULL) {
        rdma_destroy_event_channel(fabric->cm_channel);
    }
    if (fabric->epoll_fd >= 0) {
        (void)close(fabric->epoll_fd);
    }
}

static enum uc_status
fabric_open(const struct uc_fabric_config *config, struct uc_fabric **fabric_out)
{
    struct uc_fabric *fabric = calloc(1, sizeof(*fabric));
    enum uc_status status;

    if (fabric == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "verbs: no memory for a fabric");
    }
    fabric->epoll_fd = -1;
    uc_list_init(&fabric->listeners);
    uc_list_init(&fabric->pending);
    uc_list_init(&fabric->active);
    uc_list_init(&fabric->passive);
    uc_list_init(&fabric->failed);
    uc_list_init(&fabric->released);

    fabric->pair_count = config->connections == 0 ? UC_VERBS_PAIRS_DEFAULT : config->connections;
    fabric->pair_limit = config->connections == 0 ? UC_VERBS_PAIRS_MAX : config->connections;
    if (config->connections > UC_VERBS_PAIRS_MAX) {
        status = uc_error(UC_ERR_INVALID_PARAM,
                "verbs: %u queue pairs per endpoint, 1 to %d are possible", config->connections,
                UC_VERBS_PAIRS_MAX);
        goto err_free;
    }
    status = uc_verbs_device_open(config, fabric);
    if (status != UC_OK) {
        goto err_free;
    }
    status = channels_open(fabric);
    if (status != UC_OK) {
        goto err_close_channels;
    }

    uc_log_debug("verbs: device %s", fabric->device_name);
    *fabric_out = fabric;
    return UC_OK;

err_close_channels:
    channels_close(fabric);
    (void)ibv_close_device(fabric->device);
err_free:
    free(fabric->name);
    free(fabric);
    return status;
}

static void
fabric_close(struct uc_fabric *fabric)
{
    if (fabric == NULL) {
        return;
    }

    assert(fabric->depth == 0);
    assert(fabric->endpoint_count == 0);
    assert(fabric->domain_count == 0);
    assert(uc_list_is_empty(&fabric->listeners));
    channels_close(fabric);
    (void)ibv_close_device(fabric->device);
    free(fabric->name);
    free(fabric);
}

static int
fabric_event_fd(const struct uc_fabric *fabric)
{
    return fabric->epoll_fd;
}

static const struct uc_fabric_ops verbs_ops = {
        .abi_version = UC_FABRIC_ABI_VERSION,
        .struct_size = sizeof(struct uc_fabric_ops),
        .name = "verbs",
        .open = fabric_open,
        .close = fabric_close,
        .caps = uc_verbs_fabric_caps,
        .domain_open = uc_verbs_domain_open,
        .domain_close = uc_verbs_domain_close,
        .region_register = uc_verbs_region_register,
        .region_deregister = uc_verbs_region_deregister,
        .region_key = uc_verbs_region_key,
        .listen = uc_verbs_listen,
        .listener_port = uc_verbs_listener_port,
        .listener_close = uc_verbs_listener_close,
        .connect = uc_verbs_connect,
        .fence = uc_verbs_endpoint_fence,
        .disconnect = uc_verbs_endpoint_disconnect,
        .post = uc_verbs_post,
        .poll = uc_verbs_fabric_poll,
        .arm = uc_verbs_fabric_arm,
        .event_fd = fabric_event_fd,
        .next_deadline_ms = uc_verbs_fabric_next_deadline_ms,
};

const struct uc_fabric_ops *
uc_fabric_module(void)
{
    return &verbs_ops;
}
