/* SPDX-License-Identifier: Apache-2.0 */

/* A server that waits for a client from elsewhere. */

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include <ucm/log.h>

#include "net/rpc/connection.h"
#include "tools/bench/fabric_bench.h"
#include "tools/bench/fabric_server.h"
#include "tools/bench/fabric_streams.h"

enum {
    HOST_BYTES = 256
};

enum uc_status
uc_fabric_bench_serve(const struct uc_fabric_bench_options *options)
{
    struct uc_fabric_bench_server_config config = {.device = options->device};
    char host[HOST_BYTES];
    uint16_t wanted_port = 0;
    uint16_t port = 0;
    int listener_fd = -1;
    int control_fd;
    enum uc_status status =
            uc_rpc_parse_address(options->serve, 0, host, sizeof(host), &wanted_port);

    if (status == UC_OK) {
        status = uc_fabric_streams_listen(host, wanted_port, &listener_fd, &port);
    }
    if (status != UC_OK) {
        return status;
    }

    (void)fprintf(stderr, "ucm-bench fabric: serves one client at %s:%u\n", host, port);
    control_fd = accept4(listener_fd, NULL, NULL, SOCK_CLOEXEC);
    (void)close(listener_fd);
    if (control_fd < 0) {
        return uc_log_errno(errno, "fabric: accept");
    }
    config.address = host;
    config.memory_max_bytes = options->working_set_bytes == 0
                                      ? 4 * uc_fabric_bench_working_set_bytes()
                                      : 2 * options->working_set_bytes;
    status = uc_fabric_bench_server_run(&config, control_fd);
    (void)close(control_fd);
    return status;
}
