/* SPDX-License-Identifier: Apache-2.0 */

/** @file fake_cuda_internal.h What the two halves of fake_cuda share: the device's state, guarded by its lock. */

#ifndef UC_FAKE_CUDA_INTERNAL_H
#define UC_FAKE_CUDA_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    FAKE_CUDA_ALLOCATIONS_MAX = 16,
    FAKE_CUDA_REGISTRATIONS_MAX = 256,
    FAKE_CUDA_SUCCESS = 0,
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
    bool is_broken; /* a copy has failed on the device: so does all that follows */
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

struct fake_cuda {
    pthread_mutex_t lock;
    struct range allocations[FAKE_CUDA_ALLOCATIONS_MAX];
    struct range registrations[FAKE_CUDA_REGISTRATIONS_MAX];
    struct copy *first_copy;
    struct copy **last_copy;
    bool is_holding;
    bool has_no_files;
    bool is_unordered;       /* what a NIC writes is seen after a flush, */
    bool has_no_flush;       /* which there may not be */
    unsigned copies_to_take; /* before those that fail */
    unsigned copies_to_fail;
    unsigned copies_to_break;
    unsigned calls_to_take; /* before those that are refused */
    unsigned calls_to_refuse;
    size_t object_count;
    size_t export_count;
    size_t flush_count;
};
extern struct fake_cuda fake_cuda;

/* fake_cuda.c; the lock is held. */

/** @return the one of the ranges that covers this, or NULL */
struct range *fake_cuda_find(
        struct range *ranges, size_t count, uintptr_t address, size_t length_bytes);
struct range *fake_cuda_find_allocation(uintptr_t address, size_t length_bytes);
/** @return a free one; aborts if there is none */
struct range *fake_cuda_take(struct range *ranges, size_t count);
void fake_cuda_run_copies(void);

#endif /* UC_FAKE_CUDA_INTERNAL_H */
