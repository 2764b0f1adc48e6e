"""Parses ALTER TABLE: a list of actions, which the server applies together."""

from rowtide.schema_history.ddl.columns import parse_column, parse_default
from rowtide.schema_history.ddl.create import element_list, skip_wait
from rowtide.schema_history.ddl.cursor import Cursor, words_of
from rowtide.schema_history.ddl.keys import accept_if_exists, accept_if_not_exists, is_key, parse_key
from rowtide.schema_history.ddl.lexer import END, STRING, WORD
from rowtide.schema_history.ddl.options import skip_partitioning, table_options
from rowtide.schema_history.ddl.statements import (
    Action,
    AddColumn,
    AddKey,
    AlterDefault,
    AlterTable,
    AlterVisibility,
    ChangeColumn,
    ColumnDef,
    ColumnPlace,
    ConvertTo,
    DropColumn,
    DropKey,
    DropPeriod,
    ExchangePartition,
    Other,
    RenameColumn,
    RenameKey,
    RenameTo,
    SetOptions,
    SystemVersioning,
)
from rowtide.schema_history.ddl.types import accept_charset_keyword, charset_value
from rowtide.schema_history.server.query_event import Flavor

_PARTITION_WORK = words_of(
    "COALESCE REORGANIZE ANALYZE CHECK OPTIMIZE REBUILD REPAIR TRUNCATE DISCARD IMPORT REMOVE UPGRADE"
)


def parse_alter_table(c: Cursor) -> AlterTable:
    """Parse ALTER TABLE after the word TABLE."""
    if_exists = accept_if_exists(c)
    name = c.table_name()
    skip_wait(c)
    actions: list[Action] = []
    while not c.at_end():
        actions.extend(_action(c))
        if skip_partitioning(c) or c.accept("REMOVE", "PARTITIONING"):  # follows the last action without a comma
            actions.append(Other("PARTITION BY"))
        if not c.accept(",") and not c.at_end() and not isinstance(actions[-1], SetOptions | Other):
            c.fail(", or the end")
    return AlterTable(name, tuple(actions), if_exists)


def _action(c: Cursor) -> list[Action]:
    reader = _ACTIONS.get(c.word) if c.token.kind is WORD else None
    if reader is not None:
        return reader(c)
    if c.word in _PARTITION_WORK:
        return _partition_work(c)
    if skip_partitioning(c):
        return [Other("PARTITION BY")]
    at = c.at
    options = table_options(c)
    if c.at == at:
        c.fail("an action of ALTER TABLE")
    return [SetOptions(options)]


def _place(c: Cursor) -> ColumnPlace | None:
    if c.accept("FIRST"):
        return ColumnPlace(None)
    if c.accept("AFTER"):
        return ColumnPlace(c.column_name())
    return None


def _add(c: Cursor) -> list[Action]:
    c.at += 1
    if c.word == "PARTITION":
        return _partition_work(c)
    if c.word == "SYSTEM" and c.ahead() == "VERSIONING":
        c.at += 2
        return [SystemVersioning(add=True)]
    if is_key(c):
        return [AddKey(parse_key(c))]
    c.accept("COLUMN")
    if_not_exists = accept_if_not_exists(c)
    if c.accept("("):
        actions: list[Action] = []
        for element in element_list(c):
            if isinstance(element, ColumnDef):
                actions.append(AddColumn(element, None, if_not_exists, several=True))
            else:
                actions.append(AddKey(element))
        c.expect(")")
        return actions
    return [AddColumn(parse_column(c), _place(c), if_not_exists)]


def _alter(c: Cursor) -> list[Action]:
    c.at += 1
    if c.word in ("INDEX", "KEY", "CHECK", "CONSTRAINT"):
        what = c.advance().word
        accept_if_exists(c)
        c.name()
        if not (c.accept_one("VISIBLE", "INVISIBLE", "IGNORED", "ENFORCED") or c.accept("NOT", "IGNORED")):
            c.expect("NOT", "ENFORCED")
        return [Other(f"ALTER {what}")]
    c.accept("COLUMN")
    if_exists = accept_if_exists(c)
    name = c.column_name()
    if c.accept("SET", "DEFAULT"):
        return [AlterDefault(name, parse_default(c), if_exists)]
    if c.accept("SET"):
        word = c.accept_one("VISIBLE", "INVISIBLE") or c.fail("DEFAULT, VISIBLE or INVISIBLE")
        return [AlterVisibility(name, word == "INVISIBLE")]
    c.expect("DROP", "DEFAULT")
    return [AlterDefault(name, None, if_exists)]


def _change(c: Cursor) -> list[Action]:
    c.at += 1
    c.accept("COLUMN")
    if_exists = accept_if_exists(c)
    old = c.column_name()
    return [ChangeColumn(old, parse_column(c), _place(c), if_exists)]


def _modify(c: Cursor) -> list[Action]:
    c.at += 1
    c.accept("COLUMN")
    if_exists = accept_if_exists(c)
    column = parse_column(c)
    return [ChangeColumn(column.name, column, _place(c), if_exists, modify=True)]


def _drop(c: Cursor) -> list[Action]:
    c.at += 1
    if c.accept("PRIMARY", "KEY"):
        return [DropKey("primary")]
    if c.accept("FOREIGN", "KEY"):
        if_exists = accept_if_exists(c)
        return [DropKey("foreign", c.column_name(), if_exists)]
    if c.word == "PARTITION" and c.ahead() not in ("", ",", ";"):
        return _partition_work(c)
    if c.word == "PARTITION" and c.dialect.flavor is Flavor.MYSQL:
        return _partition_work(c)
    if word := c.accept_one("INDEX", "KEY", "CHECK", "CONSTRAINT"):
        if_exists = accept_if_exists(c)
        kind = {"CHECK": "check", "CONSTRAINT": "constraint"}.get(word, "index")
        return [DropKey(kind, c.column_name(), if_exists)]
    if c.word == "SYSTEM" and c.ahead() == "VERSIONING":
        c.at += 2
        return [SystemVersioning(add=False)]
    if c.word == "PERIOD" and c.ahead() in ("FOR", "IF"):
        c.at += 1
        if_exists = accept_if_exists(c)
        c.expect("FOR")
        return [DropPeriod(c.name(), if_exists)]
    c.accept("COLUMN")
    if_exists = accept_if_exists(c)
    name = c.column_name()
    c.accept_one("RESTRICT", "CASCADE")
    return [DropColumn(name, if_exists)]


def _rename(c: Cursor) -> list[Action]:
    c.at += 1
    if c.accept("COLUMN"):
        if_exists = accept_if_exists(c)
        old = c.column_name()
        c.expect("TO")
        return [RenameColumn(old, c.column_name(), if_exists)]
    if c.word in ("INDEX", "KEY"):
        c.at += 1
        if_exists = accept_if_exists(c)
        old = c.column_name()
        c.expect("TO")
        return [RenameKey(old, c.column_name(), if_exists)]
    c.accept_one("TO", "AS", "=")
    return [RenameTo(c.table_name())]


def _convert(c: Cursor) -> list[Action]:
    c.at += 1
    if c.accept("PARTITION"):
        c.name()
        c.expect("TO", "TABLE")
        name = c.table_name()
        return [ExchangePartition(name, makes=True)]
    if c.accept("TABLE"):
        name = c.table_name()
        c.skip_until(",", ";")
        return [ExchangePartition(name, consumes=True)]
    c.expect("TO")
    if not accept_charset_keyword(c):
        c.fail("CHARACTER SET")
    charset = None if c.token.kind is WORD and c.accept("DEFAULT") else charset_value(c)
    collation = None
    if c.accept("COLLATE"):
        c.accept("=")
        if c.token.kind is WORD and c.accept("DEFAULT"):
            pass
        else:
            collation = "binary" if c.accept("BINARY") else c.name_or_string()
    return [ConvertTo(charset, collation)]


def _order(c: Cursor) -> list[Action]:
    c.at += 1
    c.expect("BY")
    while True:
        c.column_name()
        c.accept_one("ASC", "DESC")
        if c.word == "," and c.tokens[c.at + 1].kind is not END and not _starts_action(c, 1):
            c.at += 1
        else:
            return [Other("ORDER BY")]


def _starts_action(c: Cursor, steps: int) -> bool:
    return c.ahead(steps) in _ACTIONS


def _exchange(c: Cursor) -> list[Action]:
    c.at += 1
    c.expect("PARTITION")
    c.name()
    c.expect("WITH", "TABLE")
    name = c.table_name()
    _validation(c)
    return [ExchangePartition(name)]


def _validation(c: Cursor) -> bool:
    if c.word in ("WITH", "WITHOUT") and c.ahead() == "VALIDATION":
        c.at += 2
        return True
    return False


def _with(c: Cursor) -> list[Action]:
    if _validation(c):
        return [Other("VALIDATION")]
    options = table_options(c)
    if not options.system_versioning:
        c.fail("an action of ALTER TABLE")
    return [SystemVersioning(add=True)]


def _keys(c: Cursor) -> list[Action]:
    what = c.advance().word
    c.expect("KEYS")
    return [Other(f"{what} KEYS")]


def _flag(c: Cursor) -> list[Action]:
    return [Other(c.advance().word)]


def _valued(c: Cursor) -> list[Action]:
    what = c.advance().word
    c.accept("=")
    c.advance()
    return [Other(what)]


def _partition_work(c: Cursor) -> list[Action]:
    what = c.word
    while c.token.kind is not END and c.word != ";":
        if c.word == "(":
            c.skip_parentheses()
        elif c.token.kind is STRING:
            c.fail("a partition's name")
        else:
            c.at += 1
    return [Other(what)]


_ACTIONS = {
    "ADD": _add,
    "ALTER": _alter,
    "CHANGE": _change,
    "MODIFY": _modify,
    "DROP": _drop,
    "RENAME": _rename,
    "CONVERT": _convert,
    "ORDER": _order,
    "EXCHANGE": _exchange,
    "WITH": _with,
    "WITHOUT": _with,
    "DISABLE": _keys,
    "ENABLE": _keys,
    "FORCE": _flag,
    "SECONDARY_LOAD": _flag,
    "SECONDARY_UNLOAD": _flag,
    "ALGORITHM": _valued,
    "LOCK": _valued,
}
