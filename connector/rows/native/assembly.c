/* The text of a row and its key, or their tuples, from the columns' values. */
#include "native.h"

/* --- texts ---------------------------------------------------------------------------------------------------------- */

static bool constant_text(RowDecoder *self, Work *work, Py_ssize_t at, PyObject *text, PyObject *in_key) {
    Column *column = &self->columns[at];
    Output *out = column->in_row ? &work->row : &work->side;
    size_t start = out->size;
    if (!output_add_bytes(out, text)) {
        return false;
    }
    work->spans[at] = (Span){out, start, out->size - start};
    if (column->key_python != Py_None) {
        start = work->side.size;
        if (!PyBytes_Check(in_key) || !output_add_bytes(&work->side, in_key)) {
            return false;
        }
        work->spans[at] = (Span){&work->side, start, work->side.size - start};
    }
    return true;
}

static bool stored_text(RowDecoder *self, Work *work, Py_ssize_t at, const byte *data, size_t size) {
    Column *column = &self->columns[at];
    bool separate = column->key_python != Py_None;
    if (separate) {
        PyObject *text = call_python(column->key_python, data, size);
        size_t start = work->side.size;
        bool ok = text != NULL && output_add_text(&work->side, text);
        Py_XDECREF(text);
        if (!ok) {
            return false;
        }
        work->spans[at] = (Span){&work->side, start, work->side.size - start};
    }
    Output *out = column->in_row ? &work->row : &work->side;
    size_t start = out->size;
    if (write_value(column, data, size, out) != DONE) {
        return false;
    }
    if (!separate) {
        work->spans[at] = (Span){out, start, out->size - start};
    }
    return true;
}

static PyObject *texts_of_row(RowDecoder *self, Work *work) {
    Output *key = &work->key;
    key->size = 0;
    key->ascii = work->row.ascii && work->side.ascii;
    bool ok = output_add(&work->row, "}", 1) && output_add(key, "{", 1);
    for (Py_ssize_t i = 0; ok && i < self->key_count; i++) {
        KeyField *field = &self->key[i];
        ok = output_add_bytes(key, field->before);
        if (ok && field->column >= 0) {
            Span *span = &work->spans[field->column];
            ok = output_add(key, span->of->data + span->start, span->size);
        }
    }
    if (!ok || !output_add(key, "}", 1)) {
        return NULL;
    }
    PyObject *key_text = output_unicode(key, 0), *row_text = output_unicode(&work->row, 0), *pair = NULL;
    if (key_text != NULL && row_text != NULL) {
        pair = PyTuple_Pack(2, key_text, row_text);
    }
    Py_XDECREF(key_text);
    Py_XDECREF(row_text);
    return pair;
}

/* --- values --------------------------------------------------------------------------------------------------------- */

static void keep(Work *work, Py_ssize_t at, PyObject *object) {
    Py_XSETREF(work->objects[at], object);
}

static bool stored_object(RowDecoder *self, Work *work, Py_ssize_t at, const byte *data, size_t size) {
    Column *column = &self->columns[at];
    if (column->key_python != Py_None) {
        PyObject *in_key = call_python(column->key_python, data, size);
        if (in_key == NULL) {
            return false;
        }
        keep(work, self->count + at, in_key);
    }
    PyObject *value = object_of(column, data, size);
    keep(work, at, value);
    return value != NULL;
}

static void constant_object(RowDecoder *self, Work *work, Py_ssize_t at, PyObject *value, PyObject *in_key) {
    keep(work, at, Py_NewRef(value));
    if (self->columns[at].key_python != Py_None) {
        keep(work, self->count + at, Py_NewRef(in_key));
    }
}

static PyObject *objects_of_row(RowDecoder *self, Work *work) {
    PyObject *row = PyTuple_New(self->row_count);
    if (row == NULL) {
        return NULL;
    }
    Py_ssize_t place = 0;
    for (Py_ssize_t i = 0; i < self->count; i++) {
        if (self->columns[i].in_row) {
            PyTuple_SET_ITEM(row, place++, Py_NewRef(work->objects[i]));
        }
    }
    if (self->mode == VALUES) {
        return row;
    }
    PyObject *key = PyTuple_New(self->key_count), *pair = NULL;
    if (key != NULL) {
        for (Py_ssize_t i = 0; i < self->key_count; i++) {
            Py_ssize_t column = self->key[i].column;
            bool separate = self->columns[column].key_python != Py_None;
            PyTuple_SET_ITEM(key, i, Py_NewRef(work->objects[separate ? self->count + column : column]));
        }
        pair = PyTuple_Pack(2, key, row);
        Py_DECREF(key);
    }
    Py_DECREF(row);
    return pair;
}

/* --- rows ----------------------------------------------------------------------------------------------------------- */

bool add_constant(RowDecoder *self, Work *work, Py_ssize_t at, PyObject *value, PyObject *in_key) {
    if (self->mode == TEXTS) {
        return constant_text(self, work, at, value, in_key);
    }
    constant_object(self, work, at, value, in_key);
    return true;
}

bool add_stored(RowDecoder *self, Work *work, Py_ssize_t at, const byte *data, size_t size) {
    return self->mode == TEXTS ? stored_text(self, work, at, data, size) : stored_object(self, work, at, data, size);
}

bool begin_row(RowDecoder *self, Work *work) {
    work->row.size = work->side.size = 0;
    work->row.ascii = work->side.ascii = true;
    return self->mode != TEXTS || output_add(&work->row, "{", 1);
}

bool begin_column(RowDecoder *self, Work *work, Py_ssize_t at) {
    Column *column = &self->columns[at];
    return self->mode != TEXTS || !column->in_row || output_add_bytes(&work->row, column->before);
}

PyObject *end_row(RowDecoder *self, Work *work) {
    return self->mode == TEXTS ? texts_of_row(self, work) : objects_of_row(self, work);
}
