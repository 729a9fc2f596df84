/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file cuda_driver.h
 * The few calls of the CUDA driver interface that are used, declared here so that building needs neither its header
 * nor its library. Names behind the dot are those of the symbols.
 */

#ifndef UC_DEVICE_CUDA_DRIVER_H
#define UC_DEVICE_CUDA_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/compiler.h>
#include <ucm/status.h>

/** Numbers of the driver's interface. */
enum {
    UC_CUDA_SUCCESS = 0,
    UC_CUDA_NOT_READY = 600,
    UC_CUDA_MEMORY_TYPE = 2, /* attributes of a pointer */
    UC_CUDA_SYNC_MEMOPS = 6,
    UC_CUDA_DEVICE_ORDINAL = 9,
    UC_CUDA_TYPE_DEVICE = 2, /* values of UC_CUDA_MEMORY_TYPE */
    UC_CUDA_STREAM_NON_BLOCKING = 1,
    UC_CUDA_EVENT_DISABLE_TIMING = 2,
    UC_CUDA_HOST_PORTABLE = 1,
    UC_CUDA_RANGE_DMA_BUF = 1,
    UC_CUDA_FLUSH_OPTIONS = 117, /* attributes of a device */
    UC_CUDA_WRITES_ORDERING = 118,
    UC_CUDA_FLUSH_BY_HOST = 1,         /* a bit of UC_CUDA_FLUSH_OPTIONS */
    UC_CUDA_FLUSH_CURRENT_CONTEXT = 0, /* target */
    UC_CUDA_WRITES_TO_OWNER = 100, /* scope, and the least ordering that needs no flush for it */
};

/* X(member, symbol, parameters): every one is needed. */
#define UC_CUDA_CALLS(X)                                                                           \
    X(init, "cuInit", (unsigned flags))                                                            \
    X(device_get, "cuDeviceGet", (int *device, int ordinal))                                       \
    X(device_attribute, "cuDeviceGetAttribute", (int *value, int attribute, int device))           \
    X(context_retain, "cuDevicePrimaryCtxRetain", (void **context, int device))                    \
    X(context_release, "cuDevicePrimaryCtxRelease_v2", (int device))                               \
    X(context_push, "cuCtxPushCurrent_v2", (void *context))                                        \
    X(context_pop, "cuCtxPopCurrent_v2", (void **context))                                         \
    X(pointer_get, "cuPointerGetAttribute", (void *value, int attribute, uintptr_t pointer))       \
    X(pointer_set, "cuPointerSetAttribute", (const void *value, int attribute, uintptr_t pointer)) \
    X(range_get, "cuMemGetAddressRange_v2",                                                        \
            (uintptr_t * base, size_t * length, uintptr_t pointer))                                \
    X(host_register, "cuMemHostRegister_v2", (void *address, size_t length, unsigned flags))       \
    X(host_unregister, "cuMemHostUnregister", (void *address))                                     \
    X(stream_create, "cuStreamCreate", (void **stream, unsigned flags))                            \
    X(stream_destroy, "cuStreamDestroy_v2", (void *stream))                                        \
    X(stream_wait, "cuStreamSynchronize", (void *stream))                                          \
    X(event_create, "cuEventCreate", (void **event, unsigned flags))                               \
    X(event_destroy, "cuEventDestroy_v2", (void *event))                                           \
    X(event_record, "cuEventRecord", (void *event, void *stream))                                  \
    X(event_query, "cuEventQuery", (void *event))                                                  \
    X(copy_in, "cuMemcpyHtoDAsync_v2",                                                             \
            (uintptr_t to, const void *from, size_t length, void *stream))                         \
    X(copy_out, "cuMemcpyDtoHAsync_v2", (void *to, uintptr_t from, size_t length, void *stream))   \
    X(error_name, "cuGetErrorName", (int error, const char **name))

/* Since CUDA 11.7 and 11.3; NULL where the driver is older. */
#define UC_CUDA_OPTIONAL_CALLS(X)                                                                 \
    X(range_file, "cuMemGetHandleForAddressRange",                                                \
            (void *handle, uintptr_t pointer, size_t length, int type, unsigned long long flags)) \
    X(flush_writes, "cuFlushGPUDirectRDMAWrites", (int target, int scope))

#define UC_CUDA_MEMBER_(member, symbol, parameters) int(*member) parameters;
struct uc_cuda_driver {
    UC_CUDA_CALLS(UC_CUDA_MEMBER_)
    UC_CUDA_OPTIONAL_CALLS(UC_CUDA_MEMBER_)
};
#undef UC_CUDA_MEMBER_

/**
 * Open the driver, once per process; it stays open.
 *
 * @retval UC_ERR_UNSUPPORTED  not installed, too old, or without a device
 */
UC_MUST_CHECK enum uc_status uc_cuda_driver_get(const struct uc_cuda_driver **driver_out);

/** @return whether this process has loaded the driver already. Loads nothing. */
bool uc_cuda_driver_is_loaded(void);

/** @return the driver's name of an error; static storage. */
const char *uc_cuda_driver_error(const struct uc_cuda_driver *driver, int error);

#endif /* UC_DEVICE_CUDA_DRIVER_H */
