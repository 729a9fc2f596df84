/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Runs a fuzz target without libFuzzer: each seed as it is, then random changes of them.
 *
 *   fuzz_x [SEED_FILE]…     seeds; hex text (with # comments) if the name ends in .hex, else bytes
 *   UCM_FUZZ_RUNS=N         inputs to try (default: for UCM_FUZZ_SECONDS)
 *   UCM_FUZZ_SECONDS=S      default 2
 *   UCM_FUZZ_SEED=X         of the random numbers; printed, so that a run can be repeated
 *
 *   UCM_FUZZ_CRASH=FILE     write each input there before it is tried (slow): what is there after a crash
 *                           caused it, and can be given as a seed
 */

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ucm/clock.h>

#include "test/fuzz/fuzz.h"

enum {
    SEEDS_MAX = 256,
    SEED_BYTES_MAX = 64 << 10,
    CHANGES_MAX = 6,
    CLOCK_EVERY = 256,
    SECONDS_DEFAULT = 2,
};

struct seed {
    uint8_t *bytes;
    size_t length;
};

struct fuzz {
    struct seed seeds[SEEDS_MAX];
    size_t seed_count;
    uint64_t random; /* state of the generator */
    uint8_t *input;  /* SEED_BYTES_MAX */
    const char *crash_path;
};

/* xorshift64*: small, and the same everywhere. */
static uint64_t
next_random(struct fuzz *fuzz)
{
    fuzz->random ^= fuzz->random >> 12;
    fuzz->random ^= fuzz->random << 25;
    fuzz->random ^= fuzz->random >> 27;
    return fuzz->random * UINT64_C(0x2545f4914f6cdd1d);
}

static size_t
below(struct fuzz *fuzz, size_t limit)
{
    return limit == 0 ? 0 : (size_t)((next_random(fuzz) >> 16) % limit);
}

static size_t
flip_bit(struct fuzz *fuzz, uint8_t *bytes, size_t length)
{
    if (length > 0) {
        bytes[below(fuzz, length)] ^= (uint8_t)(1u << below(fuzz, 8));
    }
    return length;
}

static size_t
set_byte(struct fuzz *fuzz, uint8_t *bytes, size_t length)
{
    static const uint8_t odd[] = {0x00, 0x01, 0x7f, 0x80, 0xff, 0xc0, 0xc1, 0xc6, 0xdb, 0xdd, 0xdf};

    if (length > 0) {
        bytes[below(fuzz, length)] =
                below(fuzz, 2) == 0 ? odd[below(fuzz, sizeof(odd))] : (uint8_t)next_random(fuzz);
    }
    return length;
}

static size_t
set_number(struct fuzz *fuzz, uint8_t *bytes, size_t length)
{
    static const uint64_t odd[] = {0, 1, 0x7fffffff, 0x80000000, UINT32_MAX, UINT64_C(1) << 32,
            INT64_MAX, UINT64_MAX, UINT64_MAX - 15};
    uint64_t value = odd[below(fuzz, sizeof(odd) / sizeof(odd[0]))];
    size_t width = below(fuzz, 2) == 0 ? 4 : 8;
    bool big_endian = below(fuzz, 2) == 0;
    size_t at;

    if (length < width) {
        return length;
    }
    at = below(fuzz, length - width + 1);
    for (size_t idx = 0; idx < width; idx++) {
        bytes[at + idx] = (uint8_t)(value >> 8 * (big_endian ? width - 1 - idx : idx));
    }
    return length;
}

static size_t
cut(struct fuzz *fuzz, uint8_t *bytes, size_t length)
{
    (void)bytes;
    return below(fuzz, length + 1);
}

static size_t
remove_some(struct fuzz *fuzz, uint8_t *bytes, size_t length)
{
    size_t at = below(fuzz, length + 1);
    size_t count = below(fuzz, length - at + 1);

    memmove(bytes + at, bytes + at + count, length - at - count);
    return length - count;
}

static size_t
repeat_some(struct fuzz *fuzz, uint8_t *bytes, size_t length)
{
    size_t at = below(fuzz, length + 1);
    size_t count = below(fuzz, length - at + 1);

    if (count > SEED_BYTES_MAX - length) {
        return length;
    }
    memmove(bytes + at + count, bytes + at, length - at);
    return length + count;
}

static size_t
add_random(struct fuzz *fuzz, uint8_t *bytes, size_t length)
{
    size_t count = below(fuzz, 32);

    for (; count > 0 && length < SEED_BYTES_MAX; count--) {
        bytes[length++] = (uint8_t)next_random(fuzz);
    }
    return length;
}

static size_t
splice(struct fuzz *fuzz, uint8_t *bytes, size_t length)
{
    const struct seed *other = &fuzz->seeds[below(fuzz, fuzz->seed_count)];
    size_t from = below(fuzz, other->length + 1);
    size_t count = other->length - from;
    size_t at = below(fuzz, length + 1);

    if (count > SEED_BYTES_MAX - at) {
        count = SEED_BYTES_MAX - at;
    }
    memcpy(bytes + at, other->bytes + from, count);
    return at + count;
}

static size_t
mutate(struct fuzz *fuzz)
{
    static size_t (*const changes[])(struct fuzz *, uint8_t *, size_t) = {flip_bit, flip_bit,
            set_byte, set_byte, set_number, set_number, cut, remove_some, repeat_some, add_random,
            splice};
    const struct seed *seed = &fuzz->seeds[below(fuzz, fuzz->seed_count)];
    size_t length = seed->length;

    memcpy(fuzz->input, seed->bytes, length);
    for (size_t count = 1 + below(fuzz, CHANGES_MAX); count > 0; count--) {
        length = changes[below(fuzz, sizeof(changes) / sizeof(changes[0]))](
                fuzz, fuzz->input, length);
    }
    return length;
}

/* Try a copy of exactly that size, so that a sanitizer sees a read behind its end. */
static void
try_input(const struct fuzz *fuzz, const uint8_t *bytes, size_t length)
{
    uint8_t *copy = malloc(length > 0 ? length : 1);

    if (copy == NULL) {
        (void)fprintf(stderr, "out of memory\n");
        exit(EXIT_FAILURE);
    }
    memcpy(copy, bytes, length);
    if (fuzz->crash_path != NULL) {
        FILE *file = fopen(fuzz->crash_path, "wb");

        if (file != NULL) {
            (void)fwrite(copy, 1, length, file);
            (void)fclose(file);
        }
    }
    (void)LLVMFuzzerTestOneInput(copy, length);
    free(copy);
}

/* Hex text in place: bytes in, bytes out. */
static size_t
from_hex(uint8_t *text, size_t length)
{
    size_t count = 0;
    size_t digits = 0;
    bool comment = false;

    for (size_t idx = 0; idx < length; idx++) {
        char c = (char)text[idx];
        const char *digit;
        static const char hex[] = "0123456789abcdef";

        comment = c == '#' || (comment && c != '\n');
        digit = comment || c == '\0' ? NULL : strchr(hex, c);
        if (digit == NULL) {
            continue;
        }
        if (digits++ % 2 == 0) {
            text[count] = (uint8_t)((digit - hex) << 4);
        } else {
            text[count] = (uint8_t)(text[count] | (digit - hex));
            count++;
        }
    }
    return count;
}

static void
add_seed(struct fuzz *fuzz, const char *path)
{
    FILE *file = fopen(path, "rb");
    uint8_t *bytes = malloc(SEED_BYTES_MAX);
    size_t length;
    const char *suffix = strrchr(path, '.');

    if (file == NULL || bytes == NULL || fuzz->seed_count == SEEDS_MAX) {
        (void)fprintf(stderr, "cannot use the seed %s\n", path);
        exit(EXIT_FAILURE);
    }
    length = fread(bytes, 1, SEED_BYTES_MAX, file);
    (void)fclose(file);
    if (suffix != NULL && strcmp(suffix, ".hex") == 0) {
        length = from_hex(bytes, length);
    }
    fuzz->seeds[fuzz->seed_count++] = (struct seed){.bytes = bytes, .length = length};
}

static uint64_t
from_environment(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);

    return text == NULL || text[0] == '\0' ? otherwise : strtoull(text, NULL, 0);
}

static uint64_t
run(struct fuzz *fuzz)
{
    uint64_t runs = from_environment("UCM_FUZZ_RUNS", UINT64_MAX);
    uint64_t seconds = from_environment("UCM_FUZZ_SECONDS", SECONDS_DEFAULT);
    uint64_t end_ns = uc_clock_now_ns() + seconds * UINT64_C(1000000000);
    uint64_t done = 0;

    for (size_t idx = 0; idx < fuzz->seed_count; idx++) {
        try_input(fuzz, fuzz->seeds[idx].bytes, fuzz->seeds[idx].length);
    }
    for (; done < runs; done++) {
        if (runs == UINT64_MAX && done % CLOCK_EVERY == 0 && uc_clock_now_ns() >= end_ns) {
            break;
        }
        try_input(fuzz, fuzz->input, mutate(fuzz));
    }
    return done;
}

int
main(int argc, char **argv)
{
    static struct fuzz fuzz;
    uint64_t seed = from_environment("UCM_FUZZ_SEED", uc_clock_now_ns() | 1);

    fuzz.random = seed != 0 ? seed : 1;
    fuzz.crash_path = getenv("UCM_FUZZ_CRASH");
    fuzz.input = malloc(SEED_BYTES_MAX);
    if (fuzz.input == NULL) {
        return EXIT_FAILURE;
    }
    for (int idx = 1; idx < argc; idx++) {
        add_seed(&fuzz, argv[idx]);
    }
    if (fuzz.seed_count == 0) {
        fuzz.seeds[fuzz.seed_count++] = (struct seed){.bytes = calloc(1, 64), .length = 64};
    }

    (void)printf("%s: UCM_FUZZ_SEED=%" PRIu64 ", %zu seeds\n", argv[0], seed, fuzz.seed_count);
    (void)fflush(stdout);
    (void)printf("%s: %" PRIu64 " inputs\n", argv[0], run(&fuzz));
    for (size_t idx = 0; idx < fuzz.seed_count; idx++) {
        free(fuzz.seeds[idx].bytes);
    }
    free(fuzz.input);
    return EXIT_SUCCESS;
}
