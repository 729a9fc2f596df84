/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file server_fixture.h
 * A server in a thread of the test, on port 0, with a clock that the test owns, and the calls of a client.
 * Every function asserts that nothing unexpected happens.
 */

#ifndef UC_TEST_SERVER_FIXTURE_H
#define UC_TEST_SERVER_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/block.h>
#include <ucm/status.h>

#include "net/rpc/connection.h"
#include "net/rpc/messages.h"

enum {
    FIXTURE_BLOCK_BYTES = 4096,
    FIXTURE_CAPACITY = 8,
    FIXTURE_LEASE_MS = 600,
    FIXTURE_KEYS_MAX = 16,
};

/** One connection with what it was told. */
struct test_peer {
    struct uc_rpc_connection *connection;
    bool closed;
    struct uc_hello_reply hello;
    struct uc_attach_reply attach; /* borrows nothing: the texts and tables are not kept */
    uint16_t fabric_port;
    struct uc_fabric_region_key regions[FIXTURE_KEYS_MAX];
    size_t region_count;
};

struct test_grant {
    uint64_t id;
    size_t count;
    struct uc_entry entries[FIXTURE_KEYS_MAX];
};

/** @param[in] options  up to two more command line options, or NULL */
void fixture_start(const char *option, const char *more);
/** Stop and join; asserts that nothing was left held. */
void fixture_stop(void);
/** Ask it to stop; fixture_stop() then joins. */
void fixture_ask_to_stop(void);

uint64_t fixture_now_ms(void);
/** Move the clock at once. */
void fixture_jump_ms(uint64_t delta_ms);
/** Move it in steps that no loop calls late; @p witness proves with a stat that each was seen. */
void fixture_pass_ms(struct test_peer *witness, uint64_t delta_ms);

struct uc_block_id test_id(unsigned number);

struct test_peer *test_dial(void);
void test_close(struct test_peer *peer);
/** Drive until the server closes it, at most a few seconds. @return whether it did */
bool test_wait_closed(struct test_peer *peer);

struct test_peer *test_session(enum uc_access access);
enum uc_status test_hello(struct test_peer *peer, enum uc_access access, const char *name_space,
        const char *credential, uint32_t version);
struct test_peer *test_worker(const struct test_peer *session);
enum uc_status test_attach(struct test_peer *peer, const uint8_t *attach_key, uint64_t incarnation);

enum uc_status test_ping(struct test_peer *peer);
/** @return bit i = key first + i is visible */
unsigned test_lookup(struct test_peer *peer, unsigned first, unsigned count);
enum uc_status test_alloc(
        struct test_peer *peer, unsigned first, unsigned count, struct test_grant *grant_out);
enum uc_status test_alloc_ids(struct test_peer *peer, const struct uc_block_id *ids, size_t count,
        struct test_grant *grant_out);
enum uc_status test_pin(
        struct test_peer *peer, unsigned first, unsigned count, struct test_grant *grant_out);
enum uc_status test_unpin(struct test_peer *peer, uint64_t grant);
enum uc_status test_commit(struct test_peer *peer, uint64_t grant, bool success);
enum uc_status test_commit_bitmap(struct test_peer *peer, uint64_t grant, uint8_t bitmap);
enum uc_status test_begin(
        struct test_peer *worker, uint64_t grant, uint64_t bracket, uint64_t first, uint64_t count);
enum uc_status test_end(struct test_peer *worker, uint64_t bracket, bool ok,
        const struct uc_written_range *ranges, size_t count);
/** write_begin, write_end that covers all of every key. */
void test_write_whole(struct test_peer *worker, const struct test_grant *grant, uint64_t bracket);
enum uc_status test_report(struct test_peer *peer, unsigned number, uint64_t generation);
enum uc_status test_flip(struct test_peer *peer, unsigned number, uint64_t offset);
struct uc_stat_reply test_stat(struct test_peer *peer);
/** Ask for stat until nothing is reserved, pinned, draining, granted or bracketed. */
void test_wait_idle(struct test_peer *peer, uint64_t sessions);

#endif /* UC_TEST_SERVER_FIXTURE_H */
