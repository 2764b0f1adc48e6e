/* Messages as JSON lines: {"topic":…,"key":…,"value":…,"headers":…}, with key and value as JSON strings.
 *
 * The messages of an event begin with the same schemas. Their text is made once. The lines are packed: they refer to text
 * of an earlier line, which only the kernel copies when they are written. */
#include "native.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/uio.h>

/* A piece of packed lines: this head, the text, and after it the parts, the last one first. They are not between the
 * text: a process that only passes the lines to the kernel need not read it, and another one has written it. */
typedef struct {
    uint64_t text; /* bytes */
    uint64_t parts;
} Piece;

/* A part of a piece: its own text, which follows that of the part before, and after it text from another place. */
typedef struct {
    uint64_t own;    /* bytes */
    uint64_t at;     /* where the other text is, from the beginning of the piece's text */
    uint64_t shared; /* its bytes */
} Part;

/* Shorter text is copied: a segment that is written costs as much. */
enum { MIN_SHARED = 256 };

/* The room that is left between text and parts, the text, and the text of the part that is being written. */
typedef struct {
    char *to, *end, *text, *own;
} Room;

/* The bytes with which all keys, or all values, have begun so far, and their text in a line. */
typedef struct {
    const byte *data;
    size_t size;
    const char *text;
    size_t text_size;
} Shared;

static inline size_t left(const Room *room) {
    return (size_t)(room->end - room->to);
}

static bool no_room(void) {
    PyErr_SetString(PyExc_BufferError, "the memory is too small for the lines");
    return false;
}

static bool put(Room *room, const char *data, size_t size) {
    if (left(room) < size) {
        return no_room();
    }
    memcpy(room->to, data, size);
    room->to += size;
    return true;
}

static bool end_part(Room *room, const char *shared, size_t size) {
    Part part = {(uint64_t)(room->to - room->own), (uint64_t)(shared - room->text), size};
    if (left(room) < sizeof part) {
        return no_room();
    }
    room->end -= sizeof part;
    memcpy(room->end, &part, sizeof part);
    room->own = room->to;
    return true;
}

/* Adds text that is in the room already. */
static bool put_again(Room *room, const char *text, size_t size) {
    return size < MIN_SHARED ? put(room, text, size) : end_part(room, text, size);
}

static bool begin_piece(Room *room) {
    static const Piece empty = {0};
    bool ok = put(room, (const char *)&empty, sizeof empty);
    room->text = room->own = room->to;
    return ok;
}

/* Moves the parts after the text; returns the size of the piece, 0 with an exception if there is no space. */
static size_t end_piece(Room *room, const Py_buffer *memory) {
    if (!end_part(room, room->text, 0)) {
        return 0;
    }
    char *begin = memory->buf;
    size_t parts = (size_t)(begin + memory->len - room->end);
    Piece piece = {(uint64_t)(room->to - room->text), parts / sizeof(Part)};
    memcpy(begin, &piece, sizeof piece);
    memmove(room->to, room->end, parts);
    return (size_t)(room->to - begin) + parts;
}

/* The text of a byte in a string, and its size; 0 if the byte is not ASCII. */
typedef struct {
    char text[7];
    byte size;
} Escaped;

static Escaped ESCAPED[256];

void prepare_lines(void) {
    static const char names[128] = {
        ['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't', ['"'] = '"', ['\\'] = '\\',
    };
    static const char hex[] = "0123456789abcdef";
    for (byte c = 0; c < 128; c++) {
        if (names[c]) {
            ESCAPED[c] = (Escaped){{'\\', names[c]}, 2};
        } else if (c < 0x20) {
            ESCAPED[c] = (Escaped){{'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]}, 6};
        } else {
            ESCAPED[c] = (Escaped){{(char)c}, 1};
        }
    }
}

static size_t text_size_of(const byte *data, size_t size) {
    size_t total = 0;
    for (size_t i = 0; i < size; i++) {
        total += data[i] < 0x80 ? ESCAPED[data[i]].size : 1;
    }
    return total;
}

/* Adds the text of bytes that begin with a whole character; false without an exception if they are not UTF-8. An entry of
 * ESCAPED is written as a whole, which is faster than a branch for each quote: what follows a text is longer than that. */
static bool put_text(Room *room, const byte *data, size_t size) {
    if (left(room) / 6 < size + 2 && left(room) < text_size_of(data, size) + sizeof(Escaped)) {
        return no_room();
    }
    const byte *p = data, *end = data + size;
    char *to = room->to;
    while (p < end) {
        const Escaped *escaped = &ESCAPED[*p];
        if (escaped->size > 0) {
            memcpy(to, escaped, sizeof *escaped);
            to += escaped->size;
            p++;
            continue;
        }
        uint32_t point;
        size_t length = utf8_sequence(p, (size_t)(end - p), &point);
        if (length == 0) {
            return false;
        }
        memcpy(to, p, length);
        to += length;
        p += length;
    }
    room->to = to;
    return true;
}

static size_t common_prefix(const byte *a, const byte *b, size_t most) {
    size_t at = 0;
    while (at + 8 <= most && memcmp(a + at, b + at, 8) == 0) {
        at += 8;
    }
    while (at < most && a[at] == b[at]) {
        at++;
    }
    return at;
}

/* Shortens what is shared to what these bytes share, too, up to a whole character. */
static void shorten(Shared *shared, const byte *data, size_t size) {
    if (size >= shared->size && memcmp(data, shared->data, shared->size) == 0) {
        return;
    }
    size_t common = common_prefix(shared->data, data, size < shared->size ? size : shared->size);
    while (common > 0 && (shared->data[common] & 0xC0) == 0x80) {
        common--;
    }
    shared->text_size -= text_size_of(shared->data + common, shared->size - common);
    shared->size = common;
}

/* Adds a key or a value. */
static bool put_string(Room *room, PyObject *part, Shared *shared) {
    if (part == Py_None) {
        return put(room, "null", 4);
    }
    if (!PyBytes_Check(part)) {
        PyErr_SetString(PyExc_TypeError, "keys and values are bytes or None");
        return false;
    }
    const byte *data = (const byte *)PyBytes_AS_STRING(part);
    size_t size = (size_t)PyBytes_GET_SIZE(part);
    if (!put(room, "\"", 1)) {
        return false;
    }
    const char *text = room->to;
    bool first = shared->data == NULL;
    if (!first) {
        shorten(shared, data, size);
    }
    if (!put_again(room, shared->text, shared->text_size) || !put_text(room, data + shared->size, size - shared->size)) {
        if (!PyErr_Occurred()) {
            Py_XDECREF(PyUnicode_DecodeUTF8((const char *)data, (Py_ssize_t)size, NULL)); /* raises the error */
        }
        return false;
    }
    if (first) {
        *shared = (Shared){data, size, text, (size_t)(room->to - text)};
    }
    return put(room, "\"", 1);
}

static bool put_line(Room *room, Py_buffer *topic, PyObject *message, Shared *keys, Shared *values, PyObject *headers) {
    return put(room, "{\"topic\":", 9) && put(room, topic->buf, (size_t)topic->len) && put(room, ",\"key\":", 7) &&
           put_string(room, PyTuple_GET_ITEM(message, 0), keys) && put(room, ",\"value\":", 9) &&
           put_string(room, PyTuple_GET_ITEM(message, 1), values) && put(room, ",\"headers\":", 11) &&
           put(room, PyBytes_AS_STRING(headers), (size_t)PyBytes_GET_SIZE(headers)) && put(room, "}\n", 2);
}

/* The text of the headers of a message; that of the message before if both have the same object. */
static bool find_headers(PyObject *function, PyObject *message, PyObject **headers, PyObject **text) {
    PyObject *found = PyTuple_GET_ITEM(message, 2);
    if (*headers == found) {
        return true;
    }
    PyObject *made = PyObject_CallOneArg(function, found);
    if (made != NULL && !PyBytes_Check(made)) {
        PyErr_SetString(PyExc_TypeError, "the text of headers is bytes");
        Py_CLEAR(made);
    }
    *headers = found;
    Py_XSETREF(*text, made);
    return made != NULL;
}

PyObject *message_lines(PyObject *module, PyObject *args) {
    Py_buffer memory, topic;
    PyObject *sequence, *function;
    if (!PyArg_ParseTuple(args, "w*y*OO", &memory, &topic, &sequence, &function)) {
        return NULL;
    }
    Room room = {.to = memory.buf, .end = (char *)memory.buf + memory.len};
    Shared keys = {.text = ""}, values = {.text = ""};
    PyObject *messages = PySequence_Tuple(sequence), *headers = NULL, *text = NULL;
    bool ok = messages != NULL && begin_piece(&room);
    for (Py_ssize_t i = 0; ok && i < PyTuple_GET_SIZE(messages); i++) {
        PyObject *message = PyTuple_GET_ITEM(messages, i);
        ok = PyTuple_Check(message) && PyTuple_GET_SIZE(message) == 3;
        if (!ok) {
            PyErr_SetString(PyExc_ValueError, "a message is a tuple of key, value and headers");
        }
        ok = ok && find_headers(function, message, &headers, &text) && put_line(&room, &topic, message, &keys, &values, text);
    }
    size_t size = ok ? end_piece(&room, &memory) : 0;
    Py_XDECREF(messages);
    Py_XDECREF(text);
    PyBuffer_Release(&memory);
    PyBuffer_Release(&topic);
    return size > 0 ? PyLong_FromSize_t(size) : NULL;
}

/* Waits until a file that does not block takes bytes again. */
static bool wait_until_writable(int file) {
    struct pollfd waiting = {.fd = file, .events = POLLOUT};
    int found;
    Py_BEGIN_ALLOW_THREADS;
    found = poll(&waiting, 1, -1);
    Py_END_ALLOW_THREADS;
    if (found >= 0) {
        return true;
    }
    if (errno == EINTR) {
        return PyErr_CheckSignals() == 0;
    }
    PyErr_SetFromErrno(PyExc_OSError);
    return false;
}

static bool write_segments(int file, struct iovec *segments, int count) {
    while (count > 0) {
        ssize_t written;
        Py_BEGIN_ALLOW_THREADS;
        written = writev(file, segments, count);
        Py_END_ALLOW_THREADS;
        if (written < 0) {
            bool again = errno == EINTR    ? PyErr_CheckSignals() == 0
                         : errno == EAGAIN ? wait_until_writable(file)
                                           : PyErr_SetFromErrno(PyExc_OSError) != NULL; /* which is NULL */
            if (!again) {
                return false;
            }
            continue;
        }
        size_t done = (size_t)written;
        while (count > 0 && done >= segments->iov_len) {
            done -= segments->iov_len;
            segments++;
            count--;
        }
        if (count > 0) {
            segments->iov_base = (char *)segments->iov_base + done;
            segments->iov_len -= done;
        }
    }
    return true;
}

/* What is left of packed lines: of the first piece, text from `own` to `end`, and parts from `end` to `part`. */
typedef struct {
    const char *text, *own, *end, *part;
    const char *next, *packed_end; /* the other pieces */
} Rest;

/* Begins the next piece; false if it is damaged. */
static bool next_piece(Rest *rest) {
    Piece piece;
    size_t size = (size_t)(rest->packed_end - rest->next);
    if (size < sizeof piece) {
        return false;
    }
    memcpy(&piece, rest->next, sizeof piece);
    size -= sizeof piece;
    if (piece.text > size || piece.parts > (size - piece.text) / sizeof(Part)) {
        return false;
    }
    rest->text = rest->own = rest->next + sizeof piece;
    rest->end = rest->text + piece.text;
    rest->next = rest->part = rest->end + piece.parts * sizeof(Part);
    return true;
}

/* Takes the next part; returns how many segments it has, 0 after the last part, -1 if it is damaged. */
static int next_part(Rest *rest, struct iovec segments[2]) {
    while (rest->part == rest->end) {
        if (rest->own != rest->end) {
            return -1;
        }
        if (rest->next == rest->packed_end) {
            return 0;
        }
        if (!next_piece(rest)) {
            return -1;
        }
    }
    Part part;
    rest->part -= sizeof part;
    memcpy(&part, rest->part, sizeof part);
    size_t text = (size_t)(rest->end - rest->text);
    if (part.own > (size_t)(rest->end - rest->own) || part.shared > text || part.at > text - part.shared) {
        return -1;
    }
    segments[0] = (struct iovec){(char *)rest->own, part.own};
    segments[1] = (struct iovec){(char *)rest->text + part.at, part.shared};
    rest->own += part.own;
    return 2;
}

PyObject *write_lines(PyObject *module, PyObject *args) {
    int file;
    Py_buffer packed;
    if (!PyArg_ParseTuple(args, "iy*", &file, &packed)) {
        return NULL;
    }
    const char *begin = packed.buf;
    Rest rest = {begin, begin, begin, begin, begin, begin + packed.len};
    struct iovec segments[IOV_MAX];
    int count, found;
    bool ok = true;
    do {
        for (count = 0; count + 2 <= IOV_MAX && (found = next_part(&rest, segments + count)) > 0;) {
            count += found;
        }
        if (found < 0) {
            PyErr_SetString(PyExc_ValueError, "the packed lines are damaged");
            ok = false;
        }
        ok = ok && write_segments(file, segments, count);
    } while (ok && count > 0);
    PyBuffer_Release(&packed);
    if (!ok) {
        return NULL;
    }
    Py_RETURN_NONE;
}
