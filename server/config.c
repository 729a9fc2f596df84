/* SPDX-License-Identifier: Apache-2.0 */

#include "server/config.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "core/cache/policy.h"
#include "net/rpc/connection.h"
#include "net/rpc/messages.h"
#include "server/arena.h"
#include "server/fabric_places.h"

static const char *const fabric_choices[] = {"auto", "shm", "tcp", "verbs", NULL};
static const char *const level_choices[] = {"error", "warn", "info", "debug", "trace", NULL};
static const char *const format_choices[] = {"text", "json", NULL};

#define SERVER_AT(member)    offsetof(struct uc_server_config, member)
#define NAMESPACE_AT(member) offsetof(struct uc_namespace_config, member)

static const struct uc_field server_fields[] = {
        {
                .key = "listen",
                .type = UC_FIELD_STRING,
                .default_text = "127.0.0.1:7470",
                .offset = SERVER_AT(listen),
                .help = "HOST:PORT of the metadata calls; port 0 takes a free one",
        },
        {
                .key = "fabric",
                .type = UC_FIELD_STRING,
                .default_text = "auto",
                .offset = SERVER_AT(fabric),
                .help = "how blocks move; auto is tcp, shm on this host, and verbs where a device exists",
                .choices = fabric_choices,
        },
        {
                .key = "fabric_port",
                .type = UC_FIELD_COUNT,
                .default_text = "7471",
                .min = 0,
                .max = UINT16_MAX,
                .offset = SERVER_AT(fabric_port),
                .help = "port of the transfers (tcp and rdma_cm); 0 takes a free one",
        },
        {
                .key = "fabric_address",
                .type = UC_FIELD_STRING,
                .default_text = "",
                .offset = SERVER_AT(fabric_address),
                .help = "addresses of the transfers, by commas; verbs serves on each, tcp on the first; "
                        "empty is the host of listen",
        },
        {
                .key = "fabric_device",
                .type = UC_FIELD_STRING,
                .default_text = "",
                .offset = SERVER_AT(fabric_device),
                .help = "verbs devices, NAME or NAME:PORT, by commas, one per address; empty is by address",
        },
        {
                .key = "lease",
                .type = UC_FIELD_MS,
                .default_text = "10s",
                .min = 100,
                .max = 3600000,
                .offset = SERVER_AT(lease_ms),
                .help = "a session that is silent for this long is fenced",
        },
        {
                .key = "credential",
                .type = UC_FIELD_STRING,
                .default_text = "",
                .offset = SERVER_AT(credential),
                .help = "secret that every hello must show; empty asks for none",
        },
        {
                .key = "log_level",
                .type = UC_FIELD_STRING,
                .default_text = "info",
                .offset = SERVER_AT(log_level),
                .help = "least important line to write",
                .choices = level_choices,
        },
        {
                .key = "log_format",
                .type = UC_FIELD_STRING,
                .default_text = "text",
                .offset = SERVER_AT(log_format),
                .help = "form of the log lines",
                .choices = format_choices,
        },
        {
                .key = "debug_calls",
                .type = UC_FIELD_BOOL,
                .default_text = "false",
                .offset = SERVER_AT(debug_calls),
                .help = "allow the calls that damage blocks on purpose, for tests",
        },
        {
                .key = "ready_file",
                .type = UC_FIELD_STRING,
                .default_text = "",
                .offset = SERVER_AT(ready_file),
                .help = "write one JSON line with the ports here when serving; - is stdout",
        },
};

static const struct uc_field namespace_fields[] = {
        {
                .key = "name",
                .type = UC_FIELD_STRING,
                .default_text = "default",
                .offset = NAMESPACE_AT(name),
                .help = "name that clients say in hello",
        },
        {
                .key = "block_bytes",
                .type = UC_FIELD_BYTES,
                .default_text = "1MiB",
                .min = 8,
                .max = (uint64_t)1 << 36,
                .offset = NAMESPACE_AT(block_bytes),
                .help = "largest block",
        },
        {
                .key = "capacity",
                .type = UC_FIELD_BYTES,
                .default_text = "256MiB",
                .min = 1,
                .max = (uint64_t)1 << 46,
                .offset = NAMESPACE_AT(capacity_bytes),
                .help = "memory for blocks, footers included; not used with capacity_blocks",
        },
        {
                .key = "capacity_blocks",
                .type = UC_FIELD_COUNT,
                .default_text = "0",
                .min = 0,
                .max = UINT32_MAX - 2,
                .offset = NAMESPACE_AT(capacity_blocks),
                .help = "exact number of blocks; 0 is what capacity holds",
        },
        {
                .key = "policy",
                .type = UC_FIELD_STRING,
                .default_text = "lru",
                .offset = NAMESPACE_AT(policy),
                .help = "which block goes when room is needed",
        },
        {
                .key = "region_bytes",
                .type = UC_FIELD_BYTES,
                .default_text = "1GiB",
                .min = 4096,
                .max = (uint64_t)1 << 40,
                .offset = NAMESPACE_AT(region_bytes),
                .help = "largest piece of memory that is registered at once",
        },
        {
                .key = "align",
                .type = UC_FIELD_BYTES,
                .default_text = "64",
                .min = 64,
                .max = 2 << 20,
                .offset = NAMESPACE_AT(align_bytes),
                .help = "slots start at multiples of this, a power of two",
        },
};

enum {
    SERVER_FIELD_COUNT = sizeof(server_fields) / sizeof(server_fields[0]),
    NAMESPACE_FIELD_COUNT = sizeof(namespace_fields) / sizeof(namespace_fields[0]),
};

static_assert(
        (int)SERVER_FIELD_COUNT <= (int)UC_SERVER_KEYS_MAX, "UC_SERVER_KEYS_MAX is too small");
static_assert(
        (int)NAMESPACE_FIELD_COUNT <= (int)UC_SERVER_KEYS_MAX, "UC_SERVER_KEYS_MAX is too small");

static const char *const server_ignored[] = {"namespaces", NULL};
static const char *const namespace_ignored[] = {"policy_config", NULL};

static enum uc_status
apply_policy_config(
        const struct uc_dict *dict, const char *where, struct uc_namespace_config *config)
{
    const struct uc_dict *policy_config;
    enum uc_status status = uc_dict_get_dict(dict, "policy_config", &policy_config);

    if (status == UC_ERR_NOT_FOUND) {
        return UC_OK;
    }
    if (status != UC_OK) {
        return uc_error(UC_ERR_INVALID_PARAM, "%s: policy_config: must be a mapping", where);
    }

    return uc_dict_clone(policy_config, &config->policy_config);
}

static bool
has_control_characters(const char *text)
{
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text < 0x20 || *text == 0x7f) {
            return true;
        }
    }
    return false;
}

/* What the tables cannot say of one key alone. */
static enum uc_status
check_namespace(const struct uc_namespace_config *config, const char *where)
{
    size_t name_length = strlen(config->name);
    struct uc_arena_layout layout;
    char names[UC_FIELD_STRING_BYTES];

    if (name_length == 0 || name_length > UC_NAME_MAX) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "%s: namespaces.0.name has %zu bytes; 1 to %d are allowed", where, name_length,
                UC_NAME_MAX);
    }
    if (has_control_characters(config->name)) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "%s: namespaces.0.name has control characters; no client could say it", where);
    }
    if ((config->align_bytes & (config->align_bytes - 1)) != 0) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "%s: namespaces.0.align is %" PRIu64 "; it must be a power of two", where,
                config->align_bytes);
    }
    if (uc_policy_find(config->policy) == NULL) {
        uc_policy_names(names, sizeof(names));
        return uc_error(UC_ERR_INVALID_PARAM,
                "%s: namespaces.0.policy: '%s' is not known; known are %s", where, config->policy,
                names);
    }
    if (uc_arena_plan(config, &layout) != UC_OK) {
        return uc_error(UC_ERR_INVALID_PARAM, "%s: %s", where, uc_last_error());
    }

    return UC_OK;
}

static enum uc_status
apply_namespace(const struct uc_dict *dict, const char *where, struct uc_namespace_config *config)
{
    struct uc_dict *empty = NULL;
    const struct uc_dict *element;
    enum uc_status status;
    size_t count = 0;

    status = uc_dict_get_list_count(dict, "namespaces", &count);
    if (status != UC_OK && status != UC_ERR_NOT_FOUND) {
        return uc_error(UC_ERR_INVALID_PARAM, "%s: namespaces must be a list", where);
    }
    if (count > 1) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "%s:%u: namespaces has %zu elements; this server keeps one, start another for more",
                where, uc_dict_line(dict, "namespaces"), count);
    }

    if (count == 0) {
        status = uc_dict_create(&empty);
        element = empty;
    } else {
        status = uc_dict_get_dict_at(dict, "namespaces", 0, &element);
    }
    if (status == UC_OK) {
        status = uc_field_apply(
                namespace_fields, NAMESPACE_FIELD_COUNT, element, where, namespace_ignored, config);
    }
    if (status == UC_OK) {
        status = apply_policy_config(element, where, config);
    }
    uc_dict_destroy(empty);
    return status;
}

static enum uc_status
check_places(const struct uc_server_config *config, const char *where, const char *host)
{
    struct uc_fabric_place places[UC_FABRIC_PLACES_MAX];
    size_t count;
    enum uc_status status;

    status = uc_fabric_places_read(
            config->fabric_address, config->fabric_device, host, places, &count);
    return status == UC_OK ? UC_OK : uc_error(status, "%s: %s", where, uc_last_error());
}

enum uc_status
uc_server_config_apply(
        const struct uc_dict *dict, const char *where, struct uc_server_config *config_out)
{
    struct uc_server_config config;
    enum uc_status status;
    char host[UC_FIELD_STRING_BYTES];
    uint16_t port;

    memset(&config, 0, sizeof(config));
    status =
            uc_field_apply(server_fields, SERVER_FIELD_COUNT, dict, where, server_ignored, &config);
    if (status == UC_OK) {
        status = apply_namespace(dict, where, &config.name_space);
    }
    if (status == UC_OK) {
        status = check_namespace(&config.name_space, where);
    }
    if (status == UC_OK && has_control_characters(config.credential)) {
        status = uc_error(UC_ERR_INVALID_PARAM,
                "%s: credential has control characters; no client could say it", where);
    }
    if (status == UC_OK && uc_rpc_parse_address(config.listen, UC_SERVER_PORT_DEFAULT, host,
                                   sizeof(host), &port) != UC_OK) {
        status = uc_error(UC_ERR_INVALID_PARAM, "%s: listen: '%s' is not HOST:PORT or [IPV6]:PORT",
                where, config.listen);
    }
    if (status == UC_OK) {
        status = check_places(&config, where, host);
    }
    if (status != UC_OK) {
        uc_server_config_fini(&config);
        return status;
    }

    *config_out = config;
    return UC_OK;
}

size_t
uc_server_config_keys(bool of_namespace, const char **keys_out)
{
    const struct uc_field *fields = of_namespace ? namespace_fields : server_fields;
    size_t count = of_namespace ? NAMESPACE_FIELD_COUNT : SERVER_FIELD_COUNT;

    for (size_t idx = 0; idx < count; idx++) {
        keys_out[idx] = fields[idx].key;
    }
    return count;
}

void
uc_server_config_fini(struct uc_server_config *config)
{
    uc_dict_destroy(config->name_space.policy_config);
    config->name_space.policy_config = NULL;
}

static void
print_policy_config(const struct uc_dict *dict, FILE *file)
{
    (void)fprintf(file, "    policy_config:\n");
    for (size_t idx = 0; idx < uc_dict_count(dict); idx++) {
        const char *key = uc_dict_key_at(dict, idx);
        const char *text;
        int64_t number;
        double real;
        bool flag;

        if (uc_dict_get_int(dict, key, &number) == UC_OK) {
            (void)fprintf(file, "      %s: %" PRId64 "\n", key, number);
        } else if (uc_dict_get_bool(dict, key, &flag) == UC_OK) {
            (void)fprintf(file, "      %s: %s\n", key, flag ? "true" : "false");
        } else if (uc_dict_get_double(dict, key, &real) == UC_OK) {
            (void)fprintf(file, "      %s: %g\n", key, real);
        } else if (uc_dict_get_string(dict, key, &text) == UC_OK) {
            (void)fprintf(file, "      %s: \"%s\"\n", key, text);
        }
    }
}

void
uc_server_config_print(const struct uc_server_config *config, FILE *file)
{
    struct uc_server_config shown = *config;

    if (shown.credential[0] != '\0') {
        strcpy(shown.credential, "(set, not shown)");
    }
    uc_field_print(server_fields, SERVER_FIELD_COUNT, &shown, "", file);
    (void)fprintf(file, "namespaces:\n  -\n");
    uc_field_print(namespace_fields, NAMESPACE_FIELD_COUNT, &shown.name_space, "    ", file);
    if (config->name_space.policy_config != NULL) {
        print_policy_config(config->name_space.policy_config, file);
    }
}

void
uc_server_config_help(FILE *file)
{
    (void)fprintf(file,
            "usage: ucm-server [--config FILE] [--check-config] [--key=value]...\n"
            "\n"
            "Keeps blocks of one namespace in memory and serves them to ucm clients.\n"
            "Every key below is also a key of the YAML file; in names '-' and '_' are equal.\n"
            "\n"
            "  --config FILE   read this file first; the command line wins\n"
            "  --check-config  print the effective configuration and exit\n"
            "  --help          print this text\n"
            "  --version       print the version\n"
            "\n"
            "Server:\n");
    uc_field_print_help(server_fields, SERVER_FIELD_COUNT, file);
    (void)fprintf(file,
            "\nNamespace (in the file under namespaces:; here also --namespaces.0.KEY=value,\n"
            "and --namespace=NAME for the name):\n");
    uc_field_print_help(namespace_fields, NAMESPACE_FIELD_COUNT, file);
    (void)fprintf(
            file, "\nExit status: 0 stopped by a signal, 1 failure, 2 wrong configuration.\n");
}
