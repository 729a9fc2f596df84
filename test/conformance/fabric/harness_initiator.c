/* SPDX-License-Identifier: Apache-2.0 */

/* The initiator's side, polled by the test's thread, and the suite's environment. */

#include <dirent.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <ucm/clock.h>

#include "core/base/host_memory.h"
#include "test/conformance/fabric/harness.h"

struct initiator initiator;

static int completion_count;

static const char *
environment(const char *name, const char *otherwise)
{
    const char *text = getenv(name);

    return text == NULL || text[0] == '\0' ? otherwise : text;
}

const char *
fabric_name(void)
{
    return environment("UCM_FABRIC", "tcp");
}

const char *
fabric_address(void)
{
    return environment("UCM_FABRIC_ADDRESS", "127.0.0.1");
}

long
environment_number(const char *name, long otherwise)
{
    const char *text = environment(name, "");

    return text[0] == '\0' ? otherwise : strtol(text, NULL, 10);
}

int
scaled(int count)
{
    long percent = environment_number("UCM_TEST_SCALE", 100);
    long result = percent < 1 || percent > 100 ? count : count * percent / 100;

    return result < 1 ? 1 : (int)result;
}

double
patience_s(void)
{
    return 30;
}

double
now_s(void)
{
    return (double)uc_clock_now_ns() / 1e9;
}

void
initiator_step(void)
{
    struct pollfd fd = {.fd = initiator.ops->event_fd(initiator.fabric), .events = POLLIN};

    if (initiator.ops->poll(initiator.fabric, 64) == 0 && initiator.ops->arm(initiator.fabric)) {
        (void)poll(&fd, 1, 10);
    }
}

void
initiator_open(uint16_t port)
{
    struct uc_fabric_config config = {
            .address = fabric_address(),
            .port = port,
            .connections = (uint32_t)environment_number("UCM_FABRIC_CONNECTIONS", 0),
    };
    struct uc_fabric_memory range;
    void *memory = NULL;

    /* What an engine is told to use: a provider may hand out the file behind it. */
    ck_assert_int_eq(uc_host_memory_alloc(LOCAL_BYTES, &memory), UC_OK);
    range = uc_fabric_host_memory(memory, LOCAL_BYTES);
    ck_assert(uc_host_memory_find(memory, LOCAL_BYTES, &range.fd, &range.fd_offset_bytes));
    memset(&initiator, 0, sizeof(initiator));
    initiator.memory = memory;
    ck_assert_msg(uc_fabric_find(fabric_name(), &initiator.ops) == UC_OK, "%s", uc_last_error());
    ck_assert_msg(initiator.ops->open(&config, &initiator.fabric) == UC_OK, "%s", uc_last_error());
    initiator.ops->caps(initiator.fabric, &initiator.caps);
    ck_assert_int_eq(initiator.ops->domain_open(initiator.fabric, &initiator.domain), UC_OK);
    ck_assert_int_eq(initiator.ops->region_register(initiator.domain, &range, UINT32_MAX,
                             UC_FABRIC_READ_WRITE, &initiator.region),
            UC_OK);
}

void
initiator_close(void)
{
    initiator.ops->region_deregister(initiator.region);
    initiator.ops->domain_close(initiator.domain);
    initiator.ops->close(initiator.fabric);
    uc_host_memory_free(initiator.memory, LOCAL_BYTES);
}

void
both_open(void)
{
    target_open();
    initiator_open(target.port);
}

void
both_close(void)
{
    initiator_close();
    target_close();
}

static void
on_state(void *context, struct uc_fabric_endpoint *endpoint, enum uc_status status)
{
    struct link *link = context;

    ck_assert_ptr_eq(endpoint, link->endpoint);
    ck_assert_int_eq(link->failure_count, 0);
    if (status == UC_OK) {
        link->ok_count++;
    } else {
        link->failure_count++;
        link->failure = status;
        ck_assert_str_ne(uc_last_error(), "");
    }
}

static void
start(struct link *link, struct uc_fabric_connect *params)
{
    memset(link, 0, sizeof(*link));
    params->on_state = on_state;
    params->context = link;
    ck_assert_msg(initiator.ops->connect(initiator.domain, params, &link->endpoint) == UC_OK, "%s",
            uc_last_error());
    ck_assert_int_eq(link->ok_count + link->failure_count, 0); /* never inside connect */
}

void
link_start_nonce(struct link *link, const uint8_t *nonce, const struct destination *where,
        uint64_t timeout_ms)
{
    struct uc_fabric_connect params = {
            .address = where->address,
            .port = where->port,
            .nonce = nonce,
            .regions = where->keys,
            .region_count = REGION_COUNT,
            .timeout_ms = timeout_ms,
    };

    start(link, &params);
}

void
link_start_keys(struct link *link, struct grant *grant, const struct uc_fabric_region_key *keys,
        size_t key_count)
{
    uint8_t nonce[UC_FABRIC_NONCE_BYTES];
    struct uc_fabric_connect params = {
            .address = target.address,
            .port = target.port,
            .nonce = nonce,
            .regions = keys,
            .region_count = key_count,
            .timeout_ms = 20000,
    };

    nonce_of_grant((size_t)(grant - target.grants), nonce);
    start(link, &params);
    link->grant = grant;
}

void
link_open_domain(
        struct link *link, size_t domain_idx, size_t key_domain_idx, enum uc_fabric_access access)
{
    link_start(link, grant_make(domain_idx, access), key_domain_idx, 20000);
    wait_until(link->ok_count + link->failure_count > 0);
    ck_assert_int_eq(link->failure_count, 0);
    wait_until(link->grant->connected_count == 1);
}

void
link_open(struct link *link, enum uc_fabric_access access)
{
    link_open_domain(link, 0, 0, access);
}

void
link_close(struct link *link)
{
    initiator.ops->disconnect(link->endpoint);
    link->endpoint = NULL;
}

static void
on_done(struct uc_fabric_op *op, enum uc_status status)
{
    struct test_op *self = (struct test_op *)op;

    self->done_count++;
    self->status = status;
    self->order = completion_count++;
}

void
op_init(struct test_op *op, enum uc_fabric_opcode opcode, uint64_t remote_offset,
        size_t local_offset, size_t length_bytes)
{
    memset(&op->op, 0, sizeof(op->op));
    op->op.opcode = opcode;
    op->op.offset_bytes = remote_offset;
    op->op.on_done = on_done;
    op->op.pieces = op->pieces;
    op->done_count = 0;
    op->status = UC_ERR_GENERAL;
    op->order = -1;
    if (length_bytes > 0) {
        op_add_piece(op, local_offset, length_bytes);
    }
}

void
op_add_piece(struct test_op *op, size_t local_offset, size_t length_bytes)
{
    struct uc_fabric_piece *piece = &op->pieces[op->op.piece_count++];

    piece->address = initiator.memory + local_offset;
    piece->length_bytes = length_bytes;
    piece->region = initiator.region;
}

enum uc_status
op_run(struct link *link, struct test_op *op)
{
    ck_assert_msg(initiator.ops->post(link->endpoint, &op->op) == UC_OK, "%s", uc_last_error());
    ck_assert_int_eq(op->done_count, 0); /* never inside post */
    wait_until(op->done_count > 0);
    ck_assert_int_eq(op->done_count, 1);
    return op->status;
}

enum uc_status
write_and_flush(struct link *link, uint64_t remote_offset, size_t local_offset, size_t length_bytes)
{
    static struct test_op write;
    static struct test_op flush;

    op_init(&write, UC_FABRIC_WRITE, remote_offset, local_offset, length_bytes);
    op_init(&flush, UC_FABRIC_FLUSH, 0, 0, 0);
    write.op.next = &flush.op;
    ck_assert_int_eq(initiator.ops->post(link->endpoint, &write.op), UC_OK);
    wait_until(write.done_count > 0 && flush.done_count > 0);
    ck_assert_int_eq(write.done_count, 1);
    ck_assert_int_eq(flush.done_count, 1);
    return write.status == UC_OK ? flush.status : write.status;
}

struct flight
flight_make(void)
{
    struct flight flight = {.count = scaled(64) < 8 ? 8 : scaled(64)};

    flight.ops = calloc((size_t)flight.count, sizeof(*flight.ops));
    ck_assert_ptr_nonnull(flight.ops);
    return flight;
}

void
flight_free(struct flight *flight)
{
    free(flight->ops);
    flight->ops = NULL;
}

void
flight_post(struct flight *flight, struct link *link, enum uc_fabric_opcode even,
        enum uc_fabric_opcode odd)
{
    for (int idx = 0; idx < flight->count; idx++) {
        size_t place = (size_t)idx * FLIGHT_BYTES;
        enum uc_fabric_opcode opcode = idx % 2 == 0 ? even : odd;

        op_init(&flight->ops[idx], opcode, place % REGION_BYTES, place,
                opcode == UC_FABRIC_FLUSH ? 0 : FLIGHT_BYTES);
        flight->ops[idx].op.next = idx + 1 < flight->count ? &flight->ops[idx + 1].op : NULL;
    }
    ck_assert_int_eq(initiator.ops->post(link->endpoint, &flight->ops[0].op), UC_OK);
}

int
flight_done(const struct flight *flight)
{
    int count = 0;

    for (int idx = 0; idx < flight->count; idx++) {
        count += flight->ops[idx].done_count;
    }
    return count;
}

void
flight_assert_over(const struct flight *flight)
{
    ck_assert_int_eq(flight_done(flight), flight->count);
    for (int idx = 0; idx < flight->count; idx++) {
        const struct test_op *op = &flight->ops[idx];

        ck_assert_int_eq(op->done_count, 1);
        ck_assert_msg(op->status == UC_OK || op->status == UC_ERR_UNHEALTHY, "operation %d: %s",
                idx, uc_status_name(op->status));
    }
}

size_t
pattern_match(const uint8_t *bytes, uint8_t seed, uint64_t offset, size_t count)
{
    size_t idx = 0;

    while (idx < count && bytes[idx] == pattern(seed, offset + idx)) {
        idx++;
    }
    return idx;
}

size_t
value_match(const uint8_t *bytes, uint8_t value, size_t count)
{
    size_t idx = 0;

    while (idx < count && bytes[idx] == value) {
        idx++;
    }
    return idx;
}

int
fd_count(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;

    ck_assert_ptr_nonnull(folder);
    while (readdir(folder) != NULL) {
        count++;
    }
    (void)closedir(folder);
    return count;
}
