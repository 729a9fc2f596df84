/* SPDX-License-Identifier: Apache-2.0 */

#include "tools/ucm/block_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <ucm/worker.h>

static FILE *
open_file(const char *path, const char *mode, FILE *standard)
{
    return strcmp(path, "-") == 0 ? standard : fopen(path, mode);
}

static enum uc_status
close_file(FILE *file, FILE *standard)
{
    if (file == standard) {
        return fflush(file) == 0 ? UC_OK : UC_ERR_OS_API;
    }

    return fclose(file) == 0 ? UC_OK : UC_ERR_OS_API;
}

enum uc_status
uc_block_file_read(const char *path, uint64_t length_max, void **memory_out, uint64_t *length_out)
{
    FILE *file = open_file(path, "rb", stdin);
    enum uc_status status;
    uint64_t length;
    void *memory;
    bool more;

    if (file == NULL) {
        return uc_error(UC_ERR_OS_API, "cannot open %s: %s", path, strerror(errno));
    }

    status = uc_memory_alloc(length_max, &memory);
    if (status != UC_OK) {
        goto out_close;
    }

    length = fread(memory, 1, length_max, file);
    more = length == length_max && fgetc(file) != EOF;
    if (ferror(file)) {
        status = uc_error(UC_ERR_OS_API, "cannot read %s: %s", path, strerror(errno));
    } else if (length == 0) {
        status = uc_error(UC_ERR_INVALID_PARAM, "%s is empty; a block has at least one byte", path);
    } else if (more) {
        status = uc_error(UC_ERR_INVALID_PARAM,
                "%s is longer than a block of this namespace (%" PRIu64 " bytes)", path,
                length_max);
    }
    if (status != UC_OK) {
        uc_memory_free(memory, length_max);
        goto out_close;
    }

    *memory_out = memory;
    *length_out = length;

out_close:
    (void)close_file(file, stdin);
    return status;
}

enum uc_status
uc_block_file_write(const char *path, const void *memory, uint64_t length)
{
    FILE *file = open_file(path, "wb", stdout);
    bool good;

    if (file == NULL) {
        return uc_error(UC_ERR_OS_API, "cannot open %s: %s", path, strerror(errno));
    }

    good = fwrite(memory, 1, length, file) == length;
    if (close_file(file, stdout) != UC_OK || !good) {
        return uc_error(UC_ERR_OS_API, "cannot write %s: %s", path, strerror(errno));
    }

    return UC_OK;
}
