/* MySQL's binary JSON to text, in Debezium's style for streamed records or in the server's style.
 *
 * The same steps as rowtide.connector.protocol.json.binary, where the layout is described. Its damaged documents, and
 * values that need more than these files offer, are left to it: IN_PYTHON.
 */
#include "native.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LARGE_OBJECT = 1, LARGE_ARRAY = 3 };
enum { LITERAL = 0x04, INT16, UINT16, INT32, UINT32, INT64, UINT64, DOUBLE, STRING_VALUE, OPAQUE = 0x0F };
enum { OLD_DECIMAL = 0, OLD_TIMESTAMP = 7, OLD_DATE = 10, OLD_TIME, OLD_DATETIME, NEW_TIMESTAMP = 17, NEW_DATETIME, NEW_TIME,
       NEW_DECIMAL = 246 };
static const int DEEPEST = 100; /* the server's JSON_DOCUMENT_MAX_DEPTH */

typedef struct {
    const byte *data;
    size_t size;
    size_t left; /* bytes that no value has taken yet, see _Space in the Python path */
    JsonStyle style;
    bool plain; /* without values of types that JSON lacks, which are left to Python */
    Output *out;
} Document;

static Result added(bool ok) {
    return ok ? DONE : FAILED;
}

static uint64_t number_at(const byte *data, size_t size) {
    uint64_t number = 0;
    for (size_t i = 0; i < size; i++) {
        number |= (uint64_t)data[i] << 8 * i;
    }
    return number;
}

/* Whether the document has that many bytes at an offset. */
static bool has(const Document *document, size_t pos, size_t size) {
    return pos <= document->size && size <= document->size - pos;
}

static bool take(Document *document, size_t pos, size_t size) {
    if (!has(document, pos, size) || size > document->left) {
        return false;
    }
    document->left -= size;
    return true;
}

/* A length in groups of seven bits; the offset becomes the one after it. */
static bool length_at(const Document *document, size_t *pos, size_t *length) {
    uint64_t found = 0;
    for (int shift = 0; shift <= 28; shift += 7) {
        if (*pos >= document->size) {
            return false;
        }
        byte group = document->data[(*pos)++];
        found |= (uint64_t)(group & 0x7F) << shift;
        if (group < 0x80) {
            *length = found;
            return true;
        }
    }
    return false;
}

/* --- scalars -------------------------------------------------------------------------------------------------------- */

static Result write_integer(Document *document, byte kind, size_t pos) {
    static const byte sizes[] = {2, 2, 4, 4, 8, 8};
    size_t size = sizes[kind - INT16];
    if (!has(document, pos, size)) {
        return IN_PYTHON;
    }
    uint64_t number = number_at(document->data + pos, size);
    if (kind == UINT16 || kind == UINT32 || kind == UINT64) {
        return added(output_unsigned(document->out, number));
    }
    unsigned unused = 64 - 8 * (unsigned)size;
    return added(output_integer(document->out, (int64_t)(number << unused) >> unused));
}

/* The server's my_gcvt: shortest digits, with an exponent only beyond 15 digits before or after the point. */
static Result write_server_number(double x, Output *out) {
    char *text = PyOS_double_to_string(fabs(x), 'r', 0, 0, NULL), digits[32], made[64], *end = made;
    if (text == NULL) {
        return FAILED;
    }
    int count = 0, point = 0; /* digits before the decimal point */
    bool behind = false;
    for (const char *c = text; *c != 0; c++) {
        if (*c == '.') {
            behind = true;
        } else if (*c == 'e') {
            point += atoi(c + 1);
            break;
        } else if (count > 0 || *c != '0') {
            digits[count++] = *c;
            point += !behind;
        } else {
            point -= behind;
        }
    }
    PyMem_Free(text);
    while (count > 1 && digits[count - 1] == '0') {
        count--;
    }
    if (count == 0) {
        digits[count++] = '0';
        point = 1;
    }
    if (signbit(x)) {
        *end++ = '-';
    }
    if (point < -14 || point > 15) {
        *end++ = digits[0];
        if (count > 1) {
            end += PyOS_snprintf(end, 32, ".%.*s", count - 1, digits + 1);
        }
        end += PyOS_snprintf(end, 8, "e%d", point - 1);
    } else if (point <= 0) {
        end += PyOS_snprintf(end, 48, "0.%.*s%.*s", -point, "00000000000000", count, digits);
    } else if (point >= count) {
        end += PyOS_snprintf(end, 48, "%.*s%.*s.0", count, digits, point - count, "000000000000000");
    } else {
        end += PyOS_snprintf(end, 48, "%.*s.%.*s", point, digits, count - point, digits + point);
    }
    return added(output_add(out, made, (size_t)(end - made)));
}

/* Shortest digits between 1e-3 and 1e7, else the exact decimal expansion. */
static Result write_number(Document *document, size_t pos) {
    double x;
    if (!take(document, pos, sizeof x)) {
        return IN_PYTHON;
    }
    memcpy(&x, document->data + pos, sizeof x);
    if (!isfinite(x)) {
        return IN_PYTHON;
    }
    if (document->style == SERVER_STYLE) {
        return write_server_number(x, document->out);
    }
    if (is_plain_double(x)) {
        return added(output_plain_double(document->out, x));
    }
    int exponent, places = 0;
    uint64_t mantissa = (uint64_t)ldexp(frexp(fabs(x), &exponent), 53);
    for (exponent -= 53; exponent < 0 && mantissa % 2 == 0; exponent++) {
        mantissa /= 2;
    }
    if (exponent < 0) {
        places = -exponent;
    }
    char *text = PyOS_double_to_string(x, 'f', places, 0, NULL);
    bool ok = text != NULL && output_add(document->out, text, strlen(text));
    PyMem_Free(text);
    return added(ok);
}

/* A decimal in the layout of row images, after its precision and scale. */
static Result write_decimal(const byte *data, size_t size, Output *out) {
    if (size < 3) {
        return IN_PYTHON;
    }
    Column column = {.stored = DECIMAL, .precision = data[0], .scale = data[1]};
    Value value;
    Result result = decode(&column, data + 2, size - 2, &value, NULL);
    if (result != DONE || (value.number == 0 && !(data[2] & 0x80))) {
        return result == FAILED ? FAILED : IN_PYTHON; /* Python writes the sign of a negative zero */
    }
    return added(output_decimal(out, value.number, column.scale));
}

static Result write_temporal(byte type, const byte *data, size_t size, JsonStyle style, Output *out) {
    char text[48];
    if (size != 8) {
        return IN_PYTHON;
    }
    int64_t packed = (int64_t)number_at(data, 8);
    if (packed == INT64_MIN) {
        return IN_PYTHON;
    }
    const char *sign = packed < 0 ? "-" : "";
    uint64_t magnitude = (uint64_t)(packed < 0 ? -packed : packed), clock = magnitude >> 24;
    unsigned micros = magnitude & 0xFFFFFF, second = clock & 0x3F, minute = clock >> 6 & 0x3F;
    unsigned hour = clock >> 12 & 0x1F, day = clock >> 17 & 0x1F, months = (unsigned)(clock >> 22);
    if (micros > 999999) {
        return IN_PYTHON;
    }
    int count;
    if (type == OLD_TIME || type == NEW_TIME) {
        hour = clock >> 12 & 0x3FF;
        count = PyOS_snprintf(text, sizeof text, "\"%s%02u:%02u:%02u", sign, hour, minute, second);
    } else {
        count = PyOS_snprintf(text, sizeof text, "\"%s%04u-%02u-%02u", sign, months / 13, months % 13, day);
        if (type != OLD_DATE) {
            count += PyOS_snprintf(text + count, sizeof text - (size_t)count, " %02u:%02u:%02u", hour, minute, second);
        }
    }
    if ((micros || style == SERVER_STYLE) && type != OLD_DATE) {
        count += PyOS_snprintf(text + count, sizeof text - (size_t)count, ".%06u", micros);
        while (style == STREAM_STYLE && text[count - 1] == '0') {
            count--;
        }
    }
    return added(output_add(out, text, (size_t)count) && output_add(out, "\"", 1));
}

/* A value of a type that JSON lacks: bytes of any other type are base64. */
static Result write_opaque(Document *document, size_t pos) {
    if (!has(document, pos, 1)) {
        return IN_PYTHON;
    }
    byte type = document->data[pos++];
    size_t size;
    if (!length_at(document, &pos, &size) || !take(document, pos, size)) {
        return IN_PYTHON;
    }
    const byte *data = document->data + pos;
    switch (type) {
    case OLD_DECIMAL:
    case NEW_DECIMAL:
        return write_decimal(data, size, document->out);
    case OLD_TIMESTAMP:
    case OLD_DATE:
    case OLD_TIME:
    case OLD_DATETIME:
    case NEW_TIMESTAMP:
    case NEW_DATETIME:
    case NEW_TIME:
        return write_temporal(type, data, size, document->style, document->out);
    default:
        if (document->style == SERVER_STYLE) {
            return IN_PYTHON; /* with the type and line breaks */
        }
        return added(output_base64(document->out, data, size, 0, BASE64));
    }
}

/* Compiled code has the escapes of the stream, whose hexadecimal digits are others. */
static Result write_text(Document *document, const byte *data, size_t size) {
    for (size_t i = 0; document->style == SERVER_STYLE && i < size; i++) {
        if (data[i] < 0x20 && memchr("\b\f\n\r\t", data[i], 5) == NULL) {
            return IN_PYTHON;
        }
    }
    return output_string(document->out, data, size, BEYOND_BMP_AS_IT_IS);
}

static Result write_scalar(Document *document, byte kind, size_t pos) {
    static const char *const literals[] = {"null", "true", "false"};
    size_t size;
    switch (kind) {
    case LITERAL:
        if (!has(document, pos, 1) || document->data[pos] > 2) {
            return IN_PYTHON;
        }
        const char *text = literals[document->data[pos]];
        return added(output_add(document->out, text, strlen(text)));
    case INT16:
    case UINT16:
    case INT32:
    case UINT32:
    case INT64:
    case UINT64:
        return write_integer(document, kind, pos);
    case DOUBLE:
        return write_number(document, pos);
    case STRING_VALUE:
        if (!length_at(document, &pos, &size) || !take(document, pos, size)) {
            return IN_PYTHON;
        }
        return write_text(document, document->data + pos, size);
    case OPAQUE:
        return document->plain ? IN_PYTHON : write_opaque(document, pos);
    default:
        return IN_PYTHON;
    }
}

/* --- containers ----------------------------------------------------------------------------------------------------- */

static bool is_inlined(byte kind, bool large) {
    return kind >= LITERAL && kind <= (large ? UINT32 : UINT16);
}

static Result write_json_value(Document *document, byte kind, size_t pos, int depth);

static Result write_key(Document *document, size_t base, size_t entry, size_t width) {
    size_t start = base + number_at(document->data + entry, width), size = number_at(document->data + entry + width, 2);
    if (!take(document, start, size)) {
        return IN_PYTHON;
    }
    Result result = write_text(document, document->data + start, size);
    return result == DONE ? added(output_add(document->out, ": ", document->style == SERVER_STYLE ? 2 : 1)) : result;
}

/* Layout: number of elements, size, entries of the keys (of an object), entries of the values; then keys and values. */
static Result write_container(Document *document, byte kind, size_t pos, int depth) {
    bool large = kind & 1, object = kind <= LARGE_OBJECT;
    size_t width = large ? 4 : 2, key_entry = object ? width + 2 : 0, value_entry = width + 1;
    if (depth > DEEPEST || !take(document, pos, 2 * width)) {
        return IN_PYTHON;
    }
    size_t count = number_at(document->data + pos, width), keys = pos + 2 * width, values = keys + count * key_entry;
    if (!take(document, keys, count * (key_entry + value_entry))) {
        return IN_PYTHON;
    }
    if (!output_add(document->out, object ? "{" : "[", 1)) {
        return FAILED;
    }
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && !output_add(document->out, ", ", document->style == SERVER_STYLE ? 2 : 1)) {
            return FAILED;
        }
        if (object) {
            Result result = write_key(document, pos, keys + i * key_entry, width);
            if (result != DONE) {
                return result;
            }
        }
        size_t entry = values + i * value_entry;
        byte found = document->data[entry];
        size_t at = is_inlined(found, large) ? entry + 1 : pos + number_at(document->data + entry + 1, width);
        Result result = write_json_value(document, found, at, depth + 1);
        if (result != DONE) {
            return result;
        }
    }
    return added(output_add(document->out, object ? "}" : "]", 1));
}

static Result write_json_value(Document *document, byte kind, size_t pos, int depth) {
    return kind > LARGE_ARRAY ? write_scalar(document, kind, pos) : write_container(document, kind, pos, depth);
}

Result write_json(const byte *data, size_t size, JsonStyle style, bool plain, Output *out) {
    if (size == 0) {
        return IN_PYTHON; /* no document: the row is older than its column */
    }
    Document document = {.data = data, .size = size, .left = size, .style = style, .plain = plain, .out = out};
    return write_json_value(&document, data[0], 1, 1);
}
