/* The module rowtide.connector.records._native: from the JSON text of a value of a Connect schema to Avro or Protobuf.
 *
 * A program tells the order and the types of the fields, as the modules `program` of rowtide.envelope.avro and
 * rowtide.envelope.protobuf make it: the kinds from FIELD_LONG on are Protobuf's. The text is what
 * rowtide has written itself: fields in the order of the schema, without blanks. Anything else, and every value that
 * does not fit, is left to Python: nothing here reports what is wrong with its input.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if PY_BIG_ENDIAN
#error "numbers are written as little-endian machines have them; Python is used instead"
#endif

typedef unsigned char byte;

/* --- the growing output --------------------------------------------------------------------------------------------- */

typedef struct {
    byte *data;
    size_t size, room;
} Output;

static bool grow(Output *out, size_t more) {
    if (more > (size_t)PY_SSIZE_T_MAX / 4 - out->size) {
        return false;
    }
    size_t room = (out->size + more) * 2 + 1024;
    byte *data = PyMem_Realloc(out->data, room);
    if (data == NULL) {
        return false;
    }
    out->data = data;
    out->room = room;
    return true;
}

static inline bool reserve(Output *out, size_t more) {
    return more <= out->room - out->size || grow(out, more);
}

static inline bool add(Output *out, const void *data, size_t size) {
    if (!reserve(out, size)) {
        return false;
    }
    if (size == 1) { /* as most bytes before a value */
        out->data[out->size] = *(const byte *)data;
    } else if (size > 0) {
        memcpy(out->data + out->size, data, size);
    }
    out->size += size;
    return true;
}

static size_t varint(byte *to, uint64_t number) {
    size_t size = 0;
    while (number >= 0x80) {
        to[size++] = (byte)(number | 0x80);
        number >>= 7;
    }
    to[size++] = (byte)number;
    return size;
}

/* A number as Avro has it, whose sign is its last bit. */
static uint64_t zigzag(int64_t number) {
    return (uint64_t)number << 1 ^ (uint64_t)(number >> 63);
}

static bool add_varint(Output *out, uint64_t number) {
    byte digits[10];
    return add(out, digits, varint(digits, number));
}

/* Put a number in front of what was added since `start`. */
static bool insert_varint(Output *out, size_t start, uint64_t number) {
    byte digits[10];
    size_t size = varint(digits, number);
    if (!reserve(out, size)) {
        return false;
    }
    memmove(out->data + start + size, out->data + start, out->size - start);
    memcpy(out->data + start, digits, size);
    out->size += size;
    return true;
}

/* --- programs ------------------------------------------------------------------------------------------------------- */

typedef enum {
    LONG, BOOLEAN, FLOAT, DOUBLE, STRING, BYTES, STRUCT, ARRAY, MAP,
    FIELD_LONG, FIELD_BOOLEAN, FIELD_FLOAT, FIELD_DOUBLE, FIELD_STRING, FIELD_BYTES, FIELD_DECIMAL, FIELD_WRAPPED,
    FIELD_MESSAGE, FIELD_REPEATED, FIELD_PACKED, FIELD_MAP,
} Kind;

static const char *const KINDS[] = {
    "long", "boolean", "float", "double", "string", "bytes", "struct", "array", "map",
    "field of long", "field of boolean", "field of float", "field of double", "field of string", "field of bytes",
    "field of decimal", "field of wrapped", "field of message", "field of repeated", "field of packed", "field of map",
};

#define MOST_REMEMBERED 65536 /* bytes of a struct */

/* What a struct of the message before looked like: most messages of an event have the same `source` but for a number. */
typedef struct {
    const byte *text;  /* after the brace; NULL: there is none */
    size_t *starts;    /* of each field in the text, and after the closing brace */
    size_t *written;   /* of each field in the bytes, and of their end */
    Output bytes;
} Memory;

typedef struct Node {
    Kind kind;
    PyObject *present; /* bytes in front of a value that is not null: the place in a union, or a tag */
    PyObject *null;    /* the bytes of null; NULL if it is not allowed */
    PyObject *name;    /* of a field: the bytes of its name in JSON, with the colon */
    PyObject *more;    /* of a decimal: the bytes of its scale */
    bool zero;         /* whether a field is written even if it is zero or empty */
    Py_ssize_t count;
    struct Node *children;
    Memory *memory;    /* of a struct that is often the same; else NULL */
} Node;

static void memory_free(Memory *memory) {
    if (memory != NULL) {
        PyMem_Free(memory->starts);
        PyMem_Free(memory->written);
        PyMem_Free(memory->bytes.data);
        PyMem_Free(memory);
    }
}

static bool remember(Node *node) {
    node->memory = PyMem_Calloc(1, sizeof(Memory));
    if (node->memory != NULL) {
        node->memory->starts = PyMem_Calloc((size_t)node->count + 1, sizeof(size_t));
        node->memory->written = PyMem_Calloc((size_t)node->count + 1, sizeof(size_t));
    }
    if (node->memory == NULL || node->memory->starts == NULL || node->memory->written == NULL) {
        PyErr_NoMemory();
        return false;
    }
    return true;
}

static void node_clear(Node *node) {
    Py_CLEAR(node->present);
    Py_CLEAR(node->null);
    Py_CLEAR(node->name);
    Py_CLEAR(node->more);
    for (Py_ssize_t i = 0; i < node->count; i++) {
        node_clear(&node->children[i]);
    }
    PyMem_Free(node->children);
    memory_free(node->memory);
    node->children = NULL;
    node->memory = NULL;
    node->count = 0;
}

/* How many parts a kind has; -1: any number. */
static Py_ssize_t children_of(Kind kind) {
    switch (kind) {
    case STRUCT:
    case FIELD_MESSAGE:
        return -1;
    case ARRAY:
    case MAP:
    case FIELD_WRAPPED:
    case FIELD_REPEATED:
    case FIELD_PACKED:
        return 1;
    case FIELD_MAP:
        return 2;
    default:
        return 0;
    }
}

/* (kind, name, present, null or None, children[, zero, more]); false: an exception is set */
static bool node_read(Node *node, PyObject *program, int depth) {
    const char *kind;
    PyObject *name, *present, *null, *children, *more = NULL;
    int zero = 0;
    if (depth > 64 || !PyTuple_Check(program)) {
        PyErr_SetString(PyExc_TypeError, "a program is a tuple that is not nested too deeply");
        return false;
    }
    if (!PyArg_ParseTuple(program, "sSSOO!|pS", &kind, &name, &present, &null, &PyTuple_Type, &children, &zero, &more)) {
        return false;
    }
    int number = -1;
    for (int i = 0; i < (int)(sizeof KINDS / sizeof KINDS[0]); i++) {
        number = strcmp(kind, KINDS[i]) == 0 ? i : number;
    }
    if (number < 0 || (null != Py_None && !PyBytes_Check(null))) {
        PyErr_SetString(PyExc_ValueError, "an unknown kind, or null is neither bytes nor None");
        return false;
    }
    node->kind = (Kind)number;
    node->name = Py_NewRef(name);
    node->present = Py_NewRef(present);
    node->null = null == Py_None ? NULL : Py_NewRef(null);
    node->more = more == NULL ? PyBytes_FromStringAndSize(NULL, 0) : Py_NewRef(more);
    node->zero = zero;
    Py_ssize_t count = PyTuple_GET_SIZE(children);
    if (node->more == NULL || !(children_of(node->kind) < 0 || children_of(node->kind) == count)) {
        PyErr_SetString(PyExc_ValueError, "a program has as many children as its kind");
        return false;
    }
    node->children = PyMem_Calloc((size_t)count + 1, sizeof(Node));
    if (node->children == NULL) {
        PyErr_NoMemory();
        return false;
    }
    for (; node->count < count; node->count++) {
        if (!node_read(&node->children[node->count], PyTuple_GET_ITEM(children, node->count), depth + 1)) {
            node_clear(&node->children[node->count]);
            return false;
        }
    }
    return true;
}

/* --- JSON ----------------------------------------------------------------------------------------------------------- */

typedef struct {
    const byte *p, *end;
} Text;

static bool literal(Text *text, const char *expected, size_t size) {
    if ((size_t)(text->end - text->p) < size || memcmp(text->p, expected, size) != 0) {
        return false;
    }
    text->p += size;
    return true;
}

static bool is_next(const Text *text, byte c) {
    return text->p < text->end && *text->p == c;
}

static bool skip(Text *text, byte c) {
    bool found = is_next(text, c);
    text->p += found;
    return found;
}

static bool read_long(Text *text, int64_t *number) {
    bool negative = skip(text, '-');
    const byte *first = text->p;
    uint64_t value = 0;
    while (text->p < text->end && *text->p >= '0' && *text->p <= '9') {
        if (text->p - first >= 19) {
            return false;
        }
        value = value * 10 + (uint64_t)(*text->p++ - '0');
    }
    if (text->p == first || value > (uint64_t)INT64_MAX + negative) {
        return false;
    }
    if (is_next(text, '.') || is_next(text, 'e') || is_next(text, 'E')) {
        return false;
    }
    *number = negative ? (int64_t)(0 - value) : (int64_t)value;
    return true;
}

/* A number; NaN and the infinities are strings, which are left to Python. The text ends with a NUL or a non-digit. */
static bool read_double(Text *text, double *number) {
    char *end;
    if (is_next(text, '"') || text->p == text->end) {
        return false;
    }
    *number = PyOS_string_to_double((const char *)text->p, &end, NULL);
    if (PyErr_Occurred()) {
        PyErr_Clear();
        return false;
    }
    if ((const byte *)end <= text->p || (const byte *)end > text->end) {
        return false;
    }
    text->p = (const byte *)end;
    return true;
}

static int hex_digit(byte c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool read_unit(Text *text, uint32_t *unit) {
    if (text->end - text->p < 4) {
        return false;
    }
    *unit = 0;
    for (int i = 0; i < 4; i++) {
        int digit = hex_digit(*text->p++);
        if (digit < 0) {
            return false;
        }
        *unit = *unit << 4 | (uint32_t)digit;
    }
    return true;
}

static bool add_point(Output *out, uint32_t point) {
    byte utf8[4];
    size_t size;
    if (point < 0x80) {
        utf8[0] = (byte)point;
        size = 1;
    } else if (point < 0x800) {
        utf8[0] = (byte)(0xC0 | point >> 6);
        utf8[1] = (byte)(0x80 | (point & 0x3F));
        size = 2;
    } else if (point < 0x10000) {
        utf8[0] = (byte)(0xE0 | point >> 12);
        utf8[1] = (byte)(0x80 | (point >> 6 & 0x3F));
        utf8[2] = (byte)(0x80 | (point & 0x3F));
        size = 3;
    } else {
        utf8[0] = (byte)(0xF0 | point >> 18);
        utf8[1] = (byte)(0x80 | (point >> 12 & 0x3F));
        utf8[2] = (byte)(0x80 | (point >> 6 & 0x3F));
        utf8[3] = (byte)(0x80 | (point & 0x3F));
        size = 4;
    }
    return add(out, utf8, size);
}

/* What follows a backslash. As in Java, a surrogate without its other half becomes a question mark. */
static bool unescape(Text *text, Output *out) {
    if (text->p == text->end) {
        return false;
    }
    byte c = *text->p++;
    switch (c) {
    case '"':
    case '\\':
    case '/':
        return add(out, &c, 1);
    case 'b':
        return add(out, "\b", 1);
    case 'f':
        return add(out, "\f", 1);
    case 'n':
        return add(out, "\n", 1);
    case 'r':
        return add(out, "\r", 1);
    case 't':
        return add(out, "\t", 1);
    case 'u': {
        uint32_t unit, low;
        if (!read_unit(text, &unit)) {
            return false;
        }
        if (unit < 0xD800 || unit > 0xDFFF) {
            return add_point(out, unit);
        }
        if (unit < 0xDC00 && text->end - text->p >= 6 && text->p[0] == '\\' && text->p[1] == 'u') {
            Text next = {text->p + 2, text->end};
            if (read_unit(&next, &low) && low >= 0xDC00 && low <= 0xDFFF) {
                text->p = next.p;
                return add_point(out, 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00));
            }
        }
        return add(out, "?", 1);
    }
    default:
        return false;
    }
}

/* The number of bytes in front of them, as Avro or Protobuf has it. */
static uint64_t counted(size_t size, bool avro) {
    return avro ? zigzag((int64_t)size) : size;
}

/* The bytes of a string, whose number is in front of them. */
static bool write_string(Text *text, Output *out, bool avro) {
    if (!skip(text, '"')) {
        return false;
    }
    size_t start = out->size;
    bool escaped = false;
    while (true) {
        size_t left = (size_t)(text->end - text->p);
        const byte *quote = memchr(text->p, '"', left);
        if (quote == NULL) {
            return false;
        }
        const byte *slash = memchr(text->p, '\\', (size_t)(quote - text->p));
        const byte *run = text->p;
        if (slash == NULL) {
            text->p = quote + 1;
            if (!escaped) { /* the number is known before the bytes */
                size_t size = (size_t)(quote - run);
                return add_varint(out, counted(size, avro)) && add(out, run, size);
            }
            return add(out, run, (size_t)(quote - run)) && insert_varint(out, start, counted(out->size - start, avro));
        }
        escaped = true;
        text->p = slash + 1;
        if (!add(out, run, (size_t)(slash - run)) || !unescape(text, out)) {
            return false;
        }
    }
}

static const byte INVALID = 64;

static byte base64_digit(byte c) {
    if (c >= 'A' && c <= 'Z') {
        return (byte)(c - 'A');
    }
    if (c >= 'a' && c <= 'z') {
        return (byte)(c - 'a' + 26);
    }
    if (c >= '0' && c <= '9') {
        return (byte)(c - '0' + 52);
    }
    return c == '+' ? 62 : c == '/' ? 63 : INVALID;
}

/* The bytes of a string in Base64, whose number is in front of them. */
static bool write_base64(Text *text, Output *out, bool avro) {
    if (!skip(text, '"')) {
        return false;
    }
    const byte *first = text->p, *last = memchr(first, '"', (size_t)(text->end - first));
    if (last == NULL || (last - first) % 4 != 0) {
        return false;
    }
    text->p = last + 1;
    size_t size = (size_t)(last - first) / 4 * 3, padding = 0;
    while (padding < 2 && last - padding > first && last[-1 - (Py_ssize_t)padding] == '=') {
        padding++;
    }
    if (!add_varint(out, counted(size - padding, avro)) || !reserve(out, size)) {
        return false;
    }
    byte *to = out->data + out->size;
    for (const byte *p = first; p < last; p += 4) {
        uint32_t group = 0;
        for (int i = 0; i < 4; i++) {
            bool pad = p + i >= last - padding;
            byte digit = pad ? 0 : base64_digit(p[i]);
            if (digit == INVALID) {
                return false;
            }
            group = group << 6 | digit;
        }
        *to++ = (byte)(group >> 16);
        *to++ = (byte)(group >> 8);
        *to++ = (byte)group;
    }
    out->size += size - padding;
    return true;
}

/* --- values --------------------------------------------------------------------------------------------------------- */

static bool write_value(const Node *node, Text *text, Output *out);

/* How many bytes of two texts are the same. */
static size_t common(const byte *a, const byte *b, size_t most) {
    size_t at = 0;
    while (at + 8 <= most) {
        uint64_t one, other;
        memcpy(&one, a + at, 8);
        memcpy(&other, b + at, 8);
        if (one != other) {
            return at + (size_t)__builtin_ctzll(one ^ other) / 8;
        }
        at += 8;
    }
    while (at < most && a[at] == b[at]) {
        at++;
    }
    return at;
}

/* The first field from `i` on whose text is not that of the message before. */
static Py_ssize_t first_other(const Node *node, Py_ssize_t i, const Text *text) {
    const Memory *memory = node->memory;
    size_t start = memory->starts[i], most = memory->starts[node->count] - start;
    size_t left = (size_t)(text->end - text->p);
    size_t same = common(memory->text + start, text->p, left < most ? left : most);
    while (i < node->count && memory->starts[i + 1] - start <= same) {
        i++;
    }
    return i;
}

/* As write_struct, with fields of the message before. Their places are those of this message as soon as they are passed. */
static bool write_remembered(const Node *node, Text *text, Output *out) {
    Memory *memory = node->memory;
    const byte *begin = text->p;
    size_t base = out->size;
    for (Py_ssize_t i = 0; i < node->count;) {
        Py_ssize_t end = memory->text == NULL ? i : first_other(node, i, text);
        size_t place = (size_t)(text->p - begin), size = out->size - base;
        if (end > i) {
            size_t start = memory->starts[i], from = memory->written[i];
            size_t length = memory->starts[end] - start;
            if (!add(out, memory->bytes.data + from, memory->written[end] - from)) {
                return false;
            }
            for (; i < end; i++) {
                memory->starts[i] = place + (memory->starts[i] - start);
                memory->written[i] = size + (memory->written[i] - from);
            }
            text->p += length;
            continue;
        }
        const Node *field = &node->children[i];
        if (!literal(text, PyBytes_AS_STRING(field->name), (size_t)PyBytes_GET_SIZE(field->name)) ||
            !write_value(field, text, out) || !skip(text, i + 1 < node->count ? ',' : '}')) {
            return false;
        }
        memory->starts[i] = place;
        memory->written[i] = size;
        i++;
    }
    memory->starts[node->count] = (size_t)(text->p - begin);
    memory->written[node->count] = out->size - base;
    if (out->size - base > MOST_REMEMBERED) {
        memory->text = NULL; /* rows of this size rarely repeat, and each table would keep its largest one */
        return true;
    }
    memory->text = begin;
    memory->bytes.size = 0;
    return add(&memory->bytes, out->data + base, out->size - base);
}

static void forget(Node *node) {
    if (node->memory != NULL) {
        node->memory->text = NULL;
    }
    for (Py_ssize_t i = 0; i < node->count; i++) {
        forget(&node->children[i]);
    }
}

static bool write_struct(const Node *node, Text *text, Output *out) {
    if (!skip(text, '{')) {
        return false;
    }
    if (node->memory != NULL && node->count > 0) {
        return write_remembered(node, text, out);
    }
    for (Py_ssize_t i = 0; i < node->count; i++) {
        const Node *field = &node->children[i];
        if ((i > 0 && !skip(text, ',')) ||
            !literal(text, PyBytes_AS_STRING(field->name), (size_t)PyBytes_GET_SIZE(field->name)) ||
            !write_value(field, text, out)) {
            return false;
        }
    }
    return skip(text, '}');
}

/* The elements of an array or a map as one block, or none. */
static bool write_block(const Node *node, Text *text, Output *out, byte open, byte close) {
    size_t start = out->size;
    int64_t count = 0;
    if (!skip(text, open)) {
        return false;
    }
    while (!is_next(text, close)) {
        if (count > 0 && !skip(text, ',')) {
            return false;
        }
        if (node->kind == MAP && (!write_string(text, out, true) || !skip(text, ':'))) {
            return false;
        }
        if (!write_value(&node->children[0], text, out)) {
            return false;
        }
        count++;
    }
    text->p++;
    return (count == 0 || insert_varint(out, start, zigzag(count))) && add(out, "\0", 1);
}

/* --- Protobuf ------------------------------------------------------------------------------------------------------- */

/* The digits of a number in big-endian two's complement, which is Protobuf's precision of a decimal; 0 if it is too long. */
static uint64_t digits_of(const byte *data, size_t size) {
    unsigned __int128 number = size > 0 && data[0] & 0x80 ? ~(unsigned __int128)0 : 0;
    if (size == 0 || size > 16) {
        return 0;
    }
    for (size_t i = 0; i < size; i++) {
        number = number << 8 | data[i];
    }
    number = data[0] & 0x80 ? -number : number;
    uint64_t count = 1;
    for (; number >= 10; number /= 10) {
        count++;
    }
    return count;
}

/* A message of the number's bytes, its digits and its scale. */
static bool write_decimal(const Node *node, Text *text, Output *out) {
    size_t start = out->size;
    if (!add(out, "\x0A", 1) || !write_base64(text, out, false)) {
        return false;
    }
    size_t number = start + 2; /* a number of 16 bytes at most is counted by one byte */
    uint64_t digits = digits_of(out->data + number, out->size - number);
    return digits > 0 && add(out, "\x10", 1) && add_varint(out, digits) &&
           add(out, PyBytes_AS_STRING(node->more), (size_t)PyBytes_GET_SIZE(node->more)) &&
           insert_varint(out, start, out->size - start);
}

/* The value of a scalar as Protobuf has it. */
static bool write_scalar(const Node *node, Text *text, Output *out) {
    int64_t number;
    double real;
    float single;
    switch (node->kind) {
    case FIELD_LONG:
        return read_long(text, &number) && add_varint(out, (uint64_t)number);
    case FIELD_BOOLEAN:
        return literal(text, "true", 4) ? add(out, "\1", 1) : literal(text, "false", 5) && add(out, "\0", 1);
    case FIELD_FLOAT:
        if (!read_double(text, &real)) {
            return false;
        }
        single = (float)real;
        return add(out, &single, sizeof single);
    case FIELD_DOUBLE:
        return read_double(text, &real) && add(out, &real, sizeof real);
    case FIELD_STRING:
        return write_string(text, out, false);
    case FIELD_BYTES:
        return write_base64(text, out, false);
    default:
        return false;
    }
}

static bool is_zero(const Output *out, size_t start) {
    byte all = 0;
    for (size_t i = start; i < out->size; i++) {
        all |= out->data[i];
    }
    return all == 0;
}

/* The elements of a list: separate fields, or the values one after the other. */
static bool write_list(const Node *node, Text *text, Output *out) {
    if (!skip(text, '[')) {
        return false;
    }
    for (bool first = true; !is_next(text, ']'); first = false) {
        if (!first && !skip(text, ',')) {
            return false;
        }
        if (node->kind == FIELD_PACKED ? !write_scalar(&node->children[0], text, out)
                                       : !write_value(&node->children[0], text, out)) {
            return false;
        }
    }
    text->p++;
    return true;
}

/* Each entry of a map is a message of its key and its value. */
static bool write_entries(const Node *node, Text *text, Output *out) {
    if (!skip(text, '{')) {
        return false;
    }
    for (bool first = true; !is_next(text, '}'); first = false) {
        if ((!first && !skip(text, ',')) || !add(out, PyBytes_AS_STRING(node->present), (size_t)PyBytes_GET_SIZE(node->present))) {
            return false;
        }
        size_t start = out->size;
        if (!write_value(&node->children[0], text, out) || !skip(text, ':') || !write_value(&node->children[1], text, out) ||
            !insert_varint(out, start, out->size - start)) {
            return false;
        }
    }
    text->p++;
    return true;
}

/* What follows the tag of a field. */
static bool write_field(const Node *node, Text *text, Output *out, size_t tag) {
    size_t start = out->size;
    switch (node->kind) {
    case FIELD_DECIMAL:
        return write_decimal(node, text, out);
    case FIELD_WRAPPED:
        return write_value(&node->children[0], text, out) && insert_varint(out, start, out->size - start);
    case FIELD_MESSAGE: /* the whole value has neither a tag nor a length */
        return write_struct(node, text, out) && (start == tag || insert_varint(out, start, out->size - start));
    case FIELD_PACKED:
        if (!write_list(node, text, out)) {
            return false;
        }
        if (out->size > start) {
            return insert_varint(out, start, out->size - start);
        }
        out->size = tag;
        return true;
    default:
        if (!write_scalar(node, text, out)) {
            return false;
        }
        if (!node->zero && is_zero(out, start)) { /* a text begins with its length, which is zero if it is empty */
            out->size = tag;
        }
        return true;
    }
}

static bool write_value(const Node *node, Text *text, Output *out) {
    if (is_next(text, 'n')) {
        return node->null != NULL && literal(text, "null", 4) &&
               add(out, PyBytes_AS_STRING(node->null), (size_t)PyBytes_GET_SIZE(node->null));
    }
    if (node->kind == FIELD_MAP) {
        return write_entries(node, text, out);
    }
    if (node->kind == FIELD_REPEATED) {
        return write_list(node, text, out);
    }
    size_t start = out->size;
    if (!add(out, PyBytes_AS_STRING(node->present), (size_t)PyBytes_GET_SIZE(node->present))) {
        return false;
    }
    if (node->kind >= FIELD_LONG) {
        return write_field(node, text, out, start);
    }
    int64_t number;
    double real;
    float single;
    switch (node->kind) {
    case LONG:
        return read_long(text, &number) && add_varint(out, zigzag(number));
    case BOOLEAN:
        return literal(text, "true", 4) ? add(out, "\1", 1) : literal(text, "false", 5) && add(out, "\0", 1);
    case FLOAT:
        if (!read_double(text, &real)) {
            return false;
        }
        single = (float)real;
        return add(out, &single, sizeof single);
    case DOUBLE:
        return read_double(text, &real) && add(out, &real, sizeof real);
    case STRING:
        return write_string(text, out, true);
    case BYTES:
        return write_base64(text, out, true);
    case STRUCT:
        return write_struct(node, text, out);
    case ARRAY:
        return write_block(node, text, out, '[', ']');
    case MAP:
        return write_block(node, text, out, '{', '}');
    default:
        return false;
    }
}

/* --- the type ------------------------------------------------------------------------------------------------------- */

typedef struct {
    PyObject_HEAD
    Node root;
} Transcoder;

static void dealloc(PyObject *object) {
    node_clear(&((Transcoder *)object)->root);
    Py_TYPE(object)->tp_free(object);
}

/* An envelope, and its structs after the rows before and after the change: the messages of an event share them. */
static bool remember_structs(Node *root) {
    if (!(root->kind == STRUCT || root->kind == FIELD_MESSAGE) || !remember(root)) {
        return !PyErr_Occurred();
    }
    for (Py_ssize_t i = 2; i < root->count; i++) {
        Node *child = &root->children[i];
        if ((child->kind == STRUCT || child->kind == FIELD_MESSAGE) && !remember(child)) {
            return false;
        }
    }
    return true;
}

static PyObject *new(PyTypeObject *type, PyObject *args, PyObject *named) {
    static char *names[] = {"program", NULL};
    PyObject *program;
    if (!PyArg_ParseTupleAndKeywords(args, named, "O", names, &program)) {
        return NULL;
    }
    Transcoder *self = (Transcoder *)type->tp_alloc(type, 0);
    if (self != NULL && !(node_read(&self->root, program, 0) && remember_structs(&self->root))) {
        Py_CLEAR(self);
    }
    return (PyObject *)self;
}

static PyTypeObject TranscoderType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "rowtide.connector.records._native.Transcoder",
    .tp_doc = "Turns the JSON text of the values of one schema into Avro or Protobuf.",
    .tp_basicsize = sizeof(Transcoder),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = new,
    .tp_dealloc = dealloc,
};

/* How the keys or the values of messages are written: None if there are none, else (Transcoder or None, opening, closing). */
typedef struct {
    Transcoder *transcoder; /* NULL: the text stays as it is, between opening and closing */
    PyObject *opening, *closing;
    bool used;
} Side;

static bool side_read(Side *side, PyObject *how) {
    PyObject *transcoder;
    *side = (Side){NULL, NULL, NULL, how != Py_None};
    if (how == Py_None) {
        return true;
    }
    if (!PyTuple_Check(how)) {
        PyErr_SetString(PyExc_TypeError, "a side is None or a tuple");
        return false;
    }
    if (!PyArg_ParseTuple(how, "OSS", &transcoder, &side->opening, &side->closing)) {
        return false;
    }
    if (transcoder != Py_None) {
        if (!PyObject_TypeCheck(transcoder, &TranscoderType)) {
            PyErr_SetString(PyExc_TypeError, "a transcoder is a Transcoder or None");
            return false;
        }
        side->transcoder = (Transcoder *)transcoder;
        forget(&side->transcoder->root); /* texts of the call before may be gone */
    }
    return true;
}

/* One key or value; NULL: Python has to make it, or an exception is set. */
static PyObject *written(const Side *side, PyObject *given, Output *out) {
    if (given == Py_None) {
        return Py_NewRef(Py_None);
    }
    if (!side->used || !PyBytes_Check(given)) {
        return NULL;
    }
    Text text = {(const byte *)PyBytes_AS_STRING(given), NULL};
    text.end = text.p + PyBytes_GET_SIZE(given);
    out->size = 0;
    if (!add(out, PyBytes_AS_STRING(side->opening), (size_t)PyBytes_GET_SIZE(side->opening)) ||
        !(side->transcoder == NULL ? add(out, text.p, (size_t)(text.end - text.p))
                                   : write_value(&side->transcoder->root, &text, out) && text.p == text.end) ||
        !add(out, PyBytes_AS_STRING(side->closing), (size_t)PyBytes_GET_SIZE(side->closing))) {
        return NULL;
    }
    return PyBytes_FromStringAndSize((const char *)out->data, (Py_ssize_t)out->size);
}

static Py_ssize_t size_of(PyObject *bytes) {
    return bytes == Py_None ? 0 : PyBytes_GET_SIZE(bytes);
}

static PyObject *transcoded(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *given, *of_keys, *of_values;
    Side keys, values;
    if (!PyArg_ParseTuple(args, "OOO", &given, &of_keys, &of_values) || !side_read(&keys, of_keys) ||
        !side_read(&values, of_values)) {
        return NULL;
    }
    PyObject *messages = PySequence_Fast(given, "messages are a list or a tuple");
    if (messages == NULL) {
        return NULL;
    }
    Py_ssize_t count = PySequence_Fast_GET_SIZE(messages), size = 0;
    PyObject *found = PyList_New(count), *headers = NULL;
    Output out = {NULL, 0, 0};
    bool same = true;
    for (Py_ssize_t i = 0; found != NULL && i < count; i++) {
        PyObject *message = PySequence_Fast_GET_ITEM(messages, i), *made = NULL;
        if (PyTuple_Check(message) && PyTuple_GET_SIZE(message) == 3) {
            PyObject *key = written(&keys, PyTuple_GET_ITEM(message, 0), &out);
            PyObject *value = key == NULL ? NULL : written(&values, PyTuple_GET_ITEM(message, 1), &out);
            if (value != NULL) {
                size += size_of(key) + size_of(value);
                same = same && (i == 0 || PyTuple_GET_ITEM(message, 2) == headers);
                headers = PyTuple_GET_ITEM(message, 2);
                made = PyTuple_Pack(3, key, value, headers);
            }
            Py_XDECREF(key);
            Py_XDECREF(value);
        }
        if (made == NULL) {
            Py_CLEAR(found);
            break;
        }
        PyList_SET_ITEM(found, i, made);
    }
    PyMem_Free(out.data);
    Py_DECREF(messages);
    if (found == NULL) {
        return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
    }
    return Py_BuildValue("(NnO)", found, size, same ? Py_True : Py_False);
}

static PyMethodDef FUNCTIONS[] = {
    {"transcoded", transcoded, METH_VARARGS,
     "Messages with their keys and values written by (Transcoder or None, opening, closing), or None where there are "
     "none; their bytes, and whether all have the same headers. None: Python has to make them."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_native",
    .m_doc = "Messages in JSON to Avro or Protobuf.",
    .m_size = -1,
    .m_methods = FUNCTIONS,
};

PyMODINIT_FUNC PyInit__native(void) {
    PyObject *module = PyModule_Create(&MODULE);
    if (module != NULL && PyModule_AddType(module, &TranscoderType) < 0) {
        Py_CLEAR(module);
    }
    return module;
}
