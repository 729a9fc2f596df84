/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file replay_node.h
 * The two processes of one inference node in a replay, and what they say to each other over channels
 * (channel.h). Each assembles the topology for its own role; tokens cross between them as bytes.
 *
 *   parent ── REQUEST ──► scheduler ── GET, PUT ──► worker
 *          ◄── OUTCOME ──           ◄── MOVED, TIERS ──
 *          ── DESCRIBE ──►
 *          ◄── TIERS ──
 *          ── FINISH ──►           ── FINISH ──►
 *          ◄── LATENCIES ──
 */

#ifndef UC_BENCH_REPLAY_NODE_H
#define UC_BENCH_REPLAY_NODE_H

#include <stddef.h>
#include <stdint.h>

#include <ucm/compiler.h>
#include <ucm/dict.h>

enum uc_replay_message {
    UC_REPLAY_READY = 1, /* to the parent: assembled. u64 status */
    UC_REPLAY_REQUEST,   /* u64 sequence, u64 ttl in ms or 0, u64 count, count × u64 hash id */
    UC_REPLAY_OUTCOME,  /* struct uc_replay_outcome, then present flags of the keys put (u8 each) */
    UC_REPLAY_GET,      /* u64 count, count × u64 hash id, token bytes */
    UC_REPLAY_PUT,      /* the same */
    UC_REPLAY_PREFETCH, /* token bytes */
    UC_REPLAY_MOVED,    /* struct uc_replay_moved, then one ok flag per key (u8) */
    UC_REPLAY_DESCRIBE, /* nothing */
    UC_REPLAY_TIERS,    /* struct uc_replay_tiers */
    UC_REPLAY_FINISH,   /* nothing */
    UC_REPLAY_LATENCIES, /* per operation: u64 count, count × u64 ns */
};

/** Operations whose latency is reported, in the order of the LATENCIES message. */
#define UC_REPLAY_OPERATION_MAP(X) X(lookup) X(prefetch) X(pin) X(read) X(alloc) X(write) X(commit)

#define UC_REPLAY_OPERATION_ENUM_(name) UC_REPLAY_OP_##name,
enum uc_replay_operation {
    UC_REPLAY_OPERATION_MAP(UC_REPLAY_OPERATION_ENUM_) UC_REPLAY_OP_COUNT
};
#undef UC_REPLAY_OPERATION_ENUM_

/** What became of one request. Plain value. */
struct uc_replay_outcome {
    uint64_t hits;         /* contiguous present prefix */
    uint64_t put_keys;     /* keys of the put window, 0 if there was none or it was refused */
    uint64_t put_failed;   /* of these, not made visible */
    uint64_t refused_puts; /* 1: NoSpace */
    uint64_t failed_reads; /* blocks whose load failed */
    uint64_t prefetches;   /* rounds, those that failed among them */
    uint64_t failed_prefetches;
    uint64_t verified_bytes;
    uint64_t mismatches; /* blocks read with wrong bytes */
    uint64_t errors;     /* calls that failed and should not */
    uint64_t worker_died;
};

/** What became of one GET or PUT. Plain value. */
struct uc_replay_moved {
    uint64_t elapsed_ns; /* submit to event, all jobs of the window */
    uint64_t verified_bytes;
    uint64_t mismatches;
    uint64_t errors; /* submits or waits that failed */
};

/** What both processes are given. Borrowed. */
struct uc_replay_setup {
    const struct uc_dict *topology;
    const char *where; /* named before an error of the topology; NULL = nothing */
    uint64_t block_bytes;
    size_t node;
};

/** Serve the parent until FINISH or until it is gone. @return the exit code of the process */
int uc_replay_scheduler_run(const struct uc_replay_setup *setup, int parent_fd, int worker_fd);
int uc_replay_worker_run(const struct uc_replay_setup *setup, int scheduler_fd);

#endif /* UC_BENCH_REPLAY_NODE_H */
