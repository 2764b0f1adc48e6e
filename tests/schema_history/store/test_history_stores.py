"""Schema histories in memory and in a file: records are unchanged, and damage is an error with its location."""

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowtide.schema_history.errors import SchemaHistoryError
from rowtide.schema_history.store.file import FileSchemaHistory
from rowtide.schema_history.store.history_store import (
    HistoryStoreError,
    InMemorySchemaHistory,
    SchemaHistoryStore,
    UnusableHistory,
    json_object,
    one_line,
)

PRETTY = '{\n  "source" : {\n    "server" : "shop"\n  },\n  "ddl" : "CREATE TABLE `t`\\n(a int)"\n}'


def test_memory_replays_what_was_appended() -> None:
    history: SchemaHistoryStore = InMemorySchemaHistory()
    assert not history.exists()
    with history.buffered():
        history.append('{"a":1}')
    history.append(PRETTY)
    assert history.exists()
    assert list(history.replay(json_object)) == ['{"a":1}', PRETTY]
    assert list(history.replay(json.loads)) == [{"a": 1}, json.loads(PRETTY)]


def test_a_damaged_record_in_memory_is_an_error() -> None:
    history = InMemorySchemaHistory('{"a":1}', '{"a":')
    with pytest.raises(SchemaHistoryError, match="record 1"):
        list(history.replay(json_object))


def test_a_file_holds_one_record_a_line(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "history.txt"
    history = FileSchemaHistory(path)
    assert not history.exists()
    assert list(history.replay(json_object)) == []
    history.append(PRETTY)
    history.append('{"ddl":"DROP TABLE `größe`"}')
    history.close()
    assert path.read_text(encoding="utf-8").splitlines() == [
        '{"source":{"server":"shop"},"ddl":"CREATE TABLE `t`\\n(a int)"}',
        '{"ddl":"DROP TABLE `größe`"}',
    ]
    again = FileSchemaHistory(path)
    assert again.exists()
    assert list(again.replay(json.loads)) == [json.loads(PRETTY), {"ddl": "DROP TABLE `größe`"}]


def test_a_file_is_flushed_after_each_record_unless_buffered(tmp_path: Path) -> None:
    path = tmp_path / "history.txt"
    history = FileSchemaHistory(path)
    history.append('{"a":1}')
    assert path.read_text() == '{"a":1}\n'
    with history.buffered():
        history.append('{"a":2}')
        assert path.read_text() == '{"a":1}\n'
    assert path.read_text() == '{"a":1}\n{"a":2}\n'
    history.close()


def test_a_truncated_line_is_replaced_by_the_next_record(tmp_path: Path) -> None:
    path = tmp_path / "history.txt"
    path.write_text('{"a":1}\n{"a":2}')
    history = FileSchemaHistory(path)
    assert list(history.replay(json_object)) == ['{"a":1}', '{"a":2}']
    history.append('{"a":3}')
    history.close()
    assert list(history.replay(json_object)) == ['{"a":1}', '{"a":2}', '{"a":3}']


def test_a_truncated_line_is_not_a_record(tmp_path: Path) -> None:
    path = tmp_path / "history.txt"
    path.write_text('{"a":1}\n{"ddl":"CREATE TA')
    history = FileSchemaHistory(path)
    assert list(history.replay(json_object)) == ['{"a":1}'], "its statement is read from the binlog again"
    history.append('{"a":2}')
    history.close()
    assert path.read_text() == '{"a":1}\n{"a":2}\n'
    path.write_text('{"a":1}\n' + "x" * 100_000)
    with history.buffered():
        history.append('{"a":2}')
        history.append('{"a":3}')
    assert path.read_text() == '{"a":1}\n{"a":2}\n{"a":3}\n'
    path.write_text("x")
    assert list(history.replay(json_object)) == []
    history.append('{"a":1}')
    history.close()
    assert list(FileSchemaHistory(path).replay(json_object)) == ['{"a":1}']


def test_two_connectors_may_write_to_one_file(tmp_path: Path) -> None:
    path = tmp_path / "history.txt"
    texts = [json.dumps({"writer": writer, "text": "x" * 30_000}) for writer in range(4)]

    def write(text: str) -> None:
        history = FileSchemaHistory(path)
        for _ in range(10):
            history.append(text)
        with history.buffered():
            for _ in range(10):
                history.append(text)
        history.close()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, texts))
    assert sorted(FileSchemaHistory(path).replay(json_object)) == sorted(texts * 20)


@given(st.lists(st.text("äb", min_size=1), min_size=1, max_size=6), st.data())
def test_a_file_can_be_read_from_any_location(values: list[str], data: st.DataObject) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, "history.txt")
        lines = [json.dumps({"v": value}, ensure_ascii=False) for value in values]
        path.write_text("\n\n".join(lines), encoding="utf-8")
        history = FileSchemaHistory(path)
        whole = list(history.texts())
        assert [stored.text for stored in whole] == lines
        number = data.draw(st.integers(0, len(whole) - 1))
        assert list(history.texts(whole[number].at)) == whole[number:]
        assert list(history.texts(whole[number].end)) == whole[number + 1 :]
        assert list(history.texts(10**9)) == []


@pytest.mark.parametrize(
    "damaged",
    [b'{"a":', b"17", b'["a"]', b'{"a":"\xff"}', b'{"a":1} {"a":2}'],
    ids=["cut", "number", "list", "bytes", "two"],
)
def test_a_damaged_line_is_an_error_with_its_number(tmp_path: Path, damaged: bytes) -> None:
    path = tmp_path / "history.txt"
    path.write_bytes(b'{"a":1}\n\n' + damaged + b'\n{"a":4}\n')
    seen: list[str] = []
    with pytest.raises(SchemaHistoryError, match=r"history\.txt line 3.*snapshot\.mode=recovery"):
        seen.extend(FileSchemaHistory(path).replay(json_object))
    assert seen == ['{"a":1}'] or not seen


def test_a_parser_error_has_the_location(tmp_path: Path) -> None:
    path = tmp_path / "history.txt"
    path.write_text('{"a":1}\n')
    with pytest.raises(SchemaHistoryError, match=r"line 1: 'position'"):
        list(FileSchemaHistory(path).replay(lambda text: json.loads(text)["position"]))


def test_an_unusable_file_is_named(tmp_path: Path) -> None:
    history = FileSchemaHistory(tmp_path)
    with pytest.raises(HistoryStoreError, match=tmp_path.name):
        history.append('{"a":1}')
    with pytest.raises(HistoryStoreError, match=tmp_path.name):
        list(history.replay(json_object))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), json_values, max_size=4), st.sampled_from([None, 2]), st.booleans())
def test_one_line_is_the_same_json_on_one_line(value: dict[str, object], indent: int | None, escape: bool) -> None:
    line = one_line(json.dumps(value, indent=indent, ensure_ascii=escape))
    assert "\n" not in line
    assert json.loads(line) == value


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is always full")
@pytest.mark.parametrize("buffered", [False, True])
def test_a_full_disk_is_an_error_that_passes(tmp_path: Path, *, buffered: bool) -> None:
    path = tmp_path / "history.txt"
    path.symlink_to("/dev/full")
    history = FileSchemaHistory(path)

    def append() -> None:
        with history.buffered() if buffered else nullcontext():
            history.append('{"a":1}')

    with pytest.raises(HistoryStoreError, match=r"history\.txt.*No space left") as caught:
        append()
    assert caught.value.retriable
    with pytest.raises(OSError, match="No space left"):
        history.close()


@pytest.mark.parametrize("again", [False, True], ids=["deleted", "replaced"])
@pytest.mark.parametrize("read", [False, True], ids=["written before", "read before"])
def test_nothing_is_written_to_a_file_that_was_deleted_or_replaced(tmp_path: Path, again: bool, read: bool) -> None:
    """It would look like a complete history at the next start."""
    path = tmp_path / "history.txt"
    writer = FileSchemaHistory(path)
    writer.append('{"a":1}')
    reader = FileSchemaHistory(path)
    assert list(reader.replay(json_object)) == ['{"a":1}']
    path.rename(tmp_path / "kept.txt")
    if again:
        path.write_text("")
    with pytest.raises(UnusableHistory, match=r"history\.txt was deleted or replaced.*snapshot\.mode=recovery"):
        (reader if read else writer).append('{"b":2}')
    assert (path.read_text() if again else path.exists()) in ("", False)
    writer.close()
