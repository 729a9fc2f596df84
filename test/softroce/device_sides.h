/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file device_sides.h
 * Both sides of a connection over verbs in one thread, and a peer in a process of its own: this program
 * started again with "stream" as its first argument, which writes a pattern until its endpoint breaks.
 * On SoftRoCE's loopback path the poster moves the bytes, so somebody else has to do the cutting.
 */

#ifndef UC_TEST_DEVICE_SIDES_H
#define UC_TEST_DEVICE_SIDES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <check.h>

#include "net/fabric.h"

enum {
    REGION_BYTES = 1 << 20,
    BLOCK_BYTES = 64 * 1024,
    WAIT_MS = 20000,
    EXIT_FLUSHED = 3, /* of the streaming peer: its endpoint broke */
    PATTERN_PEER = 0xc5,
    PATTERN_OWNER = 0x11,
};

/* One side of a connection: a fabric, a domain, a registered region. */
struct side {
    struct uc_fabric *fabric;
    struct uc_fabric_domain *domain;
    struct uc_fabric_region *region;
    uint8_t *memory;
    struct uc_fabric_region_key key;
};

struct device_target {
    struct side side;
    struct uc_fabric_listener *listener;
    struct uc_fabric_domain *admit_to; /* NULL: side.domain */
    enum uc_fabric_access access;
    enum uc_status answer;
    struct uc_fabric_endpoint *endpoint;
    size_t admitted;
    size_t gone;
};

struct device_client {
    struct side side;
    struct uc_fabric_endpoint *endpoint;
    size_t told;
    enum uc_status state;
};

/* An operation that counts how often it was completed. */
struct job {
    struct uc_fabric_op op;
    struct uc_fabric_piece piece;
    unsigned done;
    enum uc_status status;
};

extern const char nonce_text[UC_FABRIC_NONCE_BYTES + 1];
extern const char *server_address;
extern const char *program; /* argv[0] */
extern const struct uc_fabric_ops *verbs;
extern struct device_target target;
extern struct device_client client;

uint64_t now_ms(void);

/** @return queue pairs per endpoint as UCM_FABRIC_CONNECTIONS asks for; 0 = the fabric's choice */
uint32_t connection_count(void);

/** Open one side with a region of REGION_BYTES. The text says what failed. */
UC_MUST_CHECK enum uc_status side_open(struct side *side, uint16_t port, uint32_t region_idx);
void side_close(struct side *side);

/** A target that listens; the client is opened on first use. */
void open_target(void);
void close_target(void);
void open_client(void);
void start_connect(const char *nonce);
void connect_client(void);
void poll_both(void);

/** Post one operation on the client's first bytes. */
enum uc_status post_job(
        struct job *job, enum uc_fabric_opcode opcode, uint64_t offset, uint64_t length);
bool memory_is(const uint8_t *memory, uint8_t value);

/** The peer: arguments are port, address and key of the region. @return its exit status */
int stream(char **arguments);
pid_t spawn_stream(void);
/** Wait for the end of a peer. @return its wait status */
int reap(pid_t pid);

#define wait_until(condition)                                      \
    do {                                                           \
        uint64_t end_ms = now_ms() + WAIT_MS;                      \
        while (!(condition)) {                                     \
            poll_both();                                           \
            ck_assert_msg(now_ms() < end_ms, "no %s", #condition); \
        }                                                          \
    } while (0)

#endif /* UC_TEST_DEVICE_SIDES_H */
