"""``rowtide runway`` and ``rowtide mirror --below-runway``, on real servers."""

from __future__ import annotations

import json
import logging
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from rowtide.cli import main
from rowtide.cli.binlog import mirror, runway
from rowtide.cli.binlog.runway import NoPositionStored
from rowtide.connector.config import Configuration, Problem, from_properties
from rowtide.connector.delivery.file_offset_store import FileOffsetStore
from rowtide.connector.errors import ConnectorError
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.source.binlog_runway import Runway
from rowtide.connector.source.connection import DatabaseUnreachableError
from tests.support.configurations import PROPERTIES
from tests.support.connector_properties import address
from tests.support.processes.worker_process import eventually

if TYPE_CHECKING:
    from rowtide_stack import SqlServer

DAYS = 20 * 86_400


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["runway", *map(str, arguments)])


def configuration(folder: Path, server: dict[str, str]) -> Path:
    config = folder / "shop.properties"
    offsets = {"offset.storage.file.filename": str(folder / "offsets.dat")}
    properties = {"name": "shop", "topic.prefix": "shop", **offsets, **server}
    config.write_text("".join(f"{name}={text}\n" for name, text in properties.items()))
    return config


def test_there_is_no_position_yet(tmp_path: Path) -> None:
    server = {"database.hostname": "127.0.0.1", "database.user": "a", "database.password": "b"}
    result = run(configuration(tmp_path, server))
    assert result.exit_code == 1
    assert "no position is stored yet" in result.output


@pytest.mark.servers
@pytest.mark.parametrize("name", ["mysql", "mariadb"])
def test_the_runway_of_a_position(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    server: SqlServer = request.getfixturevalue(name)
    config = configuration(tmp_path, {"database.flavor": name, **address(server)})
    store = FileOffsetStore(tmp_path / "offsets.dat", "shop", "shop")
    before = server.query("SELECT @@GLOBAL.binlog_expire_logs_seconds")[0][0]
    with server.database() as database:
        database.execute(f"SET GLOBAL binlog_expire_logs_seconds = {DAYS}")
        try:
            file = server.query("SHOW BINARY LOGS")[-1][0]
            store.save(SourceOffset(file, 4))
            now = json.loads(run(config, "--json").output)
            assert (now["file"], now["hours"], now["retention_hours"]) == (file, 480, 480)
            assert (now["reason"], now["warning"]) == (f"binlog_expire_logs_seconds={DAYS}", None)
            database.execute("FLUSH BINARY LOGS")
            closed = run(config)
            assert closed.exit_code == 0, closed.output
            assert f"the server keeps {file} for 480.0 hours at least" in closed.output
            database.execute("SET GLOBAL binlog_expire_logs_seconds = 1")
            eventually(lambda: run(config).exit_code == 3, "half a second has passed")
            options = ["--to", str(tmp_path / "m"), "--below-runway", "1", "--once"]
            mirrored = CliRunner().invoke(main, ["mirror", str(config), *options])
            assert mirrored.exit_code == 0, mirrored.output
            names = {path.name for path in (tmp_path / "m").iterdir()}
            assert file in names, "it begins with the file of the stored position"
            assert not [one for (one, *_) in server.query("SHOW BINARY LOGS") if one < file and one in names]
        finally:
            database.execute(f"SET GLOBAL binlog_expire_logs_seconds = {before}")
        store.save(SourceOffset("never.000001", 4))
        gone = run(config)
        assert gone.exit_code == 3
        assert "or has done so" in gone.output


def test_a_mirror_waits_for_a_short_runway(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    offset, stopped = SourceOffset("b.7", 4), threading.Event()
    found: list[Runway | ConnectorError] = [
        NoPositionStored("no position is stored yet"),
        NoPositionStored("no position is stored yet"),
        Runway("b.7", 90_000, 864_000, "why"),
        Runway("b.7", 86_401, 864_000, "why"),
        Runway("b.7"),
        Runway("b.7", 86_399, 864_000, "why"),
    ]

    def runway_of(_configuration: Configuration) -> tuple[SourceOffset, Runway]:
        now = found.pop(0)
        if isinstance(now, ConnectorError):
            raise now
        return offset, now

    monkeypatch.setattr(mirror, "runway_of", runway_of)
    monkeypatch.setattr(mirror, "_LOOK_S", 0.0)
    config = from_properties(PROPERTIES)
    with caplog.at_level(logging.INFO, mirror.log.name):
        assert mirror._file_with_short_runway(config, 24, stopped) == "b.7"
    assert not found
    assert [message.partition(":")[0] for message in caplog.messages] == [
        "the mirror waits, and it is not known how long the server keeps its binlog",
        "the mirror begins below 24 hours",
        "the server keeps b.7 for 24.0 hours at least (why)",
    ]
    stopped.set()
    assert mirror._file_with_short_runway(config, 24, stopped) is None
    stopped.clear()
    found += [
        DatabaseUnreachableError(Problem("database.hostname", "away"), retriable=True),
        DatabaseUnreachableError(Problem("database.password", "denied")),
    ]
    with pytest.raises(DatabaseUnreachableError, match="denied"):
        mirror._file_with_short_runway(config, 24, stopped)


@pytest.mark.parametrize(
    ("seconds", "lines"),
    [
        (0.0, ["runway           the server may delete b.7 at any moment, or has done so (why)"]),
        (1e15, ["runway           the server keeps b.7 for 277,777,777,777.8 hours at least (why)"]),
        (None, ["runway           why"]),
    ],
)
def test_a_runway_that_has_no_end_in_sight(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float | None, lines: list[str]
) -> None:
    """By size, that of a server that writes little ends after the last year that is a date."""
    config = configuration(tmp_path, {"database.hostname": "127.0.0.1", "database.user": "a"})
    found = SourceOffset("b.7", 4), Runway("b.7", seconds, seconds, "why")
    monkeypatch.setattr(runway, "runway_of", lambda _configuration: found)
    result = run(config)
    assert result.output.splitlines() == ["stored position  b.7:4", *lines]
    assert result.exit_code == (3 if seconds == 0 else 0)
    assert (json.loads(run(config, "--json").output)["until"] is None) is (seconds != 0)


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """The command replaces the handlers of the process."""
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = [signal.getsignal(number) for number in numbers]
    yield
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)
