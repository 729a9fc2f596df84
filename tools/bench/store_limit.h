/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file store_limit.h
 * What bounds put and get through a topology, as far as this program can measure it: memory for blocks that stay
 * in this host's memory, the medium for blocks that go past the page cache. One thread.
 */

#ifndef UC_BENCH_STORE_LIMIT_H
#define UC_BENCH_STORE_LIMIT_H

#include <ucm/dict.h>

enum {
    UC_STORE_MEDIUM_BYTES = 1024 /* of a directory's name */
};

enum uc_store_limit_kind {
    UC_STORE_LIMIT_NONE,
    UC_STORE_LIMIT_MEMORY, /* memcpy over the blocks of a sweep */
    UC_STORE_LIMIT_MEDIUM, /* files in the same directory, O_DIRECT */
};

/** Plain value: copy it freely. */
struct uc_store_limit {
    enum uc_store_limit_kind kind;
    const char *reason; /* why there is none; static storage */
};

struct uc_store_limits {
    struct uc_store_limit put;
    struct uc_store_limit get;
    char medium[UC_STORE_MEDIUM_BYTES]; /* directory; "" = neither goes to a medium */
};

/** @param[in] topology  with the placeholders replaced */
void uc_store_limits_find(const struct uc_dict *topology, struct uc_store_limits *limits_out);

#endif /* UC_BENCH_STORE_LIMIT_H */
