/* The description of a column, and the step from its stored bytes to its text or object. */
#include "native.h"

#include <string.h>

static const char *const STORED_NAMES[] = {
    [STORED_OTHERWISE] = "otherwise", [SIGNED] = "signed", [UNSIGNED] = "unsigned", [UNSIGNED_BIG] = "big endian",
    [YEAR] = "year", [DECIMAL] = "decimal", [FLOAT32] = "float", [FLOAT64] = "double", [DATE] = "date",
    [DATETIME] = "datetime", [TIMESTAMP] = "timestamp", [TIME] = "time", [BYTES] = "bytes", [BINARY_JSON] = "binary json",
    [SERVER_JSON] = "binary json in the server's style",
    [TEXT_INTEGER] = "text of integer", [TEXT_DECIMAL] = "text of decimal", [TEXT_FLOAT32] = "text of float",
    [TEXT_FLOAT64] = "text of double", [TEXT_DATE] = "text of date", [TEXT_DATETIME] = "text of datetime",
    [TEXT_TIME] = "text of time",
};

static const char *const FORM_NAMES[] = {
    [INTEGER] = "integer", [LONG] = "long", [WRAPPED] = "wrapped", [BOOLEAN] = "boolean", [UNSCALED] = "unscaled",
    [PLAIN_DECIMAL] = "plain decimal", [RATIO] = "ratio", [JAVA_FLOAT] = "float", [JAVA_DOUBLE] = "double",
    [MILLIS] = "millis", [NANOS] = "nanos", [DATETIME_NANOS] = "datetime nanos", [DATE_TEXT] = "date text",
    [ZONED] = "zoned", [ZONED_TRIMMED] = "zoned trimmed", [TIME_MILLIS] = "time millis", [TIME_TEXT] = "time text",
    [STRING] = "string", [DOCUMENT] = "document", [MAPPED_STRING] = "mapped string", [BASE64_TEXT] = "base64",
    [BASE64_URL_TEXT] = "base64 url", [HEX_TEXT] = "hex", [BITS] = "bits", [LABEL] = "label", [LABELS] = "labels",
    [INT_OBJECT] = "int object", [FLOAT_OBJECT] = "float object", [TEXT_OBJECT] = "text object",
    [BYTES_OBJECT] = "bytes object", [DATE_OBJECT] = "date object", [DATETIME_OBJECT] = "datetime object",
    [UTC_OBJECT] = "utc datetime object", [TIMEDELTA_OBJECT] = "timedelta object", [FROM_PYTHON] = "from python",
};

#define COUNT(names) ((int)(sizeof(names) / sizeof(names)[0]))

static int number_of(const char *name, const char *const names[], int count) {
    for (int i = 0; i < count; i++) {
        if (strcmp(name, names[i]) == 0) {
            return i;
        }
    }
    PyErr_Format(PyExc_ValueError, "unknown name %s", name);
    return -1;
}

/* Whether values of that many bytes can be decoded: decode() relies on it. */
static bool size_fits(const Column *column) {
    uint32_t size = column->size;
    if (!column->published) {
        return !column->in_row && (column->fixed || size <= 4);
    }
    switch (column->stored) {
    case SIGNED:
    case UNSIGNED:
        return column->fixed && size >= 1 && size <= 8;
    case YEAR:
        return column->fixed && size == 1;
    case FLOAT32:
        return column->fixed && size == 4;
    case FLOAT64:
        return column->fixed && size == 8;
    case DATE:
        return column->fixed && size == 3;
    default:
        return column->fixed || size <= 4;
    }
}

static bool is_bytes_tuple(PyObject *table, Py_ssize_t least) {
    if (!PyTuple_Check(table) || PyTuple_GET_SIZE(table) < least) {
        return false;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(table); i++) {
        if (!PyBytes_Check(PyTuple_GET_ITEM(table, i))) {
            return false;
        }
    }
    return true;
}

static bool table_fits(const Column *column) {
    switch (column->form) {
    case LABEL:
    case LABELS:
        return is_bytes_tuple(column->table, 0);
    case MAPPED_STRING:
        return is_bytes_tuple(column->table, 256);
    default:
        return true;
    }
}

static bool texts_fit(const Column *column) {
    if (!PyBytes_Check(column->before)) {
        return false;
    }
    bool objects = column->form >= INT_OBJECT && column->form != FROM_PYTHON;
    return objects || column->form == FROM_PYTHON || (PyBytes_Check(column->null) && PyBytes_Check(column->absent));
}

bool column_read(Column *column, PyObject *description) {
    const char *stored, *form;
    int fixed, nullable, published, in_row;
    long long argument, minimum;
    memset(column, 0, sizeof *column);
    if (!PyTuple_Check(description)) {
        PyErr_SetString(PyExc_TypeError, "the description of a column is a tuple");
        return false;
    }
    if (!PyArg_ParseTuple(description, "ssIppppiiLLOOOOOOO", &stored, &form, &column->size, &fixed, &nullable,
                          &published, &in_row, &column->precision, &column->scale, &argument, &minimum,
                          &column->before, &column->null, &column->absent, &column->python, &column->table,
                          &column->key_python, &column->key_null)) {
        memset(column, 0, sizeof *column);
        return false;
    }
    Py_INCREF(column->before);
    Py_INCREF(column->null);
    Py_INCREF(column->absent);
    Py_INCREF(column->python);
    Py_INCREF(column->table);
    Py_INCREF(column->key_python);
    Py_INCREF(column->key_null);
    int stored_number = number_of(stored, STORED_NAMES, COUNT(STORED_NAMES));
    int form_number = number_of(form, FORM_NAMES, COUNT(FORM_NAMES));
    if (stored_number < 0 || form_number < 0) {
        return false;
    }
    column->stored = (Stored)stored_number;
    column->form = (Form)form_number;
    column->fixed = fixed;
    column->nullable = nullable;
    column->published = published;
    column->in_row = in_row;
    column->argument = argument;
    column->minimum = minimum;
    if (!size_fits(column) || !table_fits(column) || !texts_fit(column)) {
        PyErr_SetString(PyExc_ValueError, "the description of a column contradicts itself");
        return false;
    }
    return true;
}

void column_clear(Column *column) {
    Py_CLEAR(column->before);
    Py_CLEAR(column->null);
    Py_CLEAR(column->absent);
    Py_CLEAR(column->python);
    Py_CLEAR(column->table);
    Py_CLEAR(column->key_python);
    Py_CLEAR(column->key_null);
}

int column_visit(Column *column, visitproc visit, void *arg) {
    Py_VISIT(column->null);
    Py_VISIT(column->absent);
    Py_VISIT(column->python);
    Py_VISIT(column->table);
    Py_VISIT(column->key_python);
    Py_VISIT(column->key_null);
    return 0;
}

PyObject *call_python(PyObject *python, const byte *data, size_t size) {
    PyObject *stored = PyBytes_FromStringAndSize((const char *)data, (Py_ssize_t)size);
    if (stored == NULL) {
        return NULL;
    }
    PyObject *found = PyDict_Check(python) ? PyObject_GetItem(python, stored) : PyObject_CallOneArg(python, stored);
    Py_DECREF(stored);
    return found;
}

/* The text of a value without Python; IN_PYTHON if that is not possible (`out` is then unchanged). */
static Result write_compiled(const Column *column, const byte *data, size_t size, Output *out) {
    Value value = {0};
    Output made;
    size_t start = out->size;
    bool ascii = out->ascii;
    output_init(&made);
    Result result = decode(column, data, size, &value, &made);
    if (result == DONE) {
        result = value.number < column->minimum ? IN_PYTHON : write_form(column, &value, out);
    }
    if (result == IN_PYTHON) {
        out->size = start;
        out->ascii = ascii;
    }
    output_free(&made);
    return result;
}

Result write_value(const Column *column, const byte *data, size_t size, Output *out) {
    if (column->stored != STORED_OTHERWISE) {
        Result result = write_compiled(column, data, size, out);
        if (result != IN_PYTHON) {
            return result;
        }
    }
    PyObject *text = call_python(column->python, data, size);
    if (text == NULL) {
        return FAILED;
    }
    bool ok = output_add_text(out, text);
    Py_DECREF(text);
    return ok ? DONE : FAILED;
}

PyObject *object_of(const Column *column, const byte *data, size_t size) {
    if (column->stored != STORED_OTHERWISE && column->form != FROM_PYTHON) {
        Value value = {0};
        Output made;
        output_init(&made);
        Result result = decode(column, data, size, &value, &made);
        PyObject *object = result == DONE ? make_object(column, &value) : NULL;
        output_free(&made);
        if (result != IN_PYTHON) {
            return object;
        }
    }
    return call_python(column->python, data, size);
}
