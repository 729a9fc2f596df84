/* SPDX-License-Identifier: Apache-2.0 */

#include "tools/common/stat_json.h"

json_t *
uc_stat_json(const struct uc_stat_reply *stat)
{
    json_t *object = json_object();

#define SET_FIELD_(field) \
    (void)json_object_set_new(object, #field, json_integer((json_int_t)stat->field));
    UC_STAT_MAP(SET_FIELD_)
#undef SET_FIELD_
    return object;
}
