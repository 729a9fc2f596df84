/* SPDX-License-Identifier: Apache-2.0 */

#include "server/memory_limit.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PATH_BYTES = 4096,
    LINE_BYTES = 4096
};

static void
lower(struct uc_memory_limit *limit, uint64_t available_bytes, const char *what, const char *where)
{
    if (available_bytes < limit->available_bytes) {
        limit->available_bytes = available_bytes;
        (void)snprintf(limit->source, sizeof(limit->source), "%s %.200s", what, where);
    }
}

/* A file that holds one number, or "max". False if there is none. */
static bool
read_number(const char *path, uint64_t *value_out)
{
    FILE *file = fopen(path, "re");
    char line[64];
    char *end;
    bool found = false;

    if (file == NULL) {
        return false;
    }
    if (fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, "max", 3) == 0) {
            *value_out = UINT64_MAX;
            found = true;
        } else {
            errno = 0;
            *value_out = strtoull(line, &end, 10);
            found = end != line && errno == 0;
        }
    }
    (void)fclose(file);
    return found;
}

static void
read_meminfo(const char *root, struct uc_memory_limit *limit)
{
    char path[PATH_BYTES];
    char line[LINE_BYTES];
    FILE *file;

    (void)snprintf(path, sizeof(path), "%s/proc/meminfo", root);
    file = fopen(path, "re");
    if (file == NULL) {
        return;
    }
    while (fgets(line, sizeof(line), file) != NULL) {
        uint64_t kib;

        if (sscanf(line, "MemAvailable: %" SCNu64 " kB", &kib) == 1 && kib < UINT64_MAX / 1024) {
            lower(limit, kib * 1024, "MemAvailable in", "/proc/meminfo");
        }
    }
    (void)fclose(file);
}

/* Every group from `group` up to the root limits what is below it. */
static void
read_groups(const char *mount, char *group, const char *limit_name, const char *usage_name,
        struct uc_memory_limit *limit)
{
    for (;;) {
        char path[PATH_BYTES];
        uint64_t limit_bytes = UINT64_MAX;
        uint64_t usage_bytes = 0;
        char *slash;

        (void)snprintf(path, sizeof(path), "%.2000s%.1500s/%.64s", mount, group, usage_name);
        (void)read_number(path, &usage_bytes);
        (void)snprintf(path, sizeof(path), "%.2000s%.1500s/%.64s", mount, group, limit_name);
        if (read_number(path, &limit_bytes) && limit_bytes != UINT64_MAX) {
            lower(limit, limit_bytes > usage_bytes ? limit_bytes - usage_bytes : 0, "cgroup limit",
                    path);
        }

        slash = strrchr(group, '/');
        if (slash == NULL) {
            return;
        }
        *slash = '\0';
    }
}

static void
read_cgroups(const char *root, struct uc_memory_limit *limit)
{
    char path[PATH_BYTES];
    char line[LINE_BYTES];
    FILE *file;

    (void)snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
    file = fopen(path, "re");
    if (file == NULL) {
        return;
    }
    while (fgets(line, sizeof(line), file) != NULL) {
        char *controllers = strchr(line, ':');
        char *group = controllers == NULL ? NULL : strchr(controllers + 1, ':');

        if (group == NULL) {
            continue;
        }
        *group++ = '\0';
        group[strcspn(group, "\n")] = '\0';
        controllers++;
        if (strcmp(group, "/") == 0) {
            group[0] = '\0';
        }
        if (controllers[0] == '\0') {
            (void)snprintf(path, sizeof(path), "%s/sys/fs/cgroup", root);
            read_groups(path, group, "memory.max", "memory.current", limit);
        } else if (strcmp(controllers, "memory") == 0) {
            (void)snprintf(path, sizeof(path), "%s/sys/fs/cgroup/memory", root);
            read_groups(path, group, "memory.limit_in_bytes", "memory.usage_in_bytes", limit);
        }
    }
    (void)fclose(file);
}

struct uc_memory_limit
uc_memory_limit_read(const char *root)
{
    struct uc_memory_limit limit = {.available_bytes = UINT64_MAX, .source = "unknown"};

    read_meminfo(root, &limit);
    read_cgroups(root, &limit);
    return limit;
}
