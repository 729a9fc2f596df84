/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file fault_fabric.h
 * A transport with faults on command: the table of net/fabric.h around a real provider, which it calls for
 * everything. Without a command it behaves as the provider does (test/conformance/fabric runs over it).
 *
 * Added by uc_add_test(… FAULT_FABRIC), which routes the test's calls of uc_fabric_find() through it; the
 * product has no hook for it. The name "fault+PROVIDER" always finds it; uc_fault_fabric_use() puts it in the
 * place of another name.
 *
 * Threads: commands and counters are for any thread, and concern all endpoints of all wrapped fabrics of the
 * process; they take effect on the thread that calls the fabric, the asynchronous ones in its next poll().
 */

#ifndef UC_FAULT_FABRIC_H
#define UC_FAULT_FABRIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/status.h>

#include "net/fabric.h"

/** What becomes of an operation that is held. */
enum uc_fault_point {
    UC_FAULT_BEFORE, /* the provider has not seen it, nor what was posted after it: nothing moves */
    UC_FAULT_AFTER,  /* its bytes have moved, its completion waits */
};

/** Opcodes as a mask. */
enum {
    UC_FAULT_READS = 1u << UC_FABRIC_READ,
    UC_FAULT_WRITES = 1u << UC_FABRIC_WRITE,
    UC_FAULT_FLUSHES = 1u << UC_FABRIC_FLUSH,
    UC_FAULT_ALL = UC_FAULT_READS | UC_FAULT_WRITES | UC_FAULT_FLUSHES,
};

/** How the next connections fail. */
enum uc_fault_connect {
    UC_FAULT_CONNECT_ERROR,   /* connect() itself */
    UC_FAULT_CONNECT_REFUSED, /* on_state() tells it */
    UC_FAULT_CONNECT_SILENT,  /* nothing is ever told; operations wait for ever */
};

/** What has happened since the last reset, and what is there now. */
struct uc_fault_counts {
    unsigned registrations; /* regions there are */
    unsigned endpoints;     /* endpoints there are */
    unsigned connects;      /* calls */
    unsigned posted;        /* operations accepted */
    unsigned completed;     /* on_done calls */
    unsigned in_flight;     /* accepted and not completed */
    unsigned held;          /* of these, held by a command */
    unsigned fences;        /* fences of endpoints that had operations in flight */
};

/**
 * Let uc_fabric_find(@p name) find the provider @p inner with faults around it.
 *
 * @param[in] needs_registration  claim so, whatever the provider says
 */
void uc_fault_fabric_use(const char *name, const char *inner, bool needs_registration);

/**
 * Let memory of devices be registered, by its file or by its address, and be used in place: the provider is given
 * memory that it can touch. Registrations that are not allowed answer Unsupported, as all do at first.
 *
 * @param[in] bytes_of  where the bytes behind an address of a device can be touched; asked if there is no file
 */
void uc_fault_reach_devices(bool by_file, uint8_t *(*bytes_of)(const void *address));

/** A machine without the transport @p name: uc_fabric_find() answers Unsupported. */
void uc_fault_fabric_hide(const char *name);

/** No fault any more, counters 0, names as before; no wrapped fabric is open. */
void uc_fault_reset(void);

struct uc_fault_counts uc_fault_counts(void);

/** Wait until @p count operations are held; fails the test after some seconds. */
void uc_fault_wait_held(unsigned count);

/** Wait until nothing is in flight. */
void uc_fault_wait_idle(void);

/** Wait until connect() was called @p count times. */
void uc_fault_wait_connects(unsigned count);

/** The next @p count registrations fail; UINT32_MAX = all. Likewise connections, and post(). */
void uc_fault_fail_registrations(unsigned count, enum uc_status status);
void uc_fault_fail_connects(unsigned count, enum uc_fault_connect how, enum uc_status status);
void uc_fault_fail_posts(unsigned count, enum uc_status status);

/** The next @p count operations of these opcodes complete with this status, and move nothing. */
void uc_fault_fail_operations(unsigned opcodes, unsigned count, enum uc_status status);

/** The next @p count READs complete with Ok and one wrong byte. */
void uc_fault_corrupt_reads(unsigned count);

/**
 * Hold the next @p count operations of these opcodes. A fence ends them as flushed, and until it returns it
 * may write anything where a held READ was to put its bytes, as a late packet would.
 */
void uc_fault_hold(unsigned opcodes, enum uc_fault_point point, unsigned count);

/** Let go on what is held, in the order posted or the other way round, and hold nothing more. */
void uc_fault_release(bool reversed);

/** Every endpoint of an initiator breaks, as if its peer had gone; one that is silent fails to connect. */
void uc_fault_cut(void);

/** Likewise, once @p count more operations have completed. */
void uc_fault_cut_after(unsigned count);

#endif /* UC_FAULT_FABRIC_H */
