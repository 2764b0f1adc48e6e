"""``rowtide runway``, on real servers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from rowtide.cli import main
from rowtide.connector.delivery.file_offset_store import FileOffsetStore
from rowtide.connector.records.offset import SourceOffset
from tests.support.connector_properties import address

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
            due = run(config)
            assert due.exit_code == 3, due.output
        finally:
            database.execute(f"SET GLOBAL binlog_expire_logs_seconds = {before}")
        store.save(SourceOffset("never.000001", 4))
        gone = run(config)
        assert gone.exit_code == 3
        assert "or has done so" in gone.output
