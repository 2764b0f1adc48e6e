"""Messages: the original's JSON, both ways."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowtide.databus.errors import UnreadableMessage
from rowtide.databus.events import DDL, DML, KafkaKey, Position, QueryEvent, RowsEvent, decode_message
from rowtide.databus.tables import Table
from tests.support.databus.messages import ITEMS, ROW, message

KEY = b'{"Pos":{"Name":"mysql-bin.000003","Pos":154},"Action":"DML"}'
VALUE = (
    b'{"Table":{"Schema":"s","Name":"t","Columns":[{"Name":"id","Type":1,"RawType":"int(11)","IsAuto":true,'
    b'"EnumValues":null,"SetValues":null},{"Name":"e","Type":3,"RawType":"enum(\'a\',\'b\')","IsAuto":false,'
    b'"EnumValues":["a","b"],"SetValues":null}],"Indexes":[{"Name":"PRIMARY","Columns":["id"],"Cardinality":[1]}],'
    b'"PKColumns":[0]},"Action":"update","Rows":[["MQ==","YQ=="],["MQ==",null]]}'
)
"""As Go's encoding/json writes them."""


def test_a_key_is_that_of_the_original_byte_for_byte() -> None:
    key = KafkaKey.decode(KEY)
    assert key == KafkaKey(Position("mysql-bin.000003", 154), DML)
    assert key.encoded() == KEY


def test_a_rows_event_is_that_of_the_original_byte_for_byte() -> None:
    event = RowsEvent.decode(VALUE)
    assert (str(event.table), event.action, event.rows) == ("s.t", "update", ((b"1", b"a"), (b"1", None)))
    assert event.table.primary_key == (0,)
    assert event.encoded() == VALUE


def test_a_statement_is_in_base64() -> None:
    event = QueryEvent(Table("s", "t"), "alter", "ALTER TABLE `s`.`t` ADD x INT -- ä")
    fields = json.loads(event.encoded())
    assert base64.b64decode(fields["Query"]).decode() == event.query
    assert fields["Table"]["PKColumns"] is None
    assert QueryEvent.decode(event.encoded()) == event


@given(
    st.lists(
        st.tuples(*[st.none() | st.binary(max_size=20) for _ in ITEMS.columns]).map(tuple), min_size=2, max_size=4
    ).filter(lambda rows: len(rows) % 2 == 0),
    st.sampled_from(["insert", "update", "delete"]),
)
def test_any_rows_survive(rows: list[tuple[bytes | None, ...]], action: str) -> None:
    event = RowsEvent(ITEMS, action, tuple(rows))
    assert RowsEvent.decode(event.encoded()) == event


def test_values_are_exact_and_have_the_types_of_python() -> None:
    [values] = RowsEvent(ITEMS, "insert", (ROW,)).values()
    assert [str(value) for value in values[:5]] == ["18446744073709551615", "Käse", "0.1000", "sold", "a,c"]
    assert values[5] == b"\x00\xff"


def test_the_original_s_indexes_of_enum_and_set_become_text() -> None:
    state, tags = ITEMS.columns[3], ITEMS.columns[4]
    assert [state.value(text) for text in (b"1", b"2", b"0", b"7", None)] == ["new", "sold", "", "7", None]
    assert [tags.value(text) for text in (b"0", b"5", b"7")] == ["", "a,c", "a,b,c"]


def test_rows_before_and_after_each_change() -> None:
    event = RowsEvent.decode(VALUE)
    assert list(event.changes()) == [((b"1", b"a"), (b"1", None))]
    row = event.rows[0]
    assert list(RowsEvent(event.table, "insert", (row,)).changes()) == [(None, row)]
    assert list(RowsEvent(event.table, "delete", (row,)).changes()) == [(row, None)]


def test_a_table_without_primary_key_has_no_key_values() -> None:
    assert RowsEvent(ITEMS, "insert", (ROW,)).key_values(ROW) == [18446744073709551615]
    with pytest.raises(ValueError, match=r"table s\.t has no PK"):
        RowsEvent(Table("s", "t"), "insert", ()).key_values(())


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        (None, VALUE, "it has no key"),
        (b"\xff", VALUE, "utf-8"),
        (b"[" * 100_000, VALUE, "nested too deeply"),
        (b"{}", VALUE, "the key is b'{}'"),
        (b'{"Pos":{"Name":"a.1","Pos":"1"},"Action":"DML"}', VALUE, "the key is"),
        (KEY.replace(b"DML", b"DCL"), VALUE, "the action of its key is 'DCL' instead of DML or DDL"),
        (KEY, None, "its value is not a JSON object"),
        (KEY, b"[]", "its value is not a JSON object"),
        (KEY, b'{"Table":null}', "it has no structure of a table"),
        (KEY, VALUE.replace(b'"update"', b'"upsert"'), "its action is 'upsert'"),
        (KEY, VALUE.replace(b'["MQ==",null]', b'["MQ=="]'), "a row of table s.t has 1 values, and the table 2 columns"),
        (KEY, VALUE.replace(b',["MQ==",null]', b""), "has 1 rows; it needs one before and one after each"),
        (KEY, VALUE.replace(b"YQ==", b"YQ"), "a value is not base64"),
        (KEY, VALUE.replace(b'"YQ=="', b"7"), "a value is 7 instead of base64 text"),
        (KEY, VALUE.replace(b'"PKColumns":[0]', b'"PKColumns":[2]'), "the primary key of table s.t has columns"),
        (KEY.replace(b"DML", b"DDL"), b'{"Table":{"Schema":"","Name":"","Columns":null}}', "it has no statement"),
    ],
)
def test_a_message_that_is_none_is_refused_with_its_place(key: bytes | None, value: bytes | None, reason: str) -> None:
    with pytest.raises(UnreadableMessage) as raised:
        decode_message("shop", 7, key, value)
    assert "topic shop, partition 0, offset 7" in str(raised.value)
    assert reason in str(raised.value)


def test_keys_of_different_events_are_different_objects() -> None:
    # The original hands out one key, which changes under the events that were handed out before.
    first, _ = decode_message("shop", 1, *message("a.000001", 4, 1))
    second, _ = decode_message("shop", 2, *message("a.000001", 90, 2))
    assert (first.position.pos, second.position.pos) == (4, 90)


def test_an_unreadable_key_does_not_inherit_the_action_of_the_one_before() -> None:
    decode_message("shop", 1, KEY.replace(b"DML", DDL.encode()), QueryEvent(Table("s", "t"), "drop", "x").encoded())
    with pytest.raises(UnreadableMessage):
        decode_message("shop", 2, b"damaged", VALUE)


def test_positions_of_one_server_are_ordered_by_the_number_of_the_file() -> None:
    assert Position("a.000009", 500).before(Position("a.000010", 4))
    assert Position("a.999999", 500).before(Position("a.1000000", 4))
    assert not Position("a.000010", 4).before(Position("a.000010", 4))
    assert Position("odd", 4).server == ""
    assert Position("odd", 4).before(Position("odd", 5))
