/* The compiled row path: column values from the bytes of the binlog, or of a result set, to JSON text or Python objects.
 *
 *   row_decoder.c   the type of the module: walks over row images, or packets of a result set, column by column
 *   assembly.c      the text of a row and its key, or their tuples, from the columns' values
 *   columns.c       the description of a column, and the way of one value through decode.c and forms.c
 *   decode.c        one stored value to its canonical value
 *   json.c          MySQL's binary JSON to text
 *   forms.c         a canonical value to JSON text, in the form of its Connect type
 *   objects.c       a canonical value to a Python object
 *   output.c        the growing text, and what many forms need: digits, base64, escapes
 *   messages.c      keys and values of messages from the texts of rows
 *   lines.c         messages as JSON lines
 *
 * Nothing here reports what is wrong with its input. A value that needs more than these files offer is passed to the
 * column's Python function; if bytes are missing or a function fails, the caller repeats the event in Python, so that
 * errors are those of the Python path by construction. Every read is preceded by a check against the end of the input.
 */
#ifndef ROWTIDE_NATIVE_H
#define ROWTIDE_NATIVE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

typedef unsigned char byte;
typedef __int128 int128;
typedef unsigned __int128 uint128;

/* DONE, or why a value was not written. */
typedef enum { DONE, IN_PYTHON, FAILED } Result;

/* --- output.c ------------------------------------------------------------------------------------------------------ */

typedef struct {
    char *data;
    size_t size, room;
    bool ascii;
} Output;

void output_init(Output *out);
void output_free(Output *out);
bool output_reserve(Output *out, size_t more); /* false: no memory, an exception is set */
bool output_add(Output *out, const void *data, size_t size);
bool output_add_bytes(Output *out, PyObject *bytes); /* its text may be outside ASCII */
bool output_add_text(Output *out, PyObject *text);
bool output_unsigned(Output *out, uint64_t number);
bool output_integer(Output *out, int128 number); /* of at most 38 digits */
bool output_decimal(Output *out, int128 unscaled, int64_t scale); /* BigDecimal.toPlainString */
bool is_plain_double(double x); /* from 1e-3 to 1e7, or 0 */
bool output_plain_double(Output *out, double x); /* Python's repr of such a number */
bool output_base64(Output *out, const byte *data, size_t size, size_t zeros, const char *alphabet);
/* A string of JSON; IN_PYTHON if the bytes are not UTF-8 (`out` is then unchanged). Jackson escapes characters beyond the
 * basic multilingual plane. */
typedef enum { BEYOND_BMP_ESCAPED, BEYOND_BMP_AS_IT_IS } BeyondBMP;
Result output_string(Output *out, const byte *utf8, size_t size, BeyondBMP beyond);
PyObject *output_unicode(const Output *out, size_t start); /* the text from an offset on */
/* The bytes of the well-formed UTF-8 sequence at `p`, whose first byte is not ASCII, 0 if there is none; `point` becomes
 * its character. */
size_t utf8_sequence(const byte *p, size_t left, uint32_t *point);

extern const char BASE64[65], BASE64_URL[65];

/* --- columns ------------------------------------------------------------------------------------------------------- */

/* How a value is stored. */
typedef enum {
    STORED_OTHERWISE, /* only its Python function can decode it */
    SIGNED, UNSIGNED, UNSIGNED_BIG, YEAR, DECIMAL, FLOAT32, FLOAT64, DATE, DATETIME, TIMESTAMP, TIME, BYTES, BINARY_JSON,
    SERVER_JSON,
    TEXT_INTEGER, TEXT_DECIMAL, TEXT_FLOAT32, TEXT_FLOAT64, TEXT_DATE, TEXT_DATETIME, TEXT_TIME,
} Stored;

/* What a value becomes. The forms up to LABELS are JSON text, the others are Python objects. */
typedef enum {
    INTEGER, LONG, WRAPPED, BOOLEAN, UNSCALED, PLAIN_DECIMAL, RATIO, JAVA_FLOAT, JAVA_DOUBLE, MILLIS, NANOS, DATETIME_NANOS,
    DATE_TEXT, ZONED, ZONED_TRIMMED, TIME_MILLIS, TIME_TEXT, STRING, DOCUMENT, MAPPED_STRING, BASE64_TEXT, BASE64_URL_TEXT,
    HEX_TEXT, BITS, LABEL, LABELS,
    INT_OBJECT, FLOAT_OBJECT, TEXT_OBJECT, BYTES_OBJECT, DATE_OBJECT, DATETIME_OBJECT, UTC_OBJECT, TIMEDELTA_OBJECT,
    FROM_PYTHON,
} Form;

typedef struct {
    Stored stored;
    Form form;
    uint32_t size;      /* bytes of a value, or of its length prefix */
    bool fixed;         /* whether every value has `size` bytes; in packets: whether its length is one byte */
    bool nullable;      /* whether it has to be looked up in the null bitmap */
    bool published;     /* whether anything reads it */
    bool in_row;        /* whether the row has it; a key may have more */
    int precision, scale; /* of a DECIMAL; `scale` also of a fraction of seconds: its digits */
    int64_t argument;   /* of the form */
    int64_t minimum;    /* smaller numbers are converted in Python */
    PyObject *before;   /* bytes in front of the value in the row */
    PyObject *null;     /* what NULL becomes: bytes, or an object */
    PyObject *absent;   /* the same for a column that an image lacks */
    PyObject *python;   /* converts stored bytes: a function, or a dict that finds them */
    PyObject *table;    /* the bytes of LABEL, LABELS and MAPPED_STRING by number */
    PyObject *key_python; /* the same for the key; None if the key has what the row has */
    PyObject *key_null;
} Column;

bool column_read(Column *column, PyObject *description); /* false: an exception is set */
void column_clear(Column *column);
int column_visit(Column *column, visitproc visit, void *arg);

/* --- decode.c ------------------------------------------------------------------------------------------------------ */

/* A canonical value; which member counts follows from the column. */
typedef struct {
    int128 number; /* integers, unscaled decimals, days, microseconds */
    double real;
    const byte *bytes;
    size_t size;
} Value;

/* IN_PYTHON for values that do not exist in the calendar, are longer than 38 digits, or are damaged. `made` holds bytes
 * that are not stored as they are; it has to live as long as the value. */
Result decode(const Column *column, const byte *data, size_t size, Value *value, Output *made);

/* Year, month and day from days since 1970-01-01, and the other way round (proleptic Gregorian). */
typedef struct { int year, month, day; } Civil;
static const int64_t FIRST_DAY = -719162, LAST_DAY = 2932896; /* 0001-01-01 and 9999-12-31 */
Civil civil_from_days(int64_t days);
int64_t days_from_civil(int year, int month, int day);

/* --- json.c -------------------------------------------------------------------------------------------------------- */

/* Debezium's style of streamed records, and the server's. */
typedef enum { STREAM_STYLE, SERVER_STYLE } JsonStyle;

/* The text of a document of MySQL's binary JSON; `out` is undefined unless DONE. A plain one has no dates, decimals or
 * bytes: IN_PYTHON if it has. */
Result write_json(const byte *data, size_t size, JsonStyle style, bool plain, Output *out);

/* --- forms.c ------------------------------------------------------------------------------------------------------- */

Result write_form(const Column *column, const Value *value, Output *out);
size_t padding(const Column *column, const Value *value); /* zeros after the bytes of a BINARY(n) */

/* --- objects.c ----------------------------------------------------------------------------------------------------- */

bool import_datetime(void); /* before the first object; false: an exception is set */
PyObject *make_object(const Column *column, const Value *value); /* NULL without an exception: IN_PYTHON */

/* --- columns.c ----------------------------------------------------------------------------------------------------- */

/* The value of a column from its stored bytes, in Python if need be. FAILED: an exception is set. */
Result write_value(const Column *column, const byte *data, size_t size, Output *out);
PyObject *object_of(const Column *column, const byte *data, size_t size);
PyObject *call_python(PyObject *python, const byte *data, size_t size);

/* --- row_decoder.c, assembly.c ------------------------------------------------------------------------------------- */

/* What the rows are made of. */
typedef enum { TEXTS, KEY_VALUES, VALUES } Mode;

typedef struct {
    PyObject *before; /* bytes in front of the field, with its name */
    Py_ssize_t column; /* -1: `before` has the value too */
} KeyField;

typedef struct {
    PyObject_HEAD
    Mode mode;
    Py_ssize_t count, images, key_count, row_count;
    Column *columns;
    byte *present; /* images * count */
    KeyField *key;
} RowDecoder;

typedef struct {
    const Output *of;
    size_t start, size;
} Span;

/* One call. */
typedef struct {
    const byte *p, *end;
    Output row, side, key;
    Span *spans;         /* of the texts, by column */
    PyObject **objects;  /* or the values, by column; those of keys that differ follow */
} Work;

/* A value that no bytes are stored for, such as NULL; false: an exception is set. */
bool add_constant(RowDecoder *self, Work *work, Py_ssize_t at, PyObject *value, PyObject *in_key);
bool add_stored(RowDecoder *self, Work *work, Py_ssize_t at, const byte *data, size_t size);
bool begin_row(RowDecoder *self, Work *work);
bool begin_column(RowDecoder *self, Work *work, Py_ssize_t at); /* before a value is added */
PyObject *end_row(RowDecoder *self, Work *work); /* a row from the values of all columns */

/* --- the types and functions of the module ------------------------------------------------------------------------- */

extern PyTypeObject RowDecoderType;
PyObject *message_parts(PyObject *self, PyObject *args);
PyObject *message_values(PyObject *self, PyObject *args);
PyObject *message_bytes(PyObject *self, PyObject *messages);
PyObject *message_lines(PyObject *self, PyObject *args);
PyObject *write_lines(PyObject *self, PyObject *args);
void prepare_lines(void); /* before the first call of message_lines */

#endif
