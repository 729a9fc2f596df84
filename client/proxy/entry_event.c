/* SPDX-License-Identifier: Apache-2.0 */

#include "client/proxy/entry_event.h"

#include <errno.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <ucm/log.h>

static enum uc_status
watch(int epoll_fd, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0) {
        return uc_log_errno(errno, "event descriptor: epoll_ctl on %d", fd);
    }

    return UC_OK;
}

static enum uc_status
make_combined(struct uc_entry_data *data, int store_fd)
{
    data->finished_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (data->finished_fd < 0) {
        return uc_log_errno(errno, "event descriptor: eventfd");
    }
    data->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (data->epoll_fd < 0) {
        return uc_log_errno(errno, "event descriptor: epoll_create1");
    }
    if (watch(data->epoll_fd, data->finished_fd) != UC_OK) {
        return UC_ERR_OS_API;
    }

    return watch(data->epoll_fd, store_fd);
}

int
uc_entry_event_fd(struct uc_entry *entry)
{
    struct uc_entry_data *data = &entry->data;
    int store_fd;

    if (data->epoll_fd >= 0) {
        return data->epoll_fd;
    }
    store_fd = uc_store_event_fd(entry->store);
    if (store_fd < 0 || entry->prefetchable != NULL) {
        return store_fd;
    }

    if (make_combined(data, store_fd) != UC_OK) {
        uc_entry_event_fini(data);
        return -1;
    }
    uc_entry_event_update(data);
    return data->epoll_fd;
}

void
uc_entry_event_update(struct uc_entry_data *data)
{
    uint64_t value = 1;

    if (data->finished_fd < 0) {
        return;
    }

    /* One write makes it readable, one read makes it not; both are harmless when it is so already. */
    if (data->finished.alive_count != 0) {
        ssize_t written = write(data->finished_fd, &value, sizeof(value));

        (void)written; /* EAGAIN: the counter is full, hence readable */
    } else {
        ssize_t taken = read(data->finished_fd, &value, sizeof(value));

        (void)taken; /* EAGAIN: it was not readable */
    }
}

void
uc_entry_event_fini(struct uc_entry_data *data)
{
    if (data->epoll_fd >= 0) {
        (void)close(data->epoll_fd);
        data->epoll_fd = -1;
    }
    if (data->finished_fd >= 0) {
        (void)close(data->finished_fd);
        data->finished_fd = -1;
    }
}
