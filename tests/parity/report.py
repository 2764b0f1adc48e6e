"""Telling differences with what is around them."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.parity.compare import Difference
from tests.parity.rounds import Played, Statement

__all__ = ["column_of", "keep", "missed", "signature", "sql_of", "told"]

_SOURCE = re.compile(r'"file":"([^"]+)","pos":(\d+)')
_LONGEST = 700


def column_of(difference: Difference, played: Played) -> tuple[str, str]:
    """The column that a difference is in, and its type; empty if it is in none."""
    table = difference.topic.rsplit(".", maxsplit=1)[-1]
    for part in reversed(difference.path):
        name = part.partition(":")[2] or part
        for (of, column), kind in reversed(played.types.items()):
            if _plain(column) == _plain(name) and _plain(of) == table:
                return name, kind
    return "", ""


def _plain(name: str) -> str:
    """A name as topics and fields may have it."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)


def sql_of(difference: Difference, played: Played) -> list[Statement]:
    """The statements that made a message: those between the place behind which it stands and the next."""
    found = _SOURCE.search(difference.message.value or "")
    if not found:
        return []
    file, pos = found[1], int(found[2])
    waiting: list[Statement] = []
    last = (played.setup or played.stream)[-1]
    for statement in played.stream:
        if (statement.file, statement.pos) == (last.file, last.pos):
            waiting.append(statement)
            continue
        if (statement.file == file and statement.pos > pos) or statement.file > file:
            return [*waiting, statement]
        waiting, last = [], statement
    return []


def signature(difference: Difference, played: Played) -> str:
    """What differences of the same kind have in common."""
    column, kind = column_of(difference, played)
    path = [re.sub(r"^\d+(:.*)?$", "#", part) for part in difference.path if part != column]
    return f"{'.'.join(path)} of {re.sub(r'[(][^)]*[)]', '()', kind)}"


def told(difference: Difference, played: Played) -> str:
    """A difference in words."""
    column, kind = column_of(difference, played)
    lines = [
        f"{difference.topic} message {difference.place}, field {'.'.join(difference.path)}",
        f"  Debezium  {difference.want[:_LONGEST]}",
        f"  rowtide   {difference.have[:_LONGEST]}",
    ]
    if column:
        lines.append(f"  column    {column} {kind}")
    lines += [
        f"  SQL       {statement.text[:_LONGEST]}{f'   -- {statement.error}' if statement.error else ''}"
        for statement in sql_of(difference, played)[-6:]
    ]
    return "\n".join(lines)


def missed(played: Played) -> str:
    """What rowtide wrote first of all that Debezium, which stopped, did not: with its SQL, and the table's changes."""
    more = []
    for topic, messages in played.records[1].items():
        for place, message in list(enumerate(messages))[len(played.records[0].get(topic, ())) :]:
            found = _SOURCE.search(message.value or "")
            if found:
                more.append((found[1], int(found[2]), topic, place, message))
                break
    if not more:
        return "  rowtide has nothing more"
    file, pos, topic, place, message = min(more, key=lambda one: one[:2])
    sql = sql_of(Difference(topic, place, (), "", "", message), played)
    table = topic.rsplit(".", maxsplit=1)[-1]
    changes = [
        s for s in played.setup + played.stream if not s.error and s.text.startswith(("CREATE", "ALTER", "RENAME"))
    ]
    before = [s.text for s in changes if (s.file, s.pos) <= (file, pos) and (table in s.text or "RENAME" in s.text)]
    return "\n".join(
        [
            f"  rowtide goes on at {file}:{pos} with {topic} {place}",
            *(f"  SQL       {s.text[:_LONGEST]}" for s in sql[-3:]),
        ]
        + [f"  before    {text[:_LONGEST]}" for text in before[-5:]]
    )


def keep(played: Played, folder: Path) -> None:
    """Write a round's statements and messages, as a case that can be recorded."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, statements in (("setup", played.setup), ("stream", played.stream)):
        lines = [f"-- {s.error}: {s.text!r}" if s.error else f"{s.text};" for s in statements]
        (folder / f"{name}.sql").write_text("\n".join(lines) + "\n")
    (folder / "options.json").write_text(json.dumps(played.options, indent=1))
    for side, topics in zip(("debezium", "rowtide"), played.records, strict=True):
        with (folder / f"{side}.jsonl").open("w") as file:
            for topic in sorted(topics):
                for message in topics[topic]:
                    line = {"topic": topic, "key": message.key, "value": message.value, "headers": message.headers}
                    file.write(json.dumps(line, ensure_ascii=False, default=str) + "\n")
    for side, why in zip(("debezium", "rowtide"), played.stopped, strict=True):
        if why:
            (folder / f"{side}.stopped").write_text(why)
