/* The growing text, and what many forms need: digits, base64, escapes. */
#include "native.h"

#include <math.h>
#include <string.h>

const char BASE64[65] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const char BASE64_URL[65] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static const char PAIRS[201] =
    "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
    "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
    "8081828384858687888990919293949596979899";

void output_init(Output *out) {
    *out = (Output){.ascii = true};
}

void output_free(Output *out) {
    PyMem_Free(out->data);
    output_init(out);
}

bool output_reserve(Output *out, size_t more) {
    if (more <= out->room - out->size) {
        return true;
    }
    if (more > (size_t)PY_SSIZE_T_MAX / 2 - out->size) {
        PyErr_NoMemory();
        return false;
    }
    size_t room = out->size + more;
    room += room / 2 + 1024;
    char *data = PyMem_Realloc(out->data, room);
    if (data == NULL) {
        PyErr_NoMemory();
        return false;
    }
    out->data = data;
    out->room = room;
    return true;
}

bool output_add(Output *out, const void *data, size_t size) {
    if (!output_reserve(out, size)) {
        return false;
    }
    memcpy(out->data + out->size, data, size);
    out->size += size;
    return true;
}

static bool is_ascii(const char *data, size_t size) {
    byte all = 0;
    for (size_t i = 0; i < size; i++) {
        all |= (byte)data[i];
    }
    return all < 0x80;
}

bool output_add_bytes(Output *out, PyObject *bytes) {
    const char *data = PyBytes_AS_STRING(bytes);
    size_t size = (size_t)PyBytes_GET_SIZE(bytes);
    out->ascii = out->ascii && is_ascii(data, size);
    return output_add(out, data, size);
}

bool output_add_text(Output *out, PyObject *text) {
    if (!PyUnicode_Check(text)) {
        PyErr_SetString(PyExc_TypeError, "a column's function did not return text");
        return false;
    }
    if (PyUnicode_IS_COMPACT_ASCII(text)) {
        return output_add(out, PyUnicode_DATA(text), (size_t)PyUnicode_GET_LENGTH(text));
    }
    PyObject *utf8 = PyUnicode_AsUTF8String(text);
    if (utf8 == NULL) {
        return false;
    }
    out->ascii = false;
    bool added = output_add(out, PyBytes_AS_STRING(utf8), (size_t)PyBytes_GET_SIZE(utf8));
    Py_DECREF(utf8);
    return added;
}

/* Write the digits so that they end at `end`; returns their first one. */
static char *digits_before(char *end, uint64_t number) {
    while (number >= 100) {
        end -= 2;
        memcpy(end, PAIRS + number % 100 * 2, 2);
        number /= 100;
    }
    if (number >= 10) {
        end -= 2;
        memcpy(end, PAIRS + number * 2, 2);
    } else {
        *--end = (char)('0' + number);
    }
    return end;
}

bool output_unsigned(Output *out, uint64_t number) {
    char digits[20], *end = digits + sizeof digits;
    char *first = digits_before(end, number);
    return output_add(out, first, (size_t)(end - first));
}

/* The same for up to 38 digits. */
static char *wide_digits_before(char *end, uint128 number) {
    const uint64_t unit = 10000000000000000000u; /* 10**19 */
    if (number < unit) {
        return digits_before(end, (uint64_t)number);
    }
    char *first = digits_before(end, (uint64_t)(number % unit));
    while (first > end - 19) {
        *--first = '0';
    }
    return digits_before(first, (uint64_t)(number / unit));
}

bool output_integer(Output *out, int128 number) {
    char digits[40], *end = digits + sizeof digits;
    char *first = wide_digits_before(end, number < 0 ? -(uint128)number : (uint128)number);
    if (number < 0) {
        *--first = '-';
    }
    return output_add(out, first, (size_t)(end - first));
}

static bool output_zeros(Output *out, size_t count) {
    if (!output_reserve(out, count)) {
        return false;
    }
    memset(out->data + out->size, '0', count);
    out->size += count;
    return true;
}

bool output_decimal(Output *out, int128 unscaled, int64_t scale) {
    char digits[40], *end = digits + sizeof digits;
    char *first = wide_digits_before(end, unscaled < 0 ? -(uint128)unscaled : (uint128)unscaled);
    size_t count = (size_t)(end - first), places = scale > 0 ? (size_t)scale : 0;
    if (unscaled < 0 && !output_add(out, "-", 1)) {
        return false;
    }
    if (places == 0) {
        return output_add(out, first, count) && (scale == 0 || unscaled == 0 || output_zeros(out, (size_t)-scale));
    }
    if (count > places) {
        return output_add(out, first, count - places) && output_add(out, ".", 1) && output_add(out, end - places, places);
    }
    return output_add(out, "0.", 2) && output_zeros(out, places - count) && output_add(out, first, count);
}

bool is_plain_double(double x) {
    double magnitude = fabs(x);
    return (magnitude >= 1e-3 && magnitude < 1e7) || x == 0;
}

/* The fewest decimal places whose nearest number is nearer to x than half the distance to the next double. In this range
 * it takes exact numbers of 128 bits: x is mantissa / 2**shift, of 29 to 62 bits. dtoa is needed for ties only. */
bool output_plain_double(Output *out, double x) {
    if (x == 0) {
        return output_add(out, signbit(x) ? "-0.0" : "0.0", signbit(x) ? 4 : 3);
    }
    int exponent;
    uint128 mantissa = (uint128)ldexp(frexp(fabs(x), &exponent), 53);
    int shift = 53 - exponent;
    uint64_t power = 1;
    for (int places = 0; places < 20; places++, power *= 10) {
        uint128 scaled = mantissa * power, whole = scaled >> shift, rest = scaled - (whole << shift), unit = (uint128)1 << shift;
        uint128 distance = rest > unit / 2 ? unit - rest : rest;
        if (2 * distance >= power) {
            continue;
        }
        if (2 * rest == unit) {
            break;
        }
        int128 nearest = (int128)(whole + (rest > unit / 2));
        return output_decimal(out, x < 0 ? -nearest : nearest, places) && (places > 0 || output_add(out, ".0", 2));
    }
    char *text = PyOS_double_to_string(x, 'r', 0, Py_DTSF_ADD_DOT_0, NULL);
    bool ok = text != NULL && output_add(out, text, strlen(text));
    PyMem_Free(text);
    return ok;
}

bool output_base64(Output *out, const byte *data, size_t size, size_t zeros, const char *alphabet) {
    size_t total = size + zeros;
    if (total > (size_t)PY_SSIZE_T_MAX / 2 || !output_reserve(out, (total + 2) / 3 * 4 + 2)) {
        return false;
    }
    char *to = out->data + out->size;
    *to++ = '"';
    for (size_t at = 0; at < total; at += 3) {
        uint32_t group = 0;
        if (at + 3 <= size) {
            group = (uint32_t)data[at] << 16 | (uint32_t)data[at + 1] << 8 | data[at + 2];
        } else {
            for (size_t i = 0; i < 3; i++) {
                group = group << 8 | (at + i < size ? data[at + i] : 0u);
            }
        }
        to[0] = alphabet[group >> 18];
        to[1] = alphabet[group >> 12 & 63];
        to[2] = at + 1 < total ? alphabet[group >> 6 & 63] : '=';
        to[3] = at + 2 < total ? alphabet[group & 63] : '=';
        to += 4;
    }
    *to++ = '"';
    out->size = (size_t)(to - out->data);
    return true;
}

/* Whether one of eight bytes is a control character, a quote, a backslash, or not ASCII. */
static inline bool special_word(uint64_t word) {
    const uint64_t ones = 0x0101010101010101u, tops = 0x8080808080808080u;
    uint64_t quote = word ^ ones * '"', slash = word ^ ones * '\\';
    return (word | (word - ones * 0x20) | ((quote - ones) & ~quote) | ((slash - ones) & ~slash)) & tops;
}

static inline bool special(byte c) {
    return c < 0x20 || c >= 0x80 || c == '"' || c == '\\';
}

static void escape_unit(Output *out, uint32_t unit) {
    static const char hex[] = "0123456789ABCDEF";
    const char text[6] = {'\\', 'u', hex[unit >> 12], hex[unit >> 8 & 15], hex[unit >> 4 & 15], hex[unit & 15]};
    memcpy(out->data + out->size, text, sizeof text);
    out->size += sizeof text;
}

static void escape_ascii(Output *out, byte c) {
    static const char names[32] = {['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't'};
    char name = c >= 0x20 ? (char)c : names[c];
    if (name == 0) {
        escape_unit(out, c);
    } else {
        out->data[out->size++] = '\\';
        out->data[out->size++] = name;
    }
}

static inline bool continues(byte c) {
    return (c & 0xC0) == 0x80;
}

size_t utf8_sequence(const byte *p, size_t left, uint32_t *point) {
    byte c = p[0];
    if (c >= 0xC2 && c < 0xE0 && left >= 2 && continues(p[1])) {
        *point = (uint32_t)(c & 0x1F) << 6 | (p[1] & 0x3F);
        return 2;
    }
    if (c >= 0xE0 && c < 0xF0 && left >= 3 && continues(p[1]) && continues(p[2])) {
        *point = (uint32_t)(c & 0x0F) << 12 | (uint32_t)(p[1] & 0x3F) << 6 | (p[2] & 0x3F);
        return *point >= 0x800 && (*point < 0xD800 || *point > 0xDFFF) ? 3 : 0;
    }
    if (c >= 0xF0 && c < 0xF5 && left >= 4 && continues(p[1]) && continues(p[2]) && continues(p[3])) {
        *point = (uint32_t)(c & 0x07) << 18 | (uint32_t)(p[1] & 0x3F) << 12 | (uint32_t)(p[2] & 0x3F) << 6 | (p[3] & 0x3F);
        return *point >= 0x10000 && *point <= 0x10FFFF ? 4 : 0;
    }
    return 0;
}

Result output_string(Output *out, const byte *utf8, size_t size, BeyondBMP beyond) {
    size_t start = out->size, at = 0;
    bool ascii = out->ascii;
    if (!output_add(out, "\"", 1)) {
        return FAILED;
    }
    while (at < size) {
        size_t run = at;
        while (run + 8 <= size) {
            uint64_t word;
            memcpy(&word, utf8 + run, 8);
            if (special_word(word)) {
                break;
            }
            run += 8;
        }
        while (run < size && !special(utf8[run])) {
            run++;
        }
        if (!output_add(out, utf8 + at, run - at) || !output_reserve(out, 12)) {
            return FAILED;
        }
        at = run;
        if (at == size) {
            break;
        }
        if (utf8[at] < 0x80) {
            escape_ascii(out, utf8[at++]);
            continue;
        }
        uint32_t point = 0;
        size_t length = utf8_sequence(utf8 + at, size - at, &point);
        if (length == 0) {
            out->size = start;
            out->ascii = ascii;
            return IN_PYTHON;
        }
        if (length == 4 && beyond == BEYOND_BMP_ESCAPED) {
            escape_unit(out, 0xD800 + ((point - 0x10000) >> 10));
            escape_unit(out, 0xDC00 + ((point - 0x10000) & 0x3FF));
        } else {
            memcpy(out->data + out->size, utf8 + at, length);
            out->size += length;
            out->ascii = false;
        }
        at += length;
    }
    return output_add(out, "\"", 1) ? DONE : FAILED;
}

PyObject *output_unicode(const Output *out, size_t start) {
    Py_ssize_t size = (Py_ssize_t)(out->size - start);
    if (!out->ascii) {
        return PyUnicode_DecodeUTF8(out->data + start, size, NULL);
    }
    PyObject *text = PyUnicode_New(size, 127);
    if (text != NULL && size > 0) {
        memcpy(PyUnicode_DATA(text), out->data + start, (size_t)size);
    }
    return text;
}
