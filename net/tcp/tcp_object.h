/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file tcp_object.h
 * The objects behind net/fabric.h and what the files of net/tcp call in each other.
 *
 *   tcp_fabric.c    open, poll, arm, deadlines      tcp_domain.c   domains and regions
 *   tcp_socket.c    addresses, sockets, bytes       tcp_wire.c     frames
 *   tcp_listener.c  accepting, admission            tcp_service.c  serving an admitted peer
 *   tcp_client.c    connecting, posting, failing    tcp_transfer.c sending and receiving of a client
 *
 * One epoll per fabric, edge-triggered: a source remembers what it may still do (readable, writable)
 * and waits in the ring of turns while it has something to do. No registration changes afterwards, so
 * the data path costs the transfers themselves and one epoll_wait per poll.
 *
 * Threads: all of it belongs to the polling thread, but for the region functions (net/fabric.h).
 * Memory per connection: the structs below, less than 16 KiB each, and nothing that grows with what
 * the peer does.
 */

#ifndef UC_NET_TCP_OBJECT_H
#define UC_NET_TCP_OBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <ucm/clock.h>
#include <ucm/status.h>

#include "core/base/list.h"
#include "net/fabric.h"
#include "net/region_table.h"
#include "net/tcp/tcp_wire.h"

enum {
    UC_TCP_RX_BYTES = 4096, /* read ahead per endpoint; longer data goes straight to its place */
    UC_TCP_TURN_BYTES = 2 << 20,  /* moved by one endpoint before another has its turn */
    UC_TCP_IOV_COUNT = 256,       /* pieces handed to one system call */
    UC_TCP_TAIL_BYTES = 64,       /* of a READ, sent after its slot was let go */
    UC_TCP_BATCH_COUNT = 32,      /* requests or responses in one system call */
    UC_TCP_ADDRESS_COUNT = 4,     /* addresses tried for one name */
    UC_TCP_SCRATCH_BYTES = 65536, /* where refused data goes, per fabric */
    UC_TCP_HALF_OPEN_COUNT = 256, /* peers per listener that have not said hello */
    UC_TCP_HALF_OPEN_MS = 5000,   /* … and how long they may take */
    UC_TCP_ACCEPT_RETRY_MS = 100, /* pause when descriptors or memory have run out */
    UC_TCP_ACCEPT_BATCH_COUNT = 16,
    UC_TCP_WARN_EVERY_MS = 1000,
    UC_TCP_ENDPOINT_MAX_BYTES = 16384,
};

enum uc_tcp_kind {
    UC_TCP_LISTENER,
    UC_TCP_CLIENT, /* endpoint of the initiator */
    UC_TCP_TARGET, /* endpoint of the target */
};

enum uc_tcp_io {
    UC_TCP_MOVED,   /* some bytes */
    UC_TCP_BLOCKED, /* none now; an event will tell */
    UC_TCP_LOST,    /* closed or failed; errno in the source */
};

/** A socket in the fabric's epoll, and its place in the ring of turns and among the deadlines. */
struct uc_tcp_source {
    struct uc_fabric *fabric;
    struct uc_list turn_node;  /* in fabric->turns while there may be something to do */
    struct uc_list timed_node; /* in fabric->timed while deadline_ms counts */
    uint64_t deadline_ms;
    enum uc_tcp_kind kind;
    int fd;         /* -1 once closed */
    int lost_errno; /* why it was lost; 0 = the peer closed it */
    bool readable;  /* since the last event, nothing said that there is no more */
    bool writable;
    bool is_hung_up; /* the peer will send no more: a short read is not the end of it */
};

struct uc_tcp_address {
    struct sockaddr_storage storage;
    socklen_t length_bytes;
};

struct uc_fabric {
    int epoll_fd;
    bool is_polling;       /* endpoints that go meanwhile are freed at the end of poll */
    struct uc_clock clock; /* monotonic; tests replace it */
    uint64_t next_warn_ms;
    struct uc_list turns;
    struct uc_list timed;
    struct uc_list dead; /* endpoints by turn_node */
    size_t domain_count;
    size_t listener_count;
    size_t endpoint_count;
    char *name; /* of the configuration, or NULL; its addresses were looked up by open */
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
    struct uc_fabric_domain *domain;
    void *address;
    uint64_t length_bytes;
    uint32_t region_idx; /* UINT32_MAX: only local */
};

struct uc_fabric_listener {
    struct uc_tcp_source source; /* timed: accepting again after a pause */
    const struct uc_fabric_target_ops *ops;
    void *context;
    size_t half_open_count;
    uint16_t port;
    bool is_starved; /* said once that descriptors or memory ran out */
};

enum uc_tcp_state {
    UC_TCP_CONNECTING, /* client: the three-way handshake; posts wait */
    UC_TCP_GREETING,   /* client: hello sent; target: hello awaited; posts wait */
    UC_TCP_READY,      /* both may transfer; leaves on the first failure or a fence */
    UC_TCP_CLOSED,     /* no socket, no operation; posts are refused */
};

/** What both kinds of endpoint have. First member of uc_tcp_client and uc_tcp_target. */
struct uc_fabric_endpoint {
    struct uc_tcp_source source;     /* timed: connecting, or half-open */
    struct uc_fabric_domain *domain; /* target: NULL until admitted */
    enum uc_tcp_state state;
    size_t rx_begin; /* what was read ahead is rx[rx_begin, rx_end) */
    size_t rx_end;
    uint8_t rx[UC_TCP_RX_BYTES];
};

/** Where in an operation's pieces the next byte belongs. The operation's length bounds it. */
struct uc_tcp_cursor {
    const struct uc_fabric_piece *piece;
    uint64_t done_bytes; /* of that piece */
};

/**
 * Operations wait in one list in the order posted: [first, unsent) are at the peer, unsent is being
 * sent. Responses come in the same order, so the first one is always the one that is answered.
 */
struct uc_tcp_client {
    struct uc_fabric_endpoint base;
    struct uc_fabric_op *first;
    struct uc_fabric_op *last;
    struct uc_fabric_op *unsent;
    uint64_t next_sequence;
    uint64_t sent_bytes;                /* of unsent: request and data */
    struct uc_tcp_cursor source_cursor; /* of unsent's data */
    uint64_t rx_left_bytes;             /* of first's data, being received */
    struct uc_tcp_cursor target_cursor; /* of first's data */
    void (*on_state)(void *context, struct uc_fabric_endpoint *endpoint, enum uc_status status);
    void *context;
    enum uc_status early_status; /* connect could not even start; told by the first turn */
    uint8_t nonce[UC_FABRIC_NONCE_BYTES];
    size_t address_idx; /* tried now */
    size_t address_count;
    struct uc_tcp_address addresses[UC_TCP_ADDRESS_COUNT];
    size_t region_count;
    struct uc_fabric_region_key *regions; /* in the same allocation */
};

/** A request that is answered, or waits for its turn to be. */
struct uc_tcp_reply {
    struct uc_tcp_request request;
    enum uc_status status;
    bool is_open;     /* status and data are settled; a READ's slot is held if data is set */
    bool is_detached; /* the rest of data is in the target's tail; the slot is not held any more */
    const uint8_t *data; /* a READ's, or NULL */
};

struct uc_tcp_target {
    struct uc_fabric_endpoint base;
    struct uc_fabric_listener *listener; /* until admitted; its half_open_count counts us */
    const struct uc_fabric_target_ops *ops;
    void *context;
    void *peer;
    enum uc_fabric_access access;
    bool is_admitted;
    /* The WRITE whose data is arriving. */
    struct uc_tcp_reply write;
    uint8_t *write_data;    /* next byte; NULL: refused, its data is thrown away */
    uint64_t rx_left_bytes; /* 0: a request comes next */
    /* Replies in order; the first is being sent. */
    size_t reply_first;
    size_t reply_count;
    uint64_t sent_bytes;             /* of the first: response and data */
    uint8_t tail[UC_TCP_TAIL_BYTES]; /* last bytes of the first, once it is detached */
    struct uc_tcp_reply replies[UC_TCP_BATCH_COUNT];
};

_Static_assert(sizeof(struct uc_tcp_target) <= UC_TCP_ENDPOINT_MAX_BYTES, "cost of a silent peer");

/* tcp_fabric.c */

/** Give the source a turn in this or the next poll. */
void uc_tcp_source_wake(struct uc_tcp_source *source);

/** Start or move the deadline. */
void uc_tcp_source_set_deadline(struct uc_tcp_source *source, uint64_t deadline_ms);

/** @return whether a warning about a peer may be logged now: one a second for each fabric. */
bool uc_tcp_fabric_may_warn(struct uc_fabric *fabric);

/** Free an endpoint that is closed: now, or at the end of the poll that is running. */
void uc_tcp_endpoint_bury(struct uc_fabric_endpoint *endpoint);

/* tcp_socket.c */

/** Look a name up. May block. */
UC_MUST_CHECK enum uc_status uc_tcp_fabric_look_up(struct uc_fabric *fabric, const char *name);

/**
 * Addresses of @p text without blocking: the name that open looked up, or a numeric address.
 *
 * @param[out] addresses_out  up to UC_TCP_ADDRESS_COUNT
 */
UC_MUST_CHECK enum uc_status uc_tcp_fabric_resolve(const struct uc_fabric *fabric, const char *text,
        uint16_t port, struct uc_tcp_address *addresses_out, size_t *count_out);

/** Register the descriptor, which the source owns from now on, with the fabric's epoll. */
UC_MUST_CHECK enum uc_status uc_tcp_source_watch(struct uc_tcp_source *source, int fd);

/** Initialise the fields that never change. */
void uc_tcp_source_init(
        struct uc_tcp_source *source, struct uc_fabric *fabric, enum uc_tcp_kind kind);

/**
 * Close the socket and leave all rings. Idempotent.
 *
 * @param[in] discard  reset the connection: bytes on their way, either way, are thrown away
 */
void uc_tcp_source_close(struct uc_tcp_source *source, bool discard);

/** One recvmsg. @param[in] want_bytes sum of the pieces */
enum uc_tcp_io uc_tcp_source_receive(struct uc_tcp_source *source, struct iovec *iov, size_t count,
        size_t want_bytes, size_t *done_bytes_out);

/** One sendmsg; likewise. */
enum uc_tcp_io uc_tcp_source_send(struct uc_tcp_source *source, struct iovec *iov, size_t count,
        size_t want_bytes, size_t *done_bytes_out);

/** @return @p length bytes that were read ahead, or NULL while there are fewer. */
const uint8_t *uc_tcp_endpoint_take(struct uc_fabric_endpoint *endpoint, size_t length);

/** Free room behind what was read ahead. @return an iovec for it, never empty if a frame is short */
struct iovec uc_tcp_endpoint_rx_room(struct uc_fabric_endpoint *endpoint);

/* tcp_domain.c */

enum uc_status uc_tcp_domain_open(struct uc_fabric *fabric, struct uc_fabric_domain **domain_out);
void uc_tcp_domain_close(struct uc_fabric_domain *domain);
enum uc_status uc_tcp_region_register(struct uc_fabric_domain *domain,
        const struct uc_fabric_memory *memory, uint32_t region_idx, enum uc_fabric_access access,
        struct uc_fabric_region **region_out);
void uc_tcp_region_deregister(struct uc_fabric_region *region);
void uc_tcp_region_key(const struct uc_fabric_region *region, struct uc_fabric_region_key *key_out);

/* tcp_listener.c, tcp_service.c */

enum uc_status uc_tcp_listen(struct uc_fabric *fabric, const struct uc_fabric_listen *params,
        struct uc_fabric_listener **listener_out);
uint16_t uc_tcp_listener_port(const struct uc_fabric_listener *listener);
void uc_tcp_listener_close(struct uc_fabric_listener *listener);

/** Accept what waits. @return true to get another turn at once */
bool uc_tcp_listener_turn(struct uc_fabric_listener *listener, size_t *budget);

/** Deadline of a listener: the pause is over. */
void uc_tcp_listener_expire(struct uc_fabric_listener *listener);

/** Read the hello and decide; then serve. @return true to get another turn at once */
bool uc_tcp_target_turn(struct uc_tcp_target *target, size_t *budget);

/** Serve while there is something to do. @return true if bytes or budget were used up */
bool uc_tcp_target_serve(struct uc_tcp_target *target, size_t *budget);

/** Drop a peer that has not been admitted, tell that an admitted one is gone; bury it either way. */
void uc_tcp_target_drop(struct uc_tcp_target *target);

/** Close and end every access, without telling anybody. */
void uc_tcp_target_close(struct uc_tcp_target *target);

/* tcp_client.c, tcp_transfer.c */

/** The capabilities, which are the same everywhere. */
extern const struct uc_fabric_caps uc_tcp_caps;

enum uc_status uc_tcp_connect(struct uc_fabric_domain *domain,
        const struct uc_fabric_connect *params, struct uc_fabric_endpoint **endpoint_out);
enum uc_status uc_tcp_post(struct uc_fabric_endpoint *endpoint, struct uc_fabric_op *list);

/** Close, flush every operation, tell nobody else. */
void uc_tcp_client_close(struct uc_tcp_client *client);

/** The connection failed: close, flush, tell the owner. The caller has set the error text. */
void uc_tcp_client_fail(struct uc_tcp_client *client, enum uc_status status);

/** Connect, greet, transfer. @return true to get another turn at once */
bool uc_tcp_client_turn(struct uc_tcp_client *client, size_t *budget);

/** Deadline of a client: not connected in time. */
void uc_tcp_client_expire(struct uc_tcp_client *client);

/** Send and receive. @return true if bytes or budget were used up */
bool uc_tcp_client_transfer(struct uc_tcp_client *client, size_t *budget);

#endif /* UC_NET_TCP_OBJECT_H */
