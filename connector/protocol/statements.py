"""Classifies the statements of Query events: those that begin, end or prepare a transaction, and possible DDL."""

import re

from rowtide.connector.protocol.events.classes import Query
from rowtide.schema_history.server.query_event import QueryEvent

FL_PREPARED_XA = 64
"""Flag of a MariaDB GTID event: the transaction is the first part of an XA transaction."""

_NO_EFFECT = 0x02 | 0x08
"""FL_START_ALTER_E1 and FL_ROLLBACK_ALTER_E1: such an ALTER takes effect at its FL_COMMIT_ALTER_E1."""
_FIRST_PART = re.compile(rb"XA\s+START\s+(\S+)", re.IGNORECASE)
_SECOND_PART = re.compile(rb"XA\s+(COMMIT|ROLLBACK)\s+(\S+)(\s+ONE\s+PHASE)?", re.IGNORECASE)


def is_begin(statement: bytes) -> bool:
    """Return whether a statement, in upper case, begins a transaction."""
    return statement.startswith(b"BEGIN")


def is_xa(statement: bytes) -> bool:
    """Return whether a statement, in upper case, is an XA statement."""
    return statement.startswith(b"XA ")


def is_end(statement: bytes) -> bool:
    """Return whether a statement, in upper case, ends a transaction."""
    return statement.startswith(b"COMMIT") or statement.rstrip(b" ;") == b"ROLLBACK"


def query_event(event: Query, position: str) -> QueryEvent:
    """Return the statement of a Query event, in the form of the schema history."""
    status = event.status
    flags3, _ = status.mariadb_gtid_flags3 or (0, None)
    return QueryEvent(
        event.statement,
        database=event.database,
        sql_mode=status.sql_mode,
        charset=status.charset,
        flags2=status.flags2,
        explicit_defaults_for_timestamp=status.explicit_defaults_for_timestamp,
        default_collation_for_utf8mb4=status.default_collation_for_utf8mb4,
        character_set_collations=status.character_set_collations or (),
        charset_database=status.charset_database,
        thread_specific=bool(event.header.flags & 0x4),
        thread_id=event.thread_id,
        xid=status.xid,
        error_code=event.error_code,
        position=position,
        effective=not flags3 & _NO_EFFECT,
    )


def xa_start(statement: bytes) -> str:
    """Return the XA transaction that a statement starts, ``""`` if it starts none."""
    found = _FIRST_PART.match(statement.strip())
    return "" if found is None else _identifier(found[1])


def xa_end(statement: bytes) -> tuple[str, bool]:
    """Return the XA transaction that a statement ends, ``""`` if it ends none, and whether it commits it."""
    found = _SECOND_PART.match(statement.strip())
    if found is None:
        return "", False
    return _identifier(found[2]), found[1].upper() == b"COMMIT"


def _identifier(text: bytes) -> str:
    return text.decode("ascii", "replace").lower().replace("x'", "X'")
