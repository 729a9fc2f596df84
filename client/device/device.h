/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file device.h
 * Memory that the processor cannot touch, as stores see it: what a transport can register of it, copies to and from
 * host memory, and events of the engine. A table per kind of memory; the library behind it is looked for at run time.
 *
 * Threads: a device is for any thread, a ticket for one at a time. The calling thread's own use of the device is left
 * as it was (CUDA: its current context).
 * Data path: copy, mark, poll and event_poll allocate nothing and do not block.
 */

#ifndef UC_DEVICE_DEVICE_H
#define UC_DEVICE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/block.h>
#include <ucm/compiler.h>
#include <ucm/status.h>

struct uc_device;
struct uc_device_ticket;

/** A file that stands for a range of device memory (dma-buf). A plain value; the descriptor is its owner's. */
struct uc_device_file {
    int fd;
    uint64_t offset_bytes; /* of the range in it */
};

struct uc_device_ops {
    const char *name;
    enum uc_memory_kind kind;

    /**
     * The device that a range lies on. Devices are shared: each open is closed once.
     *
     * @retval UC_ERR_UNSUPPORTED    the library is not there, or too old; the text says which
     * @retval UC_ERR_INVALID_PARAM  the range is no memory of a device, or not of one allocation
     */
    enum uc_status (*open)(
            const void *address, uint64_t length_bytes, struct uc_device **device_out);
    void (*close)(struct uc_device *device);

    /** @retval UC_ERR_UNSUPPORTED  this device or driver exports none. The caller closes the descriptor. */
    enum uc_status (*export_file)(struct uc_device *device, const void *address,
            uint64_t length_bytes, struct uc_device_file *file_out);

    /**
     * What others (a NIC) have written into memory of the device is seen by all work that it is given from now on.
     * Data path: microseconds, and nothing on devices that keep that order by themselves.
     *
     * @retval UC_ERR_UNSUPPORTED  this device or driver cannot promise it
     */
    enum uc_status (*settle)(struct uc_device *device);

    /** Make host memory known to the device, so that copies run beside the processor. Before its first copy. */
    enum uc_status (*register_host)(struct uc_device *device, void *address, uint64_t length_bytes);
    void (*unregister_host)(struct uc_device *device, void *address);

    /** What copies are followed with. */
    enum uc_status (*ticket_create)(struct uc_device *device, struct uc_device_ticket **ticket_out);
    /** No copy may be under way. NULL is allowed. */
    void (*ticket_destroy)(struct uc_device_ticket *ticket);

    /** Start a copy; @p host lies in registered memory. After a failure earlier ones still run: mark them. */
    enum uc_status (*copy)(struct uc_device_ticket *ticket, bool to_device, void *device_address,
            void *host_address, uint64_t length_bytes);
    /** Let the ticket stand for the copies that were started. After a failure none is under way: it waits for them. */
    enum uc_status (*mark)(struct uc_device_ticket *ticket);
    /** @retval UC_ERR_RETRY  copies are under way; any other answer: none is, and none will be; to give an error, it waits */
    enum uc_status (*poll)(struct uc_device_ticket *ticket);

    /** for events of the engine: Ok has fired, Retry not yet, else why it never will. */
    enum uc_status (*event_poll)(void *context, uint64_t handle);
    /** @return whether event_poll can be asked: this process uses such a device. Starts nothing. */
    bool (*has_events)(void);
};

/** @return the table of a kind of memory, or NULL. */
const struct uc_device_ops *uc_device_find(enum uc_memory_kind kind);

#endif /* UC_DEVICE_DEVICE_H */
