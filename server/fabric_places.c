/* SPDX-License-Identifier: Apache-2.0 */

#include "server/fabric_places.h"

#include <stdio.h>
#include <string.h>

/* Takes the next member off the text, without the spaces around it. @return false at the end */
static bool
take_member(const char **text, char member_out[UC_FIELD_STRING_BYTES])
{
    const char *begin = *text;
    size_t length;

    if (begin == NULL) {
        return false;
    }

    length = strcspn(begin, ",");
    *text = begin[length] == ',' ? begin + length + 1 : NULL;
    while (length > 0 && *begin == ' ') {
        begin++;
        length--;
    }
    while (length > 0 && begin[length - 1] == ' ') {
        length--;
    }
    (void)snprintf(member_out, UC_FIELD_STRING_BYTES, "%.*s", (int)length, begin);
    return true;
}

static enum uc_status
check_member(const char *key, const char *list, const char *member, size_t idx)
{
    if (member[0] == '\0') {
        return uc_error(UC_ERR_INVALID_PARAM, "%s: \"%s\" has an empty member", key, list);
    }
    if (idx >= UC_FABRIC_PLACES_MAX) {
        return uc_error(UC_ERR_INVALID_PARAM, "%s: \"%s\" has more than %d members", key, list,
                UC_FABRIC_PLACES_MAX);
    }
    return UC_OK;
}

enum uc_status
uc_fabric_places_read(const char *addresses, const char *devices, const char *host,
        struct uc_fabric_place places_out[UC_FABRIC_PLACES_MAX], size_t *count_out)
{
    struct uc_fabric_place places[UC_FABRIC_PLACES_MAX] = {{.address = ""}};
    const char *rest = addresses[0] == '\0' ? NULL : addresses;
    char member[UC_FIELD_STRING_BYTES];
    size_t device_count = 0;
    size_t count = 0;
    enum uc_status status = UC_OK;

    while (status == UC_OK && take_member(&rest, member)) {
        status = check_member("fabric_address", addresses, member, count);
        if (status == UC_OK) {
            memcpy(places[count].address, member, sizeof(member));
            memcpy(places[count].told, member, sizeof(member));
            count++;
        }
    }
    if (count == 0) {
        (void)snprintf(places[0].address, sizeof(places[0].address), "%s", host);
        count = 1;
    }

    rest = devices[0] == '\0' ? NULL : devices;
    while (status == UC_OK && take_member(&rest, member)) {
        status = check_member("fabric_device", devices, member, device_count);
        if (status == UC_OK) {
            memcpy(places[device_count].device, member, sizeof(member));
            device_count++;
        }
    }
    if (status == UC_OK && device_count > count) {
        status = uc_error(UC_ERR_INVALID_PARAM,
                "fabric_device names %zu devices, fabric_address %zu: each device needs an address of "
                "its own, where peers reach it",
                device_count, addresses[0] == '\0' ? (size_t)0 : count);
    }
    if (status == UC_OK) {
        memcpy(places_out, places, sizeof(places));
        *count_out = count;
    }
    return status;
}
