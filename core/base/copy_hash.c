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

/* memcpy() may be given no NULL, not even of no length. */
static void
copy_plain(uint8_t *to, const uint8_t *from, size_t length)
{
    if (length > 0) {
        memcpy(to, from, length);
    }
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
take_lines(uint8_t *stage, const uint8_t *from, size_t length)
{
    for (size_t at = 0; at < length; at += LINE) {
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

/* Whole lines, some pages by turns, since the hardware's own look ahead ends at each page. */
static void
stream_pages(uint8_t *to, const uint8_t *from, size_t page_count)
{
    for (size_t at = 0; at < PAGE; at += LINE) {
        for (size_t page = 0; page < page_count; page++) {
            stream_line(to + page * PAGE + at, from + page * PAGE + at);
        }
    }
}

/* The same, and meanwhile what is copied next comes in. */
static void
stream_two_pages(uint8_t *to, const uint8_t *from, const struct uc_copy_part *next)
{
    for (size_t at = 0; at < PAGE; at += LINE) {
        for (size_t page = 0; page < HASH_PIECE; page += PAGE) {
            if (page + at < next->length) {
                UC_PREFETCH((const uint8_t *)next->bytes + page + at);
            }
            stream_line(to + page + at, from + page + at);
        }
    }
}

static void
stream_lines(uint8_t *to, const uint8_t *from, size_t length, const struct uc_copy_part *next)
{
    for (size_t at = 0; at < length; at += LINE) {
        if (at < next->length) {
            UC_PREFETCH((const uint8_t *)next->bytes + at);
        }
        stream_line(to + at, from + at);
    }
}

/* Bytes up to the next line of the destination, of so many. */
static size_t
bytes_to_line(const uint8_t *to, size_t length)
{
    size_t bytes = (LINE - (uintptr_t)to % LINE) % LINE;

    return bytes < length ? bytes : length;
}

/* Whole lines past the caches, what is left at both ends not. A fence has to follow. */
static void
stream_part(uint8_t *to, const uint8_t *from, size_t length, const struct uc_copy_part *next)
{
    size_t at = bytes_to_line(to, length);
    size_t lines;

    copy_plain(to, from, at);
    for (; length - at >= COPY_PIECE; at += COPY_PIECE) {
        stream_pages(to + at, from + at, COPY_PIECE / PAGE);
    }
    if (length - at >= HASH_PIECE) {
        stream_two_pages(to + at, from + at, next);
        at += HASH_PIECE;
    }
    lines = (length - at) / LINE * LINE;
    stream_lines(to + at, from + at, lines, next);
    copy_plain(to + at + lines, from + at + lines, length - at - lines);
}

static size_t
length_of(const struct uc_copy_part *parts, size_t count)
{
    size_t length = 0;

    for (size_t idx = 0; idx < count; idx++) {
        length += parts[idx].length;
    }
    return length;
}

static const struct uc_copy_part nothing = {NULL, 0};
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
    if (length >= STREAM_MIN) {
        uc_copy_run_told(to, from, length, tell, context);
        uc_copy_runs_end();
    } else {
        copy_small(to, from, length, tell, context);
    }
}

void
uc_copy_stream(void *to, const void *from, size_t length)
{
    if (length >= STREAM_MIN) {
        uc_copy_run(to, from, length);
        uc_copy_runs_end();
    } else {
        copy_plain(to, from, length);
    }
}

void
uc_copy_gather(void *to, const struct uc_copy_part *parts, size_t count)
{
    uint8_t *target = to;

#ifdef __x86_64__
    if (length_of(parts, count) >= STREAM_MIN) {
        for (size_t idx = 0; idx < count; idx++) {
            stream_part(target, parts[idx].bytes, parts[idx].length,
                    idx + 1 < count ? &parts[idx + 1] : &nothing);
            target += parts[idx].length;
        }
        uc_copy_runs_end();
        return;
    }
#endif
    for (size_t idx = 0; idx < count; idx++) {
        copy_plain(target, parts[idx].bytes, parts[idx].length);
        target += parts[idx].length;
    }
}

void
uc_copy_run(void *to, const void *from, size_t length)
{
#ifdef __x86_64__
    stream_part(to, from, length, &nothing);
#else
    copy_plain(to, from, length);
#endif
}

void
uc_copy_run_told(void *to, const void *from, size_t length, uc_copy_tell_fn *tell, void *context)
{
    uint8_t *target = to;
    const uint8_t *source = from;

#ifdef __x86_64__
    alignas(LINE) uint8_t stage[HASH_PIECE];
    size_t head = bytes_to_line(target, length);

    copy_small(target, source, head, tell, context);
    target += head;
    source += head;
    length -= head;
    while (length >= LINE) {
        size_t piece = length < HASH_PIECE ? length / LINE * LINE : HASH_PIECE;
        struct uc_copy_part next = {source + piece, length - piece};

        take_lines(stage, source, piece);
        tell(context, stage, piece);
        if (piece == HASH_PIECE) {
            stream_two_pages(target, stage, &next);
        } else {
            stream_lines(target, stage, piece, &next);
        }
        target += piece;
        source += piece;
        length -= piece;
    }
#endif
    copy_small(target, source, length, tell, context);
}

void
uc_copy_runs_end(void)
{
#ifdef __x86_64__
    _mm_sfence(); /* streamed stores are ordered by nothing else */
#endif
}
