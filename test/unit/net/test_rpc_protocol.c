/* SPDX-License-Identifier: Apache-2.0 */

/* The examples of net/PROTOCOL.md are what the code writes, and what it accepts. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <check.h>

#include "net/rpc/connection.h"
#include "net/rpc/messages.h"
#include "net/slot_footer.h"
#include "net/token_payload.h"
#include "test/unit/net/protocol_document.h"

#define TEXT(literal) ((struct uc_rpc_text){.bytes = (literal), .length = sizeof(literal) - 1})

enum {
    FRAME_MAX = 4096,
    OTHER_EXAMPLES = 3, /* error, footer, token */
};

/* Key 0 is 00 01 … 0f, key 1 is 10 11 … 1f. */
static struct uc_block_id keys[2];
static uint8_t entry_bytes[2 * UC_ENTRY_BYTES];
static uint8_t range_bytes[2 * UC_WRITTEN_BYTES];

static void
fill(uint8_t *bytes, size_t length, uint8_t first)
{
    for (size_t idx = 0; idx < length; idx++) {
        bytes[idx] = (uint8_t)(first + idx);
    }
}

static void
setup(void)
{
    struct uc_entry entry = {.offset_bytes = 1088, .generation = 5, .length_bytes = 1000};
    struct uc_written_range range = {.length_bytes = 1000, .announced_bytes = 1000};

    fill(keys[0].bytes, 16, 0x00);
    fill(keys[1].bytes, 16, 0x10);
    uc_entry_put(entry_bytes, &entry);
    entry = (struct uc_entry){.flags = UC_ENTRY_SHARED, .length_bytes = 1024};
    uc_entry_put(entry_bytes + UC_ENTRY_BYTES, &entry);
    uc_written_range_put(range_bytes, &range);
    range = (struct uc_written_range){0};
    uc_written_range_put(range_bytes + UC_WRITTEN_BYTES, &range);
}

static struct uc_keys_view
both_keys(void)
{
    return (struct uc_keys_view){.ids = keys, .count = 2};
}

/* Defines write_X(buffer), which encodes `value`, and redo_X(view, buffer), decode and encode. */
#define CODEC(name, type, prefix, ...)                                             \
    static void write_##name(struct uc_rpc_buffer *buffer)                         \
    {                                                                              \
        struct type value = __VA_ARGS__;                                           \
                                                                                   \
        prefix##_encode(buffer, &value);                                           \
    }                                                                              \
    static void redo_##name(struct uc_rpc_view view, struct uc_rpc_buffer *buffer) \
    {                                                                              \
        struct type value;                                                         \
                                                                                   \
        ck_assert_int_eq(prefix##_decode(view, &value), UC_OK);                    \
        prefix##_encode(buffer, &value);                                           \
    }

CODEC(hello, uc_hello_request, uc_hello_request,
        {
                .version = 1,
                .name_space = TEXT("default"),
                .access = UC_ACCESS_RW,
                .credential = TEXT(""),
                .client = TEXT("demo"),
        })
CODEC(hello_reply, uc_hello_reply, uc_hello_reply,
        {
                .server_id = {0x50},
                .incarnation = 0x1122334455667788,
                .session = 7,
                .lease_ms = 10000,
                .block_bytes = 1024,
                .slot_bytes = 1088,
                .attach_key = {0x60},
                .mac_key = {0x70},
        })
CODEC(attach, uc_attach_request, uc_attach_request,
        {
                .version = 1,
                .attach_key = {0x60},
                .incarnation = 0x1122334455667788,
                .client = TEXT("demo"),
        })
CODEC(attach_reply, uc_attach_reply, uc_attach_reply,
        {
                .attachment = 9,
                .incarnation = 0x1122334455667788,
                .lease_ms = 10000,
                .block_bytes = 1024,
                .slot_bytes = 1088,
                .access = UC_ACCESS_RW,
                .mac_key = {0x70},
                .nonce = {0x80},
                .region_count = 1,
                .region_lengths = (const uint8_t[8]){0, 0, 1},
                .fabric_count = 1,
                .fabrics = {{.name = TEXT("tcp"),
                        .address = TEXT(""),
                        .port = 7471,
                        .keys = (const uint8_t[16]){0}}},
        })
CODEC(ping_reply, uc_ping_reply, uc_ping_reply, {.server_time_ms = 123456, .session_count = 2})
CODEC(grant_reply, uc_grant_reply, uc_grant_reply,
        {.grant = 300, .entries = entry_bytes, .count = 2})
CODEC(alloc, uc_alloc_request, uc_alloc_request,
        {.keys = both_keys(), .has_ttl = true, .ttl_ms = 60000})
CODEC(write_begin, uc_write_begin_request, uc_write_begin_request,
        {.grant = 300, .bracket = 1, .first_key = 0, .key_count = 2})
CODEC(write_end, uc_write_end_request, uc_write_end_request,
        {.bracket = 1, .ok = true, .ranges = range_bytes, .range_count = 2})
CODEC(write_end_failed, uc_write_end_request, uc_write_end_request, {.bracket = 1})
CODEC(commit, uc_commit_request, uc_commit_request, {.grant = 300, .success = true})
CODEC(commit_bitmap, uc_commit_request, uc_commit_request,
        {.grant = 300, .has_bitmap = true, .bitmap = (const uint8_t[1]){0x01}, .bitmap_bytes = 1})
CODEC(touch, uc_touch_request, uc_touch_request, {.keys = both_keys()})
CODEC(report, uc_report_request, uc_report_request,
        {.key = keys[0], .generation = 5, .what = TEXT("checksum")})
CODEC(debug_flip, uc_debug_flip_request, uc_debug_flip_request,
        {.key = keys[0], .offset_bytes = 10})

static void
write_keys(struct uc_rpc_buffer *buffer)
{
    uc_keys_request_encode(buffer, both_keys());
}

static void
redo_keys(struct uc_rpc_view view, struct uc_rpc_buffer *buffer)
{
    struct uc_keys_view value;

    ck_assert_int_eq(uc_keys_request_decode(view, &value), UC_OK);
    uc_keys_request_encode(buffer, value);
}

static void
write_bitmap(struct uc_rpc_buffer *buffer)
{
    const uint8_t bitmap = 0x02;

    uc_bitmap_reply_encode(buffer, &bitmap, 2);
}

static void
redo_bitmap(struct uc_rpc_view view, struct uc_rpc_buffer *buffer)
{
    const uint8_t *bitmap;

    ck_assert_int_eq(uc_bitmap_reply_decode(view, 2, &bitmap), UC_OK);
    uc_bitmap_reply_encode(buffer, bitmap, 2);
}

static void
write_grant(struct uc_rpc_buffer *buffer)
{
    uc_grant_request_encode(buffer, 300);
}

static void
redo_grant(struct uc_rpc_view view, struct uc_rpc_buffer *buffer)
{
    uint64_t grant;

    ck_assert_int_eq(uc_grant_request_decode(view, &grant), UC_OK);
    uc_grant_request_encode(buffer, grant);
}

static void
write_empty(struct uc_rpc_buffer *buffer)
{
    uc_empty_request_encode(buffer);
}

static void
redo_empty(struct uc_rpc_view view, struct uc_rpc_buffer *buffer)
{
    ck_assert_int_eq(uc_empty_request_decode(view), UC_OK);
    uc_empty_request_encode(buffer);
}

static void
write_nil(struct uc_rpc_buffer *buffer)
{
    uc_rpc_buffer_append(buffer, "\xc0", 1);
}

static void
redo_nil(struct uc_rpc_view view, struct uc_rpc_buffer *buffer)
{
    uc_rpc_buffer_append(buffer, view.bytes, view.length);
}

enum kind {
    CALL,
    NOTIFY,
    REPLY,
};

static const struct {
    const char *name;
    enum kind kind;
    enum uc_rpc_method method;
    void (*write)(struct uc_rpc_buffer *buffer);
    void (*redo)(struct uc_rpc_view view, struct uc_rpc_buffer *buffer);
} examples[] = {
        {"hello", CALL, UC_RPC_HELLO, write_hello, redo_hello},
        {"hello-reply", REPLY, UC_RPC_HELLO, write_hello_reply, redo_hello_reply},
        {"attach", CALL, UC_RPC_ATTACH, write_attach, redo_attach},
        {"attach-reply", REPLY, UC_RPC_ATTACH, write_attach_reply, redo_attach_reply},
        {"ping", CALL, UC_RPC_PING, write_empty, redo_empty},
        {"ping-reply", REPLY, UC_RPC_PING, write_ping_reply, redo_ping_reply},
        {"lookup", CALL, UC_RPC_LOOKUP, write_keys, redo_keys},
        {"lookup-reply", REPLY, UC_RPC_LOOKUP, write_bitmap, redo_bitmap},
        {"pin", CALL, UC_RPC_PIN, write_keys, redo_keys},
        {"unpin", NOTIFY, UC_RPC_UNPIN, write_grant, redo_grant},
        {"alloc", CALL, UC_RPC_ALLOC, write_alloc, redo_alloc},
        {"alloc-reply", REPLY, UC_RPC_ALLOC, write_grant_reply, redo_grant_reply},
        {"write_begin", CALL, UC_RPC_WRITE_BEGIN, write_write_begin, redo_write_begin},
        {"write_end", CALL, UC_RPC_WRITE_END, write_write_end, redo_write_end},
        {"write_end-failed", CALL, UC_RPC_WRITE_END, write_write_end_failed, redo_write_end_failed},
        {"commit", CALL, UC_RPC_COMMIT, write_commit, redo_commit},
        {"commit-bitmap", CALL, UC_RPC_COMMIT, write_commit_bitmap, redo_commit_bitmap},
        {"nil-reply", REPLY, UC_RPC_COMMIT, write_nil, redo_nil},
        {"touch", CALL, UC_RPC_TOUCH, write_touch, redo_touch},
        {"report", CALL, UC_RPC_REPORT, write_report, redo_report},
        {"debug_flip", CALL, UC_RPC_DEBUG_FLIP, write_debug_flip, redo_debug_flip},
};

enum {
    EXAMPLE_COUNT = sizeof(examples) / sizeof(examples[0]),
};

/* What the receiving side of an example sees. */
struct seen {
    size_t count;
    enum kind kind;
    enum uc_rpc_method method;
    enum uc_status status;
    size_t length;
    uint8_t bytes[FRAME_MAX];
};

static void
note(struct seen *seen, enum kind kind, enum uc_rpc_method method, struct uc_rpc_view view)
{
    seen->count++;
    seen->kind = kind;
    seen->method = method;
    seen->length = view.length;
    memcpy(seen->bytes, view.bytes, view.length);
}

static void
on_request(void *context, struct uc_rpc_connection *connection, uint32_t message_id,
        enum uc_rpc_method method, struct uc_rpc_view params)
{
    (void)connection;
    ck_assert_uint_eq(message_id, 0);
    note(context, CALL, method, params);
}

static void
on_notification(void *context, struct uc_rpc_connection *connection, enum uc_rpc_method method,
        struct uc_rpc_view params)
{
    (void)connection;
    note(context, NOTIFY, method, params);
}

static void
on_reply(void *context, enum uc_status status, struct uc_rpc_view result)
{
    struct seen *seen = context;

    if (status == UC_OK) {
        note(seen, REPLY, UC_RPC_METHOD_COUNT, result);
    } else {
        seen->count++;
    }
    seen->status = status;
}

static const struct uc_rpc_handler handler = {
        .on_request = on_request,
        .on_notification = on_notification,
};

static struct uc_rpc_connection *
open_pair(struct seen *seen, int *raw_fd_out)
{
    struct uc_rpc_connection *connection;
    int fds[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    ck_assert_int_eq(
            uc_rpc_connection_create(fds[0], &handler, seen, FRAME_MAX, &connection), UC_OK);
    *raw_fd_out = fds[1];
    return connection;
}

static void
send_example(struct uc_rpc_connection *connection, enum kind kind, enum uc_rpc_method method,
        const struct uc_rpc_buffer *body, struct seen *seen)
{
    switch (kind) {
    case CALL:
        ck_assert_int_eq(uc_rpc_call(connection, method, body, 1000, on_reply, seen), UC_OK);
        break;
    case NOTIFY:
        ck_assert_int_eq(uc_rpc_notify(connection, method, body), UC_OK);
        break;
    case REPLY:
        uc_rpc_reply(connection, 0, body);
        break;
    }
}

START_TEST(messages_are_written_as_documented)
{
    struct seen seen = {0};
    struct uc_rpc_buffer body = {0};
    uint8_t bytes[FRAME_MAX];
    ssize_t length;
    int fd;
    struct uc_rpc_connection *connection = open_pair(&seen, &fd);

    examples[_i].write(&body);
    send_example(connection, examples[_i].kind, examples[_i].method, &body, &seen);
    length = read(fd, bytes, sizeof(bytes));
    ck_assert_int_gt(length, 0);
    uc_protocol_compare(examples[_i].name, bytes, (size_t)length);
    uc_rpc_buffer_fini(&body);
    uc_rpc_connection_destroy(connection);
    (void)close(fd);
}
END_TEST

START_TEST(messages_are_accepted_as_documented)
{
    struct seen seen = {0};
    struct uc_rpc_buffer body = {0};
    uint8_t bytes[FRAME_MAX];
    size_t length = uc_protocol_example(examples[_i].name, bytes, sizeof(bytes));
    int fd;
    struct uc_rpc_connection *connection = open_pair(&seen, &fd);

    if (examples[_i].kind == REPLY) {
        uc_empty_request_encode(&body);
        send_example(connection, CALL, examples[_i].method, &body, &seen); /* id 0 waits now */
        uc_rpc_buffer_reset(&body);
    }
    ck_assert_int_eq(write(fd, bytes, length), (ssize_t)length);
    uc_rpc_connection_progress(connection);
    ck_assert_uint_eq(seen.count, 1);
    ck_assert_int_eq(seen.kind, examples[_i].kind);
    if (examples[_i].kind != REPLY) {
        ck_assert_int_eq(seen.method, examples[_i].method);
    }

    examples[_i].redo((struct uc_rpc_view){.bytes = seen.bytes, .length = seen.length}, &body);
    ck_assert_uint_eq(body.length, seen.length);
    ck_assert_mem_eq(body.bytes, seen.bytes, seen.length);
    uc_rpc_buffer_fini(&body);
    uc_rpc_connection_destroy(connection);
    (void)close(fd);
}
END_TEST

START_TEST(errors_are_as_documented)
{
    struct seen seen = {0};
    struct uc_rpc_buffer body = {0};
    uint8_t bytes[FRAME_MAX];
    ssize_t length;
    int fd;
    struct uc_rpc_connection *connection = open_pair(&seen, &fd);

    uc_rpc_reply_error(connection, 0, UC_ERR_NOT_FOUND, "pin: no such block");
    length = read(fd, bytes, sizeof(bytes));
    ck_assert_int_gt(length, 0);
    uc_protocol_compare("error-reply", bytes, (size_t)length);

    uc_empty_request_encode(&body);
    send_example(connection, CALL, UC_RPC_PIN, &body, &seen);
    ck_assert_int_eq(write(fd, bytes, (size_t)length), length);
    uc_rpc_connection_progress(connection);
    ck_assert_int_eq(seen.status, UC_ERR_NOT_FOUND);
    ck_assert_str_eq(uc_last_error(), "pin: no such block");
    uc_rpc_buffer_fini(&body);
    uc_rpc_connection_destroy(connection);
    (void)close(fd);
}
END_TEST

START_TEST(footer_is_as_documented)
{
    uint8_t footer[UC_FOOTER_BYTES];
    struct uc_checksum_piece piece = {.address = "hello", .length_bytes = 5};

    uc_slot_footer_put_server(footer, UC_FOOTER_COMMITTED, 5, &keys[0], true);
    uc_slot_footer_put_writer(footer + UC_FOOTER_WRITER_OFFSET, 5, UC_CHECKSUM_XXH3_64,
            uc_slot_checksum(&keys[0], 5, &piece, 1));
    uc_protocol_compare("footer", footer, sizeof(footer));
}
END_TEST

START_TEST(token_payload_is_as_documented)
{
    const uint8_t mac_key[UC_TOKEN_KEY_BYTES] = {0x70};
    struct uc_token_node node = {
            .name = "mem0:7470",
            .name_bytes = 9,
            .server_id = {0x50},
            .attach_key = {0x60},
            .incarnation = 0x1122334455667788,
            .grant = 300,
            .kind = UC_TOKEN_READ,
    };
    struct uc_token_entry entry = {.offset_bytes = 1088, .generation = 5, .length_bytes = 1000};
    struct uc_token_content content = {
            .nodes = &node,
            .mac_keys = &mac_key,
            .node_count = 1,
            .keys = keys,
            .key_count = 1,
            .copies = 1,
            .entries = &entry,
    };
    uint8_t payload[FRAME_MAX];
    size_t length;
    struct uc_token_view view;
    struct uc_token_mac *mac;

    ck_assert_int_eq(uc_token_mac_create(&mac), UC_OK);
    ck_assert_int_eq(uc_token_payload_bytes(&content, &length), UC_OK);
    ck_assert_int_eq(uc_token_payload_encode(mac, &content, payload, sizeof(payload)), UC_OK);
    uc_protocol_compare("token", payload, length);
    length = uc_protocol_example("token", payload, sizeof(payload));
    ck_assert_int_eq(uc_token_payload_parse(payload, length, 1, &view), UC_OK);
    ck_assert_int_eq(uc_token_payload_verify(mac, &view, keys, 0, mac_key), UC_OK);
    uc_token_mac_destroy(mac);
}
END_TEST

/* Those of the fabrics, named tcp-… and so on, are their own suites'. */
START_TEST(no_example_goes_unchecked)
{
    static const char *const others[] = {"shm-", "tcp-", "verbs-", NULL};

    ck_assert_uint_eq(uc_protocol_example_count(others), EXAMPLE_COUNT + OTHER_EXAMPLES);
}
END_TEST

static Suite *
rpc_protocol_suite(void)
{
    Suite *suite = suite_create("rpc_protocol");
    TCase *messages = tcase_create("examples");

    tcase_add_checked_fixture(messages, setup, NULL);
    tcase_add_loop_test(messages, messages_are_written_as_documented, 0, EXAMPLE_COUNT);
    tcase_add_loop_test(messages, messages_are_accepted_as_documented, 0, EXAMPLE_COUNT);
    tcase_add_test(messages, errors_are_as_documented);
    tcase_add_test(messages, footer_is_as_documented);
    tcase_add_test(messages, token_payload_is_as_documented);
    tcase_add_test(messages, no_example_goes_unchecked);
    suite_add_tcase(suite, messages);
    return suite;
}

int
main(void)
{
    SRunner *runner = srunner_create(rpc_protocol_suite());
    int failed;

    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
