/* SPDX-License-Identifier: Apache-2.0 */

#include "core/base/copy_hash.h"

#include <assert.h>
#include <string.h>

/* The complete state type, so that its size is known. */
#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>
#ifdef UC_XXH_DISPATCH
#    include <xxh_x86dispatch.h> /* the widest vectors that this processor has */
#endif
#ifdef __x86_64__
#    include <emmintrin.h>
#endif

enum {
    LINE = 64,
    PAGE = 4096,
    HASH_PIECE = 2 * PAGE, /* fits into the first cache twice: source and stage */
    COPY_PIECE = 4 * PAGE,
    STREAM_MIN = 32 * 1024, /* shorter copies are likely to be read soon */
};

static_assert(sizeof(XXH3_state_t) <= UC_COPY_HASH_STATE_BYTES, "room for the state");

static XXH3_state_t *
state_of(struct uc_copy_hash *hash)
{
    return (XXH3_state_t *)(void *)hash->state;
}

/* ---- copies past the caches ---- */

#ifdef __x86_64__
static void
stream_line(uint8_t *to, const uint8_t *from)
{
    __m128i first = _mm_loadu_si128((const __m128i *)(const void *)from);
    __m128i second = _mm_loadu_si128((const __m128i *)(const void *)(from + 16));
    __m128i third = _mm_loadu_si128((const __m128i *)(const void *)(from + 32));
    __m128i fourth = _mm_loadu_si128((const __m128i *)(const void *)(from + 48));

    _mm_stream_si128((__m128i *)(void *)to, first);
    _mm_stream_si128((__m128i *)(void *)(to + 16), second);
    _mm_stream_si128((__m128i *)(void *)(to + 32), third);
    _mm_stream_si128((__m128i *)(void *)(to + 48), fourth);
}

/* memcpy() takes the processor's copy instruction here, which starts too slowly for one piece. */
static void
take_piece(uint8_t *stage, const uint8_t *from)
{
    for (size_t at = 0; at < HASH_PIECE; at += LINE) {
        __m128i first = _mm_loadu_si128((const __m128i *)(const void *)(from + at));
        __m128i second = _mm_loadu_si128((const __m128i *)(const void *)(from + at + 16));
        __m128i third = _mm_loadu_si128((const __m128i *)(const void *)(from + at + 32));
        __m128i fourth = _mm_loadu_si128((const __m128i *)(const void *)(from + at + 48));

        _mm_store_si128((__m128i *)(void *)(stage + at), first);
        _mm_store_si128((__m128i *)(void *)(stage + at + 16), second);
        _mm_store_si128((__m128i *)(void *)(stage + at + 32), third);
        _mm_store_si128((__m128i *)(void *)(stage + at + 48), fourth);
    }
}

/* While the stores drain, the next piece comes in: two pages by turns, since the hardware's own look ahead ends
   at each page. @param next NULL = none */
static void
put_piece(uint8_t *to, const uint8_t *stage, const uint8_t *next)
{
    for (size_t at = 0; at < PAGE; at += LINE) {
        for (size_t page = 0; page < HASH_PIECE; page += PAGE) {
            if (next != NULL) {
                UC_PREFETCH(next + page + at);
            }
            stream_line(to + page + at, stage + page + at);
        }
    }
}

/* Bytes up to the next line of the destination. */
static size_t
bytes_to_line(const uint8_t *to)
{
    return (LINE - (uintptr_t)to % LINE) % LINE;
}
#endif

static void
copy_small(uint8_t *to, const uint8_t *from, size_t length, uc_copy_tell_fn *tell, void *context)
{
    while (length > 0) {
        size_t piece = length < STREAM_MIN ? length : STREAM_MIN;

        memcpy(to, from, piece);
        tell(context, to, piece);
        to += piece;
        from += piece;
        length -= piece;
    }
}

static void
add_to_sum(void *context, const void *bytes, size_t length)
{
    uc_copy_hash_add(context, bytes, length);
}

/* ---- functions of the header ---- */

void
uc_copy_hash_init(struct uc_copy_hash *hash)
{
    (void)XXH3_64bits_reset(state_of(hash));
}

void
uc_copy_hash_add(struct uc_copy_hash *hash, const void *bytes, size_t length)
{
    (void)XXH3_64bits_update(state_of(hash), bytes, length);
}

uint64_t
uc_copy_hash_sum(const struct uc_copy_hash *hash)
{
    return XXH3_64bits_digest((const XXH3_state_t *)(const void *)hash->state);
}

uint64_t
uc_copy_hash_of(const void *bytes, size_t length)
{
    return XXH3_64bits(bytes, length);
}

void
uc_copy_hash_copy(struct uc_copy_hash *hash, void *to, const void *from, size_t length)
{
    uc_copy_told(to, from, length, add_to_sum, hash);
}

void
uc_copy_told(void *to, const void *from, size_t length, uc_copy_tell_fn *tell, void *context)
{
    uint8_t *target = to;
    const uint8_t *source = from;

#ifdef __x86_64__
    if (length >= STREAM_MIN) {
        alignas(LINE) uint8_t stage[HASH_PIECE];
        size_t head = bytes_to_line(target);

        copy_small(target, source, head, tell, context);
        target += head;
        source += head;
        length -= head;
        while (length >= HASH_PIECE) {
            take_piece(stage, source);
            tell(context, stage, HASH_PIECE);
            target += HASH_PIECE;
            source += HASH_PIECE;
            length -= HASH_PIECE;
            put_piece(target - HASH_PIECE, stage, length >= HASH_PIECE ? source : NULL);
        }
        _mm_sfence(); /* streamed stores are ordered by nothing else */
    }
#endif
    copy_small(target, source, length, tell, context);
}

void
uc_copy_stream(void *to, const void *from, size_t length)
{
    uint8_t *target = to;
    const uint8_t *source = from;

#ifdef __x86_64__
    if (length >= STREAM_MIN) {
        size_t head = bytes_to_line(target);

        memcpy(target, source, head);
        target += head;
        source += head;
        length -= head;
        for (; length >= COPY_PIECE; length -= COPY_PIECE) {
            for (size_t at = 0; at < PAGE; at += LINE) {
                for (size_t page = 0; page < COPY_PIECE; page += PAGE) {
                    stream_line(target + page + at, source + page + at);
                }
            }
            target += COPY_PIECE;
            source += COPY_PIECE;
        }
        _mm_sfence();
    }
#endif
    memcpy(target, source, length);
}
