/* SPDX-License-Identifier: Apache-2.0 */

/* Registration: what the device is asked for, and what a refusal says. The linker wraps libibverbs. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "net/verbs/verbs.h"

enum {
    LENGTH_BYTES = 8192,
    DMA_BUF = 77,
};

/* The last registration, and how it ends. */
static struct {
    size_t count;
    bool is_dma_buf;
    uint64_t offset;
    uint64_t length;
    uint64_t address;
    int fd;
    unsigned access;
    int error; /* 0 = it succeeds */
} asked;

static struct ibv_mr mr = {.lkey = 3, .rkey = 4};
static struct uc_fabric fabric;
static struct uc_fabric_domain domain;
static uint8_t memory[LENGTH_BYTES];

#undef ibv_reg_mr
struct ibv_mr *__wrap_ibv_reg_mr(struct ibv_pd *pd, void *address, size_t length, int access);
struct ibv_mr *__wrap_ibv_reg_mr_iova2(
        struct ibv_pd *pd, void *address, size_t length, uint64_t iova, unsigned access);
struct ibv_mr *__wrap_ibv_reg_dmabuf_mr(
        struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd, int access);
int __wrap_ibv_dereg_mr(struct ibv_mr *any);

static struct ibv_mr *
answer(void)
{
    asked.count++;
    if (asked.error != 0) {
        errno = asked.error;
        return NULL;
    }
    return &mr;
}

struct ibv_mr *
__wrap_ibv_reg_mr(struct ibv_pd *pd, void *address, size_t length, int access)
{
    (void)pd;
    asked.is_dma_buf = false;
    asked.address = (uintptr_t)address;
    asked.length = length;
    asked.access = (unsigned)access;
    return answer();
}

struct ibv_mr *
__wrap_ibv_reg_mr_iova2(
        struct ibv_pd *pd, void *address, size_t length, uint64_t iova, unsigned access)
{
    ck_assert_uint_eq(iova, (uintptr_t)address);
    return __wrap_ibv_reg_mr(pd, address, length, (int)access);
}

struct ibv_mr *
__wrap_ibv_reg_dmabuf_mr(
        struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd, int access)
{
    (void)pd;
    asked.is_dma_buf = true;
    asked.offset = offset;
    asked.length = length;
    asked.address = iova;
    asked.fd = fd;
    asked.access = (unsigned)access;
    return answer();
}

int
__wrap_ibv_dereg_mr(struct ibv_mr *any)
{
    ck_assert_ptr_eq(any, &mr);
    return 0;
}

static void
setup(void)
{
    memset(&asked, 0, sizeof(asked));
    fabric = (struct uc_fabric){.device_name = "rdma0"};
    fabric.attr.max_mr_size = 1 << 20;
    domain = (struct uc_fabric_domain){.fabric = &fabric};
}

static enum uc_status
register_it(const struct uc_fabric_memory *what, struct uc_fabric_region **region_out)
{
    return uc_verbs_region_register(&domain, what, 0, UC_FABRIC_READ_WRITE, region_out);
}

static struct uc_fabric_memory
device_memory(int fd)
{
    return (struct uc_fabric_memory){.address = memory,
            .length_bytes = LENGTH_BYTES,
            .kind = UC_MEMORY_CUDA,
            .fd = fd,
            .fd_offset_bytes = 4096};
}

static void
expect_refusal(const struct uc_fabric_memory *what, enum uc_status want, const char *text)
{
    struct uc_fabric_region *region = NULL;

    ck_assert_int_eq(register_it(what, &region), want);
    ck_assert_ptr_null(region);
    ck_assert_msg(strstr(uc_last_error(), text) != NULL, "%s", uc_last_error());
    ck_assert_uint_eq(domain.region_count, 0);
}

START_TEST(host_memory_is_registered_by_address_also_with_a_file)
{
    struct uc_fabric_memory what = uc_fabric_host_memory(memory, LENGTH_BYTES);
    struct uc_fabric_region *region = NULL;
    struct uc_fabric_region_key key;

    what.fd = DMA_BUF; /* a memfd, for another transport */
    ck_assert_int_eq(register_it(&what, &region), UC_OK);
    ck_assert(!asked.is_dma_buf);
    ck_assert_uint_eq(asked.address, (uintptr_t)memory);
    ck_assert_uint_eq(asked.length, LENGTH_BYTES);
    ck_assert_uint_eq(asked.access,
            IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
    uc_verbs_region_key(region, &key);
    ck_assert_uint_eq(key.address, (uintptr_t)memory);
    ck_assert_uint_eq(key.key, 4);
    uc_verbs_region_deregister(region);
    ck_assert_uint_eq(domain.region_count, 0);
}
END_TEST

START_TEST(peers_are_granted_no_more_than_the_region_allows)
{
    struct uc_fabric_memory what = uc_fabric_host_memory(memory, LENGTH_BYTES);
    struct uc_fabric_region *region = NULL;

    ck_assert_int_eq(
            uc_verbs_region_register(&domain, &what, 0, UC_FABRIC_READ_ONLY, &region), UC_OK);
    ck_assert_uint_eq(asked.access, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
    uc_verbs_region_deregister(region);
    ck_assert_int_eq(
            uc_verbs_region_register(&domain, &what, UINT32_MAX, UC_FABRIC_READ_WRITE, &region),
            UC_OK);
    ck_assert_uint_eq(asked.access, IBV_ACCESS_LOCAL_WRITE);
    uc_verbs_region_deregister(region);
}
END_TEST

START_TEST(device_memory_is_registered_through_its_dma_buf)
{
    struct uc_fabric_memory what = device_memory(DMA_BUF);
    struct uc_fabric_region *region = NULL;
    struct uc_fabric_region_key key;

    ck_assert_int_eq(register_it(&what, &region), UC_OK);
    ck_assert(asked.is_dma_buf);
    ck_assert_int_eq(asked.fd, DMA_BUF);
    ck_assert_uint_eq(asked.offset, 4096);
    ck_assert_uint_eq(asked.length, LENGTH_BYTES);
    ck_assert_uint_eq(asked.address, (uintptr_t)memory); /* so pieces and keys need no other */
    uc_verbs_region_key(region, &key);
    ck_assert_uint_eq(key.address, (uintptr_t)memory);
    uc_verbs_region_deregister(region);
}
END_TEST

START_TEST(device_memory_without_a_file_is_left_to_a_peer_memory_module)
{
    struct uc_fabric_memory what = device_memory(-1);
    struct uc_fabric_region *region = NULL;

    ck_assert_int_eq(register_it(&what, &region), UC_OK);
    ck_assert(!asked.is_dma_buf);
    uc_verbs_region_deregister(region);
    asked.error = EFAULT;
    expect_refusal(&what, UC_ERR_UNSUPPORTED, "nvidia_peermem");
}
END_TEST

START_TEST(refused_dma_buf_names_the_ways_out)
{
    struct uc_fabric_memory what = device_memory(DMA_BUF);

    asked.error = EOPNOTSUPP;
    expect_refusal(&what, UC_ERR_UNSUPPORTED, "dma-buf 77");
    expect_refusal(&what, UC_ERR_UNSUPPORTED, "nvidia_peermem");
    expect_refusal(&what, UC_ERR_UNSUPPORTED, "rdma0");
}
END_TEST

/* pitfalls: limits are errors with the limit's name, and never a shorter region. */
START_TEST(region_above_the_limit_of_the_device_is_refused_by_name)
{
    struct uc_fabric_memory what = uc_fabric_host_memory(memory, LENGTH_BYTES);

    fabric.attr.max_mr_size = LENGTH_BYTES - 1;
    expect_refusal(&what, UC_ERR_NO_SPACE, "max_mr_size 8191");
    expect_refusal(&what, UC_ERR_NO_SPACE, "region_bytes");
    ck_assert_uint_eq(asked.count, 0);
}
END_TEST

START_TEST(what_is_no_memory_is_refused)
{
    struct uc_fabric_memory cases[] = {
            uc_fabric_host_memory(NULL, LENGTH_BYTES),
            uc_fabric_host_memory(memory, 0),
            uc_fabric_host_memory(memory, UINT64_MAX),
    };

    expect_refusal(&cases[_i], UC_ERR_INVALID_PARAM, "no memory");
    ck_assert_uint_eq(asked.count, 0);
}
END_TEST

int
main(void)
{
    TCase *cases = tcase_create("region");
    Suite *suite = suite_create("verbs_region");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(cases, setup, NULL);
    tcase_add_test(cases, host_memory_is_registered_by_address_also_with_a_file);
    tcase_add_test(cases, peers_are_granted_no_more_than_the_region_allows);
    tcase_add_test(cases, device_memory_is_registered_through_its_dma_buf);
    tcase_add_test(cases, device_memory_without_a_file_is_left_to_a_peer_memory_module);
    tcase_add_test(cases, refused_dma_buf_names_the_ways_out);
    tcase_add_test(cases, region_above_the_limit_of_the_device_is_refused_by_name);
    tcase_add_loop_test(cases, what_is_no_memory_is_refused, 0, 3);
    suite_add_tcase(suite, cases);

    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
