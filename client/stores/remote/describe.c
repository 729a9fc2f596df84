/* SPDX-License-Identifier: Apache-2.0 */

#include "client/stores/remote/describe.h"

#include <inttypes.h>
#include <stdio.h>

#include <ucm/store.h>

enum {
    HEX_BYTES = 2 * UC_SERVER_ID_BYTES + 1,
};

static const char *const role_names[] = {"both", "scheduler", "worker"};

static int64_t
clamp(uint64_t value)
{
    return value > INT64_MAX ? INT64_MAX : (int64_t)value;
}

static enum uc_status
describe_texts(const struct uc_remote_facts *facts, struct uc_dict *description)
{
    char incarnation[HEX_BYTES];
    char server_id[HEX_BYTES];
    const struct {
        const char *key;
        const char *text;
    } rows[] = {
            {"name", "remote"},
            {"version", UC_VERSION},
            {"node_path", facts->config->node_path},
            {"role", role_names[facts->config->role]},
            {"namespace", facts->config->name_space},
            {"fabric", facts->fabric == NULL ? "" : facts->fabric},
            {"incarnation", incarnation},
            {"server_id", server_id},
    };
    enum uc_status status = UC_OK;

    (void)snprintf(incarnation, sizeof(incarnation), "%016" PRIx64, facts->hello.incarnation);
    for (size_t idx = 0; idx < UC_SERVER_ID_BYTES; idx++) {
        (void)snprintf(server_id + 2 * idx, 3, "%02x", facts->hello.server_id[idx]);
    }
    for (size_t idx = 0; idx < sizeof(rows) / sizeof(rows[0]) && status == UC_OK; idx++) {
        status = uc_dict_set_string(description, rows[idx].key, rows[idx].text);
    }
    return status;
}

/* `servers` in the order of the list, `servers_down` those out of reach now. */
static enum uc_status
describe_servers(const struct uc_remote_facts *facts, struct uc_dict *description)
{
    const struct uc_server_list *servers = &facts->config->servers;
    enum uc_status status = UC_OK;
    int64_t down_count = 0;

    for (size_t idx = 0; idx < servers->count && status == UC_OK; idx++) {
        const char *name = servers->servers[idx].name;

        status = uc_dict_append_string(description, "servers", name);
        if (status == UC_OK && !facts->reaches(facts->reaches_context, idx)) {
            down_count++;
            status = uc_dict_append_string(description, "servers_down", name);
        }
    }
    return status != UC_OK ? status
                           : uc_dict_set_int(description, "servers_down_count", down_count);
}

static enum uc_status
describe_flags(const struct uc_remote_facts *facts, struct uc_dict *description)
{
    const struct {
        const char *key;
        bool value;
    } rows[] = {
            {"token_addressed", true},
            {"prefetchable", false},
            {"checksum", facts->config->checksum},
            {"connected", facts->connected},
            {"healthy", facts->healthy},
    };
    enum uc_status status = UC_OK;

    for (size_t idx = 0; idx < sizeof(rows) / sizeof(rows[0]) && status == UC_OK; idx++) {
        status = uc_dict_set_bool(description, rows[idx].key, rows[idx].value);
    }
    return status;
}

static enum uc_status
describe_numbers(const struct uc_remote_facts *facts, struct uc_dict *description)
{
#define UC_PLANE_COUNTER_ROW_(field) {#field, facts->counters.field},
    const struct {
        const char *key;
        uint64_t value;
    } rows[] = {{"abi_version", UC_STORE_ABI_VERSION}, {"block_bytes", facts->hello.block_bytes},
            {"sessions", facts->session_count}, UC_PLANE_COUNTER_MAP(UC_PLANE_COUNTER_ROW_)};
#undef UC_PLANE_COUNTER_ROW_
    enum uc_status status = UC_OK;

    for (size_t idx = 0; idx < sizeof(rows) / sizeof(rows[0]) && status == UC_OK; idx++) {
        status = uc_dict_set_int(description, rows[idx].key, clamp(rows[idx].value));
    }
    return status;
}

enum uc_status
uc_remote_describe(const struct uc_remote_facts *facts, struct uc_dict *description)
{
    enum uc_status status = describe_texts(facts, description);

    if (status == UC_OK) {
        status = describe_servers(facts, description);
    }
    if (status == UC_OK) {
        status = describe_flags(facts, description);
    }
    if (status == UC_OK) {
        status = describe_numbers(facts, description);
    }
    return status;
}
