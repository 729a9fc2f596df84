/* SPDX-License-Identifier: Apache-2.0 */

/* The io_uring engine: every call of an op is a request of the ring; the progress thread drives it. */

#include "client/stores/posix/engine.h"

#ifdef UC_POSIX_WITH_URING

#    include <errno.h>
#    include <liburing.h>
#    include <stdlib.h>
#    include <unistd.h>

#    include <ucm/log.h>

enum {
    COPY_PAUSE_NS = 50 * 1000, /* between two looks at what a device copies */
    /* Checksums are computed between calls: the device must not wait for those of a whole batch. */
    HELD_BYTES_MAX = 1 << 18
};

struct uc_posix_engine {
    struct io_uring ring;
    struct uc_list free_slots;
    struct uc_list ended; /* that ended without any call */
    int wake_fd;
    uint64_t held_bytes; /* of reads and writes that the kernel has not been told of */
    struct uc_posix_slot *slots;
    size_t slot_count;
};

static void
ring_destroy(struct uc_posix_engine *engine)
{
    io_uring_queue_exit(&engine->ring);
    for (size_t idx = 0; idx < engine->slot_count; idx++) {
        uc_posix_slot_fini(&engine->slots[idx]);
    }
    free(engine->slots);
    free(engine);
}

static enum uc_status
make_slots(struct uc_posix_engine *engine, size_t count)
{
    enum uc_status status = UC_OK;

    engine->slots = calloc(count, sizeof(engine->slots[0]));
    if (engine->slots == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "posix store: no memory for %zu transfers", count);
    }

    for (size_t idx = 0; idx < count && status == UC_OK; idx++) {
        status = uc_posix_slot_init(&engine->slots[idx]);
        if (status == UC_OK) {
            engine->slot_count++;
            uc_list_add(&engine->free_slots, &engine->slots[idx].link);
        }
    }
    return status;
}

/* All that ops ask for, io_uring has had since 5.11. */
static bool
has_calls(struct io_uring *ring)
{
    static const int calls[] = {IORING_OP_OPENAT, IORING_OP_READV, IORING_OP_WRITEV,
            IORING_OP_FSYNC, IORING_OP_RENAMEAT, IORING_OP_CLOSE, IORING_OP_ASYNC_CANCEL,
            IORING_OP_TIMEOUT};
    struct io_uring_probe *probe = io_uring_get_probe_ring(ring);
    bool has_all = probe != NULL;

    for (size_t idx = 0; idx < sizeof(calls) / sizeof(calls[0]) && has_all; idx++) {
        has_all = io_uring_opcode_supported(probe, calls[idx]) != 0;
    }
    io_uring_free_probe(probe);
    return has_all;
}

static enum uc_status
ring_create(const struct uc_posix_config *config, int wake_fd, struct uc_posix_engine **engine_out)
{
    struct uc_posix_engine *engine = calloc(1, sizeof(*engine));
    enum uc_status status;
    int result;

    if (engine == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "posix store: no memory for the ring");
    }
    engine->wake_fd = wake_fd;
    uc_list_init(&engine->free_slots);
    uc_list_init(&engine->ended);
    /* Twice the depth: each transfer has one request and at most one that cancels it. */
    result = io_uring_queue_init((unsigned)(2 * config->io_depth), &engine->ring, 0);
    if (result < 0) {
        free(engine);
        return uc_error(UC_ERR_UNSUPPORTED,
                "posix store: io_uring is not permitted here (errno %d); set io to threads",
                -result);
    }

    status = make_slots(engine, config->io_depth);
    if (status == UC_OK && !has_calls(&engine->ring)) {
        status = uc_error(UC_ERR_UNSUPPORTED,
                "posix store: this kernel's io_uring is too old; set io to threads");
    }
    if (status == UC_OK) {
        result = io_uring_register_eventfd(&engine->ring, wake_fd);
        if (result < 0) {
            status = uc_log_errno(-result, "posix store: io_uring_register_eventfd");
        }
    }
    if (status != UC_OK) {
        ring_destroy(engine);
        return status;
    }
    *engine_out = engine;
    return UC_OK;
}

static void
submit(struct uc_posix_engine *engine)
{
    uint64_t one = 1;

    engine->held_bytes = 0;
    (void)io_uring_submit(&engine->ring);
    if (io_uring_sq_ready(&engine->ring) > 0) {
        /* The kernel is short of something: the progress thread comes back and offers the rest again. */
        (void)!write(engine->wake_fd, &one, sizeof(one));
    }
}

static struct io_uring_sqe *
take_sqe(struct uc_posix_engine *engine)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&engine->ring);

    /* Full only until the kernel has taken what is prepared. */
    while (sqe == NULL) {
        submit(engine);
        sqe = io_uring_get_sqe(&engine->ring);
    }
    return sqe;
}

static void
prepare(struct uc_posix_engine *engine, struct uc_posix_op *op)
{
    static struct __kernel_timespec copy_pause = {.tv_nsec = COPY_PAUSE_NS};
    const struct uc_posix_io *io = &op->slot->io;
    struct io_uring_sqe *sqe = take_sqe(engine);

    switch (io->kind) {
    case UC_POSIX_IO_OPEN:
        io_uring_prep_openat(sqe, io->folder_fd, io->path, io->flags, 0600);
        break;
    case UC_POSIX_IO_READ:
        io_uring_prep_readv(sqe, io->fd, io->iov, io->iov_count, io->offset);
        break;
    case UC_POSIX_IO_WRITE:
        io_uring_prep_writev(sqe, io->fd, io->iov, io->iov_count, io->offset);
        break;
    case UC_POSIX_IO_SYNC:
        io_uring_prep_fsync(sqe, io->fd, IORING_FSYNC_DATASYNC);
        break;
    case UC_POSIX_IO_SYNC_FULL:
        io_uring_prep_fsync(sqe, io->fd, 0);
        break;
    case UC_POSIX_IO_RENAME:
        io_uring_prep_renameat(sqe, io->folder_fd, io->path, io->new_folder_fd, io->new_path, 0);
        break;
    case UC_POSIX_IO_CLOSE:
        io_uring_prep_close(sqe, io->fd);
        break;
    case UC_POSIX_IO_COPY:
        io_uring_prep_timeout(sqe, &copy_pause, 0, 0);
        break;
    }
    io_uring_sqe_set_data(sqe, op);
    if (io->kind == UC_POSIX_IO_READ || io->kind == UC_POSIX_IO_WRITE) {
        engine->held_bytes += op->io_bytes;
        if (engine->held_bytes >= HELD_BYTES_MAX) {
            submit(engine);
        }
    }
}

/* Ask the op for its next call; without one it has ended. */
static void
advance(struct uc_posix_engine *engine, struct uc_posix_op *op, struct uc_list *ended)
{
    while (uc_posix_op_next(op)) {
        if (op->slot->io.kind != UC_POSIX_IO_COPY || !uc_posix_io_is_copied(&op->slot->io)) {
            prepare(engine, op);
            return;
        }
    }

    uc_list_add(&engine->free_slots, &op->slot->link);
    op->slot = NULL;
    uc_list_add(ended, &op->link);
}

static void
ring_start(struct uc_posix_engine *engine, struct uc_list *ready)
{
    while (!uc_list_is_empty(ready) && !uc_list_is_empty(&engine->free_slots)) {
        struct uc_posix_op *op = uc_list_entry(uc_list_take(ready), struct uc_posix_op, link);

        op->slot = uc_list_entry(uc_list_take(&engine->free_slots), struct uc_posix_slot, link);
        uc_posix_op_start(op);
        advance(engine, op, &engine->ended);
    }
    if (io_uring_sq_ready(&engine->ring) > 0) {
        submit(engine);
    }
}

static void
ring_poll(struct uc_posix_engine *engine, struct uc_list *ended)
{
    struct uc_list *node;
    struct io_uring_cqe *cqe;

    while ((node = uc_list_take(&engine->ended)) != NULL) {
        uc_list_add(ended, node);
    }
    while (io_uring_peek_cqe(&engine->ring, &cqe) == 0) {
        struct uc_posix_op *op = io_uring_cqe_get_data(cqe);
        int result = cqe->res;

        io_uring_cqe_seen(&engine->ring, cqe);
        if (op == NULL) {
            continue; /* of a request that cancels another */
        }
        if (result == -EINTR || result == -EAGAIN) {
            prepare(engine, op);
            continue;
        }
        if (op->slot->io.kind != UC_POSIX_IO_COPY) {
            op->slot->io.result = result;
        } else if (!uc_posix_io_is_copied(&op->slot->io)) {
            prepare(engine, op);
            continue;
        }
        advance(engine, op, ended);
    }
}

static void
ring_cancel(struct uc_posix_engine *engine, struct uc_posix_op *op)
{
    struct io_uring_sqe *sqe;

    /* A close that is called back leaves a descriptor behind, a rename a doubt. */
    if (op->slot == NULL || op->slot->io.kind == UC_POSIX_IO_CLOSE ||
            op->slot->io.kind == UC_POSIX_IO_RENAME || op->slot->io.kind == UC_POSIX_IO_COPY) {
        return;
    }

    sqe = take_sqe(engine);
    io_uring_prep_cancel(sqe, op, 0);
    io_uring_sqe_set_data(sqe, NULL);
}

const struct uc_posix_engine_ops uc_posix_ring_ops = {
        .name = "uring",
        .create = ring_create,
        .destroy = ring_destroy,
        .start = ring_start,
        .poll = ring_poll,
        .cancel = ring_cancel,
};

#else /* built without liburing */

static enum uc_status
ring_create(const struct uc_posix_config *config, int wake_fd, struct uc_posix_engine **engine_out)
{
    (void)config;
    (void)wake_fd;
    (void)engine_out;
    return uc_error(UC_ERR_UNSUPPORTED,
            "posix store: built without liburing; set io to threads, or build with liburing-dev");
}

const struct uc_posix_engine_ops uc_posix_ring_ops = {
        .name = "uring",
        .create = ring_create,
};

#endif
