/* SPDX-License-Identifier: Apache-2.0 */

#include "client/stores/posix/describe.h"

#include <stdio.h>

#include <ucm/store.h>

static const char *const role_names[] = {"both", "scheduler", "worker"};

static int64_t
clamp(uint64_t value)
{
    return value > INT64_MAX ? INT64_MAX : (int64_t)value;
}

static enum uc_status
describe_texts(const struct uc_posix_env *env, const char *engine, struct uc_dict *description)
{
    char last_error[UC_POSIX_REASON_BYTES];
    const struct {
        const char *key;
        const char *text;
    } rows[] = {
            {"name", "posix"},
            {"version", UC_VERSION},
            {"node_path", env->config->node_path},
            {"role", role_names[env->config->role]},
            {"io", engine},
            {"fsync", env->config->fsync_text},
            {"last_error", last_error},
    };
    enum uc_status status = UC_OK;

    uc_mutex_lock(&env->health->lock);
    (void)snprintf(last_error, sizeof(last_error), "%s", env->health->last_error);
    uc_mutex_unlock(&env->health->lock);
    for (size_t idx = 0; idx < sizeof(rows) / sizeof(rows[0]) && status == UC_OK; idx++) {
        status = uc_dict_set_string(description, rows[idx].key, rows[idx].text);
    }
    for (size_t idx = 0; idx < env->config->root_count && status == UC_OK; idx++) {
        status = uc_dict_append_string(description, "root", env->config->roots[idx]);
    }
    return status;
}

static enum uc_status
describe_flags(const struct uc_posix_env *env, struct uc_dict *description)
{
    const struct {
        const char *key;
        bool value;
    } rows[] = {
            {"token_addressed", false},
            {"prefetchable", false},
            {"direct_io", env->config->direct_io},
            {"checksum", env->config->checksum},
            {"healthy", uc_posix_health_is_ok(env->health)},
    };
    enum uc_status status = UC_OK;

    for (size_t idx = 0; idx < sizeof(rows) / sizeof(rows[0]) && status == UC_OK; idx++) {
        status = uc_dict_set_bool(description, rows[idx].key, rows[idx].value);
    }
    return status;
}

static enum uc_status
describe_numbers(const struct uc_posix_env *env, struct uc_dict *description)
{
#define UC_POSIX_COUNTER_ROW_(name) \
    {#name, atomic_load_explicit(   \
                    &env->health->counters[UC_POSIX_COUNT_##name], memory_order_relaxed)},
    const struct {
        const char *key;
        uint64_t value;
    } rows[] = {{"abi_version", UC_STORE_ABI_VERSION}, {"shards", env->config->shards},
            {"capacity", env->config->capacity_bytes},
            {"capacity_blocks", env->config->capacity_blocks},
            UC_POSIX_COUNTER_MAP(UC_POSIX_COUNTER_ROW_)};
#undef UC_POSIX_COUNTER_ROW_
    enum uc_status status = UC_OK;

    for (size_t idx = 0; idx < sizeof(rows) / sizeof(rows[0]) && status == UC_OK; idx++) {
        status = uc_dict_set_int(description, rows[idx].key, clamp(rows[idx].value));
    }
    if (status == UC_OK && env->config->block_bytes != 0) {
        status = uc_dict_set_int(description, "block_bytes", clamp(env->config->block_bytes));
    }
    return status;
}

enum uc_status
uc_posix_describe(const struct uc_posix_env *env, const char *engine, struct uc_dict *description)
{
    enum uc_status status = describe_texts(env, engine, description);

    if (status == UC_OK) {
        status = describe_flags(env, description);
    }
    if (status == UC_OK) {
        status = describe_numbers(env, description);
    }
    return status;
}
