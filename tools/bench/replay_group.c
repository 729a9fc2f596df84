/* SPDX-License-Identifier: Apache-2.0 */

#include "tools/bench/replay_group.h"

#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ucm/log.h>

/* In a child: keep only the descriptors it needs, so that a dead peer shows as the end of its channel. */
static void
become_child(struct uc_replay_group *group, int unwanted)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (size_t idx = 0; idx < group->node_count; idx++) {
        if (group->nodes[idx].fd >= 0) {
            (void)close(group->nodes[idx].fd);
        }
    }
    if (unwanted >= 0) {
        (void)close(unwanted);
    }
}

static enum uc_status
fork_scheduler(struct uc_replay_group *group, const struct uc_replay_setup *setup, int worker_fd,
        int unwanted_fd)
{
    struct uc_replay_process_pair *node = &group->nodes[setup->node];
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        return uc_log_errno(errno, "replay: socketpair");
    }

    node->scheduler_pid = fork();
    if (node->scheduler_pid == 0) {
        become_child(group, unwanted_fd);
        (void)close(ends[0]);
        exit(uc_replay_scheduler_run(setup, ends[1], worker_fd));
    }
    (void)close(ends[1]);
    if (node->scheduler_pid < 0) {
        (void)close(ends[0]);
        return uc_log_errno(errno, "replay: fork");
    }

    node->fd = ends[0];
    return UC_OK;
}

static enum uc_status
fork_node(struct uc_replay_group *group, const struct uc_replay_setup *setup)
{
    struct uc_replay_process_pair *node = &group->nodes[setup->node];
    enum uc_status status;
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        return uc_log_errno(errno, "replay: socketpair");
    }

    node->worker_pid = fork();
    if (node->worker_pid == 0) {
        become_child(group, ends[0]);
        exit(uc_replay_worker_run(setup, ends[1]));
    }
    status = node->worker_pid < 0 ? uc_log_errno(errno, "replay: fork")
                                  : fork_scheduler(group, setup, ends[0], ends[1]);
    (void)close(ends[0]);
    (void)close(ends[1]);
    return status;
}

static void
bury(struct uc_replay_group *group, size_t idx)
{
    struct uc_replay_process_pair *node = &group->nodes[idx];

    if (node->alive) {
        node->alive = false;
        group->dead_count++;
        uc_log_warn("replay: node %zu is dead; %zu of %zu go on", idx,
                group->node_count - group->dead_count, group->node_count);
    }
}

/* Both processes of a node have to say that they are assembled. */
static enum uc_status
await_ready(struct uc_replay_group *group)
{
    enum uc_status first_failure = UC_OK;

    for (size_t idx = 0; idx < group->node_count; idx++) {
        enum uc_status status = uc_channel_receive(group->nodes[idx].fd, &group->in);

        if (status == UC_OK) {
            status = (enum uc_status)uc_message_get_u64(&group->in);
        }
        group->nodes[idx].alive = status == UC_OK;
        if (status != UC_OK && first_failure == UC_OK) {
            first_failure = uc_error(status, "node %zu could not be set up, see above", idx);
        }
    }
    return first_failure;
}

enum uc_status
uc_replay_group_start(struct uc_replay_group *group, const struct uc_replay_group_setup *given)
{
    enum uc_status status = UC_OK;

    *group = (struct uc_replay_group){.node_count = given->node_count};
    group->nodes = calloc(given->node_count, sizeof(group->nodes[0]));
    if (group->nodes == NULL) {
        return UC_ERR_OUT_OF_MEMORY;
    }
    for (size_t idx = 0; idx < given->node_count; idx++) {
        group->nodes[idx].fd = -1;
    }

    for (size_t idx = 0; idx < given->node_count && status == UC_OK; idx++) {
        struct uc_replay_setup setup = {.topology = given->topologies[idx],
                .where = given->where,
                .block_bytes = given->block_bytes,
                .node = idx};

        status = fork_node(group, &setup);
    }
    return status == UC_OK ? await_ready(group) : status;
}

enum uc_status
uc_replay_group_write_pids(const struct uc_replay_group *group, const char *path)
{
    char temporary[4096];
    json_t *nodes = json_array();
    struct stat found;
    json_t *object;
    int failed;

    if (lstat(path, &found) == 0 && !S_ISREG(found.st_mode)) {
        json_decref(nodes);
        return uc_error(UC_ERR_INVALID_PARAM, "%s is there and is no regular file", path);
    }
    for (size_t idx = 0; idx < group->node_count; idx++) {
        (void)json_array_append_new(
                nodes, json_pack("{s:i, s:i}", "scheduler", (int)group->nodes[idx].scheduler_pid,
                               "worker", (int)group->nodes[idx].worker_pid));
    }
    object = json_pack("{s:o}", "nodes", nodes);
    (void)snprintf(temporary, sizeof(temporary), "%s.part", path);
    failed = json_dump_file(object, temporary, 0);
    json_decref(object);
    if (failed != 0 || rename(temporary, path) != 0) {
        return uc_error(UC_ERR_OS_API, "cannot write %s: %s", path, strerror(errno));
    }

    return UC_OK;
}

/* @return the next living node in turn, or node_count if none lives. */
static size_t
next_node(struct uc_replay_group *group)
{
    for (size_t tries = 0; tries < group->node_count; tries++) {
        size_t idx = group->next;

        group->next = (group->next + 1) % group->node_count;
        if (group->nodes[idx].alive) {
            return idx;
        }
    }
    return group->node_count;
}

enum uc_status
uc_replay_group_serve(struct uc_replay_group *group, const struct uc_replay_request *request,
        size_t *node_out, struct uc_replay_outcome *outcome_out, const uint8_t **present_out)
{
    size_t idx = next_node(group);

    if (idx == group->node_count) {
        return uc_error(UC_ERR_UNHEALTHY, "all nodes are dead");
    }

    uc_message_begin(&group->out, UC_REPLAY_REQUEST);
    uc_message_put_u64(&group->out, request->sequence);
    uc_message_put_u64(&group->out, request->ttl_ms);
    uc_message_put_u64(&group->out, request->count);
    uc_message_put(&group->out, request->hash_ids, request->count * sizeof(request->hash_ids[0]));
    if (uc_channel_send(group->nodes[idx].fd, &group->out) != UC_OK ||
            uc_channel_receive(group->nodes[idx].fd, &group->in) != UC_OK) {
        bury(group, idx);
        return UC_ERR_UNHEALTHY;
    }

    memcpy(outcome_out, uc_message_get(&group->in, sizeof(*outcome_out)), sizeof(*outcome_out));
    *present_out = uc_message_get(&group->in, request->count);
    *node_out = idx;
    if (outcome_out->worker_died != 0) {
        bury(group, idx);
    }
    return UC_OK;
}

void
uc_replay_group_tiers(struct uc_replay_group *group, struct uc_replay_tiers *tiers_out)
{
    tiers_out->count = 0;
    for (size_t idx = 0; idx < group->node_count; idx++) {
        if (!group->nodes[idx].alive) {
            continue;
        }
        uc_message_begin(&group->out, UC_REPLAY_DESCRIBE);
        if (uc_channel_send(group->nodes[idx].fd, &group->out) != UC_OK ||
                uc_channel_receive(group->nodes[idx].fd, &group->in) != UC_OK) {
            bury(group, idx);
            continue;
        }
        uc_replay_tiers_add(tiers_out, uc_message_get(&group->in, sizeof(*tiers_out)));
    }
}

static void
collect_latencies(struct uc_replay_group *group, size_t idx, struct uc_latency *latencies)
{
    uc_message_begin(&group->out, UC_REPLAY_FINISH);
    if (uc_channel_send(group->nodes[idx].fd, &group->out) != UC_OK ||
            uc_channel_receive(group->nodes[idx].fd, &group->in) != UC_OK) {
        bury(group, idx);
        return;
    }

    for (size_t op = 0; op < UC_REPLAY_OP_COUNT; op++) {
        uint64_t count = uc_message_get_u64(&group->in);

        while (count-- > 0) {
            uc_latency_add(&latencies[op], uc_message_get_u64(&group->in));
        }
    }
}

void
uc_replay_group_finish(
        struct uc_replay_group *group, struct uc_latency latencies[UC_REPLAY_OP_COUNT])
{
    for (size_t idx = 0; idx < group->node_count; idx++) {
        struct uc_replay_process_pair *node = &group->nodes[idx];

        if (node->alive) {
            collect_latencies(group, idx, latencies);
        }
        if (node->fd >= 0) {
            (void)close(node->fd); /* whoever still lives sees the end and leaves */
        }
        if (node->scheduler_pid > 0) {
            (void)waitpid(node->scheduler_pid, NULL, 0);
        }
        if (node->worker_pid > 0) {
            (void)waitpid(node->worker_pid, NULL, 0);
        }
    }
    free(group->nodes);
    uc_message_fini(&group->in);
    uc_message_fini(&group->out);
    *group = (struct uc_replay_group){0};
}
