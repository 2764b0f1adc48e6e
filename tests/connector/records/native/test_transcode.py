"""Compiled code and Python make the same bytes of the same JSON text."""

import contextlib
import itertools
import json
import math
import tracemalloc
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rowtide.connector.records import transforms
from rowtide.connector.records.batch import Batch, Message
from rowtide.connector.records.native.implementation import native
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.settings import LOSSLESS, Transforms
from rowtide.connector.records.transforms import ConversionFailed, Transformer
from rowtide.envelope.avro.schemas import AvroFormat
from rowtide.envelope.avro.values import avro_encoder, avro_program
from rowtide.envelope.converters.avro import AvroConverter
from rowtide.envelope.converters.json import JsonConverter
from rowtide.envelope.converters.plain import SimpleHeaderConverter
from rowtide.envelope.converters.protobuf import ProtobufConverter
from rowtide.envelope.json.reader import value_from_json
from rowtide.envelope.json.text import value_text
from rowtide.envelope.protobuf.messages import ProtobufFormat, protobuf_file
from rowtide.envelope.protobuf.values import message_encoder, protobuf_program
from rowtide.envelope.schema import DECIMAL, FLOAT32, FLOAT64, INT32, INT64, OPTIONAL_STRING, STRING, Schema, struct
from rowtide.envelope.settings import JsonSettings
from rowtide.envelope.transforms.chain import TransformChain
from tests.envelope.avro.test_values import typed
from tests.support.recordings.converted import RecordedRegistry, conversions, files

pytestmark = pytest.mark.skipif(native is None, reason="without a C compiler there is no compiled code")

KEEPING, REPLACING = AvroFormat(), AvroFormat(replace_null_with_default=True)


def together(program: tuple[Any, ...], texts: list[bytes], opening: bytes = b"") -> list[bytes | None] | None:
    assert native is not None
    values = native.Transcoder(program), opening, b""
    found = native.transcoded([(None, text, ()) for text in texts], None, values)
    if found is None:
        return None
    messages, size, same_headers = found
    assert size == sum(len(value or b"") for _, value, _ in messages)
    assert same_headers
    return [value for _, value, _ in messages]


def transcoded(schema: Schema, text: str, form: AvroFormat = KEEPING) -> bytes | None:
    found = together(avro_program(schema, form), [text.encode("utf-8", "surrogatepass")])
    return None if found is None else found[0]


def in_python(schema: Schema, text: str, form: AvroFormat = KEEPING) -> bytes:
    return avro_encoder(schema, form)(value_from_json(schema, json.loads(text, parse_float=Decimal)))


def has_infinity(value: Any) -> bool:
    """Whether a value has an infinite number, which only Python reads; the same word as a text does not count."""
    if isinstance(value, dict):
        return any(map(has_infinity, (*value, *value.values())))
    if isinstance(value, list | tuple):
        return any(map(has_infinity, value))
    return isinstance(value, float) and math.isinf(value)


@given(typed())
@example((Schema("string"), "Infinity"))
@example((Schema("double"), math.inf))
@settings(max_examples=300, deadline=None)
def test_any_value_has_the_same_bytes(case: tuple[Schema, Any]) -> None:
    schema, value = case
    text = value_text(schema, value, LOSSLESS.json_format)
    assert transcoded(schema, text) == (None if has_infinity(value) else in_python(schema, text))


@pytest.mark.parametrize("name", [name for name in files("avro") if "options" not in name])
def test_all_recorded_values_have_the_same_bytes(name: str) -> None:
    for given_one in conversions("avro", name):
        if given_one.error is not None:
            continue
        text = value_text(given_one.schema, given_one.value, LOSSLESS.json_format)
        for form in (KEEPING, REPLACING):
            assert transcoded(given_one.schema, text, form) == in_python(given_one.schema, text, form)


PROTOBUF = [ProtobufFormat(*options) for options in itertools.product((False, True), repeat=2)]
REPLACING_PROTOBUF = ProtobufFormat(replace_null_with_default=True)


def protobuf_transcoded(schema: Schema, text: str, form: ProtobufFormat) -> bytes | None:
    assert native is not None
    program = protobuf_program(protobuf_file(schema, form).message, form)
    if program is None:
        return None
    found = together(program, [text.encode("utf-8", "surrogatepass")])
    return None if found is None else found[0]


def protobuf_in_python(schema: Schema, value: Any, form: ProtobufFormat) -> bytes:
    return message_encoder(protobuf_file(schema, form).message, form)(value)


@given(typed(depth=2), st.sampled_from(PROTOBUF))
@settings(max_examples=300, deadline=None)
def test_any_value_has_the_same_bytes_in_protobuf(case: tuple[Schema, Any], form: ProtobufFormat) -> None:
    inner, value = case
    schema = struct("a.Outer", {"x": inner, "list": Schema("array", optional=True, items=inner.with_optional(False))})
    whole = {"x": value, "list": None if value is None else [value, value]}
    text = value_text(schema, whole, LOSSLESS.json_format)
    try:
        expected = protobuf_in_python(schema, whole, form)
    except ValueError:  # lists of lists, and nulls in lists
        return
    found = protobuf_transcoded(schema, text, form)
    assert found == expected or (found is None and ("decimal" in str(schema).lower() or has_infinity(whole)))


@pytest.mark.parametrize("name", [name for name in files("protobuf") if "options" not in name])
def test_all_recorded_values_have_the_same_bytes_in_protobuf(name: str) -> None:
    for one in conversions("protobuf", name):
        if one.error is not None or one.schema.type != "struct" or one.value is None:
            continue
        text = value_text(one.schema, one.value, LOSSLESS.json_format)
        for form in (*PROTOBUF, REPLACING_PROTOBUF):
            found = protobuf_transcoded(one.schema, text, form)
            if found is None:
                assert any(mark in str(one.schema) for mark in ("connect.data.Time", "connect.data.Date", "Decimal"))
            else:
                assert found == protobuf_in_python(one.schema, one.value, form)


LISTS = struct(
    "a.Lists",
    {
        "numbers": Schema("array", items=INT32),
        "texts": Schema("array", items=STRING),
        "rows": Schema("array", items=struct("a.Row", {"id": INT64})),
        "entries": Schema("map", keys=STRING, items=INT32),
    },
)


@pytest.mark.parametrize(
    "value",
    [
        {"numbers": [], "texts": [], "rows": [], "entries": {}},
        {"numbers": [0, -1, 300], "texts": ["", "a"], "rows": [{"id": 0}, {"id": 5}], "entries": {"": 0, "a": 1}},
        {"numbers": [7] * 200, "texts": ["x" * 300], "rows": [{"id": 1}] * 3, "entries": {}},
    ],
)
def test_lists_and_maps_in_protobuf(value: dict[str, Any]) -> None:
    text = value_text(LISTS, value, LOSSLESS.json_format)
    expected = protobuf_in_python(LISTS, value, PROTOBUF[0])
    assert protobuf_transcoded(LISTS, text, PROTOBUF[0]) == expected


@pytest.mark.parametrize("number", [0, 7, -1, 10**37, -(10**37), 2**127 - 1, -(2**127), 128, -128, 127])
def test_decimals_in_protobuf(number: int) -> None:
    schema = struct("a.D", {"d": Schema("bytes", name=DECIMAL, parameters=(("scale", "3"),))})
    text = value_text(schema, {"d": number}, LOSSLESS.json_format)
    assert protobuf_transcoded(schema, text, PROTOBUF[0]) == protobuf_in_python(schema, {"d": number}, PROTOBUF[0])


def check_together(schema: Schema, values: list[Any]) -> None:
    """Messages of one call share what they have in common; each must be as it is alone."""
    assert native is not None
    texts = [value_text(schema, value, LOSSLESS.json_format).encode("utf-8", "surrogatepass") for value in values]
    programs: list[tuple[Any, ...] | None] = [avro_program(schema, KEEPING), avro_program(schema, REPLACING)]
    with contextlib.suppress(ValueError):  # lists of lists
        programs.append(protobuf_program(protobuf_file(schema).message, PROTOBUF[0]))
    for program in programs:
        if program is None:
            continue
        alone = [together(program, [text], b"\7") for text in texts]
        if None not in alone:
            assert together(program, texts, b"\7") == [one for found in alone for one in found or ()]


@pytest.mark.parametrize("name", [name for name in files("avro") if "options" not in name])
def test_recorded_messages_are_the_same_together(name: str) -> None:
    by_schema: dict[tuple[str, str, str], tuple[Schema, list[Any]]] = {}
    for one in conversions("avro", name):
        if one.error is None and one.value is not None:
            by_schema.setdefault((one.topic, one.side, str(one.schema)), (one.schema, []))[1].append(one.value)
    for schema, values in by_schema.values():
        check_together(schema, values)


MEMBERS = {
    "before": OPTIONAL_STRING,
    "after": OPTIONAL_STRING,
    "n": INT64,
    "s": STRING,
    "last": Schema("int32", optional=True),
}
INNER = struct("a.Inner", MEMBERS)
OUTER = struct("a.Outer", {**MEMBERS, "source": INNER, "more": INNER.with_optional(True), "end": INT64})
SMALL = st.fixed_dictionaries(
    {
        "before": st.none() | st.sampled_from(["", "a", "ab", 'a"']),
        "after": st.none() | st.sampled_from(["", "a"]),
        "n": st.sampled_from([0, 1, 12, 123, -1]),
        "s": st.sampled_from(["", "x", "xy", "\u00fc"]),
        "last": st.none() | st.sampled_from([1, 12]),
    }
)


@given(
    st.lists(
        st.builds(
            lambda outer, source, more, end: {**outer, "source": source, "more": more, "end": end},
            SMALL, SMALL, st.none() | SMALL, st.sampled_from([1, 11, 111]),
        ),
        min_size=1,
        max_size=8,
    )
)  # fmt: skip
@settings(max_examples=300, deadline=None)
def test_similar_messages_are_the_same_together(values: list[Any]) -> None:
    check_together(OUTER, values)


def large(text: str) -> dict[str, Any]:
    return {"before": None, "after": None, "n": 1, "s": text, "last": None}


def test_a_large_message_is_not_kept() -> None:
    row = {**large(""), "source": large("s"), "more": None, "end": 1}
    rows = [row, {**row, "s": "x" * 100_000}, {**row, "s": "x" * 100_000, "n": 2}, row, {**row, "n": 2}]
    check_together(OUTER, rows)
    assert native is not None
    text = value_text(OUTER, {**row, "s": "x" * 1_000_000}, LOSSLESS.json_format).encode()
    tracemalloc.start()
    try:
        transcoders = [native.Transcoder(avro_program(OUTER, KEEPING)) for _ in range(8)]
        for one in transcoders:
            assert native.transcoded([(None, text, ())], None, (one, b"", b"")) is not None
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 1_000_000


ONE = struct("t", {"a": INT32})


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        (STRING, r'"a\"\\\/\b\f\n\r\tü"', 'a"\\/\b\f\n\r\tü'),
        (STRING, r'"\uD83D\uDE42 \u00fc \u20AC \u0001"', "🙂 ü € \x01"),
        (STRING, r'"x\uD83D"', "x?"),
        (STRING, r'"\uDE42\uD83Dx"', "??x"),
        (STRING, r'"\uD83Dü"', "?ü"),
        (STRING, '""', ""),
        (INT64, str(2**63 - 1), 2**63 - 1),
        (INT64, str(-(2**63)), -(2**63)),
        (FLOAT64, "-0.0", -0.0),
        (FLOAT64, "1.7976931348623157E308", 1.7976931348623157e308),
        (FLOAT32, "3.4028235E38", 3.4028234663852886e38),
        (Schema("array", items=INT32), "[]", []),
        (Schema("array", items=INT32), "[1,-2]", [1, -2]),
        (Schema("map", keys=STRING, items=OPTIONAL_STRING), r'{"a\n":null,"b":"c"}', {"a\n": None, "b": "c"}),
        (Schema("bytes"), '"AP8="', b"\x00\xff"),
        (Schema("bytes"), '""', b""),
    ],
)
def test_each_form_of_a_value(schema: Schema, text: str, value: Any) -> None:
    assert transcoded(schema, text) == in_python(schema, text) == avro_encoder(schema, KEEPING)(value)


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        (INT64, str(2**63)),
        (INT64, "1.0"),
        (INT64, "1e2"),
        (INT64, "-"),
        (INT64, ""),
        (INT64, "null"),
        (INT64, "1 "),
        (FLOAT64, '"NaN"'),
        (FLOAT64, ""),
        (STRING, '"a'),
        (STRING, r'"\x"'),
        (STRING, r'"\u12"'),
        (Schema("boolean"), "tru"),
        (Schema("bytes"), '"AP8"'),
        (Schema("bytes"), '"A*8="'),
        (Schema("bytes"), '"===="'),
        (Schema("array", items=INT32), "[1,"),
        (Schema("array", items=INT32), "[1 2]"),
        (ONE, '{"b":1}'),
        (ONE, '{"a":1,"b":2}'),
        (ONE, '{"a":1'),
        (ONE, "{}"),
    ],
)
def test_everything_else_is_left_to_python(schema: Schema, text: str) -> None:
    assert transcoded(schema, text) is None


@given(st.binary(max_size=60))
@settings(max_examples=500, deadline=None)
def test_damaged_text_is_never_read_beyond_its_end(data: bytes) -> None:
    assert native is not None
    schema = struct(
        "t", {"s": OPTIONAL_STRING, "b": Schema("bytes", optional=True), "n": Schema("double", optional=True)}
    )
    how = native.Transcoder(avro_program(schema, KEEPING)), b"", b""
    for prefix in (b"", b'{"s":', b'{"s":"', b'{"s":null,"b":"', b'{"s":null,"b":null,"n":'):
        found = native.transcoded([(None, prefix + data, ())], None, how)
        assert found is None or len(found[0]) == 1


@pytest.mark.parametrize(
    "program",
    [
        (),
        ("long", b"", b"", b""),
        ("unknown", b"", b"", None, ()),
        ("long", b"", b"", "x", ()),
        ("array", b"", b"", None, ()),
        ("long", b"", b"", None, (("long", b"", b"", None, ()),)),
        ("struct", b"", b"", None, (1,)),
    ],
)
def test_a_wrong_program_is_refused(program: Any) -> None:
    assert native is not None
    with pytest.raises((TypeError, ValueError)):
        native.Transcoder(program)


@pytest.mark.parametrize(
    ("keys", "found"),
    [
        (None, None),
        ((None, b"<", b">"), ([(b"<{}>", None, "h"), (None, None, "h")], 4, True)),
        (("wrong", b"", b""), TypeError),
        ((None, b""), TypeError),
        (b"", TypeError),
    ],
)
def test_text_between_bytes_and_messages_that_are_left_to_python(keys: Any, found: Any) -> None:
    assert native is not None
    messages = [(b"{}", None, "h"), (None, None, "h")]
    if found is TypeError:
        with pytest.raises(TypeError):
            native.transcoded(messages, keys, None)
    else:
        assert native.transcoded(messages, keys, None) == found
    assert native.transcoded([(None, None, []), (None, None, [])], None, None) == ([(None, None, [])] * 2, 0, False)
    for wrong in ([(None, None)], [None], [("text", None, ())]):
        assert native.transcoded(wrong, (None, b"", b""), None) is None  # type: ignore[arg-type]


KEY, ENVELOPE = struct("k", {"id": INT32}), struct("e", {"v": Schema("string", optional=True, default="d")})
PLAIN: Message = (b'{"id":1}', b'{"v":null}', (("h", b"x"),))
MOVED: Message = (b'{"id":2}', None, [("__debezium.newkey", b'{"id":3}'), ("h", b"x")])


def batch(*messages: Message) -> Batch:
    return Batch("t", 3, messages, SourceOffset("b", 4), 0, 7, (KEY, ENVELOPE))


@pytest.mark.parametrize("keys_in_json", [False, True])
@pytest.mark.parametrize("form", [KEEPING, REPLACING, *PROTOBUF, REPLACING_PROTOBUF])
def test_a_batch_is_the_same_both_ways(
    monkeypatch: pytest.MonkeyPatch, form: AvroFormat | ProtobufFormat, keys_in_json: bool
) -> None:
    registry = RecordedRegistry()
    values = AvroConverter(registry, form) if isinstance(form, AvroFormat) else ProtobufConverter(registry, form)
    json_keys = JsonConverter(JsonSettings(json_format=LOSSLESS.json_format))
    chosen = Transforms(TransformChain(), json_keys if keys_in_json else values, values)
    transcoder = transforms.Transcoder(chosen.keys, chosen.values, SimpleHeaderConverter())
    assert transcoder.batch(batch(PLAIN, MOVED, PLAIN)) is not None
    compiled = Transformer(chosen).batch(batch(PLAIN, MOVED, PLAIN))
    monkeypatch.setattr(transforms, "native", None)
    pure = Transformer(chosen).batch(batch(PLAIN, MOVED, PLAIN))
    assert [(key, value, list(headers)) for key, value, headers in compiled.messages] == pure.messages
    assert compiled.messages[1][2][0] == ("__debezium.newkey", b'{"id":3}')
    same = ("topic", "partition", "offset", "size", "ts_ms")
    assert all(getattr(compiled, name) == getattr(pure, name) for name in same)


def test_a_table_without_a_key_has_none() -> None:
    avro = AvroConverter(RecordedRegistry(), KEEPING)
    plain = batch((None, PLAIN[1], ()))._replace(schemas=(None, ENVELOPE))
    (message,) = Transformer(Transforms(TransformChain(), avro, avro)).batch(plain).messages
    assert message[0] is None
    assert message[1] == b"\0\0\0\0\1\2"


def test_a_name_that_avro_does_not_have_stops_with_the_way_out() -> None:
    avro = AvroConverter(RecordedRegistry(), KEEPING)
    wrong = batch(PLAIN)._replace(schemas=(KEY, struct("e", {"a-b": INT32})))
    with pytest.raises(ConversionFailed, match=r"value\.converter: .* topic t .*'a-b' is not valid in Avro"):
        Transformer(Transforms(TransformChain(), avro, avro)).batch(wrong)
