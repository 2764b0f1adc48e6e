"""Generates COMPATIBILITY.md from the catalogue of properties and the recorded cases. As a script, prints it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

from rowtide.connector.config.catalogue import SECTIONS, entries
from rowtide.connector.config.catalogue.property import Family, Property, Status
from rowtide.connector.config.property_reference import exact_default_of, name_of
from tests.support.recordings import differences as stream
from tests.support.recordings import snapshot_differences as snapshot
from tests.support.recordings.golden import Case, cases

__all__ = ["ABOUT", "reasons", "render", "types"]

ABOUT: dict[str, tuple[str, ...]] = {
    "text": (
        "has character set", "sjis", "latin1", "armscii8", "geostd8", "swe7", "UTF-16",
    ),
    "enum": ("emoji", "with that label", "of a label cannot"),
    "set": ("emoji", "of a label cannot"),
    "json": ("negative TIME in JSON",),
    "year": ("YEAR 0",),
    "timestamp": ("shifts a TIMESTAMP",),
    "datetime": ("0000-10-10", "October 1582", "number of nanoseconds"),
    "int": ("INTEGER UNSIGNED",),
    "bigint": ("default of a BIGINT",),
    "decimal": ("DECIMAL ZEROFILL",),
    "bit": ("BIT of more than one byte",),
    "uuid": ("UUID",),
    "inet4": ("INET4",),
    "inet6": ("INET6",),
    "names": ("characters of names",),
    "keys": ("excluded from the records",),
    "statements": (
        "ADD COLUMN IF NOT EXISTS", "ANSI_QUOTES", "backtick in its name", "ALTER SCHEMA", "CREATE OR REPLACE",
        "/*M! */", "last USE", "SET DEFAULT NULL", "moves a column", "in ADD COLUMN (a",
    ),
    "converters": ("JdbcSinkDataTypesConverter", "ZeroDateFallbackConverter"),
    "transforms": ("geometry without a reference system",),
    "defaults": ("hexadecimal default",),
    "rows": (
        "unique key of long columns", "without its BLOBs", "rows of a sequence", "compressed", "system-versioned",
        "are rolled back",
    ),
    "topics": ("after sanitising",),
}  # fmt: skip
"""The subject of a difference, a type or something else, and the parts of reasons by which it is recognised."""

_HEAD = """\
# Compatibility with Debezium

rowtide's support for each property of Debezium's MySQL and MariaDB connectors and for each type, compared with Debezium
3.6 (MySQL) and 3.5 (MariaDB). This file is generated from the catalogue of properties and from {cases} recordings of
Debezium, with which rowtide's records are compared byte for byte; a test keeps it up to date.

This holds for a configuration that names Debezium's class in `connector.class`. Without it, values are exact, and some
properties have other defaults: see *Exact values* in the documentation (`docs/exact_values.md`).

*equal*: as in Debezium. *better*: as in Debezium, except where Debezium loses or changes a value, or stops without
need. *partly*: equal for what the remark names; anything else is an error at the start. *not yet*: an error at the
start. *none needed*: accepted without effect, for the reason given. *rowtide only*: Debezium has no such property;
remove it when you go back.
"""


def reasons() -> set[str]:
    """The reasons of all differences that the tests list."""
    found = {
        one.reason for table in (stream.DIFFERENCES, snapshot.DIFFERENCES) for own in table.values() for one in own
    }
    for table in (stream.MORE, snapshot.MORE, stream.PHANTOMS):
        found |= {reason for reason, *_ in table.values()}
    return found


def types() -> dict[str, dict[str, set[str]]]:
    """The recorded cases with a column of a type, by server and data type."""
    left_out = {name for name in cases() if name in stream.PENDING}
    found: dict[str, dict[str, set[str]]] = {"mysql": {}, "mariadb": {}}
    for name in cases():
        if name in left_out:
            continue
        case = Case(name)
        own = found[case.description.get("server", "mysql")]
        for table in case.server["tables"].values():
            for column in table["columns"]:
                own.setdefault(column["data_type"], set()).add(name)
    return found


_TEXTS = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext"})


def _about(subject: str) -> list[str]:
    return sorted(reason for reason in reasons() if any(words in reason for words in ABOUT.get(subject, ())))


def render() -> str:
    """The text of the document."""
    return _HEAD.format(cases=len(cases())) + "".join(f"{line}\n" for line in _lines())


def _lines() -> Iterator[str]:
    yield from ("", "## Types", "", "| type | MySQL | MariaDB | where rowtide differs |", "| --- | --- | --- | --- |")
    found = types()
    for name in sorted(found["mysql"].keys() | found["mariadb"].keys()):
        better = ["see *text* below"] if name in _TEXTS else _about(name)
        states = (_state(found[server], name, better=bool(better)) for server in ("mysql", "mariadb"))
        yield f"| {name.upper()} | {' | '.join(states)} | {'; '.join(better)} |"
    yield from ("", "## Elsewhere", "", "| what | where rowtide differs |", "| --- | --- |")
    for subject in ("converters", "defaults", "keys", "names", "rows", "statements", "text", "topics", "transforms"):
        yield from (f"| {subject} | {reason} |" for reason in _about(subject))
    for name, reason in sorted(stream.PENDING.items()):
        yield f"| not yet | {reason} (recording `{name}`) |"
    yield from ("", "## Properties")
    for section in SECTIONS:
        yield from ("", f"### {section.TITLE}", "", "| property | rowtide | remark |", "| --- | --- | --- |")
        for entry in entries(section):
            refused = entry.refused if isinstance(entry, Property) else {}
            remark = _remark(entry.reason, refused, exact_default_of(entry))
            state = "rowtide only" if _is_own(entry) else _STATES[entry.status]
            yield f"| `{name_of(entry)}` | {state} | {remark} |"


_STATES = {
    Status.SUPPORTED: "equal", Status.PARTLY: "partly", Status.WITHOUT_EFFECT: "none needed", Status.NOT_YET: "not yet",
}  # fmt: skip


def _is_own(entry: Property[Any] | Family) -> bool:
    """Whether neither Debezium nor Kafka has a property."""
    return name_of(entry).startswith(("rowtide.", "databus.", "canal.")) or entry.doc.startswith("rowtide only")


def _state(cases_of: Mapping[str, set[str]], name: str, *, better: bool) -> str:
    if name not in cases_of:
        return ""
    number = len(cases_of[name])
    return f"{'better' if better else 'equal'} ({number} recording{'s' if number > 1 else ''})"


def _remark(reason: str, refused: Mapping[str, str], exact: str) -> str:
    parts = [reason] if reason else []
    parts += [f"`{exact}` by default with exact values"] if exact else []
    parts += [f"`{value}`: {why}" for value, why in refused.items()]
    return "; ".join(parts).replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    sys.stdout.write(render())
