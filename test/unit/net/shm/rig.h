/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file rig.h
 * A shm target on the test's thread with a clock that the test turns, and peers that are bare sockets with pages
 * of their own. One thread.
 */

#ifndef UC_TEST_SHM_RIG_H
#define UC_TEST_SHM_RIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <check.h>

#include "net/fabric.h"
#include "net/shm/shm_object.h"

enum {
    RIG_REGION_BYTES = 1 << 20,
};

struct rig {
    const struct uc_fabric_ops *ops;
    struct uc_fabric *fabric;
    struct uc_fabric_domain *domain;
    struct uc_fabric_region *region; /* index 0, read-write */
    struct uc_fabric_listener *listener;
    uint8_t *memory;
    int memory_fd;
    uint64_t now_ms;
    struct uc_fabric_endpoint *last; /* admitted */
    int admit_count;
    int gone_count;
    int hold_count;
    int release_count;
};

extern struct rig rig;

/** Fixtures. close asserts that nothing is left: holds, endpoints, descriptors. */
void rig_open(void);
void rig_close(void);

/** Poll until nothing is left to do now. */
void rig_settle(void);

/** A peer: its socket, its pages, and what the target has shown. */
struct peer {
    int fd;
    int pages_fd;
    struct uc_shm_client_pages *pages;
    struct uc_shm_mapping server_page;
};

/** @return a memory file: @p length_bytes, @p reserved_bytes of them not holes, with @p seals */
int file_make(size_t length_bytes, size_t reserved_bytes, int seals);

/** Connect; the target accepts. */
void peer_knock(struct peer *peer);

/** Send bytes with up to UC_SHM_FDS_MAX descriptors, and let the target have its turns. */
void peer_send(struct peer *peer, const void *bytes, size_t length, const int *fds, size_t count);

/** Send a hello that shows @p fd. */
void peer_hello(struct peer *peer, int fd);

/** Knock, say hello in order and map what the answer shows. */
void peer_open(struct peer *peer);

/** @return whether the target ended the connection; reads what it sent before */
bool peer_is_closed(struct peer *peer);

/** Close the peer's side. */
void peer_close(struct peer *peer);

/** Queue one entry and let the target have its turns. @return what the target says of it */
int32_t peer_write(struct peer *peer, const struct uc_shm_entry *entry);

/** Assert that a peer of good faith is admitted and can write. */
void assert_target_is_well(void);

/** @return descriptors open in this process */
int fd_count(void);

#endif /* UC_TEST_SHM_RIG_H */
