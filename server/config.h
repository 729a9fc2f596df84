/* SPDX-License-Identifier: Apache-2.0 */

/**
 * @file config.h
 * Configuration of ucm-server: two field tables (the server's keys and those of its namespace) that
 * parse, print and document it. Pure but for reading the file; one thread.
 */

#ifndef UC_SERVER_CONFIG_H
#define UC_SERVER_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <ucm/dict.h>
#include <ucm/status.h>

#include "core/config/fields.h"

enum {
    UC_SERVER_PORT_DEFAULT = 7470,
    UC_SERVER_KEYS_MAX = 32,
};

/** The keys of one element of `namespaces`. */
struct uc_namespace_config {
    char name[UC_FIELD_STRING_BYTES];
    char policy[UC_FIELD_STRING_BYTES];
    uint64_t block_bytes;
    uint64_t capacity_bytes;  /* used where capacity_blocks is 0 */
    uint64_t capacity_blocks; /* 0 = as many as capacity_bytes holds */
    uint64_t region_bytes;
    uint64_t align_bytes;
    struct uc_dict *policy_config; /* owned; NULL = the policy's defaults */
};

struct uc_server_config {
    char listen[UC_FIELD_STRING_BYTES];
    char fabric[UC_FIELD_STRING_BYTES];
    char fabric_address[UC_FIELD_STRING_BYTES];
    char fabric_device[UC_FIELD_STRING_BYTES];
    char credential[UC_FIELD_STRING_BYTES];
    char log_level[UC_FIELD_STRING_BYTES];
    char log_format[UC_FIELD_STRING_BYTES];
    char ready_file[UC_FIELD_STRING_BYTES];
    uint64_t fabric_port;
    uint64_t lease_ms;
    bool debug_calls;
    struct uc_namespace_config name_space;
};

/** What the command line asks for. */
struct uc_server_arguments {
    struct uc_server_config config;
    bool check_config;
    bool help;
    bool version;
};

/**
 * Read the command line and the file it names: defaults, then the file, then the `--key=value`s.
 *
 * @param[out] arguments_out  the caller releases config with uc_server_config_fini()
 * @retval UC_ERR_INVALID_PARAM  uc_last_error() says which key, where, and what is allowed
 */
UC_MUST_CHECK enum uc_status uc_server_arguments_parse(
        int count, char *const *texts, struct uc_server_arguments *arguments_out);

/** Fill a configuration from a dictionary; @p where is named in errors. */
UC_MUST_CHECK enum uc_status uc_server_config_apply(
        const struct uc_dict *dict, const char *where, struct uc_server_config *config_out);
void uc_server_config_fini(struct uc_server_config *config);

/**
 * List the keys of the server, or of its namespace.
 *
 * @param[out] keys_out  room for UC_SERVER_KEYS_MAX
 * @return their count
 */
size_t uc_server_config_keys(bool of_namespace, const char **keys_out);

/** Print the effective configuration as YAML; the credential is not shown. */
void uc_server_config_print(const struct uc_server_config *config, FILE *file);
void uc_server_config_help(FILE *file);

#endif /* UC_SERVER_CONFIG_H */
