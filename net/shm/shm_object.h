/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file shm_object.h
 * The objects behind net/fabric.h and what the files of net/shm call in each other.
 *
 *   shm_fabric.c    open, poll, arm, deadlines       shm_domain.c   domains and regions
 *   shm_address.c   where to connect                 shm_socket.c   packets and descriptors
 *   shm_memory.c    files and mappings               shm_ring.c     what the two sides share
 *   shm_listener.c  listening                        shm_target.c   admitting and serving a peer
 *   shm_client.c    connecting, transfers, failing   shm_post.c     posting
 *   shm_read.c      READs, by this side's processor  shm_write.c    WRITEs, by the server's
 *   shm_regions.c   memory of a client that the server maps
 *
 * The sockets carry the greeting, descriptors, and wake-ups of a side that sleeps; a busy pair makes no system call but
 * the poll's.
 *
 * Wake-ups are packets and not eventfds: an eventfd is one object for both sides, and a peer that takes its
 * O_NONBLOCK away and fills it blocks whoever writes to it next.
 *
 * Threads: all of it belongs to the polling thread, but for the region functions (net/fabric.h).
 * Memory per connection: the structs below, less than 16 KiB each at the server, and a page; a client has its
 * staging beside that.
 */

#ifndef UC_NET_SHM_OBJECT_H
#define UC_NET_SHM_OBJECT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/clock.h>
#include <ucm/compiler.h>
#include <ucm/status.h>

#include "core/base/list.h"
#include "core/base/mutex.h"
#include "net/acceptor.h"
#include "net/fabric.h"
#include "net/region_table.h"
#include "net/shm/shm_address.h"
#include "net/shm/shm_memory.h"
#include "net/shm/shm_ring.h"
#include "net/shm/shm_socket.h"
#include "net/shm/shm_wire.h"
#include "net/turns.h"

enum {
    UC_SHM_TURN_BYTES = 4 << 20, /* moved by one endpoint before another has its turn */
    UC_SHM_STAGE_BYTES =
            256 << 10, /* gathered for one entry: a quarter of staging, so that both sides work */
    UC_SHM_DIRECT_MIN_BYTES =
            512, /* shorter pieces are gathered even if the server could map them */
    UC_SHM_LIST_MAX_BYTES = 32 << 10,  /* pieces that share an entry; longer ones have their own */
    UC_SHM_LONG_READ_BYTES = 32 << 10, /* too long for its bytes to be left in the caches … */
    UC_SHM_RUN_MIN_BYTES = 512,        /* … but for shorter pieces, a footer for instance */
    UC_SHM_PACKETS_PER_TURN = 16,
    UC_SHM_RETRY_MS = 10, /* pause of a client before a listener that is crowded */
    UC_SHM_ENDPOINT_MAX_BYTES = 16384,
    UC_SHM_ROWS_BYTES = UC_REGION_LIMIT * (int)sizeof(struct uc_shm_region_row),
};

#define UC_SHM_MAX_OP_BYTES (UINT64_C(1) << 40)
#define UC_SHM_NO_SLOT      UINT32_MAX

struct uc_fabric {
    struct uc_turns turns;
    struct uc_list waiting; /* clients with entries at the server, by waiting_node */
    size_t domain_count;
    size_t listener_count;
    size_t endpoint_count;
};

/** A file that regions of a domain lie in. It keeps its index until the domain is closed. */
struct uc_shm_file {
    int fd; /* for reading only */
    uint64_t device;
    uint64_t inode;
};

struct uc_fabric_domain {
    struct uc_fabric *fabric;
    struct uc_region_table *regions; /* what peers may be granted */
    size_t region_count;             /* changed by the thread that registers */
    size_t endpoint_count;

    struct uc_mutex lock; /* between the thread that registers and the one that greets or forgets */
    struct uc_shm_region_row *rows; /* NULL until a region is for peers */
    int rows_fd;
    struct uc_shm_file files[UC_SHM_FILE_COUNT];
    size_t file_count;                   /* guarded by lock */
    uint64_t serials[UC_SHM_SLOT_COUNT]; /* guarded by lock: local regions by slot; 0 = free */
    uint64_t last_serial;                /* guarded by lock */
    _Atomic uint64_t retired_count;      /* of local regions that had a slot */
};

struct uc_fabric_region {
    struct uc_region_span span; /* first */
    uint32_t region_idx;        /* UINT32_MAX: only local */
    /* Local ones that a server could map. */
    uint32_t slot; /* UC_SHM_NO_SLOT: staged */
    uint64_t serial;
    int fd; /* borrowed */
    uint64_t fd_offset_bytes;
};

struct uc_fabric_listener {
    struct uc_acceptor acceptor;
    const struct uc_fabric_target_ops *ops;
    void *context;
    char address[UC_SHM_ADDRESS_BYTES];
};

enum uc_shm_state {
    UC_SHM_CONNECTING, /* client: the listener's queue is full; posts wait */
    UC_SHM_GREETING,   /* client: hello sent; target: hello awaited; posts wait */
    UC_SHM_READY,      /* both may transfer; leaves on the first failure or a fence */
    UC_SHM_CLOSED,     /* no socket, no operation; posts are refused */
};

/** What both kinds of endpoint have. First member of uc_shm_client and uc_shm_target. */
struct uc_fabric_endpoint {
    struct uc_mortal mortal;
    struct uc_source source; /* timed: connecting, or a newcomer */
    struct uc_fabric *fabric;
    struct uc_fabric_domain *domain; /* target: NULL until admitted */
    bool is_initiator;               /* uc_shm_client, else uc_shm_target */
    enum uc_shm_state state;
};

/** How far an operation is. The operation's length bounds it. */
struct uc_shm_cursor {
    const struct uc_fabric_piece *piece;
    uint64_t piece_done_bytes; /* of that piece */
    uint64_t done_bytes;       /* of the operation */
};

enum uc_shm_source_state {
    UC_SHM_SLOT_FREE,
    UC_SHM_SLOT_ASKED, /* the region was shown to the server; until its verdict bytes are staged */
    UC_SHM_SLOT_READY, /* the server has mapped it */
    UC_SHM_SLOT_REFUSED, /* bytes are staged for good */
};

/** A slot as the client knows it: whose region it was last told about. */
struct uc_shm_client_slot {
    uint64_t serial;
    enum uc_shm_source_state state;
};

/** A queue of operations by `next`. */
struct uc_shm_queue {
    struct uc_fabric_op *first;
    struct uc_fabric_op *last;
};

/**
 * provider_data of an operation: 0 length, 1 entries at the server, 2 status so far, 3 FLUSHes that a READ has to
 * wait for.
 */
struct uc_shm_client {
    struct uc_fabric_endpoint base;
    struct uc_list waiting_node; /* in fabric->waiting while entries are at the server */

    struct uc_shm_queue reads;
    struct uc_shm_cursor read_cursor; /* of the first READ */
    struct uc_shm_queue writes;       /* WRITEs and FLUSHes */
    struct uc_fabric_op *unsent;      /* the first that is not all at the server */
    struct uc_shm_cursor write_cursor;
    uint64_t posted_flushes;
    uint64_t done_flushes;

    /* Entries are numbered; [done, queued) are at the server. */
    uint64_t queued;
    uint64_t done;
    struct uc_fabric_op *entry_ops[UC_SHM_ENTRY_COUNT];
    uint64_t entry_staged[UC_SHM_ENTRY_COUNT]; /* staging_end once the entry is queued */
    uint64_t staging_begin; /* [begin, end) of staging are in use, modulo its size */
    uint64_t staging_end;

    struct uc_shm_client_pages *pages;
    int pages_fd; /* until it is shown */
    struct uc_shm_mapping server_page;
    struct uc_shm_mapping rows;
    struct uc_shm_mapping files[UC_SHM_FILE_COUNT];
    size_t file_count;
    struct uc_shm_client_slot slots[UC_SHM_SLOT_COUNT];
    uint64_t seen_retired; /* domain->retired_count */
    uint32_t sleep_epoch;
    uint32_t rung;

    void (*on_state)(void *context, struct uc_fabric_endpoint *endpoint, enum uc_status status);
    void *context;
    enum uc_status early_status; /* connect could not even start; told by the first turn */
    uint64_t give_up_ms;
    uint8_t nonce[UC_FABRIC_NONCE_BYTES];
    struct uc_shm_address address;
    size_t region_count;
    struct uc_fabric_region_key *regions; /* in the same allocation */
};

struct uc_shm_target {
    struct uc_fabric_endpoint base;
    struct uc_newcomer newcomer; /* of the listener, until admitted */
    const struct uc_fabric_target_ops *ops;
    void *context;
    void *peer;
    enum uc_fabric_access access;
    bool is_admitted;
    uint64_t done; /* entries so far */
    uint32_t sleep_epoch;
    uint32_t rung;
    struct uc_shm_mapping client_pages;
    struct uc_shm_server_page *page;
    struct uc_shm_mapping slots[UC_SHM_SLOT_COUNT];
};

_Static_assert(sizeof(struct uc_shm_target) <= UC_SHM_ENDPOINT_MAX_BYTES, "cost of a silent peer");

/* shm_fabric.c */

extern const struct uc_fabric_caps uc_shm_caps;

/** The initial state of both kinds. */
void uc_shm_endpoint_init(struct uc_fabric_endpoint *endpoint, struct uc_fabric *fabric,
        const struct uc_source_ops *ops);

/** Register the socket, which the endpoint owns from now on. */
UC_MUST_CHECK enum uc_status uc_shm_endpoint_watch(struct uc_fabric_endpoint *endpoint, int fd);

/** The event() of every endpoint: the socket has something. */
void uc_shm_endpoint_event(struct uc_source *source, uint32_t events);

/** Free an endpoint that is closed: now, or at the end of the poll that is running. */
void uc_shm_endpoint_bury(struct uc_fabric_endpoint *endpoint);

/** Wake the peer if it sleeps. */
void uc_shm_ring_peer(
        struct uc_source *source, const _Atomic uint32_t *sleep_epoch, uint32_t *rung);

/* shm_domain.c */

enum uc_status uc_shm_domain_open(struct uc_fabric *fabric, struct uc_fabric_domain **domain_out);
void uc_shm_domain_close(struct uc_fabric_domain *domain);
enum uc_status uc_shm_region_register(struct uc_fabric_domain *domain,
        const struct uc_fabric_memory *memory, uint32_t region_idx, enum uc_fabric_access access,
        struct uc_fabric_region **region_out);
void uc_shm_region_deregister(struct uc_fabric_region *region);
void uc_shm_region_key(const struct uc_fabric_region *region, struct uc_fabric_region_key *key_out);

/**
 * Descriptors that a peer needs to read: the region table, then the files.
 *
 * @param[out] fds_out  room for 1 + UC_SHM_FILE_COUNT
 * @return their count
 */
size_t uc_shm_domain_fds(struct uc_fabric_domain *domain, int *fds_out);

/* shm_listener.c, shm_target.c */

enum uc_status uc_shm_listen(struct uc_fabric *fabric, const struct uc_fabric_listen *params,
        struct uc_fabric_listener **listener_out);
uint16_t uc_shm_listener_port(const struct uc_fabric_listener *listener);
const char *uc_shm_listener_address(const struct uc_fabric_listener *listener);
void uc_shm_listener_close(struct uc_fabric_listener *listener);

/** Reading the hello and deciding; then serving. */
extern const struct uc_source_ops uc_shm_target_ops;

/** Drop a peer that has not been admitted, tell that an admitted one is gone; bury it either way. */
void uc_shm_target_drop(struct uc_shm_target *target);

/** Close and unmap, without telling anybody. */
void uc_shm_target_close(struct uc_shm_target *target);

/* shm_client.c */

enum uc_status uc_shm_connect(struct uc_fabric_domain *domain,
        const struct uc_fabric_connect *params, struct uc_fabric_endpoint **endpoint_out);

/** Close, unmap, flush every operation, tell nobody else. */
void uc_shm_client_close(struct uc_shm_client *client);

/** The connection failed: close, flush, tell the owner. The caller has set the error text. */
void uc_shm_client_fail(struct uc_shm_client *client, enum uc_status status);

/** Before sleeping. @return whether the server has done something meanwhile */
bool uc_shm_client_arm(struct uc_shm_client *client);

/* shm_post.c */

enum uc_status uc_shm_post(struct uc_fabric_endpoint *endpoint, struct uc_fabric_op *list);

/** The first operation of a queue is over. */
void uc_shm_queue_done(struct uc_shm_queue *queue, enum uc_status status, size_t *budget);

/** Step on by @p bytes, which lie within the piece. */
void uc_shm_cursor_advance(struct uc_shm_cursor *cursor, uint64_t bytes);

/* shm_read.c, shm_write.c: a client that is READY. They stop when it is not any more. */

/** Copy for READs whose turn has come. @return whether there is more to copy now */
bool uc_shm_client_read(struct uc_shm_client *client, size_t *left_bytes, size_t *budget);

/** Book what the server has done. @return whether it was anything */
bool uc_shm_client_reap(struct uc_shm_client *client, size_t *budget);

/** Give the server what fits. @return whether more could be given now */
bool uc_shm_client_send(struct uc_shm_client *client, size_t *left_bytes);

/* shm_regions.c */

/** @return the slot under which the server has this region mapped, or UC_SHM_NO_SLOT: stage it. */
uint32_t uc_shm_client_slot_of(struct uc_shm_client *client, const struct uc_fabric_region *region);

/** The server's verdict on a region. */
void uc_shm_client_verdict(struct uc_shm_client *client, const struct uc_shm_packet *packet);

/** Tell the server of regions that are gone. */
void uc_shm_client_forget_retired(struct uc_shm_client *client);

/** A client shows a region. @return false if the packet makes no sense: drop the client */
bool uc_shm_target_map(
        struct uc_shm_target *target, const struct uc_shm_packet *packet, struct uc_shm_fds *fds);

void uc_shm_target_unmap(struct uc_shm_target *target, uint32_t slot);

#endif /* UC_NET_SHM_OBJECT_H */
