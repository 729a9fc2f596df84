/* SPDX-License-Identifier: Apache-2.0 */

/* The operations tables of the remote store; what they do is in control.c and data_plane.c. */

#include "client/stores/remote/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ucm/log.h>
#include <ucm/store.h>

#include "client/cluster/server_set.h"
#include "client/stores/remote/config.h"
#include "client/stores/remote/control.h"
#include "client/stores/remote/data_plane.h"
#include "client/stores/remote/describe.h"

struct uc_remote_store {
    struct uc_store base;
    struct uc_remote_config config;
    struct uc_control *control;  /* NULL in a worker */
    struct uc_data_plane *plane; /* NULL in a scheduler */
    struct uc_hello_reply probe; /* of the first server that answered at setup */
    bool setup_called;
};

static struct uc_remote_store *
store_of(struct uc_store *base)
{
    return (struct uc_remote_store *)(void *)base;
}

static enum uc_status
check_ready(const struct uc_remote_store *store)
{
    if (store->control == NULL && store->plane == NULL) {
        return uc_error(UC_ERR_INVALID_PARAM, "remote store: setup has not succeeded");
    }

    return UC_OK;
}

/* with one server that can be used the store works; the blocks of the others are misses. */
static bool
is_healthy(const struct uc_remote_store *store)
{
    return (store->control == NULL || uc_control_is_usable(store->control)) &&
           (store->plane == NULL || uc_data_plane_is_healthy(store->plane));
}

static enum uc_status
check_control(const struct uc_remote_store *store, const char *what)
{
    enum uc_status status = check_ready(store);

    if (status == UC_OK && store->control == NULL) {
        status = uc_error(
                UC_ERR_UNSUPPORTED, "remote store: %s: a worker has no control side", what);
    }
    return status;
}

/* @return whether a server can be used, as far as the sides of this store know */
static bool
reaches(const void *context, size_t server)
{
    const struct uc_remote_store *store = context;

    return (store->control == NULL || uc_control_reaches(store->control, server)) &&
           (store->plane == NULL || !uc_data_plane_is_down(store->plane, server));
}

/* Name the servers that are out of reach, as far as the text goes. */
static enum uc_status
unhealthy(const struct uc_remote_store *store, const char *what)
{
    const struct uc_server_list *servers = &store->config.servers;
    char names[512] = "";
    size_t length = 0;

    for (size_t idx = 0; idx < servers->count; idx++) {
        const char *name = servers->servers[idx].name;

        if (reaches(store, idx)) {
            continue;
        }
        if (length + strlen(name) + sizeof(", ...") > sizeof(names)) {
            (void)snprintf(names + length, sizeof(names) - length, ", ...");
            break;
        }
        length += (size_t)snprintf(
                names + length, sizeof(names) - length, "%s%s", length == 0 ? "" : ", ", name);
    }
    return uc_error(UC_ERR_UNHEALTHY,
            "remote store: %s: no server is in reach (%s); reconnecting in the background", what,
            names);
}

static enum uc_status
check_healthy_control(const struct uc_remote_store *store, const char *what)
{
    enum uc_status status = check_control(store, what);

    if (status == UC_OK && !is_healthy(store)) {
        status = unhealthy(store, what);
    }
    return status;
}

static enum uc_status
check_data(const struct uc_remote_store *store, const char *what)
{
    enum uc_status status = check_ready(store);

    if (status == UC_OK && store->plane == NULL) {
        status = uc_error(
                UC_ERR_UNSUPPORTED, "remote store: %s: a scheduler moves no bytes (R-14.18)", what);
    }
    return status;
}

/* A worker has no session, but a wrong configuration shall show now, not with the first job. */
static enum uc_status
probe(struct uc_remote_store *store)
{
    struct uc_session_config session_config = uc_control_session_config(&store->config);
    struct uc_server_set set;
    enum uc_status status =
            uc_server_set_open(&store->config.servers, &session_config, &set, &store->probe);

    if (status == UC_OK) {
        uc_server_set_close(&set);
    }
    return status;
}

static enum uc_status
start_sides(struct uc_remote_store *store)
{
    enum uc_status status =
            store->config.role == UC_ROLE_WORKER
                    ? probe(store)
                    : uc_control_create(&store->config, &store->control, &store->probe);

    if (status != UC_OK || store->config.role == UC_ROLE_SCHEDULER) {
        return status;
    }

    status = uc_data_plane_create(&store->config, store->probe.block_bytes, &store->plane);
    if (status != UC_OK) {
        uc_control_destroy(store->control);
        store->control = NULL;
    }
    return status;
}

static enum uc_status
remote_setup(struct uc_store *base, const struct uc_dict *dict)
{
    struct uc_remote_store *store = store_of(base);
    enum uc_status status;

    if (store->setup_called) {
        return uc_error(UC_ERR_INVALID_PARAM, "remote store: setup is called once only");
    }
    store->setup_called = true;
    status = uc_remote_config_read(dict, &store->config);
    if (status != UC_OK) {
        return status;
    }

    return start_sides(store);
}

static enum uc_status
remote_lookup(struct uc_store *base, const struct uc_block_id *ids, size_t count, uint8_t *hits_out)
{
    struct uc_remote_store *store = store_of(base);
    enum uc_status status = check_control(store, "lookup");

    if (status != UC_OK || count == 0) {
        return status;
    }
    if (!is_healthy(store)) {
        memset(hits_out, 0, count); /* */
        return UC_OK;
    }

    return uc_control_lookup(store->control, ids, count, hits_out);
}

static enum uc_status
remote_touch(struct uc_store *base, const struct uc_block_id *ids, size_t count,
        const struct uc_request_context *context)
{
    struct uc_remote_store *store = store_of(base);

    if (store->control != NULL && count > 0) {
        uc_control_touch(store->control, ids, count, context);
    }
    return UC_OK;
}

static enum uc_status
remote_load(struct uc_store *base, uint64_t job_id, const struct uc_job_descriptor *job)
{
    (void)job;
    (void)base;
    return uc_error(UC_ERR_UNSUPPORTED,
            "remote store: load %llu: blocks are loaded with the token of a pin",
            (unsigned long long)job_id);
}

static enum uc_status
remote_dump(struct uc_store *base, uint64_t job_id, const struct uc_job_descriptor *job)
{
    (void)job;
    (void)base;
    return uc_error(UC_ERR_UNSUPPORTED,
            "remote store: dump %llu: blocks are dumped with the token of an alloc",
            (unsigned long long)job_id);
}

static enum uc_status
remote_get_finished(
        struct uc_store *base, struct uc_io_result *results, size_t capacity, size_t *count_out)
{
    struct uc_remote_store *store = store_of(base);

    if (store->plane == NULL) {
        *count_out = 0;
        return UC_OK;
    }

    return uc_completion_queue_get_finished(
            uc_data_plane_queue(store->plane), results, capacity, count_out);
}

static enum uc_status
remote_wait(struct uc_store *base, const uint64_t *job_ids, size_t job_count, int64_t timeout_ms,
        struct uc_io_result *results, size_t capacity, size_t *count_out)
{
    struct uc_remote_store *store = store_of(base);

    if (store->plane == NULL) {
        *count_out = 0; /* no job was ever accepted */
        return UC_OK;
    }

    return uc_completion_queue_wait(uc_data_plane_queue(store->plane), job_ids, job_count,
            timeout_ms, results, capacity, count_out);
}

static enum uc_status
remote_register_memory(struct uc_store *base, uint32_t region_idx, void *address,
        uint64_t length_bytes, enum uc_memory_kind kind)
{
    struct uc_remote_store *store = store_of(base);
    enum uc_status status = check_data(store, "register_memory");

    if (status != UC_OK) {
        return status;
    }

    /* Also without a server: the transports of this process know the memory, not the server. */
    return uc_data_plane_register(store->plane, region_idx, address, length_bytes, kind);
}

static enum uc_status
remote_deregister_memory(struct uc_store *base, uint32_t region_idx)
{
    struct uc_remote_store *store = store_of(base);
    enum uc_status status = check_data(store, "deregister_memory");

    return status != UC_OK ? status : uc_data_plane_deregister(store->plane, region_idx);
}

static enum uc_status
remote_health(struct uc_store *base)
{
    struct uc_remote_store *store = store_of(base);
    enum uc_status status = check_ready(store);

    if (status == UC_OK && !is_healthy(store)) {
        status = unhealthy(store, "health");
    }
    return status;
}

/* Sessions are counted; id and incarnation are of the first server that stands. */
static void
describe_sessions(const struct uc_remote_store *store, struct uc_remote_facts *facts)
{
    for (size_t idx = 0; idx < store->config.servers.count; idx++) {
        struct uc_session_info info;

        uc_control_info(store->control, idx, &info);
        facts->session_count += info.epoch;
        if (info.epoch > 0 && !facts->connected) {
            facts->hello = info.hello;
        }
        facts->connected = facts->connected || info.connected;
    }
}

static enum uc_status
remote_describe(struct uc_store *base, struct uc_dict *description)
{
    struct uc_remote_store *store = store_of(base);
    struct uc_remote_facts facts = {
            .config = &store->config,
            .hello = store->probe,
            .reaches = reaches,
            .reaches_context = store,
            .healthy = is_healthy(store),
    };

    if (check_ready(store) != UC_OK) {
        facts.healthy = false;
    }
    if (store->control != NULL) {
        describe_sessions(store, &facts);
    }
    if (store->plane != NULL) {
        facts.fabric = uc_data_plane_fabric(store->plane);
        uc_data_plane_counters(store->plane, &facts.counters);
    }
    return uc_remote_describe(&facts, description);
}

static int
remote_event_fd(struct uc_store *base)
{
    struct uc_remote_store *store = store_of(base);

    return store->plane == NULL ? -1 : uc_data_plane_event_fd(store->plane);
}

static enum uc_status
remote_pin(struct uc_store *base, const struct uc_block_id *ids, size_t count,
        struct uc_token **token_out)
{
    struct uc_remote_store *store = store_of(base);
    enum uc_status status = check_healthy_control(store, "pin");

    return status != UC_OK ? status : uc_control_pin(store->control, ids, count, token_out);
}

static void
remote_unpin(struct uc_store *base, const struct uc_token *token)
{
    struct uc_remote_store *store = store_of(base);

    if (store->control != NULL && token != NULL) {
        uc_control_unpin(store->control, token);
    }
}

static enum uc_status
remote_alloc(struct uc_store *base, const struct uc_block_id *ids, size_t count,
        const struct uc_request_context *context, struct uc_token **token_out)
{
    struct uc_remote_store *store = store_of(base);
    enum uc_status status = check_healthy_control(store, "alloc");

    return status != UC_OK ? status
                           : uc_control_alloc(store->control, ids, count, context, token_out);
}

static enum uc_status
remote_commit(
        struct uc_store *base, const struct uc_token *token, const uint8_t *mask, bool success)
{
    struct uc_remote_store *store = store_of(base);
    enum uc_status status = check_control(store, "commit");

    if (status == UC_OK && token == NULL) {
        status = uc_error(UC_ERR_INVALID_PARAM, "remote store: commit: no token");
    }
    return status != UC_OK ? status : uc_control_commit(store->control, token, mask, success);
}

static enum uc_status
submit(struct uc_store *base, bool is_dump, uint64_t job_id, const struct uc_job_descriptor *job,
        const struct uc_token *token, size_t first_key)
{
    struct uc_remote_store *store = store_of(base);
    const char *what = is_dump ? "dump" : "load";
    enum uc_status status = check_data(store, what);

    if (status == UC_OK && token == NULL) {
        status = uc_error(UC_ERR_INVALID_PARAM, "remote store: %s: no token", what);
    }
    if (status == UC_OK && !is_healthy(store)) {
        status = unhealthy(store, what);
    }
    if (status != UC_OK) {
        return status;
    }

    return uc_data_plane_submit(store->plane, is_dump, job_id, job, token, first_key);
}

static enum uc_status
remote_load_token(struct uc_store *base, uint64_t job_id, const struct uc_job_descriptor *job,
        const struct uc_token *token, size_t first_key)
{
    return submit(base, false, job_id, job, token, first_key);
}

static enum uc_status
remote_dump_token(struct uc_store *base, uint64_t job_id, const struct uc_job_descriptor *job,
        const struct uc_token *token, size_t first_key)
{
    return submit(base, true, job_id, job, token, first_key);
}

static const struct uc_token_addressed_ops token_ops = {
        .struct_size = sizeof(token_ops),
        .pin = remote_pin,
        .unpin = remote_unpin,
        .alloc = remote_alloc,
        .commit = remote_commit,
        .load = remote_load_token,
        .dump = remote_dump_token,
};

static const struct uc_token_addressed_ops *
remote_as_token_addressed(struct uc_store *base)
{
    (void)base;
    return &token_ops;
}

static const struct uc_store_ops remote_ops = {
        .abi_version = UC_STORE_ABI_VERSION,
        .struct_size = sizeof(remote_ops),
        .setup = remote_setup,
        .lookup = remote_lookup,
        .touch = remote_touch,
        .load = remote_load,
        .dump = remote_dump,
        .get_finished = remote_get_finished,
        .wait = remote_wait,
        .as_token_addressed = remote_as_token_addressed,
        .register_memory = remote_register_memory,
        .deregister_memory = remote_deregister_memory,
        .health = remote_health,
        .describe = remote_describe,
        .event_fd = remote_event_fd,
};

struct uc_store *
uc_remote_store_create(void)
{
    struct uc_remote_store *store = calloc(1, sizeof(*store));

    if (store == NULL) {
        return NULL;
    }

    store->base.ops = &remote_ops;
    return &store->base;
}

void
uc_remote_store_destroy(struct uc_store *base)
{
    struct uc_remote_store *store;

    if (base == NULL) {
        return;
    }

    store = store_of(base);
    /* Workers first: what they still move must not outlive the grants. */
    uc_data_plane_destroy(store->plane);
    uc_control_destroy(store->control);
    uc_remote_config_fini(&store->config);
    free(store);
}
