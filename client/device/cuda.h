/* SPDX-License-Identifier: Apache-2.0 */

/** @file cuda.h CUDA devices, through libcuda.so.1 of the driver, which is opened on first use. */

#ifndef UC_DEVICE_CUDA_H
#define UC_DEVICE_CUDA_H

#include "client/device/device.h"

extern const struct uc_device_ops uc_cuda_device_ops;

#endif /* UC_DEVICE_CUDA_H */
