/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file hello.h
 * What travels as private data of a connection, little endian. rdma_cm carries 56 bytes in a request and
 * pads them with zeros, so lengths are lower bounds.
 *
 *   request:  0 u32 magic "UCV1"   4 u32 version   8 16 bytes nonce      (24 bytes)
 *   reject:   0 u32 magic "UCV1"   4 u32 version   8 i32 status          (12 bytes)
 *
 * Pure functions over bytes a stranger sent; any thread.
 */

#ifndef UC_VERBS_HELLO_H
#define UC_VERBS_HELLO_H

#include <stddef.h>
#include <stdint.h>

#include <ucm/compiler.h>
#include <ucm/status.h>

#include "net/fabric.h"

enum {
    UC_VERBS_HELLO_MAGIC = 0x31564355, /* "UCV1" */
    UC_VERBS_HELLO_VERSION = 1,
    UC_VERBS_HELLO_BYTES = 24,
    UC_VERBS_REJECT_BYTES = 12,
};

/** Write the private data of a request. */
void uc_verbs_hello_encode(
        const uint8_t nonce[UC_FABRIC_NONCE_BYTES], uint8_t bytes_out[UC_VERBS_HELLO_BYTES]);

/**
 * Read the private data of a request.
 *
 * @param[out] nonce_out  set on success only
 * @retval UC_ERR_INVALID_PARAM  too short, or not ours
 * @retval UC_ERR_UNSUPPORTED    another version
 */
UC_MUST_CHECK enum uc_status uc_verbs_hello_decode(
        const uint8_t *bytes, size_t length, uint8_t nonce_out[UC_FABRIC_NONCE_BYTES]);

/** Write the private data of a refusal. */
void uc_verbs_reject_encode(enum uc_status status, uint8_t bytes_out[UC_VERBS_REJECT_BYTES]);

/** @return why the peer refused; Unhealthy when the bytes do not say a failure that we know. */
enum uc_status uc_verbs_reject_decode(const uint8_t *bytes, size_t length);

#endif /* UC_VERBS_HELLO_H */
