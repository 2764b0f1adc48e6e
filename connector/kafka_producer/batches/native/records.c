/* Messages to records of format 2, one after the other, as they stand in a batch without compression. */
#include "native.h"

#include <string.h>

enum {
    BATCH_OVERHEAD = 61,       /* bytes of a batch before its records */
    MOST_RECORD_OVERHEAD = 21, /* bytes of a record besides its key, value and headers, as in Java's producer */
    LEAST_ROOM = 1024,
    LONGEST_VARINT = 10,
};
static const double LARGEST_FACTOR = 1000.0;

/* The encoded headers of the last message; most messages of an event share one object. */
typedef struct {
    PyObject *object; /* which they are of; NULL for none */
    bool constant;    /* whether the object cannot change, and may be compared in the next call */
    byte *data;
    size_t size, room;
} Headers;

typedef struct {
    PyObject_HEAD
    Py_ssize_t batch_size, raw_limit, record_limit;
    byte *data;
    size_t size, room;
    Py_ssize_t count, exports;
    long long first_timestamp, max_timestamp;
    Headers headers;
} Records;

bool read_items(PyObject *sequence, const char *what, PyObject ***items, Py_ssize_t *count) {
    if (!PyList_Check(sequence) && !PyTuple_Check(sequence)) {
        PyErr_SetString(PyExc_TypeError, what);
        return false;
    }
    *items = PySequence_Fast_ITEMS(sequence);
    *count = PySequence_Fast_GET_SIZE(sequence);
    return true;
}

static bool is_bytes_or_none(PyObject *object) {
    return object == Py_None || PyBytes_Check(object);
}

bool read_message(PyObject *message, PyObject **key, PyObject **value, PyObject **headers) {
    if (!PyTuple_Check(message) || PyTuple_GET_SIZE(message) != 3) {
        PyErr_SetString(PyExc_TypeError, "a message is a tuple of key, value and headers");
        return false;
    }
    *key = PyTuple_GET_ITEM(message, 0);
    *value = PyTuple_GET_ITEM(message, 1);
    *headers = PyTuple_GET_ITEM(message, 2);
    if (!is_bytes_or_none(*key) || !is_bytes_or_none(*value)) {
        PyErr_SetString(PyExc_TypeError, "the key and the value of a message are bytes or None");
        return false;
    }
    return true;
}

static uint64_t zigzag(int64_t number) {
    return (uint64_t)number << 1 ^ (number < 0 ? UINT64_MAX : 0);
}

static size_t varint_size(int64_t number) {
    uint64_t rest = zigzag(number);
    size_t size = 1;
    for (; rest >= 0x80; rest >>= 7) {
        size++;
    }
    return size;
}

static byte *put_varint(byte *to, int64_t number) {
    uint64_t rest = zigzag(number);
    for (; rest >= 0x80; rest >>= 7) {
        *to++ = (byte)(rest | 0x80);
    }
    *to++ = (byte)rest;
    return to;
}

/* The size of bytes; -1 for None, as in the format. */
static int64_t stored_size(PyObject *bytes) {
    return bytes == Py_None ? -1 : (int64_t)PyBytes_GET_SIZE(bytes);
}

static uint64_t field_size(int64_t size) {
    return varint_size(size) + (uint64_t)(size > 0 ? size : 0);
}

static byte *put_field(byte *to, const char *data, int64_t size) {
    to = put_varint(to, size);
    if (size > 0) {
        memcpy(to, data, (size_t)size);
        to += size;
    }
    return to;
}

static byte *put_bytes(byte *to, PyObject *bytes) {
    return put_field(to, bytes == Py_None ? NULL : PyBytes_AS_STRING(bytes), stored_size(bytes));
}

/* Make space for `more` bytes after the first `size`; false: an exception is set. */
static bool reserve(byte **data, size_t *room, size_t size, uint64_t more) {
    if (more <= *room - size) {
        return true;
    }
    if (more > (uint64_t)PY_SSIZE_T_MAX / 2 - size) {
        PyErr_NoMemory();
        return false;
    }
    size_t wanted = size + (size_t)more;
    if (wanted < size + size / 2) {
        wanted = size + size / 2;
    }
    if (wanted < LEAST_ROOM) {
        wanted = LEAST_ROOM;
    }
    byte *moved = PyMem_Realloc(*data, wanted);
    if (moved == NULL) {
        PyErr_NoMemory();
        return false;
    }
    *data = moved;
    *room = wanted;
    return true;
}

static bool encode_header(Headers *headers, PyObject *header) {
    PyObject *name, *value;
    if (!PyTuple_Check(header) || PyTuple_GET_SIZE(header) != 2
        || !PyUnicode_Check(name = PyTuple_GET_ITEM(header, 0))
        || !is_bytes_or_none(value = PyTuple_GET_ITEM(header, 1))) {
        PyErr_SetString(PyExc_TypeError, "a header is a tuple of a str, and bytes or None");
        return false;
    }
    Py_ssize_t name_size;
    const char *text = PyUnicode_AsUTF8AndSize(name, &name_size);
    if (text == NULL || !reserve(&headers->data, &headers->room, headers->size,
                                 field_size(name_size) + field_size(stored_size(value)))) {
        return false;
    }
    byte *end = put_bytes(put_field(headers->data + headers->size, text, name_size), value);
    headers->size = (size_t)(end - headers->data);
    headers->constant = headers->constant && PyTuple_CheckExact(header) && PyUnicode_CheckExact(name)
                        && (value == Py_None || PyBytes_CheckExact(value));
    return true;
}

/* Encode the headers of a message, which are not those of the message before. */
static bool encode_headers(Headers *headers, PyObject *object) {
    PyObject **items;
    Py_ssize_t count;
    if (!read_items(object, "the headers of a message are a list or a tuple", &items, &count)
        || !reserve(&headers->data, &headers->room, 0, LONGEST_VARINT)) {
        return false;
    }
    headers->size = (size_t)(put_varint(headers->data, count) - headers->data);
    headers->constant = PyTuple_CheckExact(object);
    for (Py_ssize_t i = 0; i < count; i++) {
        if (!encode_header(headers, items[i])) {
            return false;
        }
    }
    return true;
}

/* Add a message. TAKEN, or FULL: it belongs into another batch, or into none; or FAILED: an exception is set. */
typedef enum { TAKEN, FULL, FAILED } Added;

static Added add(Records *self, PyObject *message, long long timestamp, double factor) {
    PyObject *key, *value, *object;
    if (!read_message(message, &key, &value, &object)) {
        return FAILED;
    }
    if (object != self->headers.object) {
        self->headers.object = NULL;
        if (!encode_headers(&self->headers, object)) {
            return FAILED;
        }
        self->headers.object = object;
    }
    uint64_t parts = field_size(stored_size(key)) + field_size(stored_size(value)) + self->headers.size;
    if (BATCH_OVERHEAD + MOST_RECORD_OVERHEAD + parts > (uint64_t)self->record_limit) {
        return FULL;
    }
    int64_t delta = self->count == 0 ? 0 : timestamp - self->first_timestamp;
    int64_t body = (int64_t)(1 + varint_size(delta) + varint_size(self->count) + parts);
    int64_t size = (int64_t)varint_size(body) + body;
    if (self->count > 0
        && (BATCH_OVERHEAD + (int64_t)((double)self->size * factor) + size > self->batch_size
            || (int64_t)self->size + size > self->raw_limit)) {
        return FULL;
    }
    if (!reserve(&self->data, &self->room, self->size, (uint64_t)size)) {
        return FAILED;
    }
    byte *to = put_varint(self->data + self->size, body);
    *to++ = 0; /* attributes */
    to = put_varint(put_varint(to, delta), self->count);
    to = put_bytes(put_bytes(to, key), value);
    memcpy(to, self->headers.data, self->headers.size);
    self->size += (size_t)size;
    if (self->count++ == 0) {
        self->first_timestamp = self->max_timestamp = timestamp;
    } else if (timestamp > self->max_timestamp) {
        self->max_timestamp = timestamp;
    }
    return TAKEN;
}

static bool is_free(const Records *self) {
    if (self->exports > 0) {
        PyErr_SetString(PyExc_BufferError, "the records cannot change while they are read");
        return false;
    }
    return true;
}

static PyObject *append(Records *self, PyObject *args) {
    PyObject *messages, **items;
    Py_ssize_t at, count;
    long long timestamp;
    double factor;
    if (!PyArg_ParseTuple(args, "OnLd", &messages, &at, &timestamp, &factor)
        || !read_items(messages, "messages are a list or a tuple", &items, &count) || !is_free(self)) {
        return NULL;
    }
    if (at < 0 || at > count) {
        PyErr_SetString(PyExc_ValueError, "the first message is not one of the messages");
        return NULL;
    }
    if (timestamp < 0) {
        PyErr_SetString(PyExc_ValueError, "a timestamp is not negative");
        return NULL;
    }
    if (!(factor > 0 && factor <= LARGEST_FACTOR)) {
        PyErr_SetString(PyExc_ValueError, "the factor of the compression is positive, and at most 1000");
        return NULL;
    }
    PyObject *earlier = self->headers.object; /* freed at the end: that may run Python code */
    const size_t size = self->size;
    const Py_ssize_t taken = self->count;
    const long long first_timestamp = self->first_timestamp, max_timestamp = self->max_timestamp;
    Added added = TAKEN;
    while (at < count && (added = add(self, items[at], timestamp, factor)) == TAKEN) {
        at++;
    }
    if (added == FAILED) {
        self->size = size;
        self->count = taken;
        self->first_timestamp = first_timestamp;
        self->max_timestamp = max_timestamp;
    }
    if (self->headers.object != earlier) {
        self->headers.object = self->headers.constant ? Py_XNewRef(self->headers.object) : NULL;
        Py_XDECREF(earlier);
    }
    return added == FAILED ? NULL : PyLong_FromSsize_t(at);
}

static PyObject *clear(Records *self, PyObject *nothing) {
    if (!is_free(self)) {
        return NULL;
    }
    self->size = 0;
    self->count = 0;
    self->first_timestamp = self->max_timestamp = 0;
    if (self->room > 2 * (size_t)self->raw_limit) { /* after a very large record */
        PyMem_Free(self->data);
        self->data = NULL;
        self->room = 0;
    }
    Py_RETURN_NONE;
}

static PyObject *view(Records *self, PyObject *nothing) {
    return PyMemoryView_FromObject((PyObject *)self);
}

static int get_buffer(Records *self, Py_buffer *buffer, int flags) {
    static byte none;
    byte *data = self->data == NULL ? &none : self->data;
    if (PyBuffer_FillInfo(buffer, (PyObject *)self, data, (Py_ssize_t)self->size, 1, flags) < 0) {
        return -1;
    }
    self->exports++;
    return 0;
}

static void release_buffer(Records *self, Py_buffer *buffer) {
    self->exports--;
}

static PyObject *new_records(PyTypeObject *type, PyObject *args, PyObject *names) {
    static char *keywords[] = {"batch_size", "raw_limit", "record_limit", NULL};
    Py_ssize_t batch_size, raw_limit, record_limit;
    if (!PyArg_ParseTupleAndKeywords(args, names, "nnn", keywords, &batch_size, &raw_limit, &record_limit)) {
        return NULL;
    }
    if (batch_size < 0 || raw_limit < 0 || raw_limit > INT32_MAX - BATCH_OVERHEAD || record_limit < 0
        || record_limit > INT32_MAX) {
        PyErr_SetString(PyExc_ValueError, "a limit is not negative, and a batch is smaller than 2 GiB");
        return NULL;
    }
    Records *self = (Records *)type->tp_alloc(type, 0);
    if (self != NULL) {
        self->batch_size = batch_size;
        self->raw_limit = raw_limit;
        self->record_limit = record_limit;
    }
    return (PyObject *)self;
}

static void dealloc(Records *self) {
    Py_CLEAR(self->headers.object);
    PyMem_Free(self->headers.data);
    PyMem_Free(self->data);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyObject *get_count(Records *self, void *unused) {
    return PyLong_FromSsize_t(self->count);
}

static PyObject *get_size(Records *self, void *unused) {
    return PyLong_FromSize_t(self->size);
}

static PyObject *get_first_timestamp(Records *self, void *unused) {
    return PyLong_FromLongLong(self->first_timestamp);
}

static PyObject *get_max_timestamp(Records *self, void *unused) {
    return PyLong_FromLongLong(self->max_timestamp);
}

static PyMethodDef METHODS[] = {
    {"append", (PyCFunction)append, METH_VARARGS, "Add messages while there is room."},
    {"clear", (PyCFunction)clear, METH_NOARGS, "Remove all records."},
    {"view", (PyCFunction)view, METH_NOARGS, "The bytes of the records."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef ATTRIBUTES[] = {
    {"count", (getter)get_count, NULL, "The number of records.", NULL},
    {"size", (getter)get_size, NULL, "Their bytes.", NULL},
    {"first_timestamp", (getter)get_first_timestamp, NULL, "The timestamp of the first record.", NULL},
    {"max_timestamp", (getter)get_max_timestamp, NULL, "The latest timestamp.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyBufferProcs BUFFER = {
    .bf_getbuffer = (getbufferproc)get_buffer,
    .bf_releasebuffer = (releasebufferproc)release_buffer,
};

PyTypeObject RecordsType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "rowtide.connector.kafka_producer.batches._native.Records",
    .tp_doc = "The records of one batch, see the module python_records.",
    .tp_basicsize = sizeof(Records),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = new_records,
    .tp_dealloc = (destructor)dealloc,
    .tp_methods = METHODS,
    .tp_getset = ATTRIBUTES,
    .tp_as_buffer = &BUFFER,
};
