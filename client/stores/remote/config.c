/* SPDX-License-Identifier: Apache-2.0 */

#include "client/stores/remote/config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ucm/log.h>

static const char *const access_choices[] = {"rw", "ro", NULL};
static const char *const fabric_choices[] = {"auto", "tcp", "verbs", NULL};

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
                .help = "transport: auto takes verbs if both sides have it, else tcp",
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

/* Read here by hand, or injected by the assembler. */
static const char *const other_keys[] = {"servers", "checksum", "node_path", "store_role",
        "tiers_below", "prerequisite_hook", "piped_lower_store"};

enum {
    OTHER_COUNT = sizeof(other_keys) / sizeof(other_keys[0]),
};

static bool
is_known(const char *key, const char **names)
{
    bool known = false;

    for (size_t idx = 0; idx < FIELD_COUNT + OTHER_COUNT; idx++) {
        names[idx] = idx < FIELD_COUNT ? fields[idx].key : other_keys[idx - FIELD_COUNT];
        known = known || strcmp(names[idx], key) == 0;
    }
    return known;
}

static void
warn_unknown(const char *key, const char *const *names)
{
    const char *nearest = uc_field_nearest(key, names, FIELD_COUNT + OTHER_COUNT);

    uc_log_warn("remote store: unknown key \"%s\" is ignored%s%s%s", key,
            nearest == NULL ? "" : "; did you mean \"", nearest == NULL ? "" : nearest,
            nearest == NULL ? "" : "\"?");
}

/* The table rejects what it does not know; a plugin only warns. */
static enum uc_status
apply_fields(const struct uc_dict *dict, struct uc_remote_config *config)
{
    size_t count = uc_dict_count(dict);
    const char **ignored = calloc(count + OTHER_COUNT + 1, sizeof(ignored[0]));
    const char *names[FIELD_COUNT + OTHER_COUNT];
    size_t ignored_count = OTHER_COUNT;
    enum uc_status status;

    if (ignored == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "remote store: no memory to read the configuration");
    }

    memcpy(ignored, other_keys, sizeof(other_keys));
    for (size_t idx = 0; idx < count; idx++) {
        const char *key = uc_dict_key_at(dict, idx);

        if (!is_known(key, names)) {
            warn_unknown(key, names);
            ignored[ignored_count++] = key;
        }
    }
    status = uc_field_apply(fields, FIELD_COUNT, dict, "remote store", ignored, config);
    free(ignored);
    return status;
}

/* "on" and "off" are texts to some readers of YAML and booleans to others. */
static enum uc_status
read_checksum(const struct uc_dict *dict, bool *checksum_out)
{
    enum uc_dict_type type = UC_DICT_BOOL;
    const char *text = NULL;

    if (!uc_dict_has(dict, "checksum")) {
        *checksum_out = true;
        return UC_OK;
    }
    if (uc_dict_get_type(dict, "checksum", &type) == UC_OK && type == UC_DICT_BOOL) {
        return uc_dict_get_bool(dict, "checksum", checksum_out);
    }
    if (uc_dict_get_string(dict, "checksum", &text) == UC_OK &&
            (strcmp(text, "on") == 0 || strcmp(text, "off") == 0)) {
        *checksum_out = strcmp(text, "on") == 0;
        return UC_OK;
    }

    return uc_error(UC_ERR_INVALID_PARAM, "remote store: checksum is %s%s%s; write on or off",
            text == NULL ? "no text" : "\"", text == NULL ? "" : text, text == NULL ? "" : "\"");
}

static enum uc_status
read_injected(const struct uc_dict *dict, struct uc_remote_config *config)
{
    const char *text = "";
    void *pointer = NULL;

    (void)!uc_dict_get_string(dict, "node_path", &text);
    (void)snprintf(config->node_path, sizeof(config->node_path), "%s", text);

    text = "both";
    (void)!uc_dict_get_string(dict, "store_role", &text);
    if (strcmp(text, "both") == 0) {
        config->role = UC_ROLE_BOTH;
    } else if (strcmp(text, "scheduler") == 0) {
        config->role = UC_ROLE_SCHEDULER;
    } else if (strcmp(text, "worker") == 0) {
        config->role = UC_ROLE_WORKER;
    } else {
        return uc_error(UC_ERR_INVALID_PARAM,
                "remote store: store_role is \"%s\"; known are both, scheduler, worker", text);
    }

    if (uc_dict_get_pointer(dict, "piped_lower_store", &pointer) == UC_OK && pointer != NULL) {
        return uc_error(UC_ERR_UNSUPPORTED,
                "remote store: it cannot stand above another store; put it last in the pipe");
    }
    pointer = NULL;
    (void)!uc_dict_get_pointer(dict, UC_SETUP_PREREQUISITE_HOOK, &pointer);
    config->prerequisite = pointer;
    return UC_OK;
}

static void
derive(struct uc_remote_config *config)
{
    config->access = strcmp(config->access_text, "ro") == 0 ? UC_ACCESS_RO : UC_ACCESS_RW;
    config->fabric = UC_REMOTE_FABRIC_AUTO;
    if (strcmp(config->fabric_text, "tcp") == 0) {
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

    status = apply_fields(dict, config);
    if (status == UC_OK) {
        status = read_checksum(dict, &config->checksum);
    }
    if (status == UC_OK) {
        status = check_names(config);
    }
    if (status == UC_OK) {
        status = read_injected(dict, config);
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
