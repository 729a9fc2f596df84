/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file bytes.h
 * Little-endian accessors and a bounded reader for bytes that come from outside.
 * Pure functions; any thread.
 */

#ifndef UC_BASE_BYTES_H
#define UC_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline void
uc_put_le32(uint8_t *bytes, uint32_t value)
{
    for (size_t idx = 0; idx < 4; idx++) {
        bytes[idx] = (uint8_t)(value >> (8 * idx));
    }
}

static inline void
uc_put_le64(uint8_t *bytes, uint64_t value)
{
    for (size_t idx = 0; idx < 8; idx++) {
        bytes[idx] = (uint8_t)(value >> (8 * idx));
    }
}

static inline uint32_t
uc_get_le32(const uint8_t *bytes)
{
    uint32_t value = 0;

    for (size_t idx = 0; idx < 4; idx++) {
        value |= (uint32_t)bytes[idx] << (8 * idx);
    }
    return value;
}

static inline uint64_t
uc_get_le64(const uint8_t *bytes)
{
    uint64_t value = 0;

    for (size_t idx = 0; idx < 8; idx++) {
        value |= (uint64_t)bytes[idx] << (8 * idx);
    }
    return value;
}

/** Reads forward through untrusted bytes; `failed` sticks, and what fails reads as zero or NULL. */
struct uc_reader {
    const uint8_t *bytes;
    size_t left;
    bool failed;
};

static inline struct uc_reader
uc_reader_init(const uint8_t *bytes, size_t length)
{
    struct uc_reader reader = {.bytes = bytes, .left = length};

    return reader;
}

/** @return @p length bytes, or NULL if fewer are left. */
static inline const uint8_t *
uc_reader_take(struct uc_reader *reader, size_t length)
{
    const uint8_t *bytes = reader->bytes;

    if (reader->failed || length > reader->left) {
        reader->failed = true;
        return NULL;
    }

    reader->bytes += length;
    reader->left -= length;
    return bytes;
}

static inline uint32_t
uc_reader_le32(struct uc_reader *reader)
{
    const uint8_t *bytes = uc_reader_take(reader, 4);

    return bytes == NULL ? 0 : uc_get_le32(bytes);
}

static inline uint64_t
uc_reader_le64(struct uc_reader *reader)
{
    const uint8_t *bytes = uc_reader_take(reader, 8);

    return bytes == NULL ? 0 : uc_get_le64(bytes);
}

static inline void
uc_reader_copy(struct uc_reader *reader, void *target, size_t length)
{
    const uint8_t *bytes = uc_reader_take(reader, length);

    if (bytes == NULL) {
        memset(target, 0, length);
    } else {
        memcpy(target, bytes, length);
    }
}

#endif /* UC_BASE_BYTES_H */
