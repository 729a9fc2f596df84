/* SPDX-License-Identifier: Apache-2.0 */

/** @file list.h Intrusive doubly linked ring. The owner of the head decides about threads. */

#ifndef UC_BASE_LIST_H
#define UC_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct uc_list {
    struct uc_list *next;
    struct uc_list *prev;
};

/** The struct that holds @p node as its member @p member. */
#define uc_list_entry(node, type, member) ((type *)(void *)((char *)(node)-offsetof(type, member)))

/** Walk while nothing is removed; the _safe form allows removing @p node. */
#define uc_list_for_each(node, head) \
    for (struct uc_list *node = (head)->next; node != (head); node = node->next)
#define uc_list_for_each_safe(node, following, head)                                   \
    for (struct uc_list *node = (head)->next, *following = node->next; node != (head); \
            node = following, following = node->next)

static inline void
uc_list_init(struct uc_list *head)
{
    head->next = head;
    head->prev = head;
}

static inline bool
uc_list_is_empty(const struct uc_list *head)
{
    return head->next == head;
}

/** Append at the tail. */
static inline void
uc_list_add(struct uc_list *head, struct uc_list *node)
{
    node->prev = head->prev;
    node->next = head;
    head->prev->next = node;
    head->prev = node;
}

/** Unlink; the node is a ring of its own afterwards, so removing twice is harmless. */
static inline void
uc_list_remove(struct uc_list *node)
{
    node->prev->next = node->next;
    node->next->prev = node->prev;
    uc_list_init(node);
}

/** @return the first node, unlinked, or NULL. */
static inline struct uc_list *
uc_list_take(struct uc_list *head)
{
    struct uc_list *node = head->next;

    if (node == head) {
        return NULL;
    }

    uc_list_remove(node);
    return node;
}

#endif /* UC_BASE_LIST_H */
