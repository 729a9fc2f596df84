/* SPDX-License-Identifier: Apache-2.0 */

#include "test/unit/client/posix/posix_env.h"

#include <ftw.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/stores/posix/store.h"
#include "core/config/fields.h"

char env_folder[ENV_PATH_BYTES];

/* Not of Check: ucm-test-posix has no suite. */
#define require(condition)                                                                    \
    do {                                                                                      \
        if (!(condition)) {                                                                   \
            (void)fprintf(stderr, "%s:%d: not so: %s (%s)\n", __FILE__, __LINE__, #condition, \
                    uc_last_error());                                                         \
            abort();                                                                          \
        }                                                                                     \
    } while (0)

static uint64_t next_job_id = 1u << 20;
static const char *wanted_part;
static size_t found_count;

void
env_setup(void)
{
    (void)snprintf(env_folder, sizeof(env_folder), "posix-test-XXXXXX"); /* where the test runs */
    require(mkdtemp(env_folder) != NULL);
}

static int
remove_one(const char *path, const struct stat *facts, int type, struct FTW *where)
{
    (void)facts;
    (void)type;
    (void)where;
    return remove(path);
}

void
env_teardown(void)
{
    (void)nftw(env_folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

struct uc_dict *
env_config(const char *const *settings)
{
    struct uc_dict *config = NULL;

    require(uc_dict_create(&config) == UC_OK);
    require(uc_dict_set_string(config, "root", env_folder) == UC_OK);
    for (size_t idx = 0; settings != NULL && settings[idx] != NULL; idx++) {
        require(uc_config_set_text(config, settings[idx]) == UC_OK);
    }
    return config;
}

struct uc_store *
env_open(const char *const *settings)
{
    struct uc_dict *config = env_config(settings);
    struct uc_store *store = uc_posix_store_create();

    require(store != NULL);
    require(uc_store_setup(store, config) == UC_OK);
    uc_dict_destroy(config);
    return store;
}

enum uc_status
env_open_status(const char *const *settings)
{
    struct uc_dict *config = env_config(settings);
    struct uc_store *store = uc_posix_store_create();
    enum uc_status status;

    require(store != NULL);
    status = uc_store_setup(store, config);
    uc_posix_store_destroy(store);
    uc_dict_destroy(config);
    return status;
}

const char *
env_engine(int idx)
{
    static const char *const ring[] = {"io=uring", NULL};

    if (idx == 0) {
        return "io=threads";
    }
    if (env_open_status(ring) == UC_ERR_UNSUPPORTED) {
        (void)fprintf(stderr, "SKIP: %s\n", uc_last_error());
        return "io=threads";
    }
    return ring[0];
}

static uint64_t
mix(uint64_t value)
{
    value += 0x9e3779b97f4a7c15ull;
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9ull;
    value = (value ^ value >> 27) * 0x94d049bb133111ebull;
    return value ^ value >> 31;
}

struct uc_block_id
env_id(uint64_t number)
{
    struct uc_block_id id;
    uint64_t halves[2] = {mix(number), mix(~number)};

    memcpy(id.bytes, halves, sizeof(id.bytes));
    return id;
}

void
env_fill(uint64_t number, uint64_t offset, uint8_t *bytes, size_t length)
{
    for (size_t at = 0; at < length; at++) {
        uint64_t position = offset + at;

        bytes[at] = (uint8_t)(mix(number * 1000003 + position / 8) >> (position % 8 * 8));
    }
}

bool
env_matches(uint64_t number, uint64_t offset, const uint8_t *bytes, size_t length)
{
    uint8_t expected[512];

    for (size_t at = 0; at < length; at += sizeof(expected)) {
        size_t piece = length - at < sizeof(expected) ? length - at : sizeof(expected);

        env_fill(number, offset + at, expected, piece);
        if (memcmp(expected, bytes + at, piece) != 0) {
            return false;
        }
    }

    return true;
}

enum uc_status
env_submit(struct uc_store *store, bool is_dump, uint64_t job_id, uint64_t number, uint64_t offset,
        uint8_t *bytes, uint64_t length)
{
    struct uc_block_id id = env_id(number);
    void *pointer = bytes;
    struct uc_block_payload payload = {
            .pointers = &pointer, .sizes = &length, .pointer_count = 1, .block_offset = offset};
    struct uc_job_descriptor job = {.block_ids = &id, .payloads = &payload, .count = 1};

    return is_dump ? uc_store_dump(store, job_id, &job) : uc_store_load(store, job_id, &job);
}

enum uc_status
env_wait(struct uc_store *store, uint64_t job_id)
{
    struct uc_io_result result = {0};
    size_t count = 0;
    enum uc_status status = uc_store_wait(store, &job_id, 1, ENV_WAIT_MS, &result, 1, &count);

    require(status == UC_OK);
    require(count == 1);
    status = result.code;
    uc_io_results_release(&result, 1);
    return status;
}

enum uc_status
env_dump(struct uc_store *store, uint64_t number, uint64_t offset, uint64_t length)
{
    uint8_t *bytes = malloc(length + 1);
    uint64_t job_id = next_job_id++;
    enum uc_status status;

    require(bytes != NULL);
    env_fill(number, offset, bytes, length);
    status = env_submit(store, true, job_id, number, offset, bytes, length);
    if (status == UC_OK) {
        status = env_wait(store, job_id);
    }
    free(bytes);
    return status;
}

enum uc_status
env_load(struct uc_store *store, uint64_t number, uint64_t offset, uint64_t length)
{
    uint8_t *bytes = malloc(length + 1);
    uint64_t job_id = next_job_id++;
    enum uc_status status;

    require(bytes != NULL);
    memset(bytes, 0xee, length + 1);
    status = env_submit(store, false, job_id, number, offset, bytes, length);
    if (status == UC_OK) {
        status = env_wait(store, job_id);
    }
    if (status == UC_OK) {
        require(env_matches(number, offset, bytes, length));
    }
    require(bytes[length] == 0xee);
    free(bytes);
    return status;
}

bool
env_is_present(struct uc_store *store, uint64_t number)
{
    struct uc_block_id id = env_id(number);
    uint8_t hit = 9;

    require(uc_store_lookup(store, &id, 1, &hit) == UC_OK);
    return hit != 0;
}

void
env_block_path(const char *folder, uint64_t number, char *path)
{
    struct uc_block_id id = env_id(number);
    char hex[2 * UC_BLOCK_ID_BYTES + 1];

    for (size_t idx = 0; idx < UC_BLOCK_ID_BYTES; idx++) {
        (void)snprintf(hex + 2 * idx, 3, "%02x", id.bytes[idx]);
    }
    (void)snprintf(path, ENV_PATH_BYTES, "%.500s/%c/%c/%s", folder, hex[0], hex[1], hex);
}

static int
count_one(const char *path, const struct stat *facts, int type, struct FTW *where)
{
    (void)facts;
    (void)where;
    if (type == FTW_F && strstr(path, wanted_part) != NULL) {
        found_count++;
    }
    return 0;
}

size_t
env_count_files(const char *folder, const char *part)
{
    wanted_part = part;
    found_count = 0;
    (void)nftw(folder, count_one, 16, FTW_PHYS);
    return found_count;
}

void
env_forbid(int call, int error)
{
    struct sock_filter filter[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, 1),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)error),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof(filter) / sizeof(filter[0]), .filter = filter};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
            prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        perror("seccomp");
        _exit(3);
    }
}

int64_t
env_number(struct uc_store *store, const char *key)
{
    struct uc_dict *description = NULL;
    int64_t number = -1;

    require(uc_dict_create(&description) == UC_OK);
    require(uc_store_describe(store, description) == UC_OK);
    require(uc_dict_get_int(description, key, &number) == UC_OK);
    uc_dict_destroy(description);
    return number;
}
