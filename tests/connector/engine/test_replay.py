"""Replay of recorded binlog files from every kind of start, and of folders that are not whole."""

import json
import shutil
import zlib
from itertools import pairwise
from pathlib import Path

import pytest

from rowtide.connector.config import from_properties
from rowtide.connector.engine.pipeline_settings import pipeline_settings
from rowtide.connector.engine.replay import replay
from rowtide.connector.errors import OffsetError, TruncatedEvent
from rowtide.connector.protocol.binlog_file import binlog_packets
from rowtide.connector.protocol.header import EventType
from rowtide.connector.records.batch import Batch
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.source.files.folder import binlog_files
from rowtide.connector.source.files.statements import binlog_statements
from tests.support.mysql.dumped_files import golden_binlogs
from tests.support.recordings.golden import Case, Written, written

MYSQL, MARIADB = "transactions", "mariadb-types"


def batches(case: str, start: SourceOffset | None, folder: Path | None = None) -> list[Batch]:
    """The batches of a case's files, at a fixed time."""
    settings = pipeline_settings(from_properties(Case(case).properties()), "run")
    outputs = replay(folder or Case(case).binlog, settings, start, lambda: 0)
    return [output for output in outputs if isinstance(output, Batch)]


def rows(found: list[Batch]) -> list[Written]:
    """Their messages but for schema changes: those differ with the form that structures have at the start."""
    return [message for message in written(found) if '"op":' in (message.value or '"op":')]


@pytest.mark.parametrize("case", [MYSQL, MARIADB])
def test_a_replay_cut_at_any_offset_continues_with_the_next_record(case: str) -> None:
    whole = batches(case, Case(case).start)
    offsets = [batch.offset for batch in whole]
    for number, (offset, following) in enumerate(pairwise([*offsets, None]), start=1):
        if offset != following:  # else more records have that offset
            assert rows(batches(case, offset)) == rows(whole[number:]), offset


@pytest.mark.parametrize("case", [MYSQL, MARIADB])
def test_a_start_without_a_file_takes_the_transactions_that_are_not_in_its_set(case: str) -> None:
    start = Case(case).start
    assert start is not None
    assert start.gtids
    assert rows(batches(case, SourceOffset("", 4, start.gtids))) == rows(batches(case, start))


def test_transactions_of_the_set_are_omitted_wherever_they_are() -> None:
    start = Case(MYSQL).start
    assert start is not None
    whole = [batch for batch in batches(MYSQL, start) if batch.topic.startswith(f"{MYSQL}.")]
    gtids = [f'"gtid":"{gtid}"' for gtid in _gtids(whole)]
    left_out = gtids[1]
    gtid = left_out.split('"')[3]
    found = rows(batches(MYSQL, SourceOffset("", 4, f"{start.gtids},{gtid}")))
    assert not [message for message in found if left_out in (message.value or "")]
    for gtid in (gtids[0], gtids[2]):
        assert [message for message in found if gtid in (message.value or "")]


def _gtids(found: list[Batch]) -> list[str]:
    values = [message.value for message in written(found) if message.value and '"gtid":"' in message.value]
    return list(dict.fromkeys(value.split('"gtid":"')[1].split('"')[0] for value in values))


def test_a_start_that_is_not_a_set_is_refused() -> None:
    with pytest.raises(OffsetError, match="not a GTID set: 'zz' is not a UUID"):
        batches("transactions", SourceOffset("", 0, gtids="zz"))


def test_a_start_that_is_not_there_is_refused() -> None:
    start = Case(MYSQL).start
    assert start is not None
    with pytest.raises(OffsetError, match=r"the start is in binlog\.000099, but the files are binlog\.000001 to"):
        batches(MYSQL, SourceOffset("binlog.000099", 4))
    with pytest.raises(OffsetError, match=f"{start.file}:{start.pos + 1} is inside an event, which begins at"):
        batches(MYSQL, SourceOffset(start.file, start.pos + 1))
    with pytest.raises(OffsetError, match=f"{start.file}:99999999 is after the end of the file"):
        batches(MYSQL, SourceOffset(start.file, 99999999))


def test_a_set_cannot_be_followed_without_gtids() -> None:
    with pytest.raises(OffsetError, match=r"transaction without GTID at binlog.*: give a file and a position"):
        batches("gtid-off", SourceOffset("", 4, "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5"))


def test_files_are_taken_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for name in ("mysql-bin.1000000", "mysql-bin.999999.gz", "mysql-bin.index", "README"):
        (tmp_path / name).touch()
    assert [file.name for file in binlog_files(tmp_path)] == ["mysql-bin.999999", "mysql-bin.1000000"]


def test_the_logs_of_an_engine_in_a_data_directory_are_no_binlogs(tmp_path: Path) -> None:
    for name, head in (("aria_log.00000001", b"\xfe\xfe\x0c\x01"), ("b.000001", b"\xfebin"), ("b.000002", b"")):
        (tmp_path / name).write_bytes(head)
    assert [file.name for file in binlog_files(tmp_path)] == ["b.000001", "b.000002"]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ([], "no binlog files .* in"),
        (["binlog.000001", "binlog.000003"], "missing between binlog.000001 and binlog.000003"),
        (["binlog.000001", "binlog.000001.gz"], "are the same binlog file"),
        (["binlog.000001", "mysql-bin.000002"], r"different names \(binlog, mysql-bin\)"),
    ],
)
def test_a_folder_that_would_lose_events_is_refused(tmp_path: Path, names: list[str], message: str) -> None:
    for name in names:
        (tmp_path / name).touch()
    with pytest.raises(OffsetError, match=message):
        binlog_files(tmp_path)


def test_a_file_that_ends_in_an_event_is_an_error_unless_the_server_still_writes_to_it(tmp_path: Path) -> None:
    case = Case("restart-between-stages")
    import gzip

    contents = [gzip.decompress(path.read_bytes()) for path in sorted(case.binlog.iterdir())]
    (tmp_path / "binlog.000001").write_bytes(contents[0][:21] + b"\x01" + contents[0][22:-5])  # in use
    batches(case.name, None, tmp_path)
    (tmp_path / "binlog.000002").write_bytes(contents[1])
    with pytest.raises(TruncatedEvent, match=r"the file ends inside a \w+ event.*binlog.000001:\d+"):
        batches(case.name, None, tmp_path)
    shutil.rmtree(tmp_path)


def test_a_transaction_that_its_file_does_not_end_is_skipped(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Also if the next file does not show that the server was started again, as where the end of a copy is missing."""
    case = Case(MARIADB)
    (path,) = case.binlog.iterdir()
    name = path.name.removesuffix(".gz")
    with path.open("rb") as stream:
        packets = list(binlog_packets(stream, name))
    kinds = [packet[4] for packet in packets]
    last = len(kinds) - 1 - kinds[::-1].index(EventType.XID)
    begin = last - kinds[last::-1].index(EventType.MARIADB_GTID)
    form = packets[0][:-4]
    form = form[:71] + bytes(4) + form[75:]  # not created by a start of the server
    form += zlib.crc32(form).to_bytes(4, "little")
    head = b"\xfebin"
    (tmp_path / "binlog.000001").write_bytes(head + b"".join(packets[:last]))
    (tmp_path / "binlog.000002").write_bytes(head + form + b"".join(packets[begin : last + 1]))
    found = rows(batches(MARIADB, None, tmp_path))
    (tmp_path / "binlog.000001").write_bytes(head + b"".join(packets[: last + 1]))
    (tmp_path / "binlog.000002").unlink()
    assert len(found) == len(rows(batches(MARIADB, None, tmp_path)))
    assert "the last transaction has no end, so its rows are skipped: the events end there" in caplog.text


def test_a_database_without_tables_is_known_at_the_start() -> None:
    case = Case("ddl-and-filters")
    settings = pipeline_settings(from_properties(case.properties()), "run")
    behind_the_database = next(
        statement.position
        for statement in binlog_statements(case.binlog)
        if b"create database pd " in bytes(statement.event.sql if isinstance(statement.event.sql, bytes) else b"")
    )
    start = SourceOffset(behind_the_database.file, behind_the_database.pos)
    texts = [message.value or "" for message in written(replay(case.binlog, settings, start, lambda: 0))]
    created = [text for text in texts if '"ddl":"create table t (id int primary key, v varchar(10), n int)' in text]
    assert len(created) == 1
    assert '"defaultCharsetName":"latin1"' in created[0]


def test_a_mirror_is_replayed_while_it_is_written(tmp_path: Path) -> None:
    case = Case("restart-between-stages")
    files = golden_binlogs(case.name)
    whole = rows(batches(case.name, None))
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    for name in ("mirror.json", "mirror.lock", "binlog.index", "binlog.000003"):  # the last one has just been begun
        (tmp_path / name).touch()
    assert rows(batches(case.name, None, tmp_path)) == whole
    (tmp_path / "binlog.000003").unlink()
    last = files["binlog.000002"]
    (tmp_path / "binlog.000002").write_bytes(last[:21] + b"\x01" + last[22:-50])
    found = rows(batches(case.name, None, tmp_path))
    assert found == whole[: len(found)]
    assert found


def test_rows_of_a_sequence_have_its_columns(caplog: pytest.LogCaptureFixture) -> None:
    case = Case("mariadb-fails-sequence")
    found = [json.loads(message.value or "") for message in rows(batches(case.name, None)) if ".s1" in message.topic]
    (value,) = [one["payload"]["after"] for one in found if one["payload"]["op"] == "c"][:1]
    assert value["next_not_cached_value"] > 0
    assert set(value) == {
        "next_not_cached_value", "minimum_value", "maximum_value", "start_value", "increment", "cache_size",
        "cycle_option", "cycle_count",
    }  # fmt: skip
    assert "column" not in caplog.text
