/* SPDX-License-Identifier: Apache-2.0 */

#include "tools/bench/fabric_lane.h"

#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <sys/resource.h>

#include <ucm/clock.h>

#include "tools/bench/block_content.h"

enum {
    SPIN_NS = 20000, /* as the remote store does on verbs */
    SLEEP_MS = 1000,
    STALLED_MS = 60000,
};

static void issue(struct uc_fabric_client *client, struct uc_fabric_lane *lane, uint64_t now_ns);

static bool
footer_is_right(struct uc_fabric_lane *lane)
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
finish(struct uc_fabric_lane *lane)
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
        issue(client, lane, now_ns);
    }
}

static void
on_part_done(struct uc_fabric_lane *lane, enum uc_status status)
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

void
uc_fabric_lane_data_done(struct uc_fabric_op *op, enum uc_status status)
{
    on_part_done((struct uc_fabric_lane *)(void *)((uint8_t *)op -
                                                   offsetof(struct uc_fabric_lane, data)),
            status);
}

void
uc_fabric_lane_footer_done(struct uc_fabric_op *op, enum uc_status status)
{
    on_part_done((struct uc_fabric_lane *)(void *)((uint8_t *)op -
                                                   offsetof(struct uc_fabric_lane, footer_op)),
            status);
}

void
uc_fabric_lane_flush_done(struct uc_fabric_op *op, enum uc_status status)
{
    on_part_done((struct uc_fabric_lane *)(void *)((uint8_t *)op -
                                                   offsetof(struct uc_fabric_lane, flush)),
            status);
}

static void
on_bytes(struct uc_fabric_op *op, const void *bytes, size_t length_bytes)
{
    struct uc_fabric_lane *lane =
            (struct uc_fabric_lane *)(void *)((uint8_t *)op -
                                              offsetof(struct uc_fabric_lane, data));
    uint64_t count = length_bytes < lane->unsummed_bytes ? length_bytes : lane->unsummed_bytes;

    uc_checksum_stream_add(&lane->checksum, bytes, (size_t)count); /* not the footer */
    lane->unsummed_bytes -= count;
}

/* Point a lane at the next block: slot and buffer. */
static void
aim(struct uc_fabric_client *client, struct uc_fabric_lane *lane)
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
post(struct uc_fabric_client *client, struct uc_fabric_lane *lane, struct uc_fabric_op *list,
        unsigned count)
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
post_footer(struct uc_fabric_client *client, struct uc_fabric_lane *lane)
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

/* One reading of the clock serves the end of a block and the start of the next: it may be a system call. */
static void
issue(struct uc_fabric_client *client, struct uc_fabric_lane *lane, uint64_t now_ns)
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
    lane->start_ns = now_ns;
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
bool
uc_fabric_client_sleep(struct uc_fabric_client *client)
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

    if (client->ops->poll(client->fabric, UC_FABRIC_CLIENT_POLL_BUDGET) > 0) {
        return;
    }
    if (client->spins) {
        start_ns = uc_clock_now_ns();
        do {
            if (client->ops->poll(client->fabric, UC_FABRIC_CLIENT_POLL_BUDGET) > 0) {
                return;
            }
        } while (uc_clock_now_ns() - start_ns < SPIN_NS);
    }
    (void)uc_fabric_client_sleep(client);
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
        issue(client, &client->lanes[idx], uc_clock_now_ns());
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
