"""The tables that a statement changes the rows of, without those that it reads."""

import pytest

from rowtide.schema_history.ddl.dml import changed_tables
from rowtide.schema_history.ddl.lexer import ANSI_QUOTES, Dialect
from rowtide.schema_history.server.query_event import Flavor

CASES = {
    "INSERT INTO a VALUES (1)": "a",
    "/* by */ insert /* it */ low_priority ignore d . `a b` (x) values ('INTO c')": "d.a b",
    "INSERT a SELECT * FROM shop.orders": "a",
    "-- text\nINSERT INTO `p`.`c` SELECT 'INSERT INTO shop.orders' FROM shop.orders ON DUPLICATE KEY UPDATE x=1": "p.c",
    "INSERT INTO a SET x = (SELECT MAX(y) FROM b)": "a",
    "INSERT INTO a WITH w AS (SELECT 1) SELECT * FROM w": "a",
    "REPLACE INTO `percona`.`checksums` (db, tbl) SELECT 'shop', 'orders' FROM `shop`.`orders` FORCE INDEX (PRIMARY)": (
        "percona.checksums"
    ),
    "REPLACE DELAYED a VALUES (1)": "a",
    "UPDATE a SET x = 1 WHERE id IN (SELECT id FROM b)": "a",
    "UPDATE LOW_PRIORITY IGNORE d.a AS t SET t.x = 1": "d.a",
    "UPDATE p.a JOIN shop.orders o ON o.id = a.id SET a.x = o.y": "p.a",
    "UPDATE p.a, shop.orders SET p.a.x = 1, a.z = orders.y WHERE a.id = orders.id": "p.a",
    "UPDATE p.a x LEFT JOIN (SELECT * FROM shop.orders) o USING (id) SET x.y = 1, x.`z` = DEFAULT": "p.a",
    "UPDATE (a CROSS JOIN (b, c) ) SET b.x = 1, c.x = (SELECT 1, 2) ORDER BY 1": "b c",
    "UPDATE a NATURAL JOIN b USE INDEX (i), c SET x = 1": "a b c",
    "UPDATE { OJ a LEFT OUTER JOIN b ON a.x = b.x } SET y = 1": "a b",
    "UPDATE a, JSON_TABLE('[]', '$[*]' COLUMNS (x INT PATH '$')) AS j SET y = 1": "a",
    "UPDATE a FOR PORTION OF p FROM '2020-01-01' TO '2021-01-01' SET x = 1": "a",
    "WITH w (i) AS (SELECT id FROM shop.orders) UPDATE a JOIN w ON a.id = w.i SET a.x = 1": "a",
    "WITH RECURSIVE w AS (SELECT 1), v AS (DELETE) DELETE FROM a WHERE id IN (SELECT * FROM w)": "a",
    "DELETE QUICK FROM d.a WHERE id IN (SELECT id FROM b) LIMIT 1": "d.a",
    "DELETE FROM a PARTITION (p0) WHERE x": "a",
    "DELETE o FROM a JOIN shop.orders AS o ON a.id = o.id": "shop.orders",
    "DELETE a.*, d.b.* FROM a JOIN d.b, c WHERE a.id = c.id": "a d.b",
    "DELETE FROM a, o USING a JOIN shop.orders o JOIN c": "a shop.orders",
    "DELETE HISTORY FROM a BEFORE SYSTEM_TIME '2020-01-01'": "a",
    "LOAD DATA LOCAL INFILE '/tmp/INTO TABLE x' REPLACE INTO TABLE `d`.`a` FIELDS TERMINATED BY ','": "d.a",
    "LOAD XML INFILE 'x' INTO TABLE a": "a",
    "ANALYZE UPDATE a SET x = REPLACE(x, 'a', 'b')": "a",
    "/* by */ analyze format=json delete from d.a": "d.a",
    "SET STATEMENT x = 1 FOR ANALYZE INSERT INTO a SELECT 1": "a",
    "SET STATEMENT max_statement_time = 1 FOR INSERT INTO a VALUES (1)": "a",
}


@pytest.mark.parametrize("sql", CASES)
def test_the_tables_that_change(sql: str) -> None:
    found = changed_tables(sql, Dialect(Flavor.MARIADB, 110400, 0))
    assert found is not None
    assert " ".join(f"{one.database}.{one.table}" if one.database else one.table for one in found) == CASES[sql]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT `d`.`f`(1)",
        "CALL p()",
        "INSERT INTO 'a' VALUES (1)",
        "UPDATE a",
        "DO 'open",
        "ANALYZE TABLE a",
        "ANALYZE SELECT REPLACE(x, 'a', 'b') FROM a",
    ],
)
def test_other_statements_name_no_table(sql: str) -> None:
    assert changed_tables(sql, Dialect(Flavor.MYSQL, 90700, 0)) is None


def test_quotes_depend_on_the_session() -> None:
    found = changed_tables('INSERT INTO "d"."a b" VALUES ("x")', Dialect(Flavor.MYSQL, 90700, ANSI_QUOTES))
    assert found is not None
    assert found[0] == ("d", "a b")


def test_the_tables_of_columns_without_a_table_are_looked_up() -> None:
    columns = {"c": ("id", "counted"), "orders": ("id", "v")}
    sql = "UPDATE p.c AS x, shop.orders, other SET counted = v, v.z = 1, unknown = 2"
    found = changed_tables(
        sql, Dialect(Flavor.MYSQL, 90700, 0), lambda table, column: column in columns.get(table.table, (column,))
    )
    assert found == (("p", "c"), (None, "other"), (None, "v"))
