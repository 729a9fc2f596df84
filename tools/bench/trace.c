/* SPDX-License-Identifier: Apache-2.0 */

#include "tools/bench/trace.h"

#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where the reader is, for its errors. */
struct place {
    const char *path;
    size_t line;
};

/* Scratch of the reader. */
struct reader {
    struct place place;
    FILE *file;
    char *line;
    uint64_t *ids;
    uint64_t *sorted;
};

static enum uc_status
grow(void **array, size_t *capacity, size_t need, size_t size_bytes)
{
    size_t wanted = *capacity == 0 ? 1024 : *capacity;
    void *grown;

    while (wanted < need) {
        wanted *= 2;
    }
    if (wanted == *capacity) {
        return UC_OK;
    }

    grown = reallocarray(*array, wanted, size_bytes);
    if (grown == NULL) {
        return uc_error(UC_ERR_OUT_OF_MEMORY, "trace: no memory for %zu entries", wanted);
    }

    *array = grown;
    *capacity = wanted;
    return UC_OK;
}

enum uc_status
uc_trace_add(struct uc_trace *trace, const struct uc_trace_request *request,
        const uint64_t *hash_ids, size_t count)
{
    void *requests = trace->requests;
    void *ids = trace->hash_ids;
    enum uc_status status = grow(&requests, &trace->request_capacity, trace->request_count + 1,
            sizeof(trace->requests[0]));

    trace->requests = requests;
    if (status != UC_OK) {
        return status;
    }
    status = grow(&ids, &trace->hash_id_capacity, trace->hash_id_count + count,
            sizeof(trace->hash_ids[0]));
    trace->hash_ids = ids;
    if (status != UC_OK) {
        return status;
    }

    if (count > 0) {
        memcpy(trace->hash_ids + trace->hash_id_count, hash_ids, count * sizeof(hash_ids[0]));
    }
    trace->requests[trace->request_count] = *request;
    trace->requests[trace->request_count].first = trace->hash_id_count;
    trace->requests[trace->request_count].count = count;
    trace->hash_id_count += count;
    trace->request_count++;
    return UC_OK;
}

static enum uc_status
refuse(const struct place *place, const char *what)
{
    return uc_error(UC_ERR_INVALID_PARAM, "%s:%zu: %s", place->path, place->line, what);
}

static enum uc_status
get_number(const struct place *place, const json_t *object, const char *key, uint64_t *value_out)
{
    const json_t *value = json_object_get(object, key);

    if (!json_is_integer(value) || json_integer_value(value) < 0) {
        return uc_error(UC_ERR_INVALID_PARAM, "%s:%zu: \"%s\" is not an integer of 0 or more",
                place->path, place->line, key);
    }

    *value_out = (uint64_t)json_integer_value(value);
    return UC_OK;
}

static int
compare_ids(const void *left, const void *right)
{
    uint64_t first = *(const uint64_t *)left;
    uint64_t second = *(const uint64_t *)right;

    return first < second ? -1 : first > second;
}

/* An id names a block and all before it, so it cannot come twice in one request. */
static bool
has_duplicate(struct reader *reader, size_t count)
{
    memcpy(reader->sorted, reader->ids, count * sizeof(reader->ids[0]));
    qsort(reader->sorted, count, sizeof(reader->sorted[0]), compare_ids);
    for (size_t idx = 1; idx < count; idx++) {
        if (reader->sorted[idx - 1] == reader->sorted[idx]) {
            return true;
        }
    }

    return false;
}

static enum uc_status
get_ids(struct reader *reader, const json_t *object, size_t *count_out)
{
    const json_t *list = json_object_get(object, "hash_ids");
    size_t count = json_array_size(list);

    if (!json_is_array(list)) {
        return refuse(&reader->place, "\"hash_ids\" is not a list");
    }
    if (count > UC_TRACE_REQUEST_IDS_MAX) {
        return refuse(&reader->place, "\"hash_ids\" has more than 65536 ids");
    }

    for (size_t idx = 0; idx < count; idx++) {
        const json_t *id = json_array_get(list, idx);

        if (!json_is_integer(id) || json_integer_value(id) < 0) {
            return refuse(&reader->place, "\"hash_ids\" has an element that is not an integer ≥ 0");
        }
        reader->ids[idx] = (uint64_t)json_integer_value(id);
    }
    if (has_duplicate(reader, count)) {
        return refuse(&reader->place, "\"hash_ids\" names an id twice");
    }

    *count_out = count;
    return UC_OK;
}

static enum uc_status
read_object(struct reader *reader, const json_t *object, struct uc_trace *trace)
{
    struct uc_trace_request request = {0};
    enum uc_status status;
    size_t count = 0;

    if (!json_is_object(object)) {
        return refuse(&reader->place, "not a JSON object");
    }

    status = get_number(&reader->place, object, "timestamp", &request.timestamp_ms);
    if (status == UC_OK) {
        status = get_number(&reader->place, object, "input_length", &request.input_length);
    }
    if (status == UC_OK) {
        status = get_number(&reader->place, object, "output_length", &request.output_length);
    }
    if (status == UC_OK) {
        status = get_ids(reader, object, &count);
    }
    if (status == UC_OK) {
        status = uc_trace_add(trace, &request, reader->ids, count);
    }
    return status;
}

/* Up to the end of a line, whatever bytes are in it. @return how many; 0 = end of the file. */
static size_t
next_line(struct reader *reader)
{
    size_t length = 0;
    int byte = 0;

    while (byte != '\n' && length + 1 < UC_TRACE_LINE_BYTES_MAX &&
            (byte = getc_unlocked(reader->file)) != EOF) {
        reader->line[length++] = (char)byte;
    }
    reader->line[length] = '\0';
    return length;
}

static enum uc_status
read_line(struct reader *reader, size_t length, struct uc_trace *trace)
{
    enum uc_status status;
    json_error_t error;
    json_t *object;

    if (length + 1 == UC_TRACE_LINE_BYTES_MAX && reader->line[length - 1] != '\n') {
        return refuse(&reader->place, "the line is longer than 4 MiB");
    }
    if (strspn(reader->line, " \t\r\n") == length) {
        return UC_OK;
    }

    object = json_loadb(reader->line, length, JSON_REJECT_DUPLICATES, &error);
    if (object == NULL) {
        return uc_error(UC_ERR_INVALID_PARAM, "%s:%zu:%d: not a whole JSON object: %s",
                reader->place.path, reader->place.line, error.column, error.text);
    }

    status = read_object(reader, object, trace);
    json_decref(object);
    return status;
}

static enum uc_status
read_lines(struct reader *reader, uint64_t limit, struct uc_trace *trace)
{
    size_t length;

    while ((limit == 0 || trace->request_count < limit) && (length = next_line(reader)) > 0) {
        enum uc_status status;

        reader->place.line++;
        status = read_line(reader, length, trace);
        if (status != UC_OK) {
            return status;
        }
    }

    if (ferror(reader->file)) {
        return uc_error(UC_ERR_OS_API, "%s: read: %s", reader->place.path, strerror(errno));
    }
    if (trace->request_count == 0) {
        return uc_error(UC_ERR_INVALID_PARAM, "%s: no requests in it", reader->place.path);
    }
    return UC_OK;
}

enum uc_status
uc_trace_read(const char *path, uint64_t limit, struct uc_trace *trace_out)
{
    struct reader reader = {.place = {.path = path}};
    struct uc_trace trace = {0};
    enum uc_status status = UC_ERR_OUT_OF_MEMORY;

    reader.file = fopen(path, "re");
    if (reader.file == NULL) {
        return uc_error(UC_ERR_OS_API, "%s: open: %s", path, strerror(errno));
    }

    reader.line = malloc(UC_TRACE_LINE_BYTES_MAX);
    reader.ids = calloc(UC_TRACE_REQUEST_IDS_MAX, sizeof(reader.ids[0]));
    reader.sorted = calloc(UC_TRACE_REQUEST_IDS_MAX, sizeof(reader.sorted[0]));
    if (reader.line == NULL || reader.ids == NULL || reader.sorted == NULL) {
        (void)uc_error(status, "%s: no memory to read it", path);
        goto out;
    }

    status = read_lines(&reader, limit, &trace);
    if (status == UC_OK) {
        *trace_out = trace;
    } else {
        uc_trace_fini(&trace);
    }

out:
    free(reader.sorted);
    free(reader.ids);
    free(reader.line);
    (void)fclose(reader.file);
    return status;
}

void
uc_trace_fini(struct uc_trace *trace)
{
    free(trace->requests);
    free(trace->hash_ids);
    *trace = (struct uc_trace){0};
}
