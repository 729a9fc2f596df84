/* SPDX-License-Identifier: Apache-2.0 */

#include "client/cluster/hello.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    REASON_BYTES = 512,
};

/* For callers that only wait for answers: a lost connection fails the call. */
static const struct uc_rpc_handler silent_handler = {.on_closed = NULL};

static struct uc_rpc_text
text_of(const char *text)
{
    struct uc_rpc_text view = {.bytes = text, .length = strlen(text)};

    return view;
}

/* Put the server's name in front of the thread's error text. */
static enum uc_status
explain(const struct uc_session_config *config, enum uc_status status, const char *advice)
{
    char reason[REASON_BYTES];

    (void)snprintf(reason, sizeof(reason), "%s", uc_last_error());
    return uc_error(status, "server %s: %s%s", config->server->name,
            reason[0] != '\0' ? reason : uc_status_name(status), advice);
}

static enum uc_status
say_hello(const struct uc_session_config *config, struct uc_rpc_connection *connection,
        struct uc_hello_reply *hello_out)
{
    struct uc_hello_request request = {
            .version = UC_PROTOCOL_VERSION,
            .name_space = text_of(config->name_space),
            .access = config->access,
            .credential = text_of(config->credential),
            .client = text_of(config->client),
    };
    struct uc_rpc_buffer params = {.length = 0};
    struct uc_rpc_view result = {.length = 0};
    enum uc_status status;

    uc_hello_request_encode(&params, &request);
    if (params.failed) {
        uc_rpc_buffer_fini(&params);
        return uc_error(UC_ERR_OUT_OF_MEMORY, "no memory for the hello message");
    }

    status = uc_rpc_call_wait(connection, UC_RPC_HELLO, &params, config->rpc_timeout_ms, &result);
    uc_rpc_buffer_fini(&params);
    if (status == UC_OK) {
        status = uc_hello_reply_decode(result, hello_out);
    }
    return status;
}

static enum uc_status
check_hello(const struct uc_session_config *config, const struct uc_hello_reply *hello)
{
    if (hello->lease_ms == 0 || hello->block_bytes == 0 || hello->session == 0) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "server %s: hello answered without lease, block size or session",
                config->server->name);
    }
    if (config->block_bytes != 0 && config->block_bytes != hello->block_bytes) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "block_bytes is %" PRIu64 " here, but namespace \"%s\" of server %s has blocks of "
                "%" PRIu64 " bytes: leave block_bytes out or make both equal",
                config->block_bytes, config->name_space, config->server->name, hello->block_bytes);
    }

    return UC_OK;
}

enum uc_status
uc_hello_connect(const struct uc_session_config *config, const struct uc_rpc_handler *handler,
        void *context, struct uc_rpc_connection **connection_out, struct uc_hello_reply *hello_out)
{
    struct uc_rpc_connection *connection = NULL;
    struct uc_hello_reply hello = {.lease_ms = 0};
    enum uc_status status;
    int fd = -1;

    status = uc_rpc_dial(
            config->server->host, config->server->port, config->connect_timeout_ms, &fd);
    if (status != UC_OK) {
        return explain(config, UC_ERR_UNHEALTHY,
                "; check that ucm-server runs there, the address in `servers`, and firewalls");
    }
    status = uc_rpc_connection_create(fd, handler == NULL ? &silent_handler : handler, context,
            UC_RPC_FRAME_BYTES_DEFAULT, &connection);
    if (status != UC_OK) {
        (void)close(fd);
        return status;
    }

    status = say_hello(config, connection, &hello);
    if (status == UC_ERR_TIMEOUT || status == UC_ERR_UNHEALTHY) {
        status = explain(config, UC_ERR_UNHEALTHY,
                "; the address answers, but not as a ucm-server in time (rpc_timeout)");
    } else if (status != UC_OK) {
        status = explain(config, status, "");
    } else {
        status = check_hello(config, &hello);
    }
    if (status != UC_OK) {
        uc_rpc_connection_destroy(connection);
        return status;
    }

    *connection_out = connection;
    *hello_out = hello;
    return UC_OK;
}
