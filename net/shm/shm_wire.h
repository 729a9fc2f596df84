/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file shm_wire.h
 * Packets on the socket of the shm transport (SOCK_SEQPACKET), little endian (net/PROTOCOL.md, "shm fabric"):
 *
 *   hello     0 "UCMH"  4 u32 version    8 16 bytes nonce   24 u64 zero              32   + client's pages
 *   answer    0 "UCMA"  4 u32 version    8 i32 status       12 u32 file count        16   + server's pages,
 *                                                                     region table, then the memory's files
 *   region    0 "UCMR"  4 u32 slot       8 u64 offset       16 u64 length            24   + its file
 *   verdict   0 "UCMV"  4 u32 slot       8 i32 status       12 u32 zero              16
 *   forget    0 "UCMF"  4 u32 slot                                                    8
 *   wake      0 "UCMW"  4 u32 zero                                                    8
 *
 * "+" are descriptors that travel with the packet. Decoders take bytes from anywhere and write their output
 * on success only. Any thread; pure functions.
 */

#ifndef UC_NET_SHM_WIRE_H
#define UC_NET_SHM_WIRE_H

#include <stddef.h>
#include <stdint.h>

#include <ucm/compiler.h>
#include <ucm/status.h>

#include "net/fabric.h"

enum {
    UC_SHM_VERSION = 2,
    UC_SHM_HELLO_BYTES = 32,
    UC_SHM_ANSWER_BYTES = 16,
    UC_SHM_REGION_BYTES = 24,
    UC_SHM_VERDICT_BYTES = 16,
    UC_SHM_FORGET_BYTES = 8,
    UC_SHM_WAKE_BYTES = 8,
    UC_SHM_PACKET_BYTES = 32, /* the longest */

    UC_SHM_FILE_COUNT = 64,  /* files that a domain's regions may lie in */
    UC_SHM_SLOT_COUNT = 256, /* memory of a client that the server has mapped */
};

enum uc_shm_packet_kind {
    UC_SHM_REGION,
    UC_SHM_VERDICT,
    UC_SHM_FORGET,
    UC_SHM_WAKE,
};

/** What follows the greeting. A plain value. */
struct uc_shm_packet {
    enum uc_shm_packet_kind kind;
    uint32_t slot; /* below UC_SHM_SLOT_COUNT, but for a wake */
    uint64_t offset_bytes;
    uint64_t length_bytes;
    enum uc_status status;
};

/** A plain value. */
struct uc_shm_answer {
    enum uc_status status;
    uint32_t file_count; /* at most UC_SHM_FILE_COUNT */
};

void uc_shm_hello_put(uint8_t *bytes, const uint8_t nonce[UC_FABRIC_NONCE_BYTES]);

/**
 * @retval UC_ERR_INVALID_PARAM  not a hello
 * @retval UC_ERR_UNSUPPORTED    another version
 */
UC_MUST_CHECK enum uc_status uc_shm_hello_get(
        const uint8_t *bytes, size_t length, uint8_t nonce_out[UC_FABRIC_NONCE_BYTES]);

void uc_shm_answer_put(uint8_t *bytes, const struct uc_shm_answer *answer);

/** @retval UC_ERR_INVALID_PARAM not an answer, a status nobody knows, too many files */
UC_MUST_CHECK enum uc_status uc_shm_answer_get(
        const uint8_t *bytes, size_t length, struct uc_shm_answer *answer_out);

/** @return bytes written, at most UC_SHM_PACKET_BYTES */
size_t uc_shm_packet_put(uint8_t *bytes, const struct uc_shm_packet *packet);

/** @retval UC_ERR_INVALID_PARAM unknown magic, wrong length, slot, status or reserved field */
UC_MUST_CHECK enum uc_status uc_shm_packet_get(
        const uint8_t *bytes, size_t length, struct uc_shm_packet *packet_out);

#endif /* UC_NET_SHM_WIRE_H */
