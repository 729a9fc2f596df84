/* SPDX-License-Identifier: Apache-2.0 */

#include "client/device/cuda.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include <ucm/log.h>

#include "client/device/cuda_driver.h"

struct uc_device {
    const struct uc_cuda_driver *driver;
    void *context; /* the primary one, which the engine's runtime uses as well */
    int device;
    bool is_ordered; /* work sees what a NIC wrote before it was given */
    bool can_flush;  /* else it does so after a flush */
};

struct uc_device_ticket {
    struct uc_device *device;
    void *stream;
    void *event;
};

static enum uc_status
fail(const struct uc_cuda_driver *driver, const char *call, int error)
{
    return uc_error(UC_ERR_OS_API, "cuda: %s: %s", call, uc_cuda_driver_error(driver, error));
}

/* Every call that needs a context runs between these two, so that the thread keeps its own. */
static enum uc_status
enter(const struct uc_device *device)
{
    int error = device->driver->context_push(device->context);

    return error == UC_CUDA_SUCCESS ? UC_OK : fail(device->driver, "cuCtxPushCurrent", error);
}

static enum uc_status
leave(const struct uc_device *device, const char *call, int error)
{
    void *context = NULL;

    (void)device->driver->context_pop(&context);
    return error == UC_CUDA_SUCCESS ? UC_OK : fail(device->driver, call, error);
}

/* Whether it is a device's memory, all of one allocation, and of which device. */
static enum uc_status
find_range(const struct uc_cuda_driver *driver, uintptr_t address, uint64_t length_bytes,
        int *ordinal_out)
{
    unsigned type = 0;
    uintptr_t base = 0;
    size_t bytes = 0;
    int ordinal = 0;

    if (driver->pointer_get(&type, UC_CUDA_MEMORY_TYPE, address) != UC_CUDA_SUCCESS ||
            type != UC_CUDA_TYPE_DEVICE ||
            driver->pointer_get(&ordinal, UC_CUDA_DEVICE_ORDINAL, address) != UC_CUDA_SUCCESS) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "cuda: 0x%" PRIxPTR " is no memory of a device; register host memory as kind 0",
                address);
    }
    if (driver->range_get(&base, &bytes, address) != UC_CUDA_SUCCESS || address < base ||
            address - base > bytes || length_bytes > bytes - (address - base)) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "cuda: %" PRIu64 " bytes at 0x%" PRIxPTR
                " do not lie in one allocation; register each by itself",
                length_bytes, address);
    }

    *ordinal_out = ordinal;
    return UC_OK;
}

/* How the device orders what a NIC writes; older drivers know neither attribute. */
static void
find_ordering(struct uc_device *device)
{
    const struct uc_cuda_driver *driver = device->driver;
    int ordering = 0;
    int options = 0;

    if (driver->device_attribute(&ordering, UC_CUDA_WRITES_ORDERING, device->device) ==
            UC_CUDA_SUCCESS) {
        device->is_ordered = ordering >= UC_CUDA_WRITES_TO_OWNER;
    }
    if (driver->flush_writes != NULL && driver->device_attribute(&options, UC_CUDA_FLUSH_OPTIONS,
                                                device->device) == UC_CUDA_SUCCESS) {
        device->can_flush = (options & UC_CUDA_FLUSH_BY_HOST) != 0;
    }
}

static enum uc_status
cuda_open(const void *address, uint64_t length_bytes, struct uc_device **device_out)
{
    const struct uc_cuda_driver *driver = NULL;
    enum uc_status status = uc_cuda_driver_get(&driver);
    struct uc_device *device;
    int ordinal = 0;
    int error;

    if (status == UC_OK) {
        status = find_range(driver, (uintptr_t)address, length_bytes, &ordinal);
    }
    if (status != UC_OK) {
        return status;
    }

    device = calloc(1, sizeof(*device));
    if (device == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "cuda: no memory for a device");
    }
    device->driver = driver;
    error = driver->device_get(&device->device, ordinal);
    if (error != UC_CUDA_SUCCESS) {
        status = fail(driver, "cuDeviceGet", error);
        goto err_free;
    }
    error = driver->context_retain(&device->context, device->device);
    if (error != UC_CUDA_SUCCESS) {
        status = fail(driver, "cuDevicePrimaryCtxRetain", error);
        goto err_free;
    }
    find_ordering(device);

    *device_out = device;
    return UC_OK;

err_free:
    free(device);
    return status;
}

static void
cuda_close(struct uc_device *device)
{
    if (device != NULL) {
        (void)device->driver->context_release(device->device);
        free(device);
    }
}

/* A dma-buf stands for whole pages: the range is widened to them, and the offset says where it begins. */
static enum uc_status
cuda_export_file(struct uc_device *device, const void *address, uint64_t length_bytes,
        struct uc_device_file *file_out)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t start = (uintptr_t)address & ~(page - 1);
    uintptr_t offset = (uintptr_t)address - start;
    size_t bytes = (size_t)((offset + length_bytes + page - 1) & ~(uint64_t)(page - 1));
    int on = 1;
    int fd = -1;
    enum uc_status status;

    /* Copies of the engine end before a NIC is told to read what they wrote, by a file or by the address. */
    (void)device->driver->pointer_set(&on, UC_CUDA_SYNC_MEMOPS, (uintptr_t)address);
    if (device->driver->range_file == NULL) {
        return uc_error(UC_ERR_UNSUPPORTED, "cuda: this driver exports no dma-buf (CUDA 11.7)");
    }
    status = enter(device);
    if (status != UC_OK) {
        return status;
    }
    status = leave(device, "cuMemGetHandleForAddressRange",
            device->driver->range_file(&fd, start, bytes, UC_CUDA_RANGE_DMA_BUF, 0));
    if (status != UC_OK) {
        return uc_error(UC_ERR_UNSUPPORTED, "%s", uc_last_error());
    }

    file_out->fd = fd;
    file_out->offset_bytes = offset;
    return UC_OK;
}

static enum uc_status
cuda_settle(struct uc_device *device)
{
    enum uc_status status;

    if (device->is_ordered) {
        return UC_OK;
    }
    if (!device->can_flush) {
        return uc_error(UC_ERR_UNSUPPORTED,
                "cuda: device %d does not order what a NIC writes, and this driver cannot flush it",
                device->device);
    }
    status = enter(device);
    if (status != UC_OK) {
        return status;
    }
    return leave(device, "cuFlushGPUDirectRDMAWrites",
            device->driver->flush_writes(UC_CUDA_FLUSH_CURRENT_CONTEXT, UC_CUDA_WRITES_TO_OWNER));
}

static enum uc_status
cuda_register_host(struct uc_device *device, void *address, uint64_t length_bytes)
{
    enum uc_status status = enter(device);

    if (status != UC_OK) {
        return status;
    }
    return leave(device, "cuMemHostRegister",
            device->driver->host_register(address, (size_t)length_bytes, UC_CUDA_HOST_PORTABLE));
}

static void
cuda_unregister_host(struct uc_device *device, void *address)
{
    if (enter(device) == UC_OK) {
        (void)leave(device, "cuMemHostUnregister", device->driver->host_unregister(address));
    }
}

static enum uc_status
cuda_ticket_create(struct uc_device *device, struct uc_device_ticket **ticket_out)
{
    const struct uc_cuda_driver *driver = device->driver;
    struct uc_device_ticket *ticket = calloc(1, sizeof(*ticket));
    enum uc_status status;
    int error;

    if (ticket == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "cuda: no memory for a ticket");
    }
    ticket->device = device;
    status = enter(device);
    if (status != UC_OK) {
        goto err_free;
    }
    error = driver->stream_create(&ticket->stream, UC_CUDA_STREAM_NON_BLOCKING);
    if (error != UC_CUDA_SUCCESS) {
        status = leave(device, "cuStreamCreate", error);
        goto err_free;
    }
    error = driver->event_create(&ticket->event, UC_CUDA_EVENT_DISABLE_TIMING);
    if (error != UC_CUDA_SUCCESS) {
        (void)driver->stream_destroy(ticket->stream);
    }
    status = leave(device, "cuEventCreate", error);
    if (status != UC_OK) {
        goto err_free;
    }

    *ticket_out = ticket;
    return UC_OK;

err_free:
    free(ticket);
    return status;
}

static void
cuda_ticket_destroy(struct uc_device_ticket *ticket)
{
    if (ticket == NULL) {
        return;
    }

    if (enter(ticket->device) == UC_OK) {
        (void)ticket->device->driver->event_destroy(ticket->event);
        (void)leave(ticket->device, "cuStreamDestroy",
                ticket->device->driver->stream_destroy(ticket->stream));
    }
    free(ticket);
}

static enum uc_status
cuda_copy(struct uc_device_ticket *ticket, bool to_device, void *device_address, void *host_address,
        uint64_t length_bytes)
{
    const struct uc_cuda_driver *driver = ticket->device->driver;
    uintptr_t address = (uintptr_t)device_address;
    enum uc_status status = enter(ticket->device);
    int error;

    if (status != UC_OK) {
        return status;
    }
    error = to_device
                    ? driver->copy_in(address, host_address, (size_t)length_bytes, ticket->stream)
                    : driver->copy_out(host_address, address, (size_t)length_bytes, ticket->stream);
    return leave(ticket->device, to_device ? "cuMemcpyHtoDAsync" : "cuMemcpyDtoHAsync", error);
}

/*
 * The event does not tell any more when copies end. Callers take the memory back after an error, so the stream has to
 * be empty by then; a device on which even waiting fails runs nothing.
 */
static void
wait_for_copies(const struct uc_device_ticket *ticket)
{
    (void)ticket->device->driver->stream_wait(ticket->stream);
}

static enum uc_status
cuda_mark(struct uc_device_ticket *ticket)
{
    enum uc_status status = enter(ticket->device);

    if (status == UC_OK) {
        status = leave(ticket->device, "cuEventRecord",
                ticket->device->driver->event_record(ticket->event, ticket->stream));
    }
    if (status != UC_OK) {
        wait_for_copies(ticket);
    }
    return status;
}

static enum uc_status
query(const struct uc_cuda_driver *driver, void *event)
{
    int error = driver->event_query(event);

    if (error == UC_CUDA_NOT_READY) {
        return UC_ERR_RETRY;
    }
    return error == UC_CUDA_SUCCESS ? UC_OK : fail(driver, "cuEventQuery", error);
}

static enum uc_status
cuda_poll(struct uc_device_ticket *ticket)
{
    enum uc_status status = query(ticket->device->driver, ticket->event);

    if (status != UC_OK && status != UC_ERR_RETRY) {
        wait_for_copies(ticket);
    }
    return status;
}

static enum uc_status
cuda_event_poll(void *context, uint64_t handle)
{
    const struct uc_cuda_driver *driver = NULL;
    enum uc_status status = uc_cuda_driver_get(&driver);

    (void)context;
    /* The handle is the engine's CUevent, an address of this process. */
    return status != UC_OK ? status : query(driver, (void *)(uintptr_t)handle);
}

const struct uc_device_ops uc_cuda_device_ops = {
        .name = "cuda",
        .kind = UC_MEMORY_CUDA,
        .open = cuda_open,
        .close = cuda_close,
        .export_file = cuda_export_file,
        .settle = cuda_settle,
        .register_host = cuda_register_host,
        .unregister_host = cuda_unregister_host,
        .ticket_create = cuda_ticket_create,
        .ticket_destroy = cuda_ticket_destroy,
        .copy = cuda_copy,
        .mark = cuda_mark,
        .poll = cuda_poll,
        .event_poll = cuda_event_poll,
        .has_events = uc_cuda_driver_is_loaded,
};
