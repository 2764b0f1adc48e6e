"""What Confluent's converters made of the recorded records: ``tests/golden_avro`` and ``tests/golden_protobuf``."""

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from rowtide.envelope.converters.registry import RegisteredSchema, SchemaKind
from rowtide.envelope.schema import Schema
from rowtide.envelope.transforms.record import Side
from tests.support.recordings.enveloped import parse_enveloped
from tests.support.recordings.golden import GOLDEN

__all__ = ["Converted", "RecordedRegistry", "conversions", "files", "subjects"]

_TESTS = Path(__file__).parents[2]
_UNCONVERTED = ("history", "connect-offsets")


class Converted(NamedTuple):
    """A key or value, and what a converter made of it.

    Attributes:
        topic: of the record.
        side: key or value.
        schema, value: as they were given to the converter.
        data: its bytes; ``None`` if there are none.
        schema_text: the schema that it registered.
        error: its error, instead of bytes.
    """

    topic: str
    side: Side
    schema: Schema
    value: Any
    data: bytes | None
    schema_text: str | None
    error: str | None


class RecordedRegistry:
    """A registry in memory, with consecutive ids: the recorded ones depend on the order of registration."""

    def __init__(self) -> None:
        self.schemas: dict[str, int] = {}
        self.subjects: dict[str, list[str]] = {}

    def registered(self, subject: str, kind: SchemaKind, text: str) -> RegisteredSchema:
        """Register a schema."""
        versions = self.subjects.setdefault(subject, [])
        if text not in versions:
            versions.append(text)
        return RegisteredSchema(self.schemas.setdefault(text, len(self.schemas) + 1), text)


def files(kind: str) -> list[str]:
    """The names of the recordings of ``avro`` or ``protobuf``, with those of options after the cases."""
    folder = _TESTS / f"golden_{kind}"
    return sorted(str(path.relative_to(folder)).removesuffix(".jsonl.gz") for path in folder.rglob("*.jsonl.gz"))


def conversions(kind: str, name: str) -> Iterator[Converted]:
    """Everything that a converter was given in a recording, in order."""
    lines = _lines(_TESTS / f"golden_{kind}" / f"{name}.jsonl.gz")
    schemas = {line["id"]: line["schema"] for line in lines if "subject" in line}
    case = name.removeprefix("options/").partition(".")[0]
    given = _lines(GOLDEN / case / "golden" / "records.jsonl.gz")
    records = [line for line in given if line["topic"] not in _UNCONVERTED]
    made = [line for line in lines if "topic" in line]
    sides: tuple[Side, Side] = ("key", "value")
    for record, converted in zip(records, made, strict=True):
        for side in sides:
            if record[side] is None:
                continue
            schema, value = parse_enveloped(record[side])
            assert schema is not None
            data, number = converted.get(f"{side}_hex"), converted.get(f"{side}_schema_id")
            yield Converted(
                record["topic"],
                side,
                schema,
                value,
                None if data is None else bytes.fromhex(data),
                schemas.get(number),
                converted.get(f"{side}_error"),
            )


def subjects(kind: str, name: str) -> dict[str, int]:
    """The subjects of a recording, with the number of their versions."""
    lines = _lines(_TESTS / f"golden_{kind}" / f"{name}.jsonl.gz")
    return Counter(line["subject"] for line in lines if "subject" in line)


@cache
def _lines(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]
