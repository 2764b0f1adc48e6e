"""Records as JSON lines, on a stream and in files."""

import io
import json
import resource
from pathlib import Path
from typing import Any

import pytest

from rowtide.connector.delivery.errors import DeliveryError
from rowtide.connector.delivery.sinks import FileSink, Record, StreamSink
from rowtide.connector.delivery.sinks.json_lines import json_line


def record(number: int) -> Record:
    return Record("p.d.t", b'{"id":%d}' % number, b'{"op":"c"}', ())


def lines(path: Path) -> list[int]:
    return [json.loads(line)["key"]["id"] for line in path.read_text().splitlines()]


def test_a_line_holds_key_value_and_headers() -> None:
    line = json_line(Record('p."t', b'{"id":1}', b'{"a":"\xc3\xab\\n"}', [("h", b"x"), ("n", None)]))
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert json.loads(line) == {
        "topic": 'p."t',
        "key": {"id": 1},
        "value": {"a": "ë\n"},
        "headers": {"h": "x", "n": None},
    }


def test_a_tombstone_and_a_record_without_key_are_null() -> None:
    assert json.loads(json_line(Record("t", None, None, ()))) == {
        "topic": "t",
        "key": None,
        "value": None,
        "headers": {},
    }


def test_a_stream_gets_every_record_at_once() -> None:
    stream = io.BytesIO()
    sink = StreamSink(stream)
    sink.write([record(1), record(2)])
    assert stream.getvalue().count(b"\n") == 2
    sink.close()
    assert not stream.closed


def test_a_stream_that_nobody_reads_ends_delivery() -> None:
    class Closed(io.BytesIO):
        def write(self, _data: object) -> int:
            raise BrokenPipeError

    with pytest.raises(DeliveryError, match="standard output was closed by its reader"):
        StreamSink(Closed()).write([record(1)])


def test_a_stream_without_buffer_gets_everything() -> None:
    class Raw(io.BytesIO):
        def write(self, data: Any) -> int:
            return super().write(bytes(data)[:7])

    stream = Raw()
    StreamSink(stream).write([record(1), record(2)])
    assert [json.loads(line)["key"]["id"] for line in stream.getvalue().splitlines()] == [1, 2]


def test_a_stream_that_takes_nothing_fails() -> None:
    class Full(io.BytesIO):
        def write(self, _data: object) -> Any:
            return None

    with pytest.raises(OSError, match="make it blocking"):
        StreamSink(Full()).write([record(1)])


def test_a_sink_continues_after_a_full_disk(tmp_path: Path) -> None:
    sink = FileSink(tmp_path)
    sink.write([record(1)])
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(json_line(record(1))) + 20, before[1]))
    try:
        with pytest.raises(OSError, match=r"File too large: .*/records-00000001\.jsonl"):
            sink.write([record(2)] * 5000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    sink.write([record(3)])
    sink.close()
    assert lines(tmp_path / "records-00000001.jsonl") == [1, 3]


def test_files_follow_one_another_by_size_and_across_starts(tmp_path: Path) -> None:
    folder = tmp_path / "made/below"
    size = 3 * len(json_line(record(1)))
    for start in (1, 5):
        sink = FileSink(folder, size)
        for number in range(start, start + 4):
            sink.write([record(number)])
        sink.flush()
        sink.close()
    files = sorted(folder.iterdir())
    assert [path.name for path in files] == [f"records-0000000{number}.jsonl" for number in (1, 2, 3)]
    assert [lines(path) for path in files] == [[1, 2, 3], [4, 5, 6], [7, 8]]


@pytest.mark.parametrize("torn", ['{"topic":"p.d', "x" * 200_000])
def test_a_line_that_a_crash_has_torn_is_removed(tmp_path: Path, torn: str) -> None:
    sink = FileSink(tmp_path)
    sink.write([record(1)])
    sink.close()
    with (tmp_path / "records-00000001.jsonl").open("a") as stream:
        stream.write(torn)
    sink = FileSink(tmp_path)
    sink.write([record(2)])
    sink.close()
    assert lines(tmp_path / "records-00000001.jsonl") == [1, 2]


def test_other_files_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "records-00000009.jsonl.bak").write_text("mine")
    FileSink(tmp_path).close()
    assert (tmp_path / "records-00000009.jsonl.bak").read_text() == "mine"
    assert (tmp_path / "records-00000001.jsonl").read_text() == ""


def test_a_directory_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DeliveryError, match=f"no records can be written to {tmp_path}/file"):
        FileSink(tmp_path / "file")


def test_a_directory_may_be_given_as_text(tmp_path: Path) -> None:
    sink = FileSink(str(tmp_path / "records"))
    sink.write([record(1)])
    sink.close()
    assert lines(tmp_path / "records/records-00000001.jsonl") == [1]
