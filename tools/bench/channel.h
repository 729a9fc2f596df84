/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file channel.h
 * Messages between the processes of one replay, over a socket pair: u32 type, u64 length, bytes. Both ends
 * are this program, so the content is trusted; a dead peer shows as UC_ERR_UNHEALTHY.
 */

#ifndef UC_BENCH_CHANNEL_H
#define UC_BENCH_CHANNEL_H

#include <stddef.h>
#include <stdint.h>

#include <ucm/compiler.h>
#include <ucm/status.h>

/** A message under construction, or a received one being read. Zero-initialise; reused. */
struct uc_message {
    uint8_t *bytes;
    size_t length;
    size_t capacity;
    size_t cursor; /* of reading */
    uint32_t type;
};

/** Start a message of that type. */
void uc_message_begin(struct uc_message *message, uint32_t type);
/** Append; exits the process when memory is short (this is a benchmark's own process). */
void uc_message_put(struct uc_message *message, const void *bytes, size_t length);
void uc_message_put_u64(struct uc_message *message, uint64_t value);
/** @return the next @p length bytes; exits when the message is shorter (a bug of this program). */
const void *uc_message_get(struct uc_message *message, size_t length);
uint64_t uc_message_get_u64(struct uc_message *message);
void uc_message_fini(struct uc_message *message);

/** Send or receive one whole message; blocks. @retval UC_ERR_UNHEALTHY the other process is gone */
enum uc_status uc_channel_send(int fd, const struct uc_message *message);
UC_MUST_CHECK enum uc_status uc_channel_receive(int fd, struct uc_message *message);

#endif /* UC_BENCH_CHANNEL_H */
