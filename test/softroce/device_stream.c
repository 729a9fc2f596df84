/* SPDX-License-Identifier: Apache-2.0 */

#include <inttypes.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/softroce/device_sides.h"

enum {
    STREAM_DEPTH = 16,
};

static struct job stream_jobs[STREAM_DEPTH];
static struct uc_fabric_endpoint *stream_endpoint;
static bool stream_ended;

static void
stream_post(struct job *job)
{
    static uint64_t offset;

    job->op.offset_bytes = offset;
    offset = (offset + BLOCK_BYTES) % REGION_BYTES;
    if (verbs->post(stream_endpoint, &job->op) != UC_OK) {
        stream_ended = true;
    }
}

static void
on_stream_job(struct uc_fabric_op *op, enum uc_status status)
{
    if (status == UC_OK && !stream_ended) {
        stream_post((struct job *)(void *)op);
    } else {
        stream_ended = true;
    }
}

static void
on_stream_state(void *context, struct uc_fabric_endpoint *endpoint, enum uc_status status)
{
    (void)context;
    (void)endpoint;
    if (status != UC_OK) {
        stream_ended = true;
    }
}

/* Arguments: port, then address and key of the region. */
int
stream(char **arguments)
{
    struct side side;
    struct uc_fabric_region_key key = {
            .address = strtoull(arguments[1], NULL, 10),
            .key = strtoull(arguments[2], NULL, 10),
            .length_bytes = REGION_BYTES,
    };
    struct uc_fabric_connect connect = {
            .address = server_address,
            .port = (uint16_t)strtoul(arguments[0], NULL, 10),
            .nonce = (const uint8_t *)nonce_text,
            .regions = &key,
            .region_count = 1,
            .timeout_ms = WAIT_MS,
            .on_state = on_stream_state,
    };

    if (side_open(&side, connect.port, UINT32_MAX) != UC_OK ||
            verbs->connect(side.domain, &connect, &stream_endpoint) != UC_OK) {
        (void)fprintf(stderr, "stream: %s\n", uc_last_error());
        return 1;
    }
    memset(side.memory, PATTERN_PEER, REGION_BYTES);
    for (size_t idx = 0; idx < STREAM_DEPTH; idx++) {
        struct job *job = &stream_jobs[idx];

        job->piece = (struct uc_fabric_piece){side.memory, BLOCK_BYTES, side.region};
        job->op = (struct uc_fabric_op){.opcode = UC_FABRIC_WRITE,
                .pieces = &job->piece,
                .piece_count = 1,
                .on_done = on_stream_job};
        stream_post(job);
    }
    while (!stream_ended) {
        (void)verbs->poll(side.fabric, 64);
    }
    verbs->disconnect(stream_endpoint);
    side_close(&side);
    return EXIT_FLUSHED;
}

pid_t
spawn_stream(void)
{
    char *arguments[] = {NULL, NULL, NULL, NULL, NULL, NULL};
    char texts[3][32];
    char name[] = "stream";
    char *path = strdup(program);
    pid_t pid = 0;

    (void)snprintf(texts[0], sizeof(texts[0]), "%u", verbs->listener_port(target.listener));
    (void)snprintf(texts[1], sizeof(texts[1]), "%" PRIu64, target.side.key.address);
    (void)snprintf(texts[2], sizeof(texts[2]), "%" PRIu64, target.side.key.key);
    arguments[0] = path;
    arguments[1] = name;
    for (size_t idx = 0; idx < 3; idx++) {
        arguments[2 + idx] = texts[idx];
    }
    ck_assert_int_eq(posix_spawn(&pid, program, NULL, NULL, arguments, environ), 0);
    free(path);
    return pid;
}

int
reap(pid_t pid)
{
    int status = 0;
    uint64_t end_ms = now_ms() + WAIT_MS;

    while (waitpid(pid, &status, WNOHANG) == 0) {
        poll_both();
        ck_assert_msg(now_ms() < end_ms, "the peer does not end");
    }
    return status;
}
