/* SPDX-License-Identifier: Apache-2.0 */

#include "tools/bench/fabric_client.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <ucm/clock.h>
#include <ucm/log.h>

#include "tools/bench/block_content.h"

enum {
    POLL_BUDGET = 256,
    SPIN_NS = 20000, /* as the remote store does on verbs */
    CONNECT_MS = 10000,
    SLEEP_MS = 1000,
    STALLED_MS = 60000,
};

/* One operation in flight, with all it may need. */
struct lane {
    struct uc_fabric_client *client;
    struct uc_fabric_op data;
    struct uc_fabric_op footer_op;
    struct uc_fabric_op flush;
    struct uc_fabric_piece *pieces; /* of the block, then the footer */
    struct uc_fabric_piece footer_piece;
    struct uc_checksum_piece *checksum_pieces;
    struct uc_checksum_stream checksum;
    uint64_t unsummed_bytes; /* of the block, not told yet */
    uint8_t *footer;
    uint64_t slot;
    uint64_t start_ns;
    unsigned pending;
};

struct uc_fabric_client {
    const struct uc_fabric_bench_options *options;
    const struct uc_fabric_ops *ops;
    struct uc_fabric *fabric;
    struct uc_fabric_caps caps;
    struct uc_fabric_domain *domain;
    struct uc_fabric_region *region;
    struct uc_fabric_endpoint *endpoint;
    bool answered;
    enum uc_status state;
    struct uc_fabric_bench_slots slots;
    struct uc_fabric_bench_buffers buffers;
    struct uc_fabric_bench_memory memory;
    struct lane *lanes;
    bool reads;
    bool spins;

    /* Of the round that runs. */
    struct uc_fabric_client_round round;
    uint64_t next_block; /* goes on from round to round */
    uint64_t issued;
    uint64_t done;
    uint64_t end_ns;
    size_t in_flight;
    enum uc_status failure;
    uint64_t mismatches;
};

static void issue(struct uc_fabric_client *client, struct lane *lane);

static bool
footer_is_right(struct lane *lane)
{
    struct uc_fabric_client *client = lane->client;
    struct uc_block_id key = uc_block_id_from_hash(lane->slot);
    uint64_t generation = uc_fabric_bench_slot_generation(lane->slot);
    struct uc_slot_footer footer;
    uint64_t checksum;

    if (uc_slot_footer_get(lane->footer, &footer) != UC_OK || footer.state != UC_FOOTER_COMMITTED ||
            footer.generation != generation || memcmp(&footer.key, &key, sizeof(key)) != 0 ||
            footer.length_bytes != client->slots.block_bytes ||
            footer.checksum_kind != UC_CHECKSUM_XXH3_64) {
        return false;
    }
    checksum = client->caps.feeds_bytes ? uc_checksum_stream_value(&lane->checksum)
                                        : uc_slot_checksum(&key, generation, lane->checksum_pieces,
                                                  client->buffers.pieces);
    return checksum == footer.checksum;
}

/* One block has been moved. */
static void
finish(struct lane *lane)
{
    struct uc_fabric_client *client = lane->client;
    uint64_t now_ns;

    if (client->round.verified && client->reads && client->failure == UC_OK &&
            !footer_is_right(lane)) {
        client->mismatches++;
    }
    now_ns = uc_clock_now_ns();
    client->in_flight--;
    client->done++;
    if (client->round.latency != NULL) {
        uc_latency_add(client->round.latency, now_ns - lane->start_ns);
    }
    if (client->failure == UC_OK && now_ns < client->end_ns &&
            client->issued < client->round.ops_max) {
        issue(client, lane);
    }
}

static void
on_part_done(struct lane *lane, enum uc_status status)
{
    struct uc_fabric_client *client = lane->client;

    if (status != UC_OK && client->failure == UC_OK) {
        client->failure = uc_error(status, "an operation on block %" PRIu64 " failed: %s",
                lane->slot, uc_status_name(status));
    }
    if (--lane->pending == 0) {
        finish(lane);
    }
}

static void
on_data_done(struct uc_fabric_op *op, enum uc_status status)
{
    on_part_done((struct lane *)(void *)((uint8_t *)op - offsetof(struct lane, data)), status);
}

static void
on_footer_done(struct uc_fabric_op *op, enum uc_status status)
{
    on_part_done((struct lane *)(void *)((uint8_t *)op - offsetof(struct lane, footer_op)), status);
}

static void
on_flush_done(struct uc_fabric_op *op, enum uc_status status)
{
    on_part_done((struct lane *)(void *)((uint8_t *)op - offsetof(struct lane, flush)), status);
}

static void
on_bytes(struct uc_fabric_op *op, const void *bytes, size_t length_bytes)
{
    struct lane *lane = (struct lane *)(void *)((uint8_t *)op - offsetof(struct lane, data));
    uint64_t count = length_bytes < lane->unsummed_bytes ? length_bytes : lane->unsummed_bytes;

    uc_checksum_stream_add(&lane->checksum, bytes, (size_t)count); /* not the footer */
    lane->unsummed_bytes -= count;
}

/* Point a lane at the next block: slot and buffer. */
static void
aim(struct uc_fabric_client *client, struct lane *lane)
{
    uint64_t buffer = client->next_block % client->buffers.count;

    lane->slot = client->next_block % client->slots.count;
    client->next_block++;
    for (uint64_t idx = 0; idx < client->buffers.pieces; idx++) {
        lane->pieces[idx].address =
                client->memory.base + uc_fabric_bench_piece_offset(&client->buffers, buffer, idx);
        lane->checksum_pieces[idx].address = lane->pieces[idx].address;
    }
    lane->data.offset_bytes = uc_fabric_bench_slot_offset(&client->slots, lane->slot);
    lane->data.generation = uc_fabric_bench_slot_generation(lane->slot);
    lane->data.next = NULL;
}

static void
post(struct uc_fabric_client *client, struct lane *lane, struct uc_fabric_op *list, unsigned count)
{
    enum uc_status status;

    lane->pending += count;
    status = client->ops->post(client->endpoint, list);
    if (status != UC_OK) {
        lane->pending -= count;
        client->failure = client->failure == UC_OK ? status : client->failure;
    }
}

/* Behind the data, as the remote store does: the footer's half, then a FLUSH. */
static void
post_footer(struct uc_fabric_client *client, struct lane *lane)
{
    struct uc_block_id key = uc_block_id_from_hash(lane->slot);
    uint64_t checksum = uc_slot_checksum(
            &key, lane->data.generation, lane->checksum_pieces, client->buffers.pieces);

    uc_slot_footer_put_writer(
            lane->footer, client->slots.block_bytes, UC_CHECKSUM_XXH3_64, checksum);
    lane->footer_op.offset_bytes =
            lane->data.offset_bytes + client->slots.block_bytes + UC_FOOTER_WRITER_OFFSET;
    lane->footer_op.generation = lane->data.generation;
    lane->footer_op.next = &lane->flush;
    lane->flush.offset_bytes = lane->data.offset_bytes + client->slots.block_bytes;
    lane->flush.generation = lane->data.generation;
    lane->flush.next = NULL;
    post(client, lane, &lane->footer_op, 2);
}

static void
issue(struct uc_fabric_client *client, struct lane *lane)
{
    bool with_footer = client->round.verified && client->reads;

    aim(client, lane);
    lane->data.piece_count = client->buffers.pieces + (with_footer ? 1 : 0);
    lane->data.on_bytes = NULL;
    if (with_footer && client->caps.feeds_bytes) {
        struct uc_block_id key = uc_block_id_from_hash(lane->slot);

        uc_checksum_stream_init(&lane->checksum, &key, lane->data.generation);
        lane->unsummed_bytes = client->slots.block_bytes;
        lane->data.on_bytes = on_bytes;
    }
    lane->start_ns = uc_clock_now_ns();
    client->issued++;
    client->in_flight++;
    post(client, lane, &lane->data, 1);
    if (client->failure == UC_OK && client->round.verified && !client->reads) {
        post_footer(client, lane);
    }
    if (lane->pending == 0) {
        client->in_flight--; /* refused */
    }
}

/* Sleep until the fabric has work. @return whether it woke up */
static bool
sleep_for_work(struct uc_fabric_client *client)
{
    struct pollfd pollfd = {.fd = client->ops->event_fd(client->fabric), .events = POLLIN};
    uint64_t deadline_ms;
    uint64_t now_ms = uc_clock_now_ns() / 1000000;
    uint64_t left_ms;

    if (!client->ops->arm(client->fabric)) {
        return true;
    }
    deadline_ms = client->ops->next_deadline_ms(client->fabric);
    left_ms = deadline_ms > now_ms ? deadline_ms - now_ms : 0;
    return poll(&pollfd, 1, left_ms > SLEEP_MS ? SLEEP_MS : (int)left_ms) != 0;
}

static void
take_turn(struct uc_fabric_client *client)
{
    uint64_t start_ns;

    if (client->ops->poll(client->fabric, POLL_BUDGET) > 0) {
        return;
    }
    if (client->spins) {
        start_ns = uc_clock_now_ns();
        do {
            if (client->ops->poll(client->fabric, POLL_BUDGET) > 0) {
                return;
            }
        } while (uc_clock_now_ns() - start_ns < SPIN_NS);
    }
    (void)sleep_for_work(client);
}

static uint64_t
cpu_ns(void)
{
    struct rusage usage = {.ru_utime = {.tv_sec = 0}};

    (void)getrusage(RUSAGE_SELF, &usage);
    return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000000 +
           (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000;
}

/* Until nothing is in flight. */
static enum uc_status
drain(struct uc_fabric_client *client)
{
    uint64_t last_done = client->done;
    uint64_t last_ns = uc_clock_now_ns();

    while (client->in_flight > 0) {
        take_turn(client);
        if (client->done != last_done) {
            last_done = client->done;
            last_ns = uc_clock_now_ns();
        } else if (uc_clock_now_ns() - last_ns > (uint64_t)STALLED_MS * 1000000) {
            client->failure = uc_error(UC_ERR_TIMEOUT,
                    "%zu operations are in flight and none has ended for %d s", client->in_flight,
                    STALLED_MS / 1000);
            client->ops->fence(client->endpoint); /* ends them */
        }
    }
    return client->failure;
}

enum uc_status
uc_fabric_client_run(struct uc_fabric_client *client, const struct uc_fabric_client_round *round,
        struct uc_fabric_client_moved *moved_out)
{
    uint64_t start_cpu_ns = cpu_ns();
    uint64_t start_ns = uc_clock_now_ns();
    enum uc_status status;

    client->round = *round;
    client->issued = 0;
    client->done = 0;
    client->end_ns = start_ns + round->duration_ns;
    for (uint64_t idx = 0;
            idx < round->depth && client->issued < round->ops_max && client->failure == UC_OK;
            idx++) {
        issue(client, &client->lanes[idx]);
    }
    status = drain(client);
    if (status != UC_OK) {
        return status;
    }

    moved_out->elapsed_ns = uc_clock_now_ns() - start_ns;
    moved_out->cpu_ns = cpu_ns() - start_cpu_ns;
    moved_out->ops = client->done;
    moved_out->bytes = client->done * client->slots.block_bytes;
    return UC_OK;
}

static void
on_state(void *context, struct uc_fabric_endpoint *endpoint, enum uc_status status)
{
    struct uc_fabric_client *client = context;

    (void)endpoint;
    client->answered = true;
    client->state = status;
    if (status != UC_OK) {
        client->failure = status;
    }
}

enum uc_status
uc_fabric_client_connect(struct uc_fabric_client *client, const struct uc_fabric_client_peer *peer)
{
    struct uc_fabric_config config = {.address = peer->address,
            .port = peer->port,
            .device = client->options->device,
            .connections = (uint32_t)client->options->connections};
    struct uc_fabric_connect params = {.address = peer->address,
            .port = peer->port,
            .nonce = peer->nonce,
            .regions = &peer->region,
            .region_count = 1,
            .timeout_ms = CONNECT_MS,
            .on_state = on_state,
            .context = client};
    struct uc_fabric_memory range = uc_fabric_bench_memory_range(&client->memory);
    enum uc_status status = client->ops->open(&config, &client->fabric);

    if (status == UC_OK) {
        client->ops->caps(client->fabric, &client->caps);
        status = client->ops->domain_open(client->fabric, &client->domain);
    }
    if (status == UC_OK) {
        status = client->ops->region_register(
                client->domain, &range, UINT32_MAX, UC_FABRIC_READ_WRITE, &client->region);
    }
    if (status == UC_OK) {
        status = client->ops->connect(client->domain, &params, &client->endpoint);
    }
    if (status != UC_OK) {
        return status;
    }
    for (uint64_t idx = 0; idx < client->options->depth; idx++) {
        struct lane *lane = &client->lanes[idx];

        for (uint64_t piece = 0; piece <= client->buffers.pieces; piece++) {
            lane->pieces[piece].region = client->region;
        }
        lane->footer_piece.region = client->region;
    }

    while (!client->answered) {
        if (client->ops->poll(client->fabric, POLL_BUDGET) == 0) {
            (void)sleep_for_work(client);
        }
    }
    return client->state;
}

/* Pieces that never change but for their address. */
static enum uc_status
make_lane(struct uc_fabric_client *client, uint64_t idx)
{
    struct lane *lane = &client->lanes[idx];
    size_t count = client->buffers.pieces + 1;

    lane->client = client;
    lane->pieces = calloc(count, sizeof(lane->pieces[0]));
    lane->checksum_pieces = calloc(count, sizeof(lane->checksum_pieces[0]));
    if (lane->pieces == NULL || lane->checksum_pieces == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "no memory for %zu pieces", count);
    }
    for (size_t piece = 0; piece + 1 < count; piece++) {
        lane->pieces[piece].length_bytes = client->buffers.piece_bytes;
        lane->checksum_pieces[piece].length_bytes = client->buffers.piece_bytes;
    }
    lane->footer = client->memory.base + uc_fabric_bench_footer_offset(&client->buffers, idx);
    lane->pieces[count - 1] =
            (struct uc_fabric_piece){.address = lane->footer, .length_bytes = UC_FOOTER_BYTES};
    lane->footer_piece = (struct uc_fabric_piece){
            .address = lane->footer, .length_bytes = UC_FOOTER_WRITER_BYTES};
    lane->data = (struct uc_fabric_op){.opcode = client->reads ? UC_FABRIC_READ : UC_FABRIC_WRITE,
            .pieces = lane->pieces,
            .on_done = on_data_done};
    lane->footer_op = (struct uc_fabric_op){.opcode = UC_FABRIC_WRITE,
            .pieces = &lane->footer_piece,
            .piece_count = 1,
            .on_done = on_footer_done};
    lane->flush = (struct uc_fabric_op){.opcode = UC_FABRIC_FLUSH, .on_done = on_flush_done};
    return UC_OK;
}

static enum uc_status
make_lanes(struct uc_fabric_client *client)
{
    uint64_t depth = client->options->depth;
    enum uc_status status = UC_OK;

    client->lanes = aligned_alloc(_Alignof(struct lane), depth * sizeof(client->lanes[0]));
    if (client->lanes == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "no memory for %" PRIu64 " operations", depth);
    }
    memset(client->lanes, 0, depth * sizeof(client->lanes[0]));
    for (uint64_t idx = 0; idx < depth && status == UC_OK; idx++) {
        status = make_lane(client, idx);
    }
    return status;
}

enum uc_status
uc_fabric_client_create(const struct uc_fabric_bench_options *options,
        const struct uc_fabric_bench_slots *slots, struct uc_fabric_client **client_out)
{
    struct uc_fabric_client *client = calloc(1, sizeof(*client));
    enum uc_status status;

    if (client == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "no memory for the client");
    }

    client->options = options;
    client->slots = *slots;
    client->memory.fd = -1;
    client->reads = strcmp(options->op, "read") == 0;
    client->spins = strcmp(options->fabric, "verbs") == 0;
    client->buffers = (struct uc_fabric_bench_buffers){
            .count = strcmp(options->buffers, "cold") == 0 ? slots->count : options->depth,
            .piece_bytes = options->block_bytes / options->pieces,
            .pieces = options->pieces,
            .footer_count = options->depth};
    status = uc_fabric_find(options->fabric, &client->ops);
    if (status == UC_OK) {
        status = uc_fabric_bench_memory_create(
                uc_fabric_bench_footer_offset(&client->buffers, client->buffers.footer_count),
                &client->memory);
    }
    if (status == UC_OK) {
        uc_fabric_bench_buffers_fill(&client->buffers, client->memory.base);
        status = make_lanes(client);
    }
    if (status != UC_OK) {
        uc_fabric_client_destroy(client);
        return status;
    }

    *client_out = client;
    return UC_OK;
}

void
uc_fabric_client_destroy(struct uc_fabric_client *client)
{
    if (client == NULL) {
        return;
    }

    if (client->endpoint != NULL) {
        client->ops->disconnect(client->endpoint);
    }
    if (client->region != NULL) {
        client->ops->region_deregister(client->region);
    }
    if (client->domain != NULL) {
        client->ops->domain_close(client->domain);
    }
    if (client->fabric != NULL) {
        client->ops->close(client->fabric);
    }
    for (uint64_t idx = 0; client->lanes != NULL && idx < client->options->depth; idx++) {
        free(client->lanes[idx].pieces);
        free(client->lanes[idx].checksum_pieces);
    }
    free(client->lanes);
    uc_fabric_bench_memory_destroy(&client->memory);
    free(client);
}

const struct uc_fabric_bench_memory *
uc_fabric_client_memory(const struct uc_fabric_client *client)
{
    return &client->memory;
}

uint64_t
uc_fabric_client_buffer_count(const struct uc_fabric_client *client)
{
    return client->buffers.count;
}

uint64_t
uc_fabric_client_mismatches(const struct uc_fabric_client *client)
{
    return client->mismatches;
}

bool
uc_fabric_client_is_fused(const struct uc_fabric_client *client)
{
    return client->reads && client->caps.feeds_bytes;
}
