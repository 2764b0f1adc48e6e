"""The report of ``rowtide check``."""

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from rowtide.cli import main
from rowtide.cli.connectors.check_report import Checked, report_json, report_text, reports_json, reports_text
from rowtide.connector.check import CheckedTable, CheckReport, Finding, Severity

TABLES = (
    CheckedTable("shop", "orders", 1234567, None, "s.shop.orders", 1),
    CheckedTable("shop", "lines", None, None, "s.shop.lines", 0),
)
FINDINGS = [
    Finding(Severity.ERROR, "server_id", "is 0"),
    Finding(Severity.WARNING, "gtid_mode", "is odd"),
    Finding(Severity.REMARK, "snapshot.mode", "a start streams"),
]


def test_the_text_ends_with_the_errors_and_the_verdict() -> None:
    text = report_text(Checked("c", ("tasks.max has no effect",), CheckReport(FINDINGS, TABLES)))
    assert click.unstyle(text).splitlines() == [
        "2 tables are captured (rows as the server estimates them):",
        "  shop.orders  1,234,567  -> topic s.shop.orders",
        "  shop.lines           ?  -> topic s.shop.lines (does not exist yet)",
        "note: tasks.max has no effect",
        "note: snapshot.mode: a start streams",
        "warning: gtid_mode: is odd",
        "error: server_id: is 0",
        "the connector c cannot start: one error",
    ]


def test_an_error_that_the_worker_tolerates() -> None:
    tolerated = Finding(Severity.ERROR, "table.include.list", "no table is captured", tolerated=True)
    assert report_text(Checked("c", (), CheckReport([tolerated]))).endswith(
        "the connector c should not start: one error"
    )
    assert report_text(Checked("c", (), CheckReport([]))) == "the connector c can start"


def test_an_error_of_a_statement_that_is_not_executed() -> None:
    planned = Finding(Severity.ERROR, "--ddl", "the registry would refuse it", planned=True)
    assert report_text(Checked("c", (), CheckReport([planned]))).endswith(
        "c can start, but the statement has one error"
    )
    own = Finding(Severity.ERROR, "server_id", "is 0")
    assert report_text(Checked("c", (), CheckReport([planned, own]))).endswith(
        "the connector c cannot start: one error"
    )


def test_long_lists_of_tables_are_cut_in_the_text_only() -> None:
    many = tuple(CheckedTable("d", f"t{number:02}", 1, None, None) for number in range(23))
    report = CheckReport([], many)
    assert "  … and 3 more; --json lists all" in report_text(Checked("c", (), report)).splitlines()
    assert len(json.loads(report_json(Checked("c", (), report)))["tables"]) == 23


def test_the_object_for_programs() -> None:
    found = json.loads(report_json(Checked("c", ("n",), CheckReport(FINDINGS, TABLES))))
    assert (found["connector"], found["ready"], found["notes"]) == ("c", False, ["n"])
    assert found["findings"][0] == {"severity": "error", "subject": "server_id", "message": "is 0"}
    assert found["tables"][1] == {
        "database": "shop",
        "table": "lines",
        "estimated_rows": None,
        "topic": "s.shop.lines",
        "topic_exists": False,
    }
    assert json.loads(report_json(Checked("c", (), CheckReport([]))))["ready"] is True


def test_the_object_has_no_character_that_an_encoding_may_lack() -> None:
    text = report_json(Checked("c", ("…",), CheckReport([], (CheckedTable("läden", "表", 1, None, None),))))
    assert text.isascii()
    assert json.loads(text)["tables"][0]["table"] == "表"


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("c.json", b'{"a":', "JSON syntax error at line 1, column 6"),
        ("c.yaml", b"a: [", "YAML syntax error"),
        ("c.json", b"[]", "it must be a map"),
        ("c.properties", b"a=\\u12", "line 1"),
    ],
)
def test_a_file_with_a_syntax_error_is_a_finding_for_programs(
    name: str, content: bytes, said: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    result = CliRunner().invoke(main, ["check", "--json", str(path)])
    found = json.loads(result.stdout)
    assert (result.exit_code, found["ready"], found["tables"]) == (1, False, None)
    (finding,) = found["findings"]
    assert (finding["severity"], finding["subject"]) == ("error", str(path))
    assert said in finding["message"]


def test_topics_that_were_not_looked_up_are_not_said_to_exist() -> None:
    table = CheckedTable("shop", "orders", 1, None, "s.shop.orders", None)
    text = report_text(Checked("c", (), CheckReport([], (table,))))
    assert "  shop.orders  1  -> topic s.shop.orders (not looked up)" in text.splitlines()


def test_the_reports_of_several_connectors() -> None:
    results = [Checked("a", (), CheckReport([])), Checked("b", (), CheckReport(FINDINGS))]
    clash = Finding(Severity.ERROR, "name", "a.json and b.json have the same")
    assert click.unstyle(reports_text(results, [clash])).splitlines() == [
        "connector a:",
        "the connector a can start",
        "",
        "connector b:",
        "note: snapshot.mode: a start streams",
        "warning: gtid_mode: is odd",
        "error: server_id: is 0",
        "the connector b cannot start: one error",
        "",
        "error: name: a.json and b.json have the same",
        "these connectors cannot run in one process",
    ]
    assert json.loads(reports_json(results[:1], []))["ready"] is True
    found = json.loads(reports_json(results[:1], [clash]))
    assert found["ready"] is False
    assert found["findings"] == [{"severity": "error", "subject": "name", "message": "a.json and b.json have the same"}]
    assert [one["connector"] for one in json.loads(reports_json(results, []))["connectors"]] == ["a", "b"]


def written(folder: Path, file: str, **properties: str) -> str:
    path = folder / file
    path.write_text("".join(f"{key.replace('_', '.')}={text}\n" for key, text in properties.items()))
    return str(path)


def test_several_connectors_are_checked_with_the_properties_of_all(tmp_path: Path) -> None:
    common = written(tmp_path, "common.properties", topic_prefix="x", database_hostname="", database_user="u")
    first = written(tmp_path, "first.properties", name="one")
    second = written(tmp_path, "second.properties", name="two", snapshot_mode="sometimes")
    command = ["check", "--json", "--connector", first, "--connector", second, "--connector", second, common]
    result = CliRunner().invoke(main, command)
    found = json.loads(result.stdout)
    assert (result.exit_code, found["ready"]) == (1, False)
    assert [one["connector"] for one in found["connectors"]] == ["one", "two"]
    assert "snapshot.mode" in {finding["subject"] for finding in found["connectors"][1]["findings"]}
    assert "snapshot.mode" not in {finding["subject"] for finding in found["connectors"][0]["findings"]}
    clashes = {finding["subject"]: finding["message"] for finding in found["findings"]}
    assert clashes["topic.prefix"].startswith(f"{first} and {second} have the same")
    assert clashes["--connector"] == "the same file is given twice"


def test_a_configuration_without_kafka_is_pointed_at_the_option_for_engines(tmp_path: Path) -> None:
    history = "io.debezium.storage.file.history.FileSchemaHistory"
    path = written(tmp_path, "library.properties", schema_history_internal=history, offset_storage_file_filename="o")
    without, with_option = (
        {finding["subject"] for finding in json.loads(CliRunner().invoke(main, command).stdout)["findings"]}
        for command in (["check", "--json", path], ["check", "--json", "--sink", "python", path])
    )
    assert {"bootstrap.servers", "rowtide.sink"} <= without
    assert not {"bootstrap.servers", "rowtide.sink"} & with_option
