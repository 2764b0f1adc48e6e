"""The event type and the table that Canal reads from a statement.

The rules are those of Canal's ``DruidDdlParser``: the first table or action of a statement counts; statements that it
reads but does not classify have no entry. A statement that its parser cannot read is a QUERY without a table; rowtide
names the table if the statement concerns one.
"""

import re
from dataclasses import dataclass
from typing import Final

from rowtide.canal.entries.entry import EventType
from rowtide.schema_history.ddl import statements as ddl
from rowtide.schema_history.ddl.statements import Body, TableName


@dataclass(frozen=True, slots=True)
class Classified:
    """The properties that Canal reads from a statement. Without a table, ``database`` and ``table`` are ``None``."""

    type: EventType
    database: str | None = None
    table: str | None = None

    @property
    def dml(self) -> bool:
        """Whether the statement changes rows."""
        return self.type in (EventType.INSERT, EventType.UPDATE, EventType.DELETE)


_QUERY: Final = Classified(EventType.QUERY)
_INDEXES = frozenset({"primary", "unique", "key", "fulltext", "spatial", "vector"})
_UNREAD = re.compile(r"create (?:definer )?(?:aggregate )?function|repair\b.*")
"""Classes of statements that change no structure and that Canal's parser cannot read."""
_NO_ITEM = frozenset({"PARTITION BY", "REMOVE"})
"""Actions of ALTER TABLE that Canal's parser does not list."""
_GAP = r"(?:\s|/\*.*?\*/|--\s[^\n]*\n|#[^\n]*\n)"
_DATABASE = re.compile(
    rf"{_GAP}*(?:create|drop){_GAP}+(?:or{_GAP}+replace{_GAP}+)?(?:database|schema){_GAP}+"
    rf"(?:if{_GAP}+(?:not{_GAP}+)?exists{_GAP}+)?(`(?:[^`]|``)*`|\"[^\"]*\"|[^\s;]+)",
    re.IGNORECASE | re.DOTALL,
)
_ALTER_SCHEMA = re.compile(rf"{_GAP}*alter{_GAP}+schema\b", re.IGNORECASE | re.DOTALL)
_SEQUENCE = re.compile(r"\bsequence\b", re.IGNORECASE)
_NAME = r"(?:`((?:[^`]|``)*)`|([\w$]+))"
_DML = re.compile(
    rf"{_GAP}*(?:(insert)(?:{_GAP}+(?:low_priority|delayed|high_priority|ignore))*(?:{_GAP}+into)?"
    rf"|(update)(?:{_GAP}+(?:low_priority|ignore))*"
    rf"|(delete)(?:{_GAP}+(?:low_priority|quick|ignore))*{_GAP}+from){_GAP}+{_NAME}(?:{_GAP}*\.{_GAP}*{_NAME})?",
    re.IGNORECASE | re.DOTALL,
)


def classify(body: Body, sql: str, database: str) -> Classified | None:
    """Classify a parsed statement; return ``None`` if it has no entry.

    Args:
        body: the statement.
        sql: its text.
        database: the session's default database.
    """
    match body:
        case ddl.CreateTable(name=name) | ddl.CreateTableLike(name=name):
            return _of(EventType.CREATE, name, database)
        case ddl.AlterTable(name=name, actions=actions):
            return _alter(name, actions, database)
        case ddl.CreateIndex(table=name):
            return _of(EventType.CINDEX, name, database)
        case ddl.DropIndex(table=name):
            return _of(EventType.DINDEX, name, database)
        case ddl.DropTable(names=names, prefix=prefix):
            if _SEQUENCE.search(prefix):
                return None
            return _of(EventType.ERASE, names[0], database)
        case ddl.TruncateTable(name=name):
            return _of(EventType.TRUNCATE, name, database)
        case ddl.RenameTable(pairs=pairs):
            return _of(EventType.RENAME, pairs[0][1], database)
        case ddl.CreateDatabase() | ddl.DropDatabase():
            found = _DATABASE.match(sql)
            return Classified(EventType.QUERY, found[1] if found else body.name)
        case ddl.AlterDatabase():
            return _QUERY if _ALTER_SCHEMA.match(sql) else None
        case ddl.NoStructure(what=what):
            return classify_dml(sql, database) or (_QUERY if _UNREAD.fullmatch(what) else None)
        case _:
            return None


def classify_dml(sql: str, database: str | None) -> Classified | None:
    """Classify an INSERT, UPDATE or DELETE; return ``None`` for other statements."""
    found = _DML.match(sql)
    if found is None:
        return None
    kind = EventType.INSERT if found[1] else EventType.UPDATE if found[2] else EventType.DELETE
    first, second = _unquoted(found[4], found[5]), _unquoted(found[6], found[7])
    return Classified(kind, database, first) if second is None else Classified(kind, first, second)


def _unquoted(quoted: str | None, plain: str | None) -> str | None:
    return plain if quoted is None else quoted.replace("``", "`")


def _of(kind: EventType, name: TableName, database: str) -> Classified:
    return Classified(kind, name.database or database, name.table)


def _alter(name: TableName, actions: tuple[ddl.Action, ...], database: str) -> Classified | None:
    if any(isinstance(action, ddl.SetOptions) for action in actions):
        return _of(EventType.ALTER, name, database)
    for action in actions:
        match action:
            case ddl.RenameTo(name=new):
                return _of(EventType.RENAME, new, database)
            case ddl.AddKey(element=ddl.IndexDef(kind=kind)) if kind in _INDEXES:
                return _of(EventType.CINDEX, name, database)
            case ddl.AddKey(element=ddl.ForeignKeyDef() | ddl.CheckDef()):
                continue
            case ddl.Other(what=what) if what in _NO_ITEM:
                continue
            case ddl.DropKey(kind="index" | "constraint"):
                return _of(EventType.DINDEX, name, database)
            case _:
                return _of(EventType.ALTER, name, database)
    return None
