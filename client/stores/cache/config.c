/* SPDX-License-Identifier: Apache-2.0 */

#include "client/stores/cache/config.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/config/store_config.h"

static const char where[] = "cache store"; /* in texts */

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

/* Read here by hand. */
static const char *const other_keys[] = {"checksum", "policy_config", NULL};

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
read_place(const struct uc_dict *dict, struct uc_cache_store_config *config)
{
    struct uc_store_place place = {.role = UC_ROLE_BOTH};
    enum uc_status status = uc_config_read_place(dict, where, &place);

    if (status != UC_OK) {
        return status;
    }

    config->role = place.role;
    memcpy(config->node_path, place.node_path, sizeof(config->node_path));
    config->prerequisite = place.prerequisite;
    config->lower = place.lower;
    config->tiers_below = place.tiers_below;
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
    enum uc_status status =
            uc_config_apply_store_fields(fields, FIELD_COUNT, dict, where, other_keys, &config);

    if (status == UC_OK) {
        status = read_place(dict, &config);
    }
    if (status == UC_OK) {
        status = read_capacity(&config);
    }
    if (status == UC_OK) {
        status = uc_config_read_switch(dict, where, "checksum", &config.checksum);
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
