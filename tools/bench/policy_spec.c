/* SPDX-License-Identifier: Apache-2.0 */

#include "tools/bench/policy_spec.h"

#include <string.h>

#include "core/config/fields.h"

#define NAME_CHARACTERS          \
    "abcdefghijklmnopqrstuvwxyz" \
    "ABCDEFGHIJKLMNOPQRSTUVWXYZ" \
    "0123456789_-+.=:"

/* "key=value" pairs, separated by colons; cut up in place. */
static enum uc_status
read_parameters(char *pairs, struct uc_dict **dict_out)
{
    struct uc_dict *dict = NULL;
    enum uc_status status = uc_dict_create(&dict);
    char *rest = pairs;

    while (status == UC_OK && rest != NULL) {
        char *pair = strsep(&rest, ":");
        const char *equals = strchr(pair, '=');

        if (equals == NULL || equals == pair || equals[1] == '\0') {
            status = uc_error(UC_ERR_INVALID_PARAM, "policy: '%s' is not KEY=VALUE", pair);
        } else {
            status = uc_config_set_text(dict, pair);
        }
    }
    if (status != UC_OK) {
        uc_dict_destroy(dict);
        return status;
    }

    *dict_out = dict;
    return UC_OK;
}

enum uc_status
uc_policy_spec_take(const char **list, struct uc_policy_spec *spec_out)
{
    struct uc_policy_spec spec = {.parameters = NULL};
    size_t length = strcspn(*list, ",");
    enum uc_status status;
    char *colon;

    if (length == 0 || length >= sizeof(spec.text) || strspn(*list, NAME_CHARACTERS) < length) {
        return uc_error(UC_ERR_INVALID_PARAM,
                "policy: '%.*s' is not NAME or NAME:KEY=VALUE… of up to %zu letters and digits",
                length < sizeof(spec.text) ? (int)length : (int)sizeof(spec.text), *list,
                sizeof(spec.text) - 1);
    }

    memcpy(spec.text, *list, length);
    memcpy(spec.name, *list, length);
    colon = strchr(spec.name, ':');
    if (colon != NULL) {
        *colon = '\0';
        status = read_parameters(colon + 1, &spec.parameters);
        if (status != UC_OK) {
            return status;
        }
    }

    *list = (*list)[length] == ',' ? *list + length + 1 : NULL;
    *spec_out = spec;
    return UC_OK;
}

void
uc_policy_spec_fini(struct uc_policy_spec *spec)
{
    uc_dict_destroy(spec->parameters);
    spec->parameters = NULL;
}
