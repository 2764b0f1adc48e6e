"""Structure changes between rows, on real servers: each row has the columns of its table at that position."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from rowtide.connector.records.batch import Batch, HistoryEntry
from rowtide.schema_history.queries.information_schema import table_json
from rowtide.schema_history.recovery.recover import recover
from rowtide.schema_history.server.query_event import Flavor, Server
from rowtide.schema_history.store.history_record import parse_record
from tests.support.ddl.corpus import comparable
from tests.support.ddl.recorder import DdlRecorder

if TYPE_CHECKING:
    from rowtide_stack import Database

pytestmark = pytest.mark.servers

BOTH = r"""
CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(10))
+t (id, v) VALUES (#, 'x')
ALTER TABLE t ADD w INT FIRST
+t (w, id, v) VALUES (7, #, 'y')
ALTER TABLE t DROP COLUMN v, ADD v BIGINT AFTER w
+t (w, v, id) VALUES (1, 2, #)

CREATE TABLE u (id INT PRIMARY KEY, only_u CHAR(3))
RENAME TABLE t TO tmp, u TO t, tmp TO u
BEGIN
+t (id, only_u) VALUES (#, 'su')
+u (w, v, id) VALUES (1, 2, #)
+t (id, only_u) VALUES (#, 's2')
COMMIT

CREATE TABLE l LIKE u
ALTER TABLE l RENAME TO `b-@`.l2, ADD z TEXT
+`b-@`.l2 (w, v, id, z) VALUES (1, 2, #, 'zü')
CREATE TABLE l (id INT, q INT)
+l (id, q) VALUES (#, 1)
CREATE TABLE s (extra INT DEFAULT 5, KEY (id)) AS SELECT id, only_u FROM t
+s (extra, id, only_u) VALUES (6, #, 'a')
USE `b-@`
CREATE TABLE @.x1 LIKE l2
CREATE TABLE t (id INT, `b-1` ENUM('ä','b'))
+@.x1 (w, v, id, z) VALUES (1, 2, #, 'ö')
+t (id, `b-1`) VALUES (#, 'ä')
USE @
DROP DATABASE `b-@`
CREATE DATABASE `b-@` CHARACTER SET latin1
CREATE TABLE `b-@`.t (other DATE, id INT, c VARCHAR(3))
+`b-@`.t (other, id, c) VALUES (NULL, #, 'ß')

ALTER TABLE t ADD i1 INT DEFAULT 3, ALGORITHM=INSTANT
+t (id, only_u, i1) VALUES (#, 'a', 1)
ALTER TABLE t ADD i2 INT FIRST, DROP COLUMN i1, RENAME COLUMN only_u TO renamed
+t (i2, id, renamed) VALUES (9, #, 'a')
CREATE TABLE p (id INT, k INT) PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN MAXVALUE)
CREATE TABLE e (id INT, k INT)
+e (id, k) VALUES (#, 2)
ALTER TABLE p EXCHANGE PARTITION p0 WITH TABLE e
+p (id, k) VALUES (#, 3)

CREATE TEMPORARY TABLE t (zz INT)
ALTER TABLE t ADD yy INT
CREATE TEMPORARY TABLE nn LIKE u
CREATE TABLE liketemp LIKE nn
+liketemp (w, v, id) VALUES (1, 2, #)
DROP TABLE t
+t (i2, id, renamed) VALUES (9, #, 'b')
ALTER TABLE nn RENAME TO nn2
DROP TABLE IF EXISTS nn2, notthere

SET sql_mode = 'ANSI_QUOTES'
CREATE TABLE "we""ird" ("id" INT, "co`l" VARCHAR(5) DEFAULT 'x"y', "a.b" INT)
ALTER TABLE "we""ird" RENAME COLUMN "co`l" TO "c o""l", ADD "select" INT
+"we""ird" ("id", "c o""l", "a.b", "select") VALUES (#, 'q', 5, 6)
CREATE TABLE "x.y" LIKE "we""ird"
CREATE INDEX "i i" ON "x.y" ("a.b")
SET sql_mode = ''
RENAME TABLE `we"ird` TO `back``tick`
+`back``tick` (id, `c o"l`, `a.b`, `select`) VALUES (#, 'q', 5, 6)
/*!50000 ALTER */ TABLE `x.y` /* t */ ADD nn INT
+`x.y` (id, `c o"l`, `a.b`, `select`, nn) VALUES (#, 'q', 5, 6, 7)
CREATE PROCEDURE pr() BEGIN CREATE TABLE inside (id INT); ALTER TABLE inside ADD c INT FIRST; END
CALL pr()
+inside (c, id) VALUES (1, #)
"""
ONLY = {
    Flavor.MYSQL: r"""
SET sql_generate_invisible_primary_key = ON
CREATE TABLE gi (id INT, q INT)
SET binlog_transaction_compression = ON
CREATE TABLE gi2 SELECT id, 1 AS one FROM gi
+gi2 (my_row_id, id, one) VALUES (5, #, 2)
SET binlog_transaction_compression = OFF
SET sql_generate_invisible_primary_key = OFF
ALTER TABLE gi DROP COLUMN my_row_id
+gi (id, q) VALUES (#, 1)
CREATE TABLE fi (id INT, s VARCHAR(10), KEY ((UPPER(s))))
ALTER TABLE fi ADD k INT FIRST
+fi (k, id, s) VALUES (1, #, 'x')
""",
    Flavor.MARIADB: r"""
CREATE OR REPLACE TABLE t (k INT, id INT)
+t (k, id) VALUES (1, #)
CREATE OR REPLACE TABLE t SELECT id, w FROM u
+t (id, w) VALUES (#, 1)
CREATE TABLE ub (id INT, b BLOB, UNIQUE (b))
+ub (id, b) VALUES (#, NULL)
ALTER TABLE ub DROP INDEX b, ADD COLUMN IF NOT EXISTS id INT, ADD COLUMN IF NOT EXISTS z INT
+ub (id, b, z) VALUES (#, NULL, 3)
ALTER TABLE IF EXISTS nope ADD x INT
RENAME TABLE IF EXISTS nope TO nope2, ub TO ub2
+ub2 (id, b, z) VALUES (#, NULL, 3)

CREATE TABLE h1 (id INT, v VARCHAR(10), UNIQUE (id) USING HASH, UNIQUE h (v) USING HASH)
+h1 (id, v) VALUES (#, 'a')
ALTER TABLE h1 DISABLE KEYS
CREATE TABLE h2 LIKE h1
+h2 (id, v) VALUES (#, 'a')
ALTER TABLE h1 RENAME TO h3
+h3 (id, v) VALUES (#, 'b')
OPTIMIZE TABLE h3
+h3 (id, v) VALUES (#, 'c')
ALTER TABLE h3 ADD b BIGINT, ADD UNIQUE u (b) USING HASH
+h3 (id, v, b) VALUES (#, 'd', 4)
CREATE TABLE h4 (id INT, v VARCHAR(10), UNIQUE (v) USING HASH) ENGINE=MEMORY
+h4 (id, v) VALUES (#, 'a')
CREATE TABLE h5 (id INT, n GEOMETRY UNIQUE, l LINESTRING, UNIQUE (l(3)))
+h5 (id, n, l) VALUES (#, POINT(1, 1), NULL)
ALTER TABLE h5 MODIFY id BIGINT
+h5 (id, n, l) VALUES (#, NULL, NULL)
ALTER TABLE h5 MODIFY n DATETIME FIRST
+h5 (n, id, l) VALUES (NULL, #, NULL)
""",
}
INSERT = re.compile(r"\+(\S+|\"[^ ]+\") \((.*?)\) VALUES")
QUOTES = re.compile(r'^[`"]|[`"]$')


def statements(database: Database, flavor: Flavor) -> list[tuple[str, tuple[int, list[str]] | None]]:
    """Each statement, and for an INSERT the ``id`` of its row and the names of all columns."""
    found: list[tuple[str, tuple[int, list[str]] | None]] = []
    for number, line in enumerate((BOTH + ONLY[flavor]).replace("@", database.name).splitlines()):
        if insert := INSERT.match(line):
            names = [QUOTES.sub("", name).replace('""', '"') for name in insert[2].split(", ")]
            found.append((line.replace("+", "INSERT INTO ", 1).replace("#", str(number)), (number, names)))
        elif line:
            found.append((line, None))
    return found


def of(database: Database, tables: dict[str, Any]) -> dict[str, Any]:
    return {name: table for name, table in tables.items() if database.name in name}


@pytest.mark.parametrize("flavor", Flavor, ids=lambda flavor: flavor.value)
def test_every_row_has_the_columns_of_its_position(flavor: Flavor, request: pytest.FixtureRequest) -> None:
    database: Database = request.getfixturevalue(f"{flavor.value}_db")
    server = database.server
    server.execute(f"CREATE DATABASE `b-{database.name}`")
    recorder = DdlRecorder(server, flavor)
    recorder.run("SET sql_mode = ''")
    recorder.run(f"USE {database.name}")
    try:
        wanted = []
        for statement, row in statements(database, flavor):
            assert recorder.run(statement) is None, statement
            if row is not None:
                wanted.append(row)
        truth = of(database, recorder.tables())
        outputs = list(recorder.outputs())
    finally:
        recorder.close()
        server.execute(f"DROP DATABASE IF EXISTS `b-{database.name}`")
    rows = [
        json.loads(value)["payload"]["after"]
        for output in outputs
        if isinstance(output, Batch)
        for _, value, _ in output.messages
    ]
    first: dict[int, list[str]] = {}  # CREATE TABLE … SELECT copies some
    for row in rows:
        first.setdefault(row["id"], list(row))
    assert list(first.items()) == wanted
    history = [parse_record(output.text) for output in outputs if isinstance(output, HistoryEntry)]
    known = recover(history, Server(flavor, server.version), None)
    model = of(database, {str(table.id): table_json(table, flavor) for table in known})
    assert model.keys() == truth.keys()
    for name, table in truth.items():
        assert comparable(model[name], flavor.value) == comparable(table, flavor.value), name
