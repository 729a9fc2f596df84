/* SPDX-License-Identifier: Apache-2.0 */

#include "test/softroce/device_sides.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <ucm/clock.h>

const char nonce_text[UC_FABRIC_NONCE_BYTES + 1] = "sixteen bytes ok";
const char *server_address;
const char *program;
const struct uc_fabric_ops *verbs;
struct device_target target;
struct device_client client;

uint64_t
now_ms(void)
{
    return uc_clock_now_ns() / 1000000;
}

uint32_t
connection_count(void)
{
    const char *text = getenv("UCM_FABRIC_CONNECTIONS");

    return text == NULL ? 0 : (uint32_t)strtoul(text, NULL, 10);
}

enum uc_status
side_open(struct side *side, uint16_t port, uint32_t region_idx)
{
    struct uc_fabric_config config = {
            .address = server_address, .port = port, .connections = connection_count()};
    enum uc_status status = verbs->open(&config, &side->fabric);
    struct uc_fabric_memory range;

    if (status != UC_OK) {
        return status;
    }
    status = verbs->domain_open(side->fabric, &side->domain);
    if (status != UC_OK) {
        return status;
    }
    side->memory =
            mmap(NULL, REGION_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (side->memory == MAP_FAILED) {
        return UC_ERR_OUT_OF_MEMORY;
    }
    range = uc_fabric_host_memory(side->memory, REGION_BYTES);
    status = verbs->region_register(
            side->domain, &range, region_idx, UC_FABRIC_READ_WRITE, &side->region);
    if (status == UC_OK) {
        verbs->region_key(side->region, &side->key);
    }
    return status;
}

void
side_close(struct side *side)
{
    verbs->region_deregister(side->region);
    verbs->domain_close(side->domain);
    verbs->close(side->fabric);
    (void)munmap(side->memory, REGION_BYTES);
    memset(side, 0, sizeof(*side));
}

static enum uc_status
on_admit(void *context, const uint8_t nonce[UC_FABRIC_NONCE_BYTES],
        struct uc_fabric_admission *admission_out)
{
    (void)context;
    if (target.answer != UC_OK) {
        return target.answer;
    }
    if (memcmp(nonce, nonce_text, UC_FABRIC_NONCE_BYTES) != 0) {
        return UC_ERR_PERMISSION_DENIED;
    }
    admission_out->domain = target.admit_to == NULL ? target.side.domain : target.admit_to;
    admission_out->access = target.access;
    admission_out->peer = &target;
    target.admitted++;
    return UC_OK;
}

static void
on_connected(void *context, void *peer, struct uc_fabric_endpoint *endpoint)
{
    (void)context;
    ck_assert_ptr_eq(peer, &target);
    target.endpoint = endpoint;
}

static void
on_gone(void *context, void *peer)
{
    (void)context;
    (void)peer;
    target.endpoint = NULL;
    target.gone++;
}

static const struct uc_fabric_target_ops target_ops = {
        .admit = on_admit,
        .connected = on_connected,
        .gone = on_gone,
};

static void
on_state(void *context, struct uc_fabric_endpoint *endpoint, enum uc_status status)
{
    (void)context;
    (void)endpoint;
    client.told++;
    client.state = status;
}

static void
on_job(struct uc_fabric_op *op, enum uc_status status)
{
    struct job *job = (struct job *)(void *)op;

    job->done++;
    job->status = status;
}

void
poll_both(void)
{
    (void)verbs->poll(target.side.fabric, 64);
    if (client.side.fabric != NULL) {
        (void)verbs->poll(client.side.fabric, 64);
    }
}

void
open_target(void)
{
    struct uc_fabric_listen listen = {.address = server_address, .ops = &target_ops};

    memset(&target, 0, sizeof(target));
    memset(&client, 0, sizeof(client));
    target.access = UC_FABRIC_READ_WRITE;
    ck_assert_int_eq(side_open(&target.side, 0, 0), UC_OK);
    ck_assert_int_eq(verbs->listen(target.side.fabric, &listen, &target.listener), UC_OK);
}

void
close_target(void)
{
    verbs->disconnect(client.endpoint);
    verbs->disconnect(target.endpoint);
    verbs->listener_close(target.listener);
    if (client.side.fabric != NULL) {
        side_close(&client.side);
    }
    side_close(&target.side);
}

void
open_client(void)
{
    if (client.side.fabric == NULL) {
        ck_assert_int_eq(
                side_open(&client.side, verbs->listener_port(target.listener), UINT32_MAX), UC_OK);
    }
}

void
start_connect(const char *nonce)
{
    struct uc_fabric_connect connect = {
            .address = server_address,
            .port = verbs->listener_port(target.listener),
            .nonce = (const uint8_t *)nonce,
            .regions = &target.side.key,
            .region_count = 1,
            .timeout_ms = WAIT_MS,
            .on_state = on_state,
    };

    client.told = 0;
    ck_assert_int_eq(verbs->connect(client.side.domain, &connect, &client.endpoint), UC_OK);
}

void
connect_client(void)
{
    if (client.side.fabric == NULL) {
        ck_assert_int_eq(
                side_open(&client.side, verbs->listener_port(target.listener), UINT32_MAX), UC_OK);
    }
    start_connect(nonce_text);
    wait_until(client.told > 0);
    ck_assert_int_eq(client.state, UC_OK);
    ck_assert_ptr_nonnull(target.endpoint);
}

enum uc_status
post_job(struct job *job, enum uc_fabric_opcode opcode, uint64_t offset, uint64_t length)
{
    *job = (struct job){
            .op = {.opcode = opcode, .offset_bytes = offset, .on_done = on_job},
            .piece = {.address = client.side.memory,
                    .length_bytes = length,
                    .region = client.side.region},
    };
    if (opcode != UC_FABRIC_FLUSH) {
        job->op.pieces = &job->piece;
        job->op.piece_count = 1;
    }
    return verbs->post(client.endpoint, &job->op);
}

bool
memory_is(const uint8_t *memory, uint8_t value)
{
    return memory[0] == value && memcmp(memory, memory + 1, REGION_BYTES - 1) == 0;
}

/* The peer's side: one endpoint that writes its pattern over the whole region until it breaks. */
