/* SPDX-License-Identifier: Apache-2.0 */

#include "tools/bench/store_limit.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static bool
is_text(const struct uc_dict *dict, const char *key, const char *wanted)
{
    const char *text = "";

    return uc_dict_get_string(dict, key, &text) == UC_OK && strcmp(text, wanted) == 0;
}

/* "on" is a text to some readers of YAML and a boolean to others. */
static bool
is_on(const struct uc_dict *dict, const char *key)
{
    bool flag = false;

    return is_text(dict, key, "on") || (uc_dict_get_bool(dict, key, &flag) == UC_OK && flag);
}

static void
set_both(struct uc_store_limits *limits, enum uc_store_limit_kind kind, const char *reason)
{
    limits->put = (struct uc_store_limit){.kind = kind, .reason = reason};
    limits->get = limits->put;
}

/* The directory of a store with one root, as text or as a list of one. */
static const char *
only_root(const struct uc_dict *config)
{
    const char *root = NULL;
    size_t count = 0;

    if (uc_dict_get_list_count(config, "root", &count) == UC_OK) {
        return count == 1 && uc_dict_get_string_at(config, "root", 0, &root) == UC_OK ? root : NULL;
    }
    return uc_dict_get_string(config, "root", &root) == UC_OK ? root : NULL;
}

static void
find_posix(const struct uc_dict *config, struct uc_store_limits *limits)
{
    const char *root = only_root(config);

    if (!is_on(config, "direct_io")) {
        set_both(limits, UC_STORE_LIMIT_NONE,
                "direct_io is off: the page cache is measured, not the medium");
    } else if (root == NULL || strlen(root) >= sizeof(limits->medium)) {
        set_both(limits, UC_STORE_LIMIT_NONE,
                "several roots: the limit of one medium says nothing about all of them");
    } else {
        set_both(limits, UC_STORE_LIMIT_MEDIUM, NULL);
        (void)snprintf(limits->medium, sizeof(limits->medium), "%s", root);
    }
}

static void
find_store(const struct uc_dict *topology, struct uc_store_limits *limits)
{
    const struct uc_dict *config = NULL;

    (void)!uc_dict_get_dict(topology, "config", &config);
    if (is_text(topology, "store", "cache")) {
        set_both(limits, UC_STORE_LIMIT_MEMORY, NULL);
    } else if (is_text(topology, "store", "posix")) {
        find_posix(config, limits);
    } else if (is_text(topology, "store", "remote")) {
        set_both(limits, UC_STORE_LIMIT_NONE,
                "remote: the limit is the network's; measure it with ib_read_bw or iperf3");
    } else {
        set_both(limits, UC_STORE_LIMIT_NONE, "no limit is known for this store");
    }
}

/* Blocks that were just put lie in the first tier. What is written through goes on in the background. */
static void
find_pipe(const struct uc_dict *topology, struct uc_store_limits *limits)
{
    const struct uc_dict *first = NULL;
    const struct uc_dict *config = NULL;

    if (uc_dict_get_dict_at(topology, "stores", 0, &first) != UC_OK) {
        return;
    }
    find_store(first, limits);
    if (uc_dict_get_dict(first, "config", &config) == UC_OK &&
            is_text(config, "write", "through")) {
        limits->put = (struct uc_store_limit){.kind = UC_STORE_LIMIT_NONE,
                .reason = "write: through: the tiers below share memory and processors"};
    }
}

void
uc_store_limits_find(const struct uc_dict *topology, struct uc_store_limits *limits_out)
{
    struct uc_store_limits limits = {.medium = ""};

    set_both(&limits, UC_STORE_LIMIT_NONE, "peer: the blocks are spread over several stores");
    if (is_text(topology, "type", "store")) {
        find_store(topology, &limits);
    } else if (is_text(topology, "type", "pipe")) {
        find_pipe(topology, &limits);
    }
    *limits_out = limits;
}
