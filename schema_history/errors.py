"""What can go wrong with structures and their history.

SchemaHistoryError
├── UnparsedDdl          a statement that is not understood; never a guess in its place
├── InconsistentDdl      a statement that cannot be applied to the structures that are known
└── DamagedHistory       a history record that cannot be read
"""

from rowtide.schema_history.model import TableId


class SchemaHistoryError(Exception):
    """Base of all errors of this package."""


class UnparsedDdl(SchemaHistoryError):
    """A statement was not understood at one place of its text.

    Attributes:
        statement: the whole statement.
        reason: what was expected or not known there.
        offset: index into ``statement``, in characters.
        position: where the statement stands in the binlog, as text, or ``""``.
    """

    def __init__(self, statement: str, reason: str, offset: int = 0, position: str = "") -> None:
        self.statement = statement
        self.reason = reason
        self.offset = offset
        self.position = position
        super().__init__(statement, reason, offset, position)

    @property
    def line(self) -> int:
        """Line of the place, from 1."""
        return self.statement.count("\n", 0, self.offset) + 1

    @property
    def column(self) -> int:
        """Column of the place in its line, from 1."""
        return self.offset - (self.statement.rfind("\n", 0, self.offset) + 1) + 1

    @property
    def near(self) -> str:
        """Up to 60 characters of the statement from the place on."""
        return self.statement[self.offset : self.offset + 60]

    def __str__(self) -> str:
        at = f" at {self.position}" if self.position else ""
        near = repr(self.near) if self.near else "the end of the statement"
        return (
            f"DDL statement not understood{at}: {self.reason}, line {self.line} column {self.column}, near {near}. "
            f"Set schema.history.internal.skip.unparseable.ddl=true to go on without it. Statement: {self.statement}"
        )


class InconsistentDdl(SchemaHistoryError):
    """A statement is understood, but speaks of a table, column or database that is not known.

    Attributes:
        statement: the whole statement.
        reason: what is missing or in the way.
        position: where the statement stands in the binlog, as text, or ``""``.
        table_id: the table that is not known, ``None`` if it is not about one.
    """

    def __init__(self, statement: str, reason: str, position: str = "", table_id: TableId | None = None) -> None:
        self.statement = statement
        self.reason = reason
        self.position = position
        self.table_id = table_id
        super().__init__(statement, reason, position, table_id)

    def __str__(self) -> str:
        at = f" at {self.position}" if self.position else ""
        return (
            f"DDL statement does not fit the known structure{at}: {self.reason}. Some change did not reach the schema "
            f"history; snapshot.mode=recovery rebuilds it. Statement: {self.statement}"
        )


class DamagedHistory(SchemaHistoryError):
    """A record of the schema history cannot be read; the message says which and why."""
