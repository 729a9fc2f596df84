/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A process that is killed while it writes, and one that checks what is left:
 *
 *     ucm-test-posix write ROOT FIRST [key=value ...]    prints each number whose block is stored
 *     ucm-test-posix check ROOT FIRST COUNT [key=value ...]
 *
 * `check` prints a 1 or a 0 per block, after it compared those that are there. Exit status 1 if one differs.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/stores/posix/store.h"
#include "core/config/fields.h"
#include "test/unit/client/posix/posix_env.h"

enum {
    BLOCK = 300000,
    PART = 100000,
};

static struct uc_store *
open_store(const char *root, char **settings)
{
    struct uc_dict *config = NULL;
    struct uc_store *store = uc_posix_store_create();
    enum uc_status status = store == NULL ? UC_ERR_OUT_OF_MEMORY : uc_dict_create(&config);

    if (status == UC_OK) {
        status = uc_dict_set_string(config, "root", root);
    }
    if (status == UC_OK) {
        status = uc_dict_set_int(config, "block_bytes", BLOCK);
    }
    for (size_t idx = 0; status == UC_OK && settings[idx] != NULL; idx++) {
        status = uc_config_set_text(config, settings[idx]);
    }
    if (status == UC_OK) {
        status = uc_store_setup(store, config);
    }
    uc_dict_destroy(config);
    if (status != UC_OK) {
        (void)fprintf(stderr, "ucm-test-posix: %s\n", uc_last_error());
        exit(2);
    }
    return store;
}

/* Every third block comes in parts. */
static int
write_blocks(struct uc_store *store, uint64_t first)
{
    for (uint64_t number = first;; number++) {
        uint64_t piece = number % 3 == 0 ? PART : BLOCK;

        for (uint64_t offset = 0; offset < BLOCK; offset += piece) {
            if (env_dump(store, number, offset, piece) != UC_OK) {
                return 1;
            }
        }
        if (printf("%llu\n", (unsigned long long)number) < 0 || fflush(stdout) != 0) {
            return 1;
        }
    }
}

static int
check_blocks(struct uc_store *store, uint64_t first, uint64_t count)
{
    int failed = 0;

    for (uint64_t number = first; number < first + count; number++) {
        bool present = env_is_present(store, number);

        /* A load that succeeds was compared; one that does not found a file that should not be. */
        if (present && env_load(store, number, 0, BLOCK) != UC_OK) {
            (void)fprintf(stderr, "block %llu is there and damaged\n", (unsigned long long)number);
            failed = 1;
        }
        (void)putchar(present ? '1' : '0');
    }
    (void)putchar('\n');
    return failed;
}

int
main(int argc, char **argv)
{
    struct uc_store *store;
    int exit_status;

    if (argc >= 4 && strcmp(argv[1], "write") == 0) {
        store = open_store(argv[2], argv + 4);
        exit_status = write_blocks(store, strtoull(argv[3], NULL, 10));
    } else if (argc >= 5 && strcmp(argv[1], "check") == 0) {
        store = open_store(argv[2], argv + 5);
        exit_status = check_blocks(store, strtoull(argv[3], NULL, 10), strtoull(argv[4], NULL, 10));
    } else {
        (void)fprintf(stderr, "usage: ucm-test-posix write ROOT FIRST | check ROOT FIRST COUNT\n");
        return 2;
    }
    uc_posix_store_destroy(store);
    return exit_status;
}
