"""Finds the losses of values that are written with an Avro schema other than their own (``use.latest.version``)."""

import json
from collections.abc import Iterator
from typing import Any

import fastavro
from fastavro.schema import expand_schema

from rowtide.envelope.avro.differences import shown

_WIDER = {("int", "long"), ("float", "double")}
"""Types whose values a wider type can hold with the same meaning."""


def losses(own: str, written: str) -> list[str]:
    """Return the losses of a schema's values if they were written with another schema, each with its field.

    Args:
        own: the schema of the values.
        written: the schema to write.
    """
    old, new = (expand_schema(fastavro.parse_schema(json.loads(text))) for text in (own, written))
    return list(_lost(old, new, ""))


def _lost(own: Any, written: Any, path: str) -> Iterator[str]:
    mine, others = (one if isinstance(one, list) else [one] for one in (own, written))
    place = path or "the value"
    if "null" in mine and "null" not in others:
        yield f"{place} may be null, which that version does not allow"
    for branch in mine:
        if branch == "null":
            continue
        reasons = [list(_lost_of_type(_described(branch), _described(one), path)) for one in others if one != "null"]
        if all(reasons):
            yield from min(reasons, key=len, default=[f"{place} would always be null"])


def _described(schema: Any) -> dict[str, Any]:
    """Return a type with its attributes, in one dictionary."""
    if not isinstance(schema, dict):
        return {"type": schema}
    if isinstance(schema["type"], dict):
        return {**schema, **_described(schema["type"])}
    return schema


def _lost_of_type(own: dict[str, Any], written: dict[str, Any], path: str) -> Iterator[str]:
    kinds = own["type"], written["type"]
    if kinds == ("record", "record"):
        yield from _lost_of_record(own, written, f"{path}." if path else "")
    elif kinds == ("array", "array"):
        yield from _lost(own["items"], written["items"], f"{path}[]")
    elif kinds == ("map", "map"):
        yield from _lost(own["values"], written["values"], f"{path}[]")
    elif not _holds(own, written):
        yield f"{path or 'the value'} is {shown(written)} instead of {shown(own)}"
    elif own.get("connect.name", "") != written.get("connect.name", own.get("connect.name", "")):
        yield f"{path or 'the value'} is {written['connect.name']} instead of {own.get('connect.name', shown(own))}"


def _holds(own: dict[str, Any], written: dict[str, Any]) -> bool:
    """Return whether a type other than a record or a collection can hold all values of another, unchanged."""
    kinds = own["type"], written["type"]
    if kinds[0] != kinds[1] and kinds not in _WIDER:
        return False
    if any(own.get(one) != written.get(one) for one in ("logicalType", "scale", "size")):
        return False
    return own.get("precision", 0) <= written.get("precision", own.get("precision", 0)) and set(
        own.get("symbols", ())
    ) <= set(written.get("symbols", ()))


def _lost_of_record(own: dict[str, Any], written: dict[str, Any], prefix: str) -> Iterator[str]:
    known = {field["name"]: field for field in written["fields"]}
    for field in own["fields"]:
        other = known.pop(field["name"], None)
        if other is None:
            yield f"it lacks the field {prefix}{field['name']}, whose values would be lost"
        else:
            yield from _lost(field["type"], other["type"], prefix + field["name"])
    for name, field in known.items():
        if "default" not in field:
            yield f"its field {prefix}{name} has neither values nor a default"
