/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file fake_store.h
 * A store without blocks whose facets, answers and events a test decides; it records what it is asked.
 *
 * Thread model: that of a store. `control` belongs to the control thread and `data` to the data
 * thread; a test reads either from its thread, or after joining it.
 */

#ifndef UC_FAKE_STORE_H
#define UC_FAKE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/request.h>
#include <ucm/store.h>

enum uc_fake_op {
    UC_FAKE_SETUP,
    UC_FAKE_LOOKUP,
    UC_FAKE_LOOKUP_ON_PREFIX,
    UC_FAKE_LOOKUP_ON_REVERSE,
    UC_FAKE_TOUCH,
    UC_FAKE_LOAD,
    UC_FAKE_DUMP,
    UC_FAKE_GET_FINISHED,
    UC_FAKE_WAIT,
    UC_FAKE_REGISTER_MEMORY,
    UC_FAKE_DEREGISTER_MEMORY,
    UC_FAKE_HEALTH,
    UC_FAKE_DESCRIBE,
    UC_FAKE_PIN,
    UC_FAKE_UNPIN,
    UC_FAKE_ALLOC,
    UC_FAKE_COMMIT,
    UC_FAKE_TOKEN_LOAD,
    UC_FAKE_TOKEN_DUMP,
    UC_FAKE_FACET_LOOKUP,
    UC_FAKE_FACET_LOOKUP_ON_PREFIX,
    UC_FAKE_FACET_LOOKUP_ON_REVERSE,
    UC_FAKE_PREPARE_PREFETCH,
    UC_FAKE_PREFETCH,
    UC_FAKE_COMPLETE_PREFETCH,
    UC_FAKE_FORGET,
    UC_FAKE_AS_TOKEN_ADDRESSED,
    UC_FAKE_AS_PREFETCHABLE,
    UC_FAKE_OP_COUNT,
};

enum {
    UC_FAKE_KEYS_MAX = 16,
    UC_FAKE_LOG_BYTES = 1024
};

struct uc_completion_queue;

/** What the last call of one side was given. */
struct uc_fake_side {
    char log[UC_FAKE_LOG_BYTES]; /* names of the calls, one space after each */
    struct uc_block_id ids[UC_FAKE_KEYS_MAX];
    size_t count;
    uint8_t payload[16]; /* of the token */
    size_t payload_bytes;
    size_t first_key;
    uint64_t prerequisite_handle;
    uint64_t timeout_ms;
    bool has_mask;
    uint8_t mask[UC_FAKE_KEYS_MAX];
    bool success;
    bool has_ttl;
    uint64_t ttl_ms;
    uint32_t region_idx;
    int64_t wait_timeout_ms;
    char request_id[UC_REQUEST_ID_MAX + 1];
};

struct uc_fake_store {
    struct uc_store base;
    enum uc_status
            answers[UC_FAKE_OP_COUNT]; /* UC_OK; set to let an operation fail until changed */
    size_t calls[UC_FAKE_OP_COUNT];
    bool tokened;
    bool prefetchable;
    bool signal;      /* answered by the facet's lookups */
    bool hold_events; /* jobs end by uc_fake_store_finish() only, else at once and well */
    bool no_event_fd;
    bool no_token;    /* pin, alloc and prepare answer Ok without a token */
    bool short_token; /* pin and alloc cover one key less */
    bool *destroyed;  /* NULL, or set to true by destroy */
    char *trace; /* NULL, or UC_FAKE_LOG_BYTES: "+path " of setups, "-path " of destructions, "!path "
                         if tokens were held then */
    char node_path[96];
    char role[16];
    int64_t tiers_below;
    struct uc_store *lower; /* as setup was given it */
    size_t pin_count;       /* tokens held */
    size_t reservation_count;
    size_t plan_count;
    uint32_t last_serial; /* in the payload of each token minted */
    struct uc_fake_side control;
    struct uc_fake_side data;
    struct uc_completion_queue *events;
};

/**
 * @return a new instance, or NULL without memory.
 *
 * Keys of its setup: `self`, a pointer to where it leaves its own address; `tokened`, `prefetchable`; `trace`, a
 * pointer as above; `fail`, which fails the setup with NoSpace. All are optional.
 */
struct uc_fake_store *uc_fake_store_create(bool tokened, bool prefetchable);

/** Fits uc_loaded_store_adopt(). NULL is allowed. */
void uc_fake_store_destroy(struct uc_store *store);

/** End a held job. */
void uc_fake_store_finish(struct uc_fake_store *fake, uint64_t job_id, enum uc_status code);

/** Deliver an event for a job that was never submitted to this store. */
void uc_fake_store_deliver_stray(struct uc_fake_store *fake, uint64_t job_id);

#endif /* UC_FAKE_STORE_H */
