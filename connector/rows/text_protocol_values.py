"""Column values in the text protocol: for every kind, the Python source that parses the server's text of a value.

Text arrives in UTF-8, binary columns as they are stored, temporal values in UTC. The results are the canonical values
of :mod:`rowtide.envelope.types.column_type`, as :mod:`rowtide.connector.rows.layouts` decodes them from the binlog, so
that snapshot and stream share everything after this step. This module only returns source lines, for
:mod:`rowtide.connector.rows.text_protocol_rows`.
"""

from decimal import Context, Decimal

from rowtide.connector.rows.column_output import ColumnOutput, text_expression, value_expression
from rowtide.connector.rows.layouts import at_time, floats
from rowtide.envelope.json.java_numbers import to_float32
from rowtide.envelope.types.column_type import Bind, Kind
from rowtide.envelope.types.temporal_values import DAYS_BY_PACKED_DATE, MICROS_PER_DAY, InvalidDate
from rowtide.schema_history.model import Column

_EXACT = Context(prec=100)
"""Precise enough for all 65 digits of a DECIMAL; Python's default context has 28."""

ASCII_KINDS: frozenset[Kind] = frozenset(
    {"int", "decimal", "float", "year", "date", "datetime", "timestamp", "time", "uuid", "inet"}
)
"""Kinds whose values are short ASCII texts, cut out of the buffer's Latin-1 text without decoding each one."""

CACHED_KINDS: frozenset[Kind] = frozenset(
    {"decimal", "float", "date", "datetime", "timestamp", "time", "bit", "enum", "set"}
)
"""Kinds whose texts are cached, see :mod:`rowtide.connector.rows.text_cache`."""


def value_source(
    column: Column, output: ColumnOutput, v: str, bind: Bind, key: str | None = None, *, verify: bool = False
) -> list[str]:
    """Return source lines that convert ``v`` (bytes, or text for `ASCII_KINDS`) to the column's JSON text.

    Args:
        column: the column's structure.
        output: its field in the record.
        v: the variable.
        bind: adds a constant to the source.
        key: the variable that receives the text for the key, if it can differ.
        verify: verify that integers are integers, because the query is not rowtide's own.
    """
    kind = output.type.kind
    expression = text_expression(output, v, bind)
    in_key = [] if key is None else [f"{key} = {text_expression(output.in_key, v, bind)}"]
    as_sent = expression == v and not column.zerofill and in_key in ([], [f"{key} = {v}"])
    if kind == "int" and as_sent and not verify:
        return in_key  # the server's text of an integer is valid JSON
    lines = _canonical_source(column, kind, v, bind) + in_key
    if expression != v:
        lines.append(f"{v} = {expression}")
    elif kind in {"int", "year"}:
        lines.append(f"{v} = str({v})")
    return lines


def converted_source(column: Column, output: ColumnOutput, v: str, bind: Bind, key: str | None = None) -> list[str]:
    """Return source lines like those of :func:`value_source`, for the converted value instead of JSON text."""
    lines = _canonical_source(column, output.type.kind, v, bind)
    if key is not None:
        lines.append(f"{key} = {value_expression(output.in_key, v, bind)}")
    expression = value_expression(output, v, bind)
    return lines if expression == v else [*lines, f"{v} = {expression}"]


def _canonical_source(column: Column, kind: Kind, v: str, bind: Bind) -> list[str]:
    match kind:
        case "int" | "year":
            return [f"{v} = int({v})"]
        case "decimal":
            return _decimal_source(column.scale or 0, v, bind)
        case "float":
            # FLOAT(M,D) has the schema of a double, but stores a float32.
            return [f"{v} = {bind(to_float32)}(float({v}))" if column.data_type == "float" else f"{v} = float({v})"]
        case "date":
            return [f"{v} = {bind(DATES)}[{v}]"]
        case "datetime" | "timestamp":
            return _datetime_source(column.fsp, v, bind)
        case "time":
            return [f"{v} = {bind(CLOCK)}[{v}] if len({v}) == 8 else {bind(time_micros)}({v})"]
        case "bit":
            return [f"{v} = int.from_bytes({v}, 'big')"]
        case "vector":
            return [f"{v} = {bind(floats)}({v})"]
        case "text" | "enum" | "set" | "json":
            return [f"{v} = {v}.decode('utf-8', 'replace')"]
        case "bytes" | "geometry" | "uuid" | "inet":
            return []


def _decimal_source(scale: int, v: str, bind: Bind) -> list[str]:
    """Return the unscaled number. A custom snapshot query can return a different number of decimals from the column."""
    if not scale:
        return [f"{v} = int({v}) if '.' not in {v} else {bind(unscaled)}({v}, 0)"]
    as_declared = f"{v}[-{scale + 1}:-{scale}] == '.'"
    return [f"{v} = int({v}.replace('.', '')) if {as_declared} else {bind(unscaled)}({v}, {scale})"]


def _datetime_source(digits: int, v: str, bind: Bind) -> list[str]:
    clock = f"{bind(CLOCK)}[{v}[11:19]]"
    if digits:
        cut = f"{v}[20:]"
        exact = f"int({cut}) * {10 ** (6 - digits)} if len({v}) == {20 + digits}"
        clock += f" + ({exact} else {bind(fraction_micros)}({cut}))"
    return [
        f"h = {clock}",
        f"d = {bind(MIDNIGHTS)}[{v}[:10]]",
        f"{v} = d + h if d.__class__ is int else {bind(at_time)}(d, h)",
    ]


def unscaled(text: str, scale: int) -> int:
    """Return the unscaled number of a decimal's text, rounded half up to ``scale`` decimals, as MySQL rounds."""
    number = Decimal(text).scaleb(scale, _EXACT)
    return int(number.to_integral_value("ROUND_HALF_UP"))


def fraction_micros(digits: str) -> int:
    """Return the microseconds of the digits of a fraction, which may be empty."""
    return int(digits.ljust(6, "0")[:6])


def time_micros(text: str) -> int:
    """Return a TIME, ``[-]HH:MM:SS[.ffffff]`` with up to three digits of hours, in microseconds."""
    hours, minutes, seconds = text.lstrip("-").split(":")
    whole, _, fraction = seconds.partition(".")
    micros = ((int(hours) * 60 + int(minutes)) * 60 + int(whole)) * 1_000_000 + fraction_micros(fraction)
    return -micros if text[0] == "-" else micros


class _Dates(dict[str, "int | InvalidDate"]):
    """Days since 1970-01-01 by ``YYYY-MM-DD``; each date is parsed once."""

    def __missing__(self, text: str) -> "int | InvalidDate":
        year, month, day = text.split("-")
        if len(self) > 100_000:
            self.clear()
        value = self[text] = DAYS_BY_PACKED_DATE[int(year) << 9 | int(month) << 5 | int(day)]
        return value


class _Midnights(dict[str, "int | InvalidDate"]):
    """Microseconds since the epoch at midnight, by ``YYYY-MM-DD``."""

    def __missing__(self, text: str) -> "int | InvalidDate":
        found = DATES[text]
        if len(self) > 100_000:
            self.clear()
        value = self[text] = found * MICROS_PER_DAY if isinstance(found, int) else found
        return value


class _Clock(dict[str, int]):
    """Microseconds since midnight by ``HH:MM:SS``."""

    def __missing__(self, text: str) -> int:
        value = time_micros(text)
        if len(self) <= 100_000:
            self[text] = value
        return value


DATES = _Dates()
MIDNIGHTS = _Midnights()
CLOCK = _Clock()
