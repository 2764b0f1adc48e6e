"""The report of ``rowtide position``, for people and as JSON."""

import json
from dataclasses import dataclass

from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.source.search.comparison import Difference
from rowtide.connector.source.search.positions import FoundPosition, utc


@dataclass(frozen=True, slots=True)
class PositionReport:
    """A found position.

    Attributes:
        found: the position.
        server: whether the server has it; ``None`` if that is certain, or no server is known.
        stored: the stored position of the connector.
        stored_problem: the reason why there is none; empty if it was not looked up.
        difference: the transactions that a start at the found position would repeat or miss.
    """

    found: FoundPosition
    server: str | None = None
    stored: SourceOffset | None = None
    stored_problem: str = ""
    difference: Difference | None = None


def report_text(report: PositionReport) -> str:
    """Return the lines for people."""
    found, lines = report.found, []
    lines.append(("position", f"{found.file}:{found.pos}"))
    if found.gtids is not None:
        lines.append(("GTIDs before it", found.gtids or "none"))
    lines.append(("transaction", _transaction(found)))
    if report.server is not None:
        lines.append(("the server", report.server))
    if report.stored is not None:
        gtids = "" if report.stored.gtids is None else f", GTIDs {report.stored.gtids or 'none'}"
        lines.append(("stored position", f"{report.stored.file}:{report.stored.pos}{gtids}"))
    elif report.stored_problem:
        lines.append(("stored position", report.stored_problem))
    lines += [("a start there", text) for text in _differences(report.difference)]
    lines.append(("offset", _offset(found).to_json()))
    width = max(len(name) for name, _ in lines)
    return "\n".join(f"{name:<{width}}  {text}" for name, text in lines)


def _transaction(found: FoundPosition) -> str:
    if found.micros is None:
        return "none yet: this is the end of the binlog"
    return f"{found.gtid or 'without a GTID'}, committed at {utc(found.micros)}"


def _differences(difference: Difference | None) -> list[str]:
    if difference is None:
        return []
    if difference.unknown is not None:
        return [f"cannot be compared with it: {difference.unknown}"]
    texts = []
    if difference.repeats is not None:
        texts.append(f"repeats {difference.repeats}")
    if difference.misses is not None:
        texts.append(f"misses {difference.misses}")
    return texts or ["repeats and misses nothing"]


def report_json(report: PositionReport) -> str:
    """Return one JSON object."""
    found, difference = report.found, report.difference
    fields = {
        "found": True,
        "file": found.file,
        "pos": found.pos,
        "gtids": found.gtids,
        "at_end": found.at_end,
        "transaction": None
        if found.micros is None
        else {"gtid": found.gtid, "committed_at": utc(found.micros), "committed_at_us": found.micros},
        "server": report.server,
        "stored": None if report.stored is None else report.stored.to_map(),
        "stored_problem": report.stored_problem or None,
        "repeats": None if difference is None else difference.repeats,
        "misses": None if difference is None else difference.misses,
        "not_comparable": None if difference is None else difference.unknown,
        "offset": json.loads(_offset(found).to_json()),
    }
    return json.dumps(fields, indent=2, ensure_ascii=False)


def _offset(found: FoundPosition) -> SourceOffset:
    return SourceOffset(found.file, found.pos, found.gtids)
