"""Reports differences with the SQL statements that caused them."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.parity.compare import Difference
from tests.parity.rounds import RoundResult, Statement

__all__ = ["column_of", "describe", "keep", "missed", "signature", "sql_of"]

_SOURCE = re.compile(r'"file":"([^"]+)","pos":(\d+)')
_LONGEST = 700


def column_of(difference: Difference, result: RoundResult) -> tuple[str, str]:
    """The column of a difference and its type; empty if it is not in a column."""
    table = difference.topic.rsplit(".", maxsplit=1)[-1]
    for part in reversed(difference.path):
        name = part.partition(":")[2] or part
        for (of, column), kind in reversed(result.types.items()):
            if _plain(column) == _plain(name) and _plain(of) == table:
                return name, kind
    return "", ""


def _plain(name: str) -> str:
    """A name with the characters that topics and fields may have."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)


def sql_of(difference: Difference, result: RoundResult) -> list[Statement]:
    """The statements of a message: those between its position and the next one."""
    found = _SOURCE.search(difference.message.value or "")
    if not found:
        return []
    file, pos = found[1], int(found[2])
    waiting: list[Statement] = []
    last = (result.setup or result.stream)[-1]
    for statement in result.stream:
        if (statement.file, statement.pos) == (last.file, last.pos):
            waiting.append(statement)
            continue
        if (statement.file == file and statement.pos > pos) or statement.file > file:
            return [*waiting, statement]
        waiting, last = [], statement
    return []


def signature(difference: Difference, result: RoundResult) -> str:
    """The key by which differences of the same kind are grouped."""
    column, kind = column_of(difference, result)
    path = [re.sub(r"^\d+(:.*)?$", "#", part) for part in difference.path if part != column]
    return f"{'.'.join(path)} of {re.sub(r'[(][^)]*[)]', '()', kind)}"


def describe(difference: Difference, result: RoundResult) -> str:
    """The description of a difference."""
    column, kind = column_of(difference, result)
    lines = [
        f"{difference.topic} message {difference.place}, field {'.'.join(difference.path)}",
        f"  Debezium  {difference.want[:_LONGEST]}",
        f"  rowtide   {difference.have[:_LONGEST]}",
    ]
    if column:
        lines.append(f"  column    {column} {kind}")
    lines += [
        f"  SQL       {statement.text[:_LONGEST]}{f'   -- {statement.error}' if statement.error else ''}"
        for statement in sql_of(difference, result)[-6:]
    ]
    return "\n".join(lines)


def missed(result: RoundResult) -> str:
    """The first message that only rowtide wrote because Debezium stopped, with its SQL and changes of its table."""
    more = []
    for topic, messages in result.records[1].items():
        for place, message in list(enumerate(messages))[len(result.records[0].get(topic, ())) :]:
            found = _SOURCE.search(message.value or "")
            if found:
                more.append((found[1], int(found[2]), topic, place, message))
                break
    if not more:
        return "  rowtide has nothing more"
    file, pos, topic, place, message = min(more, key=lambda one: one[:2])
    sql = sql_of(Difference(topic, place, (), "", "", message), result)
    table = topic.rsplit(".", maxsplit=1)[-1]
    changes = [
        s for s in result.setup + result.stream if not s.error and s.text.startswith(("CREATE", "ALTER", "RENAME"))
    ]
    before = [s.text for s in changes if (s.file, s.pos) <= (file, pos) and (table in s.text or "RENAME" in s.text)]
    return "\n".join(
        [
            f"  rowtide continues at {file}:{pos} with {topic} {place}",
            *(f"  SQL       {s.text[:_LONGEST]}" for s in sql[-3:]),
        ]
        + [f"  before    {text[:_LONGEST]}" for text in before[-5:]]
    )


def keep(result: RoundResult, folder: Path) -> None:
    """Write the statements and messages of a round as a case that can be recorded."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, statements in (("setup", result.setup), ("stream", result.stream)):
        lines = [f"-- {s.error}: {s.text!r}" if s.error else f"{s.text};" for s in statements]
        (folder / f"{name}.sql").write_text("\n".join(lines) + "\n")
    (folder / "options.json").write_text(json.dumps(result.options, indent=1))
    for side, topics in zip(("debezium", "rowtide"), result.records, strict=True):
        with (folder / f"{side}.jsonl").open("w") as file:
            for topic in sorted(topics):
                for message in topics[topic]:
                    line = {"topic": topic, "key": message.key, "value": message.value, "headers": message.headers}
                    file.write(json.dumps(line, ensure_ascii=False, default=str) + "\n")
    for side, why in zip(("debezium", "rowtide"), result.stopped, strict=True):
        if why:
            (folder / f"{side}.stopped").write_text(why)
