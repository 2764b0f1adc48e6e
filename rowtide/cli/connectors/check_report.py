"""The report of ``rowtide check``, as text and as JSON; pure."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import click

from rowtide.connector.check import CheckedTable, CheckReport, Finding, Severity, errors_in

_WORDS = {
    Severity.ERROR: ("error", "red"),
    Severity.WARNING: ("warning", "yellow"),
    Severity.REMARK: ("note", "blue"),
}
_SHOWN = 20


class Checked(NamedTuple):
    """The result of the check of one connector.

    Attributes:
        connector: its name.
        notes: remarks about the configuration.
        report: the findings.
    """

    connector: str
    notes: tuple[str, ...]
    report: CheckReport

    @property
    def ready(self) -> bool:
        """Whether there is no error."""
        return not errors_in(self.report.findings)


def report_text(checked: Checked) -> str:
    """Return the report for people: the captured tables, then the findings with errors last, then the verdict."""
    lines = [*_tables(checked.report.tables)] if checked.report.tables else []
    lines += [_line(Severity.REMARK, note) for note in checked.notes]
    findings = sorted(checked.report.findings, key=lambda finding: finding.severity)
    lines += [_line(finding.severity, str(finding)) for finding in findings]
    return "\n".join([*lines, f"the connector {checked.connector} {_verdict(errors_in(findings))}"])


def reports_text(results: Iterable[Checked], clashes: Sequence[Finding]) -> str:
    """Return the reports of several connectors, then the reasons why they cannot run in one process."""
    parts = [f"connector {one.connector}:\n{report_text(one)}" for one in results]
    if clashes:
        reasons = (_line(one.severity, str(one)) for one in clashes)
        parts.append("\n".join([*reasons, "these connectors cannot run in one process"]))
    return "\n\n".join(parts)


def _verdict(errors: Sequence[Finding]) -> str:
    own = [error for error in errors if not error.planned]
    if not own:
        return f"can start, but the statement has {_number(len(errors))}" if errors else "can start"
    return f"{'should not' if all(error.tolerated for error in own) else 'cannot'} start: {_number(len(own))}"


def _number(errors: int) -> str:
    return "one error" if errors == 1 else f"{errors} errors"


def _line(severity: Severity, text: str) -> str:
    word, colour = _WORDS[severity]
    return f"{click.style(word, fg=colour, bold=severity is Severity.ERROR)}: {text}"


def _tables(tables: Sequence[CheckedTable]) -> Iterator[str]:
    number = "1 table is captured" if len(tables) == 1 else f"{len(tables)} tables are captured"
    yield f"{number} (rows as the server estimates them):"
    shown = tables[:_SHOWN]
    names = [f"{table.database}.{table.name}" for table in shown]
    rows = ["?" if table.rows is None else f"{table.rows:,}" for table in shown]
    left, right = max(map(len, names)), max(map(len, rows))
    for name, count, table in zip(names, rows, shown, strict=True):
        yield f"  {name:<{left}}  {count:>{right}}{_topic(table)}".rstrip()
    if len(tables) > _SHOWN:
        yield f"  … and {len(tables) - _SHOWN} more; --json lists all"


def _topic(table: CheckedTable) -> str:
    if table.topic is None:
        return ""
    state = {None: " (not looked up)", 0: " (does not exist yet)"}.get(table.partitions, "")
    return f"  -> topic {table.topic}{state}"


def report_json(checked: Checked) -> str:
    """Return the report for programs, as one JSON object."""
    return json.dumps(_body(checked), indent=2)


def reports_json(results: Sequence[Checked], clashes: Sequence[Finding]) -> str:
    """Return the reports of several connectors for programs, as one JSON object."""
    ready = not clashes and all(one.ready for one in results)
    body = {
        "ready": ready,
        "findings": [_fields(one) for one in clashes],
        "connectors": [_body(one) for one in results],
    }
    return json.dumps(body, indent=2)


def _fields(finding: Finding) -> dict[str, str]:
    return {"severity": _WORDS[finding.severity][0], "subject": finding.subject, "message": finding.message}


def _body(checked: Checked) -> dict[str, Any]:
    tables = None
    if checked.report.tables is not None:
        tables = [
            {
                "database": table.database,
                "table": table.name,
                "estimated_rows": table.rows,
                "topic": table.topic,
                "topic_exists": None if table.partitions is None else table.partitions > 0,
            }
            for table in checked.report.tables
        ]
    return {
        "connector": checked.connector,
        "ready": checked.ready,
        "findings": [_fields(finding) for finding in checked.report.findings],
        "notes": list(checked.notes),
        "tables": tables,
    }
