"""TimestampConverter with exact values, TimestampRouter, and texts of times.

``test_recorded_transforms`` compares TimestampConverter with Kafka Connect's.
"""

from dataclasses import replace
from typing import Any

import pytest

from rowtide.envelope.schema import INT64, STRING, Schema, struct
from rowtide.envelope.transforms import (
    ConnectRecord,
    Plugin,
    TransformConfigurationError,
    TransformError,
    transform_chain,
)
from rowtide.envelope.transforms.simple_date_format import SimpleDateFormat

KAFKA = "org.apache.kafka.connect.transforms."
RECORD = ConnectRecord("s.d.t", None, None, None, STRING, "v")


def stamped(record: ConnectRecord) -> ConnectRecord:
    return replace(record, timestamp=1_700_000_000_123)


def converted(schema: Schema, value: Any, *, exact: bool = True, **options: str) -> Any:
    plugin = Plugin(
        "c", KAFKA + "TimestampConverter$Value", {key.replace("_", "."): one for key, one in options.items()}
    )
    value_schema = struct("t.Value", {"v": schema})
    made = transform_chain([plugin], exact=exact).apply(
        ConnectRecord("t", None, None, None, value_schema, {"v": value})
    )
    assert made is not None
    return made.value["v"]


def problems_of(*plugins: Plugin, exact: bool = False) -> list[tuple[str, str]]:
    with pytest.raises(TransformConfigurationError) as caught:
        transform_chain(plugins, exact=exact)
    return [tuple(problem) for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("pattern", "text", "message"),
    [
        ("yyyy-MM-dd", "2024-02-30", "there is no such date"),
        ("yyyy-MM-dd", "0000-00-00", "a number is not from 1 to 9999"),
        ("yyyy-MM-dd", "2024-13-01", "a number is not from 1 to 12"),
        ("yyyy D", "2023 366", "there is no such date"),
        ("HH:mm:ss", "25:00:00", "a number is not from 0 to 23"),
        ("ss.SSS", "30.123456", "milliseconds have three digits, not 6"),
        ("ss.SSS", "30.5", "milliseconds have three digits, not 1"),
    ],
)
def test_a_text_that_java_reads_as_another_time_is_an_error(pattern: str, text: str, message: str) -> None:
    SimpleDateFormat(pattern, exact=False).parse(text)
    with pytest.raises(TransformError, match=message):
        converted(STRING, text, field="v", target_type="unix", format=pattern)


def test_old_dates_are_those_of_mysql() -> None:
    day = -719_162 * 86_400_000  # 0001-01-01
    assert SimpleDateFormat("yyyy-MM-dd", exact=True).format(day) == "0001-01-01"
    assert SimpleDateFormat("yyyy-MM-dd", exact=False).format(day) == "0001-01-03", "Julian, as in Java"
    assert SimpleDateFormat("yyyy-MM-dd", exact=True).parse("0001-01-01") == day
    assert SimpleDateFormat("yyyy-MM-dd", exact=True).parse("1582-10-10 12:00") == -141_432 * 86_400_000


def test_years_of_two_digits_are_near() -> None:
    year = int(SimpleDateFormat("yyyy", exact=True).format(SimpleDateFormat("yy", exact=True).parse("24")))
    assert year == 2024


@pytest.mark.parametrize("precision", ["seconds", "nanoseconds"])
def test_a_time_that_does_not_fit_is_an_error(precision: str) -> None:
    options = {"field": "v", "target_type": "Date" if precision == "seconds" else "unix", "unix_precision": precision}
    given = INT64 if precision == "seconds" else Schema("int64", name="org.apache.kafka.connect.data.Timestamp")
    converted(given, 2**60, exact=False, **options)
    with pytest.raises(TransformError, match="field 'v': the time does not fit"):
        converted(given, 2**60, **options)


def test_the_last_microsecond_of_1969_is_in_1969() -> None:
    options = {"field": "v", "target_type": "Date", "unix_precision": "microseconds"}
    assert converted(INT64, -1, **options) == -1
    assert converted(INT64, -1, exact=False, **options) == 0, "Java rounds towards zero"


@pytest.mark.parametrize(
    ("schema", "value", "message"),
    [
        (STRING, "2024", r"field 'v': the time is text: set format"),
        (Schema("int32", name="io.debezium.time.Date"), 1, r"int32 \(io\.debezium\.time\.Date\), which is not a time"),
    ],
)
def test_a_field_that_is_not_a_time_is_named(schema: Schema, value: Any, message: str) -> None:
    with pytest.raises(TransformError, match=message):
        converted(schema, value, field="v", target_type="Timestamp")


@pytest.mark.parametrize(
    ("options", "name", "message"),
    [
        ({}, "target.type", "is required"),
        ({"target.type": "datetime"}, "target.type", "must be one of string, unix, date, time, timestamp"),
        ({"target.type": "string"}, "format", "is required with target.type=string"),
        ({"target.type": "Date", "unix.precision": "ms"}, "unix.precision", "must be one of seconds"),
        ({"target.type": "Date", "format": "YYYY-MM-dd"}, "format", "Y counts weeks, whose numbers depend on the"),
        ({"target.type": "Date", "format": "yyyy-nn"}, "format", "n is not a letter"),
        ({"target.type": "Date", "format": "yyyy'T"}, "format", "a quote is not closed"),
        ({"target.type": "Date", "format": "XXXX"}, "format", "X may have up to three letters"),
        ({"target.type": "Date", "format": "ss.SSSSSS"}, "format", "use SSS: S is the number of milliseconds"),
    ],
)
def test_wrong_options_are_reported(options: dict[str, str], name: str, message: str) -> None:
    found = problems_of(Plugin("c", KAFKA + "TimestampConverter$Value", options), exact=True)
    assert [one for one, _ in found] == [f"transforms.c.{name}"]
    assert found[0][1].startswith(message)


def test_a_timestamp_chooses_the_topic() -> None:
    stamp = Plugin("s", f"python:{__name__}.stamped", {})
    for options, topic in (
        ({}, "s.d.t-20231114"),
        ({"topic.format": "${timestamp}_${topic}", "timestamp.format": "yyyy-MM"}, "2023-11_s.d.t"),
    ):
        made = transform_chain([stamp, Plugin("r", KAFKA + "TimestampRouter", options)]).apply(RECORD)
        assert made is not None
        assert made.topic == topic


def test_a_predicate_keeps_records_without_a_timestamp_in_their_topic() -> None:
    route = {"predicate": "tombstone", "negate": "true"}
    stamp = Plugin("s", f"python:{__name__}.stamped", dict(route))
    tombstone = Plugin("tombstone", KAFKA + "predicates.RecordIsTombstone", {})
    chain = transform_chain([stamp, Plugin("r", KAFKA + "TimestampRouter", route)], [tombstone])
    made = [chain.apply(one) for one in (RECORD, replace(RECORD, value_schema=None, value=None))]
    assert [one and one.topic for one in made] == ["s.d.t-20231114", "s.d.t"]


def test_without_timestamps_no_topic_can_be_chosen() -> None:
    """Debezium's records have none: Kafka Connect fails on the first one."""
    found = problems_of(Plugin("r", KAFKA + "TimestampRouter", {"timestamp.format": "YYYY"}))
    assert [name for name, _ in found] == ["transforms.r.type", "transforms.r.timestamp.format"]
    assert found[0][1].startswith("no record has a timestamp here, as in Debezium")
    event = Plugin("e", "io.debezium.transforms.outbox.EventRouter", {})
    chain = transform_chain([event, Plugin("r", "TimestampRouter", {})])
    with pytest.raises(TransformError, match=r"transforms\.r: .* it has no timestamp"):
        chain.apply(RECORD)
