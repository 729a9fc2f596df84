/* SPDX-License-Identifier: Apache-2.0 */

#include "client/device/device.h"

#include "client/device/cuda.h"

const struct uc_device_ops *
uc_device_find(enum uc_memory_kind kind)
{
    return kind == UC_MEMORY_CUDA ? &uc_cuda_device_ops : NULL;
}
