"""Transforms between the pipeline and the event store; the recorded cases ``transform-*`` replay whole streams."""

import json
import pickle
from dataclasses import replace

import pytest

from rowtide.connector.records.batch import Batch, HistoryEntry, Message, joined
from rowtide.connector.records.dead_letters import DeadLetters
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.settings import Transforms
from rowtide.connector.records.transforms import ConversionFailed, Transformer, TransformFailed, untransformed
from rowtide.envelope.converters.json import JsonConverter
from rowtide.envelope.converters.plain import ByteArrayConverter
from rowtide.envelope.json.text import JsonFormat
from rowtide.envelope.schema import INT32, OPTIONAL_INT32, STRING, Schema, struct
from rowtide.envelope.settings import JsonSettings
from rowtide.envelope.transforms import ConnectRecord
from tests.support.transforms import chain_from_properties

PLAIN = JsonSettings(schemas_enable=False)
KEY = struct("t.Key", {"id": INT32})
ROW = struct("t.Value", {"id": INT32, "v": STRING, "n": Schema("int32", optional=True, default=5)}, optional=True)
SOURCE = struct("s", {"snapshot": Schema("string", optional=True, default="false")})
ENVELOPE = struct("t.Envelope", {"before": ROW, "after": ROW, "source": SOURCE, "op": STRING})
BEHIND = SourceOffset("binlog.1", 100)
UNWRAP = {
    "transforms": "unwrap",
    "transforms.unwrap.type": "io.debezium.transforms.ExtractNewRecordState",
}
BY_VALUE = UNWRAP | {"transforms.unwrap.route.by.field": "v"}


def transformer(properties: dict[str, str], values: JsonSettings = PLAIN) -> Transformer:
    return Transformer(Transforms(chain_from_properties(properties), JsonConverter(PLAIN), JsonConverter(values)))


def created(number: int, v: str = "a") -> Message:
    row = {"id": number, "v": v, "n": None}
    value = {"before": None, "after": row, "source": {"snapshot": None}, "op": "c"}
    return json.dumps({"id": number}).encode(), json.dumps(value).encode(), (("h", b"x"),)


def batch(*messages: Message) -> Batch:
    return Batch("t", -1, messages, BEHIND, 1, 7, (KEY, ENVELOPE))


def test_records_become_what_the_transforms_make_of_them() -> None:
    (one,) = transformer(UNWRAP).outputs([batch(created(1))])
    assert isinstance(one, Batch)
    assert one.topic == "t"
    assert one.messages == [(b'{"id":1}', b'{"id":1,"v":"a","n":5}', [("h", b"x")])]
    assert one.size == len(b'{"id":1}{"id":1,"v":"a","n":5}')
    assert one.offset == BEHIND
    assert one.ts_ms == 7


@pytest.mark.parametrize("show", [False, True])
@pytest.mark.parametrize(
    "properties",
    [
        {"transforms.t.type": f"python:{__name__}.raising"},
        {"transforms.t.type": f"python:{__name__}.as_a_text"},
        {"transforms.t.type": "org.apache.kafka.connect.transforms.Cast$Value", "transforms.t.spec": "op:int32"},
        {
            "transforms.t.type": "org.apache.kafka.connect.transforms.TimestampConverter$Value",
            "transforms.t.field": "op",
            "transforms.t.format": "yyyy",
            "transforms.t.target.type": "Date",
        },
    ],
)
def test_an_error_shows_a_value_of_the_row_only_if_it_may(properties: dict[str, str], show: bool) -> None:
    chain = chain_from_properties({"transforms": "t", **properties})
    made = Transformer(Transforms(chain, JsonConverter(PLAIN), JsonConverter(PLAIN), show_values=show))
    value = {"before": None, "after": None, "source": {"snapshot": None}, "op": "secret"}
    with pytest.raises(TransformFailed, match=r"transforms\.t: a record of topic t: ") as caught:
        made.batch(batch((None, json.dumps(value).encode(), ())))
    assert ("secret" in str(caught.value)) is show
    assert str(caught.value).endswith("(errors.log.include.messages=true shows more)") is not show


def raising(record: ConnectRecord) -> ConnectRecord:
    raise KeyError(record.value["op"])


def as_a_text(record: ConnectRecord) -> ConnectRecord:
    return record.with_content("value", INT32, record.value["op"])


def test_null_is_told_from_the_default_until_the_converter() -> None:
    values = JsonSettings(False, JsonFormat(replace_null_with_default=False))
    (one,) = transformer(UNWRAP, values).outputs([batch(created(1))])
    assert isinstance(one, Batch)
    assert one.messages[0][1] == b'{"id":1,"v":"a","n":null}'


def test_a_batch_for_several_topics_stays_one_batch_with_one_offset() -> None:
    """A commit between its pieces would repeat rows after a restart."""
    (one,) = transformer(BY_VALUE).outputs([batch(created(1), created(2), created(3, "b"), created(4))])
    assert isinstance(one, Batch)
    assert [piece.topic for piece in one.destinations()] == ["a", "b", "a"]
    assert [len(piece.messages) for piece in one.destinations()] == [2, 1, 1]
    assert [message for piece in one.destinations() for message in piece.messages] == one.messages
    assert one.size == sum(piece.size for piece in one.destinations()) > 0
    assert (one.offset, one.ts_ms) == (BEHIND, 7)


def test_the_pieces_of_one_event_are_transformed_one_by_one() -> None:
    """A statement makes records of several topics, each with its own schemas."""
    first, second = batch(created(1), created(2, "b")), batch(created(3))
    after = SourceOffset("binlog.1", 200)
    one = transformer(BY_VALUE).batch(joined([first, second])._replace(offset=after))
    assert [(piece.topic, len(piece.messages)) for piece in one.destinations()] == [("a", 1), ("b", 1), ("a", 1)]
    assert one.offset == after


def test_the_offset_moves_on_without_records() -> None:
    deleted = b'{"id":1}', None, ()
    (one,) = transformer(UNWRAP).outputs([batch(deleted)])
    assert one == Batch("", -1, (), BEHIND, 0, 7)
    nothing = Batch("", -1, (), BEHIND, 0, 7)
    assert list(transformer(UNWRAP).outputs([nothing])) == [nothing]


def test_history_entries_keep_their_place() -> None:
    outputs = list(transformer(UNWRAP).outputs([batch(created(1)), HistoryEntry("{}"), batch(created(2))]))
    assert [type(one) for one in outputs] == [Batch, HistoryEntry, Batch]


def test_a_field_that_is_unset_in_the_stream_stays_unset() -> None:
    properties = UNWRAP | {"transforms.unwrap.add.headers": "source.snapshot"}
    (one,) = transformer(properties).outputs([batch(created(1))])
    assert isinstance(one, Batch)
    assert one.messages[0][2] == [("h", b"x"), ("__source_snapshot", None)]


def test_a_tombstone_with_a_schema_is_not_the_same_as_one_without() -> None:
    properties = UNWRAP | {"transforms.unwrap.delete.tombstone.handling.mode": "tombstone"}
    row = '{"id":1,"v":"a","n":1}'
    deleted = b'{"id":1}', f'{{"before":{row},"after":null,"source":{{}},"op":"d"}}'.encode(), ()
    schemas = JsonSettings(True)
    (one,) = transformer(properties, schemas).outputs([batch(deleted)])
    assert isinstance(one, Batch)
    value = one.messages[0][1]
    assert value is not None
    assert json.loads(value)["payload"] is None
    (plain,) = transformer(properties).outputs([batch(deleted)])
    assert isinstance(plain, Batch)
    assert plain.messages[0][1] == b"null"


def test_partition_and_time_of_an_event_are_the_messages_own() -> None:
    row = struct(
        "t.Value",
        {"id": STRING, "aggregatetype": STRING, "aggregateid": STRING, "type": STRING, "payload": STRING, "p": INT32},
        optional=True,
    )
    envelope = struct("t.Envelope", {"before": row, "after": row, "op": STRING, "ts_ms": Schema("int64")})
    after = {"id": "1", "aggregatetype": "order", "aggregateid": "7", "type": "x", "payload": "{}", "p": 3}
    value = {"before": None, "after": after, "op": "c", "ts_ms": 1234}
    properties = {
        "transforms": "outbox",
        "transforms.outbox.type": "io.debezium.transforms.outbox.EventRouter",
        "transforms.outbox.table.fields.additional.placement": "p:partition",
    }
    given = Batch("t", -1, [(None, json.dumps(value).encode(), ())], BEHIND, 1, 7, (None, envelope))
    one = transformer(properties).batch(given)
    assert (one.topic, one.partition, one.timestamp) == ("outbox.event.order", 3, 1234)
    assert one.messages == [(b'"7"', b'"{}"', [("id", b"1")])]


def test_a_record_that_a_transform_cannot_process_stops() -> None:
    properties = UNWRAP | {"transforms.unwrap.route.by.field": "id"}
    with pytest.raises(TransformFailed, match=r"transforms\.unwrap.*'id'.*int32, not string"):
        list(transformer(properties).outputs([batch(created(1))]))


def test_records_without_a_key_stay_without_one() -> None:
    envelope = struct("u.Envelope", {"before": OPTIONAL_INT32, "op": STRING})
    given = Batch("u", 0, [(None, b'{"before":1,"op":"r"}', ())], BEHIND, 1, 7, (None, envelope))
    router = {
        "transforms": "r",
        "transforms.r.type": "org.apache.kafka.connect.transforms.RegexRouter",
        "transforms.r.regex": "(.)",
        "transforms.r.replacement": "$1$1",
    }
    (one,) = transformer(router).outputs([given])
    assert isinstance(one, Batch)
    assert (one.topic, one.partition) == ("uu", 0)
    assert one.messages == [(None, b'{"before":1,"op":"r"}', [])]


def test_errors_tolerance_skips_what_a_transform_or_a_converter_rejects(caplog: pytest.LogCaptureFixture) -> None:
    chain = chain_from_properties(UNWRAP | {"transforms.unwrap.add.fields": "op"})
    strict = Transforms(chain, JsonConverter(PLAIN), ByteArrayConverter())
    with pytest.raises(ConversionFailed, match=r"value\.converter: .*topic t .*writes bytes only"):
        Transformer(strict).batch(batch(created(1)))
    made = Transformer(replace(strict, tolerant=True)).batch(batch(created(1), created(2)))
    assert (made.messages, made.offset) == ((), BEHIND)
    assert caplog.text.count("is skipped (errors.tolerance=all)") == 2
    assert "before binlog.1:100" in caplog.text


def test_a_rejected_record_is_kept_in_its_place_as_it_was_before_the_transforms() -> None:
    rejecting = chain_from_properties(BY_VALUE | {"transforms.unwrap.add.fields": "op"})
    strict = Transforms(rejecting, JsonConverter(PLAIN), ByteArrayConverter())
    kept = replace(strict, tolerant=True, dead_letters=DeadLetters("letters"))
    given = batch(created(1), created(2, "Zoë\ud800"))
    made = Transformer(kept).batch(given)
    assert [(piece.topic, piece.partition) for piece in made.destinations()] == [("letters", 0)] * 2
    assert made.offset == BEHIND
    for message, (key, value, headers) in zip(given.messages, made.messages, strict=True):
        assert dict(headers)["rowtide.dead.letter.topic"] == b"t"
        assert dict(headers)["rowtide.dead.letter.stage"] == b"VALUE_CONVERTER"
        back = untransformed("t", -1, (key, value, (("h", b"x"),)), BEHIND)
        assert back.messages == [message]
        assert back.schemas == given.schemas
        again = Transformer(Transforms(chain_from_properties(BY_VALUE), JsonConverter(PLAIN), JsonConverter(PLAIN)))
        assert again.batch(back).topic in ("a", "Zoë\ud800")


def test_a_rejected_record_between_others_keeps_their_order() -> None:
    properties = UNWRAP | {
        "transforms": "unwrap,cast",
        "transforms.cast.type": "org.apache.kafka.connect.transforms.Cast$Value",
        "transforms.cast.spec": "v:int32",
    }
    letters = DeadLetters("letters")
    kept = Transforms(
        chain_from_properties(properties),
        JsonConverter(PLAIN),
        JsonConverter(PLAIN),
        tolerant=True,
        dead_letters=letters,
    )
    deleted = b'{"id":9}', None, ()
    made = Transformer(kept).batch(batch(created(1, "1"), created(2, "x"), created(3, "3"), deleted))
    assert [(piece.topic, len(piece.messages)) for piece in made.destinations()] == [("t", 1), ("letters", 1), ("t", 1)]
    headers = dict(made.messages[1][2])
    assert headers["rowtide.dead.letter.stage"] == b"TRANSFORMATION"
    assert b"transforms.cast" in (headers["rowtide.dead.letter.reason"] or b"")


def test_a_failed_conversion_can_be_sent_between_processes() -> None:
    failed = pickle.loads(pickle.dumps(ConversionFailed("no", "HEADER_CONVERTER")))
    assert (str(failed), failed.stage) == ("no", "HEADER_CONVERTER")


@pytest.mark.parametrize("value", [b"{}", b'{"schema":null}', b'{"payload":1,"schema":null}', b"x"])
def test_a_damaged_dead_letter_is_an_error(value: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        untransformed("t", -1, (None, value, ()), BEHIND)
