/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A peer's first stream shows a nonce and makes a group, which the target knows as the endpoint. Further
 * streams show the same nonce and join, until the group is complete or its time is over.
 */

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <ucm/log.h>

#include "net/tcp/tcp_target.h"

/* Of a peer that has not been admitted. */
static struct uc_fabric_listener *
listener_of(const struct uc_tcp_target *target)
{
    return uc_list_entry(target->newcomer.acceptor, struct uc_fabric_listener, acceptor);
}

static void
target_close(struct uc_tcp_target *target)
{
    if (target->state == UC_TCP_CLOSED) {
        return;
    }

    target->state = UC_TCP_CLOSED;
    uc_tcp_source_close(&target->stream.source, true);
    uc_newcomer_leave(&target->newcomer);
    uc_tcp_target_forget(target);
}

static void
target_bury(struct uc_tcp_target *target)
{
    struct uc_fabric *fabric = uc_tcp_source_fabric(&target->stream.source);

    fabric->endpoint_count--;
    uc_turns_bury(&fabric->turns, &target->mortal);
}

void
uc_tcp_group_close(struct uc_tcp_group *group)
{
    group->base.state = UC_TCP_CLOSED;
    uc_list_remove(&group->join_node);
    for (uint32_t idx = 0; idx < group->lane_count; idx++) {
        if (group->lanes[idx] != NULL) {
            target_close(group->lanes[idx]);
        }
    }
}

void
uc_tcp_group_bury(struct uc_tcp_group *group)
{
    assert(group->base.state == UC_TCP_CLOSED);
    for (uint32_t idx = 0; idx < group->lane_count; idx++) {
        if (group->lanes[idx] != NULL) {
            target_bury(group->lanes[idx]);
        }
    }
    group->base.domain->endpoint_count--;
    uc_turns_bury(&group->base.fabric->turns, &group->base.mortal);
}

void
uc_tcp_target_drop(struct uc_tcp_target *target)
{
    struct uc_tcp_group *group = target->group;

    if (group == NULL) {
        target_close(target);
        target_bury(target);
        return;
    }

    uc_tcp_group_close(group);
    group->ops->gone(group->context, group->peer);
    uc_tcp_group_bury(group);
}

/* Say no and close in good order, so that the answer arrives. */
static void
refuse(struct uc_tcp_target *target, enum uc_status why)
{
    struct uc_tcp_source *source = &target->stream.source;
    uint8_t answer[UC_TCP_ANSWER_BYTES];
    struct iovec iov = {.iov_base = answer, .iov_len = sizeof(answer)};
    size_t done_bytes;

    uc_tcp_answer_put(answer, why);
    (void)uc_tcp_source_send(source, &iov, 1, sizeof(answer), &done_bytes);
    uc_tcp_source_close(source, false);
    uc_tcp_target_drop(target);
}

/* All bytes are compared, so that the time says nothing about how many were right. */
static bool
nonces_equal(const uint8_t *left, const uint8_t *right)
{
    uint8_t difference = 0;

    for (size_t idx = 0; idx < UC_FABRIC_NONCE_BYTES; idx++) {
        difference |= left[idx] ^ right[idx];
    }
    return difference == 0;
}

/* The group that this stream says it belongs to and is missing from, or NULL. */
static struct uc_tcp_group *
find_group(const struct uc_tcp_target *target, const struct uc_tcp_hello *hello)
{
    struct uc_tcp_group *found = NULL;

    uc_list_for_each (node, &uc_tcp_source_fabric(&target->stream.source)->joinable) {
        struct uc_tcp_group *group = uc_list_entry(node, struct uc_tcp_group, join_node);

        if (nonces_equal(group->nonce, hello->nonce)) {
            found = group;
        }
    }
    if (found == NULL || found->lane_count != hello->lane_count ||
            found->lanes[hello->lane_idx] != NULL || found->ops != listener_of(target)->ops ||
            found->context != listener_of(target)->context) {
        return NULL;
    }
    return found;
}

static struct uc_tcp_group *
group_create(const struct uc_tcp_target *target, const struct uc_tcp_hello *hello)
{
    struct uc_tcp_group *group = calloc(1, sizeof(*group));

    if (group == NULL) {
        return NULL;
    }

    group->base.fabric = uc_tcp_source_fabric(&target->stream.source);
    group->base.state = UC_TCP_READY;
    group->ops = listener_of(target)->ops;
    group->context = listener_of(target)->context;
    group->lane_count = hello->lane_count;
    memcpy(group->nonce, hello->nonce, sizeof(group->nonce));
    uc_list_init(&group->join_node);
    return group;
}

/* Ask the owner. @return UC_OK, or why the peer is refused */
static enum uc_status
admit_group(struct uc_tcp_target *target, const struct uc_tcp_hello *hello,
        struct uc_tcp_group **group_out)
{
    struct uc_fabric_admission admission = {0};
    struct uc_tcp_group *group;
    enum uc_status status;

    if (hello->lane_idx != 0) {
        return UC_ERR_PERMISSION_DENIED; /* its group is gone, or never was */
    }
    group = group_create(target, hello);
    if (group == NULL) {
        return UC_ERR_OUT_OF_MEMORY;
    }
    status = group->ops->admit(group->context, hello->nonce, &admission);
    if (status != UC_OK) {
        free(group);
        return status;
    }

    assert(admission.domain != NULL);
    group->base.domain = admission.domain;
    group->base.domain->endpoint_count++;
    group->access = admission.access;
    group->peer = admission.peer;
    *group_out = group;
    return UC_OK;
}

/* The stream becomes part of the group, which is complete with the last one. */
static void
join(struct uc_tcp_target *target, struct uc_tcp_group *group, const struct uc_tcp_hello *hello)
{
    struct uc_tcp_source *source = &target->stream.source;
    bool is_first = group->joined_count == 0;

    uc_source_never_expire(&source->base);
    uc_newcomer_leave(&target->newcomer);
    target->group = group;
    target->state = UC_TCP_READY;
    group->lanes[hello->lane_idx] = target;
    group->joined_count++;
    if (group->joined_count == group->lane_count) {
        uc_list_remove(&group->join_node);
        uc_source_never_expire(&group->lanes[0]->stream.source.base);
    } else if (is_first) {
        uc_list_add(&uc_tcp_source_fabric(source)->joinable, &group->join_node);
        uc_source_expire_in(&source->base, UC_TCP_JOIN_MS);
    }
    if (is_first) {
        group->ops->connected(group->context, group->peer, &group->base);
    }
}

/* What the stream needs to be served. @return false without memory */
static bool
equip(struct uc_tcp_target *target)
{
    uint8_t *memory = malloc(UC_TCP_RX_BYTES + UC_TCP_TAIL_BYTES);

    if (memory == NULL) {
        return false;
    }

    target->mortal.memory = memory;
    target->stream.rx = memory;
    target->tail = memory + UC_TCP_RX_BYTES;
    target->room_bytes = UC_TCP_RX_BYTES;
    return true;
}

static void
admit(struct uc_tcp_target *target, const struct uc_tcp_hello *hello)
{
    struct uc_tcp_group *group = find_group(target, hello);
    uint8_t answer[UC_TCP_ANSWER_BYTES];
    struct iovec iov = {.iov_base = answer, .iov_len = sizeof(answer)};
    enum uc_status status = UC_OK;
    size_t done_bytes = 0;

    if (!equip(target)) {
        status = UC_ERR_OUT_OF_MEMORY;
    } else if (group == NULL) {
        status = admit_group(target, hello, &group);
    }
    if (status != UC_OK) {
        refuse(target, status);
        return;
    }

    uc_tcp_source_fit(&target->stream.source);
    join(target, group, hello);
    /* The first bytes on a fresh connection always find room. */
    uc_tcp_answer_put(answer, UC_OK);
    if (uc_tcp_source_send(&target->stream.source, &iov, 1, sizeof(answer), &done_bytes) !=
                    UC_TCP_MOVED ||
            done_bytes != sizeof(answer)) {
        uc_tcp_target_drop(target);
    }
}

/* Not a byte more: requests may follow without waiting for the answer, and stay in the socket. */
static void
receive_hello(struct uc_tcp_target *target)
{
    struct uc_tcp_source *source = &target->stream.source;
    struct uc_tcp_hello hello;
    enum uc_status status;

    while (target->hello_bytes < UC_TCP_HELLO_BYTES) {
        struct iovec iov = {.iov_base = &target->hello[target->hello_bytes],
                .iov_len = UC_TCP_HELLO_BYTES - target->hello_bytes};
        size_t done_bytes;

        switch (uc_tcp_source_receive(source, &iov, 1, iov.iov_len, &done_bytes)) {
        case UC_TCP_MOVED:
            target->hello_bytes += done_bytes;
            break;
        case UC_TCP_BLOCKED:
            return;
        case UC_TCP_LOST:
            uc_tcp_target_drop(target);
            return;
        }
    }

    status = uc_tcp_hello_get(target->hello, &hello);
    if (status == UC_OK) {
        admit(target, &hello);
        return;
    }

    if (uc_turns_may_warn(source->base.turns)) {
        uc_log_warn("tcp port %u: a peer's hello is refused: %s",
                (unsigned)listener_of(target)->port,
                status == UC_ERR_UNSUPPORTED ? "another protocol version, use the same release"
                                             : "not a peer of this protocol");
    }
    refuse(target, status);
}

static struct uc_tcp_target *
target_of(struct uc_source *source)
{
    return uc_list_entry(source, struct uc_tcp_target, stream.source.base);
}

static bool
on_turn(struct uc_source *source, size_t *budget)
{
    struct uc_tcp_target *target = target_of(source);

    if (target->state == UC_TCP_GREETING) {
        receive_hello(target);
        if (target->state != UC_TCP_READY) {
            return false;
        }
        *budget -= 1;
    }
    if (target->state != UC_TCP_READY) {
        return false;
    }
    if (*budget == 0) {
        return true;
    }

    return uc_tcp_target_serve(target, budget);
}

static void
on_expire(struct uc_source *source)
{
    uc_tcp_target_drop(target_of(source));
}

const struct uc_source_ops uc_tcp_target_ops = {
        .event = uc_tcp_source_event,
        .turn = on_turn,
        .expire = on_expire,
};
