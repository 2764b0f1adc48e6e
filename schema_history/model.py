"""The structure of databases and tables, as immutable values.

A column is described twice. ``Column`` has its properties in the server's information_schema, by which rows are
decoded. ``DebeziumColumn`` has the description that Debezium derives from the text of the statements: it is written to
the schema history as ``tableChanges``, and the schemas of records are derived from it. A statement changes both
together.
"""

from dataclasses import dataclass, field, replace
from enum import Enum


class DefaultKind(Enum):
    """The kind of a column's default.

    ``NOW`` is CURRENT_TIMESTAMP as a property of the column, which the servers distinguish from expressions. MySQL
    keeps the property when the default is dropped: then the text of the default is ``None``.
    """

    NONE = "none"
    NULL = "null"
    LITERAL = "literal"
    NOW = "now"
    EXPRESSION = "expression"


class Extra(Enum):
    """The role of a system column of MariaDB."""

    ROW_START = "row start"
    ROW_END = "row end"


@dataclass(frozen=True, slots=True)
class TableId:
    """The name of a table and of its database, as the server stores them."""

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
    """A column as Debezium describes it in ``tableChanges``, without its position in the table.

    Attributes:
        name: its name, as written in the statement.
        jdbc_type: number of ``java.sql.Types``.
        type_name: the type as written, in upper case: ``BOOL``, ``INT UNSIGNED``, ``DOUBLE PRECISION``.
        type_expression: the same text (Debezium has two fields).
        native_type: the driver's number, ``None`` for MySQL and MariaDB.
        charset_name: its character set; ``None`` if it has none.
        length, scale: as written; ``None`` if the type has none.
        optional: whether NULL is allowed.
        auto_incremented, generated: AUTO_INCREMENT; both are true for ON UPDATE CURRENT_TIMESTAMP as well.
        has_default: whether it has a default, NULL included.
        default_expression: text of the default; ``None`` for NULL and for expressions.
        enum_values: labels of ENUM and SET, with their quotes.
        comment: ``None`` if there is none.
        hexadecimal: whether ``default_expression`` is the text of a hexadecimal literal; it is replaced by the value
            as soon as the server's column is known.
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
        default_charset_name: its default character set; ``None`` if not known.
        primary_key: columns of the record's key: the primary key, or else a unique key of NOT NULL columns.
        comment: ``None`` if there is none.
        attributes: further pairs of name and value, kept as they were read.
    """

    default_charset_name: str | None = None
    primary_key: tuple[str, ...] = ()
    comment: str | None = None
    attributes: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Column:
    """A column as the server's information_schema describes it.

    Attributes:
        name: its name.
        column_type: full type as information_schema shows it: ``int unsigned``, ``enum('a','b')``, ``varchar(10)``.
        data_type: its first word: ``int``, ``enum``, ``varchar``.
        nullable: whether NULL is allowed.
        default_kind: whether it has a default, and of which kind.
        default: text of the literal or expression, or ``None``; for BIT its binary digits, for binary columns its
            bytes as Latin-1 characters.
        on_update: fractional digits of ON UPDATE CURRENT_TIMESTAMP; ``None`` without it.
        auto_increment: whether it is AUTO_INCREMENT.
        generation: expression of a generated column.
        invisible: whether it is INVISIBLE.
        charset, collation: those of text columns, ENUM and SET; otherwise ``None``.
        comment: ``""`` if none.
        length: characters (text), bytes (binary), bits (BIT), display width or dimensions; otherwise ``None``.
        scale: digits after the point (DECIMAL, FLOAT(M,D)).
        fsp: fractional digits of TIME, DATETIME, TIMESTAMP; 0 for other types.
        unsigned, zerofill: properties of numbers.
        labels: labels of ENUM and SET.
        srid: SRID of a geometry column.
        row: role of a row_start or row_end column of a system-versioned table.
        without_system_versioning: MariaDB's WITHOUT SYSTEM VERSIONING of a column.
        not_secondary: MySQL's NOT SECONDARY.
        compressed: MariaDB's COMPRESSED.
        debezium: its Debezium description.
        written: the type as the statement spells it, in lower case and without character set and labels:
            ``dec(10,2) unsigned``, ``bool``; ``None`` if only ``tableChanges`` were available. Two columns that differ
            only in this are equal.
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
    written: str | None = field(default=None, compare=False)

    @property
    def sets_itself(self) -> bool:
        """Whether the server sets its value: AUTO_INCREMENT, or the start or end of a row's validity."""
        return self.auto_increment or self.row is not None


@dataclass(frozen=True, slots=True)
class KeyPart:
    """One part of an index: a column, a prefix of a column, or an expression (then ``column`` is ``""``).

    ``period`` marks the name of a period (MariaDB's WITHOUT OVERLAPS), and the period's two columns.
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
    a foreign key created it; another index that starts with its columns replaces it. A unique index of MariaDB is
    ``hashed`` if it is implemented, or was when it was created, by a hash in a hidden column.
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
class Reference:
    """The reference of a foreign key, as in its statement: a later rename of the parent is not followed.

    Attributes:
        table: the parent.
        columns: of the parent; ``()`` for its primary key.
        on_delete, on_update: ``CASCADE``, ``SET NULL``, ``SET DEFAULT``, ``RESTRICT``, ``NO ACTION`` or ``""``.
    """

    table: TableId
    columns: tuple[str, ...] = ()
    on_delete: str = ""
    on_update: str = ""


@dataclass(frozen=True, slots=True)
class Constraint:
    """A CHECK, FOREIGN KEY or PERIOD: needed because it can be dropped by name, and because its columns can be renamed.

    ``kind`` is ``check``, ``foreign`` (with its ``reference``) or ``period`` (then ``columns`` are its start and end).
    """

    name: str
    kind: str
    columns: tuple[str, ...] = ()
    reference: Reference | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """A table at one position.

    Attributes:
        id: its name.
        columns: its columns in order, without hidden ones.
        indexes: its indexes in order of creation, the primary key included.
        charset, collation: its defaults for new columns.
        comment: ``""`` if none.
        engine: its storage engine as written, ``""`` if not known.
        kind: ``BASE TABLE``, ``SYSTEM VERSIONED`` or ``SEQUENCE``, as in information_schema.
        constraints: CHECK, FOREIGN KEY and PERIOD.
        hidden: columns of row images that information_schema does not show, after ``columns`` (MariaDB: implicit
            row_start and row_end, the hash of a long unique key).
        complete: false if only ``tableChanges`` were available: then names, types, order and character sets of the
            columns are known, but not collations, unique keys, generation expressions and the like.
        debezium: its Debezium description.
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
    def row_key(self) -> tuple[str, ...]:
        """Names of the columns that distinguish rows: the primary key, or else a unique key of NOT NULL columns.

        ``()`` without one. Debezium's ``primary_key`` may have a unique key that is nullable, or was dropped.
        """
        for index in sorted(self.indexes, key=lambda index: index.kind != "primary"):
            columns = [self.column(part.column) for part in index.parts]
            if index.unique and all(column is not None and not column.nullable for column in columns):
                return tuple(column.name for column in columns if column is not None)
        return ()

    @property
    def row_columns(self) -> tuple[Column, ...]:
        """The columns of a row image, hidden columns included."""
        return self.columns + self.hidden

    def column(self, name: str) -> Column | None:
        """Return the column of that name, compared without case, or ``None``."""
        key = name.lower()
        return next((c for c in self.columns if c.name.lower() == key), None)

    def renamed(self, new: TableId) -> "Table":
        """Return the same table under another name. Names of constraints generated by the server change with it."""
        prefixes = tuple(f"{self.id.table}_{kind}_" for kind in ("ibfk", "chk"))
        constraints = tuple(
            replace(one, name=new.table + one.name[len(self.id.table) :]) if one.name.startswith(prefixes) else one
            for one in self.constraints
        )
        return replace(self, id=new, constraints=constraints)


@dataclass(frozen=True, slots=True)
class Database:
    """A database: its name, and the properties that its tables inherit.

    ``debezium_charset`` is the character set that Debezium would assume.
    """

    name: str
    charset: str
    collation: str
    debezium_charset: str | None = None
