"""Labels of ENUM and SET in CONVERT TO CHARACTER SET: the servers keep their bytes and read them in the new set.

Every expectation was observed on a real server.
"""

import pytest

from rowtide.schema_history.server.query_event import Flavor, QueryEvent
from tests.support.ddl.made_tables import column

MYSQL, MARIADB = Flavor.MYSQL, Flavor.MARIADB
LATIN1 = 8


@pytest.mark.parametrize(
    ("target", "label", "mysql", "mariadb"),
    [
        ("utf8mb4", b"\xe4", "", "?"),
        ("utf8mb4", b"A\xe4B", "A", "A?B"),
        ("utf8mb4", b"\xe4\xba\xe4", "??", "???"),
        ("utf8mb4", b"\xc3\xa4", "ä", "ä"),
        ("utf8mb4", b"\xfd\xfeA", "", "??A"),
        ("utf8mb3", b"\xf0\x9f\x98\x80", None, "????"),
        ("ascii", b"A\xe4B", "A?B", "A?B"),
        ("sjis", b"\xc6\xfc\xcb\xdc", "ﾆ?ﾜ", "ﾆ?ﾜ"),
        ("sjis", b"\xf0\x9f\x98\x80", "??", "??"),
        ("sjis", b"\xe4\xba\xe4", "莠", "莠?"),
        ("gbk", b"\xc3\xa4", "盲", "盲"),
        ("gbk", b"BA\xc3", "BA", "BA?"),
        ("big5", b"\xf0\x9f\x98\x80", "??", "????"),
        ("euckr", b"\xed\xa0\x80", "?", "??"),
        ("ujis", b"\xc6\xfc\xcb\xdc", "日本", "日本"),
        ("ujis", b"A\xe4B", "A?B", "A?B"),
        ("cp1251", b"\xf0\x9f\x98\x80", "рџ?Ђ", "рџ?Ђ"),
        ("hebrew", b"\xc6\xfc\xe4", "??ה", "??ה"),
    ],
)
def test_the_bytes_of_labels_are_read_in_the_new_character_set(
    target: str, label: bytes, mysql: str | None, mariadb: str
) -> None:
    create = b"CREATE TABLE t (a ENUM('" + label + b"','zz') CHARACTER SET latin1)"
    for flavor, expected in ((MYSQL, mysql), (MARIADB, mariadb)):
        if expected is not None:
            event = QueryEvent(create, "d", sql_mode=0, charset=(LATIN1, LATIN1, LATIN1))
            found = column(flavor, event, f"ALTER TABLE t CONVERT TO CHARACTER SET {target}")
            assert found["column_type"] == f"enum('{expected}','zz')"


@pytest.mark.parametrize("flavor", Flavor)
@pytest.mark.parametrize(
    ("definition", "target", "labels", "default"),
    [
        ("ENUM('a','b') CHARACTER SET ucs2 DEFAULT 'b'", "utf8mb4", "enum('\\0a','\\0b')", "\0b"),
        ("SET('a','b') CHARACTER SET utf16le DEFAULT 'b'", "utf8mb4", "set('a\\0','b\\0')", "b\0"),
        ("ENUM('a','b') CHARACTER SET latin1 DEFAULT 'b'", "utf8mb4", "enum('a','b')", "b"),
    ],
)
def test_the_default_is_the_label_of_the_same_number(
    flavor: Flavor, definition: str, target: str, labels: str, default: str
) -> None:
    found = column(flavor, f"CREATE TABLE t (a {definition})", f"ALTER TABLE t CONVERT TO CHARACTER SET {target}")
    shown = default if flavor is MYSQL else "'" + default.replace("\0", "\\0") + "'"
    assert (found["column_type"], found["column_default"]) == (labels, shown)


@pytest.mark.parametrize("flavor", Flavor)
def test_latin1_has_control_characters_where_windows_1252_has_nothing(flavor: Flavor) -> None:
    create = "CREATE TABLE t (a ENUM('漢','b') CHARACTER SET gbk)"
    found = column(flavor, create, "ALTER TABLE t CONVERT TO CHARACTER SET latin1")
    assert found["column_type"] == "enum('\x9dh','b')"
