/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file fuzz.h
 * A fuzz target is one file with this function. It is driven by driver.c (any compiler) or by libFuzzer
 * (clang, UCM_LIBFUZZER=ON). It must accept any bytes, keep no state and open no socket.
 */

#ifndef UC_TEST_FUZZ_H
#define UC_TEST_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/** The name is libFuzzer's. @return 0 */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

#endif /* UC_TEST_FUZZ_H */
