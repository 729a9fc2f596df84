/* SPDX-License-Identifier: Apache-2.0 */

/* ucm get KEY FILE: read one block back. */

#include <string.h>

#include "core/base/block_name.h"
#include "net/token_payload.h"
#include "tools/ucm/block_file.h"
#include "tools/ucm/command.h"
#include "tools/ucm/link.h"

/* The stored length of the token's only block: what the server said when it pinned it. */
static enum uc_status
stored_length(const struct uc_token *token, uint64_t *length_out)
{
    struct uc_token_view view;
    struct uc_token_entry entry;
    enum uc_status status =
            uc_token_payload_parse(token->payload, token->payload_bytes, token->key_count, &view);

    if (status != UC_OK) {
        return status;
    }

    uc_token_payload_entry(&view, 0, 0, &entry);
    *length_out = entry.length_bytes;
    return UC_OK;
}

/* The get window of one block; the caller frees the memory. */
static enum uc_status
get_block(
        struct uc_link *link, const struct uc_block_id *id, void **memory_out, uint64_t *length_out)
{
    struct uc_token *token = NULL;
    uint64_t length = 0;
    void *memory = NULL;
    enum uc_status status =
            uc_scheduler_prepare_get(link->scheduler, UC_LINK_REQUEST, id, 1, &token);

    if (status != UC_OK) {
        return status;
    }

    status = stored_length(token, &length);
    if (status == UC_OK) {
        status = uc_memory_alloc(length, &memory);
    }
    if (status == UC_OK) {
        status = uc_link_move(link, false, token, memory, length);
    }
    (void)uc_scheduler_complete_get(link->scheduler, UC_LINK_REQUEST);
    uc_token_destroy(token);
    if (status != UC_OK) {
        uc_memory_free(memory, length);
        return status;
    }

    *memory_out = memory;
    *length_out = length;
    return UC_OK;
}

enum uc_exit
uc_command_get(const struct uc_cli_options *options, char **arguments)
{
    struct uc_block_id id = uc_block_name_parse(arguments[0]);
    struct uc_link link = {0};
    char key[UC_BLOCK_NAME_BYTES];
    uint64_t length = 0;
    void *memory = NULL;
    enum uc_exit code = UC_EXIT_OK;
    enum uc_status status = uc_link_open(&link, options);

    if (status == UC_OK) {
        status = get_block(&link, &id, &memory, &length);
    }
    if (status == UC_OK) {
        status = uc_block_file_write(arguments[1], memory, length);
    }

    uc_block_name_format(&id, key);
    if (status != UC_OK) {
        code = uc_cli_fail("get", status);
    } else if (options->json && strcmp(arguments[1], "-") != 0) {
        /* Where the block itself goes to standard output, nothing else does. */
        uc_cli_print_json(json_pack("{s:s, s:I}", "key", key, "bytes", (json_int_t)length));
    }
    uc_link_close(&link);
    uc_memory_free(memory, length);
    return code;
}
