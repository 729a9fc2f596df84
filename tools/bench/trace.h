/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file trace.h
 * Request traces: which blocks each request refers to, in the order of its prompt. Read from a file with
 * one JSON object per line,
 *
 *   {"timestamp": ms, "input_length": tokens, "output_length": tokens, "hash_ids": [ids]}
 *
 * or generated. One thread.
 */

#ifndef UC_BENCH_TRACE_H
#define UC_BENCH_TRACE_H

#include <stddef.h>
#include <stdint.h>

#include <ucm/compiler.h>
#include <ucm/status.h>

enum {
    UC_TRACE_LINE_BYTES_MAX = 4 << 20,
    UC_TRACE_REQUEST_IDS_MAX = 1 << 16,
    UC_TRACE_BLOCK_TOKENS = 512 /* the last block of a request may hold fewer: it is partial */
};

/** One request. A plain value. */
struct uc_trace_request {
    uint64_t timestamp_ms;
    uint64_t input_length; /* tokens */
    uint64_t output_length;
    size_t first; /* of its ids in the trace's */
    size_t count;
};

/** A whole trace. Zero-initialise; release with uc_trace_fini(). */
struct uc_trace {
    struct uc_trace_request *requests;
    size_t request_count;
    size_t request_capacity;
    uint64_t *hash_ids;
    size_t hash_id_count;
    size_t hash_id_capacity;
};

/**
 * @param[in] limit  most requests to read; 0 = all
 * @retval UC_ERR_OS_API         the file cannot be read
 * @retval UC_ERR_INVALID_PARAM  a line is not such an object, is too long, or names an id twice; the text
 *                               gives file and line. Also an empty trace
 */
UC_MUST_CHECK enum uc_status uc_trace_read(
        const char *path, uint64_t limit, struct uc_trace *trace_out);

/**
 * Make a trace that looks like conversations: a few shared system prompts, each request one more turn of
 * an open conversation or the first of a new one. The same seed gives the same trace for ever.
 */
UC_MUST_CHECK enum uc_status uc_trace_generate(
        uint64_t seed, uint64_t request_count, struct uc_trace *trace_out);

void uc_trace_fini(struct uc_trace *trace);

/** Append a request with copied ids; for readers and generators. @retval UC_ERR_OUT_OF_MEMORY */
UC_MUST_CHECK enum uc_status uc_trace_add(struct uc_trace *trace,
        const struct uc_trace_request *request, const uint64_t *hash_ids, size_t count);

/** @return the ids of a request, valid until something is added. */
static inline const uint64_t *
uc_trace_hash_ids(const struct uc_trace *trace, const struct uc_trace_request *request)
{
    return trace->hash_ids + request->first;
}

#endif /* UC_BENCH_TRACE_H */
