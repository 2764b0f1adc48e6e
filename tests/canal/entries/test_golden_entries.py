"""The entries of the recorded binlogs are what Canal 1.1.7 makes of them, or differ for a listed reason."""

from __future__ import annotations

import base64
import functools
import json
from collections import defaultdict

import pytest

from rowtide.canal.entries.entry import Entry, EntryStatement
from rowtide.canal.entries.flat_message import flat_message
from rowtide.canal.replay import entries
from rowtide.connector.config import from_properties
from rowtide.connector.engine.pipeline_settings import pipeline_settings
from tests.support.canal.golden import DIFFERENCES, EXTRA, Pair, differing, made, recorded, recordings, unexplained
from tests.support.recordings.golden import Case

pytestmark = pytest.mark.filterwarnings("error")


def test_without_gtidon_headers_have_no_gtids() -> None:
    case = Case("keys")
    config = from_properties(case.properties())
    found = list(entries(case.binlog, pipeline_settings(config, "run"), clock=lambda: 0))
    assert [entry.header for entry in found] == [entry.header for entry in made("keys")]


@functools.cache
def compared(name: str) -> tuple[list[Pair], list[Entry], list[str]]:
    """What differs, the entries that were not recorded, and the recorded ones that are missing."""
    case = name.removesuffix(".gtid")
    places: dict[tuple[str, int], list[Entry]] = defaultdict(list)
    for entry in made(name):
        places[entry.header.file, entry.header.offset].append(entry)
    pairs: list[Pair] = []
    missing: list[str] = []
    asked: set[object] = set()
    for line in recorded(name):
        table = line.get("header", {}).get("schemaName"), line.get("header", {}).get("tableName")
        if {"asked", "given"} & line.keys():
            asked.add(table)
        if "error" in line:  # Canal stops there; rowtide goes on
            places.pop((line["file"], line["pos"]), None)
            continue
        if line["type"] == "GTIDLOG":  # never reaches a client
            continue
        found = places.get((line["file"], line["pos"]))
        if not found:
            missing.append(f"{line['file']}:{line['pos']} {line['event']}")
            continue
        entry = found.pop(0)
        encoded = entry.encoded()
        if encoded == base64.b64decode(line["entry"]):
            compare_flat(entry, line.get("flat"))
        else:
            pairs += differing(line, encoded, case, asked=table in asked)
    return pairs, [entry for left in places.values() for entry in left], missing


def compare_flat(entry: Entry, flat: list[str] | None) -> None:
    """Compare the FlatMessage of an entry whose bytes are equal."""
    if flat is None:
        assert flat_message(entry, 1, 0) is None
        return
    message = flat_message(entry, json.loads(flat[0])["id"], 0)
    if message != flat[0]:
        assert message is not None
        want, have = json.loads(flat[0]), json.loads(message)
        # Canal repeats columns that changed in an earlier row of the same event.
        for before, after in zip(want.pop("old"), have.pop("old"), strict=True):
            assert after.items() <= before.items()
        assert have == want


@pytest.mark.parametrize("name", recordings())
def test_the_entries_are_what_was_recorded(name: str) -> None:
    pairs, extra, missing = compared(name)
    assert [f"{p.path} {p.table}: recorded {p.want!r}, found {p.have!r}" for p in pairs if unexplained(p)] == []
    assert missing == []
    listed = EXTRA.get(name.removesuffix(".gtid"), ())
    for entry in extra:
        assert isinstance(entry.content, EntryStatement), entry
        assert entry.content.sql.startswith(listed), entry
    assert len(extra) == len(listed)


def test_every_listed_difference_occurs() -> None:
    pairs = [pair for name in recordings() for pair in compared(name)[0]]
    assert {name for name, (_, rule) in DIFFERENCES.items() if not any(map(rule, pairs))} == set()
    assert set(EXTRA) <= {name.removesuffix(".gtid") for name in recordings()}
