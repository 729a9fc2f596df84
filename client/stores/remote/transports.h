/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file transports.h
 * The transports that one store has opened, and local memory registered with all of them.
 *
 * Threads: opened before and closed after the progress thread, which alone posts and polls. Registering is
 * safe from the data thread and the progress thread.
 */

#ifndef UC_REMOTE_TRANSPORTS_H
#define UC_REMOTE_TRANSPORTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/compiler.h>
#include <ucm/status.h>

#include "client/stores/remote/config.h"
#include "core/base/mutex.h"
#include "net/fabric.h"

enum uc_transport_id {
    UC_TRANSPORT_SHM, /* in order of preference */
    UC_TRANSPORT_VERBS,
    UC_TRANSPORT_TCP,
    UC_TRANSPORT_COUNT,
};

struct uc_transport {
    const struct uc_fabric_ops *ops; /* NULL = not opened */
    struct uc_fabric *fabric;
    struct uc_fabric_domain *domain;
    struct uc_fabric_caps caps;
};

struct uc_transports {
    struct uc_transport items[UC_TRANSPORT_COUNT];
    struct uc_mutex register_lock; /* the fabrics allow one registration at a time */
    /* Auto: it could not register what it needs to, so the next one is taken. Set by who registers, never reset. */
    atomic_bool given_up[UC_TRANSPORT_COUNT];
    bool is_auto;
    uint32_t max_piece_count; /* per operation, on the most modest one */
};

/** A range as the transports know it; NULL where none is needed or of use. */
struct uc_local_memory {
    struct uc_fabric_region *regions[UC_TRANSPORT_COUNT];
};

/**
 * Open what the configuration asks for. May block.
 *
 * @retval UC_ERR_UNSUPPORTED  the demanded transport is not there; the text says what is missing
 */
UC_MUST_CHECK enum uc_status uc_transports_open(
        const struct uc_remote_config *config, struct uc_transports *transports);

/** No endpoint and no registered memory may be left. Zeroed ones are allowed. */
void uc_transports_close(struct uc_transports *transports);

/** @return whether auto is to do without it; what was submitted after a failed registration sees it. Any thread. */
static inline bool
uc_transports_has_given_up(const struct uc_transports *transports, size_t id)
{
    return atomic_load_explicit(&transports->given_up[id], memory_order_relaxed);
}

/**
 * All or nothing, but for transports that need none, and for auto: there a refusal by one that needs it is logged and
 * ends its use. Jobs that move over it end in peace, later ones go by the next transport.
 *
 * @retval other  what the demanded transport answered; the text names the limit that was met and what to do about it
 */
UC_MUST_CHECK enum uc_status uc_transports_register(struct uc_transports *transports, void *address,
        uint64_t length_bytes, struct uc_local_memory *local_out);

/**
 * Register memory of a device with the transports that reach it: by its file, else by its address, for which the
 * kernel needs a peer memory module.
 *
 * @return whether all of them do
 */
bool uc_transports_register_device(struct uc_transports *transports,
        const struct uc_fabric_memory *memory, struct uc_local_memory *local_out);

/** Zeroed ones are allowed. */
void uc_transports_deregister(struct uc_transports *transports, struct uc_local_memory *local);

#endif /* UC_REMOTE_TRANSPORTS_H */
