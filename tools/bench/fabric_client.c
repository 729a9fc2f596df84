/* SPDX-License-Identifier: Apache-2.0 */

#include "tools/bench/fabric_client.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/bench/fabric_lane.h"

enum {
    CONNECT_MS = 10000
};

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
        struct uc_fabric_lane *lane = &client->lanes[idx];

        for (uint64_t piece = 0; piece <= client->buffers.pieces; piece++) {
            lane->pieces[piece].region = client->region;
        }
        lane->footer_piece.region = client->region;
    }

    while (!client->answered) {
        if (client->ops->poll(client->fabric, UC_FABRIC_CLIENT_POLL_BUDGET) == 0) {
            (void)uc_fabric_client_sleep(client);
        }
    }
    return client->state;
}

/* Pieces that never change but for their address. */
static enum uc_status
make_lane(struct uc_fabric_client *client, uint64_t idx)
{
    struct uc_fabric_lane *lane = &client->lanes[idx];
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
            .on_done = uc_fabric_lane_data_done};
    lane->footer_op = (struct uc_fabric_op){.opcode = UC_FABRIC_WRITE,
            .pieces = &lane->footer_piece,
            .piece_count = 1,
            .on_done = uc_fabric_lane_footer_done};
    lane->flush =
            (struct uc_fabric_op){.opcode = UC_FABRIC_FLUSH, .on_done = uc_fabric_lane_flush_done};
    return UC_OK;
}

static enum uc_status
make_lanes(struct uc_fabric_client *client)
{
    uint64_t depth = client->options->depth;
    enum uc_status status = UC_OK;

    client->lanes =
            aligned_alloc(_Alignof(struct uc_fabric_lane), depth * sizeof(client->lanes[0]));
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
