"""Public bug reports of other readers of the binlog, as statements: what made them stop or give a wrong value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

GITHUB = "https://github.com/"


class Case(NamedTuple):
    """A report.

    Attributes:
        report: where it is, below ``GITHUB``.
        about: what went wrong there.
        statements: what happens on the server; ``{db}`` is the database.
        rows: the rows of table ``t`` after that, by key, with the columns that matter; ``None`` for no check but that
            snapshot and stream agree.
        server: ``mysql`` or ``mariadb``; ``""`` for both.
    """

    report: str
    about: str
    statements: Sequence[str]
    rows: Mapping[Any, Mapping[str, Any]] | None = None
    server: str = ""


T = "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(40))"
ONE = "INSERT INTO t (id) VALUES (1)"

CASES = [
    Case(
        "zendesk/maxwell/issues/2118",
        "a named CHECK after NOT NULL in MODIFY stops the reader",
        [
            T,
            "ALTER TABLE t MODIFY a VARCHAR(40) NOT NULL CONSTRAINT full CHECK (a <> '')",
            "INSERT INTO t VALUES (1, 'x')",
        ],
        {1: {"a": "x"}},
        "mysql",
    ),
    Case(
        "zendesk/maxwell/issues/2259",
        "a conditional comment of a newer server stops the reader",
        [
            "CREATE TABLE t (id INT PRIMARY KEY, a LONGTEXT /*!99104 COMPRESSED */) ENGINE=InnoDB",
            "INSERT INTO t VALUES (1, 'x')",
        ],
        {1: {"a": "x"}},
    ),
    Case(
        "debezium/debezium/pull/7786",
        "CHANGE to a name that is a function (dbz#360)",
        [
            "CREATE TABLE t (id INT PRIMARY KEY, order_id INT)",
            "ALTER TABLE t CHANGE order_id sum int(11) DEFAULT NULL",
            "INSERT INTO t VALUES (1, 2)",
        ],
        {1: {"sum": 2}},
    ),
    Case(
        "debezium/debezium/pull/7786",
        "UNICODE as the character set (dbz#1272)",
        [T, "ALTER TABLE t MODIFY a VARCHAR(51) UNICODE", "INSERT INTO t VALUES (1, 'жук鉄')"],
        {1: {"a": "жук鉄"}},
    ),
    Case(
        "debezium/debezium/pull/7786",
        "a conditional comment in ALTER DATABASE (dbz#690)",
        ["ALTER DATABASE {db} /*!40100 DEFAULT CHARACTER SET latin1 */", T, "INSERT INTO t VALUES (1, 'é')"],
        {1: {"a": "é"}},
    ),
    Case(
        "debezium/debezium/pull/7786",
        "NOT SECONDARY (dbz#71)",
        [
            "CREATE TABLE t (id INT PRIMARY KEY, a SET('ALL','CARD','PIX') NOT NULL DEFAULT 'ALL' NOT SECONDARY)",
            ONE,
        ],
        {1: {"a": "ALL"}},
        "mysql",
    ),
    Case(
        "debezium/debezium/pull/7892",
        "statement as a column, and $ in the names of indexes (dbz#1301, dbz#332)",
        [
            "CREATE TABLE t (id INT PRIMARY KEY, statement INT, KEY a$b (statement))",
            "ALTER TABLE t RENAME INDEX a$b TO b$a$",
            "INSERT INTO t VALUES (1, 3)",
        ],
        {1: {"statement": 3}},
    ),
    Case(
        "debezium/debezium/pull/6457",
        "ADD PRIMARY KEY IF NOT EXISTS (DBZ-9065)",
        [
            "CREATE TABLE t (id INT, a INT)",
            "ALTER TABLE t ADD PRIMARY KEY IF NOT EXISTS (id)",
            "ALTER TABLE t ADD PRIMARY KEY IF NOT EXISTS (a)",
            "INSERT INTO t VALUES (1, 3)",
        ],
        {1: {"a": 3}},
        "mariadb",
    ),
    Case(
        "debezium/debezium/pull/6862",
        "RENAME with WAIT and IF EXISTS, and CONVERT TO CHARSET (DBZ-9634)",
        [
            "CREATE TABLE o (id INT PRIMARY KEY, a VARCHAR(9)) CHARSET latin1",
            "RENAME TABLES IF EXISTS o NOWAIT TO x, nothing WAIT 3 TO y, x TO t",
            "ALTER TABLE t CONVERT TO CHARSET utf8mb4",
            "ALTER TABLE t WAIT 5 CONVERT TO CHARACTER SET DEFAULT",
            "INSERT INTO t VALUES (1, 'é')",
            "ALTER TABLE t CONVERT TO CHARSET utf8mb4",
            "UPDATE t SET a = 'жé'",
        ],
        {1: {"a": "жé"}},
        "mariadb",
    ),
    Case(
        "debezium/debezium/pull/5566",
        "CREATE TRIGGER IF NOT EXISTS (DBZ-7881)",
        [T, "CREATE TRIGGER IF NOT EXISTS b BEFORE INSERT ON t FOR EACH ROW SET NEW.a = CONCAT('by ', 'trigger')", ONE],
        {1: {"a": "by trigger"}},
    ),
    Case(
        "debezium/debezium/pull/5010",
        "UNION in parentheses in a view (DBZ-7140)",
        [T, "CREATE VIEW v AS (SELECT id FROM t WHERE id < 5) UNION ALL (SELECT 2 LIMIT 1) ORDER BY 1", ONE],
        {1: {"a": None}},
    ),
    Case(
        "debezium/debezium/pull/4777",
        "an assignment of a user variable in an expression (DBZ-6794)",
        [T, "CREATE PROCEDURE p() BEGIN SELECT 1 + @sum:=1 AS ss; END", "INSERT INTO t SELECT @n := 1, @sum := 'é'"],
        {1: {"a": "é"}},
    ),
    Case(
        "airbytehq/airbyte/issues/14745",
        "DEFAULT curdate() without parentheses",
        [
            "CREATE TABLE t (id INT PRIMARY KEY, d DATE NOT NULL DEFAULT curdate(), KEY k USING BTREE (d))",
            "INSERT INTO t VALUES (1, '2024-02-29')",
        ],
        {1: {"d": 19782}},
        "mariadb",
    ),
    Case(
        "apache/flink-cdc/issues/923",
        "ADD with parentheses and a comment with punctuation",
        [
            T,
            "ALTER TABLE t ADD(\n    changed TINYINT DEFAULT 0 NOT NULL COMMENT '签收修改了收款方式，0：否 1：是'\n)",
            ONE,
        ],
        {1: {"changed": 0}},
    ),
    Case(
        "apache/flink-cdc/issues/2447",
        "a number's default with a character set introducer",
        [T, "ALTER TABLE t ADD n INT NOT NULL DEFAULT _UTF8MB4'0', ADD d DECIMAL(5,2) DEFAULT _utf8mb4' 1.5'", ONE],
        {1: {"n": 0, "d": "1.50"}},
    ),
    Case(
        "apache/flink-cdc/issues/1506",
        "COLLATE with a quoted name after the default of a number",
        ["CREATE TABLE t (id INT PRIMARY KEY, a TINYINT DEFAULT '0' COLLATE 'utf8mb3_general_ci')", ONE],
        {1: {"a": 0}},
    ),
    Case(
        "apache/flink-cdc/pull/2418",
        "blanks in the default of a BIGINT and SMALLINT",
        ["CREATE TABLE t (id INT PRIMARY KEY, a BIGINT DEFAULT ' 1 ', b SMALLINT UNSIGNED DEFAULT '2 ')", ONE],
        {1: {"a": 1, "b": 2}},
        "mariadb",
    ),
    Case(
        "apache/flink-cdc/issues/1325",
        "a GBK column in a table of UTF-8",
        [
            "CREATE TABLE t (id VARCHAR(9) PRIMARY KEY, a VARCHAR(9) CHARSET gbk, e ENUM('中','é') CHARSET gbk)",
            "INSERT INTO t VALUES ('1', '中国', '中')",
        ],
        {"1": {"a": "中国", "e": "中"}},
    ),
    Case(
        "apache/flink-cdc/issues/1166",
        "UCS-2, garbled in the snapshot only",
        [
            "CREATE TABLE t (id VARCHAR(20) CHARSET ucs2 PRIMARY KEY, a CHAR(5) CHARSET utf16le, b TEXT CHARSET utf32)",
            "INSERT INTO t VALUES ('测试数据', 'жук', '鉄')",
        ],
        {"测试数据": {"a": "жук", "b": "鉄"}},
    ),
    Case(
        "apache/flink-cdc/issues/1615",
        "NULL becomes the default",
        [
            "CREATE TABLE t (id INT PRIMARY KEY, c DATETIME DEFAULT CURRENT_TIMESTAMP, age INT DEFAULT '100')",
            "INSERT INTO t VALUES (1, NULL, NULL)",
        ],
        {1: {"c": None, "age": None}},
    ),
    Case(
        "apache/seatunnel/issues/8974",
        "rows with a zero TIMESTAMP are lost",
        [
            "SET sql_mode = ''",
            "CREATE TABLE t (id INT PRIMARY KEY, created TIMESTAMP NOT NULL DEFAULT '0000-00-00 00:00:00')",
            "INSERT INTO t (id) VALUES (1), (2)",
            "UPDATE t SET created = '1970-01-02 00:00:00' WHERE id = 2",
        ],
        None,
    ),
    Case(
        "pingcap/ticdc/issues/4283",
        "a negative TIME(3) as the key is another row after a delete",
        [
            "CREATE TABLE t (id TIME(3) PRIMARY KEY, a INT)",
            "INSERT INTO t VALUES ('517:51:04.777', 1), ('-733:00:00.0011', 2), ('-00:00:00.5', 3)",
            "DELETE FROM t WHERE id = '517:51:04.777'",
        ],
        {-2638800001000: {"a": 2}, -500000: {"a": 3}},
    ),
    Case(
        "osheroff/mysql-binlog-connector-java/issues/118",
        "BINARY(16) is damaged by compressed transactions",
        [
            "CREATE TABLE t (id BINARY(16) PRIMARY KEY, a INT)",
            "SET SESSION binlog_transaction_compression = ON",
            "INSERT INTO t VALUES (x'299fc7afff344a309a288e7b0b0cd116', 1), (x'00000000000000000000000000000000', 2)",
        ],
        {"KZ/Hr/80SjCaKI57CwzRFg==": {"a": 1}, "AAAAAAAAAAAAAAAAAAAAAA==": {"a": 2}},
        "mysql",
    ),
    Case(
        "PeerDB-io/peerdb/pull/4538",
        "updates are lost with binlog_row_value_options=PARTIAL_JSON",
        [
            "CREATE TABLE t (id INT PRIMARY KEY, j JSON, n INT)",
            "INSERT INTO t VALUES (1, JSON_OBJECT('a', REPEAT('x', 50), 'b', JSON_ARRAY(1, 2), 'c', 3), 0)",
            "SET SESSION binlog_row_value_options = PARTIAL_JSON",
            "UPDATE t SET j = JSON_SET(j, '$.a', 'short', '$.b[1]', 'x'), n = 7",
        ],
        {1: {"j": '{"a": "short", "b": [1, "x"], "c": 3}', "n": 7}},
        "mysql",
    ),
    Case(
        "osheroff/mysql-binlog-connector-java/issues/65",
        "names of fields after a removal inside a document",
        [
            "CREATE TABLE t (id INT PRIMARY KEY, j JSON)",
            "INSERT INTO t VALUES (1, JSON_OBJECT('k1', REPEAT('a', 30), 'key2', REPEAT('b', 30), 'the third', 'c'))",
            "UPDATE t SET j = JSON_REMOVE(j, '$.key2')",
            "UPDATE t SET j = JSON_SET(j, '$.k1', 'z', '$.\"the third\"', 'y')",
        ],
        {1: {"j": '{"k1": "z", "the third": "y"}'}},
        "mysql",
    ),
    Case(
        "julien-duponchelle/python-mysql-replication/issues/610",
        "DATETIME(3) as the key and many columns",
        [
            "CREATE TABLE t (id DATETIME(3) PRIMARY KEY, "
            + ", ".join(f"c{n} VARCHAR({n * 13 + 1})" for n in range(20))
            + ")",
            "INSERT INTO t (id, c19, c3) VALUES ('2024-02-29 10:11:12.345', 'x', NULL)",
        ],
        {1709201472345: {"c19": "x", "c3": None, "c0": None}},
    ),
    Case(
        "julien-duponchelle/python-mysql-replication/issues/132",
        "VARBINARY that is not text",
        [
            "CREATE TABLE t (id INT PRIMARY KEY, ip VARBINARY(16))",
            "INSERT INTO t VALUES (1, INET6_ATON('::1')), (2, x'62aee1bd')",
        ],
        {1: {"ip": "AAAAAAAAAAAAAAAAAAAAAQ=="}, 2: {"ip": "Yq7hvQ=="}},
    ),
    Case(
        "go-mysql-org/go-mysql/issues/204",
        "TEXT longer than 252 bytes is lost",
        [
            "CREATE TABLE t (id INT PRIMARY KEY, a TEXT)",
            "INSERT INTO t VALUES " + ", ".join(f"({n}, REPEAT('1', {n}))" for n in (252, 253, 255, 256, 65535)),
        ],
        {n: {"a": "1" * n} for n in (252, 253, 255, 256, 65535)},
    ),
    Case(
        "Altinity/clickhouse-sink-connector/pull/1468",
        "ADD and MODIFY of generated columns",
        [
            "CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT)",
            "ALTER TABLE t ADD COLUMN c INT GENERATED ALWAYS AS (a + b) STORED AFTER id, ADD v INT AS (b * 2) VIRTUAL",
            "INSERT INTO t (id, a, b) VALUES (1, 2, 3)",
            "ALTER TABLE t MODIFY COLUMN c BIGINT AS (a + b) STORED",
            "UPDATE t SET a = 10",
        ],
        {1: {"c": 13, "v": 6, "a": 10}},
    ),
    Case(
        "Altinity/clickhouse-sink-connector/pull/1472",
        "the key is exchanged for an AUTO_INCREMENT column in one statement",
        [
            "CREATE TABLE t (sid INT PRIMARY KEY, a INT)",
            (
                "ALTER TABLE t DROP PRIMARY KEY, MODIFY COLUMN sid SMALLINT UNSIGNED "
                "NOT NULL, ADD COLUMN id INT UNSIGNED NOT NULL AUTO_INCREMENT FIRST, ADD PRIMARY KEY (id)"
            ),
            "INSERT INTO t (sid, a) VALUES (65535, 1), (7, 2)",
        ],
        {1: {"sid": 65535, "a": 1}, 2: {"sid": 7, "a": 2}},
    ),
    Case(
        "Altinity/clickhouse-sink-connector/issues/682",
        "ALGORITHM and LOCK as actions",
        [
            T,
            "alter table {db}.t add entity varchar(255) , ALGORITHM=INPLACE, LOCK=NONE",
            "INSERT INTO t VALUES (1, 'a', 'b')",
        ],
        {1: {"a": "a", "entity": "b"}},
    ),
    Case(
        "Altinity/clickhouse-sink-connector/issues/895",
        "ANALYZE PARTITION",
        [
            (
                "CREATE TABLE t (id INT NOT NULL, d DATE NOT NULL, a DECIMAL(10, 2), PRIMARY KEY (id, d)) "
                "PARTITION BY RANGE (YEAR(d)) (PARTITION p2020 VALUES LESS THAN (2021), "
                "PARTITION p2022 VALUES LESS THAN (2023), PARTITION pfuture VALUES LESS THAN MAXVALUE)"
            ),
            "alter table t analyze partition p2022",
            "ALTER TABLE t CHECK PARTITION ALL",
            "ALTER TABLE t OPTIMIZE PARTITION p2020",
            "INSERT INTO t VALUES (1, '2022-01-01', 1)",
            "ALTER TABLE t REMOVE PARTITIONING",
            "UPDATE t SET a = 2.5",
        ],
        None,
    ),
    Case(
        "pingcap/ticdc/issues/1165",
        "partitions are added, reorganized and removed",
        [
            "CREATE TABLE t (id INT NOT NULL PRIMARY KEY, a INT) PARTITION BY HASH (id) PARTITIONS 2",
            "ALTER TABLE t ADD PARTITION PARTITIONS 1",
            "ALTER TABLE t COALESCE PARTITION 1",
            "INSERT INTO t VALUES (1, 1), (2, 2)",
            "ALTER TABLE t REMOVE PARTITIONING",
            "ALTER TABLE t COMMENT = 'New', AUTO_INCREMENT=310",
            "ALTER TABLE t ALTER a SET DEFAULT 3",
            "INSERT INTO t (id) VALUES (3)",
            "ALTER TABLE t PARTITION BY KEY () PARTITIONS 3",
            "UPDATE t SET a = 9 WHERE id = 1",
        ],
        {1: {"a": 9}, 2: {"a": 2}, 3: {"a": 3}},
    ),
    Case(
        "zendesk/maxwell/issues/831",
        "double quotes around names with ANSI_QUOTES",
        [
            "SET sql_mode = 'ANSI_QUOTES'",
            'CREATE TABLE "gone" ("id" INT)',
            'DROP TABLE "gone"',
            'CREATE TABLE "t" ("id" INT PRIMARY KEY, "a b" VARCHAR(9) DEFAULT \'"\')',
            'ALTER TABLE "t" CHANGE "a b" "c" VARCHAR(9) DEFAULT \'"\'',
            ONE,
        ],
        {1: {"c": '"'}},
    ),
    Case(
        "zendesk/maxwell/issues/1931",
        "SET STATEMENT … FOR FLUSH",
        [
            T,
            "SET STATEMENT max_statement_time=60 FOR FLUSH TABLES",
            "SET STATEMENT alter_algorithm='COPY' FOR ALTER TABLE t ADD b INT DEFAULT 5",
            ONE,
        ],
        {1: {"b": 5}},
        "mariadb",
    ),
    Case(
        "zendesk/maxwell/issues/1457",
        "ALTER DATABASE without a name",
        ["ALTER DATABASE CHARACTER SET = latin1 COLLATE = latin1_bin", T, "INSERT INTO t VALUES (1, 'é')"],
        {1: {"a": "é"}},
    ),
    Case(
        "zendesk/maxwell/issues/418",
        "a comma as the default, and an index with an empty comment",
        [
            (
                "CREATE TABLE t (id INT PRIMARY KEY, remark VARCHAR(9) DEFAULT ',', UNIQUE u (remark, id) comment '') "
                "DEFAULT CHARSET utf8mb3 COLLATE utf8mb3_general_ci ROW_FORMAT=COMPACT CHECKSUM=0 DELAY_KEY_WRITE=0"
            ),
            ONE,
        ],
        {1: {"remark": ","}},
    ),
    Case(
        "zendesk/maxwell/issues/1360",
        "page_compressed",
        [T, "alter table t page_compressed = 1", "ALTER TABLE t `PAGE_COMPRESSED`=0, ENCRYPTED=NO", ONE],
        {1: {"a": None}},
        "mariadb",
    ),
    Case(
        "zendesk/maxwell/pull/1689",
        "CREATE TABLE … AS SELECT is logged with START TRANSACTION",
        [
            "CREATE TABLE s (id INT PRIMARY KEY, a VARCHAR(200))",
            "INSERT INTO s VALUES (1, 'é'), (2, NULL)",
            "CREATE TABLE t (PRIMARY KEY (id)) AS SELECT * FROM s LIMIT 5",
        ],
        {1: {"a": "é"}, 2: {"a": None}},
    ),
    Case(
        "PeerDB-io/peerdb/pull/4463",
        "COMPRESSED columns",
        [
            "CREATE TABLE t (id INT KEY, a VARCHAR(500) CHARSET latin1 COMPRESSED)",
            "ALTER TABLE t ADD b TEXT COMPRESSED, ADD c BLOB COMPRESSED",
            "INSERT INTO t VALUES (1, REPEAT('é', 400), REPEAT('ж', 300), REPEAT('x', 5)), (2, '', 's', NULL)",
        ],
        {1: {"a": "é" * 400, "b": "ж" * 300, "c": "eHh4eHg="}, 2: {"a": "", "b": "s", "c": None}},
        "mariadb",
    ),
    Case(
        "pingcap/tidb/issues/44565",
        "ON UPDATE CURRENT_TIMESTAMP in the key leaves the old row",
        [
            (
                "CREATE TABLE t (id INT, val INT, at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE "
                "CURRENT_TIMESTAMP, PRIMARY KEY (id, at))"
            ),
            "INSERT INTO t VALUES (1, 10, '2023-06-10 22:30:00')",
            "UPDATE t SET val = 11 WHERE id = 1",
        ],
        None,
    ),
    Case(
        "nevill/zongji/pull/150",
        "UUID and INET of MariaDB",
        [
            "CREATE TABLE t (id UUID PRIMARY KEY, a INET6, b INET4)",
            "INSERT INTO t VALUES ('299fc7af-ff34-4a30-9a28-8e7b0b0cd116', '::1', '10.0.0.1')",
            "INSERT INTO t VALUES ('00000000-0000-1000-8000-000000000000', NULL, '0.0.0.0')",
        ],
        None,
        "mariadb",
    ),
    Case(
        "apache/inlong/issues/7680",
        "ZEROFILL",
        [
            (
                "CREATE TABLE t (id INT PRIMARY KEY, a BIGINT(20) UNSIGNED ZEROFILL, b FLOAT ZEROFILL, "
                "c DECIMAL(6,2) ZEROFILL, d MEDIUMINT(4) ZEROFILL)"
            ),
            f"INSERT INTO t VALUES (1, {2**64 - 1}, 1.5, 7.25, 16777215)",
        ],
        {1: {"a": str(2**64 - 1), "b": 1.5, "c": "7.25", "d": 16777215}},
    ),
    Case(
        "risingwavelabs/risingwave/pull/19192",
        "the default of an ENUM",
        ["CREATE TABLE t (id INT PRIMARY KEY, e ENUM('happy','sad','it''s, \"ok\"') DEFAULT 'it''s, \"ok\"')", ONE],
        {1: {"e": 'it\'s, "ok"'}},
    ),
    Case(
        "Altinity/clickhouse-sink-connector/issues/572",
        "CHANGE COLUMN of a table with a qualified name while other databases have the same names",
        [
            T,
            "ALTER TABLE {db}.t CHANGE COLUMN a b INT",
            "ALTER TABLE `{db}` . `t` CHANGE `b` `c` BIGINT UNSIGNED FIRST",
            f"INSERT INTO t VALUES ({2**63}, 1)",
        ],
        {1: {"c": str(2**63)}},
    ),
    Case(
        "apache/seatunnel/pull/4670",
        "TIME is empty",
        [
            "CREATE TABLE t (id INT PRIMARY KEY, a TIME, b TIME(6))",
            "INSERT INTO t VALUES (1, '-838:59:59', '838:59:58.999999')",
        ],
        {1: {"a": -3020399000000, "b": 3020398999999}},
    ),
    Case(
        "rusuly/MySqlCdc/issues/18",
        "statements of a session on tables that are not captured",
        [
            T,
            "CREATE TEMPORARY TABLE tt AS SELECT 1 AS id",
            "INSERT INTO t SELECT id, 'x' FROM tt",
            "DROP TEMPORARY TABLE tt",
        ],
        {1: {"a": "x"}},
    ),
    Case(
        "apache/flink-cdc/issues/732",
        "rows after a column was added in the middle while others were dropped",
        [
            "CREATE TABLE t (id INT PRIMARY KEY, a INT, b VARCHAR(9), c DATETIME(3))",
            "INSERT INTO t VALUES (1, 2, 'b', NULL)",
            (
                "ALTER TABLE t DROP a, ADD z TINYINT UNSIGNED NOT NULL DEFAULT 255 FIRST, "
                "MODIFY c DATETIME(6) AFTER z, ADD COLUMN (y BIT(9), x YEAR)"
            ),
            "INSERT INTO t VALUES (0, '2024-02-29 00:00:00.000001', 2, 'x', b'100000001', 1901)",
            "UPDATE t SET b = 'c' WHERE id = 1",
        ],
        {1: {"z": 255, "b": "c", "c": None}, 2: {"z": 0, "c": 1709164800000001, "y": "AQE=", "x": 1901}},
    ),
    Case(
        "zendesk/maxwell/issues/1216",
        "ADD AFTER a column that the same statement renames later",
        [
            "CREATE TABLE t (id INT PRIMARY KEY, i INT, z INT)",
            "ALTER TABLE t ADD COLUMN n INT DEFAULT 9 AFTER j, CHANGE COLUMN i j INT",
            "INSERT INTO t VALUES (2,3,4,5)",
        ],
        {2: {"j": 3, "n": 4, "z": 5}},
    ),
    Case(
        "zendesk/maxwell/pull/1218",
        "CHANGE AFTER the new name of a column that is renamed later",
        [
            "CREATE TABLE t (id INT PRIMARY KEY, a INT, b VARCHAR(25))",
            "ALTER TABLE t CHANGE COLUMN a a INT AFTER c, CHANGE COLUMN b c VARCHAR(25)",
            "INSERT INTO t VALUES (1,'x',3)",
        ],
        {1: {"c": "x", "a": 3}},
    ),
    Case(
        "zendesk/maxwell/pull/1218",
        "two columns exchange their names",
        [
            "CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT)",
            "ALTER TABLE t CHANGE a b INT, CHANGE b a INT",
            "INSERT INTO t VALUES (2,4,5)",
        ],
        {2: {"b": 4, "a": 5}},
    ),
    Case(
        "zendesk/maxwell/issues/1442",
        "DROP of a column qualified by its table",
        [
            "CREATE TABLE t (id INT PRIMARY KEY, foo INT, a INT)",
            "ALTER TABLE t DROP t.foo",
            "INSERT INTO t VALUES (1,2)",
        ],
        {1: {"a": 2}},
        "mariadb",
    ),
    Case(
        "zendesk/maxwell/issues/1303",
        "MODIFY of a column qualified by its table",
        [
            "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(40))",
            "ALTER TABLE t MODIFY COLUMN t.a VARCHAR(500)",
            "INSERT INTO t VALUES (1,REPEAT('é',300))",
        ],
        {1: {"a": "é" * 300}},
        "mariadb",
    ),
    Case(
        "zendesk/maxwell/issues/468",
        "columns are moved around between rows",
        [
            "CREATE TABLE t (id INT PRIMARY KEY, a INT, b SET('x','y'), c VARCHAR(9))",
            "INSERT INTO t VALUES (1,1,'x','c')",
            "ALTER TABLE t MODIFY a INT AFTER c",
            "INSERT INTO t VALUES (2,'y','d',2)",
            "ALTER TABLE t MODIFY c VARCHAR(9) FIRST, MODIFY b SET('x','y','z') AFTER c",
            "INSERT INTO t VALUES ('e','x,z',3,3)",
        ],
        {1: {"a": 1, "b": "x", "c": "c"}, 2: {"a": 2, "b": "y", "c": "d"}, 3: {"a": 3, "b": "x,z", "c": "e"}},
    ),
    Case(
        "zendesk/maxwell/issues/488",
        "the key is renamed after the table was",
        [
            "CREATE TABLE o (oid INT PRIMARY KEY, a INT)",
            "ALTER TABLE o RENAME TO t",
            "ALTER TABLE t CHANGE oid id BIGINT(19)",
            "INSERT INTO t VALUES (5000000000,1)",
        ],
        {5000000000: {"a": 1}},
    ),
    Case(
        "zendesk/maxwell/issues/158",
        "executable comments without a version",
        [
            "CREATE DATABASE /*! IF NOT EXISTS */ {db}",
            (
                "create table /*! if not exists */ `{db}`.`t` (  `id` int (10) unsigned not null "
                "auto_increment,  primary key (`id`) )"
            ),
            "create table /*! if not exists */ t (x INT)",
            "INSERT INTO t VALUES (4294967295)",
        ],
        {4294967295: {}},
    ),
    Case(
        "zendesk/maxwell/issues/272",
        "a name after a dot, and a quoted character set",
        [
            "CREATE TABLE t (id INT PRIMARY KEY, password VARCHAR(10))",
            (
                "ALTER TABLE .`t` CHANGE COLUMN `password` `password` VARCHAR(60) CHARACTER SET 'utf8' "
                "COLLATE 'utf8_bin' NULL DEFAULT NULL COMMENT 'Length 60' , ADD COLUMN `scheme` "
                "ENUM('md5','bcrypt') NULL DEFAULT 'md5' AFTER `password`"
            ),
            "INSERT INTO t VALUES (1,'p','bcrypt')",
        ],
        {1: {"password": "p", "scheme": "bcrypt"}},
        "mariadb",
    ),
    Case(
        "julien-duponchelle/python-mysql-replication/issues/218",
        "zeros of TIMESTAMP(6) and DATETIME(6) as defaults",
        [
            "SET sql_mode=''",
            (
                "CREATE TABLE t (id INT PRIMARY KEY, a timestamp(6) NULL DEFAULT '0000-00-00 "
                "00:00:00.000000', b datetime(6) DEFAULT '0000-00-00 00:00:00.000000', c TEXT, d BLOB)"
            ),
            "INSERT INTO t (id,a,c,d) VALUES (1,'2017-07-20 14:02:35.435957','Hello World',REPEAT(x'00ff',7089))",
            "INSERT INTO t (id) VALUES (2)",
        ],
        None,
    ),
    Case(
        "github/gh-ost/issues/450",
        "microseconds of DATETIME(6)",
        [
            "CREATE TABLE t (id BIGINT PRIMARY KEY, d DATETIME(6))",
            "INSERT INTO t VALUES (1,'2017-07-14 00:09:51.073974')",
        ],
        {1: {"d": 1499990991073974}},
    ),
    Case(
        "PeerDB-io/peerdb/pull/4535",
        "JSON numbers: 1.0, and integers beyond 2^53",
        [
            "CREATE TABLE t (id INT PRIMARY KEY, j JSON)",
            (
                'INSERT INTO t VALUES (1,\'{"name": "a", "id": 1, "val": 1.0, "pi": 3.14, "sf": '
                '1234567890123456789, "amt": 9007199254740993, "e": 1e100, "n": -0.0}\')'
            ),
        ],
        None,
    ),
    Case(
        "spiceai/spiceai/pull/12264",
        "negative MEDIUMINT",
        [
            "CREATE TABLE t (id MEDIUMINT PRIMARY KEY, m MEDIUMINT, u MEDIUMINT UNSIGNED)",
            "INSERT INTO t VALUES (-8000000,-8388608,16777215)",
            "UPDATE t SET m = -1",
        ],
        {-8000000: {"m": -1, "u": 16777215}},
    ),
    Case(
        "drasi-project/drasi-core/issues/677",
        "ENUM, SET and TIMESTAMP as numbers in the stream",
        [
            "SET time_zone='+03:00'",
            (
                "CREATE TABLE t (id INT PRIMARY KEY, e ENUM('red','green','blue'), s SET('a','b','c'), ts "
                "TIMESTAMP NULL)"
            ),
            (
                "INSERT INTO t VALUES (1,'green','a,c','2025-06-15 "
                "13:45:30'),(2,2,5,NULL),(3,NULL,0,'1970-01-01 03:00:01')"
            ),
        ],
        {
            1: {"e": "green", "s": "a,c", "ts": "2025-06-15T10:45:30Z"},
            2: {"e": "green", "s": "a,c", "ts": None},
            3: {"e": None, "s": "", "ts": "1970-01-01T00:00:01Z"},
        },
    ),
    Case(
        "julien-duponchelle/python-mysql-replication/issues/310",
        "updates of a part of a document leave holes in it",
        [
            "SET binlog_row_value_options=PARTIAL_JSON",
            "CREATE TABLE t (id INT PRIMARY KEY, j JSON)",
            (
                'INSERT INTO t VALUES (1,\'{"id": 1, "name": "Muscle", "types":[1,"123"], "o": {"k": "long '
                "text here\"}}')"
            ),
            "UPDATE t SET j = JSON_SET(j,'$.name','Mon')",
            "UPDATE t SET j = JSON_SET(j,'$.o.k','x')",
            "UPDATE t SET j = JSON_REMOVE(j,'$.types[0]')",
            "UPDATE t SET j = JSON_REPLACE(j,'$.types[0]',1.5, '$.name', CAST('2020-01-02' AS DATE))",
            "SET binlog_row_value_options=''",
            "UPDATE t SET j = JSON_SET(j,'$.o.k','y')",
        ],
        None,
        "mysql",
    ),
    Case(
        "julien-duponchelle/python-mysql-replication/issues/474",
        "booleans in JSON",
        [
            "CREATE TABLE t (id INT PRIMARY KEY, j JSON)",
            (
                'INSERT INTO t VALUES (1,\'{"btn": true, "model": false, "x": '
                "null}'),(2,'true'),(3,'null'),(4,NULL),(5,'[]'),(6,'{}'),(7,'\"\"')"
            ),
        ],
        None,
    ),
    Case(
        "apache/flink-cdc/issues/2192",
        "an index of values in a JSON array",
        [
            "CREATE TABLE t (id INT PRIMARY KEY, f1 JSON)",
            "ALTER TABLE `t` ADD INDEX `k_source` ( (CAST(f1->'$.inner' AS UNSIGNED ARRAY)) )",
            "INSERT INTO t VALUES (1,'{\"inner\":[1,2]}')",
            "UPDATE t SET f1='{\"inner\":[3]}'",
        ],
        {1: {"f1": '{"inner": [3]}'}},
        "mysql",
    ),
    Case(
        "apache/flink-cdc/issues/1399",
        "the default 0 of a new BIGINT",
        [
            "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(40))",
            (
                "ALTER TABLE t ADD COLUMN b BIGINT NOT NULL DEFAULT 0 COMMENT 'x', ADD c SMALLINT(6) "
                "DEFAULT '00', ADD d BIT(1) DEFAULT b'0', ADD e TINYINT UNSIGNED DEFAULT '1'"
            ),
            "INSERT INTO t (id) VALUES (2)",
        ],
        {2: {"b": 0, "c": 0, "d": False, "e": 1}},
    ),
    Case(
        "airbytehq/airbyte/issues/50865",
        "ALTER USER RETAIN CURRENT PASSWORD",
        [
            "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(40))",
            "CREATE USER IF NOT EXISTS rep1@localhost IDENTIFIED BY 'aB3$xyz_long'",
            "ALTER USER rep1@localhost IDENTIFIED BY 'bB3$xyz_long' RETAIN CURRENT PASSWORD",
            "ALTER USER rep1@localhost DISCARD OLD PASSWORD",
            "DROP USER rep1@localhost",
            "INSERT INTO t (id) VALUES (1)",
        ],
        {1: {"a": None}},
        "mysql",
    ),
    Case(
        "airbytehq/airbyte/issues/9196",
        "FLUSH TABLE",
        [
            "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(40))",
            "flush table",
            "FLUSH TABLES t",
            "FLUSH LOCAL STATUS",
            "FLUSH PRIVILEGES",
            "INSERT INTO t (id) VALUES (1)",
        ],
        {1: {"a": None}},
    ),
    Case(
        "wso2/api-manager/issues/1677",
        "DEFAULT (curdate())",
        [
            (
                "CREATE TABLE t (id INT PRIMARY KEY, d DATE DEFAULT (curdate()), c VARCHAR(9) DEFAULT "
                "(concat('a','b')), e DATETIME DEFAULT (now() + interval 1 day))"
            ),
            "INSERT INTO t (id) VALUES (1)",
        ],
        None,
    ),
    Case(
        "debezium/debezium/pull/3917",
        "versioning is added and dropped",
        [
            "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(40))",
            "INSERT INTO t VALUES (1,'a'),(2,'b')",
            "ALTER TABLE t ADD SYSTEM VERSIONING",
            "UPDATE t SET a='c' WHERE id=1",
            "DELETE FROM t WHERE id=2",
            "ALTER TABLE t DROP SYSTEM VERSIONING",
            "INSERT INTO t VALUES (3,'d')",
        ],
        {1: {"a": "c"}, 3: {"a": "d"}},
        "mariadb",
    ),
    Case(
        "osheroff/mysql-binlog-connector-java/issues/134",
        "ENUM columns of other character sets than the table's",
        [
            (
                "CREATE TABLE t (id INT PRIMARY KEY, a ENUM('é','ß') CHARACTER SET latin1, b SET('жук','b') "
                "CHARACTER SET cp1251, c ENUM('鉄') CHARACTER SET utf8mb4, d VARCHAR(9) CHARACTER SET "
                "latin1) CHARSET=utf8mb4"
            ),
            "INSERT INTO t VALUES (1,'ß','жук,b','鉄','é'),(2,NULL,'','鉄',NULL)",
        ],
        {1: {"a": "ß", "b": "жук,b", "c": "鉄", "d": "é"}, 2: {"b": ""}},
    ),
    Case(
        "osheroff/mysql-binlog-connector-java/issues/154",
        "negative TIME",
        [
            "CREATE TABLE t (id INT PRIMARY KEY, a TIME, b TIME(3), c TIME(6))",
            (
                "INSERT INTO t VALUES "
                "(1,'-00:00:01','-16:08:04.250','-16:08:04.250'),(2,'-838:59:59','-00:00:00.001','-00:00:00.000001')"
            ),
        ],
        {1: {"a": -1000000, "b": -58084250000, "c": -58084250000}, 2: {"a": -3020399000000, "b": -1000, "c": -1}},
    ),
    Case(
        "debezium/debezium/pull/214",
        "a column, its index and its foreign key are dropped together",
        [
            "CREATE TABLE p (id INT PRIMARY KEY)",
            (
                "CREATE TABLE t (id INT PRIMARY KEY, s INT, a INT, KEY `FK69` (s), CONSTRAINT `FK69` "
                "FOREIGN KEY (s) REFERENCES p (id))"
            ),
            "ALTER TABLE `{db}`.`t`   \n  drop column `s`, \n  drop index `FK69`,\n  drop foreign key `FK69`",
            "INSERT INTO t VALUES (1,2)",
        ],
        {1: {"a": 2}},
    ),
    Case(
        "pingcap/tidb/issues/3566",
        "ADD with several columns in parentheses",
        [
            "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(40))",
            "ALTER TABLE t ADD (d BIGINT NULL, e VARCHAR (40) NULL, tags VARCHAR (4000) NULL, r TINYINT(2) NULL)",
            "INSERT INTO t VALUES (1,'a',2,'e','t',3)",
        ],
        {1: {"d": 2, "e": "e", "tags": "t", "r": 3}},
    ),
    Case(
        "pingcap/ticdc/issues/1734",
        "three tables exchange their names in a circle",
        [
            "CREATE TABLE a (id INT PRIMARY KEY, a INT)",
            "CREATE TABLE t (id INT PRIMARY KEY, b VARCHAR(9))",
            "RENAME TABLE a TO c, t TO a, c TO t",
            "INSERT INTO t VALUES (1,2)",
            "INSERT INTO a VALUES (3,'x')",
        ],
        {1: {"a": 2}},
    ),
    Case(
        "actiontech/dtle/issues/300",
        "ALTER TABLE RENAME without TO",
        [
            "CREATE TABLE o (id INT PRIMARY KEY, first_name text not null, views int(10))",
            "alter table  o rename t",
            "INSERT INTO t VALUES (1,'z',5)",
        ],
        {1: {"first_name": "z", "views": 5}},
    ),
    Case(
        "shyiko/mysql-binlog-connector-java/issues/147",
        "an ON UPDATE default of TIMESTAMP(3)",
        [
            "SET sql_mode=''",
            (
                "CREATE TABLE t (id INT PRIMARY KEY, c timestamp(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3) "
                "ON UPDATE CURRENT_TIMESTAMP(3))"
            ),
            "INSERT INTO t VALUES (1,'2012-00-00 11:00:00.001'),(2,'2012-01-02 11:00:00.001')",
        ],
        None,
    ),
    Case(
        "PeerDB-io/peerdb/issues/3183",
        "an ENUM is sometimes its number",
        [
            "CREATE TABLE t (id INT PRIMARY KEY, m enum('sms','whatsapp') NOT NULL DEFAULT 'sms')",
            "INSERT INTO t VALUES (1,'whatsapp'),(2,2)",
            "ALTER TABLE t MODIFY m enum('call','sms','whatsapp') NOT NULL DEFAULT 'sms'",
            "INSERT INTO t VALUES (3,2),(4,'whatsapp')",
            "UPDATE t SET m = 3 WHERE id = 3",
        ],
        {1: {"m": "whatsapp"}, 2: {"m": "whatsapp"}, 3: {"m": "whatsapp"}, 4: {"m": "whatsapp"}},
    ),
    Case(
        "shyiko/mysql-binlog-connector-java/issues/56",
        "BINARY is decoded as text",
        [
            "CREATE TABLE t (id BINARY(4) PRIMARY KEY, a VARBINARY(9), b TINYBLOB)",
            "INSERT INTO t VALUES (x'80ff0000', x'', x'e9'),(x'00000000', x'00', NULL)",
        ],
        None,
    ),
    Case(
        "go-mysql-org/go-mysql/pull/69",
        "the last column is NULL, and it is the ninth",
        [
            "CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT, c INT, d INT, e INT, f INT, g INT, h VARCHAR(9))",
            "INSERT INTO t VALUES (1,1,1,1,1,1,1,1,NULL),(2,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL)",
            "UPDATE t SET h='' WHERE id=2",
            "UPDATE t SET h=NULL",
        ],
        {1: {"g": 1, "h": None}, 2: {"a": None, "h": None}},
    ),
    Case(
        "Altinity/clickhouse-sink-connector/issues/1140",
        "ALGORITHM between the columns of one statement",
        [
            "CREATE TABLE t (id BIGINT UNSIGNED NOT NULL PRIMARY KEY)",
            "ALTER TABLE t ADD COLUMN n INTEGER, algorithm=instant, ADD COLUMN r BIGINT, algorithm=instant",
            "INSERT INTO t VALUES (1, 2, 3)",
        ],
        {"1": {"n": 2, "r": 3}},
    ),
    Case(
        "mysql/mysql-server/pull/516",
        "a column is dropped and another one moved in one statement",
        [
            "CREATE TABLE t (id INT PRIMARY KEY, b INT, c INT, d VARCHAR(9))",
            "INSERT INTO t VALUES (1, 2, 3, 'x')",
            "ALTER TABLE t DROP COLUMN c, MODIFY COLUMN d VARCHAR(9) AFTER id",
            "INSERT INTO t VALUES (2, 'y', 4)",
            "UPDATE t SET b = b + 1",
        ],
        {1: {"b": 3, "d": "x"}, 2: {"b": 5, "d": "y"}},
    ),
    Case(
        "osheroff/mysql-binlog-connector-java/issues/139",
        "a UUID in BINARY(16) loses the zero byte at its end",
        [
            "CREATE TABLE t (id INT PRIMARY KEY, u BINARY(16), v VARBINARY(16))",
            "INSERT INTO t VALUES (1, x'ab9d25e064e6469f98738621910ed300', x'ab9d25e064e6469f98738621910ed300')",
            "UPDATE t SET u = x'00'",
        ],
        {1: {"u": "AAAAAAAAAAAAAAAAAAAAAA==", "v": "q50l4GTmRp+Yc4YhkQ7TAA=="}},
    ),
    Case(
        "bakwc/mysql_ch_replicator/pull/79",
        "the columns of the key move",
        [
            "CREATE TABLE t (a INT, id INT, b INT, PRIMARY KEY (id))",
            "ALTER TABLE t ADD c INT FIRST, ADD d INT AFTER a",
            "INSERT INTO t VALUES (1, 2, 3, 4, 5)",
            "ALTER TABLE t DROP c, MODIFY b INT FIRST",
            "INSERT INTO t VALUES (6, 7, 8, 9)",
            "UPDATE t SET d = NULL WHERE id = 4",
        ],
        {4: {"a": 2, "b": 5, "d": None}, 9: {"a": 7, "b": 6, "d": 8}},
    ),
    Case(
        "apache/flink-cdc/pull/4183",
        "MODIFY that only changes the position",
        [
            "CREATE TABLE t (id INT PRIMARY KEY, a INT, b VARCHAR(9))",
            "ALTER TABLE t MODIFY COLUMN b VARCHAR(9) FIRST",
            "INSERT INTO t VALUES ('x', 1, 2)",
        ],
        {1: {"a": 2, "b": "x"}},
    ),
    Case(
        "eventuate-foundation/eventuate-cdc/issues/77",
        "a column is dropped and added again with another type at the end",
        [
            "CREATE TABLE t (id INT PRIMARY KEY, destination VARCHAR(9) NOT NULL, headers TEXT)",
            "INSERT INTO t VALUES (1, 'a', 'b')",
            "ALTER TABLE t DROP destination",
            "ALTER TABLE t ADD destination LONGTEXT",
            "INSERT INTO t VALUES (2, 'c', 'd')",
            "UPDATE t SET destination = 'e' WHERE id = 1",
        ],
        {1: {"destination": "e", "headers": "b"}, 2: {"destination": "d", "headers": "c"}},
    ),
]
