"""How differing rows are read again: by keys that are those of the server, and how long records are awaited."""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from rowtide.connector.config.load import from_properties
from rowtide.connector.engine.pipeline_settings import pipeline_settings
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.transforms import Transformer
from rowtide.connector.snapshot.incremental.reading.table_view import TableView
from rowtide.connector.snapshot.records import SnapshotTable
from rowtide.decoder.decoder import Decoder
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.model import Table
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server
from rowtide.verify import verification
from rowtide.verify.comparison import RowDifference
from rowtide.verify.errors import Undecided
from rowtide.verify.fold import FoldState
from rowtide.verify.positions import RecordPlace, ServerIdentity, ViewOrder
from rowtide.verify.routing import Routing
from rowtide.verify.source import SourceTable, TableSource, keys_condition
from rowtide.verify.verification import TableVerification, VerifyOptions
from tests.support.configurations import PROPERTIES

SERVER = "00000000-0000-0000-0000-00000000000a"
DEBEZIUM = {"rowtide.values": "debezium"}


def source_table(kind: str, properties: Mapping[str, str], more: str = "n INT") -> SourceTable:
    tables = Tables(Server(Flavor.MYSQL))
    tables.apply(QueryEvent(f"CREATE TABLE t (k {kind} NOT NULL PRIMARY KEY, {more})", "d", position=""))
    structure = tables.table("d", "t")
    assert isinstance(structure, Table)
    settings = pipeline_settings(from_properties(PROPERTIES | properties), "run")
    form = SnapshotTable(structure, settings)
    key = structure.columns[:1]
    return SourceTable(structure, "", form, Routing([form.topic]), key, key, None)


@pytest.mark.parametrize(
    ("kind", "properties", "key", "condition"),
    [
        ("DATE", DEBEZIUM, "t2000-01-01", "(`k` = '2000-01-01')"),
        ("DATE", DEBEZIUM, "t2024-01-01", "(`k` IN ('2024-01-01', '0024-01-01'))"),
        ("DATETIME", DEBEZIUM, "t1999-01-01T10:00:00", "(`k` IN ('1999-01-01 10:00:00', '0099-01-01 10:00:00'))"),
        ("DATE", {"rowtide.values": "exact"}, "t2024-01-01", "(`k` = '2024-01-01')"),
        ("DATE", DEBEZIUM, "t1970-01-01", None),  # may be that of 0000-00-00
        ("BIGINT UNSIGNED", DEBEZIUM, "i1", "(`k` = 1)"),
        ("BIGINT UNSIGNED", DEBEZIUM, "i-1", "(`k` IN (-1, 18446744073709551615))"),
        ("BIGINT UNSIGNED", {"rowtide.values": "exact"}, "i18446744073709551615", "(`k` = 18446744073709551615)"),
        (
            "BIGINT UNSIGNED",
            {"bigint.unsigned.handling.mode": "precise"},
            "d18446744073709551615",
            "(`k` = 18446744073709551615)",
        ),
        ("BIGINT UNSIGNED", {"bigint.unsigned.handling.mode": "string"}, "s7", "(`k` = 7)"),
        ("DECIMAL(20,2)", {"decimal.handling.mode": "string"}, "s-7.50", "(`k` = -7.50)"),
        ("DECIMAL(20,2)", {"decimal.handling.mode": "string"}, "s1 OR 1", None),
    ],
)
def test_rows_are_looked_up_only_by_keys_that_are_those_of_the_server(
    kind: str, properties: Mapping[str, str], key: str, condition: str | None
) -> None:
    """A row that was not found by the key of its records was taken for one that does not exist."""
    assert keys_condition(source_table(kind, properties), [(key,)]) == condition


VALUE_TO_KEY = {
    "transforms": "v",
    "transforms.v.type": "org.apache.kafka.connect.transforms.ValueToKey",
    "transforms.v.fields": "op",
}


@pytest.mark.parametrize(
    ("kind", "properties", "key", "reason"),
    [
        ("DATE", DEBEZIUM, "t2000-01-01", None),
        ("DATE", DEBEZIUM, "t1970-01-01", "zero.date.handling.mode is epoch"),
        ("INT", VALUE_TO_KEY, "i1", "transforms.v: a record of topic"),
    ],
)
def test_rows_that_the_connector_never_deletes_are_not_requested(
    kind: str, properties: Mapping[str, str], key: str, reason: str | None
) -> None:
    """Their records were awaited for half a minute in each batch."""
    one = verification_of(source_table(kind, properties))
    one._repair, requested = object(), list[Any]()
    one._read_again = lambda _fold, _topic, keys: requested.extend(keys)
    extra, lost = RowDifference("extra", {"k": key}, None, {}), RowDifference("lost", {"k": "i7"}, {}, None)
    found = [extra] if kind == "DATE" else [extra, lost]
    assert one._repaired(None, None, None, found) == found
    assert requested == [tuple(row.key.values()) for row in found if row.kind == "lost" or reason is None]
    assert (reason or "") in one.result.not_repaired


def verification_of(table: SourceTable, timeout_s: float = 300.0) -> Any:
    given = SimpleNamespace(), table, None, lambda _topics: None, None, VerifyOptions(timeout_s=timeout_s), dict
    made: Any = TableVerification(*given, exact=True)  # type: ignore[arg-type]
    return made


def chain(*steps: Mapping[str, str]) -> dict[str, str]:
    options = {f"transforms.s{number}.{name}": text for number, one in enumerate(steps) for name, text in one.items()}
    return {"transforms": ",".join(f"s{number}" for number in range(len(steps))), **options}


KAFKA, OF_DEBEZIUM = "org.apache.kafka.connect.transforms.", "io.debezium.transforms."
PLAIN = {f"{side}.converter.schemas.enable": "false" for side in ("key", "value")}
PLAIN |= {f"{side}.converter": "org.apache.kafka.connect.json.JsonConverter" for side in ("key", "value")}
UNWRAPPED = {"type": OF_DEBEZIUM + "ExtractNewRecordState", "add.fields": "op,table,db,source.file,source.pos"}
LOGICAL = {"type": OF_DEBEZIUM + "ByLogicalTableRouter", "topic.regex": "(.*)[.]t", "topic.replacement": "$1.all"}


@pytest.mark.parametrize(
    ("properties", "changed"),
    [
        ({}, False),
        (chain({"type": KAFKA + "InsertHeader", "header": "h", "value.literal": "1"}), False),
        (chain({"type": KAFKA + "ReplaceField$Key", "renames": "k:other"}), False),
        (chain(UNWRAPPED, {"type": KAFKA + "ValueToKey", "fields": "b"}), True),
        (chain(LOGICAL), True),
        (chain({"type": KAFKA + "ExtractField$Key", "field": "k"}), True),  # cannot be decoded
    ],
)
def test_rows_are_not_looked_up_by_keys_that_transforms_change(properties: Mapping[str, str], changed: bool) -> None:
    """With ValueToKey, the row with ``k = 7`` was looked up for the row with ``b = 7``."""
    table = source_table("INT", PLAIN | properties, "b INT NOT NULL")
    one = verification_of(table)
    one._decoder, settings = Decoder(), table.form.settings
    one.source = object.__new__(TableSource)
    one.source._transformer = None if settings.transforms is None else Transformer(settings.transforms)
    assert one._changes_keys() is changed


@pytest.mark.parametrize(("replicates", "executed", "outcome"), [(True, 8, 9), (True, 99, None), (False, 8, 7)])
def test_a_replica_that_lags_is_awaited(
    replicates: bool, executed: int, outcome: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rows are older than those of the topic. They were reported as different."""
    now = 0.0

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    def reread(_keys: object) -> tuple[dict[Any, Any], TableView]:
        last = 9 if now >= executed else 7
        return {("i1",): {"k": f"i{last}"}}, TableView(*[SourceOffset("", 0, f"{SERVER}:1-{last}")] * 2)

    monkeypatch.setattr(verification, "time", SimpleNamespace(monotonic=lambda: now, sleep=sleep, time=time.time))
    one = verification_of(source_table("INT", {}), timeout_s=20.0)
    one._is_replica = replicates
    one._server, one._reread = ServerIdentity(SERVER, "1"), reread
    one._order = lambda view: ViewOrder(view, same_server=False)
    fold = SimpleNamespace(states=lambda _key: [FoldState({}, (RecordPlace(0, 0, "u", gtid=f"{SERVER}:9"),))])
    if outcome is None:
        with pytest.raises(Undecided, match=f"not executed changes that are already in the topic, such as {SERVER}:9"):
            one._current(fold, [("i1",)])
    else:
        assert one._current(fold, [("i1",)])[0] == {("i1",): {"k": f"i{outcome}"}}


def test_records_are_awaited_as_long_as_others_come(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that is never deleted has no record. Each of three rounds waited for it for the whole --timeout."""
    now = 0.0
    arrivals = {("i1",): 20.0, ("i2",): 45.0, ("i3",): float("inf")}

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    monkeypatch.setattr(verification, "time", SimpleNamespace(monotonic=lambda: now, sleep=sleep, time=time.time))
    fold: Any = SimpleNamespace(states=lambda key: [None] * (1 + (now >= arrivals[key])))
    one = verification_of(source_table("INT", {}))
    monkeypatch.setattr(one, "_consume", lambda _topic, _fold: None)
    one._await_records(fold, None, [*arrivals])
    assert (now, one._silent) == (75.0, {("i3",)})
