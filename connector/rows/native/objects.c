/* A canonical value to a Python object. */
#include "native.h"

#include <datetime.h>
#include <string.h>

static const int64_t MICROS_PER_DAY = 86400000000;

bool import_datetime(void) {
    PyDateTime_IMPORT;
    return PyDateTimeAPI != NULL;
}

static bool in_calendar(int128 days) {
    return days >= FIRST_DAY && days <= LAST_DAY;
}

static PyObject *date_object(int128 days) {
    if (!in_calendar(days)) {
        return NULL;
    }
    Civil date = civil_from_days((int64_t)days);
    return PyDate_FromDate(date.year, date.month, date.day);
}

/* A datetime; `zone` is None or UTC. */
static PyObject *datetime_object(int128 micros, PyObject *zone) {
    int128 days = micros / MICROS_PER_DAY - (micros % MICROS_PER_DAY < 0);
    if (!in_calendar(days)) {
        return NULL;
    }
    Civil date = civil_from_days((int64_t)days);
    int64_t rest = (int64_t)(micros - days * MICROS_PER_DAY), seconds = rest / 1000000;
    return PyDateTimeAPI->DateTime_FromDateAndTime(date.year, date.month, date.day, (int)(seconds / 3600),
                                                   (int)(seconds / 60 % 60), (int)(seconds % 60), (int)(rest % 1000000),
                                                   zone, PyDateTimeAPI->DateTimeType);
}

static PyObject *timedelta_object(int128 micros) {
    int128 seconds = micros / 1000000 - (micros % 1000000 < 0);
    return PyDelta_FromDSU(0, (int)seconds, (int)(micros - seconds * 1000000)); /* at most 2047 hours */
}

static PyObject *bytes_object(const Column *column, const Value *value) {
    size_t zeros = padding(column, value);
    PyObject *made = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(value->size + zeros));
    if (made != NULL) {
        memcpy(PyBytes_AS_STRING(made), value->bytes, value->size);
        memset(PyBytes_AS_STRING(made) + value->size, 0, zeros);
    }
    return made;
}

PyObject *make_object(const Column *column, const Value *value) {
    switch (column->form) {
    case INT_OBJECT:
        if (value->number > INT64_MAX) {
            return PyLong_FromUnsignedLongLong((uint64_t)value->number);
        }
        return PyLong_FromLongLong((int64_t)value->number);
    case FLOAT_OBJECT:
        return PyFloat_FromDouble(value->real);
    case TEXT_OBJECT:
        return PyUnicode_DecodeUTF8((const char *)value->bytes, (Py_ssize_t)value->size, "replace");
    case BYTES_OBJECT:
        return bytes_object(column, value);
    case DATE_OBJECT:
        return date_object(value->number);
    case DATETIME_OBJECT:
        return datetime_object(value->number, Py_None);
    case UTC_OBJECT:
        return datetime_object(value->number, PyDateTime_TimeZone_UTC);
    case TIMEDELTA_OBJECT:
        return timedelta_object(value->number);
    default:
        return NULL;
    }
}
