"""An update loses its row before, and every other byte stays."""

import pytest

from rowtide.envelope.json.without_before import without_before

UPDATE = '{"before":{"id":1,"t":"a\\"}"},"after":{"id":1,"t":"b","d":1.10},"source":{"pos":4},"op":"u","ts_ms":1}'
EXPECTED = '{"before":null,"after":{"id":1,"t":"b","d":1.10},"source":{"pos":4},"op":"u","ts_ms":1}'
SCHEMA = '{"type":"struct","fields":[{"field":"before"}]}'


def test_before_becomes_null() -> None:
    assert without_before(UPDATE.encode()) == EXPECTED.encode()


def test_before_of_the_payload_becomes_null() -> None:
    with_schema = without_before(f'{{"schema":{SCHEMA},"payload":{UPDATE}}}'.encode())
    assert with_schema == f'{{"schema":{SCHEMA},"payload":{EXPECTED}}}'.encode()


def test_text_of_any_character_stays() -> None:
    assert (
        without_before(UPDATE.replace('"b"', '"ü\\ud800𝄞"').encode()) == EXPECTED.replace('"b"', '"ü\\ud800𝄞"').encode()
    )


@pytest.mark.parametrize(
    "value",
    [
        UPDATE.replace('"u"', '"d"'),
        UPDATE.replace('"u"', '"c"'),
        EXPECTED,
        '{"before":{"id":1},"after":null,"op":"u"}',
        '{"id":1}',
        '{"schema":null,"payload":null}',
        "[1]",
        "rowtide-claim-check",
        "",
        "{",
        UPDATE[:-1],
    ],
)
def test_others_are_not_changed(value: str) -> None:
    assert without_before(value.encode()) is None


def test_bytes_that_are_not_text_are_not_changed() -> None:
    assert without_before(b"\0\0\0\0\1\xff") is None
