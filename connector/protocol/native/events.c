/* The module rowtide.connector.protocol._native: EventReader reads the events that most transactions consist of.
 *
 *   header, checksum, type ──► GTID, QUERY, TABLE_MAP, rows, XID, MariaDB's GTID
 *
 * Whatever is unusual, damaged, or seen for the first time (a table, a source of GTIDs, the settings of a session) is left
 * to Python, which then reads the event from its beginning, and whose result or error is used. So nothing here reports an
 * error in an event. Every read is checked against the end of the event.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if PY_BIG_ENDIAN
#error "compiled code reads numbers of little-endian machines only; Python is used instead"
#endif

enum { HEADER = 19, CHECKSUM = 4 };
enum { QUERY = 2, XID = 16, TABLE_MAP = 19, GTID = 33, ANONYMOUS_GTID = 34, MARIADB_GTID = 162 };
enum { ARTIFICIAL = 0x20 };
static const long CRC_RESIDUE = 0x2144DF1C;

typedef unsigned char byte;

/* The places of the classes that EventReader makes. */
enum { CLASS_HEADER, CLASS_GTID, CLASS_QUERY, CLASS_XID, CLASS_TABLE_MAP, CLASS_ROWS, CLASS_MARIADB_EVENT,
       CLASS_MARIADB_GTID, CLASSES };

typedef struct {
    PyObject_HEAD
    PyObject *classes;  /* of the header and the events, named tuples */
    PyObject *kinds;    /* RowsKind: write, update, delete */
    PyObject *crc32;    /* zlib.crc32 */
    PyObject *uuids;    /* texts by 16 bytes */
    PyObject *statuses; /* QueryStatus by the bytes of its variables */
    PyObject *no_text;
    PyObject *no_bytes;
} EventReader;

/* An event's bytes, after its header and before its checksum, and the fields of the header. */
typedef struct {
    const byte *at;
    const byte *end;
    PyObject *packet;
    byte type;
    uint32_t timestamp, server_id, size, log_pos;
    uint16_t flags;
} Event;

static uint64_t number(const byte *at, int bytes) {
    uint64_t found = 0;
    for (int i = bytes - 1; i >= 0; i--) {
        found = found << 8 | at[i];
    }
    return found;
}

static bool has(const Event *event, size_t bytes) { return (size_t)(event->end - event->at) >= bytes; }

/* An unsigned number, and the step past it; call `has` before. */
static uint64_t take(Event *event, int bytes) {
    uint64_t found = number(event->at, bytes);
    event->at += bytes;
    return found;
}

/* A named tuple of these fields, whose references it takes; NULL if one is missing. */
static PyObject *tuple_of(const EventReader *self, int class, PyObject **fields, Py_ssize_t count) {
    bool complete = true;
    for (Py_ssize_t i = 0; i < count; i++) {
        complete = complete && fields[i] != NULL;
    }
    PyTypeObject *type = (PyTypeObject *)PyTuple_GET_ITEM(self->classes, class);
    PyObject *made = complete ? type->tp_alloc(type, count) : NULL;
    for (Py_ssize_t i = 0; i < count; i++) {
        if (made != NULL) {
            PyTuple_SET_ITEM(made, i, fields[i]);
        } else {
            Py_XDECREF(fields[i]);
        }
    }
    return made;
}

#define TUPLE(class, ...) \
    tuple_of(self, class, (PyObject *[]){__VA_ARGS__}, (Py_ssize_t)(sizeof((PyObject *[]){__VA_ARGS__}) / sizeof(PyObject *)))

static PyObject *unsigned_int(uint64_t value) { return PyLong_FromUnsignedLongLong(value); }

static PyObject *header_of(const EventReader *self, const Event *event) {
    return TUPLE(CLASS_HEADER, unsigned_int(event->timestamp), unsigned_int(event->type), unsigned_int(event->server_id),
                 unsigned_int(event->size), unsigned_int(event->log_pos), unsigned_int(event->flags));
}

/* What a dictionary has for these bytes, a new reference; NULL without an error if it has nothing. */
static PyObject *cached(PyObject *known, const byte *at, Py_ssize_t size) {
    PyObject *key = PyBytes_FromStringAndSize((const char *)at, size);
    PyObject *found = key == NULL ? NULL : Py_XNewRef(PyDict_GetItemWithError(known, key));
    Py_XDECREF(key);
    return found;
}

/* --- the events: each returns NULL without an error if Python has to read it -------------------------------------- */

static PyObject *read_gtid(const EventReader *self, Event *event) {
    if (!has(event, 25)) {
        return NULL;
    }
    const byte *head = event->at;
    uint64_t last_committed = 0, sequence_number = 0, immediate = 0, original = 0, length = 0, ticket = 0;
    uint64_t immediate_version = 0, original_version = 0;
    event->at += 25;
    if (event->at < event->end) {
        if (!has(event, 17) || take(event, 1) != 2) {
            return NULL;
        }
        last_committed = take(event, 8);
        sequence_number = take(event, 8);
        if ((last_committed | sequence_number) >> 63) {
            return NULL; /* signed numbers in Python */
        }
    }
    if (event->at < event->end) { /* since 8.0.1, with all fields up to the length */
        if (!has(event, 7)) {
            return NULL;
        }
        immediate = original = take(event, 7);
        if (immediate >> 55) {
            immediate ^= (uint64_t)1 << 55;
            if (!has(event, 7)) {
                return NULL;
            }
            original = take(event, 7);
        }
        if (!has(event, 1)) {
            return NULL;
        }
        length = take(event, 1);
        if (length > 250) {
            int bytes = length == 252 ? 2 : length == 253 ? 3 : 8;
            if (length == 251 || length == 255 || !has(event, (size_t)bytes)) {
                return NULL;
            }
            length = take(event, bytes);
        }
    }
    if (event->at < event->end) {
        if (!has(event, 4)) {
            return NULL;
        }
        immediate_version = original_version = take(event, 4);
        if (immediate_version >> 31) {
            immediate_version ^= (uint64_t)1 << 31;
            if (!has(event, 4)) {
                return NULL;
            }
            original_version = take(event, 4);
        }
    }
    if (event->at < event->end) {
        if (!has(event, 8)) {
            return NULL;
        }
        ticket = take(event, 8);
    }
    uint64_t gno = number(head + 17, 8);
    if (event->at != event->end || gno >> 63) {
        return NULL;
    }
    PyObject *uuid = cached(self->uuids, head + 1, 16);
    if (uuid == NULL) {
        return NULL;
    }
    return TUPLE(CLASS_GTID, header_of(self, event), uuid, Py_NewRef(self->no_text), unsigned_int(gno),
                 unsigned_int(head[0]), unsigned_int(last_committed), unsigned_int(sequence_number),
                 unsigned_int(immediate), unsigned_int(original), unsigned_int(length), unsigned_int(immediate_version),
                 unsigned_int(original_version), unsigned_int(ticket));
}

static PyObject *read_query(const EventReader *self, Event *event) {
    if (!has(event, 13)) {
        return NULL;
    }
    uint64_t thread = take(event, 4), seconds = take(event, 4), database_size = take(event, 1);
    uint64_t error = take(event, 2), status_size = take(event, 2);
    if (!has(event, status_size + database_size + 1)) {
        return NULL;
    }
    PyObject *status = cached(self->statuses, event->at, (Py_ssize_t)status_size);
    if (status == NULL) {
        return NULL;
    }
    event->at += status_size;
    PyObject *database = PyUnicode_DecodeUTF8((const char *)event->at, (Py_ssize_t)database_size, NULL);
    if (database == NULL) {
        Py_DECREF(status);
        return NULL;
    }
    event->at += database_size + 1;
    PyObject *statement = PyBytes_FromStringAndSize((const char *)event->at, event->end - event->at);
    return TUPLE(CLASS_QUERY, header_of(self, event), unsigned_int(thread), unsigned_int(seconds), unsigned_int(error),
                 database, statement, status);
}

static PyObject *read_xid(const EventReader *self, Event *event) {
    return has(event, 8) ? TUPLE(CLASS_XID, header_of(self, event), unsigned_int(take(event, 8))) : NULL;
}

static PyObject *read_table_map(const EventReader *self, Event *event, PyObject *structures) {
    if (!has(event, 8)) {
        return NULL;
    }
    uint64_t id = take(event, 6), flags = take(event, 2);
    PyObject *structure = cached(structures, event->at, event->end - event->at);
    if (structure == NULL) {
        return NULL;
    }
    return TUPLE(CLASS_TABLE_MAP, header_of(self, event), unsigned_int(id), unsigned_int(flags), structure);
}

/* The rows events of versions 1 and 2, without extra data; `kind` is the place in `kinds`. */
static PyObject *read_rows(const EventReader *self, Event *event, int version, int kind) {
    if (!has(event, version == 2 ? 11 : 9)) {
        return NULL;
    }
    uint64_t id = take(event, 6), flags = take(event, 2);
    if (version == 2 && take(event, 2) != 2) {
        return NULL;
    }
    uint64_t count = take(event, 1);
    Py_ssize_t size = (Py_ssize_t)(count + 7) >> 3;
    bool update = kind == 1;
    if (count >= 251 || !has(event, (size_t)size << update)) {
        return NULL;
    }
    PyObject *columns = PyBytes_FromStringAndSize((const char *)event->at, size);
    event->at += size;
    PyObject *after = update ? PyBytes_FromStringAndSize((const char *)event->at, size) : Py_XNewRef(columns);
    event->at += update ? size : 0;
    const byte *begin = (const byte *)PyBytes_AS_STRING(event->packet);
    return TUPLE(CLASS_ROWS, header_of(self, event), Py_NewRef(PyTuple_GET_ITEM(self->kinds, kind)), unsigned_int(id),
                 unsigned_int(flags), unsigned_int(count), columns, after, Py_NewRef(Py_False), Py_NewRef(self->no_bytes),
                 Py_NewRef(event->packet), PyLong_FromSsize_t(event->at - begin), PyLong_FromSsize_t(event->end - begin));
}

static PyObject *read_mariadb_gtid(const EventReader *self, Event *event) {
    if (!has(event, 13)) {
        return NULL;
    }
    uint64_t sequence = take(event, 8), domain = take(event, 4), flags = take(event, 1);
    bool plain = !(flags & 0xC2); /* no commit id, no XA identifier */
    for (; plain && event->at < event->end; event->at++) {
        plain = *event->at == 0;
    }
    if (!plain) {
        return NULL;
    }
    PyObject *gtid =
        TUPLE(CLASS_MARIADB_GTID, unsigned_int(domain), unsigned_int(event->server_id), unsigned_int(sequence));
    return TUPLE(CLASS_MARIADB_EVENT, header_of(self, event), gtid, unsigned_int(flags), unsigned_int(0),
                 Py_NewRef(Py_None), unsigned_int(0), Py_NewRef(Py_None), Py_NewRef(Py_None));
}

/* --- the type ------------------------------------------------------------------------------------------------------- */

/* Read the header, and find the body; false if Python has to read the event, or with an error. */
static bool open_event(const EventReader *self, PyObject *packet, int checksum, int verify, Event *event) {
    if (!PyBytes_CheckExact(packet)) {
        return false;
    }
    Py_ssize_t size = PyBytes_GET_SIZE(packet);
    const byte *at = (const byte *)PyBytes_AS_STRING(packet);
    if (size < HEADER + (checksum ? CHECKSUM : 0)) {
        return false;
    }
    *event = (Event){
        .at = at + HEADER,
        .end = at + size - (checksum ? CHECKSUM : 0),
        .packet = packet,
        .timestamp = (uint32_t)number(at, 4),
        .type = at[4],
        .server_id = (uint32_t)number(at + 5, 4),
        .size = (uint32_t)number(at + 9, 4),
        .log_pos = (uint32_t)number(at + 13, 4),
        .flags = (uint16_t)number(at + 17, 2),
    };
    if ((Py_ssize_t)event->size != size || event->flags & ARTIFICIAL) {
        return false;
    }
    if (!checksum || !verify) {
        return true;
    }
    PyObject *found = PyObject_CallOneArg(self->crc32, packet);
    bool right = found != NULL && PyLong_AsLong(found) == CRC_RESIDUE;
    Py_XDECREF(found);
    return right;
}

static bool is_usual(byte type) {
    return type == QUERY || type == XID || type == TABLE_MAP || (type >= 23 && type <= 25) ||
           (type >= 30 && type <= ANONYMOUS_GTID) || type == MARIADB_GTID;
}

/* One event; NULL without an error if Python has to read it. */
static PyObject *read_event(const EventReader *self, PyObject *packet, int checksum, int verify, PyObject *structures) {
    Event event;
    if (!PyBytes_CheckExact(packet) || PyBytes_GET_SIZE(packet) < HEADER ||
        !is_usual((byte)PyBytes_AS_STRING(packet)[4]) || !open_event(self, packet, checksum, verify, &event)) {
        return NULL;
    }
    switch (event.type) {
    case QUERY:
        return read_query(self, &event);
    case XID:
        return read_xid(self, &event);
    case TABLE_MAP:
        return read_table_map(self, &event, structures);
    case GTID:
    case ANONYMOUS_GTID:
        return read_gtid(self, &event);
    case MARIADB_GTID:
        return read_mariadb_gtid(self, &event);
    default:
        return event.type < 30 ? read_rows(self, &event, 1, event.type - 23) : read_rows(self, &event, 2, event.type - 30);
    }
}

/* None for NULL without an error, or with the error of bytes that Python has to report in its own way. */
static PyObject *or_none(PyObject *found) {
    if (found != NULL) {
        return found;
    }
    if (PyErr_Occurred()) {
        if (!PyErr_ExceptionMatches(PyExc_ValueError)) {
            return NULL;
        }
        PyErr_Clear();
    }
    Py_RETURN_NONE;
}

static PyObject *decode(PyObject *object, PyObject *const *args, Py_ssize_t count) {
    if (count != 4 || !PyDict_Check(args[3])) {
        PyErr_SetString(PyExc_TypeError, "decode takes a packet, two flags and a dictionary");
        return NULL;
    }
    int checksum = PyObject_IsTrue(args[1]), verify = PyObject_IsTrue(args[2]);
    return or_none(read_event((EventReader *)object, args[0], checksum, verify, args[3]));
}

/* Whether the packet at a place has this type, and states its position. */
static bool is_type(PyObject *packets, Py_ssize_t place, byte type) {
    PyObject *packet = PyList_GET_ITEM(packets, place);
    if (!PyBytes_CheckExact(packet) || PyBytes_GET_SIZE(packet) < HEADER) {
        return false;
    }
    const byte *at = (const byte *)PyBytes_AS_STRING(packet);
    return at[4] == type && number(at + 13, 4) != 0;
}

/* Whether a Query is BEGIN. */
static bool is_begin(PyObject *query) {
    PyObject *statement = PyTuple_GET_ITEM(query, 5);
    return PyBytes_GET_SIZE(statement) == 5 && memcmp(PyBytes_AS_STRING(statement), "BEGIN", 5) == 0;
}

static PyObject *opening(PyObject *object, PyObject *const *args, Py_ssize_t count) {
    Py_ssize_t at;
    if (count != 5 || !PyList_Check(args[0]) || !PyDict_Check(args[4]) ||
        ((at = PyLong_AsSsize_t(args[1])) < 0 && PyErr_Occurred())) {
        PyErr_SetString(PyExc_TypeError, "opening takes a list, a place in it, two flags and a dictionary");
        return NULL;
    }
    PyObject *packets = args[0];
    if (at < 0 || at > PyList_GET_SIZE(packets) - 3 || !is_type(packets, at + 1, QUERY) ||
        !is_type(packets, at + 2, TABLE_MAP) || !(is_type(packets, at, GTID) || is_type(packets, at, ANONYMOUS_GTID))) {
        Py_RETURN_NONE;
    }
    EventReader *self = (EventReader *)object;
    int checksum = PyObject_IsTrue(args[2]), verify = PyObject_IsTrue(args[3]);
    PyObject *events[3] = {NULL, NULL, NULL};
    for (int i = 0; i < 3; i++) {
        PyObject *packet = Py_NewRef(PyList_GET_ITEM(packets, at + i));
        events[i] = read_event(self, packet, checksum, verify, args[4]);
        Py_DECREF(packet);
        if (events[i] == NULL || (i == 1 && !is_begin(events[i]))) {
            break;
        }
    }
    PyObject *made = events[2] == NULL ? NULL : PyTuple_Pack(3, events[0], events[1], events[2]);
    for (int i = 0; i < 3; i++) {
        Py_XDECREF(events[i]);
    }
    return or_none(made);
}

static PyObject *new(PyTypeObject *type, PyObject *args, PyObject *named) {
    static char *names[] = {"classes", "kinds", "crc32", "uuids", "statuses", NULL};
    PyObject *classes, *kinds, *crc32, *uuids, *statuses;
    if (!PyArg_ParseTupleAndKeywords(args, named, "O!O!OO!O!", names, &PyTuple_Type, &classes, &PyTuple_Type, &kinds,
                                     &crc32, &PyDict_Type, &uuids, &PyDict_Type, &statuses)) {
        return NULL;
    }
    bool right = PyTuple_GET_SIZE(classes) == CLASSES && PyTuple_GET_SIZE(kinds) == 3;
    for (Py_ssize_t i = 0; right && i < CLASSES; i++) {
        PyObject *class = PyTuple_GET_ITEM(classes, i);
        right = PyType_Check(class) && PyType_IsSubtype((PyTypeObject *)class, &PyTuple_Type);
    }
    if (!right) {
        PyErr_SetString(PyExc_TypeError, "EventReader takes the classes of headers and events, and three kinds of rows");
        return NULL;
    }
    EventReader *self = (EventReader *)type->tp_alloc(type, 0);
    if (self != NULL) {
        self->classes = Py_NewRef(classes);
        self->kinds = Py_NewRef(kinds);
        self->crc32 = Py_NewRef(crc32);
        self->uuids = Py_NewRef(uuids);
        self->statuses = Py_NewRef(statuses);
        self->no_text = PyUnicode_FromStringAndSize(NULL, 0);
        self->no_bytes = PyBytes_FromStringAndSize(NULL, 0);
    }
    return (PyObject *)self;
}

static void dealloc(PyObject *object) {
    EventReader *self = (EventReader *)object;
    Py_XDECREF(self->classes);
    Py_XDECREF(self->kinds);
    Py_XDECREF(self->crc32);
    Py_XDECREF(self->uuids);
    Py_XDECREF(self->statuses);
    Py_XDECREF(self->no_text);
    Py_XDECREF(self->no_bytes);
    Py_TYPE(object)->tp_free(object);
}

static PyMethodDef READER_METHODS[] = {
    {"decode", (PyCFunction)(void (*)(void))decode, METH_FASTCALL, "An event; None: Python has to decode it."},
    {"opening", (PyCFunction)(void (*)(void))opening, METH_FASTCALL,
     "The events that open a transaction; None: Python has to decode them."},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject EventReaderType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "rowtide.connector.protocol._native.EventReader",
    .tp_doc = "Reads the usual events, see rowtide.connector.protocol.native.events.",
    .tp_basicsize = sizeof(EventReader),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = new,
    .tp_dealloc = dealloc,
    .tp_methods = READER_METHODS,
};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_native",
    .m_doc = "The usual events of a binlog.",
    .m_size = -1,
};

PyMODINIT_FUNC PyInit__native(void) {
    PyObject *module = PyModule_Create(&MODULE);
    if (module != NULL && PyModule_AddType(module, &EventReaderType) < 0) {
        Py_CLEAR(module);
    }
    return module;
}
