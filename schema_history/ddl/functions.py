"""Functions with a special syntax, and functions that MySQL prints in a different form."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

from rowtide.schema_history.ddl.cursor import Cursor


class Node(NamedTuple):
    """A printed expression: whether it is a truth value, its negation, and its operands if it is an AND or OR."""

    text: str
    truth: bool = False
    negated: str = ""
    operator: str = ""
    parts: tuple[str, ...] = ()


_SYNONYMS = {
    "lcase": "lower",
    "ucase": "upper",
    "substring": "substr",
    "mid": "substr",
    "day": "dayofmonth",
    "ceil": "ceiling",
    "octet_length": "length",
    "character_length": "char_length",
    "power": "pow",
    "sha1": "sha",
    "atan2": "atan",
    "current_date": "curdate",
    "current_time": "curtime",
    "current_timestamp": "now",
    "localtime": "now",
    "localtimestamp": "now",
    "schema": "database",
    "session_user": "user",
    "system_user": "user",
}
_BARE = frozenset(("current_date", "current_time", "current_timestamp", "localtime", "localtimestamp", "current_user"))
_BARE_UTC = frozenset(("utc_date", "utc_time", "utc_timestamp"))
_ADDED_ARGUMENTS = {("round", 1): "0", ("week", 1): "0", ("yearweek", 1): "0"}
_NUMBER_BASES = {"bin": "2", "oct": "8"}


class Printer(Protocol):
    """The printer of a function's arguments.

    Attributes:
        c: where it reads.
        charset: of its strings.
    """

    c: Cursor
    charset: str

    def expression(self) -> Node:
        """Parse an expression."""

    def operand(self) -> Node:
        """Parse an expression without logical operators."""

    def interval(self) -> str:
        """Parse INTERVAL with its value and unit."""

    def string(self) -> str:
        """Parse a string."""

    def arguments(self) -> list[str]:
        """Parse a list of expressions in parentheses."""


def function(printer: Printer, name: str) -> Node:
    """Parse a call of the function ``name``, in lower case."""
    special = _SPECIAL.get(name)
    printer.c.at += 1
    if special is not None:
        return special(printer, name)
    return _renamed(name, printer.arguments())


def bare_function(name: str) -> str | None:
    """Return the canonical name of a function that can be called without parentheses, or ``None``."""
    return _SYNONYMS.get(name, name) if name in _BARE | _BARE_UTC else None


def _renamed(name: str, values: list[str]) -> Node:
    if name == "mod" and len(values) == 2:
        return Node(f"({values[0]} % {values[1]})")
    if name == "isnull":
        return Node(f"({values[0]} is null)", True, f"({values[0]} is not null)")
    if name == "datediff":
        return Node(f"(to_days({values[0]}) - to_days({values[1]}))")
    if name == "instr":
        values = [values[1], values[0]]
        name = "locate"
    if name in _NUMBER_BASES:
        return Node(f"conv({values[0]},10,{_NUMBER_BASES[name]})")
    if name == "weekofyear":
        return Node(f"week({values[0]},3)")
    if name in ("date", "time") or (name == "timestamp" and len(values) == 1):
        return Node(f"cast({values[0]} as {'datetime' if name == 'timestamp' else name})")
    added = _ADDED_ARGUMENTS.get((name, len(values)))
    if added is not None:
        values.append(added)
    return Node(f"{_SYNONYMS.get(name, name)}({','.join(values)})")


def _cast(printer: Printer, name: str) -> Node:
    printer.c.expect("(")
    value = printer.expression().text
    if name == "convert" and printer.c.accept("USING"):
        charset = printer.c.name_or_string().lower()
        printer.c.expect(")")
        return Node(f"convert({value} using {charset})")
    printer.c.accept(",") or printer.c.expect("AS")  # type: ignore[func-returns-value]
    target = _cast_type(printer)
    printer.c.expect(")")
    return Node(f"cast({value} as {target})")


def _cast_type(printer: Printer, in_json: bool = False) -> str:
    name = printer.c.name("a type").lower()
    arguments = []
    if printer.c.accept("("):
        arguments.append(printer.c.number())
        while printer.c.accept(","):
            arguments.append(printer.c.number())
        printer.c.expect(")")
    charset = _cast_charset(printer, name)
    array = printer.c.accept("ARRAY")
    if name in ("signed", "unsigned"):
        printer.c.accept_one("INTEGER", "INT")
        array = printer.c.accept("ARRAY") or array
    if name == "real":
        name = "double"
    if name == "decimal":
        arguments = (arguments + ["10", "0"][len(arguments) :])[:2]
    text = "char" if name in ("nchar", "binary") else name
    if arguments:
        text += f"({(', ' if array else ',').join(arguments)})"
    if name == "binary":
        charset = "binary"
    elif name == "nchar":
        charset = "utf8mb3"
    if in_json and charset is not None:
        text += f" character set {charset}"
    elif text.startswith("char") and not array and not in_json:
        text += f" charset {charset or printer.charset}"
    return text + (" array" if array else "")


def _cast_charset(printer: Printer, name: str) -> str | None:
    if name != "char":
        return None
    if printer.c.accept("CHARACTER", "SET") or printer.c.accept("CHARSET"):
        return "binary" if printer.c.accept("BINARY") else printer.c.name_or_string().lower()
    return None


def _trim(printer: Printer, name: str) -> Node:
    printer.c.expect("(")
    side = printer.c.accept_one("LEADING", "TRAILING", "BOTH").lower()
    first = printer.expression().text if printer.c.word != "FROM" else ""
    text = first
    if printer.c.accept("FROM"):
        text = " ".join(part for part in (side, first, "from", printer.expression().text) if part)
    printer.c.expect(")")
    return Node(f"{name}({text})")


def _substring(printer: Printer, _name: str) -> Node:
    printer.c.expect("(")
    values = [printer.expression().text]
    while printer.c.accept_one(",", "FROM", "FOR"):
        values.append(printer.expression().text)
    printer.c.expect(")")
    return Node(f"substr({','.join(values)})")


def _position(printer: Printer, _name: str) -> Node:
    printer.c.expect("(")
    needle = printer.operand().text
    printer.c.expect("IN")
    text = f"locate({needle},{printer.expression().text})"
    printer.c.expect(")")
    return Node(text)


def _extract(printer: Printer, name: str) -> Node:
    printer.c.expect("(")
    unit = printer.c.name("a unit").lower()
    printer.c.expect("FROM")
    text = f"{name}({unit} from {printer.expression().text})"
    printer.c.expect(")")
    return Node(text)


def _date_arithmetic(printer: Printer, name: str) -> Node:
    operator = "+" if name in ("date_add", "adddate") else "-"
    printer.c.expect("(")
    value = printer.expression().text
    printer.c.expect(",")
    amount = printer.interval() if printer.c.word == "INTERVAL" else f"interval {printer.expression().text} day"
    printer.c.expect(")")
    return Node(f"({value} {operator} {amount})")


def _timestamp_difference(printer: Printer, name: str) -> Node:
    printer.c.expect("(")
    unit = printer.c.name("a unit").upper().removeprefix("SQL_TSI_")
    printer.c.expect(",")
    first = printer.expression().text
    printer.c.expect(",")
    second = printer.expression().text
    printer.c.expect(")")
    if name == "timestampadd":
        return Node(f"({second} + interval {first} {unit.lower()})")
    return Node(f"{name}({unit},{first},{second})")


def _json_value(printer: Printer, name: str) -> Node:
    printer.c.expect("(")
    value = printer.expression().text
    printer.c.expect(",")
    text = f"{name}({value}, {printer.operand().text}"
    target = _cast_type(printer, in_json=True) if printer.c.accept("RETURNING") else "char(512)"
    text += f" returning {target}"
    while word := printer.c.accept_one("NULL", "ERROR", "DEFAULT"):
        text += f" {word.lower()}"
        if word == "DEFAULT":
            text += f" {printer.operand().text}"
        printer.c.expect("ON")
        text += f" on {printer.c.name('EMPTY or ERROR').lower()}"
    printer.c.expect(")")
    return Node(text + ")")


def _char(printer: Printer, name: str) -> Node:
    printer.c.expect("(")
    values = [printer.expression().text]
    while printer.c.accept(","):
        values.append(printer.expression().text)
    if printer.c.accept("USING"):
        printer.c.name_or_string()
    printer.c.expect(")")
    return Node(f"{name}({','.join(values)})")


def _get_format(printer: Printer, name: str) -> Node:
    printer.c.expect("(")
    kind = printer.c.name("a type").upper()
    printer.c.expect(",")
    text = f"{name}({kind}, {printer.expression().text})"
    printer.c.expect(")")
    return Node(text)


_SPECIAL: dict[str, Callable[[Printer, str], Node]] = {
    "cast": _cast,
    "convert": _cast,
    "trim": _trim,
    "substring": _substring,
    "substr": _substring,
    "mid": _substring,
    "position": _position,
    "extract": _extract,
    "date_add": _date_arithmetic,
    "date_sub": _date_arithmetic,
    "adddate": _date_arithmetic,
    "subdate": _date_arithmetic,
    "timestampdiff": _timestamp_difference,
    "timestampadd": _timestamp_difference,
    "json_value": _json_value,
    "char": _char,
    "get_format": _get_format,
}
