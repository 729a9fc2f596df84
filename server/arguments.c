/* SPDX-License-Identifier: Apache-2.0 */

/* The command line of ucm-server. */

#include <stdio.h>
#include <string.h>

#include "server/config.h"

enum {
    ASSIGNMENT_BYTES = 1024
};

/* Where a key of the command line belongs: '-' counts as '_', short names reach the namespace. */
static bool
resolve_key(char *key, const char **prefix_out)
{
    for (char *cursor = key; *cursor != '\0'; cursor++) {
        if (*cursor == '-') {
            *cursor = '_';
        }
    }
    if (strncmp(key, "namespaces.", strlen("namespaces.")) == 0) {
        *prefix_out = "";
        return true;
    }
    if (strcmp(key, "namespace") == 0) {
        strcpy(key, "name");
    }
    for (int of_namespace = 0; of_namespace <= 1; of_namespace++) {
        const char *keys[UC_SERVER_KEYS_MAX];
        size_t count = uc_server_config_keys(of_namespace, keys);

        for (size_t idx = 0; idx < count; idx++) {
            if (strcmp(key, keys[idx]) == 0) {
                *prefix_out = of_namespace ? "namespaces.0." : "";
                return true;
            }
        }
    }

    return false;
}

static enum uc_status
unknown_key(const char *key)
{
    const char *names[2 * UC_SERVER_KEYS_MAX + 5];
    const char *nearest;
    size_t count = uc_server_config_keys(false, names);

    count += uc_server_config_keys(true, names + count);
    names[count++] = "namespace";
    names[count++] = "config";
    names[count++] = "check_config";
    names[count++] = "help";
    names[count++] = "version";
    nearest = uc_field_nearest(key, names, count);
    if (nearest == NULL) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "command line: unknown key '%s'; --help lists all of them", key);
    }
    return uc_error(UC_ERR_INVALID_PARAM, "command line: unknown key '%s'; did you mean '%s'?", key,
            nearest);
}

/* Put "key=value", or "key" with the value of the next text, into the dictionary. */
static enum uc_status
assign(struct uc_dict *dict, const char *text, const char *next)
{
    char assignment[ASSIGNMENT_BYTES];
    char key[UC_FIELD_STRING_BYTES];
    const char *equals = strchr(text, '=');
    size_t key_length = equals == NULL ? strlen(text) : (size_t)(equals - text);
    const char *value = equals == NULL ? next : equals + 1;
    const char *prefix;
    int length;

    if (key_length == 0 || key_length >= sizeof(key)) {
        return uc_error(UC_ERR_INVALID_PARAM, "command line: '--%s' is not --key=value", text);
    }

    memcpy(key, text, key_length);
    key[key_length] = '\0';
    if (!resolve_key(key, &prefix)) {
        return unknown_key(key);
    }
    if (value == NULL && strcmp(key, "debug_calls") == 0) {
        value = "true"; /* a bare flag switches on */
    }
    if (value == NULL) {
        return uc_error(
                UC_ERR_INVALID_PARAM, "command line: --%s needs a value: --%s=VALUE", text, text);
    }

    length = snprintf(assignment, sizeof(assignment), "%s%s=%s", prefix, key, value);
    if (length < 0 || (size_t)length >= sizeof(assignment)) {
        return uc_error(UC_ERR_INVALID_PARAM, "command line: the value of --%s is too long", key);
    }
    return uc_config_set_text(dict, assignment);
}

static bool
is_key(const char *text, const char *key)
{
    return strcmp(text, key) == 0;
}

/* "--key value" is "--key=value": whether the value stands in the next text. */
static bool
takes_next(int count, char *const *texts, int idx)
{
    return strchr(texts[idx], '=') == NULL && idx + 1 < count &&
           strncmp(texts[idx + 1], "--", 2) != 0;
}

/* First pass: what is not a key of the configuration, and the shape of the rest. */
static enum uc_status
find_switches(
        int count, char *const *texts, struct uc_server_arguments *arguments, const char **path_out)
{
    for (int idx = 1; idx < count; idx++) {
        const char *text = texts[idx];

        if (is_key(text, "--help") || is_key(text, "-h")) {
            arguments->help = true;
        } else if (is_key(text, "--version")) {
            arguments->version = true;
        } else if (is_key(text, "--check-config") || is_key(text, "--check_config")) {
            arguments->check_config = true;
        } else if (strncmp(text, "--config=", strlen("--config=")) == 0) {
            *path_out = text + strlen("--config=");
        } else if (strncmp(text, "--", 2) != 0) {
            return uc_error(UC_ERR_INVALID_PARAM,
                    "command line: '%s' is not an option; options are --key=value", text);
        } else if (takes_next(count, texts, idx)) {
            idx++;
            if (is_key(text, "--config")) {
                *path_out = texts[idx];
            }
        } else if (is_key(text, "--config")) {
            return uc_error(
                    UC_ERR_INVALID_PARAM, "command line: --config needs the path of a file");
        }
    }

    return UC_OK;
}

/* Second pass: every `--key=value`, later ones win. */
static enum uc_status
assign_all(int count, char *const *texts, struct uc_dict *dict)
{
    for (int idx = 1; idx < count; idx++) {
        const char *text = texts[idx];
        const char *value = NULL;
        enum uc_status status;

        if (is_key(text, "--check-config") || is_key(text, "--check_config") ||
                strncmp(text, "--config=", strlen("--config=")) == 0) {
            continue;
        }
        if (takes_next(count, texts, idx)) {
            value = texts[++idx];
        }
        if (is_key(text, "--config")) {
            continue;
        }
        status = assign(dict, text + 2, value);
        if (status != UC_OK) {
            return status;
        }
    }

    return UC_OK;
}

enum uc_status
uc_server_arguments_parse(int count, char *const *texts, struct uc_server_arguments *arguments_out)
{
    struct uc_server_arguments arguments;
    const char *path = NULL;
    struct uc_dict *dict = NULL;
    enum uc_status status;

    memset(&arguments, 0, sizeof(arguments));
    status = find_switches(count, texts, &arguments, &path);
    if (status != UC_OK) {
        return status;
    }
    if (arguments.help || arguments.version) {
        *arguments_out = arguments;
        return UC_OK;
    }

    status = path == NULL ? uc_dict_create(&dict) : uc_yaml_read_file(path, &dict);
    if (status != UC_OK) {
        return status;
    }
    status = assign_all(count, texts, dict);
    if (status == UC_OK) {
        status = uc_server_config_apply(
                dict, path == NULL ? "command line" : path, &arguments.config);
    }
    uc_dict_destroy(dict);
    if (status != UC_OK) {
        return status;
    }

    *arguments_out = arguments;
    return UC_OK;
}
