"""The structure of databases and tables, as immutable values.

A column has two sides. What the server knows (its information_schema) is the truth by which rows are decoded. What
Debezium makes of the statement's text, the ``form``, decides how records look: it is written to the schema history
as ``tableChanges``, and schemas of records are derived from it. Both change together, statement by statement.
"""

from dataclasses import dataclass, field, replace
from enum import Enum


class DefaultKind(Enum):
    """What a column's default is.

    ``NOW`` is CURRENT_TIMESTAMP as a property of the column, which the servers treat apart from expressions. MySQL
    keeps it when the default is dropped: then its text is ``None``.
    """

    NONE = "none"
    NULL = "null"
    LITERAL = "literal"
    NOW = "now"
    EXPRESSION = "expression"


class Extra(Enum):
    """What a system column of MariaDB stands for."""

    ROW_START = "row start"
    ROW_END = "row end"


@dataclass(frozen=True, slots=True)
class TableId:
    """The name of a table: its database and its own name, as the server stores them."""

    database: str
    table: str

    def __str__(self) -> str:
        return f"{self.database}.{self.table}"


@dataclass(frozen=True, slots=True)
class Generation:
    """The expression of a generated column, and whether its value is stored."""

    expression: str
    stored: bool


@dataclass(frozen=True, slots=True)
class DebeziumColumn:
    """A column as Debezium describes it in ``tableChanges``; its position is that in the table.

    Attributes:
        name: as in the statement.
        jdbc_type: number of ``java.sql.Types``.
        type_name: the type's words as written, in upper case: ``BOOL``, ``INT UNSIGNED``, ``DOUBLE PRECISION``.
        type_expression: the same words (Debezium keeps two fields).
        native_type: the driver's number, ``None`` for MySQL and MariaDB.
        charset_name: the character set that decides about text, ``None`` if none.
        length, scale: as written, ``None`` where the type has none.
        optional: whether NULL is allowed.
        auto_incremented, generated: AUTO_INCREMENT; both are true for ON UPDATE CURRENT_TIMESTAMP as well.
        has_default: whether there is a default, NULL included.
        default_expression: its text, ``None`` for NULL and for expressions.
        enum_values: labels of ENUM and SET with their quotes.
        comment: ``None`` if there is none.
        hexadecimal: whether the text is only that of a hexadecimal literal, as long as the server's column, which has
            the value, is not known beside it.
    """

    name: str
    jdbc_type: int
    type_name: str
    type_expression: str
    native_type: int | None = None
    charset_name: str | None = None
    length: int | None = None
    scale: int | None = None
    optional: bool = True
    auto_incremented: bool = False
    generated: bool = False
    has_default: bool = False
    default_expression: str | None = None
    enum_values: tuple[str, ...] = ()
    comment: str | None = None
    hexadecimal: bool = False


@dataclass(frozen=True, slots=True)
class DebeziumTable:
    """A table as Debezium describes it, without its columns.

    Attributes:
        default_charset_name: ``None`` if not known.
        primary_key: names of the columns of the record's key: the primary key, else a unique key of NOT NULL columns.
        comment: ``None`` if there is none.
        attributes: further pairs, kept as read.
    """

    default_charset_name: str | None = None
    primary_key: tuple[str, ...] = ()
    comment: str | None = None
    attributes: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Column:
    """A column as the server has it.

    Attributes:
        name: its name.
        column_type: full type as information_schema writes it: ``int unsigned``, ``enum('a','b')``, ``varchar(10)``.
        data_type: first word of it: ``int``, ``enum``, ``varchar``.
        nullable: whether NULL is allowed.
        default_kind: whether there is a default and which.
        default: text of a literal or of an expression, else ``None``; binary digits for BIT, for binary columns its
            bytes as Latin-1 characters.
        on_update: fractional digits of ON UPDATE CURRENT_TIMESTAMP, ``None`` without it.
        auto_increment: AUTO_INCREMENT.
        generation: for generated columns.
        invisible: INVISIBLE.
        charset, collation: of text columns, ENUM and SET; ``None`` else.
        comment: ``""`` if none.
        length: characters (text), bytes (binary), bits (BIT), display width or dimensions as declared; else ``None``.
        scale: digits after the point (DECIMAL, FLOAT(M,D)).
        fsp: fractional digits of TIME, DATETIME, TIMESTAMP; 0 for other types.
        unsigned, zerofill: of numbers.
        labels: of ENUM and SET.
        srid: of geometry columns with SRID.
        row: for the row_start and row_end columns of a system-versioned table.
        without_system_versioning: MariaDB's WITHOUT SYSTEM VERSIONING of a column.
        not_secondary: MySQL's NOT SECONDARY.
        compressed: MariaDB's COMPRESSED.
        debezium: what Debezium records of it.
    """

    name: str
    column_type: str
    data_type: str
    nullable: bool = True
    default_kind: DefaultKind = DefaultKind.NONE
    default: str | None = None
    on_update: int | None = None
    auto_increment: bool = False
    generation: Generation | None = None
    invisible: bool = False
    charset: str | None = None
    collation: str | None = None
    comment: str = ""
    length: int | None = None
    scale: int | None = None
    fsp: int = 0
    unsigned: bool = False
    zerofill: bool = False
    labels: tuple[str, ...] = ()
    srid: int | None = None
    row: Extra | None = None
    without_system_versioning: bool = False
    not_secondary: bool = False
    compressed: bool = False
    debezium: DebeziumColumn | None = None

    @property
    def sets_itself(self) -> bool:
        """Whether it is AUTO_INCREMENT, or for the beginning or end of a row's time."""
        return self.auto_increment or self.row is not None


@dataclass(frozen=True, slots=True)
class KeyPart:
    """One part of an index: a column, a prefix of one, or an expression (then ``column`` is ``""``).

    ``period`` marks a period's name (MariaDB's WITHOUT OVERLAPS), and the two columns for which it stands.
    """

    column: str
    length: int | None = None
    expression: str | None = None
    descending: bool = False
    period: bool = False

    def __str__(self) -> str:
        if self.expression is not None:
            return f"({self.expression})"
        return f"{self.column}({self.length})" if self.length is not None else self.column


@dataclass(frozen=True, slots=True)
class Index:
    """An index. The primary key is named ``PRIMARY``.

    ``kind`` is ``unique``, ``key``, ``fulltext``, ``spatial``, ``vector`` or ``primary``. An index is ``generated`` if
    a foreign key made it; another one that begins with its columns takes its place. A unique one of MariaDB is
    ``hashed`` if it is kept, or was when it was made, by a hash in a hidden column.
    """

    name: str
    parts: tuple[KeyPart, ...]
    kind: str = "key"
    generated: bool = False
    hashed: bool = False

    @property
    def unique(self) -> bool:
        """Whether it is a unique index or the primary key."""
        return self.kind in ("unique", "primary")


@dataclass(frozen=True, slots=True)
class Constraint:
    """A CHECK, FOREIGN KEY or PERIOD: kept because it can be dropped by name, and because columns are renamed in it.

    ``kind`` is ``check``, ``foreign`` or ``period`` (then ``columns`` are its start and its end).
    """

    name: str
    kind: str
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Table:
    """A table at one moment.

    Attributes:
        id: its name.
        columns: in their order, without hidden ones.
        indexes: in the order of their making, the primary key among them.
        charset, collation: of the table.
        comment: ``""`` if none.
        engine: as written, ``""`` if not known.
        kind: ``BASE TABLE``, ``SYSTEM VERSIONED`` or ``SEQUENCE``, as information_schema says.
        constraints: CHECK and FOREIGN KEY.
        hidden: columns that rows have and information_schema does not show, after ``columns`` (MariaDB: implicit
            row_start and row_end, the hash of a long unique key).
        complete: false if only ``tableChanges`` were known: then collation, unique keys, generation and the like are
            not, but types, names, order and character sets are.
        debezium: what Debezium records of it.
    """

    id: TableId
    columns: tuple[Column, ...]
    indexes: tuple[Index, ...] = ()
    charset: str = ""
    collation: str = ""
    comment: str = ""
    engine: str = ""
    kind: str = "BASE TABLE"
    constraints: tuple[Constraint, ...] = ()
    hidden: tuple[Column, ...] = ()
    complete: bool = True
    debezium: DebeziumTable = field(default_factory=DebeziumTable)

    @property
    def primary_key(self) -> tuple[str, ...]:
        """Names of the primary key's columns, ``()`` without one."""
        for index in self.indexes:
            if index.kind == "primary":
                return tuple(part.column for part in index.parts)
        return ()

    @property
    def row_columns(self) -> tuple[Column, ...]:
        """The columns of a row image, hidden ones included."""
        return self.columns + self.hidden

    def column(self, name: str) -> Column | None:
        """The column of that name (case does not matter), or ``None``."""
        wanted = name.lower()
        return next((c for c in self.columns if c.name.lower() == wanted), None)

    def renamed(self, new: TableId) -> "Table":
        """The same table under another name."""
        return replace(self, id=new)


@dataclass(frozen=True, slots=True)
class Database:
    """A database: its name and what tables inherit. ``debezium_charset`` is the character set as Debezium tracks it."""

    name: str
    charset: str
    collation: str
    debezium_charset: str | None = None
