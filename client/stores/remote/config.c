/* SPDX-License-Identifier: Apache-2.0 */

#include "client/stores/remote/config.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/config/store_config.h"

static const char where[] = "remote store"; /* in texts */

static const char *const access_choices[] = {"rw", "ro", NULL};
static const char *const fabric_choices[] = {"auto", "shm", "tcp", "verbs", NULL};

static const char *const progress_choices[] = {"thread", "caller", NULL};

static const struct uc_field fields[] = {
        {
                .key = "namespace",
                .type = UC_FIELD_STRING,
                .default_text = "default",
                .offset = offsetof(struct uc_remote_config, name_space),
                .help = "key space on the servers",
        },
        {
                .key = "credential",
                .type = UC_FIELD_STRING,
                .default_text = "",
                .offset = offsetof(struct uc_remote_config, credential),
                .help = "what the namespace asks for",
        },
        {
                .key = "client_name",
                .type = UC_FIELD_STRING,
                .default_text = "",
                .offset = offsetof(struct uc_remote_config, client_name),
                .help = "named in the server's log; program name and process id by default",
        },
        {
                .key = "access",
                .type = UC_FIELD_STRING,
                .default_text = "rw",
                .offset = offsetof(struct uc_remote_config, access_text),
                .help = "rw, or ro to read only",
                .choices = access_choices,
        },
        {
                .key = "fabric",
                .type = UC_FIELD_STRING,
                .default_text = "auto",
                .offset = offsetof(struct uc_remote_config, fabric_text),
                .help = "transport: auto is shm on the server's host, else verbs if both have it, else tcp",
                .choices = fabric_choices,
        },
        {
                .key = "device",
                .type = UC_FIELD_STRING,
                .default_text = "",
                .offset = offsetof(struct uc_remote_config, device),
                .help = "verbs device, NAME or NAME:PORT; by route if empty",
        },
        {
                .key = "queue_pairs",
                .type = UC_FIELD_COUNT,
                .default_text = "0",
                .max = UC_REMOTE_QUEUE_PAIRS_MAX,
                .offset = offsetof(struct uc_remote_config, queue_pairs),
                .help = "per server: queue pairs (verbs) or streams (tcp); 0 = the transport's choice",
        },
        {
                .key = "progress",
                .type = UC_FIELD_STRING,
                .default_text = "thread",
                .offset = offsetof(struct uc_remote_config, progress_text),
                .help = "who moves the bytes: a thread of the store, or the caller of get_finished and wait",
                .choices = progress_choices,
        },
        {
                .key = "spin_us",
                .type = UC_FIELD_COUNT,
                .default_text = "20",
                .max = 1000000,
                .offset = offsetof(struct uc_remote_config, spin_us),
                .help = "microseconds that completions of verbs are awaited before the thread sleeps",
        },
        {
                .key = "bounce_bytes",
                .type = UC_FIELD_BYTES,
                .default_text = "64MiB",
                .max = UINT64_MAX,
                .offset = offsetof(struct uc_remote_config, bounce_bytes),
                .help = "buffers for blocks in memory that the transport cannot use; 0 = none",
        },
        {
                .key = "timeout_ms",
                .type = UC_FIELD_MS,
                .default_text = "30s",
                .min = 1,
                .max = UINT32_MAX,
                .offset = offsetof(struct uc_remote_config, timeout_ms),
                .help = "deadline of a job that brings none",
        },
        {
                .key = "rpc_timeout",
                .type = UC_FIELD_MS,
                .default_text = "1s",
                .min = 1,
                .max = 600000,
                .offset = offsetof(struct uc_remote_config, rpc_timeout_ms),
                .help = "longest wait for a server's answer",
        },
        {
                .key = "connect_timeout",
                .type = UC_FIELD_MS,
                .default_text = "1s",
                .min = 1,
                .max = 600000,
                .offset = offsetof(struct uc_remote_config, connect_timeout_ms),
                .help = "longest wait for a connection",
        },
        {
                .key = "block_bytes",
                .type = UC_FIELD_BYTES,
                .default_text = "0",
                .max = UINT64_MAX,
                .offset = offsetof(struct uc_remote_config, block_bytes),
                .help = "block size that the namespace must have; 0 = any",
        },
};

enum {
    FIELD_COUNT = sizeof(fields) / sizeof(fields[0]),
};

/* Read here by hand. */
static const char *const other_keys[] = {"servers", "checksum", "progress_cpu", NULL};

static enum uc_status
read_place(const struct uc_dict *dict, struct uc_remote_config *config)
{
    struct uc_store_place place = {.role = UC_ROLE_BOTH};
    enum uc_status status = uc_config_read_place(dict, where, &place);

    if (status == UC_OK) {
        status = uc_config_refuse_lower(&place, where);
    }
    if (status != UC_OK) {
        return status;
    }

    config->role = place.role;
    memcpy(config->node_path, place.node_path, sizeof(config->node_path));
    config->prerequisite = place.prerequisite;
    return UC_OK;
}

static void
derive(struct uc_remote_config *config)
{
    config->access = strcmp(config->access_text, "ro") == 0 ? UC_ACCESS_RO : UC_ACCESS_RW;
    config->fabric = UC_REMOTE_FABRIC_AUTO;
    if (strcmp(config->fabric_text, "shm") == 0) {
        config->fabric = UC_REMOTE_FABRIC_SHM;
    } else if (strcmp(config->fabric_text, "tcp") == 0) {
        config->fabric = UC_REMOTE_FABRIC_TCP;
    } else if (strcmp(config->fabric_text, "verbs") == 0) {
        config->fabric = UC_REMOTE_FABRIC_VERBS;
    }
    if (config->client_name[0] == '\0') {
        (void)snprintf(config->client_name, UC_NAME_MAX + 1, "%.40s-%ld",
                program_invocation_short_name, (long)getpid());
    }
}

static enum uc_status
read_progress(const struct uc_dict *dict, struct uc_remote_config *config)
{
    int64_t cpu = 0;
    enum uc_status status;

    config->caller_progresses = strcmp(config->progress_text, "caller") == 0;
    config->progress_cpu = UC_REMOTE_CPU_ANY;
    if (!uc_dict_has(dict, "progress_cpu")) {
        return UC_OK;
    }

    status = uc_dict_get_int(dict, "progress_cpu", &cpu);
    if (status != UC_OK) {
        return uc_error(status, "%s: %s", where, uc_last_error());
    }
    if (cpu < 0 || cpu >= CPU_SETSIZE) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "%s: progress_cpu: %lld is no CPU; allowed are 0 to %d", where, (long long)cpu,
                CPU_SETSIZE - 1);
    }
    if (config->caller_progresses) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "%s: progress_cpu: with `progress: caller` there is no thread to place; leave out "
                "one of the two",
                where);
    }
    config->progress_cpu = (int)cpu;
    return UC_OK;
}

static enum uc_status
check_names(const struct uc_remote_config *config)
{
    if (config->name_space[0] == '\0' || strlen(config->name_space) > UC_NAME_MAX) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "remote store: namespace \"%s\" must have 1 to %d bytes", config->name_space,
                UC_NAME_MAX);
    }
    if (strlen(config->client_name) > UC_NAME_MAX) {
        return uc_error(UC_ERR_INVALID_PARAM, "remote store: client_name is longer than %d bytes",
                UC_NAME_MAX);
    }

    return UC_OK;
}

enum uc_status
uc_remote_config_read(const struct uc_dict *dict, struct uc_remote_config *config_out)
{
    struct uc_remote_config *config = calloc(1, sizeof(*config));
    enum uc_status status;

    if (config == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "remote store: no memory for the configuration");
    }

    config->checksum = true;
    status = uc_config_apply_store_fields(fields, FIELD_COUNT, dict, where, other_keys, config);
    if (status == UC_OK) {
        status = uc_config_read_switch(dict, where, "checksum", &config->checksum);
    }
    if (status == UC_OK) {
        status = read_progress(dict, config);
    }
    if (status == UC_OK) {
        status = check_names(config);
    }
    if (status == UC_OK) {
        status = read_place(dict, config);
    }
    if (status == UC_OK) {
        status = uc_server_list_read(dict, "servers", &config->servers);
    }
    if (status == UC_OK) {
        derive(config);
        *config_out = *config;
    }
    free(config);
    return status;
}

void
uc_remote_config_fini(struct uc_remote_config *config)
{
    uc_server_list_fini(&config->servers);
}
