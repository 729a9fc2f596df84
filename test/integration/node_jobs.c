/* SPDX-License-Identifier: Apache-2.0 */

/* Jobs of the test node: put, get, prefetch, wait, memory. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/integration/node.h"
#include "tools/bench/block_content.h"

static struct job *
find_job(struct node *node, uint64_t id, bool in_use)
{
    for (size_t idx = 0; idx < NODE_JOBS_MAX; idx++) {
        struct job *job = &node->jobs[idx];

        if (job->in_use == in_use && (!in_use || job->id == id)) {
            return job;
        }
    }
    return NULL;
}

static void
job_release(struct node *node, struct job *job)
{
    if (job->is_registered) {
        (void)uc_worker_deregister_memory(node->worker, job->region_idx);
    }
    if (job->is_plain) {
        free(job->memory);
    } else {
        uc_memory_free(job->memory, job->memory_bytes);
    }
    *job = (struct job){0};
}

static enum uc_status
job_submit(struct node *node, struct job *job, const struct uc_token *token, uint64_t timeout_ms)
{
    static struct uc_block_payload payloads[NODE_KEYS_MAX];
    static void *pointers[NODE_KEYS_MAX];
    struct uc_io_context io = {.timeout_ms = timeout_ms};

    for (size_t idx = 0; idx < job->count; idx++) {
        pointers[idx] = job->memory + idx * node->block_bytes;
        payloads[idx] = (struct uc_block_payload){
                .pointers = &pointers[idx],
                .sizes = &node->block_bytes,
                .pointer_count = 1,
                .memory_region_indices = job->is_registered ? &job->region_idx : NULL,
                .memory_region_index_count = job->is_registered ? 1 : 0,
        };
        if (job->put) {
            uc_block_content_fill(job->first + idx, pointers[idx], node->block_bytes);
        }
    }
    return job->put ? uc_worker_submit_put(node->worker, job->id, payloads, job->count, token, &io)
                    : uc_worker_submit_get(node->worker, job->id, payloads, job->count, token, &io);
}

/* memory plain|registered: what later jobs use. */
void
node_command_memory(struct node *node, char **words, size_t word_count)
{
    (void)word_count;
    node->is_plain = strcmp(words[1], "plain") == 0;
    node_answer(UC_OK);
}

static enum uc_status
job_get_memory(struct node *node, struct job *job)
{
    void *memory = NULL;
    enum uc_status status;

    job->memory_bytes = job->count * node->block_bytes;
    job->is_plain = node->is_plain;
    if (node->is_plain) {
        job->memory = malloc(job->memory_bytes);
        return job->memory == NULL ? UC_ERR_OUT_OF_MEMORY : UC_OK;
    }

    status = uc_memory_alloc(job->memory_bytes, &memory);
    if (status == UC_OK) {
        job->memory = memory;
        status = uc_worker_register_memory(
                node->worker, memory, job->memory_bytes, UC_MEMORY_HOST, &job->region_idx);
        job->is_registered = status == UC_OK;
    }
    return status;
}

/* put|get JOB FIRST COUNT TOKEN [TIMEOUT_MS]: submit; "wait" collects. */
void
node_command_submit(struct node *node, char **words, size_t word_count)
{
    struct job *job = find_job(node, 0, false);
    struct uc_token *token = NULL;
    enum uc_status status = node_read_token(words[4], &token);

    if (status != UC_OK || job == NULL) {
        node_answer(status == UC_OK ? UC_ERR_RETRY : status);
        uc_token_destroy(token);
        return;
    }
    job->count = node_make_keys(node, words[2], words[3]);
    job->id = node_number(words[1]);
    job->first = node_number(words[2]);
    job->put = strcmp(words[0], "put") == 0;
    status = job_get_memory(node, job);
    if (status == UC_OK) {
        job->in_use = true;
        status = job_submit(node, job, token, word_count > 5 ? node_number(words[5]) : 0);
    }
    if (status != UC_OK) {
        job_release(node, job);
    }
    uc_token_destroy(token);
    node_answer(status);
}

/* prefetch JOB TOKEN: submit; "wait" collects. */
void
node_command_prefetch(struct node *node, char **words, size_t word_count)
{
    struct job *job = find_job(node, 0, false);
    struct uc_token *token = NULL;
    enum uc_status status = node_read_token(words[2], &token);

    (void)word_count;
    if (status == UC_OK && job == NULL) {
        status = UC_ERR_RETRY;
    }
    if (status == UC_OK) {
        status = uc_worker_submit_prefetch(node->worker, node_number(words[1]), token);
    }
    if (status == UC_OK) {
        *job = (struct job){.id = node_number(words[1]), .in_use = true};
    }
    uc_token_destroy(token);
    node_answer(status);
}

/* wait JOB TIMEOUT_MS: "ok STATUS BITS good=N wrong=N": of a get, blocks with right and wrong bytes. A prefetch has
 * neither: its BITS are "-". */
void
node_command_wait(struct node *node, char **words, size_t word_count)
{
    uint64_t id = node_number(words[1]);
    struct job *job = find_job(node, id, true);
    struct uc_io_result result = {0};
    size_t result_count = 0;
    uint64_t good = 0;
    uint64_t wrong = 0;
    enum uc_status status = uc_worker_wait(
            node->worker, &id, 1, (int64_t)strtoll(words[2], NULL, 10), &result, 1, &result_count);

    (void)word_count;
    if (status != UC_OK || result_count == 0 || job == NULL) {
        node_answer(status == UC_OK ? UC_ERR_NOT_FOUND : status);
        return;
    }
    (void)printf("ok %s ", uc_status_name(result.code));
    if (job->count == 0) {
        (void)putchar('-');
    }
    for (size_t idx = 0; idx < job->count; idx++) {
        bool block_ok = uc_io_result_block_ok(&result, idx);
        uint64_t offset;

        (void)putchar(block_ok ? '1' : '0');
        if (block_ok && !job->put) {
            bool same = uc_block_content_check(job->first + idx,
                    job->memory + idx * node->block_bytes, node->block_bytes, &offset);

            good += same;
            wrong += !same;
        }
    }
    (void)printf(" good=%" PRIu64 " wrong=%" PRIu64 "\n", good, wrong);
    uc_io_results_release(&result, 1);
    job_release(node, job);
}
