/* SPDX-License-Identifier: Apache-2.0 */

/* ucm put KEY FILE: store one block. */

#include <stdio.h>
#include <string.h>

#include "core/base/block_name.h"
#include "tools/ucm/block_file.h"
#include "tools/ucm/command.h"
#include "tools/ucm/link.h"

/* The put window of one block. @p present_out: it was there already, nothing moved. */
static enum uc_status
put_block(struct uc_link *link, const struct uc_block_id *id, void *memory, uint64_t length,
        bool *present_out)
{
    struct uc_token *token = NULL;
    uint8_t hit = 0;
    bool prefetch_needed = false;
    enum uc_status status =
            uc_scheduler_lookup(link->scheduler, UC_LINK_REQUEST, id, 1, &hit, &prefetch_needed);
    enum uc_status conclusion;

    if (status == UC_OK) {
        status = uc_scheduler_prepare_put(link->scheduler, UC_LINK_REQUEST, id, 1, &token);
    }
    if (status != UC_OK) {
        return status;
    }

    status = uc_link_move(link, true, token, memory, length);
    conclusion = uc_scheduler_complete_put(link->scheduler, UC_LINK_REQUEST, status == UC_OK);
    uc_token_destroy(token);
    *present_out = hit != 0;
    return status != UC_OK ? status : conclusion;
}

enum uc_exit
uc_command_put(const struct uc_cli_options *options, char **arguments)
{
    struct uc_block_id id = uc_block_name_parse(arguments[0]);
    struct uc_link link = {0};
    char key[UC_BLOCK_NAME_BYTES];
    uint64_t length = 0;
    void *memory = NULL;
    bool present = false;
    enum uc_exit code = UC_EXIT_OK;
    enum uc_status status = uc_link_open(&link, options);

    if (status == UC_OK) {
        status = uc_block_file_read(arguments[1], link.block_bytes, &memory, &length);
    }
    if (status == UC_OK) {
        status = put_block(&link, &id, memory, length, &present);
    }

    uc_block_name_format(&id, key);
    if (status != UC_OK) {
        code = uc_cli_fail("put", status);
    } else if (options->json) {
        uc_cli_print_json(json_pack(
                "{s:s, s:I, s:b}", "key", key, "bytes", (json_int_t)length, "present", present));
    } else {
        (void)printf("%s %s %llu bytes\n", present ? "present" : "stored", key,
                (unsigned long long)length);
    }
    uc_memory_free(memory, link.block_bytes);
    uc_link_close(&link);
    return code;
}
