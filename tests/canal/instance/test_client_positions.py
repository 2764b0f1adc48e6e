"""Positions of clients on disk: what a restart, a crash or a Canal in between leaves of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from rowtide.canal.instance.client_positions import ClientPositions, Resumption
from rowtide.canal.instance.positions import CanalPosition, Master
from rowtide.canal.instance.storage import HISTORY, META, OWN, FolderStorage
from rowtide.canal.server.stored_entry import LogPosition
from rowtide.connector.errors import OffsetError
from rowtide.connector.records.offset import SourceOffset

BEGIN = SourceOffset("binlog.000001", 4)


def offset(pos: int) -> SourceOffset:
    return SourceOffset("binlog.000001", pos, "u:1-5", ts_sec=7)


def place(pos: int, *, server_id: int = 1, seconds: int = 7, file: str = "binlog.000001") -> LogPosition:
    return LogPosition(file, pos, server_id, seconds * 1000, "", offset(pos + 31))


def opened(folder: Path) -> ClientPositions:
    return ClientPositions(FolderStorage(folder / "d", "d"), Master("localhost", 3306))


def test_the_oldest_client_counts(tmp_path: Path) -> None:
    found = opened(tmp_path)
    found.acknowledged(1, place(200))
    found.acknowledged(2, place(100))
    assert found.resumption() == Resumption(offset(131))
    found.unsubscribed(2)
    assert found.resumption() == Resumption(offset(231))


def test_positions_of_two_servers_are_compared_by_time(tmp_path: Path) -> None:
    found = opened(tmp_path)
    found.acknowledged(1, place(100, server_id=2, seconds=20))
    found.acknowledged(2, place(900, server_id=1, seconds=10, file="binlog.000009"))
    assert found.resumption() == Resumption(offset(931))


def test_a_restart_resumes_after_what_was_acknowledged(tmp_path: Path) -> None:
    found = opened(tmp_path)
    assert found.resumption() is None
    found.subscribed(1001, "a")
    found.acknowledged(1001, place(100))
    found.flush()
    again = opened(tmp_path)
    assert again.resumption() == Resumption(offset(131))
    assert again.filter == "a"


def test_a_client_without_a_position_begins_where_the_instance_did(tmp_path: Path) -> None:
    found = opened(tmp_path)
    found.subscribed(1, "")
    found.acknowledged(2, place(100))
    found.begins(BEGIN)
    assert opened(tmp_path).resumption() == Resumption(BEGIN)


def test_a_subscription_is_written_at_once(tmp_path: Path) -> None:
    found = opened(tmp_path)
    found.begins(BEGIN)
    assert opened(tmp_path).resumption() is None  # nobody waits for what has happened since
    found.subscribed(1, "")
    assert opened(tmp_path).resumption() == Resumption(BEGIN)


def test_the_time_at_which_an_instance_begins_is_kept(tmp_path: Path) -> None:
    found = opened(tmp_path)
    found.begins(BEGIN, 7000)
    found.subscribed(1, "")
    assert opened(tmp_path).resumption() == Resumption(BEGIN, since_ms=7000)


def test_a_new_client_has_the_position_of_the_others(tmp_path: Path) -> None:
    found = opened(tmp_path)
    found.begins(BEGIN)
    found.subscribed(1, "")
    found.acknowledged(1, place(100))
    found.subscribed(2, "")
    assert opened(tmp_path).resumption() == Resumption(offset(131))
    found.acknowledged(1, place(200))
    assert found.resumption() == Resumption(offset(131))


def test_a_client_that_unsubscribes_and_returns_keeps_its_place(tmp_path: Path) -> None:
    found = opened(tmp_path)
    found.subscribed(1, "")
    found.acknowledged(1, place(100))
    found.unsubscribed(1)
    assert found.resumption() is None
    found.subscribed(1, "")
    assert opened(tmp_path).resumption() == Resumption(offset(131))


def test_a_client_without_a_position_continues_where_the_last_one_with_a_position_has_left(tmp_path: Path) -> None:
    found = opened(tmp_path)
    found.subscribed(1, "")
    found.subscribed(2, "b")
    found.acknowledged(1, place(100))
    found.unsubscribed(1)
    found.flush()
    assert opened(tmp_path).resumption() == Resumption(offset(131))
    assert found.filter == "b"


def test_the_filter_is_that_of_the_last_subscription(tmp_path: Path) -> None:
    found = opened(tmp_path)
    found.subscribed(1, "a")
    found.subscribed(2, "b")
    found.subscribed(1, "c")
    found.subscribed(2, "")
    assert found.filter == opened(tmp_path).filter == "c"


def test_what_cannot_be_written_is_written_later(tmp_path: Path) -> None:
    found = opened(tmp_path)
    (tmp_path / "d").write_text("")  # a file instead of the folder
    with pytest.raises(OSError, match="d"):
        found.subscribed(1, "")
    (tmp_path / "d").unlink()
    found.flush()
    assert (tmp_path / "d" / META).exists()


def test_after_canal_with_gtids_no_event_is_done_by_its_position(tmp_path: Path) -> None:
    """After a fail-over, the same position may be that of another event."""
    found = opened(tmp_path)
    found.acknowledged(1, place(100)._replace(gtid="u:1-9"))
    found.flush()
    (tmp_path / "d" / OWN).unlink()
    assert opened(tmp_path).resumption() == Resumption(SourceOffset("binlog.000001", 100, "u:1-9", ts_sec=7))


def test_after_canal_its_position_counts_and_its_event_is_done(tmp_path: Path) -> None:
    found = opened(tmp_path)
    found.acknowledged(1, place(100))
    found.flush()
    meta = tmp_path / "d" / META
    meta.write_text(meta.read_text().replace('"position":100', '"position":500'))
    done = CanalPosition("binlog.000001", 500, 1, 7000, "")
    assert opened(tmp_path).resumption() == Resumption(SourceOffset("binlog.000001", 500, ts_sec=7), done)


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"begin": 1}', '{"begin": null, "clients": {"x": 1}}'])
def test_without_rowtides_own_file_meta_dat_is_enough(tmp_path: Path, damage: str) -> None:
    found = opened(tmp_path)
    found.acknowledged(1, place(100))
    found.flush()
    (tmp_path / "d" / OWN).write_text(damage)
    resumption = opened(tmp_path).resumption()
    assert resumption is not None
    assert resumption.done is not None


def test_a_damaged_meta_dat_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / META).write_text('{"clientDatas": [{}]}')
    with pytest.raises(OffsetError, match=r"meta\.dat is damaged.*Restore it, or delete it"):
        opened(tmp_path)


def test_a_meta_dat_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "d" / META).mkdir(parents=True)
    with pytest.raises(OffsetError, match=r"meta\.dat cannot be read: Is a directory"):
        opened(tmp_path)


@pytest.mark.parametrize("writes", [1, 3])
def test_a_crash_between_both_files_is_not_taken_for_a_canal_in_between(
    writes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exactly-once delivery would resume at meta.dat instead of the offset in Kafka, and send messages again."""
    for _ in range(writes):  # by instances that were started again
        found = opened(tmp_path)
        found.acknowledged(1001, place(100))
        found.flush()
    found = opened(tmp_path)

    def replaced(path: Path, target: Path) -> None:
        if target.name == META:
            raise OSError("crash")
        path.rename(target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", replaced)
        found.acknowledged(1001, place(200))
        for _ in range(2):
            with pytest.raises(OSError, match="crash"):
                found.flush()
    again = opened(tmp_path)
    assert not again.moved(1001)
    assert again.resumption() == Resumption(offset(131))
    found.flush()
    assert opened(tmp_path).resumption() == Resumption(offset(231))


def test_a_position_that_does_not_exist_stands_for_the_whole_file(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Canal 1.1.7 computes them from events of MariaDB 11.4."""
    found = opened(tmp_path)
    found.acknowledged(1, place(100))
    found.flush()
    meta = tmp_path / "d" / META
    meta.write_text(meta.read_text().replace('"position":100', '"position":-54'))
    assert opened(tmp_path).resumption() == Resumption(SourceOffset("binlog.000001", 4, ts_sec=7))
    assert "Canal has stored position -54 of binlog.000001" in caplog.text


@pytest.mark.parametrize(("pos", "kept"), [(100, True), (50, True), (200, False)])
def test_the_schema_history_is_left_if_canal_has_read_on(tmp_path: Path, pos: int, kept: bool) -> None:
    """It lacks the statements that Canal has read. A client that was set back needs those that it has."""
    found = opened(tmp_path)
    found.acknowledged(1001, place(100))
    found.flush()
    history = tmp_path / "d" / HISTORY
    history.write_text("{}\n")
    meta = tmp_path / "d" / META
    meta.write_text(meta.read_text().replace('"position":100', f'"position":{pos}'))
    for _ in range(2):
        again = opened(tmp_path)
        assert history.exists() is kept
        again.flush()


def test_a_schema_history_that_began_at_a_position_of_canal_is_kept(tmp_path: Path) -> None:
    found = opened(tmp_path)
    found.acknowledged(1001, place(100))
    found.flush()
    (tmp_path / "d" / OWN).unlink()
    opened(tmp_path).flush()
    (tmp_path / "d" / HISTORY).write_text("{}\n")
    again = opened(tmp_path)
    assert (tmp_path / "d" / HISTORY).exists()
    assert again.moved(1001)
    again.acknowledged(1001, place(200))
    again.flush()
    assert opened(tmp_path).resumption() == Resumption(offset(231))
    assert (tmp_path / "d" / HISTORY).exists()
