"""Online schema changes under load: gh-ost, pt-online-schema-change, and the server's own ways.

The statements are those that the tools send. Between every two of them, rows change and the connector restarts.
"""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pytest

from rowtide.connector.config import Configuration
from rowtide.connector.records.batch import Batch, HistoryEntry, Output
from rowtide.schema_history.position.binlog_position import BinlogPosition
from rowtide.schema_history.recovery.recover import recover
from rowtide.schema_history.store.history_record import parse_record
from rowtide.schema_history.store.history_store import InMemorySchemaHistory
from tests.support.mysql.background_writer import BackgroundWriter
from tests.support.mysql.live_database import configured, snapshot, streamed
from tests.support.recordings.golden import written
from tests.support.recordings.live_snapshot import binlog_end

if TYPE_CHECKING:
    from rowtide_stack import Database, MariaDB, MySQL

pytestmark = pytest.mark.servers

CHANGE = "ADD COLUMN added INT NOT NULL DEFAULT 7, MODIFY v VARCHAR(80) CHARACTER SET latin1"

LOCK, UNLOCK = "lock /* gh-ost */ tables", "unlock tables"
"""Rows do not change between them: while they are copied, which the tool does in small parts, and at the swap."""

_COPY = "INSERT IGNORE INTO {copy} (id, v) (SELECT id, v FROM t FORCE INDEX (PRIMARY) LOCK IN SHARE MODE)"
_GH_OST = (
    "drop /* gh-ost */ table if exists _t_ghc",
    (
        "create /* gh-ost */ table _t_ghc (\n\tid bigint unsigned auto_increment,\n\tlast_update timestamp not null "
        "DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,\n\thint varchar(64) charset ascii not null,\n\tvalue "
        "varchar(4096) charset ascii not null,\n\tprimary key(id),\n\tunique key hint_uidx(hint)\n) auto_increment=256"
    ),
    "create /* gh-ost */ table _t_gho like t",
    f"alter /* gh-ost */ table _t_gho {CHANGE}",
    (
        "insert /* gh-ost */ into _t_ghc (id, hint, value) values (NULLIF(2, 0), 'state', 'GhostTableMigrated') on "
        "duplicate key update last_update=NOW(), value=VALUES(value)"
    ),
    LOCK,
    _COPY.format(copy="_t_gho"),
    UNLOCK,
)
GH_OST_ATOMIC = (
    *_GH_OST,
    (
        "create /* gh-ost */ table _t_del (\n\tid int auto_increment primary key\n) engine=InnoDB "
        "comment='ghost-cut-over-sentry'"
    ),
    LOCK,
    "drop /* gh-ost */ table if exists _t_del",
    "rename /* gh-ost */ table t to _t_del, _t_gho to t",
    UNLOCK,
    "drop /* gh-ost */ table if exists _t_ghc",
    "drop /* gh-ost */ table if exists _t_del",
)
GH_OST_TWO_STEP = (
    *_GH_OST,
    LOCK,
    "alter /* gh-ost */ table t rename _t_del",
    (
        "insert /* gh-ost */ into _t_ghc (id, hint, value) values (NULLIF(1, 0), 'heartbeat', 'x') on duplicate key "
        "update last_update=NOW(), value=VALUES(value)"
    ),
    "alter /* gh-ost */ table _t_gho rename t",
    UNLOCK,
    "drop /* gh-ost */ table if exists _t_ghc",
    "drop /* gh-ost */ table if exists _t_del",
)
PT_ONLINE_SCHEMA_CHANGE = (
    (
        "CREATE TABLE `{database}`.`_t_new` (\n  `id` int NOT NULL,\n  `v` varchar(60) DEFAULT NULL,\n  "
        "PRIMARY KEY (`id`)\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4"
    ),
    f"ALTER TABLE `{{database}}`.`_t_new` {CHANGE}",
    (
        "CREATE TRIGGER `pt_osc_t_del` AFTER DELETE ON `t` FOR EACH ROW DELETE IGNORE FROM `_t_new` WHERE "
        "`_t_new`.`id` <=> OLD.`id`"
    ),
    (
        "CREATE TRIGGER `pt_osc_t_upd` AFTER UPDATE ON `t` FOR EACH ROW BEGIN DELETE IGNORE FROM `_t_new` WHERE "
        "!(OLD.`id` <=> NEW.`id`) AND `_t_new`.`id` <=> OLD.`id`; REPLACE INTO `_t_new` (`id`, `v`) VALUES (NEW.`id`, "
        "NEW.`v`); END"
    ),
    (
        "CREATE TRIGGER `pt_osc_t_ins` AFTER INSERT ON `t` FOR EACH ROW REPLACE INTO `_t_new` (`id`, `v`) VALUES "
        "(NEW.`id`, NEW.`v`)"
    ),
    _COPY.format(copy="_t_new") + " /*pt-online-schema-change 1 copy nibble*/",
    "ANALYZE TABLE `_t_new` /* pt-online-schema-change */",
    "RENAME TABLE `{database}`.`t` TO `{database}`.`_t_old`, `{database}`.`_t_new` TO `{database}`.`t`",
    "DROP TABLE IF EXISTS `_t_old`",
    "DROP TRIGGER IF EXISTS `pt_osc_t_del`",
    "DROP TRIGGER IF EXISTS `pt_osc_t_upd`",
    "DROP TRIGGER IF EXISTS `pt_osc_t_ins`",
)
OF_THE_SERVER = (
    f"ALTER TABLE t {CHANGE}",
    "ALTER TABLE t ADD COLUMN last INT, ALGORITHM=INSTANT",
    "ALTER TABLE t ADD COLUMN begin INT DEFAULT 3 FIRST, ALGORITHM=INSTANT",
    "ALTER TABLE t DROP COLUMN last, ALGORITHM=INSTANT",
    "ALTER TABLE t RENAME COLUMN begin TO start, ALGORITHM=INSTANT",
    "ALTER TABLE t ADD INDEX of_v (v), ALGORITHM=INPLACE, LOCK=NONE",
    "ALTER TABLE t MODIFY v VARCHAR(90) CHARACTER SET latin1, ALGORITHM=INPLACE",
    "ALTER TABLE t DROP COLUMN start, ALGORITHM=INPLACE",
    "ALTER TABLE t ENGINE=InnoDB, ALGORITHM=INPLACE",
)

LISTS: dict[str, dict[str, str]] = {
    "no list": {},
    "an expression": {"table.include.list": r"{database}\..*"},
    "the table": {
        "table.include.list": r"{database}\.t",
        "schema.history.internal.store.only.captured.tables.ddl": "true",
    },
}


@pytest.fixture(params=["mysql", "mariadb"])
def database(request: pytest.FixtureRequest) -> Iterator[Database]:
    server: MySQL | MariaDB = request.getfixturevalue(request.param)
    with server.database() as found:
        found.execute("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(60)) CHARSET utf8mb4")
        found.execute("INSERT INTO t VALUES " + ",".join(f"({n}, 'row {n}')" for n in range(200)))
        yield found


class Load(BackgroundWriter):
    """Changes rows of table ``t`` until it is stopped.

    Attributes:
        copy: a table that gets the same changes, as from gh-ost.
        pause: held while rows change.
    """

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.copy: str | None = None
        self.pause = threading.Lock()
        self._numbers = random.Random(1)

    def _pause_s(self) -> float:
        return 0.005

    def _write(self, connection: Any, cursor: Any) -> None:
        with self.pause:
            for statement in self._statements(self._numbers):
                cursor.execute(statement)
            connection.commit()

    def _statements(self, numbers: random.Random) -> Iterator[str]:
        key, text = numbers.randrange(300), f"change {self.writes}"
        kind = numbers.choice(("replace", "update", "delete", "key"))
        for table in ("t",) if self.copy is None else ("t", self.copy):
            if kind == "replace":
                yield f"REPLACE INTO {table} (id, v) VALUES ({key}, '{text}'), ({key + 1}, '{text}')"
            elif kind == "update":
                yield f"UPDATE {table} SET v = '{text}' WHERE id BETWEEN {key} AND {key + 5}"
            elif kind == "delete":
                yield f"DELETE FROM {table} WHERE id = {key}"
            else:
                yield f"UPDATE {table} SET id = {1000 + self.writes} WHERE id = {key}"


def changed(database: Database, statements: tuple[str, ...], *, copy: str | None = None) -> list[tuple[str, int]]:
    """Change the table under load; returns the position after each statement.

    Args:
        database: the table's database.
        statements: those of the tool.
        copy: the table that gets the changes of rows from the tool, as soon as the rows are copied.
    """
    positions = []
    with Load(database) as load:
        load.wait_for(2)
        paused = False
        for statement in statements:
            if statement == LOCK:
                load.pause.acquire()
                paused = True
            elif statement == UNLOCK:
                load.copy = copy if load.copy is None else None
                load.pause.release()
                paused = False
            else:
                database.execute(statement.format(database=database.name))
            if not paused:
                load.wait_for(2)
            positions.append(binlog_end(database.server))
    database.execute("CREATE TABLE last_statement (id INT)")
    return [*positions, binlog_end(database.server)]


def properties(database: Database, chosen: Mapping[str, str]) -> Configuration:
    named = {name: value.format(database=database.name) for name, value in chosen.items()}
    return configured(database, {"include.schema.changes": "false", **named})


def changes(outputs: list[Output]) -> list[tuple[str, str | None, str, Any, Any]]:
    """Topic, key, operation and both images of each record."""
    found = []
    for message in written(outputs):
        if message.value is not None:
            value = json.loads(message.value)
            found.append((message.topic, message.key, value["op"], value["before"], value["after"]))
    return found


def state(outputs: list[Output]) -> dict[str | None, Any]:
    """The rows that the records result in."""
    rows: dict[str | None, Any] = {}
    for _, key, op, _, after in changes(outputs):
        if op == "d":
            del rows[key]
        else:
            rows[key] = after
    return rows


def restarted(config: Configuration, taken: Any, outputs: list[Output], ends: list[tuple[str, int]]) -> list[Output]:
    """The outputs of a stream that is started again at each of the positions."""
    offset, found = taken.offset, list(outputs)
    for end in ends:
        history = InMemorySchemaHistory(*(output.text for output in found if isinstance(output, HistoryEntry)))
        tables = recover(history.replay(parse_record), taken.tables.server, BinlogPosition.from_map(offset.to_map()))
        found += [output for step in streamed(config, tables, offset, end) for output in step.outputs]
        offset = [output.offset for output in found if isinstance(output, Batch)][-1]
    return found


def is_equal(database: Database, outputs: list[Output]) -> None:
    """All records are of table ``t``, and result in its rows. A row is not written again for its new columns."""
    assert {topic for topic, *_ in changes(outputs)} == {f"live.{database.name}.t"}
    found = {key: {name: row.get(name, 7) for name in ("id", "v", "added")} for key, row in state(outputs).items()}
    rows = database.query("SELECT id, v, added FROM t")
    assert found == {f'{{"id":{key}}}': {"id": key, "v": v, "added": added} for key, v, added in rows}
    assert any("added" in row for row in state(outputs).values())


@pytest.mark.parametrize(
    ("statements", "copy"),
    [
        pytest.param(GH_OST_ATOMIC, "_t_gho", id="gh-ost"),
        pytest.param(GH_OST_TWO_STEP, "_t_gho", id="gh-ost-two-step", marks=pytest.mark.nightly),
        pytest.param(PT_ONLINE_SCHEMA_CHANGE, None, id="pt-online-schema-change"),
        pytest.param(OF_THE_SERVER, None, id="of-the-server", marks=pytest.mark.nightly),
    ],
)
def test_a_changed_table_keeps_its_topic_and_all_its_rows(
    database: Database, statements: tuple[str, ...], copy: str | None
) -> None:
    before = {name: properties(database, chosen) for name, chosen in LISTS.items()}
    taken = {name: snapshot(config) for name, config in before.items()}
    outputs = {name: list(of.outputs()) for name, of in taken.items()}
    ends = changed(database, statements, copy=copy)
    for name, config in before.items():
        stopped = restarted(config, taken[name], outputs[name], ends)
        steps = streamed(config, taken[name].tables, taken[name].offset, ends[-1])
        unbroken = [*outputs[name], *(output for step in steps for output in step.outputs)]
        is_equal(database, unbroken)
        assert changes(stopped) == changes(unbroken), name


@pytest.mark.parametrize("database", ["mysql", pytest.param("mariadb", marks=pytest.mark.nightly)], indirect=True)
@pytest.mark.parametrize("chosen", LISTS)
def test_a_snapshot_in_the_middle_of_a_change(database: Database, chosen: str) -> None:
    middle = PT_ONLINE_SCHEMA_CHANGE.index(next(s for s in PT_ONLINE_SCHEMA_CHANGE if s.startswith("INSERT")))
    for statement in PT_ONLINE_SCHEMA_CHANGE[: middle + 1]:
        database.execute(statement.format(database=database.name))
    config = properties(database, LISTS[chosen])
    taken = snapshot(config)
    outputs = list(taken.outputs())
    ends = changed(database, PT_ONLINE_SCHEMA_CHANGE[middle + 1 :])
    is_equal(database, restarted(config, taken, outputs, ends))


def test_tables_of_these_names_that_are_no_helper_tables(database: Database) -> None:
    database.execute("CREATE TABLE _u_new LIKE t", "CREATE TABLE _t_new LIKE t")
    config = properties(database, {"table.include.list": r"{database}\.t,{database}\._t_new,{database}\._._\w+"})
    taken = snapshot(config)
    outputs = list(taken.outputs())
    database.execute(
        "INSERT INTO _u_new VALUES (1, 'x')", "INSERT INTO _t_new VALUES (2, 'y')", "CREATE TABLE _t_old LIKE t",
        "INSERT INTO _t_old VALUES (3, 'z')",
    )  # fmt: skip
    found = restarted(config, taken, outputs, [binlog_end(database.server)])
    created = [(topic.rpartition(".")[2], key) for topic, key, op, _, _ in changes(found) if op == "c"]
    assert created == [("_u_new", '{"id":1}'), ("_t_new", '{"id":2}')]
