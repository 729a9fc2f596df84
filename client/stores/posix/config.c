/* SPDX-License-Identifier: Apache-2.0 */

#include "client/stores/posix/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/config/store_config.h"

static const char where[] = "posix store"; /* in texts */

static const char *const fsync_choices[] = {"none", "data", "full", NULL};
enum {
    THREADS_BUFFERED = 4,
    THREADS_DIRECT = 16,
};

static const char *const io_choices[] = {"auto", "uring", "threads", NULL};

static const struct uc_field fields[] = {
        {
                .key = "block_bytes",
                .type = UC_FIELD_BYTES,
                .default_text = "0",
                .max = UC_POSIX_BLOCK_BYTES_MAX,
                .offset = offsetof(struct uc_posix_config, block_bytes),
                .help = "length of every block; needed for block_offset; 0 = as dumped",
        },
        {
                .key = "timeout_ms",
                .type = UC_FIELD_MS,
                .default_text = "30s",
                .min = 1,
                .max = UINT32_MAX,
                .offset = offsetof(struct uc_posix_config, timeout_ms),
                .help = "deadline of a job that brings none",
        },
        {
                .key = "capacity",
                .type = UC_FIELD_BYTES,
                .default_text = "0",
                .max = UINT64_MAX,
                .offset = offsetof(struct uc_posix_config, capacity_bytes),
                .help = "bytes of files kept, oldest removed first; 0 = no limit",
        },
        {
                .key = "capacity_blocks",
                .type = UC_FIELD_COUNT,
                .default_text = "0",
                .max = UINT64_MAX,
                .offset = offsetof(struct uc_posix_config, capacity_blocks),
                .help = "blocks kept, oldest removed first; 0 = no limit",
        },
        {
                .key = "fsync",
                .type = UC_FIELD_STRING,
                .default_text = "none",
                .offset = offsetof(struct uc_posix_config, fsync_text),
                .help = "what a dump makes durable: none, data, or full (data and names)",
                .choices = fsync_choices,
        },
        {
                .key = "io",
                .type = UC_FIELD_STRING,
                .default_text = "auto",
                .offset = offsetof(struct uc_posix_config, io_text),
                .help = "engine: auto takes threads",
                .choices = io_choices,
        },
        {
                .key = "threads",
                .type = UC_FIELD_COUNT,
                .default_text = "0",
                .max = 256,
                .offset = offsetof(struct uc_posix_config, threads),
                .help = "blocks in transfer at a time, engine threads; 0 = 4, with direct_io 16",
        },
        {
                .key = "io_depth",
                .type = UC_FIELD_COUNT,
                .default_text = "32",
                .min = 1,
                .max = 1024,
                .offset = offsetof(struct uc_posix_config, io_depth),
                .help = "blocks in transfer at a time, engine uring",
        },
        {
                .key = "shards",
                .type = UC_FIELD_COUNT,
                .default_text = "256",
                .min = 256,
                .max = 65536,
                .offset = offsetof(struct uc_posix_config, shards),
                .help = "directories per root, 256 or 65536; fixed once a root is in use",
        },
};

enum {
    FIELD_COUNT = sizeof(fields) / sizeof(fields[0]),
};

/* Read here by hand. */
static const char *const other_keys[] = {"root", "direct_io", "checksum", NULL};

static enum uc_status
add_root(struct uc_posix_config *config, const char *path)
{
    if (path[0] == '\0') {
        return uc_error(UC_ERR_INVALID_PARAM, "posix store: root %zu is empty; name a directory",
                config->root_count);
    }
    for (size_t idx = 0; idx < config->root_count; idx++) {
        if (strcmp(config->roots[idx], path) == 0) {
            return uc_error(UC_ERR_INVALID_PARAM, "posix store: root \"%s\" is listed twice", path);
        }
    }

    config->roots[config->root_count] = strdup(path);
    if (config->roots[config->root_count] == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "posix store: no memory for the roots");
    }
    config->root_count++;
    return UC_OK;
}

static enum uc_status
read_roots(const struct uc_dict *dict, struct uc_posix_config *config)
{
    const char *text = NULL;
    size_t count = 1;
    bool is_list = uc_dict_get_list_count(dict, "root", &count) == UC_OK;
    enum uc_status status = UC_OK;

    if (!is_list && uc_dict_get_string(dict, "root", &text) != UC_OK) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "posix store: key \"root\" is %s; name a directory or a list of directories",
                uc_dict_has(dict, "root") ? "no text" : "missing");
    }
    if (count == 0) {
        return uc_error(UC_ERR_INVALID_PARAM, "posix store: root is empty; name a directory");
    }
    config->roots = calloc(count, sizeof(config->roots[0]));
    if (config->roots == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "posix store: no memory for the roots");
    }

    for (size_t idx = 0; idx < count && status == UC_OK; idx++) {
        if (is_list) {
            status = uc_dict_get_string_at(dict, "root", idx, &text);
        }
        if (status == UC_OK) {
            status = add_root(config, text);
        }
    }
    return status;
}

static enum uc_status
read_place(const struct uc_dict *dict, struct uc_posix_config *config)
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

static enum uc_status
check_numbers(const struct uc_posix_config *config)
{
    if (config->shards != 256 && config->shards != 65536) {
        return uc_error(UC_ERR_INVALID_PARAM, "posix store: shards is %llu; write 256 or 65536",
                (unsigned long long)config->shards);
    }
    if (config->capacity_bytes != 0 && config->block_bytes != 0 &&
            config->capacity_bytes < config->block_bytes) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "posix store: capacity of %llu bytes is less than block_bytes of %llu",
                (unsigned long long)config->capacity_bytes,
                (unsigned long long)config->block_bytes);
    }
    return UC_OK;
}

static void
derive(struct uc_posix_config *config)
{
    config->fsync = UC_POSIX_FSYNC_NONE;
    if (strcmp(config->fsync_text, "data") == 0) {
        config->fsync = UC_POSIX_FSYNC_DATA;
    } else if (strcmp(config->fsync_text, "full") == 0) {
        config->fsync = UC_POSIX_FSYNC_FULL;
    }
    if (config->threads == 0) {
        /* With O_DIRECT a thread waits for the medium most of the time. */
        config->threads = config->direct_io ? THREADS_DIRECT : THREADS_BUFFERED;
    }
    config->engine = UC_POSIX_ENGINE_AUTO;
    if (strcmp(config->io_text, "uring") == 0) {
        config->engine = UC_POSIX_ENGINE_URING;
    } else if (strcmp(config->io_text, "threads") == 0) {
        config->engine = UC_POSIX_ENGINE_THREADS;
    }
}

enum uc_status
uc_posix_config_read(const struct uc_dict *dict, struct uc_posix_config *config_out)
{
    struct uc_posix_config config = {.checksum = true};
    enum uc_status status =
            uc_config_apply_store_fields(fields, FIELD_COUNT, dict, where, other_keys, &config);

    if (status == UC_OK) {
        status = check_numbers(&config);
    }
    if (status == UC_OK) {
        status = uc_config_read_switch(dict, where, "direct_io", &config.direct_io);
    }
    if (status == UC_OK) {
        status = uc_config_read_switch(dict, where, "checksum", &config.checksum);
    }
    if (status == UC_OK) {
        status = read_place(dict, &config);
    }
    if (status == UC_OK) {
        status = read_roots(dict, &config);
    }
    if (status != UC_OK) {
        uc_posix_config_fini(&config);
        return status;
    }

    derive(&config);
    *config_out = config;
    return UC_OK;
}

void
uc_posix_config_fini(struct uc_posix_config *config)
{
    for (size_t idx = 0; idx < config->root_count; idx++) {
        free(config->roots[idx]);
    }
    free(config->roots);
    config->roots = NULL;
    config->root_count = 0;
}
