"""Declares the messages of Kafka's protocol as dataclasses, and derives their codecs for each version.

A field's place in the class is its place in the bytes. A field that a version does not have keeps its default.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from rowtide.connector.kafka_producer.wire.errors import MalformedAnswer, NotEncodable
from rowtide.connector.kafka_producer.wire.primitives import (
    BOOL,
    INT8,
    INT16,
    INT32,
    INT64,
    UUID,
    Bytes,
    Codec,
    Reader,
    Writer,
    array,
    binary,
    string,
)

NEVER = 1 << 15
"""A version that no message has."""

Type = Callable[..., Codec]
"""Makes a codec from ``version``, ``flexible`` and ``nullable``."""

Answer = TypeVar("Answer")


class Request(Generic[Answer]):
    """A request with answers of a class."""

    __slots__ = ()


@dataclasses.dataclass(frozen=True, slots=True)
class _Layout:
    """The place and the encoding of a field.

    Attributes:
        since: its first version.
        until: its last version.
        null_since: the first version in which it may be null.
        tag: the number of a tagged field; tagged fields stand after all others, and are absent if they have their
            default.
        ignorable: whether a version that does not have the field may drop its value. Otherwise the value must be the
            default there.
    """

    type: Type
    since: int
    until: int
    null_since: int
    tag: int | None
    ignorable: bool


def of(
    type_: Type,
    *,
    since: int = 0,
    until: int = NEVER,
    null_since: int = NEVER,
    tag: int | None = None,
    default: Any = dataclasses.MISSING,
    ignorable: bool = False,
    shown: bool = True,
) -> Any:
    """Return a field of a message; see :class:`_Layout`. A secret is not shown in ``repr``."""
    layout = _Layout(type_, since, until, null_since, tag, ignorable)
    return dataclasses.field(default=default, repr=shown, metadata={"layout": layout})


def _fixed(same: Codec) -> Type:
    def made(*, version: int, flexible: bool, nullable: bool) -> Codec:
        return same

    return made


int8, int16, int32, int64, boolean, topic_id = map(_fixed, (INT8, INT16, INT32, INT64, BOOL, UUID))


def text(*, version: int, flexible: bool, nullable: bool) -> Codec:
    """Return a text."""
    return string(flexible=flexible, nullable=nullable)


def data(*, version: int, flexible: bool, nullable: bool) -> Codec:
    """Return the bytes."""
    return binary(flexible=flexible, nullable=nullable)


def records(*, version: int, flexible: bool, nullable: bool) -> Codec:
    """Return a record batch, which is sent without copying it."""
    return binary(flexible=flexible, nullable=nullable, copied=False)


def many(item: Type) -> Type:
    """Return a tuple of values."""

    def made(*, version: int, flexible: bool, nullable: bool) -> Codec:
        return array(item(version=version, flexible=flexible, nullable=False), flexible=flexible, nullable=nullable)

    return made


def one(cls: type) -> Type:
    """Return a message inside a message."""

    def made(*, version: int, flexible: bool, nullable: bool) -> Codec:
        return codec(cls, version, flexible=flexible)

    return made


@functools.cache
def codec(cls: type[Any], version: int, *, flexible: bool) -> Codec:
    """Return how a message is written and read in one version."""
    plain: list[tuple[str, Codec]] = []
    tagged: dict[int, tuple[str, Codec, Any]] = {}
    absent: list[tuple[str, Any]] = []
    for field in dataclasses.fields(cls):
        layout: _Layout = field.metadata["layout"]
        if layout.since <= version <= layout.until:
            made = layout.type(version=version, flexible=flexible, nullable=version >= layout.null_since)
            if layout.tag is None:
                plain.append((field.name, made))
            else:
                tagged[layout.tag] = (field.name, made, field.default)
        elif not layout.ignorable:
            absent.append((field.name, field.default))
    return Codec(_writer(cls, plain, tagged, absent, flexible=flexible), _reader(cls, plain, tagged, flexible=flexible))


def _writer(
    cls: type,
    plain: list[tuple[str, Codec]],
    tagged: dict[int, tuple[str, Codec, Any]],
    absent: list[tuple[str, Any]],
    *,
    flexible: bool,
) -> Callable[[Writer, Any], None]:
    writes = [(name, made.write) for name, made in plain]
    tags = [(tag, *tagged[tag]) for tag in sorted(tagged)]

    def write(writer: Writer, value: Any) -> None:
        for name, default in absent:
            if getattr(value, name) != default:
                raise NotEncodable(f"{cls.__name__}.{name} does not exist in this version")
        for name, write_field in writes:
            try:
                write_field(writer, getattr(value, name))
            except NotEncodable as error:
                raise NotEncodable(f"{cls.__name__}.{name}: {error}") from None
        if flexible:
            values = [(tag, made, getattr(value, name), default) for tag, name, made, default in tags]
            _write_tagged(writer, [(tag, made, given) for tag, made, given, default in values if given != default])

    return write


def _write_tagged(writer: Writer, fields: list[tuple[int, Codec, Any]]) -> None:
    writer.uvarint(len(fields))
    for tag, made, value in fields:
        body = Writer()
        made.write(body, value)
        content = b"".join(body.parts())
        writer.uvarint(tag)
        writer.uvarint(len(content))
        writer.add(content)


def _reader(
    cls: type, plain: list[tuple[str, Codec]], tagged: dict[int, tuple[str, Codec, Any]], *, flexible: bool
) -> Callable[[Reader], Any]:
    reads = [(name, made.read) for name, made in plain]

    def read(reader: Reader) -> Any:
        values = {name: read_field(reader) for name, read_field in reads}
        if flexible:
            for _ in range(reader.uvarint()):
                tag, size = reader.uvarint(), reader.uvarint()
                body = reader.take(size)
                if tag in tagged:
                    name, made, _default = tagged[tag]
                    values[name] = read_all(made, body)
        return cls(**values)

    return read


def read_all(made: Codec, content: Bytes) -> Any:
    """Read a value that takes all bytes of the content.

    Raises:
        MalformedAnswer: the content is longer or shorter, or has no value of this form.
    """
    reader = Reader(content)
    value = made.read(reader)
    if reader.left:
        raise MalformedAnswer(f"{reader.left} bytes follow its end")
    return value
