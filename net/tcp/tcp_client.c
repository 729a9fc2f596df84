/* SPDX-License-Identifier: Apache-2.0 */

#include "net/tcp/tcp_client.h"

#include <stdlib.h>
#include <string.h>

static void
lanes_init(struct uc_tcp_client *client, uint8_t *rx)
{
    for (uint32_t idx = 0; idx < client->lane_count; idx++) {
        struct uc_tcp_lane *lane = &client->lanes[idx];

        uc_source_init(&lane->stream.source.base, &client->base.fabric->turns, &uc_tcp_lane_ops);
        lane->stream.rx = rx + (size_t)idx * UC_TCP_RX_BYTES;
        lane->client = client;
        lane->state = UC_TCP_CONNECTING;
    }
}

static struct uc_tcp_client *
client_create(struct uc_fabric_domain *domain, const struct uc_fabric_connect *params)
{
    struct uc_fabric *fabric = domain->fabric;
    struct uc_tcp_client *client = NULL;
    size_t key_bytes = sizeof(struct uc_fabric_region_key);
    uint8_t *rx;

    if (params->region_count <= UC_REGION_LIMIT) {
        client = calloc(1, sizeof(*client) + params->region_count * key_bytes);
    }
    if (client == NULL) {
        return NULL;
    }
    rx = malloc((size_t)fabric->lane_count * UC_TCP_RX_BYTES);
    if (rx == NULL) {
        free(client);
        return NULL;
    }

    client->base = (struct uc_fabric_endpoint){
            .mortal = {.memory = rx},
            .fabric = fabric,
            .domain = domain,
            .is_initiator = true,
            .state = UC_TCP_CONNECTING,
    };
    client->lane_count = fabric->lane_count;
    lanes_init(client, rx);
    client->on_state = params->on_state;
    client->context = params->context;
    client->regions = (struct uc_fabric_region_key *)(client + 1);
    client->region_count = params->region_count;
    if (params->region_count > 0) {
        memcpy(client->regions, params->regions, params->region_count * key_bytes);
    }
    memcpy(client->nonce, params->nonce, sizeof(client->nonce));
    return client;
}

enum uc_status
uc_tcp_connect(struct uc_fabric_domain *domain, const struct uc_fabric_connect *params,
        struct uc_fabric_endpoint **endpoint_out)
{
    struct uc_fabric *fabric = domain->fabric;
    struct uc_tcp_client *client;
    struct uc_source *source;
    enum uc_status status;

    if (params->address == NULL || params->nonce == NULL || params->port == 0 ||
            params->on_state == NULL || (params->regions == NULL && params->region_count > 0)) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "tcp: connect needs an address, a port, a nonce, regions and a state callback");
    }

    client = client_create(domain, params);
    if (client == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY,
                "tcp: no memory for a connection with %zu regions; free some",
                params->region_count);
    }

    status = uc_tcp_fabric_resolve(
            fabric, params->address, params->port, client->addresses, &client->address_count);
    if (status != UC_OK) {
        free(client->base.mortal.memory);
        free(client);
        return status;
    }

    /* A failure that is known at once is told by the first turn, like every other. */
    source = &client->lanes[0].stream.source.base;
    client->early_status = uc_tcp_lane_dial(&client->lanes[0]);
    if (client->early_status != UC_OK) {
        uc_source_wake(source);
    }
    uc_source_expire_in(source, params->timeout_ms);
    domain->endpoint_count++;
    fabric->endpoint_count++;
    *endpoint_out = &client->base;
    return UC_OK;
}

void
uc_tcp_client_close(struct uc_tcp_client *client)
{
    struct uc_fabric_op *op = client->first;

    client->base.state = UC_TCP_CLOSED;
    for (uint32_t idx = 0; idx < client->lane_count; idx++) {
        struct uc_tcp_lane *lane = &client->lanes[idx];

        lane->state = UC_TCP_CLOSED;
        uc_tcp_source_close(&lane->stream.source, true);
        lane->first = NULL;
        lane->last = NULL;
        lane->unsent = NULL;
        lane->rx_left_bytes = 0;
    }
    client->first = NULL;
    client->last = NULL;
    while (op != NULL) {
        struct uc_fabric_op *next = op->next;

        op->on_done(op, UC_ERR_UNHEALTHY);
        op = next;
    }
}

void
uc_tcp_client_fail(struct uc_tcp_client *client, enum uc_status status)
{
    uc_tcp_client_close(client);
    client->on_state(client->context, &client->base, status);
}
