/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file fabric_thread.h
 * The thread that owns the fabrics: it admits endpoints that show a nonce, serves tcp, and fences. The
 * control thread never touches an endpoint; it sends messages and hears when they are done.
 *
 * Functions are for the control thread unless they say otherwise. Lock order: one lock, held for a few
 * instructions: message lists and outstanding nonces.
 */

#ifndef UC_SERVER_FABRIC_THREAD_H
#define UC_SERVER_FABRIC_THREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucm/compiler.h>
#include <ucm/status.h>

#include "core/base/list.h"
#include "net/fabric.h"
#include "net/rpc/messages.h"
#include "server/config.h"
#include "server/namespace.h"

struct uc_fabric_thread;

/**
 * A fence of all endpoints and nonces of one attachment up to an epoch, half-accepted ones included.
 * Embedded by its owner, who keeps it until on_done has run.
 */
struct uc_fence {
    struct uc_list node;
    uint64_t attachment;
    uint64_t epoch; /* of uc_fabric_thread_expect(); later ones are left alone */
    void (*on_done)(struct uc_fence *fence); /* on the control thread, inside collect() */
};

/**
 * Open the fabrics of the configuration, listen and start the thread. Blocks.
 *
 * @param[in] host  address to listen on where the configuration names none
 */
UC_MUST_CHECK enum uc_status uc_fabric_thread_create(const struct uc_server_config *config,
        const char *host, struct uc_namespace *ns, struct uc_fabric_thread **thread_out);

/** End every endpoint, then the thread; fences under way are answered. NULL is allowed. */
void uc_fabric_thread_destroy(struct uc_fabric_thread *thread);

/** Draw a nonce that admits one endpoint of that attachment; a few may be outstanding per attachment. */
UC_MUST_CHECK enum uc_status uc_fabric_thread_expect(struct uc_fabric_thread *thread,
        uint64_t attachment, uint64_t epoch, enum uc_fabric_access access,
        uint8_t nonce_out[UC_FABRIC_NONCE_BYTES]);

/** Start a fence; never fails, never blocks. */
void uc_fabric_thread_fence(struct uc_fabric_thread *thread, struct uc_fence *fence);

/** Turns readable when collect() has work. */
int uc_fabric_thread_fd(const struct uc_fabric_thread *thread);
/** Run on_done of every finished fence. */
void uc_fabric_thread_collect(struct uc_fabric_thread *thread);

/** Describe the fabrics for an attach reply; the texts live as long as the thread. @return their count */
size_t uc_fabric_thread_describe(
        const struct uc_fabric_thread *thread, struct uc_attach_fabric fabrics_out[UC_FABRICS_MAX]);
/** Port of the first fabric, for the ready line. */
uint16_t uc_fabric_thread_port(const struct uc_fabric_thread *thread);
/** Names of the fabrics, separated by "+". */
const char *uc_fabric_thread_names(const struct uc_fabric_thread *thread);

#endif /* UC_SERVER_FABRIC_THREAD_H */
