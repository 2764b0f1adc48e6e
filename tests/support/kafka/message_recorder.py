"""Makes messages of Kafka's protocol with random values, and records the bytes that Kafka's own classes write for them.

    .venv/bin/python -m tests.support.kafka.message_recorder

It writes ``messages.jsonl.gz`` and ``errors.tsv`` (see the README next to them). The forms of the messages are the
definitions in Kafka's jar; nothing of rowtide's own tables is used, but the versions that rowtide has.
"""

from __future__ import annotations

import base64
import gzip
import json
import random
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[3] / "docker"))

from rowtide_stack.programs import catalogue

from rowtide.connector.kafka_producer.wire.apis import APIS
from tests.support.kafka.wire import GOLDEN

_SOURCE = Path(__file__).parent / "KafkaMessages.java"
_STYLES = ("some", "null", "empty")
_MORE_STYLES = ("some", "null", "empty", "some", "long")
"""Those of the lowest version and the two highest ones."""
_INTEGERS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}


def record() -> None:
    """Write the files."""
    jars = catalogue.kafka()
    cases = "".join(json.dumps(case, ensure_ascii=False) + "\n" for case in _cases(jars))
    messages = _kafka(jars, input=cases.encode())
    errors = _kafka(jars, "errors")
    (GOLDEN / "messages.jsonl.gz").write_bytes(gzip.compress(messages, 9, mtime=0))
    (GOLDEN / "errors.tsv").write_bytes(errors)


def _kafka(jars: Path, *arguments: str, **more: Any) -> bytes:
    """The output of the program in Java."""
    command = catalogue.java_command(jars, "256m", _SOURCE, *arguments)
    written: bytes = subprocess.run(command, check=True, stdout=subprocess.PIPE, **more).stdout
    return written


def _cases(jars: Path) -> Iterator[dict[str, Any]]:
    """Messages of each API, kind and version."""
    numbers = random.Random(7)
    (jar,) = jars.glob("kafka-clients-*.jar")
    with zipfile.ZipFile(jar) as files:
        for api in APIS:
            for kind in ("Request", "Response"):
                text = files.read(f"common/message/{api.name}{kind}.json").decode()
                form = json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE))
                for version in range(api.lowest, api.highest + 1):
                    edge = version in (api.lowest, api.highest - 1, api.highest)
                    for style in _MORE_STYLES if edge else _STYLES:
                        message = _Values(form, version, numbers, style).message()
                        yield {"api": api.name, "kind": kind, "version": version, "message": message}


class _Values:
    """Random values for a message, in Kafka's JSON form."""

    def __init__(self, form: dict[str, Any], version: int, numbers: random.Random, style: str) -> None:
        self._form = form
        self._shared = {common["name"]: common["fields"] for common in form.get("commonStructs", ())}
        self._version = version
        self._numbers = numbers
        self._style = style

    def message(self) -> dict[str, Any]:
        """The message."""
        return self._struct(self._form["fields"])

    def _struct(self, fields: list[dict[str, Any]]) -> dict[str, Any]:
        present = [field for field in fields if _includes(field["versions"], self._version)]
        return {field["name"][0].lower() + field["name"][1:]: self._value(field) for field in present}

    def _value(self, field: dict[str, Any]) -> Any:
        if _includes(field.get("nullableVersions", "none"), self._version) and (
            self._style == "null" or self._numbers.random() < 0.15
        ):
            return None
        kind = field["type"]
        if not kind.startswith("[]"):
            return self._one(field, kind)
        counts = {"empty": (0,), "long": (1,)}.get(self._style, (1, 2, 3))
        return [self._one(field, kind[2:]) for _ in range(self._numbers.choice(counts))]

    def _one(self, field: dict[str, Any], kind: str) -> Any:
        if kind in _INTEGERS:
            largest = (1 << _INTEGERS[kind] - 1) - 1
            return self._numbers.choice((0, 1, -1, 9, largest, -largest - 1))
        if kind == "bool":
            return self._numbers.random() < 0.5
        if kind == "string":
            return self._text(field)
        if kind == "uuid":
            return base64.urlsafe_b64encode(self._numbers.randbytes(16)).decode().rstrip("=")
        if kind in ("bytes", "records"):
            size = 300 if self._style == "long" else self._numbers.choice((0, 1, 127, 128, 300))
            return base64.b64encode(self._numbers.randbytes(size)).decode()
        return self._struct(field.get("fields") or self._shared[kind])

    def _text(self, field: dict[str, Any]) -> str:
        if field.get("mapKey"):  # of which the values in one message must differ
            return f"ä-{self._numbers.randrange(10**6)}"
        if self._style == "long":
            return "y" * 300
        return self._numbers.choice(("", "orders", "äö €😀", "x" * 130))


def _includes(versions: str, version: int) -> bool:
    """Whether a range such as ``0-3``, ``4+``, ``7`` or ``none`` includes a version."""
    if versions == "none":
        return False
    lowest, _, highest = versions.partition("-")
    if lowest.endswith("+"):
        return version >= int(lowest[:-1])
    return int(lowest) <= version <= int(highest or lowest)


if __name__ == "__main__":
    record()
