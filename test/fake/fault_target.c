/* SPDX-License-Identifier: Apache-2.0 */

/* The target side, and the table: nothing fails here, everything is passed on. */

#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "test/fake/fault_fabric_internal.h"

static void
fault_caps(const struct uc_fabric *fabric, struct uc_fabric_caps *caps_out)
{
    fabric->ops->caps(fabric->inner, caps_out);
    caps_out->needs_registration = caps_out->needs_registration || fabric->needs_registration;
}

static enum uc_status
fault_domain_open(struct uc_fabric *fabric, struct uc_fabric_domain **domain_out)
{
    struct uc_fabric_domain *domain = calloc(1, sizeof(*domain));
    enum uc_status status;

    ck_assert_ptr_nonnull(domain);
    domain->fabric = fabric;
    status = fabric->ops->domain_open(fabric->inner, &domain->inner);
    if (status != UC_OK) {
        free(domain);
        return status;
    }

    *domain_out = domain;
    return UC_OK;
}

static void
fault_domain_close(struct uc_fabric_domain *domain)
{
    if (domain != NULL) {
        domain->fabric->ops->domain_close(domain->inner);
        free(domain);
    }
}

static enum uc_status
admit(void *context, const uint8_t nonce[UC_FABRIC_NONCE_BYTES],
        struct uc_fabric_admission *admission_out)
{
    struct fault_target *target = context;
    struct uc_fabric_admission admission;
    struct fault_peer *peer;
    enum uc_status status = target->ops->admit(target->context, nonce, &admission);

    if (status != UC_OK) {
        return status;
    }
    peer = calloc(1, sizeof(*peer));
    ck_assert_ptr_nonnull(peer);
    peer->target = target;
    peer->peer = admission.peer;
    admission_out->domain = admission.domain->inner;
    admission_out->access = admission.access;
    admission_out->peer = peer;
    return UC_OK;
}

static void
connected(void *context, void *handle, struct uc_fabric_endpoint *inner)
{
    struct fault_target *target = context;
    struct fault_peer *peer = handle;

    peer->endpoint = fault_endpoint_create(target->fabric);
    peer->endpoint->inner = inner;
    peer->endpoint->peer = peer;
    target->ops->connected(target->context, peer->peer, peer->endpoint);
}

static void
gone(void *context, void *handle)
{
    struct fault_target *target = context;
    struct fault_peer *peer = handle;

    target->ops->gone(target->context, peer->peer);
    if (peer->endpoint != NULL) {
        fault_endpoint_free(peer->endpoint);
    } else {
        free(peer);
    }
}

static enum uc_status
hold(void *context, void *handle, uint32_t region_idx, uint64_t offset_bytes, uint64_t length_bytes,
        uint64_t generation, enum uc_fabric_opcode opcode)
{
    struct fault_target *target = context;
    struct fault_peer *peer = handle;

    return target->ops->hold(target->context, peer->peer, region_idx, offset_bytes, length_bytes,
            generation, opcode);
}

static void
release(void *context, void *handle, uint32_t region_idx, uint64_t offset_bytes)
{
    struct fault_target *target = context;
    struct fault_peer *peer = handle;

    target->ops->release(target->context, peer->peer, region_idx, offset_bytes);
}

static enum uc_status
fault_listen(struct uc_fabric *fabric, const struct uc_fabric_listen *params,
        struct uc_fabric_listener **listener_out)
{
    struct uc_fabric_listener *listener = calloc(1, sizeof(*listener));
    struct fault_target *target = calloc(1, sizeof(*target));
    struct uc_fabric_listen inner = *params;
    enum uc_status status;

    ck_assert_ptr_nonnull(listener);
    ck_assert_ptr_nonnull(target);
    listener->fabric = fabric;
    target->fabric = fabric;
    target->ops = params->ops;
    target->context = params->context;
    target->inner_ops = (struct uc_fabric_target_ops){
            .admit = admit,
            .connected = connected,
            .gone = gone,
            .hold = params->ops->hold == NULL ? NULL : hold,
            .release = params->ops->release == NULL ? NULL : release,
    };
    uc_list_add(&fabric->targets, &target->link);
    inner.ops = &target->inner_ops;
    inner.context = target;
    status = fabric->ops->listen(fabric->inner, &inner, &listener->inner);
    if (status != UC_OK) {
        free(listener);
        return status;
    }

    *listener_out = listener;
    return UC_OK;
}

static uint16_t
fault_listener_port(const struct uc_fabric_listener *listener)
{
    return listener->fabric->ops->listener_port(listener->inner);
}

static const char *
fault_listener_address(const struct uc_fabric_listener *listener)
{
    const struct uc_fabric_ops *ops = listener->fabric->ops;

    return ops->listener_address == NULL ? NULL : ops->listener_address(listener->inner);
}

static void
fault_listener_close(struct uc_fabric_listener *listener)
{
    if (listener != NULL) {
        listener->fabric->ops->listener_close(listener->inner);
        free(listener);
    }
}

static size_t
fault_poll(struct uc_fabric *fabric, size_t budget)
{
    struct fault_orders orders = fault_take_orders(fabric);
    size_t handled = fault_endpoints_poll(fabric, &orders);

    return handled + fabric->ops->poll(fabric->inner, budget);
}

static bool
fault_arm(struct uc_fabric *fabric)
{
    if (fault_has_orders(fabric) || fault_endpoints_pending(fabric)) {
        return false;
    }
    return fabric->ops->arm(fabric->inner);
}

static int
fault_event_fd(const struct uc_fabric *fabric)
{
    return fabric->epoll_fd;
}

static uint64_t
fault_next_deadline_ms(const struct uc_fabric *fabric)
{
    return fabric->ops->next_deadline_ms(fabric->inner);
}

static struct uc_fabric_ops table = {
        .abi_version = UC_FABRIC_ABI_VERSION,
        .struct_size = sizeof(struct uc_fabric_ops),
        .open = fault_fabric_open,
        .close = fault_fabric_close,
        .caps = fault_caps,
        .domain_open = fault_domain_open,
        .domain_close = fault_domain_close,
        .region_register = fault_region_register,
        .region_deregister = fault_region_deregister,
        .region_key = fault_region_key,
        .listen = fault_listen,
        .listener_port = fault_listener_port,
        .listener_address = fault_listener_address,
        .listener_close = fault_listener_close,
        .connect = fault_connect,
        .fence = fault_fence,
        .disconnect = fault_disconnect,
        .post = fault_post,
        .poll = fault_poll,
        .arm = fault_arm,
        .event_fd = fault_event_fd,
        .next_deadline_ms = fault_next_deadline_ms,
};

const struct uc_fabric_ops *
fault_fabric_table(const char *name)
{
    table.name = name;
    return &table;
}
