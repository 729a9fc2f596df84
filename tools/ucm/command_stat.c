/* SPDX-License-Identifier: Apache-2.0 */

/* ucm stat: the counters of a server. */

#include <inttypes.h>
#include <stdio.h>

#include "tools/common/stat_json.h"
#include "tools/ucm/command.h"
#include "tools/ucm/link.h"

enum uc_exit
uc_command_stat(const struct uc_cli_options *options, char **arguments)
{
    struct uc_stat_reply stat;
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

    uc_cli_print_json(uc_stat_json(&stat));
    return UC_EXIT_OK;
}
