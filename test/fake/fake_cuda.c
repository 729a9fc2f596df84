/* SPDX-License-Identifier: Apache-2.0 */

#include "test/fake/fake_cuda.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    ALLOCATIONS_MAX = 16,
    REGISTRATIONS_MAX = 256,
    SUCCESS = 0,
    INVALID_VALUE = 1,
    INVALID_CONTEXT = 201,
    NOT_READY = 600,
    ILLEGAL_ADDRESS = 700,
    NOT_SUPPORTED = 801,
};

struct range {
    uint8_t *address; /* NULL = free */
    size_t length_bytes;
    uint8_t *bytes; /* of an allocation: the second mapping */
    int fd;
};

struct stream {
    uint64_t issued;
    uint64_t done;
};

struct event {
    const struct stream *stream; /* NULL: the engine's */
    uint64_t awaited;
    bool has_fired;
};

struct copy {
    struct copy *next;
    struct stream *stream;
    void *to;
    const void *from;
    size_t length_bytes;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct range allocations[ALLOCATIONS_MAX]; /* guarded by lock, as all that follows */
static struct range registrations[REGISTRATIONS_MAX];
static struct copy *first_copy;
static struct copy **last_copy = &first_copy;
static bool is_holding;
static bool has_no_files;
static unsigned copies_to_take; /* before those that fail */
static unsigned copies_to_fail;
static size_t object_count;
static size_t export_count;
static char context; /* its address is the context */

static _Thread_local size_t pushed_count;

/* The driver's calls; each is declared because no header of CUDA is there. */
int cuInit(unsigned flags);
int cuDeviceGet(int *device, int ordinal);
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
int cuEventCreate(void **event_out, unsigned flags);
int cuEventDestroy_v2(void *event);
int cuEventRecord(void *event, void *stream);
int cuEventQuery(void *event);
int cuMemcpyHtoDAsync_v2(uintptr_t to, const void *from, size_t length, void *stream);
int cuMemcpyDtoHAsync_v2(void *to, uintptr_t from, size_t length, void *stream);
int cuGetErrorName(int error, const char **name);
int cuMemGetHandleForAddressRange(
        void *handle, uintptr_t pointer, size_t length, int type, unsigned long long flags);

static struct range *
find_range(struct range *ranges, size_t count, uintptr_t address, size_t length_bytes)
{
    for (size_t idx = 0; idx < count; idx++) {
        uintptr_t start = (uintptr_t)ranges[idx].address;

        if (start != 0 && address >= start && address - start <= ranges[idx].length_bytes &&
                length_bytes <= ranges[idx].length_bytes - (address - start)) {
            return &ranges[idx];
        }
    }
    return NULL;
}

static struct range *
find_allocation(uintptr_t address, size_t length_bytes)
{
    return find_range(allocations, ALLOCATIONS_MAX, address, length_bytes);
}

static struct range *
take_range(struct range *ranges, size_t count)
{
    for (size_t idx = 0; idx < count; idx++) {
        if (ranges[idx].address == NULL) {
            return &ranges[idx];
        }
    }
    abort();
}

void *
fake_cuda_alloc(size_t length_bytes)
{
    struct range *range;
    int fd = memfd_create("device", MFD_CLOEXEC);
    void *address;
    void *bytes;

    if (fd < 0 || ftruncate(fd, (off_t)length_bytes) != 0) {
        abort();
    }
    address = mmap(NULL, length_bytes, PROT_NONE, MAP_SHARED, fd, 0);
    bytes = mmap(NULL, length_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (address == MAP_FAILED || bytes == MAP_FAILED) {
        abort();
    }

    (void)pthread_mutex_lock(&lock);
    range = take_range(allocations, ALLOCATIONS_MAX);
    *range = (struct range){
            .address = address, .length_bytes = length_bytes, .bytes = bytes, .fd = fd};
    (void)pthread_mutex_unlock(&lock);
    return address;
}

void
fake_cuda_free(void *address)
{
    struct range *range;

    (void)pthread_mutex_lock(&lock);
    range = find_allocation((uintptr_t)address, 1);
    (void)munmap(range->address, range->length_bytes);
    (void)munmap(range->bytes, range->length_bytes);
    (void)close(range->fd);
    range->address = NULL;
    (void)pthread_mutex_unlock(&lock);
}

uint8_t *
fake_cuda_bytes(const void *address)
{
    struct range *range;
    uint8_t *bytes;

    (void)pthread_mutex_lock(&lock);
    range = find_allocation((uintptr_t)address, 1);
    bytes = range->bytes + ((uintptr_t)address - (uintptr_t)range->address);
    (void)pthread_mutex_unlock(&lock);
    return bytes;
}

void
fake_cuda_hold(void)
{
    (void)pthread_mutex_lock(&lock);
    is_holding = true;
    (void)pthread_mutex_unlock(&lock);
}

static void
run_copies_locked(void)
{
    while (first_copy != NULL) {
        struct copy *copy = first_copy;

        first_copy = copy->next;
        memcpy(copy->to, copy->from, copy->length_bytes);
        copy->stream->done++;
        free(copy);
    }
    last_copy = &first_copy;
}

void
fake_cuda_release(void)
{
    (void)pthread_mutex_lock(&lock);
    is_holding = false;
    run_copies_locked();
    (void)pthread_mutex_unlock(&lock);
}

size_t
fake_cuda_held(void)
{
    size_t count = 0;

    (void)pthread_mutex_lock(&lock);
    for (const struct copy *copy = first_copy; copy != NULL; copy = copy->next) {
        count++;
    }
    (void)pthread_mutex_unlock(&lock);
    return count;
}

void
fake_cuda_fail_copies(unsigned count)
{
    fake_cuda_fail_copies_after(0, count);
}

void
fake_cuda_fail_copies_after(unsigned good_count, unsigned count)
{
    (void)pthread_mutex_lock(&lock);
    copies_to_take = good_count;
    copies_to_fail = count;
    (void)pthread_mutex_unlock(&lock);
}

void
fake_cuda_set_files(bool can_export)
{
    (void)pthread_mutex_lock(&lock);
    has_no_files = !can_export;
    (void)pthread_mutex_unlock(&lock);
}

static void
count_object(bool is_new)
{
    (void)pthread_mutex_lock(&lock);
    object_count += is_new ? 1 : SIZE_MAX;
    (void)pthread_mutex_unlock(&lock);
}

size_t
fake_cuda_objects(void)
{
    size_t count;

    (void)pthread_mutex_lock(&lock);
    count = object_count;
    (void)pthread_mutex_unlock(&lock);
    return count;
}

size_t
fake_cuda_exports(void)
{
    size_t count;

    (void)pthread_mutex_lock(&lock);
    count = export_count;
    (void)pthread_mutex_unlock(&lock);
    return count;
}

size_t
fake_cuda_pushed(void)
{
    return pushed_count;
}

uint64_t
fake_cuda_make_event(void)
{
    struct event *event = calloc(1, sizeof(*event));

    if (event == NULL) {
        abort();
    }
    return (uintptr_t)event;
}

static struct event *
event_of(uint64_t handle)
{
    return (struct event *)(uintptr_t)handle;
}

void
fake_cuda_fire(uint64_t event)
{
    (void)pthread_mutex_lock(&lock);
    event_of(event)->has_fired = true;
    (void)pthread_mutex_unlock(&lock);
}

void
fake_cuda_free_event(uint64_t event)
{
    free(event_of(event));
}

int
cuInit(unsigned flags)
{
    return flags == 0 ? SUCCESS : INVALID_VALUE;
}

int
cuDeviceGet(int *device, int ordinal)
{
    *device = ordinal;
    return ordinal == 0 ? SUCCESS : INVALID_VALUE;
}

int
cuDevicePrimaryCtxRetain(void **context_out, int device)
{
    if (device != 0) {
        return INVALID_VALUE;
    }
    count_object(true);
    *context_out = &context;
    return SUCCESS;
}

int
cuDevicePrimaryCtxRelease_v2(int device)
{
    count_object(false);
    return device == 0 ? SUCCESS : INVALID_VALUE;
}

int
cuCtxPushCurrent_v2(void *pushed)
{
    if (pushed != &context) {
        return INVALID_CONTEXT;
    }
    pushed_count++;
    return SUCCESS;
}

int
cuCtxPopCurrent_v2(void **context_out)
{
    if (pushed_count == 0) {
        return INVALID_CONTEXT;
    }
    pushed_count--;
    *context_out = &context;
    return SUCCESS;
}

int
cuPointerGetAttribute(void *value, int attribute, uintptr_t pointer)
{
    int number =
            attribute == 2 ? 2 : 0; /* CU_POINTER_ATTRIBUTE_MEMORY_TYPE: device; else ordinal 0 */
    bool is_known;

    (void)pthread_mutex_lock(&lock);
    is_known = find_allocation(pointer, 1) != NULL;
    (void)pthread_mutex_unlock(&lock);
    if (!is_known || (attribute != 2 && attribute != 9)) {
        return INVALID_VALUE;
    }
    memcpy(value, &number, sizeof(number));
    return SUCCESS;
}

int
cuPointerSetAttribute(const void *value, int attribute, uintptr_t pointer)
{
    (void)value;
    (void)pointer;
    return attribute == 6 ? SUCCESS : INVALID_VALUE; /* CU_POINTER_ATTRIBUTE_SYNC_MEMOPS */
}

int
cuMemGetAddressRange_v2(uintptr_t *base, size_t *length, uintptr_t pointer)
{
    const struct range *range;

    (void)pthread_mutex_lock(&lock);
    range = find_allocation(pointer, 1);
    if (range != NULL) {
        *base = (uintptr_t)range->address;
        *length = range->length_bytes;
    }
    (void)pthread_mutex_unlock(&lock);
    return range != NULL ? SUCCESS : INVALID_VALUE;
}

int
cuMemHostRegister_v2(void *address, size_t length, unsigned flags)
{
    struct range *range;

    if (pushed_count == 0) {
        return INVALID_CONTEXT;
    }
    (void)flags;
    (void)pthread_mutex_lock(&lock);
    range = take_range(registrations, REGISTRATIONS_MAX);
    *range = (struct range){.address = address, .length_bytes = length};
    object_count++;
    (void)pthread_mutex_unlock(&lock);
    return SUCCESS;
}

int
cuMemHostUnregister(void *address)
{
    struct range *range;

    (void)pthread_mutex_lock(&lock);
    range = find_range(registrations, REGISTRATIONS_MAX, (uintptr_t)address, 1);
    if (range != NULL) {
        range->address = NULL;
        object_count--;
    }
    (void)pthread_mutex_unlock(&lock);
    return range != NULL ? SUCCESS : INVALID_VALUE;
}

static int
make_object(void **object_out, size_t bytes)
{
    if (pushed_count == 0) {
        return INVALID_CONTEXT;
    }
    *object_out = calloc(1, bytes);
    if (*object_out == NULL) {
        abort();
    }
    count_object(true);
    return SUCCESS;
}

static int
free_object(void *object)
{
    free(object);
    count_object(false);
    return SUCCESS;
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

    (void)pthread_mutex_lock(&lock);
    recorded->stream = stream;
    recorded->awaited = recorded->stream->issued;
    (void)pthread_mutex_unlock(&lock);
    return SUCCESS;
}

int
cuEventQuery(void *event)
{
    const struct event *asked = event;
    bool has_fired;

    (void)pthread_mutex_lock(&lock);
    has_fired = asked->stream == NULL ? asked->has_fired : asked->stream->done >= asked->awaited;
    (void)pthread_mutex_unlock(&lock);
    return has_fired ? SUCCESS : NOT_READY;
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
    *last_copy = copy;
    last_copy = &copy->next;
    if (!is_holding) {
        run_copies_locked();
    }
    return SUCCESS;
}

/* Both sides are as the driver wants them: memory of the device, and memory of the host that it knows. */
static int
check_copy(uintptr_t device, uintptr_t host, size_t length)
{
    if (pushed_count == 0) {
        return INVALID_CONTEXT;
    }
    if (copies_to_take > 0) {
        copies_to_take--;
    } else if (copies_to_fail > 0) {
        copies_to_fail--;
        return ILLEGAL_ADDRESS;
    }
    if (find_allocation(device, length) == NULL ||
            find_range(registrations, REGISTRATIONS_MAX, host, length) == NULL) {
        return INVALID_VALUE;
    }
    return SUCCESS;
}

int
cuMemcpyHtoDAsync_v2(uintptr_t to, const void *from, size_t length, void *stream)
{
    int error;

    (void)pthread_mutex_lock(&lock);
    error = check_copy(to, (uintptr_t)from, length);
    if (error == SUCCESS) {
        const struct range *range = find_allocation(to, length);

        error = start_copy(range->bytes + (to - (uintptr_t)range->address), from, length, stream);
    }
    (void)pthread_mutex_unlock(&lock);
    return error;
}

int
cuMemcpyDtoHAsync_v2(void *to, uintptr_t from, size_t length, void *stream)
{
    int error;

    (void)pthread_mutex_lock(&lock);
    error = check_copy(from, (uintptr_t)to, length);
    if (error == SUCCESS) {
        const struct range *range = find_allocation(from, length);

        error = start_copy(to, range->bytes + (from - (uintptr_t)range->address), length, stream);
    }
    (void)pthread_mutex_unlock(&lock);
    return error;
}

int
cuGetErrorName(int error, const char **name)
{
    *name = error == ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR_FAKE";
    return SUCCESS;
}

int
cuMemGetHandleForAddressRange(
        void *handle, uintptr_t pointer, size_t length, int type, unsigned long long flags)
{
    const struct range *range;
    int error = NOT_SUPPORTED;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

    (void)pthread_mutex_lock(&lock);
    range = find_allocation(pointer, length);
    if (range != NULL && !has_no_files && type == 1 && flags == 0 && pointer % page == 0 &&
            length % page == 0) {
        int fd = dup(range->fd);

        memcpy(handle, &fd, sizeof(fd));
        export_count++;
        error = SUCCESS;
    }
    (void)pthread_mutex_unlock(&lock);
    return error;
}
