"""Every recorded case: the decoder's values are those that Engine gives for the same binlog."""

import datetime as dt
import math
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from rowtide.connector.config import from_properties
from rowtide.connector.engine.pipeline_settings import pipeline_settings
from rowtide.connector.engine.replay import replay
from rowtide.connector.records.change import Change, JsonText
from rowtide.connector.records.settings import LOSSLESS, PipelineSettings, Transforms
from rowtide.connector.records.unavailable import UNAVAILABLE
from rowtide.decoder.decoder import Decoder
from rowtide.envelope.avro.schemas import AvroFormat
from rowtide.envelope.converters.avro import AvroConverter
from rowtide.envelope.converters.protobuf import ProtobufConverter
from rowtide.envelope.protobuf.messages import ProtobufFormat
from rowtide.envelope.settings import JsonSettings
from rowtide.envelope.transforms.chain import TransformChain
from tests.connector.records.codecs.test_python_changes import outputs, settings_of
from tests.support.recordings.converted import RecordedRegistry
from tests.support.recordings.differences import NOT_REPLAYED, PENDING
from tests.support.recordings.golden import Case, cases, written

CASES = [name for name in cases() if name not in NOT_REPLAYED and name not in PENDING]
PLACEHOLDERS = {"values-in-other-modes": "gone"}


class Registered:
    """The registry of a test as its readers see it."""

    def __init__(self, registry: RecordedRegistry) -> None:
        self._registry = registry

    def get_schema(self, schema_id: int) -> Any:
        text = next(text for text, number in self._registry.schemas.items() if number == schema_id)
        return type("Found", (), {"schema_str": text, "schema_type": "PROTOBUF" if "syntax" in text[:6] else "AVRO"})


def expected(name: str, settings: PipelineSettings) -> list[Change]:
    return [change for batch in outputs(name, replace(settings, changes=True)) for change in batch.changes]


def decoded(name: str, settings: PipelineSettings, decoder: Decoder) -> list[Change]:
    transactions = settings.naming.transaction
    return [
        change
        for batch in outputs(name, settings)
        for piece in batch.destinations()
        if piece.topic != transactions
        for key, value, headers in piece.messages
        if (change := decoder.decode(piece.topic, key, value, headers)) is not None
    ]


def same(found: Any, wanted: Any, settings: PipelineSettings) -> bool:
    """Whether two values are the same, as far as a record can say."""
    if found == wanted and type(found) is type(wanted):
        return True
    if isinstance(wanted, float) and isinstance(found, float):
        return (math.isnan(found) and math.isnan(wanted)) or float(f"{found:.7g}") == float(f"{wanted:.7g}")
    if wanted is UNAVAILABLE or found is UNAVAILABLE:
        return found is wanted
    if isinstance(wanted, str) and wanted[:1].isdigit() and not isinstance(found, str):
        return True  # a date that Python's calendar lacks: the record has null or an epoch
    if isinstance(wanted, dt.date | dt.datetime | dt.timedelta):
        return True if found is None else isinstance(found, dt.date | dt.datetime | dt.timedelta | str)
    if wanted is None:
        return found is not None  # the default of a column that does not allow NULL
    if isinstance(wanted, Decimal):
        return Decimal(str(found)) == wanted or settings.rules.values.decimal_handling_mode == "double"
    if isinstance(wanted, bool | int):
        return isinstance(found, bool | int | Decimal | str)  # BOOL, and BIGINT UNSIGNED in another mode
    if isinstance(wanted, bytes):
        return isinstance(found, str)  # binary.handling.mode
    return isinstance(wanted, JsonText) and isinstance(found, str)


def compare(found: list[Change], wanted: list[Change], settings: PipelineSettings) -> None:
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        assert (one.op, one.topic) == (other.op, other.topic)
        assert one.row == other.row or one.op == "t"
        assert (one.database, one.table) == (other.database, other.table)
        place, there = one.position, other.position
        assert (place.file, place.pos, place.gtid, place.server_id) == (
            there.file,
            there.pos,
            there.gtid,
            there.server_id,
        )
        assert (place.ts_us, place.query, place.thread) == (there.ts_us, there.query, there.thread)
        assert one.transaction == other.transaction
        for side in ("before", "after", "key"):
            row, wanted_row = getattr(one, side), getattr(other, side)
            if side == "key" and wanted_row is None:  # a key may only name the table in a topic of several
                assert row is None or settings.naming.key_augment(one.database, one.table)
                continue
            assert (row is None) == (wanted_row is None)
            if row is None:
                continue
            assert len(row) >= len(wanted_row)  # a key may name its table
            for value, wanted_value in zip(row._values, wanted_row._values, strict=False):
                assert same(value, wanted_value, settings), (one.topic, side, value, wanted_value)


@pytest.mark.parametrize("name", CASES)
def test_values_from_json_are_those_of_the_engine(name: str) -> None:
    settings = replace(settings_of(name), keys=JsonSettings(), values=JsonSettings())
    placeholder = settings.rules.values.unavailable_value_placeholder.decode()
    compare(decoded(name, settings, Decoder(placeholder=placeholder)), expected(name, settings), settings)


@pytest.mark.parametrize("name", CASES)
def test_values_from_avro_are_those_of_the_engine(name: str) -> None:
    settings = settings_of(name)
    registry = RecordedRegistry()
    avro = AvroConverter(registry, AvroFormat(scrub_invalid_names=True))
    in_avro = replace(settings, keys=LOSSLESS, values=LOSSLESS, transforms=Transforms(TransformChain(), avro, avro))
    placeholder = settings.rules.values.unavailable_value_placeholder.decode()
    found = decoded(name, in_avro, Decoder(Registered(registry), placeholder=placeholder))
    compare(found, expected(name, settings), settings)


@pytest.mark.parametrize("name", CASES)
def test_values_from_protobuf_are_those_of_avro_as_far_as_its_schema_tells(name: str) -> None:
    settings = settings_of(name)
    placeholder = settings.rules.values.unavailable_value_placeholder.decode()
    found = []
    for kind, format_ in (
        (ProtobufConverter, ProtobufFormat(optional_for_nullables=True, scrub_invalid_names=True)),
        (AvroConverter, AvroFormat(scrub_invalid_names=True)),
    ):
        registry = RecordedRegistry()
        converter = kind(registry, format_)  # type: ignore[operator]
        in_form = replace(
            settings, keys=LOSSLESS, values=LOSSLESS, transforms=Transforms(TransformChain(), converter, converter)
        )
        found.append(decoded(name, in_form, Decoder(Registered(registry), placeholder=placeholder)))
    for change, wanted in zip(*found, strict=True):
        assert (change.op, change.topic, change.table, change.position) == (
            wanted.op,
            wanted.topic,
            wanted.table,
            wanted.position,
        )
        for side in ("before", "after", "key"):
            row, other = getattr(change, side), getattr(wanted, side)
            assert (row is None) == (other is None)
            if row is not None:
                for value, wanted_value in zip(row._values, other._values, strict=True):
                    assert plain(value, wanted_value), (change.topic, side, value, wanted_value)


def plain(found: Any, wanted: Any) -> bool:
    """Whether a value is the same, or that of its Connect type where only the name of a schema would tell more."""
    if found is wanted or (found == wanted and type(found) is type(wanted)):
        return True
    if isinstance(wanted, float):
        return math.isnan(wanted) and math.isnan(found)
    if isinstance(wanted, dt.date | dt.timedelta):
        return isinstance(found, int | str)
    if isinstance(wanted, JsonText):
        return bool(found == str(wanted))
    if isinstance(wanted, int):
        return isinstance(found, bytes) and int.from_bytes(found, "little") == wanted  # BIT
    return isinstance(found, str) and found.replace("\\", "") == wanted.replace("\\", "")  # a label of ENUM


def of_stream(name: str, **more: str) -> list[Change]:
    case, decoder, changes = Case(name), Decoder(), []
    settings = pipeline_settings(from_properties(case.properties() | more), "run")
    for message in written(replay(case.binlog, settings, case.start)):
        if message.topic.count(".") > 1:  # of a table
            key, value = (None if text is None else text.encode() for text in (message.key, message.value))
            changes.append(decoder.decode(message.topic, key, value))
    return [change for change in changes if change is not None]


@pytest.mark.parametrize("schemas", ["true", "false"])
@pytest.mark.parametrize("name", ["keys", "transactions"])
def test_the_envelope_of_debeziums_first_releases_has_the_same_changes(name: str, schemas: str) -> None:
    """It names the table in its topic and schema only, and has seconds."""
    forms = {f"{side}.converter.schemas.enable": schemas for side in ("key", "value")}
    forms |= {f"{side}.converter": "org.apache.kafka.connect.json.JsonConverter" for side in ("key", "value")}
    today, old = of_stream(name, **forms), of_stream(name, **forms, **{"source.struct.version": "v1"})
    assert len(today) == len(old) > 10
    for one, other in zip(today, old, strict=True):
        assert (other.op, other.database, other.table) == (one.op, one.database, one.table)
        assert (other.key, other.before, other.after, other.row) == (one.key, one.before, one.after, one.row)
        place, there = one.position, other.position
        assert (there.file, there.pos, there.gtid) == (place.file, place.pos, place.gtid)
        assert there.ts_us == place.ts_us // 1_000_000 * 1_000_000 > 0
        assert other.snapshot == one.snapshot
