/* SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <yaml.h>

#include <ucm/log.h>

#include "core/config/dict_value.h"
#include "core/config/fields.h"
#include "core/config/scalar.h"

enum {
    FILE_BYTES_MAX = 1 << 20, /* a configuration of a thousand namespaces is a tenth of this */
    DEPTH_MAX = 16,
    KEYS_MAX = 4096, /* per mapping: each new key is compared with all before it */
    KEY_BYTES_MAX = 255
};

struct reader {
    yaml_parser_t parser;
    const char *name;
    unsigned depth;
};

static enum uc_status read_value(
        struct reader *reader, yaml_event_t *event, struct uc_dict_value *value_out);

static unsigned
line_of(const yaml_mark_t *mark)
{
    return (unsigned)mark->line + 1;
}

/* All faults of the text come out here: "server.yaml:12: …". */
static enum uc_status
fault(const struct reader *reader, const yaml_mark_t *mark, const char *text)
{
    return uc_error(UC_ERR_INVALID_PARAM, "%s:%u: %s", reader->name, line_of(mark), text);
}

/* Fetch the next event; the caller deletes it. Anchors, aliases and tags end the reading here. */
static enum uc_status
next_event(struct reader *reader, yaml_event_t *event_out)
{
    const char *refused = NULL;

    if (yaml_parser_parse(&reader->parser, event_out) == 0) {
        const char *problem = reader->parser.problem;
        bool has_mark = reader->parser.error == YAML_SCANNER_ERROR ||
                        reader->parser.error == YAML_PARSER_ERROR;

        if (reader->parser.error == YAML_MEMORY_ERROR) {
            return uc_error(UC_ERR_OUT_OF_MEMORY, "%s: out of memory", reader->name);
        }
        return fault(reader, has_mark ? &reader->parser.problem_mark : &reader->parser.mark,
                problem == NULL ? "not YAML" : problem);
    }

    if (event_out->type == YAML_ALIAS_EVENT) {
        refused = "aliases are not supported; write the value out";
    } else if (event_out->type == YAML_SCALAR_EVENT) {
        refused = event_out->data.scalar.anchor != NULL ? "anchors are not supported"
                  : event_out->data.scalar.tag != NULL  ? "tags are not supported"
                                                        : NULL;
    } else if (event_out->type == YAML_MAPPING_START_EVENT) {
        refused = event_out->data.mapping_start.anchor != NULL ? "anchors are not supported"
                  : event_out->data.mapping_start.tag != NULL  ? "tags are not supported"
                                                               : NULL;
    } else if (event_out->type == YAML_SEQUENCE_START_EVENT) {
        refused = event_out->data.sequence_start.anchor != NULL ? "anchors are not supported"
                  : event_out->data.sequence_start.tag != NULL  ? "tags are not supported"
                                                                : NULL;
    }
    if (refused != NULL) {
        enum uc_status status = fault(reader, &event_out->start_mark, refused);

        yaml_event_delete(event_out);
        return status;
    }
    return UC_OK;
}

static enum uc_status
enter(struct reader *reader, const yaml_mark_t *mark)
{
    if (reader->depth == DEPTH_MAX) {
        return fault(reader, mark, "nested too deeply");
    }

    reader->depth++;
    return UC_OK;
}

/* Check a key and give it back as text of the event. */
static enum uc_status
check_key(const struct reader *reader, const struct uc_dict *dict, const yaml_event_t *event,
        const char **key_out)
{
    const char *key;
    const struct uc_dict_entry *entry;

    if (event->type != YAML_SCALAR_EVENT) {
        return fault(reader, &event->start_mark, "a key must be plain text");
    }

    key = (const char *)event->data.scalar.value;
    if (event->data.scalar.length == 0 || event->data.scalar.length > KEY_BYTES_MAX ||
            strlen(key) != event->data.scalar.length) {
        return fault(reader, &event->start_mark, "a key must have 1 to 255 bytes, none of them 0");
    }
    entry = uc_dict_find(dict, key);
    if (entry != NULL) {
        return uc_error(UC_ERR_INVALID_PARAM, "%s:%u: key '%s' is given twice, first in line %u",
                reader->name, line_of(&event->start_mark), key, entry->line);
    }
    if (uc_dict_count(dict) == KEYS_MAX) {
        return fault(reader, &event->start_mark, "too many keys");
    }

    *key_out = key;
    return UC_OK;
}

/* One key, whose event the caller keeps, and its value. */
static enum uc_status
read_entry(struct reader *reader, struct uc_dict *dict, const yaml_event_t *key_event)
{
    struct uc_dict_value value = {.type = UC_DICT_BOOL};
    const char *key = NULL;
    yaml_event_t event;
    enum uc_status status = check_key(reader, dict, key_event, &key);

    if (status == UC_OK) {
        status = next_event(reader, &event);
    }
    if (status != UC_OK) {
        return status;
    }

    status = read_value(reader, &event, &value);
    if (status == UC_OK) {
        status = uc_dict_put(dict, key, &value);
        uc_dict_set_line(dict, key, line_of(&key_event->start_mark));
    }
    return status;
}

/* The entries up to the end of the mapping. */
static enum uc_status
read_mapping(struct reader *reader, struct uc_dict **dict_out)
{
    struct uc_dict *dict = NULL;
    enum uc_status status = uc_dict_create(&dict);
    bool at_end = false;

    while (status == UC_OK && !at_end) {
        yaml_event_t event;

        status = next_event(reader, &event);
        if (status == UC_OK) {
            at_end = event.type == YAML_MAPPING_END_EVENT;
            if (!at_end) {
                status = read_entry(reader, dict, &event);
            }
            yaml_event_delete(&event);
        }
    }
    if (status != UC_OK) {
        uc_dict_destroy(dict);
        return status;
    }

    *dict_out = dict;
    return UC_OK;
}

/* Integers among numbers with a fraction are such numbers too: [1, 2.5] is what people write. */
static void
widen_numbers(struct uc_dict_list *list, struct uc_dict_value *item)
{
    if (list->count == 0 || list->items[0].type == item->type) {
        return;
    }

    if (list->items[0].type == UC_DICT_DOUBLE && item->type == UC_DICT_INT) {
        *item = (struct uc_dict_value){
                .type = UC_DICT_DOUBLE, .as.number = (double)item->as.integer};
    } else if (list->items[0].type == UC_DICT_INT && item->type == UC_DICT_DOUBLE) {
        for (size_t idx = 0; idx < list->count; idx++) {
            list->items[idx] = (struct uc_dict_value){
                    .type = UC_DICT_DOUBLE, .as.number = (double)list->items[idx].as.integer};
        }
    }
}

static enum uc_status
push_item(const struct reader *reader, const yaml_mark_t *mark, struct uc_dict_list *list,
        struct uc_dict_value *item)
{
    if (item->type == UC_DICT_LIST) {
        uc_dict_value_fini(item);
        return fault(reader, mark, "a list cannot hold lists");
    }
    widen_numbers(list, item);
    if (list->count > 0 && list->items[0].type != item->type) {
        uc_dict_value_fini(item);
        return uc_error(UC_ERR_INVALID_PARAM,
                "%s:%u: %s in a list whose elements are each %s; quotes make text", reader->name,
                line_of(mark), uc_dict_type_text(item->type),
                uc_dict_type_text(list->items[0].type));
    }

    return uc_dict_list_push(list, "", item);
}

static enum uc_status
read_sequence(struct reader *reader, struct uc_dict_value *value_out)
{
    struct uc_dict_value value = {.type = UC_DICT_LIST};
    enum uc_status status = UC_OK;
    bool at_end = false;

    while (status == UC_OK && !at_end) {
        struct uc_dict_value item = {.type = UC_DICT_BOOL};
        yaml_event_t event;
        yaml_mark_t mark;

        status = next_event(reader, &event);
        if (status != UC_OK) {
            break;
        }
        mark = event.start_mark;
        if (event.type == YAML_SEQUENCE_END_EVENT) {
            at_end = true;
            yaml_event_delete(&event);
        } else {
            status = read_value(reader, &event, &item);
            if (status == UC_OK) {
                status = push_item(reader, &mark, &value.as.list, &item);
            }
        }
    }
    if (status != UC_OK) {
        uc_dict_value_fini(&value);
        return status;
    }

    *value_out = value;
    return UC_OK;
}

static enum uc_status
read_scalar(const struct reader *reader, const yaml_event_t *event, struct uc_dict_value *value_out)
{
    const char *text = (const char *)event->data.scalar.value;
    size_t length = event->data.scalar.length;
    enum uc_status status;

    if (event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE) {
        status = uc_config_scalar(text, length, value_out);
    } else if (strlen(text) != length) {
        status = uc_error(UC_ERR_INVALID_PARAM, "value contains a zero byte");
    } else {
        status = uc_dict_value_text(text, length, value_out);
    }
    if (status != UC_OK) {
        return uc_error(
                status, "%s:%u: %s", reader->name, line_of(&event->start_mark), uc_last_error());
    }
    return UC_OK;
}

/* Read the value that starts with the event, which is deleted here. */
static enum uc_status
read_value(struct reader *reader, yaml_event_t *event, struct uc_dict_value *value_out)
{
    yaml_event_type_t type = event->type;
    enum uc_status status;

    if (type == YAML_SCALAR_EVENT) {
        status = read_scalar(reader, event, value_out);
        yaml_event_delete(event);
        return status;
    }

    status = enter(reader, &event->start_mark);
    yaml_event_delete(event);
    if (status != UC_OK) {
        return status;
    }
    if (type == YAML_SEQUENCE_START_EVENT) {
        status = read_sequence(reader, value_out);
    } else {
        struct uc_dict *dict = NULL;

        status = read_mapping(reader, &dict);
        if (status == UC_OK) {
            value_out->type = UC_DICT_DICT;
            value_out->as.dict = dict;
        }
    }
    reader->depth--;
    return status;
}

static bool
is_empty_scalar(const yaml_event_t *event)
{
    return event->type == YAML_SCALAR_EVENT && event->data.scalar.length == 0 &&
           event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
}

/* The event after a document's start: a mapping, or nothing at all. */
static enum uc_status
read_root(struct reader *reader, yaml_event_t *event, struct uc_dict **dict_out)
{
    struct uc_dict_value value = {.type = UC_DICT_BOOL};
    enum uc_status status;

    if (is_empty_scalar(event)) {
        yaml_event_delete(event);
        return uc_dict_create(dict_out);
    }
    if (event->type != YAML_MAPPING_START_EVENT) {
        status = fault(reader, &event->start_mark, "expected 'key: value' lines");
        yaml_event_delete(event);
        return status;
    }

    status = read_value(reader, event, &value);
    if (status == UC_OK) {
        *dict_out = value.as.dict;
    }
    return status;
}

/* Stream start, at most one document, stream end. */
static enum uc_status
read_stream(struct reader *reader, struct uc_dict **dict_out)
{
    struct uc_dict *dict = NULL;
    yaml_event_type_t type = YAML_NO_EVENT;
    enum uc_status status = UC_OK;

    while (status == UC_OK && type != YAML_STREAM_END_EVENT) {
        yaml_event_t event;

        status = next_event(reader, &event);
        if (status != UC_OK) {
            break;
        }
        type = event.type;
        if (type == YAML_DOCUMENT_START_EVENT && dict != NULL) {
            status = fault(reader, &event.start_mark, "a second document; one is allowed");
        }
        if (type == YAML_STREAM_START_EVENT || type == YAML_STREAM_END_EVENT ||
                type == YAML_DOCUMENT_START_EVENT || type == YAML_DOCUMENT_END_EVENT) {
            yaml_event_delete(&event);
        } else {
            status = read_root(reader, &event, &dict);
        }
    }
    if (status == UC_OK && dict == NULL) {
        status = uc_dict_create(&dict); /* nothing but comments: all defaults */
    }
    if (status != UC_OK) {
        uc_dict_destroy(dict);
        return status;
    }

    *dict_out = dict;
    return UC_OK;
}

enum uc_status
uc_yaml_read_text(const char *text, size_t length, const char *name, struct uc_dict **dict_out)
{
    struct reader reader = {.name = name};
    enum uc_status status;

    if (length > FILE_BYTES_MAX) {
        return uc_error(UC_ERR_INVALID_PARAM, "%s: %zu bytes; at most %d are read", name, length,
                FILE_BYTES_MAX);
    }
    if (yaml_parser_initialize(&reader.parser) == 0) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "%s: out of memory", name);
    }

    yaml_parser_set_input_string(&reader.parser, (const unsigned char *)text, length);
    status = read_stream(&reader, dict_out);
    yaml_parser_delete(&reader.parser);
    return status;
}

/* Fill the buffer until it is full or the file ends. */
static enum uc_status
read_all(int fd, const char *path, char *buffer, size_t capacity, size_t *length_out)
{
    size_t length = 0;

    while (length < capacity) {
        ssize_t count = read(fd, buffer + length, capacity - length);

        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0) {
            return uc_log_errno(errno, "%s: read", path);
        }
        if (count == 0) {
            break;
        }
        length += (size_t)count;
    }

    *length_out = length;
    return UC_OK;
}

enum uc_status
uc_yaml_read_file(const char *path, struct uc_dict **dict_out)
{
    const size_t capacity =
            (size_t)FILE_BYTES_MAX + 1; /* one more byte shows that it is too long */
    size_t length = 0;
    enum uc_status status;
    char *text;
    int fd;

    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return uc_log_errno(errno, "%s: open", path);
    }

    text = malloc(capacity);
    if (text == NULL) {
        status = uc_error(UC_ERR_OUT_OF_MEMORY, "%s: out of memory", path);
        goto out_close;
    }

    status = read_all(fd, path, text, capacity, &length);
    if (status == UC_OK) {
        status = uc_yaml_read_text(text, length, path, dict_out);
    }
    free(text);
out_close:
    (void)close(fd);
    return status;
}
