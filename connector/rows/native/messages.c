/* Keys and values of messages from the texts of rows: what is the same for all messages of an event stands around them. */
#include "native.h"

#include <string.h>

/* The text `place` (0: key, 1: row) of a pair as UTF-8; false if it is not text. */
static bool text_of(PyObject *pair, Py_ssize_t place, const char **data, Py_ssize_t *size) {
    if (!PyTuple_Check(pair) || PyTuple_GET_SIZE(pair) != 2 || !PyUnicode_Check(PyTuple_GET_ITEM(pair, place))) {
        PyErr_SetString(PyExc_TypeError, "a row is a pair of texts");
        return false;
    }
    *data = PyUnicode_AsUTF8AndSize(PyTuple_GET_ITEM(pair, place), size);
    return *data != NULL;
}

static char *put(char *to, const char *data, Py_ssize_t size) {
    memcpy(to, data, (size_t)size);
    return to + size;
}

PyObject *message_parts(PyObject *module, PyObject *args) {
    PyObject *rows;
    const char *opening, *closing;
    Py_ssize_t opening_size, closing_size, place;
    if (!PyArg_ParseTuple(args, "y#O!ny#", &opening, &opening_size, &PyList_Type, &rows, &place, &closing,
                          &closing_size)) {
        return NULL;
    }
    if (place < 0 || place > 1) {
        PyErr_SetString(PyExc_ValueError, "a row has two texts");
        return NULL;
    }
    Py_ssize_t count = PyList_GET_SIZE(rows);
    PyObject *made = PyList_New(count);
    for (Py_ssize_t i = 0; made != NULL && i < count; i++) {
        const char *text;
        Py_ssize_t size;
        PyObject *part = text_of(PyList_GET_ITEM(rows, i), place, &text, &size)
                            ? PyBytes_FromStringAndSize(NULL, opening_size + size + closing_size)
                            : NULL;
        if (part == NULL) {
            Py_CLEAR(made);
            break;
        }
        put(put(put(PyBytes_AS_STRING(part), opening, opening_size), text, size), closing, closing_size);
        PyList_SET_ITEM(made, i, part);
    }
    return made;
}

typedef struct {
    const char *data;
    Py_ssize_t size;
} Text;

static PyObject *value(Text opening, Text old, Text between, Text new, Text middle, long long row, Text tail) {
    char number[24];
    Py_ssize_t digits = PyOS_snprintf(number, sizeof number, "%lld", row);
    Py_ssize_t size = opening.size + between.size + middle.size + digits + tail.size;
    if (old.size > PY_SSIZE_T_MAX - size || new.size > PY_SSIZE_T_MAX - size - old.size) {
        return PyErr_NoMemory();
    }
    PyObject *made = PyBytes_FromStringAndSize(NULL, size + old.size + new.size);
    if (made != NULL) {
        char *to = put(PyBytes_AS_STRING(made), opening.data, opening.size);
        to = put(to, old.data, old.size);
        to = put(to, between.data, between.size);
        to = put(to, new.data, new.size);
        to = put(to, middle.data, middle.size);
        to = put(to, number, digits);
        put(to, tail.data, tail.size);
    }
    return made;
}

PyObject *message_values(PyObject *module, PyObject *args) {
    PyObject *before, *after;
    Text opening, between, middle, tail;
    long long first;
    if (!PyArg_ParseTuple(args, "y#Os#Os#Ls#", &opening.data, &opening.size, &before, &between.data, &between.size, &after,
                          &middle.data, &middle.size, &first, &tail.data, &tail.size)) {
        return NULL;
    }
    PyObject *some = before == Py_None ? after : before;
    if (!PyList_Check(some) || (after != Py_None && (!PyList_Check(after) || PyList_GET_SIZE(after) != PyList_GET_SIZE(some)))) {
        PyErr_SetString(PyExc_ValueError, "rows before and after are lists of the same length, or None");
        return NULL;
    }
    Py_ssize_t count = PyList_GET_SIZE(some);
    PyObject *values = PyList_New(count);
    for (Py_ssize_t i = 0; values != NULL && i < count; i++) {
        Text old = {"null", 4}, new = {"null", 4};
        bool ok = before == Py_None || text_of(PyList_GET_ITEM(before, i), 1, &old.data, &old.size);
        ok = ok && (after == Py_None || text_of(PyList_GET_ITEM(after, i), 1, &new.data, &new.size));
        PyObject *made = ok ? value(opening, old, between, new, middle, first + i, tail) : NULL;
        if (made == NULL) {
            Py_CLEAR(values);
            break;
        }
        PyList_SET_ITEM(values, i, made);
    }
    return values;
}

/* The bytes of a key or a value; -1 with an exception if it is neither bytes nor None. */
static Py_ssize_t bytes_of(PyObject *part) {
    if (part == Py_None) {
        return 0;
    }
    if (!PyBytes_Check(part)) {
        PyErr_SetString(PyExc_TypeError, "keys and values are bytes or None");
        return -1;
    }
    return PyBytes_GET_SIZE(part);
}

PyObject *message_bytes(PyObject *module, PyObject *messages) {
    PyObject *items = PySequence_Fast(messages, "messages are a list or a tuple");
    if (items == NULL) {
        return NULL;
    }
    unsigned long long total = 0;
    bool ok = true;
    for (Py_ssize_t i = 0; ok && i < PySequence_Fast_GET_SIZE(items); i++) {
        PyObject *message = PySequence_Fast_GET_ITEM(items, i);
        ok = PyTuple_Check(message) && PyTuple_GET_SIZE(message) == 3;
        if (!ok) {
            PyErr_SetString(PyExc_ValueError, "a message is a tuple of key, value and headers");
        }
        for (Py_ssize_t place = 0; ok && place < 2; place++) {
            Py_ssize_t size = bytes_of(PyTuple_GET_ITEM(message, place));
            ok = size >= 0;
            total += ok ? (unsigned long long)size : 0;
        }
    }
    Py_DECREF(items);
    return ok ? PyLong_FromUnsignedLongLong(total) : NULL;
}
