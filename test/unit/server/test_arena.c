/* SPDX-License-Identifier: Apache-2.0 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <check.h>

#include "net/slot_footer.h"
#include "server/arena.h"
#include "server/memory_limit.h"

static struct uc_namespace_config
config_of(uint64_t block_bytes, uint64_t capacity_blocks, uint64_t region_bytes)
{
    struct uc_namespace_config config = {
            .name = "test",
            .block_bytes = block_bytes,
            .capacity_blocks = capacity_blocks,
            .region_bytes = region_bytes,
            .align_bytes = 64,
    };

    return config;
}

/* {block, blocks, region} → {stride, regions, slots per region} */
static const struct {
    uint64_t block_bytes;
    uint64_t capacity_blocks;
    uint64_t region_bytes;
    uint64_t slot_stride;
    uint32_t region_count;
    uint32_t slots_per_region;
} cuts[] = {
        {1024, 1, 1 << 20, 1088, 1, 1},  /* one slot: the region shrinks to it */
        {1024, 8, 4352, 1088, 2, 4},     /* exactly four slots each */
        {1024, 9, 4352, 1088, 3, 4},     /* the last region holds one */
        {1024, 9, 4351, 1088, 3, 3},     /* a byte less: three, none crosses */
        {8, 100, 4096, 128, 4, 32},      /* tiny blocks: mostly footer */
        {1000, 10, 1 << 20, 1088, 1, 10} /* rounded up to the alignment */
};

START_TEST(cut_lets_no_slot_cross_a_region)
{
    struct uc_namespace_config config =
            config_of(cuts[_i].block_bytes, cuts[_i].capacity_blocks, cuts[_i].region_bytes);
    struct uc_arena_layout layout;
    uint64_t end = 0;

    ck_assert_int_eq(uc_arena_plan(&config, &layout), UC_OK);
    ck_assert_uint_eq(layout.slot_stride, cuts[_i].slot_stride);
    ck_assert_uint_eq(layout.region_count, cuts[_i].region_count);
    ck_assert_uint_eq(layout.slots_per_region, cuts[_i].slots_per_region);
    ck_assert_uint_eq(layout.slot_count, cuts[_i].capacity_blocks);
    for (uint32_t slot = 0; slot < layout.slot_count; slot++) {
        uint32_t region_idx;
        uint64_t offset;
        uint64_t start;

        uc_arena_layout_address(&layout, slot, &region_idx, &offset);
        start = region_idx * layout.region_span + offset;
        ck_assert_uint_ge(start, end); /* in order, without overlap */
        end = start + layout.slot_stride;
        ck_assert_uint_le(
                offset + layout.slot_stride, uc_arena_layout_region_bytes(&layout, region_idx));
        ck_assert_uint_le(uc_arena_layout_region_bytes(&layout, region_idx), cuts[_i].region_bytes);
    }
    ck_assert_uint_le(end, layout.total_bytes);
}
END_TEST

START_TEST(capacity_in_bytes_counts_footers)
{
    struct uc_namespace_config config = config_of(1024, 0, 1 << 20);
    struct uc_arena_layout layout;

    config.capacity_bytes = 10 * 1088 + 1087;
    ck_assert_int_eq(uc_arena_plan(&config, &layout), UC_OK);
    ck_assert_uint_eq(layout.slot_count, 10);
    config.capacity_bytes = 1087;
    ck_assert_int_eq(uc_arena_plan(&config, &layout), UC_ERR_INVALID_PARAM);
    ck_assert_ptr_nonnull(strstr(uc_last_error(), "namespaces.0.capacity"));
}
END_TEST

START_TEST(locate_finds_the_slot_and_refuses_what_leaves_it)
{
    struct uc_namespace_config config = config_of(1024, 9, 4352);
    struct uc_arena_layout layout;
    struct uc_arena_place place;

    ck_assert_int_eq(uc_arena_plan(&config, &layout), UC_OK);
    ck_assert(uc_arena_layout_locate(&layout, 1, 1088 + 10, 1024, &place));
    ck_assert_uint_eq(place.slot, 5);
    ck_assert_uint_eq(place.offset_bytes, 10);
    ck_assert(uc_arena_layout_locate(&layout, 0, 0, 1088, &place));
    ck_assert(!uc_arena_layout_locate(&layout, 0, 0, 1089, &place));       /* next slot */
    ck_assert(!uc_arena_layout_locate(&layout, 0, 1, 1088, &place));       /* likewise */
    ck_assert(!uc_arena_layout_locate(&layout, 0, 0, 0, &place));          /* nothing */
    ck_assert(!uc_arena_layout_locate(&layout, 3, 0, 1, &place));          /* no such region */
    ck_assert(!uc_arena_layout_locate(&layout, 2, 1088, 1, &place));       /* last holds one */
    ck_assert(!uc_arena_layout_locate(&layout, 0, UINT64_MAX, 1, &place)); /* wraps */
    ck_assert(!uc_arena_layout_locate(&layout, 0, 1, UINT64_MAX, &place)); /* likewise */
    ck_assert(!uc_arena_layout_locate(&layout, UINT32_MAX, 0, 1, &place));
}
END_TEST

START_TEST(memory_is_zero_and_whole)
{
    struct uc_namespace_config config = config_of(1000, 9, 4352);
    struct uc_arena_layout layout;
    struct uc_arena *arena;

    ck_assert_int_eq(uc_arena_plan(&config, &layout), UC_OK);
    ck_assert_int_eq(uc_arena_create(&layout, &config, &arena), UC_OK);
    for (uint32_t slot = 0; slot < layout.slot_count; slot++) {
        ck_assert_uint_eq(uc_arena_slot(arena, slot)[0], 0);
        memset(uc_arena_slot(arena, slot), (int)slot + 1, layout.slot_stride);
    }
    for (uint32_t slot = 0; slot < layout.slot_count; slot++) {
        ck_assert_uint_eq(uc_arena_slot(arena, slot)[layout.slot_stride - 1], slot + 1);
    }
    uc_arena_destroy(arena);
}
END_TEST

START_TEST(more_memory_than_there_is_names_key_actual_and_required)
{
    struct uc_namespace_config config = config_of(1 << 30, 60000, (uint64_t)1 << 32);
    struct uc_arena_layout layout;

    ck_assert_int_eq(uc_arena_plan(&config, &layout), UC_OK);
    ck_assert_int_eq(uc_arena_check(&layout, &config), UC_ERR_NO_SPACE);
    ck_assert_ptr_nonnull(strstr(uc_last_error(), "capacity_blocks"));
    ck_assert_ptr_nonnull(strstr(uc_last_error(), "MiB are left"));
}
END_TEST

static char root[64];

static void
make_file(const char *directory, const char *name, const char *text)
{
    char path[256];
    char *cursor;
    FILE *file;

    (void)snprintf(path, sizeof(path), "%s%s", root, directory);
    for (cursor = path + strlen(root) + 1; *cursor != '\0'; cursor++) {
        if (*cursor == '/') {
            *cursor = '\0';
            (void)mkdir(path, 0700);
            *cursor = '/';
        }
    }
    (void)mkdir(path, 0700);
    (void)snprintf(path + strlen(path), sizeof(path) - strlen(path), "/%s", name);
    file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    (void)fputs(text, file);
    (void)fclose(file);
}

static void
setup_root(void)
{
    strcpy(root, "/tmp/test_arena_XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
    make_file("/proc", "meminfo", "MemTotal: 8000 kB\nMemAvailable: 4000 kB\n");
}

static void
teardown_root(void)
{
    char command[128];

    (void)snprintf(command, sizeof(command), "rm -rf '%s'", root);
    ck_assert_int_eq(system(command), 0);
}

START_TEST(memory_limit_without_cgroup_is_mem_available)
{
    struct uc_memory_limit limit = uc_memory_limit_read(root);

    ck_assert_uint_eq(limit.available_bytes, 4000 * 1024);
    ck_assert_ptr_nonnull(strstr(limit.source, "MemAvailable"));
}
END_TEST

START_TEST(memory_limit_takes_the_tightest_group_above)
{
    struct uc_memory_limit limit;

    make_file("/proc/self", "cgroup", "0::/pod/server\n");
    make_file("/sys/fs/cgroup/pod", "memory.max", "1000000\n");
    make_file("/sys/fs/cgroup/pod", "memory.current", "400000\n");
    make_file("/sys/fs/cgroup/pod/server", "memory.max", "max\n");
    limit = uc_memory_limit_read(root);
    ck_assert_uint_eq(limit.available_bytes, 600000);
    ck_assert_ptr_nonnull(strstr(limit.source, "/pod/memory.max"));
}
END_TEST

START_TEST(memory_limit_reads_version_one_groups)
{
    struct uc_memory_limit limit;

    make_file("/proc/self", "cgroup", "3:cpu:/x\n2:memory:/box\n");
    make_file("/sys/fs/cgroup/memory/box", "memory.limit_in_bytes", "50000\n");
    make_file("/sys/fs/cgroup/memory/box", "memory.usage_in_bytes", "60000\n");
    limit = uc_memory_limit_read(root);
    ck_assert_uint_eq(limit.available_bytes, 0); /* over the limit already */
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("server/arena");
    TCase *layout = tcase_create("layout");
    TCase *limits = tcase_create("limits");
    SRunner *runner;
    int failed_count;

    tcase_add_loop_test(
            layout, cut_lets_no_slot_cross_a_region, 0, (int)(sizeof(cuts) / sizeof(cuts[0])));
    tcase_add_test(layout, capacity_in_bytes_counts_footers);
    tcase_add_test(layout, locate_finds_the_slot_and_refuses_what_leaves_it);
    tcase_add_test(layout, memory_is_zero_and_whole);
    tcase_add_test(layout, more_memory_than_there_is_names_key_actual_and_required);
    suite_add_tcase(suite, layout);
    tcase_add_checked_fixture(limits, setup_root, teardown_root);
    tcase_add_test(limits, memory_limit_without_cgroup_is_mem_available);
    tcase_add_test(limits, memory_limit_takes_the_tightest_group_above);
    tcase_add_test(limits, memory_limit_reads_version_one_groups);
    suite_add_tcase(suite, limits);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed_count = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed_count == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
