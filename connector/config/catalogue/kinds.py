"""The types of properties: how texts are parsed, and the messages for invalid ones."""

import enum
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from rowtide.connector.config.choices import FailureHandling, SslMode
from rowtide.connector.config.secret import PasswordSource, Secret
from rowtide.topics.filters import Patterns, joined_list, split_list
from rowtide.topics.java_regex import compile_java
from rowtide.topics.online_schema_change import HelperNames, parse_helper_names

T = TypeVar("T")
E = TypeVar("E", bound=enum.StrEnum)

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Kind(Generic[T]):
    """The type of a property.

    Attributes:
        label: the type's name in the reference.
        parse: parses a text; raises ``ValueError`` with a message that has neither the property's name nor the text.
        shown: whether an error may show the text.
        join: writes the items of a list as one text; ``None`` if the property is not a list.
    """

    label: str
    parse: Callable[[str], T]
    shown: bool = True
    join: Callable[[Sequence[str]], str] | None = None


def boolean() -> Kind[bool]:
    """Accept ``true`` or ``false``, case-insensitively."""

    def parse(text: str) -> bool:
        value = {"true": True, "false": False}.get(text.strip().lower())
        if value is None:
            raise ValueError("must be 'true' or 'false'")
        return value

    return Kind("boolean", parse)


def integer(low: int | None = None, high: int = INT_MAX) -> Kind[int]:
    """Return a whole number within bounds."""

    def parse(text: str) -> int:
        text = text.strip()
        if re.fullmatch(r"[+-]?[0-9]+", text) is None:
            raise ValueError("must be a whole number")
        value = int(text)
        if low is not None and value < low:
            raise ValueError(f"must be at least {low}")
        if value > high:
            raise ValueError(f"must be at most {high}")
        return value

    return Kind("int" if high <= INT_MAX else "long", parse)


def long(low: int | None = None) -> Kind[int]:
    """Return a whole number of 64 bits."""
    return integer(low, LONG_MAX)


def text(pattern: str | None = None, explanation: str = "", separator: str | None = None) -> Kind[str]:
    """Return any text, or one that matches a pattern; ``explanation`` is the message for other texts.

    Args:
        pattern: of the whole text.
        explanation: the message for other texts.
        separator: between the items of a text that is a list.
    """
    compiled = None if pattern is None else re.compile(pattern)

    def parse(value: str) -> str:
        if compiled is not None and compiled.fullmatch(value) is None:
            raise ValueError(explanation)
        return value

    return Kind("string", parse, join=None if separator is None else separator.join)


def secret() -> Kind[Secret]:
    """Return a text that is never displayed."""
    return Kind("password", Secret, shown=False)


def password_source() -> Kind[PasswordSource]:
    """Accept ``command:…`` or ``python:…``, which is never displayed, because arguments may be secrets."""

    def parse(value: str) -> PasswordSource:
        kind, _, rest = value.strip().partition(":")
        try:
            words = shlex.split(rest)
        except ValueError as error:
            raise ValueError(f"is not a command: {error}") from None
        if kind == "command" and words:
            return PasswordSource(command=tuple(words))
        if kind == "python" and re.fullmatch(r"\w+(\.\w+)+", rest.strip()):
            return PasswordSource(function=rest.strip())
        raise ValueError("must be command:PROGRAM ARGUMENT … or python:package.module.function")

    return Kind("password", parse, shown=False)


def choice(values: type[E]) -> Kind[E]:
    """Return one of the values of an enumeration, case-insensitive."""
    known = {value.value.lower(): value for value in values}

    def parse(value: str) -> E:
        found = known.get(value.strip().lower())
        if found is None:
            raise ValueError(f"must be one of {', '.join(item.value for item in values)}")
        return found

    return Kind("one of " + ", ".join(value.value for value in values), parse)


def java_class(values: type[E]) -> Kind[E]:
    """Return one of several Java classes, by its full name or by the name without its package, as in Kafka Connect."""
    known = {value.value.rpartition(".")[2]: value for value in reversed(values)}  # the first one of a simple name
    known |= {value.value: value for value in values}

    def parse(value: str) -> E:
        found = known.get(value.strip())
        if found is None:
            raise ValueError(f"is not supported; {', '.join(item.value for item in values)} are")
        return found

    return Kind("class", parse)


def names() -> Kind[tuple[str, ...]]:
    """Return a comma-separated list of names."""

    def parse(value: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(item.strip() for item in value.split(",") if item.strip()))

    return Kind("list", parse, join=",".join)


def patterns() -> Kind[Patterns | None]:
    r"""Return a comma-separated list of regular expressions; ``\,`` is a literal comma; a blank text means no list."""

    def parse(value: str) -> Patterns | None:
        return Patterns.parse(value) if value.strip() else None

    return Kind("list of regular expressions", parse, join=joined_list)


def helper_names() -> Kind[HelperNames]:
    r"""Return regular expressions for helper tables, ``well-known`` or ``none``; ``\,`` is a literal comma."""
    return Kind("list of regular expressions", lambda value: parse_helper_names(split_list(value)), join=joined_list)


def escaped_names() -> Kind[tuple[str, ...]]:
    r"""Return a comma-separated list in which ``\,`` is a literal comma."""
    return Kind("list", split_list, join=joined_list)


def optional(kind: Kind[T]) -> Kind[T | None]:
    """Return an optional value; a blank text means that it is absent."""
    return Kind(kind.label, lambda value: kind.parse(value) if value.strip() else None, kind.shown, kind.join)


def ssl_mode() -> Kind[SslMode | None]:
    """Return the TLS mode of the database connection, with MySQL's or MariaDB's names."""
    names = {mode.value: mode for mode in SslMode} | {
        "disable": SslMode.DISABLED,
        "trust": SslMode.REQUIRED,
        "verify-ca": SslMode.VERIFY_CA,
        "verify-full": SslMode.VERIFY_IDENTITY,
    }

    def parse(value: str) -> SslMode | None:
        found = names.get(value.strip().lower())
        if found is None:
            raise ValueError(f"must be one of {', '.join(names)}")
        return found

    return Kind("one of " + ", ".join(names), parse)


def failure_handling() -> Kind[FailureHandling]:
    """Accept ``fail``, ``warn`` or ``skip``; ``ignore`` is Debezium's former name for ``skip``."""
    plain = choice(FailureHandling)

    def parse(value: str) -> FailureHandling:
        return FailureHandling.SKIP if value.strip().lower() == "ignore" else plain.parse(value)

    return Kind(plain.label, parse)


def java_pattern() -> Kind[str]:
    """Return one regular expression in Java's syntax, as text."""

    def parse(value: str) -> str:
        compile_java(value)
        return value

    return Kind("regular expression", parse)
