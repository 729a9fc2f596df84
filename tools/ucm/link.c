/* SPDX-License-Identifier: Apache-2.0 */

#include "tools/ucm/link.h"

#include <ucm/log.h>

#include "tools/common/target.h"

static struct uc_target
target_of(const struct uc_cli_options *options)
{
    return (struct uc_target){
            .server = options->server,
            .name_space = options->name_space,
            .credential = options->credential,
            .fabric = options->fabric,
            .client = "ucm",
    };
}

static enum uc_status
make_topology(const struct uc_cli_options *options, struct uc_dict **topology_out)
{
    struct uc_target target = target_of(options);
    struct uc_dict *config = NULL;
    enum uc_status status = uc_dict_create(&config);

    if (status == UC_OK) {
        status = uc_dict_set_int(config, "timeout_ms", (int64_t)options->timeout_ms);
    }
    if (status == UC_OK) {
        status = uc_target_topology(&target, config, topology_out);
    }
    uc_dict_destroy(config);
    return status;
}

enum uc_status
uc_link_open(struct uc_link *link, const struct uc_cli_options *options)
{
    struct uc_request_context context = uc_request_context_init(UC_LINK_REQUEST);
    struct uc_target target = target_of(options);
    struct uc_session_config config;
    struct uc_server_address address;
    struct uc_hello_reply hello;
    struct uc_dict *topology;
    enum uc_status status = uc_target_session(&target, options->timeout_ms, &address, &config);

    if (status == UC_OK) {
        status = uc_session_probe(&config, &hello);
    }
    if (status == UC_OK) {
        status = make_topology(options, &topology);
    }
    if (status != UC_OK) {
        return status;
    }

    link->block_bytes = hello.block_bytes;
    status = uc_assembler_create(topology, NULL, &link->assembler);
    uc_dict_destroy(topology);
    if (status == UC_OK) {
        status = uc_assembler_scheduler(link->assembler, &link->scheduler);
    }
    if (status == UC_OK) {
        status = uc_assembler_worker(link->assembler, &link->worker);
    }
    if (status == UC_OK) {
        status = uc_scheduler_on_new_request(link->scheduler, &context);
    }
    return status;
}

void
uc_link_close(struct uc_link *link)
{
    if (link->scheduler != NULL) {
        (void)uc_scheduler_on_request_finished(link->scheduler, UC_LINK_REQUEST);
    }
    uc_assembler_destroy(link->assembler);
    *link = (struct uc_link){0};
}

enum uc_status
uc_link_move(
        struct uc_link *link, bool put, const struct uc_token *token, void *memory, uint64_t length)
{
    void *pointers[1] = {memory};
    uint32_t region_idx = UC_MEMORY_REGION_NONE;
    struct uc_block_payload payload = {
            .pointers = pointers,
            .sizes = &length,
            .pointer_count = 1,
            .memory_region_indices = &region_idx,
            .memory_region_index_count = 1,
    };
    struct uc_io_result result = {0};
    const uint64_t job_id = 1;
    size_t count = 0;
    enum uc_status status =
            uc_worker_register_memory(link->worker, memory, length, UC_MEMORY_HOST, &region_idx);

    if (status != UC_OK) {
        return status;
    }
    status = put ? uc_worker_submit_put(link->worker, job_id, &payload, 1, token, NULL)
                 : uc_worker_submit_get(link->worker, job_id, &payload, 1, token, NULL);
    if (status == UC_OK) {
        status = uc_worker_wait(link->worker, &job_id, 1, -1, &result, 1, &count);
    }
    if (status == UC_OK) {
        status = result.code;
        if (status != UC_OK) {
            (void)uc_error(status, "the transfer failed; the log line above says why");
        }
    }
    uc_io_results_release(&result, count);
    (void)uc_worker_deregister_memory(link->worker, region_idx);
    return status;
}

enum uc_status
uc_link_stat(const struct uc_cli_options *options, struct uc_stat_reply *stat_out)
{
    struct uc_target target = target_of(options);

    return uc_target_stat(&target, options->timeout_ms, stat_out);
}
