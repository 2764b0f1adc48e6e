"""The report of ``rowtide check``, as text and as JSON; pure."""

import json
from collections.abc import Iterable, Iterator, Sequence

import click

from rowtide.connector.check import CapturedTable, Finding, Report, Severity, errors_in

_WORDS = {
    Severity.ERROR: ("error", "red"),
    Severity.WARNING: ("warning", "yellow"),
    Severity.REMARK: ("note", "blue"),
}
_SHOWN = 20


def report_text(connector: str, notes: Iterable[str], report: Report) -> str:
    """The report for people: the captured tables, then the findings with errors last, then the verdict.

    Args:
        connector: the connector's name.
        notes: remarks about the configuration.
        report: the result of the check.
    """
    lines = [*_tables(report.tables)] if report.tables else []
    lines += [_line(Severity.REMARK, note) for note in notes]
    findings = sorted(report.findings, key=lambda finding: finding.severity)
    lines += [_line(finding.severity, str(finding)) for finding in findings]
    return "\n".join([*lines, f"the connector {connector} {_verdict(errors_in(report.findings))}"])


def _verdict(errors: Sequence[Finding]) -> str:
    if not errors:
        return "can start"
    number = "one error" if len(errors) == 1 else f"{len(errors)} errors"
    return f"{'should not' if all(error.tolerated for error in errors) else 'cannot'} start: {number}"


def _line(severity: Severity, text: str) -> str:
    word, colour = _WORDS[severity]
    return f"{click.style(word, fg=colour, bold=severity is Severity.ERROR)}: {text}"


def _tables(tables: Sequence[CapturedTable]) -> Iterator[str]:
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


def _topic(table: CapturedTable) -> str:
    if table.topic is None:
        return ""
    return f"  -> topic {table.topic}{' (does not exist yet)' if table.partitions == 0 else ''}"


def report_json(connector: str, notes: Iterable[str], report: Report) -> str:
    """The report for programs, as one JSON object; the arguments are those of :func:`report_text`."""
    findings = [
        {"severity": _WORDS[finding.severity][0], "subject": finding.subject, "message": finding.message}
        for finding in report.findings
    ]
    tables = None
    if report.tables is not None:
        tables = [
            {
                "database": table.database,
                "table": table.name,
                "estimated_rows": table.rows,
                "topic": table.topic,
                "topic_exists": None if table.partitions is None else table.partitions > 0,
            }
            for table in report.tables
        ]
    body = {
        "connector": connector,
        "ready": not errors_in(report.findings),
        "findings": findings,
        "notes": list(notes),
        "tables": tables,
    }
    return json.dumps(body, indent=2)
