/* SPDX-License-Identifier: Apache-2.0 */

/* The target's side: admission by grants, slots that count their holds, a thread that polls. */

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <ucm/clock.h>

#include "test/conformance/fabric/harness.h"

struct target target;

void
nonce_of_grant(size_t grant_idx, uint8_t *nonce)
{
    uint32_t idx = (uint32_t)grant_idx;

    memset(nonce, 0x5a, UC_FABRIC_NONCE_BYTES);
    memcpy(nonce, &idx, sizeof(idx));
}

static enum uc_status
admit(void *context, const uint8_t nonce[UC_FABRIC_NONCE_BYTES],
        struct uc_fabric_admission *admission_out)
{
    struct target *self = context;

    for (size_t idx = 0; idx < self->grant_count; idx++) {
        struct grant *grant = &self->grants[idx];
        uint8_t want[UC_FABRIC_NONCE_BYTES];

        nonce_of_grant(idx, want);
        if (memcmp(want, nonce, sizeof(want)) == 0 && !grant->is_spent) {
            grant->is_spent = true;
            admission_out->domain = self->domains[grant->domain_idx];
            admission_out->access = grant->access;
            admission_out->peer = grant;
            return UC_OK;
        }
    }
    return UC_ERR_PERMISSION_DENIED;
}

static void
connected(void *context, void *peer, struct uc_fabric_endpoint *endpoint)
{
    struct grant *grant = peer;

    (void)context;
    grant->endpoint = endpoint;
    atomic_fetch_add(&grant->connected_count, 1);
}

static void
gone(void *context, void *peer)
{
    struct grant *grant = peer;

    (void)context;
    grant->endpoint = NULL;
    atomic_fetch_add(&grant->gone_count, 1);
}

static enum uc_status
hold(void *context, void *peer, uint32_t region_idx, uint64_t offset_bytes, uint64_t length_bytes,
        uint64_t generation, enum uc_fabric_opcode opcode)
{
    struct target *self = context;

    (void)peer;
    (void)opcode;
    if (region_idx >= REGION_COUNT || offset_bytes > REGION_BYTES ||
            length_bytes > REGION_BYTES - offset_bytes) {
        atomic_fetch_add(&self->wrong_hold_count, 1);
        return UC_ERR_INVALID_PARAM;
    }
    if (generation != 0 && generation != GENERATION) {
        return UC_ERR_NOT_FOUND;
    }

    atomic_fetch_add(&self->hold_count, 1);
    return UC_OK;
}

static void
release(void *context, void *peer, uint32_t region_idx, uint64_t offset_bytes)
{
    struct target *self = context;

    (void)peer;
    (void)region_idx;
    (void)offset_bytes;
    atomic_fetch_add(&self->release_count, 1);
}

static const struct uc_fabric_target_ops target_ops = {
        .admit = admit,
        .connected = connected,
        .gone = gone,
        .hold = hold,
        .release = release,
};

/* Run what the test asks for. @return whether to go on */
static bool
target_serve_calls(struct target *self, bool *may_poll_out)
{
    bool stop;
    uint64_t count;

    /* Before looking: whoever asks afterwards makes it readable again. */
    if (read(self->wake_fd, &count, sizeof(count)) < 0) {
        count = 0; /* nobody asked */
    }
    pthread_mutex_lock(&self->lock);
    if (self->call != NULL) {
        self->call(self, self->argument);
        self->call = NULL;
        pthread_cond_broadcast(&self->changed);
    }
    *may_poll_out = !self->is_paused;
    stop = self->stop;
    pthread_mutex_unlock(&self->lock);
    return !stop;
}

static int
sleep_ms(const struct target *self)
{
    struct uc_clock clock = uc_clock_monotonic();
    uint64_t deadline_ms = self->ops->next_deadline_ms(self->fabric);
    uint64_t now_ms = uc_clock_now_ms(&clock);

    if (deadline_ms <= now_ms) {
        return 0;
    }
    return deadline_ms - now_ms > 1000 ? 1000 : (int)(deadline_ms - now_ms);
}

static void *
target_run(void *argument)
{
    struct target *self = argument;
    bool may_poll = true;

    while (target_serve_calls(self, &may_poll)) {
        struct pollfd fds[2] = {{.fd = self->wake_fd, .events = POLLIN},
                {.fd = self->ops->event_fd(self->fabric), .events = POLLIN}};

        if (may_poll && (self->ops->poll(self->fabric, 64) > 0 || !self->ops->arm(self->fabric))) {
            continue;
        }
        (void)poll(fds, may_poll ? 2 : 1, may_poll ? sleep_ms(self) : 1000);
    }
    return NULL;
}

static void
wake(void)
{
    uint64_t one = 1;

    ck_assert_int_eq(write(target.wake_fd, &one, sizeof(one)), sizeof(one));
}

void
target_call(void (*call)(struct target *target, void *argument), void *argument)
{
    pthread_mutex_lock(&target.lock);
    target.call = call;
    target.argument = argument;
    wake();
    while (target.call != NULL) {
        pthread_cond_wait(&target.changed, &target.lock);
    }
    pthread_mutex_unlock(&target.lock);
}

static void
set_paused(struct target *self, void *argument)
{
    self->is_paused = *(bool *)argument;
}

void
target_pause(void)
{
    bool is_paused = true;

    target_call(set_paused, &is_paused);
}

void
target_resume(void)
{
    bool is_paused = false;

    target_call(set_paused, &is_paused);
}

uint8_t
pattern(uint8_t seed, uint64_t offset)
{
    return (uint8_t)(seed + offset * 31 + (offset >> 8) * 7 + (offset >> 16));
}

struct range {
    size_t domain_idx;
    size_t region_idx;
    uint64_t offset;
    uint8_t *bytes;
    size_t count;
    uint8_t seed;
};

static void
fill(struct target *self, void *argument)
{
    struct range *range = argument;
    uint8_t *memory = self->memory[range->domain_idx][range->region_idx];

    for (uint64_t offset = 0; offset < REGION_BYTES; offset++) {
        memory[offset] = pattern(range->seed, offset);
    }
}

void
target_fill(size_t domain_idx, size_t region_idx, uint8_t seed)
{
    struct range range = {.domain_idx = domain_idx, .region_idx = region_idx, .seed = seed};

    target_call(fill, &range);
}

static void
peek(struct target *self, void *argument)
{
    struct range *range = argument;

    memcpy(range->bytes, self->memory[range->domain_idx][range->region_idx] + range->offset,
            range->count);
}

void
target_peek(size_t domain_idx, size_t region_idx, uint64_t offset, void *bytes, size_t count)
{
    struct range range = {.domain_idx = domain_idx,
            .region_idx = region_idx,
            .offset = offset,
            .bytes = bytes,
            .count = count};

    target_call(peek, &range);
}

static void
cut(struct target *self, void *argument)
{
    struct grant *grant = argument;

    if (grant->endpoint != NULL) {
        self->ops->fence(grant->endpoint);
        self->ops->fence(grant->endpoint); /* idempotent */
        self->ops->disconnect(grant->endpoint);
        grant->endpoint = NULL;
    }
}

void
target_cut(struct grant *grant)
{
    target_call(cut, grant);
}

struct grant_request {
    size_t domain_idx;
    enum uc_fabric_access access;
    struct grant *grant;
};

static void
add_grant(struct target *self, void *argument)
{
    struct grant_request *request = argument;

    ck_assert_uint_lt(self->grant_count, GRANT_COUNT);
    request->grant = &self->grants[self->grant_count++];
    *request->grant = (struct grant){
            .target = self, .domain_idx = request->domain_idx, .access = request->access};
}

struct grant *
grant_make(size_t domain_idx, enum uc_fabric_access access)
{
    struct grant_request request = {.domain_idx = domain_idx, .access = access};

    target_call(add_grant, &request);
    return request.grant;
}

static void
renew_grant(struct target *self, void *argument)
{
    struct grant *grant = argument;

    (void)self;
    ck_assert_ptr_null(grant->endpoint);
    grant->is_spent = false;
    atomic_store(&grant->connected_count, 0);
    atomic_store(&grant->gone_count, 0);
}

void
grant_renew(struct grant *grant)
{
    target_call(renew_grant, grant);
}

struct destination
target_destination(size_t key_domain_idx)
{
    struct destination where = {.port = target.port};

    memcpy(where.address, target.address, sizeof(where.address));
    memcpy(where.keys, target.keys[key_domain_idx], sizeof(where.keys));
    return where;
}

void
link_start(struct link *link, struct grant *grant, size_t key_domain_idx, uint64_t timeout_ms)
{
    struct destination where = target_destination(key_domain_idx);
    uint8_t nonce[UC_FABRIC_NONCE_BYTES];

    nonce_of_grant((size_t)(grant - target.grants), nonce);
    link_start_nonce(link, nonce, &where, timeout_ms);
    link->grant = grant;
}

struct uc_fabric_memory
target_memory(const struct target *self, size_t domain_idx, size_t region_idx)
{
    struct uc_fabric_memory memory =
            uc_fabric_host_memory(self->memory[domain_idx][region_idx], REGION_BYTES);

    memory.fd = self->memory_fd[domain_idx];
    memory.fd_offset_bytes = region_idx * (uint64_t)REGION_BYTES;
    return memory;
}

/* A file per domain, as a server has it, so that a provider can hand it out. */
static void
open_memory(size_t domain_idx)
{
    const size_t length = (size_t)REGION_COUNT * REGION_BYTES;
    int fd = memfd_create("fabric-conformance", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    uint8_t *memory;

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(ftruncate(fd, (off_t)length), 0);
    ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
    memory = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ck_assert_ptr_ne(memory, MAP_FAILED);
    target.memory_fd[domain_idx] = fd;
    for (size_t idx = 0; idx < REGION_COUNT; idx++) {
        struct uc_fabric_region **region = &target.regions[domain_idx][idx];
        struct uc_fabric_memory range;

        target.memory[domain_idx][idx] = memory + idx * REGION_BYTES;
        range = target_memory(&target, domain_idx, idx);
        ck_assert_msg(target.ops->region_register(target.domains[domain_idx], &range, (uint32_t)idx,
                              UC_FABRIC_READ_WRITE, region) == UC_OK,
                "%s", uc_last_error());
        target.ops->region_key(*region, &target.keys[domain_idx][idx]);
        ck_assert_uint_eq(target.keys[domain_idx][idx].length_bytes, REGION_BYTES);
    }
}

void
target_open(void)
{
    struct uc_fabric_config config = {.address = fabric_address()};
    struct uc_fabric_listen params = {
            .address = fabric_address(), .ops = &target_ops, .context = &target};
    const char *address;

    memset(&target, 0, sizeof(target));
    pthread_mutex_init(&target.lock, NULL);
    pthread_cond_init(&target.changed, NULL);
    target.wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    ck_assert_int_ge(target.wake_fd, 0);
    ck_assert_msg(uc_fabric_find(fabric_name(), &target.ops) == UC_OK, "%s", uc_last_error());
    ck_assert_msg(target.ops->open(&config, &target.fabric) == UC_OK, "%s", uc_last_error());
    for (size_t idx = 0; idx < DOMAIN_COUNT; idx++) {
        ck_assert_int_eq(target.ops->domain_open(target.fabric, &target.domains[idx]), UC_OK);
        open_memory(idx);
    }
    ck_assert_msg(target.ops->listen(target.fabric, &params, &target.listener) == UC_OK, "%s",
            uc_last_error());
    target.port = target.ops->listener_port(target.listener);
    address = target.ops->listener_address == NULL ? NULL
                                                   : target.ops->listener_address(target.listener);
    ck_assert_int_ne(target.port != 0, address != NULL);
    (void)snprintf(target.address, sizeof(target.address), "%s",
            address == NULL ? fabric_address() : address);
    ck_assert_int_eq(pthread_create(&target.thread, NULL, target_run, &target), 0);
}

static void
stop(struct target *self, void *argument)
{
    (void)argument;
    self->stop = true;
    self->is_paused = false;
}

void
target_close(void)
{
    target_call(stop, NULL);
    pthread_join(target.thread, NULL);
    for (size_t idx = 0; idx < target.grant_count; idx++) {
        cut(&target, &target.grants[idx]);
    }
    if (target.listener != NULL) {
        target.ops->listener_close(target.listener);
    }
    for (size_t domain_idx = 0; domain_idx < DOMAIN_COUNT; domain_idx++) {
        for (size_t idx = 0; idx < REGION_COUNT; idx++) {
            if (target.regions[domain_idx][idx] != NULL) {
                target.ops->region_deregister(target.regions[domain_idx][idx]);
            }
        }
        target.ops->domain_close(target.domains[domain_idx]);
        (void)munmap(target.memory[domain_idx][0], (size_t)REGION_COUNT * REGION_BYTES);
        (void)close(target.memory_fd[domain_idx]);
    }
    target.ops->close(target.fabric);
    (void)close(target.wake_fd);
    pthread_cond_destroy(&target.changed);
    pthread_mutex_destroy(&target.lock);
    ck_assert_int_eq(target.hold_count, target.release_count);
    ck_assert_int_eq(target.wrong_hold_count, 0);
}
