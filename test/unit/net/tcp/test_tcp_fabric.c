/* SPDX-License-Identifier: Apache-2.0 */

/* Opening, domains, regions and listeners: what their constructors refuse and undo. */

#include <stdlib.h>
#include <string.h>

#include "net/tcp/tcp_fabric.h"
#include "test/fake/fake_alloc.h"
#include "test/unit/net/tcp/rig.h"

static uint8_t memory[4096];

START_TEST(open_undoes_everything_when_an_allocation_fails)
{
    struct uc_fabric_config config = {.address = "127.0.0.1"};
    const struct uc_fabric_ops *ops = uc_tcp_fabric_ops();
    struct uc_fabric *fabric = NULL;
    enum uc_status status;

    uc_fake_alloc_fail_after((size_t)_i);
    status = ops->open(&config, &fabric);
    uc_fake_alloc_reset();
    if (status == UC_OK) { /* more succeeded than it needs */
        ops->close(fabric);
        return;
    }
    ck_assert_int_eq(status, UC_ERR_OUT_OF_MEMORY);
    ck_assert_ptr_null(fabric);
}
END_TEST

START_TEST(open_names_an_address_that_does_not_resolve)
{
    struct uc_fabric_config config = {.address = "300.1.2.3.4"};
    const struct uc_fabric_ops *ops = uc_tcp_fabric_ops();
    struct uc_fabric *fabric = NULL;

    ck_assert_int_eq(ops->open(&config, &fabric), UC_ERR_INVALID_PARAM);
    ck_assert_ptr_nonnull(strstr(uc_last_error(), "300.1.2.3.4"));
    ck_assert_ptr_null(fabric);
}
END_TEST

START_TEST(open_needs_no_configuration)
{
    const struct uc_fabric_ops *ops = uc_tcp_fabric_ops();
    struct uc_fabric *fabric;

    ck_assert_int_eq(ops->open(NULL, &fabric), UC_OK);
    ops->close(fabric);
    ops->close(NULL);
}
END_TEST

START_TEST(domain_open_undoes_everything_when_an_allocation_fails)
{
    struct uc_fabric_domain *domain = NULL;
    enum uc_status status;

    uc_fake_alloc_fail_after((size_t)_i);
    status = rig.ops->domain_open(rig.fabric, &domain);
    uc_fake_alloc_reset();
    ck_assert_int_eq(status, UC_ERR_OUT_OF_MEMORY);
    ck_assert_ptr_null(domain);
}
END_TEST

START_TEST(region_register_undoes_everything_when_an_allocation_fails)
{
    struct uc_fabric_memory range = uc_fabric_host_memory(memory, sizeof(memory));
    struct uc_fabric_region *region = NULL;
    enum uc_status status;

    uc_fake_alloc_fail_after((size_t)_i);
    status = rig.ops->region_register(rig.domain, &range, 1000, UC_FABRIC_READ_WRITE, &region);
    uc_fake_alloc_reset();
    ck_assert_int_eq(status, UC_ERR_OUT_OF_MEMORY);
    ck_assert_ptr_null(region);
}
END_TEST

START_TEST(region_register_refuses_what_is_no_memory)
{
    const struct {
        struct uc_fabric_memory memory;
        uint32_t region_idx;
        enum uc_status expected;
    } cases[] = {
            {uc_fabric_host_memory(NULL, 1), UINT32_MAX, UC_ERR_INVALID_PARAM},
            {uc_fabric_host_memory(memory, 0), UINT32_MAX, UC_ERR_INVALID_PARAM},
            {uc_fabric_host_memory(memory, UINT64_MAX), UINT32_MAX, UC_ERR_INVALID_PARAM},
            {uc_fabric_host_memory(memory, 1), 0, UC_ERR_DUPLICATE_KEY},
            {{.address = memory, .length_bytes = 1, .kind = UC_MEMORY_CUDA, .fd = -1}, UINT32_MAX,
                    UC_ERR_UNSUPPORTED},
    };
    struct uc_fabric_region *region = NULL;

    for (size_t idx = 0; idx < sizeof(cases) / sizeof(cases[0]); idx++) {
        ck_assert_int_eq(rig.ops->region_register(rig.domain, &cases[idx].memory,
                                 cases[idx].region_idx, UC_FABRIC_READ_ONLY, &region),
                cases[idx].expected);
    }
    ck_assert_ptr_null(region);
    rig.ops->region_deregister(NULL);
}
END_TEST

START_TEST(listen_names_a_port_that_is_taken)
{
    struct uc_fabric_listen params = {.address = "127.0.0.1"};
    struct uc_fabric_listener *listener = NULL;

    params.port = rig.ops->listener_port(rig.listener);
    ck_assert_int_ne(rig.ops->listen(rig.fabric, &params, &listener), UC_OK);
    ck_assert_ptr_nonnull(strstr(uc_last_error(), "127.0.0.1"));
    ck_assert_ptr_null(listener);
}
END_TEST

START_TEST(listen_without_address_takes_any)
{
    struct uc_fabric_listen params = {.address = NULL};
    struct uc_fabric_listener *listener;

    ck_assert_int_eq(rig.ops->listen(rig.fabric, &params, &listener), UC_OK);
    ck_assert_uint_ne(rig.ops->listener_port(listener), 0);
    rig.ops->listener_close(listener);
}
END_TEST

START_TEST(listen_undoes_everything_when_an_allocation_fails)
{
    struct uc_fabric_listen params = {.address = NULL};
    struct uc_fabric_listener *listener = NULL;
    int before = fd_count();
    enum uc_status status;

    uc_fake_alloc_fail_after(0);
    status = rig.ops->listen(rig.fabric, &params, &listener);
    uc_fake_alloc_reset();
    ck_assert_int_eq(status, UC_ERR_OUT_OF_MEMORY);
    ck_assert_int_eq(fd_count(), before);
}
END_TEST

static Suite *
tcp_fabric_suite(void)
{
    Suite *suite = suite_create("tcp_fabric");
    TCase *bare = tcase_create("bare");
    TCase *opened = tcase_create("opened");

    tcase_add_checked_fixture(bare, NULL, uc_fake_alloc_reset);
    tcase_add_loop_test(bare, open_undoes_everything_when_an_allocation_fails, 0, 2);
    tcase_add_test(bare, open_names_an_address_that_does_not_resolve);
    tcase_add_test(bare, open_needs_no_configuration);
    suite_add_tcase(suite, bare);

    tcase_add_checked_fixture(opened, rig_open, rig_close);
    tcase_add_loop_test(opened, domain_open_undoes_everything_when_an_allocation_fails, 0, 2);
    tcase_add_loop_test(opened, region_register_undoes_everything_when_an_allocation_fails, 0, 2);
    tcase_add_test(opened, region_register_refuses_what_is_no_memory);
    tcase_add_test(opened, listen_names_a_port_that_is_taken);
    tcase_add_test(opened, listen_without_address_takes_any);
    tcase_add_test(opened, listen_undoes_everything_when_an_allocation_fails);
    suite_add_tcase(suite, opened);
    return suite;
}

int
main(void)
{
    SRunner *runner = srunner_create(tcp_fabric_suite());
    int failed;

    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
