"""The page about formats shows what ``rowtide replay`` writes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.pages import blocks, table
from tests.support.source_tree import ROOT

COLUMNS = {
    "numeric-types": (
        "BIT(1)=bits.b1 BIT(n)=bits.b9 TINYINT=ints.ti TINYINT_UNSIGNED=ints.tu SMALLINT=ints.si "
        "SMALLINT_UNSIGNED=ints.su MEDIUMINT=ints.mi INT=ints.ii INT_UNSIGNED=ints.iu BIGINT=ints.bi "
        "BIGINT_UNSIGNED=ints.bu FLOAT=floats.f FLOAT(p)=floats.f25 FLOAT(M,D)=floats.f7 DOUBLE=floats.d "
        "DECIMAL=decs.d5"
    ),
    "strings-and-charsets": ("CHAR=c.c10 VARCHAR=c.v0 TEXT=c.t BINARY=bin.b8 VARBINARY=bin.vb BLOB=bin.b"),
    "enum-set-json": "ENUM=es.e SET=es.s JSON=j.j",
    "temporal-types": (
        "DATE=d.d TIME=d.t6 YEAR=d.y TIMESTAMP=ts.s6 "
        "DATETIME=d.dt DATETIME(1)=d.dt1 (3)=d.dt3 DATETIME(4)=d.dt4 (6)=d.dt6"
    ),
    "geometry-and-vector": "POINT=g.p GEOMETRY=g.g VECTOR=v.v",
}
"""By recorded case, a column (table.column) for each type of the page's table."""


def replayed(folder: Path, case: str, properties: str) -> list[dict[str, Any]]:
    """The lines that ``rowtide replay`` prints for a recorded binlog."""
    path = folder / "replay.properties"
    path.write_text(properties)
    binlog = ROOT / "tests/golden" / case / "golden/binlog"
    command = [sys.executable, "-m", "rowtide", "replay", str(path), "--binlog", str(binlog)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def schemas(lines: list[dict[str, Any]]) -> dict[str, tuple[str, str]]:
    """Type and schema name of each column, by table and column, as its first record has them."""
    found: dict[str, tuple[str, str]] = {}
    for line in lines:
        for field in json.loads(line["value"])["schema"]["fields"][1]["fields"] if line["value"] else ():
            column = f"{line['topic'].split('.')[-1]}.{field['field']}"
            found.setdefault(column, (field["type"], field.get("name", "")))
    return found


@pytest.mark.parametrize("case", COLUMNS)
def test_types_are_those_of_the_table(case: str, tmp_path: Path) -> None:
    found = schemas(replayed(tmp_path, case, "topic.prefix=s\ninclude.schema.changes=false\nrowtide.values=debezium\n"))
    said = types()
    for pair in COLUMNS[case].split():
        name, column = pair.split("=")
        assert said[name.replace("_", " ")] == found[column]


def test_every_type_of_the_table_is_compared() -> None:
    compared = {pair.split("=")[0].replace("_", " ") for pairs in COLUMNS.values() for pair in pairs.split()}
    assert types().keys() - compared == {"UUID"}, "which has no case whose stream holds only it"


def types() -> dict[str, tuple[str, str]]:
    """Connect type and schema name of each type that the table names."""
    return {
        name: (row[1], row[2].strip("`"))
        for row in table("formats", "MySQL type")
        for name in re.findall(r"`([^`]+)`", row[0])
    }


def test_the_examples_are_records(tmp_path: Path) -> None:
    (properties,) = blocks("formats", "properties")
    written = []
    for line in replayed(tmp_path, "keys", properties):
        texts = (line["key"], line["value"], *(value for _, value in line["headers"]))
        written += [unprocessed(text) for text in texts if text is not None and text.startswith("{")]
    examples = [unprocessed(text) for text in blocks("formats", "json")]
    assert examples
    assert [example for example in examples if example not in written] == []


def unprocessed(text: str) -> list[tuple[str, Any]]:
    """The fields of a message in their order, without the time of its processing."""
    return [(name, value) for name, value in json.loads(text).items() if not name.startswith("ts_")]


def test_the_example_in_python_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = blocks("formats", "python")
    exec(compile(example, "formats.md", "exec"), {})
    (said,) = re.findall(r"print\(.*# (.*)$", example, re.MULTILINE)
    assert capsys.readouterr().out == f"{said}\n"
