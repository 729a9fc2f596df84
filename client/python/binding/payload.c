/* SPDX-License-Identifier: Apache-2.0 */

/* BlockPayload, and packing a list of them into the arrays that C takes. */

#include <stdlib.h>
#include <string.h>

#include "client/python/binding/binding.h"

enum field {
    FIELD_POINTERS,
    FIELD_SIZES,
    FIELD_REGIONS,
    FIELD_GROUPS,
    FIELD_COUNT,
};

static const char *const field_names[FIELD_COUNT] = {
        "pointers", "sizes", "memory_region_indices", "group_sizes"};
static const size_t element_bytes[FIELD_COUNT] = {
        sizeof(void *), sizeof(uint64_t), sizeof(uint32_t), sizeof(uint64_t)};

/* A row of numbers: a list, or whatever exports a buffer of unsigned integers (array, numpy). */
struct payload {
    PyObject ob_base;
    PyObject *fields[FIELD_COUNT];
    unsigned long long block_offset;
};

static int
field_set(PyObject *object, PyObject *value, void *closure)
{
    struct payload *self = (struct payload *)object;
    size_t idx = (size_t)(uintptr_t)closure;
    PyObject *stored;

    if (value == NULL) {
        PyErr_Format(PyExc_TypeError, "%s cannot be deleted", field_names[idx]);
        return -1;
    }
    /* bytes would be taken for addresses of one byte: a mistake for certain */
    if (PyList_Check(value) || (PyObject_CheckBuffer(value) && !PyBytes_Check(value))) {
        stored = Py_NewRef(value);
    } else if (PyBytes_Check(value) || PyUnicode_Check(value)) {
        PyErr_Format(PyExc_TypeError, "%s must be a list of int or a buffer of unsigned integers",
                field_names[idx]);
        return -1;
    } else {
        stored = PySequence_List(value);
        if (stored == NULL) {
            return -1;
        }
    }

    Py_XSETREF(self->fields[idx], stored);
    return 0;
}

static PyObject *
field_get(PyObject *object, void *closure)
{
    struct payload *self = (struct payload *)object;

    return Py_NewRef(self->fields[(size_t)(uintptr_t)closure]);
}

static int
payload_clear(PyObject *object)
{
    struct payload *self = (struct payload *)object;

    for (size_t idx = 0; idx < FIELD_COUNT; idx++) {
        Py_CLEAR(self->fields[idx]);
    }
    return 0;
}

static int
payload_traverse(PyObject *object, visitproc visit, void *arg)
{
    struct payload *self = (struct payload *)object;

    for (size_t idx = 0; idx < FIELD_COUNT; idx++) {
        Py_VISIT(self->fields[idx]);
    }
    return 0;
}

static void
payload_dealloc(PyObject *object)
{
    PyObject_GC_UnTrack(object);
    (void)payload_clear(object);
    Py_TYPE(object)->tp_free(object);
}

static PyObject *
payload_make(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {
            "pointers", "sizes", "memory_region_indices", "group_sizes", "block_offset", NULL};
    PyObject *values[FIELD_COUNT] = {NULL, NULL, NULL, NULL};
    PyObject *offset = NULL;
    uint64_t block_offset = 0;
    struct payload *self;

    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|OOOOO:BlockPayload", names, &values[0],
                &values[1], &values[2], &values[3], &offset)) {
        return NULL;
    }
    if (offset != NULL && uc_py_to_uint64(offset, "block_offset", &block_offset) != 0) {
        return NULL;
    }
    self = (struct payload *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }

    self->block_offset = block_offset;
    for (size_t idx = 0; idx < FIELD_COUNT; idx++) {
        self->fields[idx] = PyList_New(0);
        if (self->fields[idx] == NULL ||
                (values[idx] != NULL &&
                        field_set((PyObject *)self, values[idx], (void *)(uintptr_t)idx) != 0)) {
            Py_DECREF(self);
            return NULL;
        }
    }
    return (PyObject *)self;
}

static PyGetSetDef payload_getset[] = {
        {"pointers", field_get, field_set, "list of int: addresses of the block's pieces",
                (void *)FIELD_POINTERS},
        {"sizes", field_get, field_set, "list of int: bytes, one per pointer", (void *)FIELD_SIZES},
        {"memory_region_indices", field_get, field_set,
                "list of int: registered regions, one per pointer, or empty",
                (void *)FIELD_REGIONS},
        {"group_sizes", field_get, field_set, "list of int: pointers per group, or empty",
                (void *)FIELD_GROUPS},
        {"block_offset", uc_py_number_get, uc_py_number_set,
                "int: first byte of the stored block that this covers",
                (void *)offsetof(struct payload, block_offset)},
        {NULL, NULL, NULL, NULL, NULL},
};

PyTypeObject uc_py_payload_type = {
        PyVarObject_HEAD_INIT(NULL, 0).tp_name = "ucm_proxy.BlockPayload",
        .tp_basicsize = sizeof(struct payload),
        .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
        .tp_doc = "BlockPayload(pointers=[], sizes=[], memory_region_indices=[], group_sizes=[], "
                  "block_offset=0)\n--\n\nWhere one block lies in the engine's memory.",
        .tp_new = payload_make,
        .tp_dealloc = payload_dealloc,
        .tp_traverse = payload_traverse,
        .tp_clear = payload_clear,
        .tp_getset = payload_getset,
};

/* One field while it is read: a list, or an open buffer. */
struct row {
    PyObject *list;
    Py_buffer view; /* obj is NULL for a list */
    size_t count;
};

static void
row_close(struct row *row)
{
    if (row->list == NULL) {
        PyBuffer_Release(&row->view);
    }
    Py_CLEAR(row->list);
}

static int
row_open(PyObject *object, const char *name, struct row *row)
{
    const char *format;

    memset(row, 0, sizeof(*row));
    if (PyList_Check(object)) {
        row->list =
                Py_NewRef(object); /* an element's __index__ may put another list in its place */
        row->count = (size_t)PyList_GET_SIZE(object);
        return 0;
    }

    if (PyObject_GetBuffer(object, &row->view, PyBUF_ND | PyBUF_FORMAT) != 0) {
        return -1;
    }
    format = row->view.format == NULL ? "B" : row->view.format;
    format += format[0] == '@' || format[0] == '=' || format[0] == '<' ? 1 : 0;
    if (row->view.ndim != 1 || strchr("QqLlNnIi", format[0]) == NULL || format[0] == '\0' ||
            (row->view.itemsize != 8 && row->view.itemsize != 4)) {
        (void)uc_py_raise_invalid("%s: a buffer must be one row of 32 or 64 bit integers", name);
        PyBuffer_Release(&row->view);
        return -1;
    }
    row->count = (size_t)(row->view.len / row->view.itemsize);
    return 0;
}

static int
row_number(const struct row *row, size_t idx, const char *name, uint64_t *value_out)
{
    if (row->list != NULL) {
        PyObject *item;
        int result;

        if (idx >= (size_t)PyList_GET_SIZE(row->list)) {
            (void)uc_py_raise_invalid("%s: the list was changed while it was read", name);
            return -1;
        }
        item = Py_NewRef(PyList_GET_ITEM(row->list, (Py_ssize_t)idx));
        result = uc_py_to_uint64(item, name, value_out);
        Py_DECREF(item);
        return result;
    }

    if (row->view.itemsize == 8) {
        memcpy(value_out, (const uint8_t *)row->view.buf + idx * 8, 8);
    } else {
        uint32_t narrow;

        memcpy(&narrow, (const uint8_t *)row->view.buf + idx * 4, 4);
        *value_out = narrow;
    }
    return 0;
}

/* Write a row to @p to, in the width of its field. */
static int
row_copy(const struct row *row, enum field field, uint8_t *to)
{
    for (size_t idx = 0; idx < row->count; idx++) {
        uint64_t value = 0;
        uint32_t narrow;

        if (row_number(row, idx, field_names[field], &value) != 0) {
            return -1;
        }
        if (field == FIELD_REGIONS) {
            if (value > UINT32_MAX) {
                (void)uc_py_raise_invalid("%s: %llu is no region index", field_names[field],
                        (unsigned long long)value);
                return -1;
            }
            narrow = (uint32_t)value;
            memcpy(to + idx * sizeof(narrow), &narrow, sizeof(narrow));
        } else {
            memcpy(to + idx * sizeof(value), &value, sizeof(value));
        }
    }
    return 0;
}

static size_t
align8(size_t bytes)
{
    return (bytes + 7) & ~(size_t)7;
}

/* The rows of one payload, opened. */
struct rows {
    struct row items[FIELD_COUNT];
    size_t open;
};

static void
rows_close(struct rows *rows)
{
    while (rows->open > 0) {
        row_close(&rows->items[--rows->open]);
    }
}

static int
rows_open(PyObject *object, size_t idx, struct rows *rows)
{
    struct payload *payload = (struct payload *)object;

    rows->open = 0;
    if (!PyObject_TypeCheck(object, &uc_py_payload_type)) {
        PyErr_Format(PyExc_TypeError, "payloads[%zu] must be BlockPayload, not %s", idx,
                Py_TYPE(object)->tp_name);
        return -1;
    }
    for (size_t field = 0; field < FIELD_COUNT; field++) {
        if (row_open(payload->fields[field], field_names[field], &rows->items[field]) != 0) {
            rows_close(rows);
            return -1;
        }
        rows->open = field + 1;
    }
    if (rows->items[FIELD_POINTERS].count != rows->items[FIELD_SIZES].count) {
        (void)uc_py_raise_invalid("payloads[%zu] has %zu pointers and %zu sizes", idx,
                rows->items[FIELD_POINTERS].count, rows->items[FIELD_SIZES].count);
        rows_close(rows);
        return -1;
    }
    return 0;
}

static size_t
rows_bytes(const struct rows *rows)
{
    size_t bytes = 0;

    for (size_t field = 0; field < FIELD_COUNT; field++) {
        bytes += align8(rows->items[field].count * element_bytes[field]);
    }
    return bytes;
}

/* Room for what follows, by doubling; offsets and not addresses are kept until the end. */
static int
grow(uint8_t **bytes, size_t *capacity, size_t wanted)
{
    size_t size = *capacity == 0 ? 4096 : *capacity;
    uint8_t *fresh;

    if (wanted <= *capacity) {
        return 0;
    }
    while (size < wanted) {
        size *= 2;
    }
    fresh = realloc(*bytes, size);
    if (fresh == NULL) {
        (void)PyErr_NoMemory();
        return -1;
    }
    *bytes = fresh;
    *capacity = size;
    return 0;
}

/* Where the rows of a payload begin in the buffer that is being filled: as a pointer, an offset. */
static void
describe(struct uc_block_payload *item, const struct rows *rows, const size_t *starts,
        uint64_t block_offset)
{
    size_t regions = rows->items[FIELD_REGIONS].count;
    size_t groups = rows->items[FIELD_GROUPS].count;

    *item = (struct uc_block_payload){
            .pointers = (void *const *)starts[FIELD_POINTERS],
            .sizes = (const uint64_t *)starts[FIELD_SIZES],
            .pointer_count = rows->items[FIELD_POINTERS].count,
            .memory_region_indices = regions == 0 ? NULL : (const uint32_t *)starts[FIELD_REGIONS],
            .memory_region_index_count = regions,
            .group_sizes = groups == 0 ? NULL : (const uint64_t *)starts[FIELD_GROUPS],
            .group_count = groups,
            .block_offset = block_offset,
    };
}

/* Offsets become addresses, now that the buffer moves no more. */
static void
relocate(struct uc_py_payloads *payloads)
{
    uintptr_t base = (uintptr_t)payloads->items;

    for (size_t idx = 0; idx < payloads->count; idx++) {
        struct uc_block_payload *item = &payloads->items[idx];

        item->pointers = (void *const *)(base + (uintptr_t)item->pointers);
        item->sizes = (const uint64_t *)(base + (uintptr_t)item->sizes);
        if (item->memory_region_indices != NULL) {
            item->memory_region_indices =
                    (const uint32_t *)(base + (uintptr_t)item->memory_region_indices);
        }
        if (item->group_sizes != NULL) {
            item->group_sizes = (const uint64_t *)(base + (uintptr_t)item->group_sizes);
        }
    }
}

/* Append one payload's rows at *used and describe them in item idx. */
static int
pack_one(PyObject *object, size_t idx, uint8_t **bytes, size_t *capacity, size_t *used)
{
    size_t starts[FIELD_COUNT];
    struct rows rows;
    int result = -1;

    if (rows_open(object, idx, &rows) != 0) {
        return -1;
    }
    if (grow(bytes, capacity, *used + rows_bytes(&rows)) != 0) {
        goto out;
    }
    for (size_t field = 0; field < FIELD_COUNT; field++) {
        starts[field] = *used;
        if (row_copy(&rows.items[field], (enum field)field, *bytes + *used) != 0) {
            goto out;
        }
        *used += align8(rows.items[field].count * element_bytes[field]);
    }
    describe((struct uc_block_payload *)(void *)*bytes + idx, &rows, starts,
            ((struct payload *)object)->block_offset);
    result = 0;

out:
    rows_close(&rows);
    return result;
}

int
uc_py_payloads_get(PyObject *tuple, struct uc_py_payloads *payloads_out)
{
    size_t count = (size_t)PyTuple_GET_SIZE(tuple);
    size_t used = count * sizeof(struct uc_block_payload);
    size_t capacity = 0;
    uint8_t *bytes = NULL;

    if (grow(&bytes, &capacity, used + 1) != 0) {
        return -1;
    }
    for (size_t idx = 0; idx < count; idx++) {
        PyObject *item = PyTuple_GET_ITEM(tuple, (Py_ssize_t)idx);

        if (pack_one(item, idx, &bytes, &capacity, &used) != 0) {
            free(bytes);
            return -1;
        }
    }

    payloads_out->items = (struct uc_block_payload *)(void *)bytes;
    payloads_out->count = count;
    relocate(payloads_out);
    return 0;
}

void
uc_py_payloads_release(struct uc_py_payloads *payloads)
{
    free(payloads->items);
    payloads->items = NULL;
}
