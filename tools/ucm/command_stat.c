/* SPDX-License-Identifier: Apache-2.0 */

/* ucm stat: the counters of a server. */

#include <inttypes.h>
#include <stdio.h>

#include "tools/ucm/command.h"
#include "tools/ucm/link.h"

enum uc_exit
uc_command_stat(const struct uc_cli_options *options, char **arguments)
{
    struct uc_stat_reply stat;
    json_t *object;
    enum uc_status status = uc_link_stat(options, &stat);

    (void)arguments;
    if (status != UC_OK) {
        return uc_cli_fail("stat", status);
    }
    if (!options->json) {
#define PRINT_FIELD(field) (void)printf("%-24s %" PRIu64 "\n", #field, stat.field);
        UC_STAT_MAP(PRINT_FIELD)
#undef PRINT_FIELD
        return UC_EXIT_OK;
    }

    object = json_object();
#define SET_FIELD(field) \
    (void)json_object_set_new(object, #field, json_integer((json_int_t)stat.field));
    UC_STAT_MAP(SET_FIELD)
#undef SET_FIELD
    uc_cli_print_json(object);
    return UC_EXIT_OK;
}
