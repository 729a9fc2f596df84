/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file hello.h
 * What travels as private data of a connection, little endian. rdma_cm carries 56 bytes in a request and
 * 196 in an answer and pads them with zeros, so lengths are lower bounds.
 *
 *   request:  0 u32 magic "UCV1"   4 u32 version   8 16 bytes nonce
 *             24 u8 index   25 u8 count   26 u16 path MTU in bytes                 (28 bytes)
 *   answer:   0 u32 magic "UCV1"   4 u32 version   8 u16 count   10 u16 path MTU   (12 bytes)
 *   reject:   0 u32 magic "UCV1"   4 u32 version   8 i32 status                    (12 bytes)
 *
 * What is zero or missing behind the nonce and behind the answer's version says nothing: one queue pair,
 * and whatever path MTU rdma_cm found.
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
    UC_VERBS_HELLO_BYTES = 28,
    UC_VERBS_HELLO_NONCE_END = 24, /* shortest one */
    UC_VERBS_ANSWER_BYTES = 12,
    UC_VERBS_REJECT_BYTES = 12,
    UC_VERBS_PAIRS_MAX = 4, /* queue pairs of one endpoint */
};

/** A request. A plain value. */
struct uc_verbs_hello {
    uint8_t nonce[UC_FABRIC_NONCE_BYTES];
    uint8_t idx;   /* of the queue pair among those of its endpoint; 0 is admitted by the nonce */
    uint8_t count; /* queue pairs that the endpoint wants, 1 … UC_VERBS_PAIRS_MAX */
    uint16_t mtu_bytes; /* the most that the initiator can do; 0 = it does not say */
};

/** An answer that admits. A plain value. */
struct uc_verbs_answer {
    uint16_t count;     /* queue pairs that the endpoint gets, 1 … UC_VERBS_PAIRS_MAX */
    uint16_t mtu_bytes; /* what the target uses; 0 = it does not say */
};

/** Write the private data of a request. */
void uc_verbs_hello_encode(
        const struct uc_verbs_hello *hello, uint8_t bytes_out[UC_VERBS_HELLO_BYTES]);

/**
 * Read the private data of a request. A count above UC_VERBS_PAIRS_MAX is lowered to it.
 *
 * @param[out] hello_out  set on success only
 * @retval UC_ERR_INVALID_PARAM  too short, not ours, or an index that the count does not have
 * @retval UC_ERR_UNSUPPORTED    another version
 */
UC_MUST_CHECK enum uc_status uc_verbs_hello_decode(
        const uint8_t *bytes, size_t length, struct uc_verbs_hello *hello_out);

/** Write the private data of an answer. */
void uc_verbs_answer_encode(
        const struct uc_verbs_answer *answer, uint8_t bytes_out[UC_VERBS_ANSWER_BYTES]);

/** @return what an answer says; one queue pair where the bytes say nothing that we know. */
struct uc_verbs_answer uc_verbs_answer_decode(const uint8_t *bytes, size_t length);

/** Write the private data of a refusal. */
void uc_verbs_reject_encode(enum uc_status status, uint8_t bytes_out[UC_VERBS_REJECT_BYTES]);

/** @return why the peer refused; Unhealthy when the bytes do not say a failure that we know. */
enum uc_status uc_verbs_reject_decode(const uint8_t *bytes, size_t length);

#endif /* UC_VERBS_HELLO_H */
