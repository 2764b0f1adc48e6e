"""The generator and the comparison of the parity run. The run itself needs Debezium and is started manually."""

from __future__ import annotations

import json
import random

from tests.parity.changes import Changes
from tests.parity.compare import Difference, Message, compare
from tests.parity.options import choose
from tests.parity.rules import rule_for, stop_for
from tests.parity.values import Column

TABLES = {
    "t1": [Column("id", "int", nullable=False, counts=True), Column("v", "varchar(10)", charset="latin1")],
    "t 2": [Column("d", "decimal(5,2)"), Column("e", "enum('a','it''s')"), Column("g", "bigint", generated=True)],
}


def statements(seed: int, *, mariadb: bool) -> list[str]:
    changes = Changes(random.Random(seed), "par", mariadb=mariadb)
    return [*changes.setup(5), *(text for _ in range(300) for text in changes.next(TABLES))]


def test_a_seed_gives_the_same_statements_again() -> None:
    for mariadb in (False, True):
        assert statements(7, mariadb=mariadb) == statements(7, mariadb=mariadb)
    assert statements(7, mariadb=False) != statements(8, mariadb=False)
    assert choose(random.Random(7)) == choose(random.Random(7))


def test_values_fit_the_columns() -> None:
    assert Column("e", "enum('a','it''s')").labels == ("a", "it's")
    assert Column("d", "decimal(5,2) unsigned").sizes == (5, 2)
    text = "\n".join(statements(3, mariadb=False))
    assert "`g` =" not in text, "a computed column is not set"


def _message(row: str, op: str = "c", time: int = 1) -> Message:
    source = '{"ts_ms":5,"snapshot":"false","db":"d","sequence":null,"ts_us":5,"ts_ns":5,"pos":7}'
    times = f'"ts_ms":{time},"ts_us":{time},"ts_ns":{time}'
    value = f'{{"payload":{{"after":{row},"source":{source},"op":"{op}",{times}}}}}'
    return Message("p.d.t", '{"id":1}', value, (("__debezium.context.runId", str(time)),))


def test_times_of_handling_do_not_count() -> None:
    assert list(compare({"p.d.t": [_message("{}", time=1)]}, {"p.d.t": [_message("{}", time=2)]})) == []


def test_a_difference_has_the_path_of_its_field_and_both_values() -> None:
    one, other = _message('{"a":[1,{"field":"x","v":1.0}]}'), _message('{"a":[1,{"field":"x","v":1.00}]}')
    (found,) = compare({"p.d.t": [one]}, {"p.d.t": [other]})
    assert (found.place, found.path) == (0, ("value", "payload", "after", "a", "1:x", "v"))
    assert (found.want, found.have) == ("1.0", "1.00")


def test_what_only_one_wrote_is_a_difference_unless_the_other_stopped() -> None:
    one, two = _message('{"a":1}'), _message('{"a":2}')
    assert [found.path for found in compare({"p.d.t": [one]}, {"p.d.t": [one, two]})] == [("message",)]
    assert list(compare({"p.d.t": [one]}, {"p.d.t": [one, two]}, more=True)) == []
    assert len(list(compare({"p.d.t": [one, two]}, {"p.d.t": [one]}, more=True))) == 1


def test_the_spelling_counts() -> None:
    same = json.dumps({"a": 1})
    (found,) = compare({"p": [Message("p", None, same)]}, {"p": [Message("p", None, same.replace(" ", ""))]})
    assert found.path == ("value", "(spelling)")


def test_a_rule_knows_one_difference_and_no_other() -> None:
    def of(want: str, have: str, kind: str) -> str | None:
        found = rule_for(Difference("p.d.t", 0, ("value", "payload", "after", "y"), want, have, _message("{}")), kind)
        return found and found.reason

    assert "YEAR 0" in str(of("1900", "0", "year NULL"))
    assert of("1900", "1901", "year NULL") is None
    assert of("1900", "0", "int NULL") is None
    assert "character set" in str(of('"\\u0000a"', '"a"', "char(1) NULL utf16"))


def test_a_stop_is_known_by_its_text_and_its_table() -> None:
    trace = "Error processing row in t 5, internal schema size 2, but row size 3 , restart"
    assert stop_for(trace, {"t 5"}) is not None
    assert stop_for(trace, {"t1"}) is None
    assert stop_for("SchemaBuilderException: doc has already been set", set()) is not None
