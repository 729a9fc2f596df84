/* SPDX-License-Identifier: Apache-2.0 */

#include "client/cluster/server_stat.h"

#include "client/cluster/hello.h"
#include "net/rpc/connection.h"

enum uc_status
uc_server_stat(const struct uc_session_config *config, struct uc_stat_reply *stat_out)
{
    struct uc_rpc_connection *connection;
    struct uc_rpc_buffer params = {0};
    struct uc_rpc_view result;
    struct uc_hello_reply hello;
    enum uc_status status = uc_hello_connect(config, NULL, NULL, &connection, &hello);

    if (status != UC_OK) {
        return status;
    }

    uc_empty_request_encode(&params);
    status = params.failed ? UC_ERR_OUT_OF_MEMORY
                           : uc_rpc_call_wait(connection, UC_RPC_STAT, &params,
                                     config->rpc_timeout_ms, &result);
    if (status == UC_OK) {
        status = uc_stat_reply_decode(result, stat_out);
    }
    uc_rpc_buffer_fini(&params);
    uc_rpc_connection_destroy(connection);
    return status;
}
