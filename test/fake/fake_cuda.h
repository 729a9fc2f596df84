/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file fake_cuda.h
 * The driver of CUDA without a device: a library named libcuda.so.1 with the calls that client/device makes. Memory of
 * its device is mapped twice; the addresses that it hands out crash whoever touches them, so that only copies of the
 * driver reach the bytes. Copies and events can be held back and made to fail.
 *
 * A test links it; that the name is loaded already is all that the code under test needs.
 * Threads: any; one lock.
 */

#ifndef UC_FAKE_CUDA_H
#define UC_FAKE_CUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Memory of the device; freed by fake_cuda_free(). Aborts without memory. */
void *fake_cuda_alloc(size_t length_bytes);
void fake_cuda_free(void *address);

/** @return where the test may touch those bytes. */
uint8_t *fake_cuda_bytes(const void *address);

/** Copies started from now on wait for fake_cuda_release(). */
void fake_cuda_hold(void);
void fake_cuda_release(void);

/** @return copies that wait. */
size_t fake_cuda_held(void);

/** The next @p count copies are refused, and move nothing. */
void fake_cuda_fail_copies(unsigned count);

/** Likewise, but @p good_count copies before them are taken. */
void fake_cuda_fail_copies_after(unsigned good_count, unsigned count);

/** The next @p count copies are started, move their bytes when they run, and are then found to have failed. */
void fake_cuda_break_copies(unsigned count);

/**
 * After @p good_count calls the next @p count are refused, whatever they are: what opens, asks, makes, records, copies
 * and exports, but nothing that closes, or waits for a stream.
 */
void fake_cuda_refuse_calls_after(unsigned good_count, unsigned count);

/** @return calls that are still to be refused. */
unsigned fake_cuda_left_to_refuse(void);

/**
 * Whether work of the device sees what a NIC wrote before it was started, and if not, whether there is a flush for
 * that. At first it does.
 */
void fake_cuda_set_order(bool is_ordered, bool can_flush);

/** @return how often what a NIC wrote was flushed. */
size_t fake_cuda_flushes(void);

/** Whether ranges can be exported as files; they can at first. */
void fake_cuda_set_files(bool can_export);

/** @return an event of the engine that has not fired; freed by fake_cuda_free_event(). */
uint64_t fake_cuda_make_event(void);
void fake_cuda_fire(uint64_t event);
void fake_cuda_free_event(uint64_t event);

/** @return contexts retained, streams, events and host registrations that there are. */
size_t fake_cuda_objects(void);

/** @return how often memory was exported as a file. */
size_t fake_cuda_exports(void);

/** @return contexts on the stack of the calling thread. */
size_t fake_cuda_pushed(void);

#endif /* UC_FAKE_CUDA_H */
