"""Errors of table structures and their history.

SchemaHistoryError
├── UnparsedStatement    a statement cannot be parsed; it is never guessed or dropped silently
│   └── UncertainDdl     a statement may concern a temporary table of the same name
├── InconsistentDdl      a statement cannot be applied to the known structures
└── DamagedHistory       a history record cannot be parsed
"""

import re

from rowtide.errors import ConnectorError

_LITERAL = re.compile(
    r"""
    (?P<keep>`[^`]*`|/\*M?!\d*|\*/)                 # quoted names, and the frame of executable comments
    | (?P<comment>/\*(?!M?!).*?(?:\*/|\Z)|\#[^\n]*|--(?=\s|\Z)[^\n]*)
    | \b(?:[xXbBnN]|_[a-z0-9]+\s*)?'(?:[^'\\]|'')*(?:'|\Z)
    | '(?:[^'\\]|'')*(?:'|\Z)
    | "(?:[^"\\]|"")*(?:"|\Z)
    | (?P<escaped>['"])
    | (?<![\w$.`])(?:0[xX][0-9a-fA-F]+|0b[01]+|\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+)(?![\w$])
    """,
    re.DOTALL | re.VERBOSE,
)


def without_literals(sql: str) -> str:
    """Return a statement with ``?`` for each string and number, and without comments.

    The statement need not be valid. A string with a backslash ends differently under ``NO_BACKSLASH_ESCAPES``, so
    everything after the start of such a string is omitted.
    """
    parts: list[str] = []
    end = 0
    for match in _LITERAL.finditer(sql):
        parts.append(sql[end : match.start()])
        end = match.end()
        if match["escaped"]:
            parts.append("? …")
            end = len(sql)
            break
        parts.append(match["keep"] or (" " if match["comment"] else "?"))
    parts.append(sql[end:])
    return "".join(parts)


class SchemaHistoryError(ConnectorError):
    """Base class of all errors of this package.

    ``str()`` of an error never contains a literal of a statement, which may be data; see `message`.
    """

    def message(self, *, literals: bool) -> str:
        """Return the text of the error, with the statement as it was written if ``literals`` is true."""
        return str(self)


class UnparsedStatement(SchemaHistoryError):
    """A statement cannot be parsed.

    Attributes:
        statement: the whole statement.
        reason: what was expected at the offset.
        offset: index into ``statement``, in characters.
        position: position of the statement in the binlog, or ``""``.
    """

    def __init__(self, statement: str, reason: str, offset: int = 0, position: str = "") -> None:
        self.statement = statement
        self.reason = reason
        self.offset = offset
        self.position = position
        super().__init__(statement, reason, offset, position)

    @property
    def line(self) -> int:
        """Line of the offset, from 1."""
        return self.statement.count("\n", 0, self.offset) + 1

    @property
    def column(self) -> int:
        """Column of the offset in its line, from 1."""
        return self.offset - (self.statement.rfind("\n", 0, self.offset) + 1) + 1

    @property
    def near(self) -> str:
        """Up to 60 characters of the statement from the offset on."""
        return self.statement[self.offset : self.offset + 60]

    def __str__(self) -> str:
        return self.message(literals=False)

    def message(self, *, literals: bool) -> str:
        """Return the text of the error; without literals, it shows line and column instead of the text at the place."""
        at = f" at {self.position}" if self.position else ""
        near = "" if self.near else ", the end of the statement"
        if literals and self.near:
            near = f", near {self.near!r}"
        return (
            f"DDL statement not understood{at}: {self.reason}, line {self.line} column {self.column}{near}. "
            "Set schema.history.internal.skip.unparseable.ddl=true to skip it. Statement: "
            f"{self.statement if literals else without_literals(self.statement)}"
        )


class UncertainDdl(UnparsedStatement):
    """A statement concerns a table, or a temporary table of the same name that is older than the schema history."""

    def message(self, *, literals: bool) -> str:
        """Return the text of the error."""
        at = f" at {self.position}" if self.position else ""
        return (
            f"DDL statement{at} may concern a temporary table that is older than the schema history: {self.reason}. "
            "Set schema.history.internal.skip.unparseable.ddl=true to skip it. Statement: "
            f"{self.statement if literals else without_literals(self.statement)}"
        )


class InconsistentDdl(SchemaHistoryError):
    """A statement can be parsed, but names a table, column or database that is not known.

    Attributes:
        statement: the whole statement.
        reason: why it cannot be applied.
        position: position of the statement in the binlog, or ``""``.
    """

    def __init__(self, statement: str, reason: str, position: str = "") -> None:
        self.statement = statement
        self.reason = reason
        self.position = position
        super().__init__(statement, reason, position)

    def __str__(self) -> str:
        return self.message(literals=False)

    def message(self, *, literals: bool) -> str:
        """Return the text of the error."""
        at = f" at {self.position}" if self.position else ""
        return (
            f"DDL statement does not fit the known structure{at}: {self.reason}. A change is missing from the schema "
            "history; snapshot.mode=recovery rebuilds it. Statement: "
            f"{self.statement if literals else without_literals(self.statement)}"
        )


class DamagedHistory(SchemaHistoryError):
    """A record of the schema history cannot be parsed; the message says which one and why."""
