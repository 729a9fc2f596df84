/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file decode.h
 * Typed reading of a message's fields; the first fault sticks, and what is read after it is zero. Does
 * not allocate. One thread per decoder.
 */

#ifndef UC_NET_RPC_DECODE_H
#define UC_NET_RPC_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/compiler.h>
#include <ucm/status.h>

#include "net/rpc/buffer.h"
#include "net/rpc/item.h"
#include "net/rpc/messages.h"

struct uc_decoder {
    struct uc_reader reader;
    const char *message; /* for the error text */
    const char *fault_field;
    const char *fault_text; /* NULL = none yet */
};

struct uc_decoder uc_decoder_init(struct uc_rpc_view view, const char *message);

/** Remember the first fault; static texts. */
void uc_decoder_fail(struct uc_decoder *decoder, const char *field, const char *text);

/** Status of it all; also a fault: bytes left over. */
UC_MUST_CHECK enum uc_status uc_decoder_finish(const struct uc_decoder *decoder);

/** The head of an array with exactly @p count members. */
void uc_decode_array(struct uc_decoder *decoder, const char *field, size_t count);
uint64_t uc_decode_uint(struct uc_decoder *decoder, const char *field, uint64_t max);
/** An unsigned number or nil. */
uint64_t uc_decode_uint_or_nil(struct uc_decoder *decoder, const char *field, bool *has_out);
bool uc_decode_bool(struct uc_decoder *decoder, const char *field);
/** Text of at most @p max bytes without control characters. */
struct uc_rpc_text uc_decode_text(struct uc_decoder *decoder, const char *field, size_t max);
/** A bin of unit · n bytes, n ≤ @p count_max. @return its first byte; NULL after a fault */
const uint8_t *uc_decode_bin(struct uc_decoder *decoder, const char *field, size_t unit_bytes,
        size_t count_max, size_t *count_out);
/** A bin of exactly @p length bytes, copied to @p target. */
void uc_decode_bytes(struct uc_decoder *decoder, const char *field, uint8_t *target, size_t length);
void uc_decode_skip(struct uc_decoder *decoder, const char *field);
struct uc_keys_view uc_decode_keys(struct uc_decoder *decoder, const char *field);

#endif /* UC_NET_RPC_DECODE_H */
