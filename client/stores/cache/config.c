/* SPDX-License-Identifier: Apache-2.0 */

#include "client/stores/cache/config.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ucm/log.h>

static const char *const write_choices[] = {"none", "through", NULL};

#define AT(member) offsetof(struct uc_cache_store_config, member)

static const struct uc_field fields[] = {
        {.key = "block_bytes",
                .type = UC_FIELD_BYTES,
                .min = 1,
                .max = UINT32_MAX,
                .offset = AT(block_bytes),
                .help = "length of every block"},
        {.key = "capacity",
                .type = UC_FIELD_BYTES,
                .default_text = "0",
                .max = UINT64_MAX,
                .offset = AT(capacity_bytes),
                .help = "bytes of blocks kept; this or capacity_blocks"},
        {.key = "capacity_blocks",
                .type = UC_FIELD_COUNT,
                .default_text = "0",
                .max = 1u << 31,
                .offset = AT(capacity_blocks),
                .help = "blocks kept; this or capacity"},
        {.key = "policy",
                .type = UC_FIELD_STRING,
                .default_text = "lru",
                .offset = AT(policy),
                .help = "which block makes room"},
        {.key = "domain",
                .type = UC_FIELD_STRING,
                .default_text = "",
                .offset = AT(domain),
                .help = "name of the shared segment; default: from user and place in the tree"},
        {.key = "timeout_ms",
                .type = UC_FIELD_MS,
                .default_text = "30s",
                .min = 1,
                .max = UINT32_MAX,
                .offset = AT(timeout_ms),
                .help = "deadline of a job that brings none"},
        {.key = "threads",
                .type = UC_FIELD_COUNT,
                .default_text = "4",
                .min = 1,
                .max = 64,
                .offset = AT(threads),
                .help = "threads of a worker that copy"},
        {.key = "write",
                .type = UC_FIELD_STRING,
                .default_text = "none",
                .offset = AT(write_text),
                .help = "through = also to the tier below, in the background",
                .choices = write_choices},
};

enum {
    FIELD_COUNT = sizeof(fields) / sizeof(fields[0]),
};

/* Read here by hand, or injected by the assembler. */
static const char *const other_keys[] = {"checksum", "policy_config", UC_SETUP_NODE_PATH,
        UC_SETUP_STORE_ROLE, UC_SETUP_TIERS_BELOW, UC_SETUP_PREREQUISITE_HOOK,
        UC_SETUP_PIPED_LOWER_STORE};

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

/* The table rejects what it does not know; a plugin only warns. */
static enum uc_status
apply_fields(const struct uc_dict *dict, struct uc_cache_store_config *config)
{
    size_t count = uc_dict_count(dict);
    const char **ignored = calloc(count + OTHER_COUNT + 1, sizeof(ignored[0]));
    const char *names[FIELD_COUNT + OTHER_COUNT];
    size_t ignored_count = OTHER_COUNT;
    enum uc_status status;

    if (ignored == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "cache store: no memory to read the configuration");
    }

    memcpy(ignored, other_keys, sizeof(other_keys));
    for (size_t idx = 0; idx < count; idx++) {
        const char *key = uc_dict_key_at(dict, idx);

        if (!is_known(key, names)) {
            const char *nearest = uc_field_nearest(key, names, FIELD_COUNT + OTHER_COUNT);

            uc_log_warn("cache store: unknown key \"%s\" is ignored%s%s%s", key,
                    nearest == NULL ? "" : "; did you mean \"", nearest == NULL ? "" : nearest,
                    nearest == NULL ? "" : "\"?");
            ignored[ignored_count++] = key;
        }
    }
    status = uc_field_apply(fields, FIELD_COUNT, dict, "cache store", ignored, config);
    free(ignored);
    return status;
}

/* "on" and "off" are texts to some readers of YAML and booleans to others. */
static enum uc_status
read_checksum(const struct uc_dict *dict, bool *checksum)
{
    const char *text = NULL;

    *checksum = true;
    if (!uc_dict_has(dict, "checksum") || uc_dict_get_bool(dict, "checksum", checksum) == UC_OK) {
        return UC_OK;
    }
    if (uc_dict_get_string(dict, "checksum", &text) == UC_OK &&
            (strcmp(text, "on") == 0 || strcmp(text, "off") == 0)) {
        *checksum = strcmp(text, "on") == 0;
        return UC_OK;
    }

    return uc_error(UC_ERR_INVALID_PARAM, "cache store: checksum is \"%s\"; write on or off",
            text == NULL ? "no text" : text);
}

static enum uc_status
read_capacity(struct uc_cache_store_config *config)
{
    if ((config->capacity_bytes == 0) == (config->capacity_blocks == 0)) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "cache store: write either capacity (bytes) or capacity_blocks, %s is given",
                config->capacity_bytes == 0 ? "neither" : "each");
    }
    if (config->capacity_blocks == 0) {
        config->capacity_blocks = config->capacity_bytes / config->block_bytes;
    }
    if (config->capacity_blocks == 0 || config->capacity_blocks > 1u << 31) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "cache store: capacity holds %llu blocks of %llu bytes; 1 to 2^31 are possible",
                (unsigned long long)config->capacity_blocks,
                (unsigned long long)config->block_bytes);
    }
    if (config->capacity_blocks > (INT64_MAX >> 2) / (config->block_bytes + 4096)) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "cache store: %llu blocks of %llu bytes are more than a segment can hold",
                (unsigned long long)config->capacity_blocks,
                (unsigned long long)config->block_bytes);
    }
    return UC_OK;
}

static bool
is_domain_character(char character)
{
    return isalnum((unsigned char)character) || character == '-' || character == '_' ||
           character == '.';
}

static enum uc_status
read_domain(struct uc_cache_store_config *config)
{
    const char *domain = config->domain;
    size_t length;

    if (domain[0] == '\0') {
        if (config->role == UC_ROLE_BOTH) {
            return UC_OK; /* nobody else has to find it */
        }
        (void)snprintf(config->domain, sizeof(config->domain), "u%u-%.48s", (unsigned)getuid(),
                config->node_path);
        for (char *place = config->domain; *place != '\0'; place++) {
            *place = is_domain_character(*place) ? *place : '-';
        }
        return UC_OK;
    }

    for (length = 0; is_domain_character(domain[length]); length++) {
    }
    if (domain[length] != '\0' || length > UC_CACHE_DOMAIN_MAX) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "cache store: domain is \"%s\"; write up to %d letters, digits, '-', '_', '.'",
                domain, UC_CACHE_DOMAIN_MAX);
    }
    return UC_OK;
}

static enum uc_status
read_injected(const struct uc_dict *dict, struct uc_cache_store_config *config)
{
    const char *text = "";
    void *pointer = NULL;
    int64_t tiers_below = 0;

    (void)!uc_dict_get_string(dict, UC_SETUP_NODE_PATH, &text);
    (void)snprintf(config->node_path, sizeof(config->node_path), "%s", text);
    text = "both";
    (void)!uc_dict_get_string(dict, UC_SETUP_STORE_ROLE, &text);
    if (strcmp(text, "both") == 0) {
        config->role = UC_ROLE_BOTH;
    } else if (strcmp(text, "scheduler") == 0) {
        config->role = UC_ROLE_SCHEDULER;
    } else if (strcmp(text, "worker") == 0) {
        config->role = UC_ROLE_WORKER;
    } else {
        return uc_error(UC_ERR_INVALID_PARAM,
                "cache store: store_role is \"%s\"; known are both, scheduler, worker", text);
    }

    (void)!uc_dict_get_pointer(dict, UC_SETUP_PIPED_LOWER_STORE, &pointer);
    config->lower = pointer;
    pointer = NULL;
    (void)!uc_dict_get_pointer(dict, UC_SETUP_PREREQUISITE_HOOK, &pointer);
    config->prerequisite = pointer;
    (void)!uc_dict_get_int(dict, UC_SETUP_TIERS_BELOW, &tiers_below);
    config->tiers_below = tiers_below > 0 ? (size_t)tiers_below : config->lower != NULL;
    return UC_OK;
}

static enum uc_status
check_tiers(const struct uc_cache_store_config *config)
{
    if (config->write_through && config->lower == NULL) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "cache store: write is \"through\", but there is no tier below it; write none, or "
                "put it above another store in a pipe");
    }
    return UC_OK;
}

enum uc_status
uc_cache_store_config_read(const struct uc_dict *dict, struct uc_cache_store_config *config_out)
{
    struct uc_cache_store_config config = {.checksum = true};
    enum uc_status status = apply_fields(dict, &config);

    if (status == UC_OK) {
        status = read_injected(dict, &config);
    }
    if (status == UC_OK) {
        status = read_capacity(&config);
    }
    if (status == UC_OK) {
        status = read_checksum(dict, &config.checksum);
    }
    if (status == UC_OK) {
        status = read_domain(&config);
    }
    if (status == UC_OK && uc_dict_has(dict, "policy_config")) {
        status = uc_dict_get_dict(dict, "policy_config", &config.policy_config);
    }
    config.write_through = strcmp(config.write_text, "through") == 0;
    if (status == UC_OK) {
        status = check_tiers(&config);
    }
    if (status == UC_OK) {
        *config_out = config;
    }
    return status;
}
