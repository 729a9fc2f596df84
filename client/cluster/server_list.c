/* SPDX-License-Identifier: Apache-2.0 */

#include "client/cluster/server_list.h"

#include <stdlib.h>
#include <string.h>

#include "net/rpc/connection.h"

enum uc_status
uc_server_address_parse(const char *text, struct uc_server_address *address_out)
{
    struct uc_server_address address = {.port = 0};
    size_t length = strlen(text);
    enum uc_status status;

    if (length == 0 || length > UC_SERVER_NAME_MAX) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "server \"%.64s\": the address is %s; write HOST:PORT", text,
                length == 0 ? "empty" : "longer than 255 bytes");
    }

    memcpy(address.name, text, length + 1);
    if (text[0] == '/') {
        memcpy(address.host, text, length + 1);
    } else {
        status = uc_rpc_parse_address(
                text, UC_SERVER_PORT_DEFAULT, address.host, sizeof(address.host), &address.port);
        if (status != UC_OK) {
            return status;
        }
        if (address.host[0] == '\0' || address.port == 0) {
            return uc_error(UC_ERR_INVALID_PARAM,
                    "server \"%s\": host or port is missing; write HOST:PORT", text);
        }
    }

    *address_out = address;
    return UC_OK;
}

/* Cut "=WEIGHT" off the end of a text. Other texts behind a "=" belong to the address (of a socket). */
static enum uc_status
split_weight(char *text, uint32_t *weight_out)
{
    char *equals = strrchr(text, '=');
    size_t digits = equals == NULL ? 0 : strspn(equals + 1, "0123456789");
    unsigned long weight;

    *weight_out = 1;
    if (digits == 0 || equals[1 + digits] != '\0') {
        return UC_OK;
    }

    weight = digits > 5 ? 0 : strtoul(equals + 1, NULL, 10);
    if (weight == 0 || weight > UC_PLACEMENT_WEIGHT_MAX) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "server \"%s\": the weight behind \"=\" must be from 1 to %d", text,
                UC_PLACEMENT_WEIGHT_MAX);
    }

    *equals = '\0';
    *weight_out = (uint32_t)weight;
    return UC_OK;
}

static enum uc_status
list_append(struct uc_server_list *list, const char *text)
{
    struct uc_server_address *address = &list->servers[list->count];
    char name[UC_SERVER_NAME_MAX + sizeof("=65535")];
    uint32_t weight = 1;
    enum uc_status status = UC_OK;

    if (strlen(text) < sizeof(name)) {
        memcpy(name, text, strlen(text) + 1);
        status = split_weight(name, &weight);
        text = name;
    }
    if (status == UC_OK) {
        status = uc_server_address_parse(text, address);
    }
    if (status != UC_OK) {
        return status;
    }
    if (uc_server_list_find(list, address->name, strlen(address->name)) != SIZE_MAX) {
        return uc_error(UC_ERR_INVALID_PARAM, "server \"%s\" is listed twice", text);
    }

    list->members[list->count] = uc_placement_member_init(address->name, weight);
    list->count++;
    return UC_OK;
}

static enum uc_status
read_elements(
        const struct uc_dict *config, const char *key, size_t count, struct uc_server_list *list)
{
    for (size_t idx = 0; idx < count; idx++) {
        const char *text = NULL;
        enum uc_status status = uc_dict_get_string_at(config, key, idx, &text);

        if (status == UC_OK) {
            status = list_append(list, text);
        }
        if (status != UC_OK) {
            return status;
        }
    }

    return UC_OK;
}

enum uc_status
uc_server_list_read(const struct uc_dict *config, const char *key, struct uc_server_list *list_out)
{
    struct uc_server_list list = {.count = 0};
    enum uc_dict_type type = UC_DICT_LIST;
    enum uc_status status = uc_dict_get_type(config, key, &type);
    const char *single = NULL;
    size_t count = 1;

    if (status != UC_OK) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "%s is missing: list the servers, e.g. %s: [\"10.0.0.1:7470\"]", key, key);
    }
    if (type == UC_DICT_STRING) {
        status = uc_dict_get_string(config, key, &single);
    } else {
        status = uc_dict_get_list_count(config, key, &count);
    }
    if (status != UC_OK) {
        return status;
    }
    if (count == 0 || count > UC_SERVERS_MAX) {
        return uc_error(UC_ERR_INVALID_PARAM, "%s lists %zu servers; 1 to %d are possible", key,
                count, UC_SERVERS_MAX);
    }

    list.servers = calloc(count, sizeof(list.servers[0]));
    list.members = calloc(count, sizeof(list.members[0]));
    if (list.servers == NULL || list.members == NULL) {
        uc_server_list_fini(&list);
        return uc_error(UC_ERR_OUT_OF_MEMORY, "%s: no memory for %zu addresses", key, count);
    }

    status = single != NULL ? list_append(&list, single) : read_elements(config, key, count, &list);
    if (status != UC_OK) {
        uc_server_list_fini(&list);
        return status;
    }

    list.view = uc_placement_view_init(list.members, list.count);
    *list_out = list;
    return UC_OK;
}

void
uc_server_list_fini(struct uc_server_list *list)
{
    free(list->servers);
    free(list->members);
    list->servers = NULL;
    list->members = NULL;
    list->count = 0;
}

size_t
uc_server_list_find(const struct uc_server_list *list, const char *name, size_t length)
{
    for (size_t idx = 0; idx < list->count; idx++) {
        const char *known = list->servers[idx].name;

        if (strlen(known) == length && memcmp(known, name, length) == 0) {
            return idx;
        }
    }

    return SIZE_MAX;
}

size_t
uc_server_list_place(const struct uc_server_list *list, const struct uc_block_id *key)
{
    return uc_placement_place(&list->view, key);
}
