/* SPDX-License-Identifier: Apache-2.0 */

/* The calls of the driver. Numbers are those of its interface. */

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test/fake/fake_cuda.h"
#include "test/fake/fake_cuda_internal.h"

enum {
    INVALID_VALUE = 1,
    INVALID_CONTEXT = 201,
    NOT_READY = 600,
    ILLEGAL_ADDRESS = 700,
    NOT_SUPPORTED = 801,
    MEMORY_TYPE = 2, /* attributes of a pointer */
    TYPE_DEVICE = 2,
    SYNC_MEMOPS = 6,
    DEVICE_ORDINAL = 9,
    FLUSH_OPTIONS = 117, /* attributes of the device */
    WRITES_ORDERING = 118,
};

static char context; /* its address is the context */

static _Thread_local size_t pushed_count;

/* The driver's calls; each is declared because no header of CUDA is there. */
int cuInit(unsigned flags);
int cuDeviceGet(int *device, int ordinal);
int cuDeviceGetAttribute(int *value, int attribute, int device);
int cuFlushGPUDirectRDMAWrites(int target, int scope);
int cuDevicePrimaryCtxRetain(void **context_out, int device);
int cuDevicePrimaryCtxRelease_v2(int device);
int cuCtxPushCurrent_v2(void *pushed);
int cuCtxPopCurrent_v2(void **context_out);
int cuPointerGetAttribute(void *value, int attribute, uintptr_t pointer);
int cuPointerSetAttribute(const void *value, int attribute, uintptr_t pointer);
int cuMemGetAddressRange_v2(uintptr_t *base, size_t *length, uintptr_t pointer);
int cuMemHostRegister_v2(void *address, size_t length, unsigned flags);
int cuMemHostUnregister(void *address);
int cuStreamCreate(void **stream_out, unsigned flags);
int cuStreamDestroy_v2(void *stream);
int cuStreamSynchronize(void *stream);
int cuEventCreate(void **event_out, unsigned flags);
int cuEventDestroy_v2(void *event);
int cuEventRecord(void *event, void *stream);
int cuEventQuery(void *event);
int cuMemcpyHtoDAsync_v2(uintptr_t to, const void *from, size_t length, void *stream);
int cuMemcpyDtoHAsync_v2(void *to, uintptr_t from, size_t length, void *stream);
int cuGetErrorName(int error, const char **name);
int cuMemGetHandleForAddressRange(
        void *handle, uintptr_t pointer, size_t length, int type, unsigned long long flags);

static void
count_object(bool is_new)
{
    (void)pthread_mutex_lock(&fake_cuda.lock);
    fake_cuda.object_count += is_new ? 1 : SIZE_MAX;
    (void)pthread_mutex_unlock(&fake_cuda.lock);
}

size_t
fake_cuda_pushed(void)
{
    return pushed_count;
}

static bool
is_refused_locked(void)
{
    if (fake_cuda.calls_to_take > 0) {
        fake_cuda.calls_to_take--;
        return false;
    }
    if (fake_cuda.calls_to_refuse > 0) {
        fake_cuda.calls_to_refuse--;
        return true;
    }
    return false;
}

/* Asked before anything else. */
static bool
is_refused(void)
{
    bool refused;

    (void)pthread_mutex_lock(&fake_cuda.lock);
    refused = is_refused_locked();
    (void)pthread_mutex_unlock(&fake_cuda.lock);
    return refused;
}

int
cuInit(unsigned flags)
{
    return flags == 0 ? FAKE_CUDA_SUCCESS : INVALID_VALUE;
}

int
cuDeviceGet(int *device, int ordinal)
{
    *device = ordinal;
    return ordinal == 0 && !is_refused() ? FAKE_CUDA_SUCCESS : INVALID_VALUE;
}

int
cuDeviceGetAttribute(int *value, int attribute, int device)
{
    int error = device == 0 ? FAKE_CUDA_SUCCESS : INVALID_VALUE;

    (void)pthread_mutex_lock(&fake_cuda.lock);
    if (attribute == WRITES_ORDERING) {
        *value = fake_cuda.is_unordered ? 0 : 100;
    } else if (attribute == FLUSH_OPTIONS) {
        *value = fake_cuda.has_no_flush ? 0 : 1;
    } else {
        error = INVALID_VALUE;
    }
    (void)pthread_mutex_unlock(&fake_cuda.lock);
    return error;
}

int
cuFlushGPUDirectRDMAWrites(int target, int scope)
{
    int error = target == 0 && scope == 100 ? FAKE_CUDA_SUCCESS : INVALID_VALUE;

    if (pushed_count == 0) {
        return INVALID_CONTEXT;
    }
    (void)pthread_mutex_lock(&fake_cuda.lock);
    if (fake_cuda.has_no_flush) {
        error = NOT_SUPPORTED;
    } else {
        fake_cuda.flush_count++;
    }
    (void)pthread_mutex_unlock(&fake_cuda.lock);
    return error;
}

int
cuDevicePrimaryCtxRetain(void **context_out, int device)
{
    if (device != 0 || is_refused()) {
        return INVALID_VALUE;
    }
    count_object(true);
    *context_out = &context;
    return FAKE_CUDA_SUCCESS;
}

int
cuDevicePrimaryCtxRelease_v2(int device)
{
    count_object(false);
    return device == 0 ? FAKE_CUDA_SUCCESS : INVALID_VALUE;
}

int
cuCtxPushCurrent_v2(void *pushed)
{
    if (pushed != &context || is_refused()) {
        return INVALID_CONTEXT;
    }
    pushed_count++;
    return FAKE_CUDA_SUCCESS;
}

int
cuCtxPopCurrent_v2(void **context_out)
{
    if (pushed_count == 0) {
        return INVALID_CONTEXT;
    }
    pushed_count--;
    *context_out = &context;
    return FAKE_CUDA_SUCCESS;
}

int
cuPointerGetAttribute(void *value, int attribute, uintptr_t pointer)
{
    int number = attribute == MEMORY_TYPE ? TYPE_DEVICE : 0; /* else the ordinal */
    bool is_known;

    (void)pthread_mutex_lock(&fake_cuda.lock);
    is_known = fake_cuda_find_allocation(pointer, 1) != NULL;
    (void)pthread_mutex_unlock(&fake_cuda.lock);
    if (!is_known || is_refused() || (attribute != MEMORY_TYPE && attribute != DEVICE_ORDINAL)) {
        return INVALID_VALUE;
    }
    memcpy(value, &number, sizeof(number));
    return FAKE_CUDA_SUCCESS;
}

int
cuPointerSetAttribute(const void *value, int attribute, uintptr_t pointer)
{
    (void)value;
    (void)pointer;
    return attribute == SYNC_MEMOPS ? FAKE_CUDA_SUCCESS : INVALID_VALUE;
}

int
cuMemGetAddressRange_v2(uintptr_t *base, size_t *length, uintptr_t pointer)
{
    const struct range *range;

    (void)pthread_mutex_lock(&fake_cuda.lock);
    range = fake_cuda_find_allocation(pointer, 1);
    if (range != NULL) {
        *base = (uintptr_t)range->address;
        *length = range->length_bytes;
    }
    (void)pthread_mutex_unlock(&fake_cuda.lock);
    return range != NULL && !is_refused() ? FAKE_CUDA_SUCCESS : INVALID_VALUE;
}

int
cuMemHostRegister_v2(void *address, size_t length, unsigned flags)
{
    struct range *range;

    if (pushed_count == 0 || is_refused()) {
        return INVALID_CONTEXT;
    }
    (void)flags;
    (void)pthread_mutex_lock(&fake_cuda.lock);
    range = fake_cuda_take(fake_cuda.registrations, FAKE_CUDA_REGISTRATIONS_MAX);
    *range = (struct range){.address = address, .length_bytes = length};
    fake_cuda.object_count++;
    (void)pthread_mutex_unlock(&fake_cuda.lock);
    return FAKE_CUDA_SUCCESS;
}

int
cuMemHostUnregister(void *address)
{
    struct range *range;

    (void)pthread_mutex_lock(&fake_cuda.lock);
    range = fake_cuda_find(
            fake_cuda.registrations, FAKE_CUDA_REGISTRATIONS_MAX, (uintptr_t)address, 1);
    if (range != NULL) {
        range->address = NULL;
        fake_cuda.object_count--;
    }
    (void)pthread_mutex_unlock(&fake_cuda.lock);
    return range != NULL ? FAKE_CUDA_SUCCESS : INVALID_VALUE;
}

static int
make_object(void **object_out, size_t bytes)
{
    if (pushed_count == 0 || is_refused()) {
        return INVALID_CONTEXT;
    }
    *object_out = calloc(1, bytes);
    if (*object_out == NULL) {
        abort();
    }
    count_object(true);
    return FAKE_CUDA_SUCCESS;
}

static int
free_object(void *object)
{
    free(object);
    count_object(false);
    return FAKE_CUDA_SUCCESS;
}

int
cuStreamCreate(void **stream_out, unsigned flags)
{
    (void)flags;
    return make_object(stream_out, sizeof(struct stream));
}

int
cuStreamDestroy_v2(void *stream)
{
    return free_object(stream);
}

int
cuStreamSynchronize(void *stream)
{
    const struct stream *waited = stream;
    bool is_done = false;

    while (!is_done) {
        (void)pthread_mutex_lock(&fake_cuda.lock);
        is_done = waited->done == waited->issued;
        (void)pthread_mutex_unlock(&fake_cuda.lock);
        (void)sched_yield();
    }
    return waited->is_broken ? ILLEGAL_ADDRESS : FAKE_CUDA_SUCCESS;
}

int
cuEventCreate(void **event_out, unsigned flags)
{
    (void)flags;
    return make_object(event_out, sizeof(struct event));
}

int
cuEventDestroy_v2(void *event)
{
    return free_object(event);
}

int
cuEventRecord(void *event, void *stream)
{
    struct event *recorded = event;

    if (is_refused()) {
        return INVALID_CONTEXT;
    }
    (void)pthread_mutex_lock(&fake_cuda.lock);
    recorded->stream = stream;
    recorded->awaited = recorded->stream->issued;
    (void)pthread_mutex_unlock(&fake_cuda.lock);
    return FAKE_CUDA_SUCCESS;
}

int
cuEventQuery(void *event)
{
    const struct event *asked = event;
    int error = NOT_READY;

    if (is_refused()) {
        return INVALID_CONTEXT;
    }
    (void)pthread_mutex_lock(&fake_cuda.lock);
    if (asked->stream == NULL ? asked->has_fired : asked->stream->done >= asked->awaited) {
        error = asked->stream != NULL && asked->stream->is_broken ? ILLEGAL_ADDRESS
                                                                  : FAKE_CUDA_SUCCESS;
    }
    (void)pthread_mutex_unlock(&fake_cuda.lock);
    return error;
}

static int
start_copy(void *to, const void *from, size_t length, void *stream)
{
    struct copy *copy = calloc(1, sizeof(*copy));

    if (copy == NULL) {
        abort();
    }
    *copy = (struct copy){.stream = stream, .to = to, .from = from, .length_bytes = length};
    copy->stream->issued++;
    if (fake_cuda.copies_to_break > 0) {
        fake_cuda.copies_to_break--;
        copy->stream->is_broken = true;
    }
    *fake_cuda.last_copy = copy;
    fake_cuda.last_copy = &copy->next;
    if (!fake_cuda.is_holding) {
        fake_cuda_run_copies();
    }
    return FAKE_CUDA_SUCCESS;
}

/* Both sides are as the driver wants them: memory of the device, and memory of the host that it knows. */
static int
check_copy(uintptr_t device, uintptr_t host, size_t length)
{
    if (pushed_count == 0 || is_refused_locked()) {
        return INVALID_CONTEXT;
    }
    if (fake_cuda.copies_to_take > 0) {
        fake_cuda.copies_to_take--;
    } else if (fake_cuda.copies_to_fail > 0) {
        fake_cuda.copies_to_fail--;
        return ILLEGAL_ADDRESS;
    }
    if (fake_cuda_find_allocation(device, length) == NULL ||
            fake_cuda_find(fake_cuda.registrations, FAKE_CUDA_REGISTRATIONS_MAX, host, length) ==
                    NULL) {
        return INVALID_VALUE;
    }
    return FAKE_CUDA_SUCCESS;
}

int
cuMemcpyHtoDAsync_v2(uintptr_t to, const void *from, size_t length, void *stream)
{
    int error;

    (void)pthread_mutex_lock(&fake_cuda.lock);
    error = check_copy(to, (uintptr_t)from, length);
    if (error == FAKE_CUDA_SUCCESS) {
        const struct range *range = fake_cuda_find_allocation(to, length);

        error = start_copy(range->bytes + (to - (uintptr_t)range->address), from, length, stream);
    }
    (void)pthread_mutex_unlock(&fake_cuda.lock);
    return error;
}

int
cuMemcpyDtoHAsync_v2(void *to, uintptr_t from, size_t length, void *stream)
{
    int error;

    (void)pthread_mutex_lock(&fake_cuda.lock);
    error = check_copy(from, (uintptr_t)to, length);
    if (error == FAKE_CUDA_SUCCESS) {
        const struct range *range = fake_cuda_find_allocation(from, length);

        error = start_copy(to, range->bytes + (from - (uintptr_t)range->address), length, stream);
    }
    (void)pthread_mutex_unlock(&fake_cuda.lock);
    return error;
}

int
cuGetErrorName(int error, const char **name)
{
    *name = error == ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR_FAKE";
    return FAKE_CUDA_SUCCESS;
}

int
cuMemGetHandleForAddressRange(
        void *handle, uintptr_t pointer, size_t length, int type, unsigned long long flags)
{
    const struct range *range;
    int error = NOT_SUPPORTED;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

    (void)pthread_mutex_lock(&fake_cuda.lock);
    range = fake_cuda_find_allocation(pointer, length);
    if (range != NULL && !is_refused_locked() && !fake_cuda.has_no_files && type == 1 &&
            flags == 0 && pointer % page == 0 && length % page == 0) {
        int fd = dup(range->fd);

        memcpy(handle, &fd, sizeof(fd));
        fake_cuda.export_count++;
        error = FAKE_CUDA_SUCCESS;
    }
    (void)pthread_mutex_unlock(&fake_cuda.lock);
    return error;
}
