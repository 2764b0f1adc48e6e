"""Signals are parsed from rows and messages, and what is wrong with them is named."""

import pytest

from rowtide.connector.errors import SignalError
from rowtide.connector.signals.signal import Signal, from_columns, from_message


def parsed(text: str) -> Signal:
    return from_message(text, "kafka", lambda: "new-id")


def test_a_row_of_the_signal_table() -> None:
    assert from_columns("1", "log", '{"message": "x"}') == Signal("1", "log", {"message": "x"}, "source")
    for empty in (None, "", "  "):
        assert from_columns("1", "pause-snapshot", empty).data == {}


def test_a_message() -> None:
    assert parsed('{"id":"a","type":"log","data":{"message":"x"}}') == Signal("a", "log", {"message": "x"}, "kafka")
    assert parsed('{"type":"pause-snapshot"}') == Signal("new-id", "pause-snapshot", {}, "kafka")
    assert parsed('{"id":"a","type":"log","data":"{\\"message\\":\\"x\\"}"}').data == {"message": "x"}


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (("1", "log", "no json"), "data is not JSON"),
        (("1", "log", "[]"), "data must be a JSON object"),
        (("1", "log", 5), "must be text"),
        ((1, "log", None), "all of them text"),
        (("1", "log", '{"a":' * 100_000), "data is not JSON"),
    ],
)
def test_a_wrong_row_is_named(columns: tuple[object, object, object], message: str) -> None:
    with pytest.raises(SignalError, match=message) as raised:
        from_columns(*columns)
    assert raised.value.signal_id == (columns[0] if isinstance(columns[0], str) else "")


@pytest.mark.parametrize(
    ("text", "message", "known"),
    [
        ("no json", "a signal is not JSON", ("", "")),
        ("5", "a signal must be a JSON object", ("", "")),
        ('{"id":5}', "the id of a signal must be a string", ("", "")),
        ('{"id":"a"}', "the type of signal 'a' is missing", ("a", "")),
        ('{"id":"a","type":""}', "the type of signal 'a' must be a string", ("a", "")),
        ('{"id":"a","type":"log","data":5}', "the data of signal 'a' must be a JSON object", ("a", "log")),
        ('{"id":"a","type":"log","data":"x"}', "data is not JSON", ("a", "log")),
        ('{"id":"\\ud800","type":"log"}', "a signal has a character that is not valid in Unicode", ("", "")),
        ('{"id":"a","type":"log","data":"{\\"message\\":\\"\\\\ud800\\"}"}', "data has a character", ("a", "log")),
    ],
)
def test_a_wrong_message_is_named(text: str, message: str, known: tuple[str, str]) -> None:
    with pytest.raises(SignalError, match=message) as raised:
        parsed(text)
    assert (raised.value.signal_id, raised.value.signal_type) == known


def test_a_parameter_of_the_wrong_type_is_named() -> None:
    signal = Signal("1", "log", {"message": 5, "list": ["a", 5]}, "file")
    with pytest.raises(SignalError, match="'message' in the data must be a string"):
        signal.text("message")
    with pytest.raises(SignalError, match="'list' in the data must be a list of strings"):
        signal.texts("list")
    assert (signal.text("none"), signal.texts("none")) == (None, ())
