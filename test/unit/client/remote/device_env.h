/* SPDX-License-Identifier: Apache-2.0 */

/** @file device_env.h bounce_env with memory of a device that only its driver can touch. One thread. */

#ifndef UC_TEST_DEVICE_ENV_H
#define UC_TEST_DEVICE_ENV_H

#include "test/fake/fake_cuda.h"
#include "test/unit/client/remote/bounce_env.h"

extern uint8_t *device_memory; /* for two jobs */

/** As those of bounce_env, with memory of the device that no store knows yet. */
void device_setup(bool needs_registration);
void device_setup_server(void);
/** Checks that nothing is left at the driver. */
void device_teardown(void);

/** Register all of the memory as REGION. */
void device_register(void);
/** bounce_reopen(), and that. */
void device_reopen(uint64_t bounce_bytes, const char *progress);

/** Dump from the first half, load into the second one, and see that the bytes are those of the keys. */
void device_round_trip(void);

#endif /* UC_TEST_DEVICE_ENV_H */
