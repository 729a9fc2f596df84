/* SPDX-License-Identifier: Apache-2.0 */

/* The device and its memory, as the test sees them. */

#include "test/fake/fake_cuda.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test/fake/fake_cuda_internal.h"

struct fake_cuda fake_cuda = {
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .last_copy = &fake_cuda.first_copy,
};

struct range *
fake_cuda_find(struct range *ranges, size_t count, uintptr_t address, size_t length_bytes)
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

struct range *
fake_cuda_find_allocation(uintptr_t address, size_t length_bytes)
{
    return fake_cuda_find(fake_cuda.allocations, FAKE_CUDA_ALLOCATIONS_MAX, address, length_bytes);
}

struct range *
fake_cuda_take(struct range *ranges, size_t count)
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

    (void)pthread_mutex_lock(&fake_cuda.lock);
    range = fake_cuda_take(fake_cuda.allocations, FAKE_CUDA_ALLOCATIONS_MAX);
    *range = (struct range){
            .address = address, .length_bytes = length_bytes, .bytes = bytes, .fd = fd};
    (void)pthread_mutex_unlock(&fake_cuda.lock);
    return address;
}

void
fake_cuda_free(void *address)
{
    struct range *range;

    (void)pthread_mutex_lock(&fake_cuda.lock);
    range = fake_cuda_find_allocation((uintptr_t)address, 1);
    (void)munmap(range->address, range->length_bytes);
    (void)munmap(range->bytes, range->length_bytes);
    (void)close(range->fd);
    range->address = NULL;
    (void)pthread_mutex_unlock(&fake_cuda.lock);
}

uint8_t *
fake_cuda_bytes(const void *address)
{
    struct range *range;
    uint8_t *bytes;

    (void)pthread_mutex_lock(&fake_cuda.lock);
    range = fake_cuda_find_allocation((uintptr_t)address, 1);
    bytes = range->bytes + ((uintptr_t)address - (uintptr_t)range->address);
    (void)pthread_mutex_unlock(&fake_cuda.lock);
    return bytes;
}

void
fake_cuda_hold(void)
{
    (void)pthread_mutex_lock(&fake_cuda.lock);
    fake_cuda.is_holding = true;
    (void)pthread_mutex_unlock(&fake_cuda.lock);
}

void
fake_cuda_run_copies(void)
{
    while (fake_cuda.first_copy != NULL) {
        struct copy *copy = fake_cuda.first_copy;

        fake_cuda.first_copy = copy->next;
        memcpy(copy->to, copy->from, copy->length_bytes);
        copy->stream->done++;
        free(copy);
    }
    fake_cuda.last_copy = &fake_cuda.first_copy;
}

void
fake_cuda_release(void)
{
    (void)pthread_mutex_lock(&fake_cuda.lock);
    fake_cuda.is_holding = false;
    fake_cuda_run_copies();
    (void)pthread_mutex_unlock(&fake_cuda.lock);
}

size_t
fake_cuda_held(void)
{
    size_t count = 0;

    (void)pthread_mutex_lock(&fake_cuda.lock);
    for (const struct copy *copy = fake_cuda.first_copy; copy != NULL; copy = copy->next) {
        count++;
    }
    (void)pthread_mutex_unlock(&fake_cuda.lock);
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
    (void)pthread_mutex_lock(&fake_cuda.lock);
    fake_cuda.copies_to_take = good_count;
    fake_cuda.copies_to_fail = count;
    (void)pthread_mutex_unlock(&fake_cuda.lock);
}

void
fake_cuda_refuse_calls_after(unsigned good_count, unsigned count)
{
    (void)pthread_mutex_lock(&fake_cuda.lock);
    fake_cuda.calls_to_take = good_count;
    fake_cuda.calls_to_refuse = count;
    (void)pthread_mutex_unlock(&fake_cuda.lock);
}

unsigned
fake_cuda_left_to_refuse(void)
{
    unsigned count;

    (void)pthread_mutex_lock(&fake_cuda.lock);
    count = fake_cuda.calls_to_refuse;
    (void)pthread_mutex_unlock(&fake_cuda.lock);
    return count;
}

void
fake_cuda_break_copies(unsigned count)
{
    (void)pthread_mutex_lock(&fake_cuda.lock);
    fake_cuda.copies_to_break = count;
    (void)pthread_mutex_unlock(&fake_cuda.lock);
}

void
fake_cuda_set_order(bool is_ordered, bool can_flush)
{
    (void)pthread_mutex_lock(&fake_cuda.lock);
    fake_cuda.is_unordered = !is_ordered;
    fake_cuda.has_no_flush = !can_flush;
    (void)pthread_mutex_unlock(&fake_cuda.lock);
}

size_t
fake_cuda_flushes(void)
{
    size_t count;

    (void)pthread_mutex_lock(&fake_cuda.lock);
    count = fake_cuda.flush_count;
    (void)pthread_mutex_unlock(&fake_cuda.lock);
    return count;
}

void
fake_cuda_set_files(bool can_export)
{
    (void)pthread_mutex_lock(&fake_cuda.lock);
    fake_cuda.has_no_files = !can_export;
    (void)pthread_mutex_unlock(&fake_cuda.lock);
}

size_t
fake_cuda_objects(void)
{
    size_t count;

    (void)pthread_mutex_lock(&fake_cuda.lock);
    count = fake_cuda.object_count;
    (void)pthread_mutex_unlock(&fake_cuda.lock);
    return count;
}

size_t
fake_cuda_exports(void)
{
    size_t count;

    (void)pthread_mutex_lock(&fake_cuda.lock);
    count = fake_cuda.export_count;
    (void)pthread_mutex_unlock(&fake_cuda.lock);
    return count;
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
    (void)pthread_mutex_lock(&fake_cuda.lock);
    event_of(event)->has_fired = true;
    (void)pthread_mutex_unlock(&fake_cuda.lock);
}

void
fake_cuda_free_event(uint64_t event)
{
    free(event_of(event));
}
