/* SPDX-License-Identifier: Apache-2.0 */

/* The data path of both sides, once it is warm: post, poll, callbacks. Nothing may allocate. */

#include <string.h>

#include "test/conformance/fabric/harness.h"
#include "test/fake/alloc_count.h"

enum {
    DEPTH = 16,
    WARM_UP_COUNT = 500,
    OPERATION_COUNT = 3000,
};

struct job {
    struct uc_fabric_op op; /* first: on_done gets its address */
    bool is_posted;         /* READs and WRITEs end in any order */
    struct uc_fabric_piece pieces[2];
};

static struct link link0;
static struct job jobs[DEPTH];
static uint64_t done_count;
static uint64_t failed_count;

static void
count_done(struct uc_fabric_op *op, enum uc_status status)
{
    ((struct job *)op)->is_posted = false;
    done_count++;
    failed_count += status != UC_OK;
}

static void
job_init(struct job *job, uint64_t number, size_t length_bytes)
{
    uint64_t slot = number % (REGION_BYTES / SLOT_BYTES);
    uint8_t *local = initiator.memory + (size_t)(job - jobs) * SLOT_BYTES;
    size_t first_bytes = length_bytes / 3;

    job->pieces[0] = (struct uc_fabric_piece){
            .address = local, .length_bytes = first_bytes, .region = initiator.region};
    job->pieces[1] = (struct uc_fabric_piece){.address = local + first_bytes,
            .length_bytes = length_bytes - first_bytes,
            .region = initiator.region};
    job->op = (struct uc_fabric_op){
            .opcode = number % 2 == 0 ? UC_FABRIC_READ : UC_FABRIC_WRITE,
            .offset_bytes = slot * SLOT_BYTES,
            .generation = GENERATION,
            .pieces = job->pieces,
            .piece_count = 2,
            .on_done = count_done,
    };
    job->is_posted = true;
    if (number % 8 == 7) {
        job->op.opcode = UC_FABRIC_FLUSH;
        job->op.piece_count = 0;
    }
}

/* READs, WRITEs and FLUSHes at a steady depth. No assertion meanwhile: Check's allocate. */
static bool
run(uint64_t count, size_t length_bytes)
{
    double give_up_s = now_s() + patience_s();
    uint64_t posted = 0;

    done_count = 0;
    failed_count = 0;
    while (done_count < count) {
        struct uc_fabric_op *list = NULL;
        struct uc_fabric_op **end = &list;

        for (size_t idx = 0; idx < DEPTH && posted < count; idx++) {
            struct job *job = &jobs[idx];

            if (!job->is_posted) {
                job_init(job, posted++, length_bytes);
                *end = &job->op;
                end = &job->op.next;
            }
        }
        if (list != NULL && initiator.ops->post(link0.endpoint, list) != UC_OK) {
            return false;
        }
        if (now_s() > give_up_s) {
            return false;
        }
        initiator_step();
    }
    return failed_count == 0;
}

/* net/fabric.h: post and poll allocate nothing, on either side. */
START_TEST(steady_state_allocates_nothing)
{
    static const size_t lengths[] = {100, 4096, SLOT_BYTES};
    size_t length_bytes = lengths[_i];
    size_t allocated;
    bool ok;

    link_open(&link0, UC_FABRIC_READ_WRITE);
    ck_assert(run((uint64_t)scaled(WARM_UP_COUNT), length_bytes));
    uc_alloc_count_start();
    ok = run((uint64_t)scaled(OPERATION_COUNT), length_bytes);
    allocated = uc_alloc_count_stop();
    ck_assert(ok);
    /* The tests' own wrapper allocates for every operation: that shows that the counter counts. */
    if (strncmp(fabric_name(), "fault+", 6) == 0 && uc_alloc_count_works()) {
        ck_assert_uint_gt(allocated, 0);
    } else {
        ck_assert_uint_eq(allocated, 0);
    }
    link_close(&link0);
}
END_TEST

TCase *
steady_cases(void)
{
    TCase *tcase = tcase_create("steady");

    tcase_add_checked_fixture(tcase, both_open, both_close);
    tcase_add_loop_test(tcase, steady_state_allocates_nothing, 0, 3);
    tcase_set_timeout(tcase, 120);
    return tcase;
}
