/* SPDX-License-Identifier: Apache-2.0 */

#include "test/unit/client/remote/device_env.h"

#include <check.h>

uint8_t *device_memory;

void
device_setup(bool needs_registration)
{
    device_memory = fake_cuda_alloc(2 * (size_t)ALL_BYTES);
    bounce_setup(needs_registration);
}

void
device_setup_server(void)
{
    device_memory = fake_cuda_alloc(2 * (size_t)ALL_BYTES);
    bounce_setup_server(false);
}

void
device_teardown(void)
{
    bounce_teardown();
    fake_cuda_release();
    fake_cuda_set_files(true);
    fake_cuda_set_order(true, true);
    fake_cuda_fail_copies(0);
    fake_cuda_break_copies(0);
    ck_assert_uint_eq(fake_cuda_objects(), 0);
    ck_assert_uint_eq(fake_cuda_pushed(), 0);
    fake_cuda_free(device_memory);
}

void
device_register(void)
{
    ck_assert_msg(uc_store_register_memory(bounce.store, REGION, device_memory,
                          2 * (uint64_t)ALL_BYTES, UC_MEMORY_CUDA) == UC_OK,
            "%s", uc_last_error());
}

void
device_reopen(uint64_t bounce_bytes, const char *progress)
{
    bounce_reopen(bounce_bytes, progress);
    device_register();
}

void
device_round_trip(void)
{
    uint8_t *target = device_memory + ALL_BYTES;

    bounce_fill(fake_cuda_bytes(device_memory), 1);
    (void)bounce_prepare(1, true, 1, device_memory, 0);
    bounce_submit(1);
    env_expect(bounce.store, 1, UC_OK);
    bounce_conclude(1, true);
    (void)bounce_prepare(1, false, 1, target, 0);
    bounce_submit(1);
    env_expect(bounce.store, 1, UC_OK);
    bounce_conclude(1, true);
    bounce_assert_bytes(fake_cuda_bytes(target), 1);
    ck_assert_int_eq(env_get(bounce.store, 1, COUNT), UC_OK);
}
