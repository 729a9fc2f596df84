/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A null store whose events stay away, as those of a medium that hangs: the descriptor stays silent, and so many
 * polls as the configuration says (`empty_polls`) find nothing; 0 = all of them.
 */

#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <ucm/plugin.h>

static struct uc_store_ops stuck_ops;
static const struct uc_store_ops *null_ops;
static int64_t empty_polls;
static int64_t polls; /* since the last transfer */
static int silent_fd = -1;

static enum uc_status
stuck_setup(struct uc_store *store, const struct uc_dict *config)
{
    (void)!uc_dict_get_int(config, "empty_polls", &empty_polls);
    return null_ops->setup(store, config);
}

static enum uc_status
stuck_load(struct uc_store *store, uint64_t job_id, const struct uc_job_descriptor *job)
{
    polls = 0;
    return null_ops->load(store, job_id, job);
}

static enum uc_status
stuck_dump(struct uc_store *store, uint64_t job_id, const struct uc_job_descriptor *job)
{
    polls = 0;
    return null_ops->dump(store, job_id, job);
}

static enum uc_status
stuck_get_finished(
        struct uc_store *store, struct uc_io_result *results, size_t capacity, size_t *count_out)
{
    polls++;
    if (empty_polls == 0 || polls <= empty_polls) {
        *count_out = 0;
        return UC_OK;
    }
    return null_ops->get_finished(store, results, capacity, count_out);
}

static int
stuck_event_fd(struct uc_store *store)
{
    (void)store;
    return silent_fd;
}

struct uc_store *
UCCreateStore(void)
{
    struct uc_store *store = uc_null_store_create();

    if (store == NULL) {
        return NULL;
    }
    silent_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    null_ops = store->ops;
    stuck_ops = *null_ops;
    stuck_ops.setup = stuck_setup;
    stuck_ops.load = stuck_load;
    stuck_ops.dump = stuck_dump;
    stuck_ops.get_finished = stuck_get_finished;
    stuck_ops.event_fd = stuck_event_fd;
    store->ops = &stuck_ops;
    return store;
}

void
UCDestroyStore(struct uc_store *store)
{
    (void)close(silent_fd);
    uc_null_store_destroy(store);
}
