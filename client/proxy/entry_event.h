/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file entry_event.h
 * The descriptor that is readable while an entry has events, its own or the store's.
 *
 * Threads: the data thread.
 */

#ifndef UC_PROXY_ENTRY_EVENT_H
#define UC_PROXY_ENTRY_EVENT_H

#include "client/proxy/entry_internal.h"

/**
 * The store's own descriptor where no synthetic events can come, else one over both, made by the first
 * call; until then nobody pays for it. Owned by the entry or the store.
 *
 * @return −1 if the store has none, or the system has none left (logged)
 */
int uc_entry_event_fd(struct uc_entry *entry);

/** Make the descriptor agree with the queue of finished jobs; after each change of it. */
void uc_entry_event_update(struct uc_entry_data *data);

void uc_entry_event_fini(struct uc_entry_data *data);

#endif /* UC_PROXY_ENTRY_EVENT_H */
