/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file tcp_object.h
 * The objects behind net/fabric.h and what the files of net/tcp call in each other; README.md says
 * which file holds what.
 *
 * An endpoint has one or more streams. The initiator calls them lanes and deals its operations out
 * to them; the target serves each stream by itself and knows them as a group, which was admitted by
 * one nonce and ends as a whole.
 *
 * Threads: all of it belongs to the polling thread, but for the region functions (net/fabric.h).
 * Memory per stream: the structs below, less than 16 KiB, and UC_TCP_RX_BYTES + UC_TCP_TAIL_BYTES
 * once it is admitted; nothing that grows with what the peer does.
 */

#ifndef UC_NET_TCP_OBJECT_H
#define UC_NET_TCP_OBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/clock.h>
#include <ucm/status.h>

#include "core/base/list.h"
#include "net/acceptor.h"
#include "net/fabric.h"
#include "net/region_table.h"
#include "net/tcp/tcp_stream.h"
#include "net/tcp/tcp_wire.h"
#include "net/turns.h"

enum {
    UC_TCP_TURN_BYTES = 2 << 20,  /* moved by one stream before another has its turn */
    UC_TCP_IOV_COUNT = 256,       /* pieces handed to one system call */
    UC_TCP_RUN_BYTES = 256 << 10, /* told to on_bytes at once: stays in a core's cache */
    UC_TCP_TAIL_BYTES = 8192,     /* of a READ, sent after its slot was let go */
    UC_TCP_TAIL_LEAST_BYTES = 64, /* … if it is larger than that */
    UC_TCP_BATCH_COUNT = 32,      /* requests or responses in one system call */
    UC_TCP_SCRATCH_BYTES = 65536, /* where refused data goes, per fabric */
    UC_TCP_JOIN_MS = UC_ACCEPTOR_NEWCOMER_MS, /* until a group must be complete */
    UC_TCP_SPIN_US = 50, /* polled after the last bytes, before the thread may sleep */
    UC_TCP_STRUCT_MAX_BYTES = 16384,
};

struct uc_fabric {
    struct uc_turns turns;
    uint64_t spin_until_ns;  /* real time: asleep before, a thread misses the answer by a wake-up */
    struct uc_list joinable; /* groups that lack streams, by join_node */
    size_t domain_count;
    size_t listener_count;
    size_t endpoint_count; /* clients, and streams of peers */
    uint32_t lane_count;   /* of every endpoint that connects */
    char *name;            /* of the configuration, or NULL; its addresses were looked up by open */
    size_t address_count;
    struct uc_tcp_address addresses[UC_TCP_ADDRESS_COUNT];
    uint8_t scratch[UC_TCP_SCRATCH_BYTES];
};

struct uc_fabric_domain {
    struct uc_fabric *fabric;
    struct uc_region_table *regions;
    size_t region_count; /* changed by the thread that registers */
    size_t endpoint_count;
};

struct uc_fabric_region {
    struct uc_region_span span; /* first */
    uint32_t region_idx;        /* UINT32_MAX: only local */
};

struct uc_fabric_listener {
    struct uc_acceptor acceptor;
    const struct uc_fabric_target_ops *ops;
    void *context;
    uint16_t port;
};

enum uc_tcp_state {
    UC_TCP_CONNECTING, /* client: the three-way handshake; posts wait */
    UC_TCP_GREETING,   /* client: hello sent; target: hello awaited; posts wait */
    UC_TCP_READY,      /* both may transfer; leaves on the first failure or a fence */
    UC_TCP_CLOSED,     /* no socket, no operation; posts are refused */
};

/** What the contract hands out. First member of uc_tcp_client and uc_tcp_group. */
struct uc_fabric_endpoint {
    struct uc_mortal mortal;
    struct uc_fabric *fabric;
    struct uc_fabric_domain *domain;
    bool is_initiator;       /* uc_tcp_client, else uc_tcp_group */
    enum uc_tcp_state state; /* client: READY once every lane is; group: READY or CLOSED */
};

/** Where in an operation's pieces the next byte belongs. The operation's length bounds it. */
struct uc_tcp_cursor {
    const struct uc_fabric_piece *piece;
    uint64_t done_bytes; /* of that piece */
};

/**
 * Operations of a lane wait in one list in the order posted: [first, unsent) are at the peer, unsent
 * is being sent. Responses come in the same order, so the first one is always the one that is answered.
 */
struct uc_tcp_lane {
    struct uc_tcp_stream stream; /* timed: lane 0, until every lane is ready */
    struct uc_tcp_client *client;
    enum uc_tcp_state state;
    size_t address_idx; /* tried now */
    struct uc_fabric_op *first;
    struct uc_fabric_op *last;
    struct uc_fabric_op *unsent;
    uint64_t pending_bytes; /* of all its operations: the next one goes where least is */
    uint64_t sent_bytes;    /* of unsent: request and data */
    struct uc_tcp_cursor source_cursor; /* of unsent's data */
    uint64_t rx_left_bytes;             /* of first's data, being received */
    struct uc_tcp_cursor target_cursor; /* of first's data */
};

/** Completions run in the order posted, over all lanes: so a FLUSH follows every WRITE before it. */
struct uc_tcp_client {
    struct uc_fabric_endpoint base;
    struct uc_fabric_op *first; /* whose on_done is the next to run; linked by next */
    struct uc_fabric_op *last;
    uint64_t next_sequence;
    uint64_t fed_bytes; /* of first: told to its on_bytes */
    struct uc_tcp_cursor feed_cursor;
    void (*on_state)(void *context, struct uc_fabric_endpoint *endpoint, enum uc_status status);
    void *context;
    enum uc_status early_status; /* connect could not even start; told by the first turn */
    uint8_t nonce[UC_FABRIC_NONCE_BYTES];
    size_t address_count;
    struct uc_tcp_address addresses[UC_TCP_ADDRESS_COUNT];
    size_t region_count;
    struct uc_fabric_region_key *regions; /* in the same allocation */
    uint32_t lane_count;
    uint32_t ready_count;
    struct uc_tcp_lane lanes[UC_TCP_LANES_MAX];
};

/** A request that is answered, or waits for its turn to be. */
struct uc_tcp_reply {
    struct uc_tcp_request request;
    enum uc_status status;
    bool is_open;     /* status and data are settled; a READ's slot is held if data is set */
    bool is_detached; /* the rest of data is in the target's tail; the slot is not held any more */
    const uint8_t *data; /* a READ's, or NULL */
};

/** What one nonce admitted. */
struct uc_tcp_group {
    struct uc_fabric_endpoint base;
    struct uc_list join_node; /* in fabric->joinable while a stream is missing */
    const struct uc_fabric_target_ops *ops;
    void *context;
    void *peer;
    enum uc_fabric_access access;
    uint8_t nonce[UC_FABRIC_NONCE_BYTES];
    uint32_t lane_count;
    uint32_t joined_count;
    struct uc_tcp_target *lanes[UC_TCP_LANES_MAX]; /* NULL: not here yet */
};

/** One stream of a peer. */
struct uc_tcp_target {
    struct uc_mortal mortal;     /* memory: rx and tail, from admission on */
    struct uc_tcp_stream stream; /* timed: half-open; stream 0: until the group is complete */
    struct uc_newcomer newcomer; /* of the listener, until admitted */
    struct uc_tcp_group *group;  /* once admitted */
    enum uc_tcp_state state;
    uint8_t hello[UC_TCP_HELLO_BYTES];
    size_t hello_bytes; /* of it, received */
    /* The WRITE whose data is arriving. */
    struct uc_tcp_reply write;
    uint8_t *write_data;    /* next byte; NULL: refused, its data is thrown away */
    uint64_t rx_left_bytes; /* 0: a request comes next */
    size_t room_bytes;      /* to read ahead, by the size of the last WRITE */
    /* Replies in order; the first is being sent. */
    size_t reply_first;
    size_t reply_count;
    uint64_t sent_bytes; /* of the first: response and data */
    uint8_t *tail;       /* UC_TCP_TAIL_BYTES: last bytes of the first, once it is detached */
    struct uc_tcp_reply replies[UC_TCP_BATCH_COUNT];
};

_Static_assert(sizeof(struct uc_tcp_target) <= UC_TCP_STRUCT_MAX_BYTES, "cost of a silent peer");
_Static_assert(sizeof(struct uc_tcp_client) <= UC_TCP_STRUCT_MAX_BYTES, "cost of an endpoint");

static inline struct uc_fabric *
uc_tcp_source_fabric(const struct uc_tcp_source *source)
{
    return uc_list_entry(source->base.turns, struct uc_fabric, turns);
}

/* tcp_domain.c */

enum uc_status uc_tcp_domain_open(struct uc_fabric *fabric, struct uc_fabric_domain **domain_out);
void uc_tcp_domain_close(struct uc_fabric_domain *domain);
enum uc_status uc_tcp_region_register(struct uc_fabric_domain *domain,
        const struct uc_fabric_memory *memory, uint32_t region_idx, enum uc_fabric_access access,
        struct uc_fabric_region **region_out);
void uc_tcp_region_deregister(struct uc_fabric_region *region);
void uc_tcp_region_key(const struct uc_fabric_region *region, struct uc_fabric_region_key *key_out);

/** The capabilities, which are the same everywhere. */
extern const struct uc_fabric_caps uc_tcp_caps;

#endif /* UC_NET_TCP_OBJECT_H */
