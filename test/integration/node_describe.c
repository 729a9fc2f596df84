/* SPDX-License-Identifier: Apache-2.0 */

/* describe: what the topology says of itself, as JSON on one line, cut to what tests look at. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "test/integration/node.h"

static void print_dict(const struct uc_dict *dict);

static void
print_text(const char *text)
{
    (void)putchar('"');
    for (; *text != '\0'; text++) {
        (void)putchar(*text == '"' || *text == '\\' || (unsigned char)*text < ' ' ? '?' : *text);
    }
    (void)putchar('"');
}

/* Lists of other things than dictionaries are left empty. */
static void
print_list(const struct uc_dict *dict, const char *key)
{
    size_t count = 0;

    (void)putchar('[');
    if (uc_dict_get_list_count(dict, key, &count) == UC_OK) {
        for (size_t idx = 0; idx < count; idx++) {
            const struct uc_dict *item = NULL;

            if (uc_dict_get_dict_at(dict, key, idx, &item) == UC_OK) {
                (void)printf("%s", idx == 0 ? "" : ", ");
                print_dict(item);
            }
        }
    }
    (void)putchar(']');
}

static void
print_value(const struct uc_dict *dict, const char *key)
{
    const struct uc_dict *inner = NULL;
    const char *text = NULL;
    int64_t integer = 0;
    bool flag = false;

    if (uc_dict_get_int(dict, key, &integer) == UC_OK) {
        (void)printf("%" PRId64, integer);
    } else if (uc_dict_get_bool(dict, key, &flag) == UC_OK) {
        (void)printf("%s", flag ? "true" : "false");
    } else if (uc_dict_get_string(dict, key, &text) == UC_OK) {
        print_text(text);
    } else if (uc_dict_get_dict(dict, key, &inner) == UC_OK) {
        print_dict(inner);
    } else {
        print_list(dict, key);
    }
}

static void
print_dict(const struct uc_dict *dict)
{
    (void)putchar('{');
    for (size_t idx = 0; idx < uc_dict_count(dict); idx++) {
        const char *key = uc_dict_key_at(dict, idx);

        (void)printf("%s", idx == 0 ? "" : ", ");
        print_text(key);
        (void)printf(": ");
        print_value(dict, key);
    }
    (void)putchar('}');
}

void
node_command_describe(struct node *node, char **words, size_t word_count)
{
    struct uc_dict *description = NULL;
    enum uc_status status = uc_dict_create(&description);

    (void)words;
    (void)word_count;
    if (status == UC_OK) {
        status = node->scheduler != NULL ? uc_scheduler_describe(node->scheduler, description)
                                         : uc_worker_describe(node->worker, description);
    }
    if (status == UC_OK) {
        (void)printf("ok ");
        print_dict(description);
        (void)printf("\n");
    } else {
        node_answer(status);
    }
    uc_dict_destroy(description);
}
