"""Names of topics; the expected names are those of Debezium's strategies."""

import gzip
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowtide.topics.java_regex import Replacement, compile_java
from rowtide.topics.naming import (
    KeyAugment,
    NameParts,
    Routing,
    StandardNaming,
    TopicNameClashError,
    TopicNames,
    sanitized,
    sanitized_unicode,
)

PREFIX = "my_Pre-fix.2"
TABLES = [
    ("db", "t"),
    ("db-with.dots", "t.a-b c"),
    ("Ünï db", "tàble"),
    ("1$num", "$tab$le"),
    ("d", "😀x"),
    ("d", "a/b"),
    ("d", ""),
]
DEFAULT = ["db.t", "db-with.dots.t.a-b_c", "_n__db.t_ble", "1_num._tab_le", "d.__x", "d.a_b", "d"]
UNICODE = [
    "db.t",
    "db-with.dots.t.a-b_u0020c",
    "_u00dcn_u00ef_u0020db.t_u00e0ble",
    "1_u0024num._u0024tab_u0024le",
    "d._ud83d_ude00x",
    "d.a_u002fb",
    "d",
]
GOLDEN = Path(__file__).parents[1] / "golden"


def routing(regex: str, replacement: str, **more: object) -> Routing:
    return Routing(Replacement(replacement, compile_java(regex, ignore_case=True)), **more)  # type: ignore[arg-type]


def test_the_default_strategy() -> None:
    naming = StandardNaming(PREFIX)
    assert [naming.data_change(*table) for table in TABLES] == [f"{PREFIX}.{name}" for name in DEFAULT]
    assert (naming.schema_change, naming.heartbeat, naming.transaction) == (
        PREFIX,
        f"__debezium-heartbeat.{PREFIX}",
        f"{PREFIX}.transaction",
    )
    assert naming.key_augment("d", "t") is None


def test_the_unicode_strategy_replaces_the_underscore_too() -> None:
    naming = StandardNaming(PREFIX, unicode=True)
    assert [naming.data_change(*table) for table in TABLES] == [f"my_u005fPre-fix.2.{name}" for name in UNICODE]
    assert naming.heartbeat == f"__debezium-heartbeat.{PREFIX}"


def test_the_schema_strategy_omits_the_database() -> None:
    naming = StandardNaming(PREFIX, NameParts.TABLE)
    assert [naming.data_change(*table) for table in TABLES[:3]] == [f"{PREFIX}.{n}" for n in ("t", "t.a-b_c", "t_ble")]
    assert StandardNaming(PREFIX, NameParts.TABLE).data_change("d", "") == PREFIX


def test_delimiter_and_names_of_the_connectors_own_topics() -> None:
    naming = StandardNaming("p", delimiter="_", heartbeat_prefix="hb", transaction_suffix="tx")
    assert (naming.data_change("d", "t"), naming.heartbeat, naming.transaction) == ("p_d_t", "hb_p", "p_tx")
    assert StandardNaming("p", heartbeat_name="hb").heartbeat == "hb"


@pytest.mark.parametrize("case", ["weird-names", "weird-names-plain"])
def test_recorded_names(case: str) -> None:
    config = json.loads((GOLDEN / case / "case.json").read_text())["config"]
    naming = StandardNaming(config.get("topic.prefix", case), delimiter=config.get("topic.delimiter", "."))
    seen = 0
    with gzip.open(GOLDEN / case / "golden/records.jsonl.gz", "rt") as lines:
        for line in lines:
            record = json.loads(line)
            payload = json.loads(record["value"] or "{}").get("payload") or {}
            source = payload.get("source") or {}
            if source.get("table") and payload.get("op"):
                assert record["topic"] == naming.data_change(source["db"], source["table"])
                seen += 1
    assert seen > 5


def test_routed_tables_share_a_topic_with_distinct_keys() -> None:
    naming = StandardNaming(PREFIX, routing=routing("(.*)shard_\\d+$", "$1all"))
    assert naming.data_change("d", "tbl_shard_07") == f"{PREFIX}.d.tbl_all"
    assert naming.data_change("d", "plain") == f"{PREFIX}.d.plain"
    assert naming.key_augment("d", "é_9") == KeyAugment("__dbz__physicalTableIdentifier", f"{PREFIX}.d.é_9")
    assert naming.shares_topic("d", "tbl_shard_07")
    assert not naming.shares_topic("d", "plain")


def test_the_key_field_can_come_from_the_tables_name() -> None:
    key = Replacement("$1", compile_java(".*_(\\d+)"))
    naming = StandardNaming("p", routing=routing("(.*)shard_\\d+$", "$1all", key=key, key_field="shard"))
    assert naming.key_augment("d", "tbl_shard_07") == KeyAugment("shard", "07")
    assert naming.key_augment("d", "plain") == KeyAugment("shard", "p.d.plain")
    off = StandardNaming("p", routing=routing("x", "y", enforce_uniqueness=False))
    assert off.key_augment("d", "t") is None


def test_a_routed_name_is_made_valid() -> None:
    naming = StandardNaming("p", routing=routing("(.*)shard_(?<n>\\d+)$", "${n}-$1 all/"))
    assert naming.data_change("d", "tbl_shard_07") == "07-p.d.tbl__all_"


def test_names_that_are_only_dots() -> None:
    assert [sanitized(name) for name in (".", "..", "...")] == ["_", "__", "..."]
    assert [sanitized_unicode(name) for name in (".", "..", "...")] == ["_u002e", "_u002e_u002e", "..."]


@given(st.text(min_size=1, max_size=300))
def test_names_are_always_valid(name: str) -> None:
    for clean in (sanitized(name), sanitized_unicode(name)):
        assert re.fullmatch(r"[a-zA-Z0-9._\-]{1,249}", clean)
        assert clean not in (".", "..")


@given(st.text(max_size=60), st.text(max_size=60))
def test_the_unicode_strategy_keeps_names_distinct(one: str, other: str) -> None:
    if one != other and not {one, other} & {".", ".."}:
        clean = sanitized_unicode(one), sanitized_unicode(other)
        assert clean[0] != clean[1] or 249 in map(len, clean)


def test_a_clash_is_an_error_that_names_both_tables_and_a_solution() -> None:
    names = TopicNames(StandardNaming("p"))
    assert names.data_change("d", "a b") == "p.d.a_b"
    assert names.data_change("d", "a b") == "p.d.a_b"
    with pytest.raises(TopicNameClashError, match=r"d\.a b and d\.a\$b .*Unicode"):
        names.data_change("d", "a$b")
    names.release("d", "a b")
    assert names.data_change("d", "a$b") == "p.d.a_b"


def test_a_table_must_not_use_the_connectors_own_topics() -> None:
    names = TopicNames(StandardNaming("p", NameParts.TABLE))
    with pytest.raises(TopicNameClashError, match="transaction metadata"):
        names.data_change("d", "transaction")


def test_tables_merged_as_configured_do_not_clash() -> None:
    names = TopicNames(StandardNaming("p", routing=routing("(.*)shard_\\d+$", "$1all", enforce_uniqueness=False)))
    assert names.data_change("d", "shard_1") == names.data_change("d", "shard_2") == "p.d.all"
