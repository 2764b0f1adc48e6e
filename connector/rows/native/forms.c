/* A canonical value to JSON text in the form of its Connect type. */
#include "native.h"

#include <math.h>
#include <string.h>

static const int64_t MICROS_PER_DAY = 86400000000;

static Result added(bool ok) {
    return ok ? DONE : FAILED;
}

static int128 floor_divided(int128 number, int64_t divisor) {
    return number / divisor - (number % divisor < 0);
}

/* --- numbers -------------------------------------------------------------------------------------------------------- */

/* Big-endian two's complement of minimal length, as Java's BigInteger.toByteArray. */
static Result write_unscaled(int128 number, Output *out) {
    byte data[16];
    size_t first = 16;
    int128 rest = number;
    do {
        data[--first] = (byte)rest;
        rest >>= 8;
    } while (first > 0 && !((rest == 0 && data[first] < 0x80) || (rest == -1 && data[first] >= 0x80)));
    return added(output_base64(out, data + first, 16 - first, 0, BASE64));
}

static Result write_plain_decimal(int128 number, int64_t scale, Output *out) {
    return added(output_add(out, "\"", 1) && output_decimal(out, number, scale) && output_add(out, "\"", 1));
}

/* Python's text of a number; the caller frees it. */
static char *python_digits(double x, char format, int precision) {
    return PyOS_double_to_string(x, format, precision, format == 'r' ? Py_DTSF_ADD_DOT_0 : 0, NULL);
}

/* The shortest digits in Java's notation with an exponent: d.dddE-n */
static bool add_with_exponent(const char *text, Output *out) {
    char digits[32];
    size_t count = 0, whole = 0, zeros = 0;
    int power = 0;
    bool negative = *text == '-', point = false;
    for (text += negative; *text && count < sizeof digits; text++) {
        if (*text == '.') {
            point = true;
        } else if (*text == 'e') {
            power = atoi(text + 1);
            break;
        } else if (count == 0 && *text == '0') {
            zeros += point;
        } else {
            digits[count++] = *text;
            whole += !point;
        }
    }
    while (count > 1 && digits[count - 1] == '0') {
        count--;
    }
    if (count == 0) {
        return false;
    }
    power += whole ? (int)whole - 1 : -(int)zeros - 1;
    char exponent[16];
    int width = PyOS_snprintf(exponent, sizeof exponent, "E%d", power);
    return (!negative || output_add(out, "-", 1)) && output_add(out, digits, 1) && output_add(out, ".", 1) &&
           output_add(out, count > 1 ? digits + 1 : "0", count > 1 ? count - 1 : 1) && output_add(out, exponent, (size_t)width);
}

/* Double.toString where Java's digits are the shortest ones, see rowtide.envelope.json.java_numbers.double_text. */
static Result write_double(double x, Output *out) {
    double magnitude = fabs(x);
    int exponent;
    if (is_plain_double(x)) {
        return added(output_plain_double(out, x));
    }
    if (!(magnitude >= 1e7 && magnitude < 1125899906842624.0) &&
        !(magnitude > 1e-290 && magnitude < 1e-3 && frexp(magnitude, &exponent) != 0.5)) {
        return IN_PYTHON;
    }
    char *text = python_digits(x, 'r', 0);
    if (text == NULL) {
        return FAILED;
    }
    bool ok = add_with_exponent(text, out);
    PyMem_Free(text);
    return added(ok);
}

/* Float.toString in the range in which the first length that is near enough is Java's, see float_text there. */
static Result write_float(double x, Output *out) {
    x = (double)(float)x; /* a REAL is stored as a double */
    if (x == 0) {
        return added(output_add(out, signbit(x) ? "-0.0" : "0.0", signbit(x) ? 4 : 3));
    }
    if (!((x >= 1e-3 && x < 1e6) || (x > -1e6 && x <= -1e-3))) {
        return IN_PYTHON;
    }
    int exponent;
    frexp(x, &exponent);
    double limit = ldexp(0.5, exponent - 24);
    for (int precision = 6; precision <= 9; precision++) {
        char *text = python_digits(x, 'g', precision);
        if (text == NULL) {
            return FAILED;
        }
        double near = PyOS_string_to_double(text, NULL, NULL) - x;
        bool found = -limit < near && near < limit;
        bool ok = !found || (output_add(out, text, strlen(text)) && (strchr(text, '.') || output_add(out, ".0", 2)));
        PyMem_Free(text);
        if (found || !ok) {
            return added(ok);
        }
    }
    return IN_PYTHON;
}

/* The quotient of a decimal's unscaled number, exact to the last bit, as Python's division of integers. */
static Result write_ratio(int128 number, int64_t scale, Output *out) {
    static const double powers[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14,
                                    1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    const int64_t exact = (int64_t)1 << 53;
    if (number > exact || number < -exact || scale < 0 || scale > 22) {
        return IN_PYTHON;
    }
    return write_double((double)(int64_t)number / powers[scale], out);
}

/* --- temporal values ------------------------------------------------------------------------------------------------ */

static char *two_digits(char *to, int64_t number) {
    to[0] = (char)('0' + number / 10);
    to[1] = (char)('0' + number % 10);
    return to + 2;
}

static char *date_text(char *to, int64_t days) {
    Civil date = civil_from_days(days);
    to = two_digits(two_digits(to, date.year / 100), date.year % 100);
    *to++ = '-';
    to = two_digits(to, date.month);
    *to++ = '-';
    return two_digits(to, date.day);
}

/* HH:MM:SS with `count` digits of the fraction, or without trailing zeros if `count` is negative. */
static char *clock_text(char *to, int64_t micros, int count) {
    int64_t seconds = micros / 1000000, part = micros % 1000000;
    to = two_digits(to, seconds / 3600);
    *to++ = ':';
    to = two_digits(to, seconds / 60 % 60);
    *to++ = ':';
    to = two_digits(to, seconds % 60);
    if (count == 0 || (count < 0 && part == 0)) {
        return to;
    }
    *to++ = '.';
    two_digits(two_digits(two_digits(to, part / 10000), part / 100 % 100), part % 100);
    if (count > 0) {
        return to + count;
    }
    to += 6;
    while (to[-1] == '0') {
        to--;
    }
    return to;
}

static Result write_date(int128 days, Output *out) {
    char text[16] = "\"";
    if (days < FIRST_DAY || days > LAST_DAY) {
        return IN_PYTHON;
    }
    char *end = date_text(text + 1, (int64_t)days);
    memcpy(end, "Z\"", 2);
    return added(output_add(out, text, (size_t)(end + 2 - text)));
}

static Result write_zoned(int128 micros, int count, Output *out) {
    char text[40] = "\"";
    int64_t days = (int64_t)floor_divided(micros, MICROS_PER_DAY);
    if (days < FIRST_DAY || days > LAST_DAY || count > 6) {
        return IN_PYTHON;
    }
    char *end = date_text(text + 1, days);
    *end++ = 'T';
    end = clock_text(end, (int64_t)(micros - (int128)days * MICROS_PER_DAY), count);
    memcpy(end, "Z\"", 2);
    return added(output_add(out, text, (size_t)(end + 2 - text)));
}

static Result write_time(int128 micros, Output *out) {
    char text[32] = "\"";
    if (micros < 0 || micros > MICROS_PER_DAY) {
        return IN_PYTHON;
    }
    char *end = clock_text(text + 1, (int64_t)(micros % MICROS_PER_DAY), -1);
    memcpy(end, "Z\"", 2);
    return added(output_add(out, text, (size_t)(end + 2 - text)));
}

static Result write_datetime_nanos(int128 micros, Output *out) {
    const int128 limit = (int128)1 << 63;
    if (floor_divided(micros, 1000000) * 1000000000 < -limit || micros * 1000 >= limit) {
        return IN_PYTHON;
    }
    return added(output_integer(out, micros * 1000));
}

/* --- bytes and text ------------------------------------------------------------------------------------------------- */

/* Text in a single-byte character set, through its table of escaped characters. */
static Result write_mapped(const Column *column, const Value *value, Output *out) {
    if (column->argument) { /* ASCII is itself */
        byte all = 0;
        for (size_t i = 0; i < value->size; i++) {
            all |= value->bytes[i];
        }
        if (all < 0x80) {
            return output_string(out, value->bytes, value->size, BEYOND_BMP_ESCAPED);
        }
    }
    if (!output_add(out, "\"", 1)) {
        return FAILED;
    }
    for (size_t i = 0; i < value->size; i++) {
        if (!output_add_bytes(out, PyTuple_GET_ITEM(column->table, value->bytes[i]))) {
            return FAILED;
        }
    }
    return added(output_add(out, "\"", 1));
}

size_t padding(const Column *column, const Value *value) {
    return column->argument > 0 && (size_t)column->argument > value->size ? (size_t)column->argument - value->size : 0;
}

static Result write_hex(const Column *column, const Value *value, Output *out) {
    static const char hex[] = "0123456789abcdef";
    size_t zeros = padding(column, value);
    if (value->size > (size_t)PY_SSIZE_T_MAX / 4 || !output_reserve(out, 2 * (value->size + zeros) + 2)) {
        return FAILED;
    }
    char *to = out->data + out->size;
    *to++ = '"';
    for (size_t i = 0; i < value->size; i++) {
        *to++ = hex[value->bytes[i] >> 4];
        *to++ = hex[value->bytes[i] & 15];
    }
    memset(to, '0', 2 * zeros);
    to += 2 * zeros;
    *to++ = '"';
    out->size = (size_t)(to - out->data);
    return DONE;
}

static Result write_bits(const Column *column, uint64_t number, Output *out) {
    byte data[8];
    int64_t size = column->argument;
    if (size < 1 || size > 8 || (size < 8 && number >> 8 * size)) {
        return IN_PYTHON;
    }
    for (int i = 0; i < 8; i++) {
        data[i] = (byte)(number >> 8 * i);
    }
    return added(output_base64(out, data, (size_t)size, 0, BASE64));
}

static Result write_label(const Column *column, int128 number, Output *out) {
    if (number >= PyTuple_GET_SIZE(column->table)) {
        return IN_PYTHON;
    }
    return added(output_add_bytes(out, PyTuple_GET_ITEM(column->table, (Py_ssize_t)number)));
}

static Result write_labels(const Column *column, uint64_t bits, Output *out) {
    bool ok = output_add(out, "\"", 1), first = true;
    for (Py_ssize_t i = 0; ok && i < PyTuple_GET_SIZE(column->table) && i < 64; i++) {
        if (bits >> i & 1) {
            ok = (first || output_add(out, ",", 1)) && output_add_bytes(out, PyTuple_GET_ITEM(column->table, i));
            first = false;
        }
    }
    return added(ok && output_add(out, "\"", 1));
}

Result write_form(const Column *column, const Value *value, Output *out) {
    int128 number = value->number;
    switch (column->form) {
    case INTEGER:
        return added(output_integer(out, number));
    case LONG:
        return number >> 63 > 0 ? IN_PYTHON : added(output_integer(out, number));
    case WRAPPED:
        return added(output_integer(out, number >> 63 > 0 ? number - ((int128)1 << 64) : number));
    case BOOLEAN:
        if (number != 0 && number != 1) {
            return IN_PYTHON;
        }
        return added(number ? output_add(out, "true", 4) : output_add(out, "false", 5));
    case UNSCALED:
        return write_unscaled(number, out);
    case PLAIN_DECIMAL:
        return write_plain_decimal(number, column->argument, out);
    case RATIO:
        return write_ratio(number, column->argument, out);
    case JAVA_FLOAT:
        return write_float(value->real, out);
    case JAVA_DOUBLE:
        return write_double(value->real, out);
    case MILLIS:
        return added(output_integer(out, floor_divided(number, 1000)));
    case NANOS:
        return added(output_integer(out, number * 1000));
    case DATETIME_NANOS:
        return write_datetime_nanos(number, out);
    case DATE_TEXT:
        return write_date(number, out);
    case ZONED:
        return write_zoned(number, (int)column->argument, out);
    case ZONED_TRIMMED:
        return write_zoned(number, -1, out);
    case TIME_MILLIS:
        return number < 0 || number > MICROS_PER_DAY ? IN_PYTHON : added(output_integer(out, number / 1000));
    case TIME_TEXT:
        return write_time(number, out);
    case STRING:
        return output_string(out, value->bytes, value->size, BEYOND_BMP_ESCAPED);
    case DOCUMENT: /* no bytes are no document: the row is older than its column */
        return value->size ? output_string(out, value->bytes, value->size, BEYOND_BMP_ESCAPED) : IN_PYTHON;
    case MAPPED_STRING:
        return write_mapped(column, value, out);
    case BASE64_TEXT:
        return added(output_base64(out, value->bytes, value->size, padding(column, value), BASE64));
    case BASE64_URL_TEXT:
        return added(output_base64(out, value->bytes, value->size, padding(column, value), BASE64_URL));
    case HEX_TEXT:
        return write_hex(column, value, out);
    case BITS:
        return write_bits(column, (uint64_t)number, out);
    case LABEL:
        return write_label(column, number, out);
    case LABELS:
        return write_labels(column, (uint64_t)number, out);
    case INT_OBJECT:
    case FLOAT_OBJECT:
    case TEXT_OBJECT:
    case BYTES_OBJECT:
    case DATE_OBJECT:
    case DATETIME_OBJECT:
    case UTC_OBJECT:
    case TIMEDELTA_OBJECT:
    case FROM_PYTHON:
        break;
    }
    return IN_PYTHON;
}
