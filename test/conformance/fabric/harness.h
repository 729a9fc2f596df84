/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file harness.h
 * A target with a thread of its own and an initiator on the test's thread, over the provider that
 * UCM_FABRIC names (default tcp) at the address UCM_FABRIC_ADDRESS (default 127.0.0.1).
 * UCM_FABRIC_CONNECTIONS is how many connections the initiator makes per endpoint (default 0: its choice).
 * UCM_TEST_SCALE is a percentage for the heavy counts, for slow machines; UCM_TEST_CYCLES is the number
 * of connections that the soak test makes one after the other.
 *
 * Threads: everything is called by the test's thread. What belongs to the target's thread is touched
 * by functions handed to target_call(), or is atomic.
 */

#ifndef UC_TEST_FABRIC_HARNESS_H
#define UC_TEST_FABRIC_HARNESS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <check.h>

#include "net/fabric.h"

enum {
    REGION_BYTES = 4 << 20, /* of every region of the target */
    REGION_COUNT = 2,       /* per domain */
    DOMAIN_COUNT = 2,
    LOCAL_BYTES = 8 << 20, /* the initiator's buffer */
    SLOT_BYTES = 64 << 10, /* what hold() takes for a slot */
    SLOT_COUNT = REGION_BYTES / SLOT_BYTES,
    GRANT_COUNT = 512,
    PIECE_COUNT = 512,
    ADDRESS_BYTES = 256,
    FLIGHT_BYTES = 64 << 10, /* of an operation in a flight */
    GENERATION = 7,          /* of every slot */
};

struct target;

/** What a nonce stands for, and what became of the endpoint. The address is the peer handle. */
struct grant {
    struct target *target;
    struct uc_fabric_endpoint *endpoint; /* target's thread */
    enum uc_fabric_access access;
    size_t domain_idx;
    bool is_spent; /* target's thread */
    _Atomic int connected_count;
    _Atomic int gone_count;
};

struct target {
    const struct uc_fabric_ops *ops;
    struct uc_fabric *fabric;
    struct uc_fabric_domain *domains[DOMAIN_COUNT];
    struct uc_fabric_region *regions[DOMAIN_COUNT][REGION_COUNT];
    int memory_fd[DOMAIN_COUNT]; /* the regions one behind the other */
    uint8_t *memory[DOMAIN_COUNT][REGION_COUNT];
    struct uc_fabric_region_key keys[DOMAIN_COUNT][REGION_COUNT];
    struct uc_fabric_listener *listener;
    uint16_t port;
    char address[ADDRESS_BYTES];
    struct grant grants[GRANT_COUNT];
    size_t grant_count;
    _Atomic int hold_count; /* successful ones */
    _Atomic int release_count;
    _Atomic int wrong_hold_count; /* not inside the region */

    pthread_t thread;
    int wake_fd;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    void (*call)(struct target *target, void *argument); /* guarded by lock; NULL = none waits */
    void *argument;
    bool is_paused; /* guarded by lock */
    bool stop;
};

struct initiator {
    const struct uc_fabric_ops *ops;
    struct uc_fabric *fabric;
    struct uc_fabric_caps caps;
    struct uc_fabric_domain *domain;
    struct uc_fabric_region *region;
    uint8_t *memory;
};

/** Where a target listens, and what it gives: this process's or a process of its own. */
struct destination {
    char address[ADDRESS_BYTES];
    uint16_t port;
    struct uc_fabric_region_key keys[REGION_COUNT]; /* of one domain */
};

/** One connection as the initiator sees it. */
struct link {
    struct uc_fabric_endpoint *endpoint;
    struct grant *grant; /* NULL for a nonce that was never given */
    int ok_count;
    int failure_count;
    enum uc_status failure;
};

struct test_op {
    struct uc_fabric_op op;
    struct uc_fabric_piece pieces[PIECE_COUNT];
    int done_count;
    enum uc_status status;
    int order; /* of its completion among all */
};

extern struct target target;
extern struct initiator initiator;

/** Fixtures: open both sides, all memory zero. */
void both_open(void);
void both_close(void);

/** The halves of them. The initiator needs the port to find its device. */
void target_open(void);
void target_close(void);
void initiator_open(uint16_t port);
void initiator_close(void);

const char *fabric_name(void);
const char *fabric_address(void);

/** @return at least 1 */
int scaled(int count);

/** @return the number in an environment variable, @p otherwise without one. */
long environment_number(const char *name, long otherwise);

/** Run a function on the target's thread and wait for it. */
void target_call(void (*call)(struct target *target, void *argument), void *argument);

/** The target stops polling; target_call still works. */
void target_pause(void);
void target_resume(void);

/** Fill a region of the target with a pattern of @p seed. */
void target_fill(size_t domain_idx, size_t region_idx, uint8_t seed);

/** @return byte @p offset of the pattern. */
uint8_t pattern(uint8_t seed, uint64_t offset);

/**
 * Compare with the pattern from @p offset on; assertions per byte would be too slow.
 *
 * @return index of the first byte that differs, @p count if none does
 */
size_t pattern_match(const uint8_t *bytes, uint8_t seed, uint64_t offset, size_t count);

/** @return index of the first byte that is not @p value, @p count if none is. */
size_t value_match(const uint8_t *bytes, uint8_t value, size_t count);

/** Copy target memory out, on the target's thread. */
void target_peek(size_t domain_idx, size_t region_idx, uint64_t offset, void *bytes, size_t count);

/** @return a region's memory as it is registered; target's thread. */
struct uc_fabric_memory target_memory(
        const struct target *self, size_t domain_idx, size_t region_idx);

/** Fence and free the target's endpoint of a grant. */
void target_cut(struct grant *grant);

/** @return what is left of a nonce: a fresh grant. */
struct grant *grant_make(size_t domain_idx, enum uc_fabric_access access);

/** Make a spent grant fresh again; its endpoint is gone. */
void grant_renew(struct grant *grant);

/** The nonce of a target's grant number @p grant_idx. */
void nonce_of_grant(size_t grant_idx, uint8_t *nonce);

/** Start connecting with the keys of a domain. */
void link_start(struct link *link, struct grant *grant, size_t key_domain_idx, uint64_t timeout_ms);

/** Start with any nonce, at any target. */
void link_start_nonce(struct link *link, const uint8_t *nonce, const struct destination *where,
        uint64_t timeout_ms);

/** Start with keys of the test's own. */
void link_start_keys(struct link *link, struct grant *grant,
        const struct uc_fabric_region_key *keys, size_t key_count);

/** @return this process's target, with the keys of a domain */
struct destination target_destination(size_t key_domain_idx);

/** Connect to domain 0 and wait until it is ready on both sides. */
void link_open(struct link *link, enum uc_fabric_access access);
void link_open_domain(
        struct link *link, size_t domain_idx, size_t key_domain_idx, enum uc_fabric_access access);
void link_close(struct link *link);

/** Poll the initiator once, waiting a little if it has nothing to do. */
void initiator_step(void);

/** Seconds after which a wait has failed. */
double patience_s(void);
double now_s(void);

/** Poll the initiator until the condition holds; fail the test after patience_s(). */
#define wait_until(condition)                          \
    do {                                               \
        double give_up_s_ = now_s() + patience_s();    \
        while (!(condition)) {                         \
            if (now_s() > give_up_s_) {                \
                ck_abort_msg("never: %s", #condition); \
            }                                          \
            initiator_step();                          \
        }                                              \
    } while (0)

/** Prepare an operation with one piece at @p local_offset of the initiator's buffer. */
void op_init(struct test_op *op, enum uc_fabric_opcode opcode, uint64_t remote_offset,
        size_t local_offset, size_t length_bytes);

/** Append a piece. */
void op_add_piece(struct test_op *op, size_t local_offset, size_t length_bytes);

/** Post one operation, wait for it, hand its status back. */
enum uc_status op_run(struct link *link, struct test_op *op);

/** Write the initiator's [local_offset, + length), flush, and wait. */
enum uc_status write_and_flush(
        struct link *link, uint64_t remote_offset, size_t local_offset, size_t length_bytes);

/** @return descriptors open in this process */
int fd_count(void);

/* A list of operations of FLIGHT_BYTES each that is under way when something happens. */

struct flight {
    struct test_op *ops;
    int count;
};

/** At least 8 operations, fewer on slow machines. */
struct flight flight_make(void);
void flight_free(struct flight *flight);

/** Post a list of operations of two opcodes in turn. */
void flight_post(struct flight *flight, struct link *link, enum uc_fabric_opcode even,
        enum uc_fabric_opcode odd);

/** @return completions so far */
int flight_done(const struct flight *flight);

/** Assert that every operation completed exactly once, with Ok or as flushed. */
void flight_assert_over(const struct flight *flight);

/* A peer in a process of its own, which can be stopped and killed: this executable once more. */

struct peer_process {
    pid_t pid;
    int input;  /* its end ends the process */
    int output; /* lines it says */
};

/** A target with PEER_GRANT_COUNT read-write grants in domain 0. */
void peer_target_start(struct peer_process *peer, struct destination *where_out);

/** An initiator that goes as far as @p state, says so and stays there. Waits for that. */
void peer_initiator_start(struct peer_process *peer, const struct grant *grant, const char *state);

/** SIGSTOP, and wait until it is stopped; SIGCONT. */
void peer_freeze(const struct peer_process *peer);
void peer_thaw(const struct peer_process *peer);

/** SIGKILL and reap. A second call does nothing. */
void peer_kill(struct peer_process *peer);

/** What the processes run. @return an exit code */
int peer_main(char **arguments);

enum {
    PEER_GRANT_COUNT = 8,
};

/* One per file of cases. */
TCase *capability_cases(void);
TCase *transfer_cases(void);
TCase *shape_cases(void);
TCase *refusal_cases(void);
TCase *failure_cases(void);
TCase *killed_cases(void);
TCase *killed_initiator_cases(void);
TCase *connection_cases(void);
TCase *soak_cases(void);
TCase *steady_cases(void);

#endif /* UC_TEST_FABRIC_HARNESS_H */
