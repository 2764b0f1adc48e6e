"""Rows as SQL statements."""

from __future__ import annotations

import pytest

from rowtide.databus.errors import NoStatement
from rowtide.databus.events import QueryEvent, RowsEvent
from rowtide.databus.sql import escaped, literal, statements
from rowtide.databus.tables import Column, ColumnType, Table
from tests.support.databus.messages import ITEMS, ROW, item

NOTES = Table("s", "n`t", (Column("a", ColumnType.NUMBER, "int"), Column("d", ColumnType.JSON, "json")))


def test_every_row_has_a_statement() -> None:
    made = statements(RowsEvent(ITEMS, "insert", (item(1), item(2))))
    assert len(made) == 2
    assert made[1] == (
        "REPLACE INTO `shop`.`items` (`id`,`name`,`price`,`state`,`tags`,`image`) VALUES (2,NULL,NULL,NULL,NULL,NULL)"
    )


def test_numbers_are_exact_and_labels_are_text() -> None:
    [made] = statements(RowsEvent(ITEMS, "insert", (ROW,)))
    assert made.endswith("VALUES (18446744073709551615,'Käse',0.1000,'sold','a,c',X'00ff')")


def test_an_update_finds_the_row_by_the_key_that_it_had() -> None:
    [made] = statements(RowsEvent(ITEMS, "update", (item(1), (b"2", *ROW[1:]))))
    assert made.startswith("UPDATE `shop`.`items` SET `id`=2,`name`='Käse',")
    assert made.endswith(" WHERE `id`=1")


def test_a_delete_without_a_primary_key_compares_all_columns() -> None:
    made = statements(RowsEvent(NOTES, "delete", ((b"1", b'{"k": 1}'), (None, None))))
    assert made == [
        "DELETE FROM `s`.`n``t` WHERE `a`=1 AND `d`=CAST('{\\\"k\\\": 1}' AS JSON) LIMIT 1",
        "DELETE FROM `s`.`n``t` WHERE `a` IS NULL AND `d` IS NULL LIMIT 1",
    ]


@pytest.mark.parametrize("kind", ["IsVirtual", "IsStored"])
def test_generated_columns_are_not_set(kind: str) -> None:
    found = Table("s", "t", (Column("a", ColumnType.NUMBER, "int"), Column("b", ColumnType.NUMBER, "int"))).fields()
    found["Columns"][1][kind] = True
    table = Table.of(found)
    assert table.fields() == found
    assert statements(RowsEvent(table, "insert", ((b"1", b"2"),))) == ["REPLACE INTO `s`.`t` (`a`) VALUES (1)"]
    assert statements(RowsEvent(table, "update", ((b"1", b"2"), (b"3", b"4")))) == [
        "UPDATE `s`.`t` SET `a`=3 WHERE `a`=1 AND `b`=2 LIMIT 1"
    ]


def test_a_row_without_a_primary_key_is_not_taken_for_one_that_is_equal_in_its_collation() -> None:
    table = Table("s", "t", (Column("a", ColumnType.STRING, "varchar(9)"), Column("b", ColumnType.STRING, "blob")))
    assert statements(RowsEvent(table, "delete", ((b"aB ", b"b"),))) == [
        "DELETE FROM `s`.`t` WHERE CAST(CONVERT(`a` USING utf8mb4) AS BINARY)=X'614220' AND `b`=X'62' LIMIT 1"
    ]


@pytest.mark.parametrize(("text", "expected"), [(b"1.1", "1.100000023841858"), (b"-2.5", "-2.5"), (b"0", "0.0")])
@pytest.mark.parametrize("key", [(), (0,)])
def test_a_float_is_compared_as_the_double_that_it_is(text: bytes, expected: str, key: tuple[int, ...]) -> None:
    table = Table("s", "t", (Column("f", ColumnType.FLOAT, "float"),), primary_key=key)
    [made] = statements(RowsEvent(table, "delete", ((text,),)))
    assert made.removesuffix(" LIMIT 1") == f"DELETE FROM `s`.`t` WHERE `f`={expected}"


def test_a_statement_stays_as_it_is() -> None:
    assert statements(QueryEvent(ITEMS, "drop", "DROP TABLE `shop`.`items`")) == ["DROP TABLE `shop`.`items`"]


def test_texts_are_escaped_as_in_the_original() -> None:
    assert escaped("\0\n\r\x1a'\"\\x") == "\\0\\n\\r\\Z\\'\\\"\\\\x"


def test_bits_are_a_number() -> None:
    assert literal(Column("b", ColumnType.BIT, "bit(8)"), b"5") == "5"


def test_text_that_is_not_utf8_is_written_in_hexadecimal() -> None:
    assert literal(Column("t", ColumnType.STRING, "text"), b"\xe4") == "X'e4'"


def test_other_actions_and_tables_without_columns_have_none() -> None:
    with pytest.raises(NoStatement, match=r"^Do: Have No Match Action: 'merge'"):
        statements(RowsEvent(ITEMS, "merge", (ROW,)))
    with pytest.raises(NoStatement, match=r"^Do: Have No Statement: the structure of table s\.t"):
        statements(RowsEvent(Table("s", "t"), "insert", ((),)))
