/* One stored value to its canonical value: the layouts of row images, and the texts of result sets. */
#include "native.h"

#include <string.h>

static const int64_t MICROS_PER_DAY = 86400000000;
static const int DIGIT_BYTES[10] = {0, 1, 1, 2, 2, 3, 3, 4, 4, 4};
static const uint32_t POWERS[10] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000, 1000000000};

static uint64_t little_endian(const byte *data, size_t size) {
    uint64_t number = 0;
    for (size_t i = 0; i < size; i++) {
        number |= (uint64_t)data[i] << 8 * i;
    }
    return number;
}

static uint64_t big_endian(const byte *data, size_t size) {
    uint64_t number = 0;
    for (size_t i = 0; i < size; i++) {
        number = number << 8 | data[i];
    }
    return number;
}

/* Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms" */
int64_t days_from_civil(int year, int month, int day) {
    year -= month <= 2;
    int64_t era = (year >= 0 ? year : year - 399) / 400;
    unsigned in_era = (unsigned)(year - era * 400);
    unsigned in_year = (153u * (unsigned)(month + (month > 2 ? -3 : 9)) + 2) / 5 + (unsigned)day - 1;
    return era * 146097 + (int64_t)(in_era * 365 + in_era / 4 - in_era / 100 + in_year) - 719468;
}

Civil civil_from_days(int64_t days) {
    days += 719468;
    int64_t era = (days >= 0 ? days : days - 146096) / 146097;
    unsigned of_era = (unsigned)(days - era * 146097);
    unsigned year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    unsigned of_year = of_era - (365 * year + year / 4 - year / 100);
    unsigned month = (5 * of_year + 2) / 153;
    Civil found = {
        .year = (int)(year + era * 400) + (month >= 10),
        .month = (int)month + (month < 10 ? 3 : -9),
        .day = (int)(of_year - (153 * month + 2) / 5 + 1),
    };
    return found;
}

static Result date(int year, int month, int day, int64_t *days) {
    static const int lengths[13] = {0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    if (year < 1 || year > 9999 || month < 1 || month > 12 || day < 1) {
        return IN_PYTHON;
    }
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    if (day > lengths[month] + (month == 2 && leap)) {
        return IN_PYTHON;
    }
    *days = days_from_civil(year, month, day);
    return DONE;
}

/* Groups of nine digits in four bytes, big-endian; the sign is the inverted top bit, a negative value inverted. */
static Result decimal(const Column *column, const byte *data, size_t size, Value *value) {
    int whole = column->precision - column->scale;
    if (column->precision > 38 || whole < 0 || column->scale < 0 || size > 20 || size == 0) {
        return IN_PYTHON;
    }
    byte copy[20];
    bool negative = !(data[0] & 0x80);
    for (size_t i = 0; i < size; i++) {
        copy[i] = negative ? (byte)~data[i] : data[i];
    }
    copy[0] ^= 0x80;
    size_t at = 0;
    uint128 total = 0;
    int groups[4] = {whole % 9, whole / 9, column->scale / 9, column->scale % 9};
    for (int part = 0; part < 4; part++) {
        bool full = part == 1 || part == 2;
        int count = full ? groups[part] : groups[part] > 0, digits = full ? 9 : groups[part];
        for (int i = 0; i < count; i++) {
            size_t width = (size_t)DIGIT_BYTES[digits];
            if (at + width > size) {
                return IN_PYTHON;
            }
            uint64_t group = big_endian(copy + at, width);
            if (group >= POWERS[digits]) {
                return IN_PYTHON;
            }
            total = total * POWERS[digits] + group;
            at += width;
        }
    }
    if (at != size) {
        return IN_PYTHON;
    }
    value->number = negative ? -(int128)total : (int128)total;
    return DONE;
}

/* Microseconds of the big-endian fraction after a temporal value of `base` bytes. */
static Result fraction(const byte *data, size_t size, size_t base, int64_t *micros) {
    static const int64_t units[4] = {1, 10000, 100, 1};
    if (size < base || size - base > 3) {
        return IN_PYTHON;
    }
    *micros = (int64_t)big_endian(data + base, size - base) * units[size - base];
    return *micros < 1000000 ? DONE : IN_PYTHON;
}

static Result datetime(const byte *data, size_t size, Value *value) {
    int64_t micros, days;
    if (fraction(data, size, 5, &micros) != DONE) {
        return IN_PYTHON;
    }
    uint64_t packed = big_endian(data, 5);
    if (!(packed >> 39)) {
        return IN_PYTHON;
    }
    packed &= 0x7FFFFFFFFF;
    int months = (int)(packed >> 22), hour = packed >> 12 & 31, minute = packed >> 6 & 63, second = packed & 63;
    if (hour > 23 || minute > 59 || second > 59) {
        return IN_PYTHON;
    }
    if (date(months / 13, months % 13, (int)(packed >> 17 & 31), &days) != DONE) {
        return IN_PYTHON;
    }
    value->number = days * MICROS_PER_DAY + ((hour * 60 + minute) * 60 + second) * (int64_t)1000000 + micros;
    return DONE;
}

static Result timestamp(const byte *data, size_t size, Value *value) {
    int64_t micros;
    if (fraction(data, size, 4, &micros) != DONE) {
        return IN_PYTHON;
    }
    value->number = (int64_t)big_endian(data, 4) * 1000000 + micros;
    return value->number ? DONE : IN_PYTHON;
}

static Result time_of_day(const byte *data, size_t size, Value *value) {
    static const int64_t units[4] = {1, 10000, 100, 1};
    if (size < 3 || size > 6) {
        return IN_PYTHON;
    }
    int bits = (int)(size - 3) * 8;
    int64_t number = (int64_t)big_endian(data, size) - ((int64_t)0x800000 << bits);
    int64_t magnitude = number < 0 ? -number : number, clock = magnitude >> bits;
    int64_t micros = (magnitude & (((int64_t)1 << bits) - 1)) * units[size - 3];
    micros += ((clock >> 12) * 3600 + (clock >> 6 & 63) * 60 + (clock & 63)) * 1000000;
    value->number = number < 0 ? -micros : micros;
    return DONE;
}

/* --- texts of result sets ------------------------------------------------------------------------------------------- */

/* The number of exactly `count` digits, or -1. */
static int64_t digits(const byte *data, size_t count) {
    int64_t number = 0;
    for (size_t i = 0; i < count; i++) {
        if (data[i] < '0' || data[i] > '9') {
            return -1;
        }
        number = number * 10 + (data[i] - '0');
    }
    return number;
}

/* An integer as the server writes it: without leading zeros. */
static Result text_integer(const byte *data, size_t size, Value *value) {
    bool negative = size > 0 && data[0] == '-';
    size_t count = size - negative;
    if (count < 1 || count > 18 || (data[negative] == '0' && size > 1)) {
        return IN_PYTHON;
    }
    int64_t number = digits(data + negative, count);
    value->number = negative ? -number : number;
    return number >= 0 ? DONE : IN_PYTHON;
}

/* A decimal with all digits of its scale. */
static Result text_decimal(const Column *column, const byte *data, size_t size, Value *value) {
    bool negative = size > 0 && data[0] == '-';
    size_t scale = (size_t)column->scale, count = size - negative;
    if (count < 1 || count > 39 || (scale && (count < scale + 2 || data[size - scale - 1] != '.'))) {
        return IN_PYTHON;
    }
    uint128 total = 0;
    for (size_t i = negative; i < size; i++) {
        if (scale && i == size - scale - 1) {
            continue;
        }
        if (data[i] < '0' || data[i] > '9') {
            return IN_PYTHON;
        }
        total = total * 10 + (data[i] - '0');
    }
    if (count - (scale > 0) > 38) {
        return IN_PYTHON;
    }
    value->number = negative ? -(int128)total : (int128)total;
    return DONE;
}

static Result text_float(const Column *column, const byte *data, size_t size, Value *value) {
    char copy[64];
    if (size == 0 || size >= sizeof copy) {
        return IN_PYTHON;
    }
    for (size_t i = 0; i < size; i++) {
        if ((data[i] < '0' || data[i] > '9') && data[i] != '.' && data[i] != '-' && data[i] != '+' && data[i] != 'e') {
            return IN_PYTHON;
        }
    }
    memcpy(copy, data, size);
    copy[size] = 0;
    char *end;
    value->real = PyOS_string_to_double(copy, &end, NULL);
    if (end != copy + size || PyErr_Occurred()) {
        PyErr_Clear();
        return IN_PYTHON;
    }
    if (column->stored == TEXT_FLOAT32) {
        if (value->real > 3.4e38 || value->real < -3.4e38) {
            return IN_PYTHON;
        }
        value->real = (float)value->real;
    }
    return DONE;
}

static Result text_date(const byte *data, size_t size, int64_t *days) {
    if (size != 10 || data[4] != '-' || data[7] != '-') {
        return IN_PYTHON;
    }
    int64_t year = digits(data, 4), month = digits(data + 5, 2), day = digits(data + 8, 2);
    return year < 0 || month < 0 || day < 0 ? IN_PYTHON : date((int)year, (int)month, (int)day, days);
}

/* Microseconds of ":MM:SS" with `count` digits of a fraction, or -1. */
static int64_t text_clock(const byte *data, size_t size, size_t count) {
    if (size != 6 + count + (count > 0) || count > 6 || data[0] != ':' || data[3] != ':' || (count && data[6] != '.')) {
        return -1;
    }
    int64_t minute = digits(data + 1, 2), second = digits(data + 4, 2), part = count ? digits(data + 7, count) : 0;
    if (minute < 0 || minute > 59 || second < 0 || second > 59 || part < 0) {
        return -1;
    }
    return (minute * 60 + second) * 1000000 + part * POWERS[6 - count];
}

static Result text_datetime(const Column *column, const byte *data, size_t size, Value *value) {
    int64_t days;
    if (size < 19 || data[10] != ' ' || column->scale < 0 || text_date(data, 10, &days) != DONE) {
        return IN_PYTHON;
    }
    int64_t hour = digits(data + 11, 2), rest = text_clock(data + 13, size - 13, (size_t)column->scale);
    if (hour < 0 || hour > 23 || rest < 0) {
        return IN_PYTHON;
    }
    value->number = days * MICROS_PER_DAY + hour * 3600000000 + rest;
    return DONE;
}

static Result text_time(const byte *data, size_t size, Value *value) {
    bool negative = size > 0 && data[0] == '-';
    size_t at = negative, count = 0;
    while (at + count < size && count < 4 && data[at + count] != ':') {
        count++;
    }
    if (count < 2 || count > 3 || size - at - count < 6) {
        return IN_PYTHON;
    }
    int64_t hours = digits(data + at, count);
    at += count;
    int64_t rest = text_clock(data + at, size - at, size - at > 6 ? size - at - 7 : 0);
    if (hours < 0 || rest < 0) {
        return IN_PYTHON;
    }
    value->number = hours * 3600000000 + rest;
    if (negative) {
        value->number = -value->number;
    }
    return DONE;
}

Result decode(const Column *column, const byte *data, size_t size, Value *value, Output *made) {
    Result result;
    int64_t days;
    float single;
    switch (column->stored) {
    case SIGNED: {
        unsigned unused = 64 - 8 * (unsigned)size;
        value->number = (int64_t)(little_endian(data, size) << unused) >> unused;
        return DONE;
    }
    case UNSIGNED:
        value->number = little_endian(data, size);
        return DONE;
    case UNSIGNED_BIG:
        if (size > 8) {
            return IN_PYTHON;
        }
        value->number = big_endian(data, size);
        return DONE;
    case YEAR:
        value->number = data[0] ? 1900 + data[0] : 0;
        return DONE;
    case DECIMAL:
        return decimal(column, data, size, value);
    case FLOAT32:
        memcpy(&single, data, 4);
        value->real = single;
        return DONE;
    case FLOAT64:
        memcpy(&value->real, data, 8);
        return DONE;
    case DATE: {
        uint64_t packed = little_endian(data, 3);
        if (date((int)(packed >> 9), packed >> 5 & 15, packed & 31, &days) != DONE) {
            return IN_PYTHON;
        }
        value->number = days;
        return DONE;
    }
    case DATETIME:
        return datetime(data, size, value);
    case TIMESTAMP:
        return timestamp(data, size, value);
    case TIME:
        return time_of_day(data, size, value);
    case BYTES:
        value->bytes = data;
        value->size = size;
        return DONE;
    case BINARY_JSON:
    case SERVER_JSON:
        result = write_json(data, size, column->stored == SERVER_JSON ? SERVER_STYLE : STREAM_STYLE, false,
                            made);
        value->bytes = (const byte *)made->data;
        value->size = made->size;
        return result;
    case TEXT_INTEGER:
        return text_integer(data, size, value);
    case TEXT_DECIMAL:
        return text_decimal(column, data, size, value);
    case TEXT_FLOAT32:
    case TEXT_FLOAT64:
        return text_float(column, data, size, value);
    case TEXT_DATE:
        if (text_date(data, size, &days) != DONE) {
            return IN_PYTHON;
        }
        value->number = days;
        return DONE;
    case TEXT_DATETIME:
        return text_datetime(column, data, size, value);
    case TEXT_TIME:
        return text_time(data, size, value);
    case STORED_OTHERWISE:
        break;
    }
    return IN_PYTHON;
}
