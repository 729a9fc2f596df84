/* SPDX-License-Identifier: Apache-2.0 */

/* ucm exists KEY: is the block visible? */

#include <stdio.h>

#include "core/base/block_name.h"
#include "tools/ucm/command.h"
#include "tools/ucm/link.h"

enum uc_exit
uc_command_exists(const struct uc_cli_options *options, char **arguments)
{
    struct uc_block_id id = uc_block_name_parse(arguments[0]);
    struct uc_link link = {0};
    char key[UC_BLOCK_NAME_BYTES];
    uint8_t hit = 0;
    bool prefetch_needed = false;
    enum uc_exit code;
    enum uc_status status = uc_link_open(&link, options);

    if (status == UC_OK) {
        status = uc_scheduler_lookup(
                link.scheduler, UC_LINK_REQUEST, &id, 1, &hit, &prefetch_needed);
    }

    uc_block_name_format(&id, key);
    if (status != UC_OK) {
        code = uc_cli_fail("exists", status);
    } else {
        code = hit ? UC_EXIT_OK : UC_EXIT_NOT_FOUND;
        if (options->json) {
            uc_cli_print_json(json_pack("{s:s, s:b}", "key", key, "exists", hit != 0));
        } else {
            (void)printf("%s %s\n", hit ? "present" : "absent", key);
        }
    }
    uc_link_close(&link);
    return code;
}
