/* SPDX-License-Identifier: Apache-2.0 */

#include "tools/bench/block_content.h"

#include <endian.h>
#include <string.h>

#include "core/base/bytes.h"

/* Odd constants without structure; changing one changes every id or every block. */
#define ID_LOW_SALT   0x243f6a8885a308d3ull
#define ID_HIGH_SALT  0x13198a2e03707344ull
#define CONTENT_SALT  0xa4093822299f31d1ull
#define WORD_STEP     0x9e3779b97f4a7c15ull
#define WORD_MULTIPLY 0xd6e8feb86659fd93ull

/* A bijection in which every input bit changes about half of the output. */
static uint64_t
finalise(uint64_t value)
{
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9ull;
    value = (value ^ value >> 27) * 0x94d049bb133111ebull;
    return value ^ value >> 31;
}

struct uc_block_id
uc_block_id_from_hash(uint64_t hash_id)
{
    struct uc_block_id id;

    uc_put_le64(id.bytes, finalise(hash_id ^ ID_LOW_SALT));
    uc_put_le64(id.bytes + 8, finalise(hash_id * WORD_STEP ^ ID_HIGH_SALT));
    return id;
}

/* One multiplication per word: cheap enough for memory speed, yet shifted or swapped words show. */
static uint64_t
content_word(uint64_t base, size_t idx)
{
    uint64_t word = base + (uint64_t)idx * WORD_STEP;

    word = (word ^ word >> 32) * WORD_MULTIPLY;
    return htole64(word ^ word >> 32);
}

void
uc_block_content_fill(uint64_t hash_id, void *block, size_t length_bytes)
{
    uint64_t base = finalise(hash_id ^ CONTENT_SALT);
    size_t word_count = length_bytes / sizeof(base);
    uint8_t *bytes = block;
    uint64_t last;

    for (size_t idx = 0; idx < word_count; idx++) {
        uint64_t word = content_word(base, idx);

        memcpy(bytes + idx * sizeof(word), &word, sizeof(word));
    }
    last = content_word(base, word_count);
    memcpy(bytes + word_count * sizeof(last), &last, length_bytes % sizeof(last));
}

/* First byte from @p first on, below @p length_bytes, that differs; one does. */
static uint64_t
first_difference(uint64_t base, const uint8_t *bytes, size_t first, size_t length_bytes)
{
    for (size_t at = first; at < length_bytes; at++) {
        uint64_t word = content_word(base, at / sizeof(word));
        uint8_t want[sizeof(word)];

        memcpy(want, &word, sizeof(word));
        if (want[at % sizeof(word)] != bytes[at]) {
            return at;
        }
    }

    return length_bytes;
}

bool
uc_block_content_check(
        uint64_t hash_id, const void *block, size_t length_bytes, uint64_t *offset_out)
{
    uint64_t base = finalise(hash_id ^ CONTENT_SALT);
    size_t word_count = length_bytes / sizeof(base);
    const uint8_t *bytes = block;
    uint64_t last;

    for (size_t idx = 0; idx < word_count; idx++) {
        uint64_t word;

        memcpy(&word, bytes + idx * sizeof(word), sizeof(word));
        if (word != content_word(base, idx)) {
            *offset_out = first_difference(base, bytes, idx * sizeof(word), length_bytes);
            return false;
        }
    }
    last = content_word(base, word_count);
    if (memcmp(bytes + word_count * sizeof(last), &last, length_bytes % sizeof(last)) != 0) {
        *offset_out = first_difference(base, bytes, word_count * sizeof(last), length_bytes);
        return false;
    }

    return true;
}
