/* RowDecoder: the rows of one table, from the images of an event or from the packets of a result set. */
#include "native.h"

#include <string.h>

static void clear(RowDecoder *self) {
    for (Py_ssize_t i = 0; self->columns != NULL && i < self->count; i++) {
        column_clear(&self->columns[i]);
    }
    for (Py_ssize_t i = 0; self->key != NULL && i < self->key_count; i++) {
        Py_CLEAR(self->key[i].before);
    }
}

static void dealloc(PyObject *object) {
    RowDecoder *self = (RowDecoder *)object;
    PyObject_GC_UnTrack(object);
    clear(self);
    PyMem_Free(self->columns);
    PyMem_Free(self->present);
    PyMem_Free(self->key);
    Py_TYPE(object)->tp_free(object);
}

static int traverse(PyObject *object, visitproc visit, void *arg) {
    RowDecoder *self = (RowDecoder *)object;
    for (Py_ssize_t i = 0; self->columns != NULL && i < self->count; i++) {
        int found = column_visit(&self->columns[i], visit, arg);
        if (found) {
            return found;
        }
    }
    return 0;
}

static int tp_clear(PyObject *object) {
    clear((RowDecoder *)object);
    return 0;
}

static bool read_columns(RowDecoder *self, PyObject *columns) {
    self->columns = PyMem_Calloc((size_t)PyTuple_GET_SIZE(columns) + 1, sizeof(Column));
    if (self->columns == NULL) {
        PyErr_NoMemory();
        return false;
    }
    for (; self->count < PyTuple_GET_SIZE(columns); self->count++) {
        Column *column = &self->columns[self->count];
        if (!column_read(column, PyTuple_GET_ITEM(columns, self->count))) {
            column_clear(column);
            return false;
        }
        self->row_count += column->in_row;
    }
    return true;
}

/* Whether all columns are published, and stored in a way that has no fixed size. */
static bool packets_fit(const RowDecoder *self) {
    for (Py_ssize_t i = 0; i < self->count; i++) {
        Stored stored = self->columns[i].stored;
        bool any_size = stored == STORED_OTHERWISE || stored == UNSIGNED_BIG || stored >= BYTES;
        if (!self->columns[i].published || !any_size) {
            return false;
        }
    }
    return true;
}

static bool read_images(RowDecoder *self, PyObject *images) {
    Py_ssize_t count = PyTuple_GET_SIZE(images);
    self->present = PyMem_Calloc((size_t)(count * self->count) + 1, 1);
    if (self->present == NULL) {
        PyErr_NoMemory();
        return false;
    }
    bool any = count == 0 && packets_fit(self);
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *image = PyTuple_GET_ITEM(images, i);
        if (!PyBytes_Check(image) || PyBytes_GET_SIZE(image) != self->count) {
            PyErr_SetString(PyExc_ValueError, "an image has one byte for each column");
            return false;
        }
        for (Py_ssize_t c = 0; c < self->count; c++) {
            self->present[i * self->count + c] = PyBytes_AS_STRING(image)[c] != 0;
            any = any || self->present[i * self->count + c];
        }
    }
    self->images = count;
    if (!any) {
        PyErr_SetString(PyExc_ValueError, "images hold columns, and packets have texts");
        return false;
    }
    return true;
}

static bool read_key(RowDecoder *self, PyObject *key) {
    self->key = PyMem_Calloc((size_t)PyTuple_GET_SIZE(key) + 1, sizeof(KeyField));
    if (self->key == NULL) {
        PyErr_NoMemory();
        return false;
    }
    for (; self->key_count < PyTuple_GET_SIZE(key); self->key_count++) {
        PyObject *before;
        Py_ssize_t column;
        if (!PyArg_Parse(PyTuple_GET_ITEM(key, self->key_count), "(Sn)", &before, &column)) {
            return false;
        }
        if (column < (self->mode == TEXTS ? -1 : 0) || column >= self->count || (column >= 0 && !self->columns[column].published)) {
            PyErr_SetString(PyExc_ValueError, "the key has a column that is not published");
            return false;
        }
        self->key[self->key_count] = (KeyField){Py_NewRef(before), column};
    }
    return true;
}

static PyObject *new(PyTypeObject *type, PyObject *args, PyObject *named) {
    static char *names[] = {"columns", "held", "key", "mode", NULL};
    PyObject *columns, *images, *key;
    const char *mode;
    if (!PyArg_ParseTupleAndKeywords(args, named, "O!O!O!s", names, &PyTuple_Type, &columns, &PyTuple_Type, &images,
                                     &PyTuple_Type, &key, &mode)) {
        return NULL;
    }
    RowDecoder *self = (RowDecoder *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    self->mode = strcmp(mode, "texts") == 0 ? TEXTS : strcmp(mode, "key values") == 0 ? KEY_VALUES : VALUES;
    if (!read_columns(self, columns) || !read_images(self, images) || !read_key(self, key)) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

/* --- images --------------------------------------------------------------------------------------------------------- */

/* Find the bytes of a value, and step past it; false if the event ends before. */
static bool take(const Column *column, Work *work, const byte **data, size_t *size) {
    size_t left = (size_t)(work->end - work->p), length = column->size;
    if (left < length) {
        return false;
    }
    if (!column->fixed) {
        uint32_t prefix = 0;
        for (uint32_t i = 0; i < column->size; i++) {
            prefix |= (uint32_t)work->p[i] << 8 * i;
        }
        work->p += column->size;
        left -= column->size;
        length = prefix;
        if (left < length) {
            return false;
        }
    }
    *data = work->p;
    *size = length;
    work->p += length;
    return true;
}

static PyObject *image(RowDecoder *self, Work *work, const byte *present) {
    size_t held = 0, bit = 0;
    for (Py_ssize_t i = 0; i < self->count; i++) {
        held += present[i];
    }
    const byte *nulls = work->p;
    if ((size_t)(work->end - work->p) < (held + 7) / 8) {
        return NULL;
    }
    work->p += (held + 7) / 8;
    if (!begin_row(self, work)) {
        return NULL;
    }
    for (Py_ssize_t i = 0; i < self->count; i++) {
        Column *column = &self->columns[i];
        if (!begin_column(self, work, i)) {
            return NULL;
        }
        if (!present[i]) {
            if (column->published && !add_constant(self, work, i, column->absent, column->absent)) {
                return NULL;
            }
            continue;
        }
        bool null = column->nullable && nulls[bit >> 3] >> (bit & 7) & 1;
        bit++;
        if (null) {
            if (column->published && !add_constant(self, work, i, column->null, column->key_null)) {
                return NULL;
            }
            continue;
        }
        const byte *data;
        size_t size;
        if (!take(column, work, &data, &size)) {
            return NULL;
        }
        if (column->published && !add_stored(self, work, i, data, size)) {
            return NULL;
        }
    }
    return end_row(self, work);
}

static bool append(PyObject *rows, PyObject *row) {
    int failed = row == NULL ? -1 : PyList_Append(rows, row);
    Py_XDECREF(row);
    return failed == 0;
}

static bool all_images(RowDecoder *self, Work *work, PyObject *rows) {
    while (work->p < work->end) {
        for (Py_ssize_t i = 0; i < self->images; i++) {
            if (!append(rows, image(self, work, self->present + i * self->count))) {
                return false;
            }
        }
    }
    return true;
}

/* --- packets of a result set ---------------------------------------------------------------------------------------- */

static const uint32_t LARGEST_PACKET = 0xFFFFFF;
static const byte NULL_VALUE = 251;

/* Find the text of a value. A length that does not fit into one byte follows in 2, 3 or 8. */
static bool take_text(const Column *column, Work *work, const byte **data, size_t *size) {
    static const size_t widths[3] = {2, 3, 8};
    byte first = *work->p++;
    uint64_t length = first;
    if (first > NULL_VALUE) {
        size_t width = first < 255 && !column->fixed ? widths[first - 252] : 0;
        if (width == 0 || (size_t)(work->end - work->p) < width) {
            return false;
        }
        length = 0;
        for (size_t i = 0; i < width; i++) {
            length |= (uint64_t)work->p[i] << 8 * i;
        }
        work->p += width;
    }
    if ((uint64_t)(work->end - work->p) < length) {
        return false;
    }
    *data = work->p;
    *size = (size_t)length;
    work->p += length;
    return true;
}

/* The row in the packet from work->p to work->end. */
static PyObject *packet(RowDecoder *self, Work *work) {
    if (!begin_row(self, work)) {
        return NULL;
    }
    for (Py_ssize_t i = 0; i < self->count; i++) {
        Column *column = &self->columns[i];
        if (work->p == work->end || !begin_column(self, work, i)) {
            return NULL;
        }
        if (*work->p == NULL_VALUE) {
            work->p++;
            if (!add_constant(self, work, i, column->null, column->key_null)) {
                return NULL;
            }
            continue;
        }
        const byte *data;
        size_t size;
        if (!take_text(column, work, &data, &size) || !add_stored(self, work, i, data, size)) {
            return NULL;
        }
    }
    return work->p == work->end ? end_row(self, work) : NULL;
}

/* All complete packets of rows; work->p is then after them. */
static bool all_packets(RowDecoder *self, Work *work, PyObject *rows) {
    const byte *end = work->end;
    while (end - work->p > 4) {
        const byte *at = work->p + 4;
        uint32_t size = work->p[0] | (uint32_t)work->p[1] << 8 | (uint32_t)work->p[2] << 16;
        if ((size_t)(end - at) < size || size == LARGEST_PACKET || (at[0] > 253 && (size < 9 || at[0] == 255))) {
            break;
        }
        work->p = at;
        work->end = at + size;
        if (!append(rows, packet(self, work))) {
            return false;
        }
    }
    return true;
}

/* --- calls ---------------------------------------------------------------------------------------------------------- */

typedef bool Walk(RowDecoder *self, Work *work, PyObject *rows);

/* A list of rows; NULL without an exception if Python has to decode them. */
static PyObject *walked(RowDecoder *self, Work *work, Walk *walk) {
    output_init(&work->row);
    output_init(&work->side);
    output_init(&work->key);
    work->spans = PyMem_Calloc((size_t)self->count + 1, sizeof(Span));
    work->objects = PyMem_Calloc(2 * (size_t)self->count + 1, sizeof(PyObject *));
    PyObject *rows = work->spans != NULL && work->objects != NULL ? PyList_New(0) : PyErr_NoMemory();
    if (rows != NULL && !walk(self, work, rows)) {
        Py_CLEAR(rows);
    }
    output_free(&work->row);
    output_free(&work->side);
    output_free(&work->key);
    for (Py_ssize_t i = 0; work->objects != NULL && i < 2 * self->count; i++) {
        Py_XDECREF(work->objects[i]);
    }
    PyMem_Free(work->spans);
    PyMem_Free(work->objects);
    if (rows == NULL && PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_Exception)) {
        PyErr_Clear(); /* an exception such as KeyboardInterrupt stays */
    }
    return rows;
}

static PyObject *images(PyObject *object, PyObject *args) {
    PyObject *event;
    Py_ssize_t start, end;
    if (!PyArg_ParseTuple(args, "Onn", &event, &start, &end)) {
        return NULL;
    }
    if (!PyBytes_Check(event) || ((RowDecoder *)object)->images == 0 || start < 0 || end < start || end > PyBytes_GET_SIZE(event)) {
        Py_RETURN_NONE;
    }
    const byte *bytes = (const byte *)PyBytes_AS_STRING(event);
    Work work = {.p = bytes + start, .end = bytes + end};
    PyObject *rows = walked((RowDecoder *)object, &work, all_images);
    return rows == NULL && !PyErr_Occurred() ? Py_NewRef(Py_None) : rows;
}

static PyObject *packets(PyObject *object, PyObject *buffer) {
    if (!PyBytes_Check(buffer) || ((RowDecoder *)object)->images) {
        Py_RETURN_NONE;
    }
    const byte *bytes = (const byte *)PyBytes_AS_STRING(buffer);
    Work work = {.p = bytes, .end = bytes + PyBytes_GET_SIZE(buffer)};
    PyObject *rows = walked((RowDecoder *)object, &work, all_packets);
    if (rows == NULL) {
        return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
    }
    return Py_BuildValue("Nn", rows, (Py_ssize_t)(work.p - bytes));
}

static PyMethodDef METHODS[] = {
    {"images", images, METH_VARARGS, "The rows of the images between two offsets; None: Python has to decode them."},
    {"packets", packets, METH_O, "The rows of packets, and the offset after them; None: Python has to decode them."},
    {NULL, NULL, 0, NULL},
};

PyTypeObject RowDecoderType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "rowtide.connector.rows._native.RowDecoder",
    .tp_doc = "Decodes the rows of one table.",
    .tp_basicsize = sizeof(RowDecoder),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = new,
    .tp_dealloc = dealloc,
    .tp_traverse = traverse,
    .tp_clear = tp_clear,
    .tp_methods = METHODS,
};
