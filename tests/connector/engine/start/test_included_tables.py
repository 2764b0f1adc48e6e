"""The list of captured tables that a signal sets: checked, carried by offsets, dropped with a new configuration."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from click.testing import CliRunner

from rowtide.cli import main
from rowtide.connector.check import CheckReport
from rowtide.connector.check.facts import ServerFacts, TableFact
from rowtide.connector.check.topic_checks import captured_tables
from rowtide.connector.config import Configuration, from_properties
from rowtide.connector.delivery.file_offset_store import FileOffsetStore
from rowtide.connector.engine.start.included_tables import IncludedTables, set_include_list, with_included_tables
from rowtide.connector.engine.start.position import as_signalled, included_findings
from rowtide.connector.errors import SignalError
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.signals.signal import Signal
from tests.support.configurations import PROPERTIES

AT = SourceOffset("b.000001", 4)


def config(**more: str) -> Configuration:
    return from_properties({**PROPERTIES, **{name.replace("_", "."): value for name, value in more.items()}})


class Sent:
    """Signals that were sent to a connector."""

    def __init__(self, configuration: Configuration) -> None:
        self.config = configuration
        self.progress = SimpleNamespace(carried={"other": 1})
        self.changes: list[IncludedTables] = []

    def send(self, **data: Any) -> None:
        named = {name.replace("_", "."): value for name, value in data.items()}
        signal = Signal(f"s{len(self.changes)}", "rowtide-set-table-include-list", named, "http")
        context = cast("Any", SimpleNamespace(progress=self.progress))
        assert set_include_list(self.config, self.changes.append, signal, context) == ()

    @property
    def stored(self) -> SourceOffset:
        """An offset after the signals."""
        return SourceOffset.from_json(SourceOffset("b.000001", 9, carried=self.progress.carried).to_json())


def captured(configuration: Configuration) -> list[str]:
    return [name for name in "abc" if configuration.capture.tables.captures("d", name)]


@pytest.mark.parametrize("before", [{}, {"table_include_list": "d.a"}])
def test_the_list_replaces_that_of_the_configuration(before: dict[str, str]) -> None:
    sent = Sent(config(**before))
    sent.send(table_include_list=r"d.a,d\.b")
    assert sent.progress.carried["other"] == 1
    changed, found, start = with_included_tables(sent.config, None, sent.stored)
    assert captured(changed) == ["a", "b"]
    assert [found] == sent.changes
    assert start is not None
    assert start.carried == sent.stored.carried


def test_the_list_of_an_earlier_run_applies_before_its_position_is_stored() -> None:
    sent = Sent(config(table_include_list="d.a"))
    sent.send(table_include_list="d.b")
    changed, found, start = with_included_tables(sent.config, sent.changes[0], AT)
    assert captured(changed) == ["b"]
    assert found is sent.changes[0]
    assert start is not None
    assert IncludedTables.from_carried(start.carried) == found, "all offsets have it"


def test_the_check_has_the_list_of_the_stored_position(tmp_path: Path) -> None:
    file = tmp_path / "offsets"
    stored_in = {"offset_storage_file_filename": str(file)}
    sent = Sent(config(table_include_list="d.a", **stored_in))
    assert as_signalled(sent.config) is None, "no position is stored"
    sent.send(table_include_list="d.a,d.b")
    FileOffsetStore(file, sent.config.name, sent.config.topics.prefix).save(sent.stored)
    signalled = as_signalled(sent.config)
    assert signalled is not None
    assert captured(signalled) == ["a", "b"]
    assert as_signalled(config(table_include_list="d.c", **stored_in)) is None
    file.write_bytes(b"damaged")
    assert as_signalled(sent.config) is None


def test_rowtide_check_lists_the_tables_that_a_signal_has_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = Sent(config(table_include_list="d.a"))
    sent.send(table_include_list="d.b,d.c")
    offsets, path = tmp_path / "offsets", tmp_path / "shop.properties"
    properties = {**PROPERTIES, "table.include.list": "d.a", "offset.storage.file.filename": str(offsets)}
    path.write_text("".join(f"{name}={text}\n" for name, text in properties.items()))
    FileOffsetStore(offsets, sent.config.name, sent.config.topics.prefix).save(sent.stored)
    facts = tuple(TableFact("d", name) for name in "abc")

    def checked(configuration: Configuration, *_: object, **__: object) -> CheckReport:
        return CheckReport([], captured_tables(configuration, facts, {}), reached=True)

    seen: list[list[str]] = []
    monkeypatch.setattr("rowtide.connector.check.check", checked)
    monkeypatch.setattr(
        "rowtide.connector.engine.start.position.start_findings",
        lambda _config, tables: seen.append([table.name for table in tables]) or [],
    )
    body = json.loads(CliRunner().invoke(main, ["check", str(path), "--json"]).output)
    assert [table["table"] for table in body["tables"]] == ["b", "c"]
    assert seen == [["b", "c"]]


def test_a_start_says_which_items_of_the_list_match_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check of a start sees the list of the files, because it comes before the stored position is read."""
    facts = ServerFacts("9.7.0", {}, (), tables=(TableFact("d", "orders"), TableFact("d", "items")))
    monkeypatch.setattr("rowtide.connector.check.fetch_facts", lambda *_args, **_more: facts)
    sent = Sent(config(table_include_list="d.orders"))
    sent.send(table_include_list="d.order")
    changed, found, _ = with_included_tables(sent.config, None, sent.stored)
    assert found is not None
    findings = [str(finding) for finding in included_findings(changed, found)]
    assert findings[0].startswith("table.include.list: signal 's0' has replaced")
    assert len(findings) == 3
    for text in ("no table is captured", "table d.order does not exist"):
        assert any(text in finding for finding in findings), findings


def test_a_change_of_the_configuration_is_stronger() -> None:
    sent = Sent(config(table_include_list="d.a"))
    sent.send(table_include_list="d.b")
    for edited in (config(table_include_list="d.a,d.c"), config(), config(table_exclude_list="d.a")):
        changed, found, start = with_included_tables(edited, None, sent.stored)
        assert changed is edited
        assert found is None
        assert start is not None
        assert IncludedTables.from_carried(start.carried) is None, "also when the former list comes back"


def test_only_the_caller_reports_the_list(caplog: pytest.LogCaptureFixture) -> None:
    sent = Sent(config(table_include_list="d.a"))
    sent.send(table_include_list="d.b")
    _, found, _ = with_included_tables(sent.config, None, sent.stored)
    assert found is not None
    assert found.note.startswith("signal ")
    assert caplog.messages == []


def test_a_list_that_is_already_there_changes_nothing() -> None:
    sent = Sent(config(table_include_list="d.a"))
    sent.send(table_include_list="d.a")
    assert sent.changes == []
    sent.send(table_include_list="d.b")
    sent.send(table_include_list=" d.b ")
    assert len(sent.changes) == 1
    sent.send(table_include_list="d.a")
    assert captured(with_included_tables(sent.config, None, sent.stored)[0]) == ["a"]


@pytest.mark.parametrize(
    ("data", "more", "problem"),
    [
        ({}, {}, "is missing"),
        ({"table_include_list": " "}, {}, "is missing"),
        ({"table_include_list": ["d.a"]}, {}, "must be a string"),
        ({"table_include_list": "d.("}, {}, "not a regular expression"),
        ({"table_include_list": "d.a"}, {"table_exclude_list": "d.b"}, "table.exclude.list"),
    ],
)
def test_a_wrong_signal_is_refused(data: dict[str, Any], more: dict[str, str], problem: str) -> None:
    sent = Sent(config(**more))
    with pytest.raises(SignalError, match=problem):
        sent.send(**data)
    assert sent.progress.carried == {"other": 1}
    assert sent.changes == []


def test_a_damaged_list_is_omitted(caplog: pytest.LogCaptureFixture) -> None:
    damaged = SourceOffset("b.000001", 4, carried={"rowtide_signal_tables": "{"})
    plain = config()
    changed, found, start = with_included_tables(plain, None, damaged)
    assert (changed, found) == (plain, None)
    assert start == AT
    assert "cannot be read" in caplog.text


def test_a_first_start_has_no_list() -> None:
    plain = config()
    assert with_included_tables(plain, None, None) == (plain, None, None)
