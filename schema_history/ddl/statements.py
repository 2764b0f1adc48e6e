"""The syntax trees of statements: their text, without their effect on a table."""

from typing import NamedTuple, TypeAlias

from rowtide.schema_history.ddl.lexer import Token


class TableName(NamedTuple):
    """The name of a table as written; ``database`` is ``None`` for the default database."""

    database: str | None
    table: str


class Literal(NamedTuple):
    """A literal.

    Attributes:
        kind: ``string``, ``number``, ``hex``, ``bits``, ``null``, ``bool``, ``date``, ``time`` or ``timestamp``.
        value: its text without quotes; digits of ``hex`` and ``bits``; ``TRUE`` or ``FALSE``.
        sign: ``-``, ``+`` or ``""``.
        charset: the introducer's character set (``_utf8'x'``), ``utf8mb3`` for ``N'x'``, otherwise ``None``.
        raw: its text in the statement, with quotes and sign.
        national: whether it was written as ``N'x'``.
    """

    kind: str
    value: str
    raw: str
    sign: str = ""
    charset: str | None = None
    national: bool = False


class Now(NamedTuple):
    """CURRENT_TIMESTAMP and its synonyms; ``fsp`` is its number of fractional digits."""

    fsp: int
    raw: str


class Expression(NamedTuple):
    """Any other expression: its text, without the parentheses around it, and its tokens."""

    text: str
    tokens: tuple[Token, ...] = ()
    parenthesized: bool = True


Default: TypeAlias = Literal | Now | Expression


class DataType(NamedTuple):
    """A data type as written.

    Attributes:
        words: its name in upper case: ``("DOUBLE", "PRECISION")``, ``("LONG", "VARCHAR")``.
        arguments: the numbers in its parentheses, as written.
        labels, raw_labels: labels of ENUM and SET without and with their quotes. Hexadecimal ones are the bytes of the
            label in the column's character set.
        signed, unsigned, zerofill: as written.
        binary: whether BINARY follows a text type.
        charset: CHARACTER SET, ASCII (``latin1``), UNICODE (``ucs2``), BYTE (``binary``); as written, lower case.
        compressed: MariaDB's COMPRESSED between type and character set.
        written_charset: whether CHARACTER SET itself was written.
    """

    words: tuple[str, ...]
    arguments: tuple[str, ...] = ()
    labels: tuple[str | bytes, ...] = ()
    raw_labels: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    binary: bool = False
    charset: str | None = None
    compressed: bool = False
    written_charset: bool = False

    @property
    def unsigned(self) -> bool:
        """UNSIGNED, or ZEROFILL, which implies it."""
        return "UNSIGNED" in self.options or "ZEROFILL" in self.options

    @property
    def zerofill(self) -> bool:
        """ZEROFILL."""
        return "ZEROFILL" in self.options


class Attribute(NamedTuple):
    """An attribute of a column: its kind in upper case, and its value if it has one."""

    kind: str
    value: "str | Default | CheckDef | ForeignKeyDef | int | None" = None
    raw: str = ""


class ColumnDef(NamedTuple):
    """The definition of a column."""

    name: str
    type: DataType
    attributes: tuple[Attribute, ...] = ()

    def has(self, kind: str) -> bool:
        """Return whether the column has an attribute of that kind."""
        return any(a.kind == kind for a in self.attributes)

    def last(self, kind: str) -> Attribute | None:
        """Return the last attribute of that kind, which takes precedence; ``None`` without one."""
        return next((a for a in reversed(self.attributes) if a.kind == kind), None)


class KeyPartDef(NamedTuple):
    """A part of an index: a column with or without a length, or an expression."""

    column: str
    length: int | None = None
    expression: str | None = None
    descending: bool = False
    without_overlaps: bool = False


class IndexDef(NamedTuple):
    """An index; ``kind`` is ``primary``, ``unique``, ``key``, ``fulltext``, ``spatial`` or ``vector``."""

    kind: str
    name: str | None
    parts: tuple[KeyPartDef, ...]
    if_not_exists: bool = False
    hashed: bool = False


class ReferenceDef(NamedTuple):
    """REFERENCES: the parent table, its columns (none: its primary key), and the actions as written (``""``: none)."""

    table: TableName
    columns: tuple[str, ...] = ()
    on_delete: str = ""
    on_update: str = ""


class ForeignKeyDef(NamedTuple):
    """A foreign key: name of the constraint, name of the index, columns, and the reference."""

    name: str | None
    index_name: str | None
    columns: tuple[str, ...]
    reference: ReferenceDef
    if_not_exists: bool = False


class CheckDef(NamedTuple):
    """A CHECK constraint."""

    name: str | None
    expression: str
    if_not_exists: bool = False


class PeriodDef(NamedTuple):
    """PERIOD FOR SYSTEM_TIME, or an application-time period, and its two columns."""

    name: str
    start: str
    end: str


class TableOptions(NamedTuple):
    """Options of a table or database, as written; ``None`` for options that are absent."""

    charset: str | None = None
    collation: str | None = None
    comment: str | None = None
    raw_comment: str | None = None
    engine: str | None = None
    system_versioning: bool = False
    sequence: bool | None = None


Element: TypeAlias = ColumnDef | IndexDef | ForeignKeyDef | CheckDef | PeriodDef


class CreateTable(NamedTuple):
    """CREATE TABLE with a list of elements, or a query, or both."""

    name: TableName
    elements: tuple[Element, ...] = ()
    options: TableOptions = TableOptions()
    temporary: bool = False
    if_not_exists: bool = False
    or_replace: bool = False
    query: bool = False


class CreateTableLike(NamedTuple):
    """CREATE TABLE ... LIKE."""

    name: TableName
    like: TableName
    temporary: bool = False
    if_not_exists: bool = False
    or_replace: bool = False


class CreateSequence(NamedTuple):
    """MariaDB's CREATE SEQUENCE: a table of eight columns."""

    name: TableName
    options: TableOptions = TableOptions()
    temporary: bool = False
    if_not_exists: bool = False
    or_replace: bool = False
    type: DataType | None = None


class AlterSequence(NamedTuple):
    """MariaDB's ALTER SEQUENCE, which can change the type of its columns."""

    name: TableName
    if_exists: bool = False
    type: DataType | None = None


class ColumnPlace(NamedTuple):
    """FIRST (``after`` is ``None``) or AFTER a column."""

    after: str | None


class AddColumn(NamedTuple):
    """ADD COLUMN; ``several`` if it is in a list in parentheses."""

    column: ColumnDef
    place: ColumnPlace | None = None
    if_not_exists: bool = False
    several: bool = False


class ChangeColumn(NamedTuple):
    """CHANGE COLUMN, and MODIFY COLUMN (``modify``)."""

    old: str
    column: ColumnDef
    place: ColumnPlace | None = None
    if_exists: bool = False
    modify: bool = False


class DropColumn(NamedTuple):
    """DROP COLUMN."""

    name: str
    if_exists: bool = False


class RenameColumn(NamedTuple):
    """RENAME COLUMN."""

    old: str
    new: str
    if_exists: bool = False


class AlterDefault(NamedTuple):
    """ALTER COLUMN ... SET DEFAULT, or DROP DEFAULT (``default`` is ``None``)."""

    name: str
    default: Default | None
    if_exists: bool = False


class AlterVisibility(NamedTuple):
    """ALTER COLUMN ... SET VISIBLE or INVISIBLE."""

    name: str
    invisible: bool


class AddKey(NamedTuple):
    """ADD of an index, a foreign key, a check or a period."""

    element: IndexDef | ForeignKeyDef | CheckDef | PeriodDef


class DropKey(NamedTuple):
    """DROP of an index (``index``), the primary key, a foreign key, a check, or any constraint of that name."""

    kind: str
    name: str = ""
    if_exists: bool = False


class RenameKey(NamedTuple):
    """RENAME INDEX."""

    old: str
    new: str
    if_exists: bool = False


class RenameTo(NamedTuple):
    """RENAME TO."""

    name: TableName


class ConvertTo(NamedTuple):
    """CONVERT TO CHARACTER SET; ``charset`` is ``None`` for DEFAULT."""

    charset: str | None
    collation: str | None


class SetOptions(NamedTuple):
    """Adjacent table options in ALTER TABLE."""

    options: TableOptions


class SystemVersioning(NamedTuple):
    """MariaDB's ADD or DROP SYSTEM VERSIONING."""

    add: bool


class DropPeriod(NamedTuple):
    """MariaDB's DROP PERIOD FOR."""

    name: str
    if_exists: bool = False


class Other(NamedTuple):
    """An action that changes no structure: partitions, ENABLE KEYS, tablespaces, ORDER BY."""

    what: str


class ExchangePartition(NamedTuple):
    """EXCHANGE PARTITION, and MariaDB's CONVERT PARTITION TO TABLE (``makes``) and CONVERT TABLE TO (``consumes``)."""

    table: TableName
    makes: bool = False
    consumes: bool = False


Action: TypeAlias = (
    AddColumn
    | ChangeColumn
    | DropColumn
    | RenameColumn
    | AlterDefault
    | AlterVisibility
    | AddKey
    | DropKey
    | RenameKey
    | RenameTo
    | ConvertTo
    | SetOptions
    | SystemVersioning
    | DropPeriod
    | ExchangePartition
    | Other
)


class AlterTable(NamedTuple):
    """ALTER TABLE."""

    name: TableName
    actions: tuple[Action, ...]
    if_exists: bool = False


class CreateIndex(NamedTuple):
    """CREATE INDEX."""

    table: TableName
    definition: IndexDef
    or_replace: bool = False


class DropIndex(NamedTuple):
    """DROP INDEX."""

    table: TableName
    name: str
    if_exists: bool = False


class DropTable(NamedTuple):
    """DROP TABLE and DROP SEQUENCE. ``prefix`` is the text before the names, ``behaviour`` RESTRICT or CASCADE."""

    names: tuple[TableName, ...]
    temporary: bool = False
    if_exists: bool = False
    prefix: str = ""
    behaviour: str = ""


class RenameTable(NamedTuple):
    """RENAME TABLE: pairs of names, and for each pair a separate statement as text."""

    pairs: tuple[tuple[TableName, TableName], ...]
    texts: tuple[str, ...] = ()
    if_exists: bool = False


class TruncateTable(NamedTuple):
    """TRUNCATE TABLE."""

    name: TableName


class CreateDatabase(NamedTuple):
    """CREATE DATABASE."""

    name: str
    options: TableOptions
    if_not_exists: bool = False
    or_replace: bool = False


class AlterDatabase(NamedTuple):
    """ALTER DATABASE; ``name`` is ``None`` for the default database."""

    name: str | None
    options: TableOptions


class DropDatabase(NamedTuple):
    """DROP DATABASE."""

    name: str
    if_exists: bool = False


class SetVariables(NamedTuple):
    """SET; relevant only in Debezium's histories: ``SET character_set_server=..., collation_server=...``."""

    variables: tuple[tuple[str, str], ...]


class Use(NamedTuple):
    """USE; it occurs in histories and never in binlogs."""

    database: str


class NoStructure(NamedTuple):
    """A statement that changes no structure; ``what`` is its class: ``grant``, ``create view``."""

    what: str


Body: TypeAlias = (
    CreateTable
    | CreateTableLike
    | CreateSequence
    | AlterSequence
    | AlterTable
    | CreateIndex
    | DropIndex
    | DropTable
    | RenameTable
    | TruncateTable
    | CreateDatabase
    | AlterDatabase
    | DropDatabase
    | SetVariables
    | Use
    | NoStructure
)


class Statement(NamedTuple):
    """A parsed statement, and its text from the first to the last token."""

    body: Body
    text: str
