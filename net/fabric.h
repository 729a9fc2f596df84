/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file fabric.h
 * What a transport has to provide: one-sided reads and writes between a client's memory and the
 * registered regions of a server. Providers: tcp (net/tcp, always built), shm (net/shm, likewise; one
 * host), verbs (net/verbs, a module loaded on demand). test/conformance/fabric runs the same suite on each.
 *
 * Nouns. A *fabric* is an opened transport. A *domain* groups the regions of one namespace; an endpoint
 * belongs to one domain and can reach no other (verbs: a protection domain). A *region* is registered
 * memory of a domain. A *listener* admits endpoints (target side); an *endpoint* is one connection.
 *
 * Threads. A fabric and all that belongs to it are used by one thread, the one that polls it; posting
 * and polling need no lock. Exception: region_register and region_deregister may be called from any
 * thread while the domain lives, not concurrently with each other.
 * Data path (post, poll): no allocation, no system call beyond the transport's own.
 * Callbacks (on_done, on_state, target ops) may post and connect; they may not fence, disconnect or close
 * anything of their fabric, nor poll it. A target frees an endpoint that it fenced with disconnect.
 */

#ifndef UC_NET_FABRIC_H
#define UC_NET_FABRIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/block.h>
#include <ucm/compiler.h>
#include <ucm/status.h>

struct uc_fabric;
struct uc_fabric_domain;
struct uc_fabric_region;
struct uc_fabric_listener;
struct uc_fabric_endpoint;

enum {
    UC_FABRIC_NONCE_BYTES = 16,
    UC_FABRIC_ABI_VERSION = 3,
};

/** Where to open a transport. A plain value that borrows its texts. */
struct uc_fabric_config {
    const char *address; /* target: address to listen on; initiator: the server's. NULL = any */
    uint16_t port;       /* of the server; initiator only, to find the route */
    const char *device;  /* verbs: "name" or "name:port"; NULL = by route, else first active */
    uint32_t
            connections; /* per endpoint: queue pairs (verbs), sockets (tcp); 0 = provider's choice */
};

/** What a transport can do. */
struct uc_fabric_caps {
    bool needs_registration; /* local pieces must name a region */
    bool uses_registration;  /* local pieces may name one, and move faster then */
    bool feeds_bytes;        /* READ calls op->on_bytes while the bytes are still in the cache */
    bool checks_generation;  /* the target refuses an access whose generation is stale … */
    bool reads_locally;      /* … but for READs, which the initiator's processor does by itself */
    uint32_t max_piece_count; /* per operation, at least 512 on every provider (it splits) */
    uint64_t max_op_bytes;    /* per operation (it splits messages; this is the cap on the whole) */
};

/** Memory to register. A plain value; what backs it stays the caller's and outlives the region. */
struct uc_fabric_memory {
    void *address; /* of this process, or of a device's address space */
    uint64_t length_bytes;
    enum uc_memory_kind kind;
    int fd; /* host: the memfd behind it, that shm can hand out; device: its dma-buf; -1 = none */
    uint64_t fd_offset_bytes; /* of address in fd */
};

/** @return host memory that no file is known of. */
static inline struct uc_fabric_memory
uc_fabric_host_memory(void *address, uint64_t length_bytes)
{
    return (struct uc_fabric_memory){
            .address = address, .length_bytes = length_bytes, .kind = UC_MEMORY_HOST, .fd = -1};
}

/** What a peer needs to reach a region; sent to it on attach. tcp leaves address and key 0. */
struct uc_fabric_region_key {
    uint64_t address;
    uint64_t key;
    uint64_t length_bytes;
};

enum uc_fabric_access {
    UC_FABRIC_READ_ONLY,
    UC_FABRIC_READ_WRITE,
};

enum uc_fabric_opcode {
    UC_FABRIC_READ,  /* remote range → local pieces */
    UC_FABRIC_WRITE, /* local pieces → remote range */
    /** Completes when every WRITE posted before it is visible to the remote CPU. No pieces. Names a
        remote region and offset of which 8 bytes can be read. */
    UC_FABRIC_FLUSH,
};

/** One contiguous local piece. */
struct uc_fabric_piece {
    void *address;
    uint64_t length_bytes;
    const struct uc_fabric_region
            *region; /* covers the piece; NULL where registration is not needed */
};

/**
 * One posted operation. The caller embeds it in its own job and keeps it, the piece array and the
 * memory untouched until on_done has run: exactly once, on the polling thread, inside poll() or
 * fence(), never inside post(). Status: Ok; NotFound (stale generation); InvalidParam (range refused);
 * PermissionDenied (write on a read-only endpoint); Unhealthy (the endpoint failed; this and every
 * later operation on it is flushed).
 *
 * The pieces of a READ are loaded in order, and READs in the order posted: what the last piece shows was
 * the case after the bytes before it were loaded. Where caps.reads_locally nothing holds the slot, so a
 * reader takes its footer last and looks there for the generation it knows.
 *
 * On verbs every error of the remote side (bounds, permission) breaks the endpoint. After an error a
 * WRITE may or may not have been applied.
 */
struct uc_fabric_op {
    enum uc_fabric_opcode opcode;
    /**
     * READ, WRITE: the target executes it behind the operation before it in its list (over the same
     * connection): for a READ whose bytes must not be older than those of the one before.
     */
    bool follows;
    uint32_t region_idx;   /* index in the array given to connect */
    uint64_t offset_bytes; /* from the start of the region; length = sum of the pieces, > 0 */
    uint64_t generation;   /* of the slot; checked where the target sees it; 0 = do not check */
    const struct uc_fabric_piece *pieces;
    size_t piece_count;
    void (*on_done)(struct uc_fabric_op *op, enum uc_status status);
    /**
     * Optional, READ, where caps.feeds_bytes: called with every byte in order of the pieces, in runs
     * that fit a cache, exactly as they are put in place; all of one operation before the next one's,
     * and before on_done. They need not be told from where they were put. On an error some bytes, or
     * bytes that are worthless, may have been told. It calls nothing of the fabric.
     */
    void (*on_bytes)(struct uc_fabric_op *op, const void *bytes, size_t length_bytes);
    struct uc_fabric_op *next; /* list of one post; afterwards the provider's */
    uint64_t provider_data[4]; /* for the provider */
};

/** What a target grants to a peer that showed a valid nonce. */
struct uc_fabric_admission {
    struct uc_fabric_domain *domain;
    enum uc_fabric_access access;
    void *peer; /* the target's own handle for this endpoint */
};

/** What a target is asked. All on the polling thread. */
struct uc_fabric_target_ops {
    /** A peer presents a nonce. Anything but Ok refuses it. The nonce is spent by a success. */
    enum uc_status (*admit)(void *context, const uint8_t nonce[UC_FABRIC_NONCE_BYTES],
            struct uc_fabric_admission *admission_out);
    /** The endpoint is ready. The target may fence it from now on (not inside this call). */
    void (*connected)(void *context, void *peer, struct uc_fabric_endpoint *endpoint);
    /**
     * The endpoint is gone and can touch memory no more: the peer left or failed. Exactly once per
     * admission unless the target fenced it. The endpoint is destroyed after this call.
     */
    void (*gone)(void *context, void *peer);
    /**
     * Providers with checks_generation: hold the slot of a range before the target accesses it. Refusals:
     * NotFound (stale), InvalidParam (not inside one slot). NULL = no check.
     */
    enum uc_status (*hold)(void *context, void *peer, uint32_t region_idx, uint64_t offset_bytes,
            uint64_t length_bytes, uint64_t generation, enum uc_fabric_opcode opcode);
    /** End of the access; exactly once per successful hold, also when the endpoint breaks. */
    void (*release)(void *context, void *peer, uint32_t region_idx, uint64_t offset_bytes);
};

struct uc_fabric_listen {
    const char *address; /* NULL = any */
    uint16_t port;       /* 0 = a free one, see listener_port */
    const struct uc_fabric_target_ops *ops;
    void *context;
};

/** How an initiator reaches a server. Borrowed for the call, but for on_state and context. */
struct uc_fabric_connect {
    const char *address;
    uint16_t port;
    const uint8_t *nonce;                       /* UC_FABRIC_NONCE_BYTES */
    const struct uc_fabric_region_key *regions; /* of the server's namespace; copied */
    size_t region_count;
    uint64_t timeout_ms; /* until connected */
    /**
     * Called once with Ok when connected, or with the failure; after an Ok once more with the
     * failure when the connection breaks. Not called by fence or disconnect. Polling thread, never
     * inside connect. The endpoint stays the caller's: disconnect it (not inside this call).
     */
    void (*on_state)(void *context, struct uc_fabric_endpoint *endpoint, enum uc_status status);
    void *context;
};

struct uc_fabric_ops {
    uint32_t abi_version; /* UC_FABRIC_ABI_VERSION */
    uint32_t struct_size;
    const char *name; /* lower case, used in configuration, protocol and logs */

    /** May block. Unsupported when this machine has no such transport; the text says what is missing. */
    enum uc_status (*open)(const struct uc_fabric_config *config, struct uc_fabric **fabric_out);
    /** Endpoints, listeners, regions and domains must be gone (asserted). */
    void (*close)(struct uc_fabric *fabric);
    void (*caps)(const struct uc_fabric *fabric, struct uc_fabric_caps *caps_out);

    enum uc_status (*domain_open)(struct uc_fabric *fabric, struct uc_fabric_domain **domain_out);
    void (*domain_close)(struct uc_fabric_domain *domain);

    /**
     * Register memory; errors name the limit (memlock, max_mr_size) and the remedy. Unsupported: a
     * kind of memory that this transport cannot reach.
     * @p region_idx: number under which peers name it (target side; dense from 0), or UINT32_MAX for
     * memory that is only local. @p access is what peers of the domain may be granted at most.
     */
    enum uc_status (*region_register)(struct uc_fabric_domain *domain,
            const struct uc_fabric_memory *memory, uint32_t region_idx,
            enum uc_fabric_access access, struct uc_fabric_region **region_out);
    /** No operation may be using it. */
    void (*region_deregister)(struct uc_fabric_region *region);
    void (*region_key)(const struct uc_fabric_region *region, struct uc_fabric_region_key *key_out);

    enum uc_status (*listen)(struct uc_fabric *fabric, const struct uc_fabric_listen *params,
            struct uc_fabric_listener **listener_out);
    uint16_t (*listener_port)(const struct uc_fabric_listener *listener);
    /** Endpoints it admitted stay; half-admitted ones are dropped. */
    void (*listener_close)(struct uc_fabric_listener *listener);

    /**
     * Start connecting; never blocks. Operations may be posted at once, they wait.
     *
     * @retval UC_ERR_UNSUPPORTED  this address is out of this transport's reach: take another one
     */
    enum uc_status (*connect)(struct uc_fabric_domain *domain,
            const struct uc_fabric_connect *params, struct uc_fabric_endpoint **endpoint_out);
    /**
     * Returns only when no operation of the endpoint can touch memory of this side any more; every
     * posted operation's on_done has run (Unhealthy). Later posts are refused. Idempotent. On the
     * target side of verbs this destroys the queue pair: nothing lands any more. A client's fence
     * says nothing about packets under way to the server: that is what write_end(ok = false) is for.
     */
    void (*fence)(struct uc_fabric_endpoint *endpoint);
    /** Fence, then free. NULL is allowed. */
    void (*disconnect)(struct uc_fabric_endpoint *endpoint);

    /**
     * Post a list linked by `next`. READs complete in the order posted, but operations are executed in
     * any order: what must see a WRITE is posted when its FLUSH has completed, and see op->follows. Never blocks; the provider queues what the wire
     * cannot take yet. All or nothing: on an error no on_done runs.
     *
     * @retval UC_ERR_UNHEALTHY      endpoint broken or fenced
     * @retval UC_ERR_INVALID_PARAM  no pieces, zero length, range outside the region (checked by
     *                               subtraction), piece outside its region, too many pieces
     */
    enum uc_status (*post)(struct uc_fabric_endpoint *endpoint, struct uc_fabric_op *list);

    /** Progress everything; never blocks. @return completions and connection events handled */
    size_t (*poll)(struct uc_fabric *fabric, size_t budget);
    /**
     * Before sleeping on event_fd: ask for a wake-up. @return false if there is work already (poll
     * again), true if it is safe to sleep
     */
    bool (*arm)(struct uc_fabric *fabric);
    /** Level-triggered descriptor (an epoll) that turns readable when poll has work. */
    int (*event_fd)(const struct uc_fabric *fabric);
    /** Earliest monotonic ms at which poll wants to run without an event; UC_TIME_NEVER_MS. */
    uint64_t (*next_deadline_ms)(const struct uc_fabric *fabric);

    /**
     * Optional: the address that peers have to be told, or NULL if it is the one that listen was given.
     * The text lives as long as the listener; a provider that makes its own addresses has no ports.
     */
    const char *(*listener_address)(const struct uc_fabric_listener *listener);
};

/**
 * The table of a transport: "tcp" and "shm" are built in, "verbs" is loaded from libucm_fabric_verbs.so beside
 * this library on first use.
 *
 * @retval UC_ERR_INVALID_PARAM  unknown name; known ones listed
 * @retval UC_ERR_UNSUPPORTED    not built, or its libraries are not installed; the text says which
 */
UC_MUST_CHECK enum uc_status uc_fabric_find(const char *name, const struct uc_fabric_ops **ops_out);

#endif /* UC_NET_FABRIC_H */
