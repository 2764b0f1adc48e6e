"""Rules of the servers that are not in the recordings; random statements on real servers revealed them."""

import pytest

from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.model import Database
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server
from tests.support.ddl.made_tables import column, made

MYSQL, MARIADB = Flavor.MYSQL, Flavor.MARIADB
LATIN1, UTF8MB4, UTF8MB3, GBK, UTF16, BINARY = 8, 45, 33, 28, 54, 63
PAD, EMPTY_STRING_IS_NULL, NO_BACKSLASH_ESCAPES = 1 << 31, 1 << 32, 1 << 20


@pytest.mark.parametrize(
    ("flavor", "definition", "default"),
    [
        (MARIADB, "CHAR(1) DEFAULT -1e-2", "'0'"),
        (MARIADB, "TEXT DEFAULT _utf8mb4 0x41", "_utf8mb4'A'"),
        (MARIADB, "TEXT DEFAULT _latin1 b'1000001'", "_latin1'A'"),
        (MARIADB, "VARCHAR(3) DEFAULT 1e3", "'1e3'"),
        (MARIADB, "CHAR(5) DEFAULT 123456e2", "'1.2e7'"),
        (MARIADB, "CHAR(3) DEFAULT 12345e-3", "'12'"),
        (MARIADB, "VARBINARY(3) DEFAULT 12345e-3", "'12'"),
        (MARIADB, "INT DEFAULT DATE '2020-01-02'", "20200102"),
        (MARIADB, "DECIMAL(20,3) DEFAULT TIMESTAMP '2020-01-02 03:04:05.678'", "20200102030405.678"),
        (MARIADB, "CHAR(30) CHARACTER SET utf16 DEFAULT DATE '2020-01-02'", "convert(DATE'2020-01-02' using utf16)"),
        (MARIADB, "TEXT DEFAULT b'101'", "0x05"),
        (MARIADB, "TEXT DEFAULT 007", "7"),
        (MARIADB, "TEXT DEFAULT .5", "0.5"),
        (MARIADB, "TEXT DEFAULT 1e3", "1e3"),
        (MARIADB, "TEXT DEFAULT 'it''s'", "'it\\'s'"),
        (MARIADB, "BLOB DEFAULT 'ü'", "'ü'"),
        (MARIADB, "TIMESTAMP NOT NULL ON UPDATE CURRENT_TIMESTAMP", "'0000-00-00 00:00:00'"),
        (MARIADB, "DATETIME(2) NOT NULL ON UPDATE CURRENT_TIMESTAMP(2)", "'0000-00-00 00:00:00.00'"),
        (MARIADB, "TIME DEFAULT -1e-2", "'00:00:00'"),
        (MARIADB, "YEAR DEFAULT DATE '20-01-02'", "2020"),
        (MARIADB, "YEAR DEFAULT TIMESTAMP '0099-01-02 00:00:00'", "1999"),
        (MARIADB, "YEAR DEFAULT TIME '20:20:00'", "0000"),
        (MYSQL, "YEAR DEFAULT '2e1'", "2020"),
        (MYSQL, "ENUM('0','1') CHARACTER SET latin1 DEFAULT 1", "0"),
        (MYSQL, "ENUM('0','1') CHARACTER SET ascii DEFAULT 1", "1"),
        (MYSQL, "SET('a','b','3') CHARACTER SET latin1 DEFAULT 3", "a,b"),
        (MARIADB, "DATETIME(3) DEFAULT .5", "'0000-00-00 00:00:00.500'"),
        (MARIADB, "DATETIME(3) DEFAULT 101.5", "'2000-01-01 00:00:00.000'"),
        (MARIADB, "DATETIME(3) DEFAULT 101000000.75", "'2000-01-01 00:00:00.750'"),
        (MYSQL, "TIME DEFAULT '-00:00:00'", "00:00:00"),
        (MYSQL, "TIME DEFAULT '1::2'", "00:00:01"),
        (MYSQL, "TIME DEFAULT '1 1'", "00:00:01"),
        (MYSQL, "TIME DEFAULT '1 10'", "34:00:00"),
        (MYSQL, "TIME DEFAULT '1 1:2'", "25:02:00"),
        (MYSQL, "TIME DEFAULT ':5'", "00:05:00"),
        (MYSQL, "TIME DEFAULT '- 5:6:7x'", "-05:06:07"),
        (MYSQL, "TIME(1) DEFAULT '10:11.27'", "10:11:00.3"),
        (MYSQL, "TIME DEFAULT '2020-01-02'", "00:20:20"),
        (MYSQL, "TIME DEFAULT DATE '2020-01-02'", "00:00:00"),
        (MYSQL, "TIME DEFAULT TIMESTAMP '20-1-2 3:4'", "03:04:00"),
        (MYSQL, "TIME DEFAULT '2020-01-02 03:04:05'", "03:04:05"),
        (MYSQL, "TIME DEFAULT '2020-01-02 03:04:05x'", "03:04:05"),
        (MYSQL, "TIME DEFAULT '2020-01-02T03:04:05'", "00:20:20"),
        (MYSQL, "TIME DEFAULT 101112", "10:11:12"),
        (MYSQL, "DECIMAL(12,4) DEFAULT _utf8mb4 0x41", "0.0000"),
        (MYSQL, "SERIAL DEFAULT FALSE", None),
        (MYSQL, "VECTOR DEFAULT ''", None),
    ],
)
def test_defaults(flavor: Flavor, definition: str, default: str | None) -> None:
    assert column(flavor, f"CREATE TABLE t (a {definition})")["column_default"] == default


@pytest.mark.parametrize(
    ("flavor", "definition", "column_type", "collation"),
    [
        (MARIADB, "BLOB COLLATE latin1_bin", "text", "latin1_bin"),
        (MARIADB, "VARBINARY(5) COLLATE latin1_bin", "varchar(5)", "latin1_bin"),
        (MARIADB, "LONG VARBINARY COLLATE latin1_bin", "mediumtext", "latin1_bin"),
        (MARIADB, "JSON COLLATE latin1_bin", "longtext", "latin1_bin"),
        (MARIADB, "VARCHAR(9) CHARSET binary COMPRESSED", "varbinary(9) /*M!100301 COMPRESSED*/", None),
        (MARIADB, "JSON", "longtext", "utf8mb4_bin"),
        (MARIADB, "ENUM('a', '日') CHARACTER SET latin1", "enum('a','?')", "latin1_swedish_ci"),
        (MYSQL, "SET('a', '日', 'ü') CHARACTER SET latin1", "set('a','?','ü')", "latin1_swedish_ci"),
    ],
)
def test_types(flavor: Flavor, definition: str, column_type: str, collation: str | None) -> None:
    found = column(flavor, f"CREATE TABLE t (a {definition})")
    assert (found["column_type"], found["collation"]) == (column_type, collation)


@pytest.mark.parametrize(
    ("flavor", "before", "alter", "wanted"),
    [
        (MARIADB, "a INT", "ADD b INT DEFAULT 3, ALTER b SET DEFAULT 5", {"column_default": "5"}),
        (MARIADB, "b INT, a INT", "ALTER b SET DEFAULT 1, MODIFY b BIGINT DEFAULT 2 AFTER a", {"column_default": "1"}),
        (MARIADB, "a INT AS (1)", "ALTER a DROP DEFAULT", {"column_default": None}),
        (MARIADB, "a INT", "ADD b TEXT CHARACTER SET latin1, CONVERT TO CHARACTER SET utf8mb4", {"data_type": "text"}),
        (MARIADB, "a TEXT CHARACTER SET latin1", "CONVERT TO CHARACTER SET utf8mb4", {"data_type": "mediumtext"}),
        (MARIADB, "a INT", "CONVERT TO CHARSET utf8mb4, ADD b TEXT BINARY", {"collation": "utf8mb4_bin"}),
        (MARIADB, "a CHAR(3) DEFAULT 'x'", "CONVERT TO CHARSET binary", {"column_default": "'x\\0\\0'"}),
        (MARIADB, "b INT, a INT", "ADD b INT, CHANGE b c INT FIRST", {"name": "b"}),
        (MYSQL, "a INT AUTO_INCREMENT KEY", "ALTER a SET DEFAULT '0'", {"column_default": None}),
        (MYSQL, "a INT", "ALTER a SET DEFAULT (5)", {"column_default": "5", "extra": ""}),
        (MYSQL, "a INT", "ALTER a SET DEFAULT (NULL)", {"column_default": None, "extra": ""}),
        (MYSQL, "a INT", "ALTER a SET DEFAULT (1 + 2)", {"column_default": "(1 + 2)", "extra": "DEFAULT_GENERATED"}),
    ],
)
def test_alter_table(flavor: Flavor, before: str, alter: str, wanted: dict[str, object]) -> None:
    found = column(flavor, f"CREATE TABLE t ({before})", f"ALTER TABLE t {alter}")
    assert {name: found[name] for name in wanted} == wanted


def test_default_as_a_character_set_means_its_default_collation_in_mariadb() -> None:
    moved = [QueryEvent("CREATE TABLE k.x (a TEXT)"), QueryEvent("ALTER TABLE k.x CONVERT TO CHARACTER SET DEFAULT")]
    tables = Tables(Server(MARIADB))
    tables.put_database(Database("k", "koi8r", "koi8r_bin"))
    for event in moved:
        tables.apply(event)
    table = tables.table("k", "x")
    assert table is not None
    assert (table.collation, table.columns[0].collation) == ("koi8r_general_ci", "koi8r_general_ci")


def test_default_as_a_character_set_ignores_the_sessions_collations_in_mariadb() -> None:
    for option, collation in (("DEFAULT", "utf8mb4_general_ci"), ("utf8mb4", "utf8mb4_swedish_ci")):
        event = QueryEvent(f"CREATE TABLE t (a INT) CHARSET {option}", "d", character_set_collations=((45, 232),))
        assert made(MARIADB, event)["collation"] == collation


def test_convert_to_default_means_the_sessions_database_in_mysql() -> None:
    convert = QueryEvent("ALTER TABLE d.t CONVERT TO CHARACTER SET DEFAULT", "k")
    assert made(MYSQL, "CREATE TABLE t (a TEXT)", convert)["collation"] == "koi8r_bin"
    assert made(MARIADB, "CREATE TABLE t (a TEXT)", convert)["collation"] == "utf8mb4_general_ci"


def test_a_table_option_comes_after_convert_to_in_any_order() -> None:
    for alter in ("CONVERT TO CHARSET latin1, CHARSET cp1251", "CHARSET cp1251, CONVERT TO CHARSET latin1"):
        found = made(MARIADB, "CREATE TABLE t (a TEXT)", f"ALTER TABLE t {alter}")
        assert (found["collation"], found["columns"][0]["collation"]) == ("cp1251_general_ci", "latin1_swedish_ci")


def test_default_as_a_table_option_beside_convert_to_is_the_databases() -> None:
    for alter in ("CONVERT TO CHARSET latin1, CHARSET DEFAULT", "CHARSET DEFAULT, CONVERT TO CHARSET latin1"):
        found = made(MARIADB, "CREATE TABLE t (a TEXT) CHARSET latin2", f"ALTER TABLE t {alter}")
        assert (found["charset"], found["columns"][0]["charset"]) == ("utf8mb4", "latin1")


def test_a_create_or_replace_that_failed_has_dropped_the_table() -> None:
    tables = Tables(Server(MARIADB))
    tables.apply(QueryEvent("CREATE TABLE t (a INT)", "d"))
    tables.apply(QueryEvent("CREATE OR REPLACE TABLE t (a INT DEFAULT 'x')", "d", error_code=1067))
    assert list(tables) == []


def test_an_index_over_an_expression_has_a_name_of_its_own() -> None:
    keys = made(MYSQL, "CREATE TABLE t (a INT, B INT, UNIQUE (a, (b + 1)))")["unique_keys"]
    assert keys == {"functional_index": ["a", "((`b` + 1))"]}


def test_an_alter_prints_expressions_again_with_the_columns_names() -> None:
    keys = made(MYSQL, "CREATE TABLE t (a INT, B INT, UNIQUE u ((b + 1)))", "ALTER TABLE t COMMENT 'x'")["unique_keys"]
    assert keys == {"u": ["((`B` + 1))"]}


def test_an_alter_prints_names_with_backquotes_again() -> None:
    create = "CREATE TABLE t (`a``b` INT, UNIQUE u ((`A``B` + 1)))"
    assert made(MYSQL, create, "ALTER TABLE t COMMENT 'x'")["unique_keys"] == {"u": ["((`a``b` + 1))"]}


def test_a_text_default_keeps_its_literal_when_mariadb_converts_the_column_to_binary() -> None:
    create = "CREATE TABLE t (a TEXT CHARSET utf32 DEFAULT '1e2')"
    assert column(MARIADB, create, "ALTER TABLE t CONVERT TO CHARSET binary")["column_default"] == "'1e2'"


def test_an_alter_that_changes_the_case_of_a_name_prints_expressions_with_the_old_name() -> None:
    alter = "ALTER TABLE t MODIFY `B` INT"
    keys = made(MYSQL, "CREATE TABLE t (a INT, b INT, UNIQUE u ((b + 1)))", alter)["unique_keys"]
    assert keys == {"u": ["((`b` + 1))"]}


def test_spatial_types_in_keys_of_mariadb() -> None:
    found = made(MARIADB, "CREATE TABLE t (a POINT PRIMARY KEY, b GEOMETRY UNIQUE)")
    assert (found["primary_key"], found["unique_keys"]) == (["a(25)"], {"b": ["b(8)"]})


def test_the_prefix_length_of_a_spatial_type_is_kept() -> None:
    found = made(MARIADB, "CREATE TABLE t (b POLYGON NOT NULL)", "CREATE UNIQUE INDEX i ON t (b(3))")
    assert found["unique_keys"] == {"i": ["b(3)"]}


def test_mariadb_adds_the_keys_of_a_column_that_already_exists() -> None:
    table = "CREATE TABLE t (a INT, b INT)"
    again = "ALTER TABLE t ADD COLUMN IF NOT EXISTS (a CHAR(3) UNIQUE, b INT PRIMARY KEY)"
    found = made(MARIADB, table, again, again, "ALTER TABLE t MODIFY IF EXISTS a INT UNIQUE")
    assert (found["primary_key"], found["unique_keys"]) == (["b"], {"a": ["a"]})
    assert [c["column_type"] for c in found["columns"]] == ["int(11)", "int(11)"]


def test_mariadb_renames_a_column_or_alters_its_default_but_not_both() -> None:
    alter = "ALTER TABLE t RENAME COLUMN a TO b, ALTER a SET DEFAULT 3, ADD a INT"
    columns = made(MARIADB, "CREATE TABLE t (a INT DEFAULT 1)", alter)["columns"]
    assert [(c["name"], c["column_default"]) for c in columns] == [("b", "1"), ("a", "3")]


def test_auto_increment_has_no_default_in_mariadb() -> None:
    table = "CREATE TABLE t (a INT AUTO_INCREMENT PRIMARY KEY)"
    assert column(MARIADB, table, "ALTER TABLE t ALTER a SET DEFAULT 5")["column_default"] is None


def test_a_key_with_on_update_has_the_zero_date_in_mariadb() -> None:
    found = column(MARIADB, "CREATE TABLE t (a DATETIME(2) ON UPDATE NOW(2), PRIMARY KEY (a))")
    assert found["column_default"] == "'0000-00-00 00:00:00.00'"


def test_mariadb_reads_a_number_beyond_the_largest_time_as_a_date() -> None:
    assert column(MARIADB, "CREATE TABLE t (a TIME(2) DEFAULT 20200102)")["column_default"] == "'00:00:00.00'"
    assert column(MARIADB, "CREATE TABLE t (a TIME DEFAULT 20200102030405)")["column_default"] == "'03:04:05'"


@pytest.mark.parametrize("flavor", Flavor)
def test_a_string_has_the_bytes_of_the_connections_character_set(flavor: Flavor) -> None:
    statement = "CREATE TABLE t (a VARBINARY(9) DEFAULT '\\\\ü')"
    for connection, data in ((UTF8MB4, b"\\\xc3\xbc"), (LATIN1, b"\\\xfc"), (UTF16, b"\0\\\0\xfc")):
        tables = Tables(Server(flavor))
        tables.apply(QueryEvent(statement, "d", charset=(UTF8MB4, connection, UTF8MB4)))
        (table,) = tables
        assert (table.columns[0].default or "").encode("latin-1") == data


@pytest.mark.parametrize("flavor", Flavor)
def test_with_a_binary_connection_a_column_takes_over_the_bytes_of_the_statement(flavor: Flavor) -> None:
    statement = "CREATE TABLE t (a SET('1','ü') CHARSET ucs2, b VARCHAR(9) CHARSET latin1 DEFAULT 'ü')"
    columns = made(flavor, QueryEvent(statement, "d", charset=(UTF8MB4, BINARY, UTF8MB4)))["columns"]
    assert columns[0]["column_type"] == "set('1','쎼')"
    assert (columns[1]["column_default"] or "").strip("'") == "Ã¼"


def test_an_empty_string_can_be_null_in_mariadb() -> None:
    for default in ("''", "'' ''", "N''", "_latin1''"):
        event = QueryEvent(f"CREATE TABLE t (a INT DEFAULT {default})", "d", sql_mode=EMPTY_STRING_IS_NULL)
        assert column(MARIADB, event)["column_default"] == "NULL"


@pytest.mark.parametrize(
    ("old", "new", "mysql", "mariadb"),
    [
        ("VARCHAR(63)", "TEXT", "tinytext", "text"),
        ("VARCHAR(64)", "TEXT", "text", "text"),
        ("VARCHAR(5000)", "TINYTEXT", "text", "tinytext"),
        ("INT", "TEXT", "tinytext", "text"),
        ("DECIMAL(65,30)", "TEXT", "text", "text"),
        ("BLOB", "TEXT", "mediumtext", "text"),
        ("LONGTEXT", "TEXT", "longtext", "text"),
        ("VARCHAR(5)", "LONGTEXT", "longtext", "longtext"),
        ("TEXT", "TEXT(10)", "tinytext", "tinytext"),
        ("MEDIUMTEXT", "TEXT(100) CHARSET latin1", "text", "text"),
    ],
)
def test_a_text_that_is_defined_and_converted(old: str, new: str, mysql: str, mariadb: str) -> None:
    alter = f"ALTER TABLE t CONVERT TO CHARSET utf8mb4, MODIFY a {new}"
    for flavor, wanted in ((MYSQL, mysql), (MARIADB, mariadb)):
        assert column(flavor, f"CREATE TABLE t (a {old}) CHARSET latin1", alter)["column_type"] == wanted


@pytest.mark.parametrize(
    ("old", "mysql"),
    [("latin1", "mediumtext"), ("ucs2", "text"), ("gbk", "text"), ("utf8mb3", "text")],
)
def test_a_varchar_that_becomes_too_long_by_conversion(old: str, mysql: str) -> None:
    for flavor, wanted in ((MYSQL, mysql), (MARIADB, "mediumtext")):
        table = f"CREATE TABLE t (a VARCHAR(20000)) CHARSET {old}"
        found = column(flavor, table, "ALTER TABLE t CONVERT TO CHARSET utf8mb4")
        assert found["column_type"] == wanted
        again = column(flavor, table, "ALTER TABLE t CONVERT TO CHARSET utf8mb4, MODIFY a VARCHAR(20000)")
        assert again["column_type"] == "mediumtext"


@pytest.mark.parametrize(
    ("definition", "collation"),
    [
        ("TEXT BINARY COLLATE utf16_general_ci", "utf16_bin"),
        ("ENUM('a') BINARY COLLATE latin1_general_cs", "latin1_bin"),
        ("CHAR(3) CHARSET latin1 BINARY COLLATE latin1_general_cs", "latin1_general_cs"),
        ("NATIONAL CHAR(3) BINARY COLLATE utf8mb3_unicode_ci", "utf8mb3_unicode_ci"),
    ],
)
def test_binary_beside_a_collation(definition: str, collation: str) -> None:
    assert column(MYSQL, f"CREATE TABLE t (a {definition})")["collation"] == collation


@pytest.mark.parametrize("flavor", Flavor)
def test_a_new_column_that_is_binary_stays_so_in_a_conversion(flavor: Flavor) -> None:
    alter = "ALTER TABLE t CONVERT TO CHARSET cp1251, ADD s ENUM('x') BINARY, ADD u CHAR(3) CHARSET latin1 BINARY"
    columns = made(flavor, "CREATE TABLE t (a INT)", alter)["columns"]
    assert [c["collation"] for c in columns] == [None, "cp1251_bin", "cp1251_general_ci"]


@pytest.mark.parametrize("flavor", Flavor)
def test_a_column_that_is_dropped_and_added_again_stays_in_its_index(flavor: Flavor) -> None:
    types = {
        "i": ("INT", 4), "t": ("TIME", 3), "d": ("DATETIME(3)", 7), "c": ("CHAR(10) CHARSET latin1", 10),
        "x": ("TEXT", 7), "n": ("DECIMAL(10,2)", 5), "e": ("ENUM('a')", None), "b": ("BIT(9)", 2),
    }  # fmt: skip
    keys = ", ".join(f"UNIQUE ({name}{'(7)' if name == 'x' else ''})" for name in types)
    table = "CREATE TABLE t (k INT, " + ", ".join(f"{name} {kind}" for name, (kind, _) in types.items()) + f", {keys})"
    alter = "ALTER TABLE t " + ", ".join(f"DROP {name}, ADD {name} VARCHAR(50)" for name in types)
    wanted = {name: [f"{name}({length})" if length else name] for name, (_, length) in types.items()}
    assert made(flavor, table, alter)["unique_keys"] == wanted


def test_mysql_keeps_a_prefix_of_an_enum_that_becomes_text() -> None:
    types = {
        "s": ("SET('C','d') CHARSET latin1", "s(1)"), "e": ("ENUM('en') CHARSET latin1", "e(1)"),
        "f": ("ENUM('x') CHARSET latin1", "f"), "g": ("ENUM('en') CHARSET utf8mb4", "g"),
    }  # fmt: skip
    table = "CREATE TABLE t (" + ", ".join(f"{name} {kind} UNIQUE" for name, (kind, _) in types.items()) + ")"
    alter = "ALTER TABLE t " + ", ".join(f"MODIFY {name} VARCHAR(10)" for name in types)
    assert made(MYSQL, table, alter)["unique_keys"] == {name: [part] for name, (_, part) in types.items()}
    assert made(MARIADB, table, alter)["unique_keys"] == {name: [name] for name in types}


def test_a_binary_label_as_a_default_is_shown_as_its_bytes() -> None:
    assert column(MYSQL, "CREATE TABLE t (a SET('a','1') CHARSET binary DEFAULT TRUE)")["column_default"] == "0x31"


def test_rewritten_statements_are_in_utf8() -> None:
    own = "CREATE TABLE `t` (\n  `my_row_id` bigint unsigned NOT NULL,\n  `é` int DEFAULT NULL\n)".encode()
    assert column(MYSQL, QueryEvent(own, "d", charset=(GBK, GBK, UTF8MB4)))["name"] == "é"
    plain = "CREATE TABLE t (`é` int)".encode("gbk")
    assert column(MYSQL, QueryEvent(plain, "d", charset=(GBK, GBK, UTF8MB4)))["name"] == "é"


def test_rewritten_statements_have_backslash_escapes() -> None:
    own = QueryEvent("CREATE TABLE `t` (\n  `a` varchar(9) DEFAULT 'b\\'\\\\'\n)", "d", sql_mode=NO_BACKSLASH_ESCAPES)
    assert column(MYSQL, own)["column_default"] == "b'\\"
    typed = QueryEvent("CREATE TABLE t (a VARCHAR(9) DEFAULT '\\')", "d", sql_mode=NO_BACKSLASH_ESCAPES)
    assert column(MYSQL, typed)["column_default"] == "\\"


def test_bytes_of_labels_are_those_of_the_connection() -> None:
    event = QueryEvent("CREATE TABLE t (a ENUM('1') CHARACTER SET binary)", "d", charset=(UTF8MB4, UTF16, UTF8MB4))
    assert column(MARIADB, event)["column_type"] == "enum('\\01')"


def test_every_alter_pads_char_defaults_by_its_sql_mode() -> None:
    create = QueryEvent("CREATE TABLE t (a CHAR(3) DEFAULT 'x')", "d", sql_mode=PAD)
    assert column(MYSQL, create)["column_default"] == "x  "
    assert column(MYSQL, create, "ALTER TABLE t COMMENT 'x'")["column_default"] == "x"
