/* SPDX-License-Identifier: Apache-2.0 */

#include "server_fixture.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <check.h>

#include <ucm/clock.h>

#include "core/base/bytes.h"
#include "server/config.h"
#include "server/server.h"

enum {
    CALL_MS = 10000,
    STEP_MS = FIXTURE_LEASE_MS / 6,
    TRIES = 100000,
};

static struct {
    struct uc_server_arguments arguments;
    struct uc_server *server;
    pthread_t thread;
    int stop_fd;
    atomic_uint_fast64_t now_ms;
} fixture;

static uint64_t
read_clock(void *context)
{
    (void)context;
    return atomic_load_explicit(&fixture.now_ms, memory_order_acquire);
}

static void *
run_server(void *argument)
{
    (void)argument;
    ck_assert_int_eq(uc_server_run(fixture.server, fixture.stop_fd), UC_OK);
    return NULL;
}

void
fixture_start(const char *option, const char *more)
{
    char texts[][64] = {"ucm-server", "--listen=127.0.0.1:0", "--fabric=tcp", "--fabric-port=0",
            "--lease=600ms", "--block-bytes=4KiB", "--capacity-blocks=8", "--region-bytes=16KiB",
            "", ""};
    char *arguments[10];
    struct uc_clock clock = {.now_ms = read_clock};
    int count = 8;

    for (int idx = 0; idx < 10; idx++) {
        arguments[idx] = texts[idx];
    }
    if (option != NULL) {
        strcpy(texts[count++], option);
    }
    if (more != NULL) {
        strcpy(texts[count++], more);
    }
    atomic_store_explicit(&fixture.now_ms, 1000, memory_order_release);
    ck_assert_int_eq(uc_server_arguments_parse(count, arguments, &fixture.arguments), UC_OK);
    ck_assert_int_eq(uc_server_create(&fixture.arguments.config, &clock, &fixture.server), UC_OK);
    fixture.stop_fd = eventfd(0, EFD_CLOEXEC);
    ck_assert_int_ge(fixture.stop_fd, 0);
    ck_assert_int_eq(pthread_create(&fixture.thread, NULL, run_server, NULL), 0);
}

void
fixture_ask_to_stop(void)
{
    uint64_t one = 1;

    ck_assert_int_eq(write(fixture.stop_fd, &one, sizeof(one)), sizeof(one));
}

void
fixture_stop(void)
{
    fixture_ask_to_stop();
    ck_assert_int_eq(pthread_join(fixture.thread, NULL), 0);
    uc_server_destroy(fixture.server);
    uc_server_config_fini(&fixture.arguments.config);
    (void)close(fixture.stop_fd);
}

uint64_t
fixture_now_ms(void)
{
    return read_clock(NULL);
}

void
fixture_jump_ms(uint64_t delta_ms)
{
    (void)atomic_fetch_add_explicit(&fixture.now_ms, delta_ms, memory_order_acq_rel);
}

void
fixture_pass_ms(struct test_peer *witness, uint64_t delta_ms)
{
    while (delta_ms > 0) {
        uint64_t step_ms = delta_ms < STEP_MS ? delta_ms : STEP_MS;

        fixture_jump_ms(step_ms);
        delta_ms -= step_ms;
        /* Two answers: the turn of the first has ended with its lease check when the second begins. */
        (void)test_stat(witness);
        (void)test_stat(witness);
    }
}

struct uc_block_id
test_id(unsigned number)
{
    struct uc_block_id id = {{(uint8_t)number, (uint8_t)(number >> 8), 0x5a}};

    return id;
}

static void
on_closed(void *context, struct uc_rpc_connection *connection, enum uc_status reason)
{
    struct test_peer *peer = context;

    (void)connection;
    (void)reason;
    peer->closed = true;
}

static const struct uc_rpc_handler handler = {.on_closed = on_closed};

struct test_peer *
test_dial(void)
{
    struct test_peer *peer = calloc(1, sizeof(*peer));
    int fd;

    ck_assert_ptr_nonnull(peer);
    ck_assert_int_eq(
            uc_rpc_dial("127.0.0.1", uc_server_rpc_port(fixture.server), CALL_MS, &fd), UC_OK);
    ck_assert_int_eq(uc_rpc_connection_create(
                             fd, &handler, peer, UC_RPC_FRAME_BYTES_DEFAULT, &peer->connection),
            UC_OK);
    return peer;
}

void
test_close(struct test_peer *peer)
{
    uc_rpc_connection_destroy(peer->connection);
    free(peer);
}

bool
test_wait_closed(struct test_peer *peer)
{
    for (int tries = 0; tries < 500 && !peer->closed; tries++) {
        struct pollfd pollfd = {.fd = uc_rpc_connection_fd(peer->connection), .events = POLLIN};

        (void)poll(&pollfd, 1, 20);
        uc_rpc_connection_progress(peer->connection);
    }
    return peer->closed;
}

/* Call with an encoded buffer, which is freed. */
static enum uc_status
call(struct test_peer *peer, enum uc_rpc_method method, struct uc_rpc_buffer *buffer,
        struct uc_rpc_view *result_out)
{
    enum uc_status status;

    ck_assert(!buffer->failed);
    status = uc_rpc_call_wait(peer->connection, method, buffer, CALL_MS, result_out);
    uc_rpc_buffer_fini(buffer);
    return status;
}

static struct uc_rpc_text
text_of(const char *text)
{
    struct uc_rpc_text result = {.bytes = text, .length = strlen(text)};

    return result;
}

enum uc_status
test_hello(struct test_peer *peer, enum uc_access access, const char *name_space,
        const char *credential, uint32_t version)
{
    struct uc_hello_request request = {
            .version = version,
            .name_space = text_of(name_space),
            .access = access,
            .credential = text_of(credential),
            .client = text_of("unit test"),
    };
    struct uc_rpc_buffer buffer = {0};
    struct uc_rpc_view result;
    enum uc_status status;

    uc_hello_request_encode(&buffer, &request);
    status = call(peer, UC_RPC_HELLO, &buffer, &result);
    if (status == UC_OK) {
        ck_assert_int_eq(uc_hello_reply_decode(result, &peer->hello), UC_OK);
    }
    return status;
}

struct test_peer *
test_session(enum uc_access access)
{
    struct test_peer *peer = test_dial();

    ck_assert_int_eq(test_hello(peer, access, "default", "", UC_PROTOCOL_VERSION), UC_OK);
    return peer;
}

enum uc_status
test_attach(struct test_peer *peer, const uint8_t *attach_key, uint64_t incarnation)
{
    struct uc_attach_request request = {
            .version = UC_PROTOCOL_VERSION,
            .incarnation = incarnation,
            .client = text_of("unit worker"),
    };
    struct uc_rpc_buffer buffer = {0};
    struct uc_rpc_view result;
    enum uc_status status;

    memcpy(request.attach_key, attach_key, sizeof(request.attach_key));
    uc_attach_request_encode(&buffer, &request);
    status = call(peer, UC_RPC_ATTACH, &buffer, &result);
    if (status != UC_OK) {
        return status;
    }

    ck_assert_int_eq(uc_attach_reply_decode(result, &peer->attach), UC_OK);
    ck_assert_uint_eq(peer->attach.fabric_count, 1);
    ck_assert_uint_le(peer->attach.region_count, FIXTURE_KEYS_MAX);
    peer->fabric_port = peer->attach.fabrics[0].port;
    peer->region_count = peer->attach.region_count;
    for (size_t idx = 0; idx < peer->region_count; idx++) {
        peer->regions[idx].length_bytes = uc_get_le64(peer->attach.region_lengths + 8 * idx);
        peer->regions[idx].address = uc_get_le64(peer->attach.fabrics[0].keys + 16 * idx);
        peer->regions[idx].key = uc_get_le64(peer->attach.fabrics[0].keys + 16 * idx + 8);
    }
    return UC_OK;
}

struct test_peer *
test_worker(const struct test_peer *session)
{
    struct test_peer *peer = test_dial();

    ck_assert_int_eq(
            test_attach(peer, session->hello.attach_key, session->hello.incarnation), UC_OK);
    return peer;
}

enum uc_status
test_ping(struct test_peer *peer)
{
    struct uc_rpc_buffer buffer = {0};

    uc_empty_request_encode(&buffer);
    return call(peer, UC_RPC_PING, &buffer, NULL);
}

static void
fill_ids(struct uc_block_id *ids, unsigned first, unsigned count)
{
    ck_assert_uint_le(count, FIXTURE_KEYS_MAX);
    for (unsigned idx = 0; idx < count; idx++) {
        ids[idx] = test_id(first + idx);
    }
}

unsigned
test_lookup(struct test_peer *peer, unsigned first, unsigned count)
{
    struct uc_block_id ids[FIXTURE_KEYS_MAX];
    struct uc_rpc_buffer buffer = {0};
    struct uc_rpc_view result;
    const uint8_t *bitmap;
    unsigned hits = 0;

    fill_ids(ids, first, count);
    uc_keys_request_encode(&buffer, (struct uc_keys_view){.ids = ids, .count = count});
    ck_assert_int_eq(call(peer, UC_RPC_LOOKUP, &buffer, &result), UC_OK);
    ck_assert_int_eq(uc_bitmap_reply_decode(result, count, &bitmap), UC_OK);
    for (unsigned idx = 0; idx < count; idx++) {
        hits |= (unsigned)(bitmap[idx / 8] >> (idx % 8) & 1) << idx;
    }
    return hits;
}

static void
read_grant(struct uc_rpc_view result, size_t count, struct test_grant *grant_out)
{
    struct uc_grant_reply reply;

    ck_assert_int_eq(uc_grant_reply_decode(result, &reply), UC_OK);
    ck_assert_uint_eq(reply.count, count);
    grant_out->id = reply.grant;
    grant_out->count = count;
    for (size_t idx = 0; idx < count; idx++) {
        uc_entry_get(reply.entries + idx * UC_ENTRY_BYTES, &grant_out->entries[idx]);
    }
}

enum uc_status
test_alloc_ids(struct test_peer *peer, const struct uc_block_id *ids, size_t count,
        struct test_grant *grant_out)
{
    struct uc_alloc_request request = {.keys = {.ids = ids, .count = count}};
    struct uc_rpc_buffer buffer = {0};
    struct uc_rpc_view result;
    enum uc_status status;

    uc_alloc_request_encode(&buffer, &request);
    status = call(peer, UC_RPC_ALLOC, &buffer, &result);
    if (status == UC_OK) {
        read_grant(result, count, grant_out);
    }
    return status;
}

enum uc_status
test_alloc(struct test_peer *peer, unsigned first, unsigned count, struct test_grant *grant_out)
{
    struct uc_block_id ids[FIXTURE_KEYS_MAX];

    fill_ids(ids, first, count);
    return test_alloc_ids(peer, ids, count, grant_out);
}

enum uc_status
test_pin(struct test_peer *peer, unsigned first, unsigned count, struct test_grant *grant_out)
{
    struct uc_block_id ids[FIXTURE_KEYS_MAX];
    struct uc_rpc_buffer buffer = {0};
    struct uc_rpc_view result;
    enum uc_status status;

    fill_ids(ids, first, count);
    uc_keys_request_encode(&buffer, (struct uc_keys_view){.ids = ids, .count = count});
    status = call(peer, UC_RPC_PIN, &buffer, &result);
    if (status == UC_OK) {
        read_grant(result, count, grant_out);
    }
    return status;
}

enum uc_status
test_unpin(struct test_peer *peer, uint64_t grant)
{
    struct uc_rpc_buffer buffer = {0};

    uc_grant_request_encode(&buffer, grant);
    return call(peer, UC_RPC_UNPIN, &buffer, NULL);
}

static enum uc_status
commit(struct test_peer *peer, const struct uc_commit_request *request)
{
    struct uc_rpc_buffer buffer = {0};

    uc_commit_request_encode(&buffer, request);
    return call(peer, UC_RPC_COMMIT, &buffer, NULL);
}

enum uc_status
test_commit(struct test_peer *peer, uint64_t grant, bool success)
{
    struct uc_commit_request request = {.grant = grant, .success = success};

    return commit(peer, &request);
}

enum uc_status
test_commit_bitmap(struct test_peer *peer, uint64_t grant, uint8_t bitmap)
{
    struct uc_commit_request request = {
            .grant = grant, .has_bitmap = true, .bitmap = &bitmap, .bitmap_bytes = 1};

    return commit(peer, &request);
}

enum uc_status
test_begin(
        struct test_peer *worker, uint64_t grant, uint64_t bracket, uint64_t first, uint64_t count)
{
    struct uc_write_begin_request request = {
            .grant = grant, .bracket = bracket, .first_key = first, .key_count = count};
    struct uc_rpc_buffer buffer = {0};

    uc_write_begin_request_encode(&buffer, &request);
    return call(worker, UC_RPC_WRITE_BEGIN, &buffer, NULL);
}

enum uc_status
test_end(struct test_peer *worker, uint64_t bracket, bool ok, const struct uc_written_range *ranges,
        size_t count)
{
    uint8_t packed[FIXTURE_KEYS_MAX * UC_WRITTEN_BYTES];
    struct uc_write_end_request request = {
            .bracket = bracket, .ok = ok, .ranges = packed, .range_count = count};
    struct uc_rpc_buffer buffer = {0};

    ck_assert_uint_le(count, FIXTURE_KEYS_MAX);
    for (size_t idx = 0; idx < count; idx++) {
        uc_written_range_put(packed + idx * UC_WRITTEN_BYTES, &ranges[idx]);
    }
    uc_write_end_request_encode(&buffer, &request);
    return call(worker, UC_RPC_WRITE_END, &buffer, NULL);
}

void
test_write_whole(struct test_peer *worker, const struct test_grant *grant, uint64_t bracket)
{
    struct uc_written_range ranges[FIXTURE_KEYS_MAX];

    for (size_t idx = 0; idx < grant->count; idx++) {
        ranges[idx] = (struct uc_written_range){
                .length_bytes = FIXTURE_BLOCK_BYTES, .announced_bytes = FIXTURE_BLOCK_BYTES};
    }
    ck_assert_int_eq(test_begin(worker, grant->id, bracket, 0, grant->count), UC_OK);
    ck_assert_int_eq(test_end(worker, bracket, true, ranges, grant->count), UC_OK);
}

enum uc_status
test_report(struct test_peer *peer, unsigned number, uint64_t generation)
{
    struct uc_report_request request = {
            .key = test_id(number), .generation = generation, .what = text_of("checksum")};
    struct uc_rpc_buffer buffer = {0};

    uc_report_request_encode(&buffer, &request);
    return call(peer, UC_RPC_REPORT, &buffer, NULL);
}

enum uc_status
test_flip(struct test_peer *peer, unsigned number, uint64_t offset)
{
    struct uc_debug_flip_request request = {.key = test_id(number), .offset_bytes = offset};
    struct uc_rpc_buffer buffer = {0};

    uc_debug_flip_request_encode(&buffer, &request);
    return call(peer, UC_RPC_DEBUG_FLIP, &buffer, NULL);
}

struct uc_stat_reply
test_stat(struct test_peer *peer)
{
    struct uc_rpc_buffer buffer = {0};
    struct uc_rpc_view result;
    struct uc_stat_reply reply;

    uc_empty_request_encode(&buffer);
    ck_assert_int_eq(call(peer, UC_RPC_STAT, &buffer, &result), UC_OK);
    ck_assert_int_eq(uc_stat_reply_decode(result, &reply), UC_OK);
    return reply;
}

void
test_wait_idle(struct test_peer *peer, uint64_t sessions)
{
    struct uc_stat_reply stat;

    for (int tries = 0; tries < TRIES; tries++) {
        stat = test_stat(peer);
        if (stat.sessions == sessions && stat.reserved_slots == 0 && stat.pinned_slots == 0 &&
                stat.draining_slots == 0 && stat.grants == 0 && stat.open_brackets == 0 &&
                stat.attachments == 0) {
            return;
        }
    }
    ck_abort_msg("still held: sessions %lu reserved %lu pinned %lu draining %lu grants %lu "
                 "brackets %lu attachments %lu",
            stat.sessions, stat.reserved_slots, stat.pinned_slots, stat.draining_slots, stat.grants,
            stat.open_brackets, stat.attachments);
}
