"""Describes the differences between two Avro schemas, for messages about schemas that a registry refuses."""

import enum
import json
from collections.abc import Iterator
from typing import Any, NamedTuple


class DifferenceKind(enum.Enum):
    """The effect of a difference on readers."""

    NEW = enum.auto()
    """A field is new and has no default."""
    GONE = enum.auto()
    """A field was removed; readers of the later version do not need it."""
    TYPE = enum.auto()
    """The type of a field has changed."""


class SchemaDifference(NamedTuple):
    """A difference of two schemas.

    Attributes:
        kind: its kind; ``None`` if it is not known.
        text: a description of it, with the field.
    """

    kind: DifferenceKind | None
    text: str

    def __str__(self) -> str:
        return self.text


def differences(before: str, after: str) -> list[SchemaDifference]:
    """Return the differences between two versions of a record's schema that readers notice, each with its field.

    A removed field is named only if nothing else differs, because readers of the later version do not need it.

    Args:
        before: the earlier schema.
        after: the later schema.
    """
    found = dict.fromkeys(_types(json.loads(before), json.loads(after), ""))
    return [one for one in found if one.kind is not DifferenceKind.GONE] or list(found)


def _types(before: Any, after: Any, path: str) -> Iterator[SchemaDifference]:
    old, new = _plain(before), _plain(after)
    if isinstance(old, dict) and isinstance(new, dict) and old.get("type") == new.get("type") == "record":
        yield from _records(old, new, path)
    elif isinstance(old, dict) and isinstance(new, dict) and old.get("type") == new.get("type") == "array":
        yield from _types(old["items"], new["items"], f"{path}[]")
    elif shown(before) != shown(after):
        text = f"the type of {path or 'the schema'} is {shown(after)} instead of {shown(before)}"
        yield SchemaDifference(DifferenceKind.TYPE, text)


def _records(before: dict[str, Any], after: dict[str, Any], path: str) -> Iterator[SchemaDifference]:
    old = {field["name"]: field for field in before["fields"]}
    new = {field["name"]: field for field in after["fields"]}
    prefix = f"{path}." if path else ""
    for name, field in new.items():
        if name in old:
            yield from _types(old[name]["type"], field["type"], prefix + name)
        elif "default" not in field:
            yield SchemaDifference(DifferenceKind.NEW, f"the field {prefix}{name} is new and has no default")
    for name, field in old.items():
        if name not in new:
            default = "" if "default" in field else ", which had no default,"
            yield SchemaDifference(DifferenceKind.GONE, f"the field {prefix}{name}{default} is gone")


def _plain(schema: Any) -> Any:
    """Return the type in a union with null, without attributes of Connect around it."""
    if isinstance(schema, list):
        others = [branch for branch in schema if branch != "null"]
        return _plain(others[0]) if len(others) == 1 else schema
    return schema


def shown(schema: Any) -> str:
    """Return the part of a type that matters to readers."""
    if isinstance(schema, list):
        return " or ".join(sorted(map(shown, schema)))
    if isinstance(schema, dict):
        logical = schema.get("logicalType")
        kind = shown(schema["type"])
        size = f"({schema.get('precision')}, {schema.get('scale')})" if logical == "decimal" else ""
        return f"{kind} ({logical}{size})" if logical else kind
    return str(schema)
