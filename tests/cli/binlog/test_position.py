"""``rowtide position``, in folders of binlog files and on real servers."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result

from rowtide.cli import main
from rowtide.connector.delivery.file_offset_store import FileOffsetStore
from rowtide.connector.records.offset import SourceOffset
from tests.support.connector_properties import address
from tests.support.mysql.dumped_files import golden_binlogs

if TYPE_CHECKING:
    from rowtide_stack import SqlServer

CASE = "restart-between-stages"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of recorded binlog files."""
    found = tmp_path / "files"
    found.mkdir()
    for name, data in golden_binlogs(CASE).items():
        (found / name).write_bytes(data)
    return found


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["position", *map(str, arguments)])


def found(*arguments: object) -> dict[str, Any]:
    """The JSON of a call that finds a position."""
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.output)  # type: ignore[no-any-return]


def test_the_end_of_a_folder_and_a_transaction_in_it(folder: Path) -> None:
    end = found("--from", folder)
    assert (end["file"], end["at_end"], end["transaction"]) == ("binlog.000002", True, None)
    uuid, _, numbers = end["gtids"].partition(":")
    last = int(numbers.split("-")[-1])
    one = found("--from", folder, "--gtid", f"{uuid}:{last}")
    assert one["transaction"]["gtid"] == f"{uuid}:{last}"
    assert one["offset"] == {"file": one["file"], "pos": one["pos"], "gtids": one["gtids"]}
    assert found("--from", folder, "--gtids", one["gtids"]) == one
    committed = one["transaction"]["committed_at"]
    assert found("--from", folder, "--at", committed) == one
    in_zone = found("--from", folder, "--at", committed.removesuffix("Z"), "--time-zone", "UTC")
    assert in_zone == one
    text = run("--from", folder, "--gtid", f"{uuid}:{last}").output
    assert f"position         {one['file']}:{one['pos']}\n" in text
    assert f"transaction      {uuid}:{last}, committed at {committed}\n" in text


def test_what_is_not_there_has_an_exit_code_of_its_own(folder: Path) -> None:
    gtid = "3e11fa47-71ca-11e1-9e33-c80aa9429562:5"
    result = run("--from", folder, "--gtid", gtid)
    assert result.exit_code == 3
    assert result.output == f"Error: no transaction of the binlog has the GTID {gtid}\n"
    result = run("--from", folder, "--gtid", gtid, "--json")
    assert result.exit_code == 3
    assert json.loads(result.output)["found"] is False


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--at", "yesterday"], "'yesterday' is not a time such as 2026-11-22T10:00:00Z"),
        (["--at", "2026-11-22T10:00:00"], "has no time zone: append Z or an offset such as +01:00, or --time-zone"),
        (["--at", "2026-11-22T10:00:00", "--time-zone", "Mars/Base"], "there is no time zone 'Mars/Base'"),
        (["--at", "2026-11-22T10:00:00Z", "--gtid", "0-1-1"], "are mutually exclusive"),
        (["--gtid", "zz"], "not a GTID set"),
        (["--gtids", "zz"], "not a GTID set"),
    ],
)
def test_wrong_options(folder: Path, arguments: list[str], message: str) -> None:
    result = run("--from", folder, *arguments)
    assert result.exit_code == 2
    assert message in result.output


def test_a_binlog_is_needed(tmp_path: Path) -> None:
    assert "a binlog is needed: CONFIG... or --from DIR" in run().output
    result = run("--from", tmp_path)
    assert result.exit_code == 1
    assert "no binlog files" in result.output


@pytest.fixture(params=["mysql", "mariadb"])
def server(request: pytest.FixtureRequest) -> SqlServer:
    """Each of the shared servers."""
    return request.getfixturevalue(request.param)  # type: ignore[no-any-return]


@pytest.mark.servers
def test_positions_of_a_server(server: SqlServer, tmp_path: Path) -> None:
    offsets = tmp_path / "offsets.dat"
    config = tmp_path / "shop.properties"
    properties = {
        "name": "shop",
        "topic.prefix": "shop",
        "database.flavor": server.name,
        "offset.storage.file.filename": str(offsets),
        **address(server),
    }
    config.write_text("".join(f"{name}={text}\n" for name, text in properties.items()))
    with server.database() as database:
        database.execute("CREATE TABLE t (id INT PRIMARY KEY)", "FLUSH BINARY LOGS")
        before = found(config)
        assert before["at_end"]
        assert before["stored_problem"] == "no position is stored yet"
        time.sleep(1.1)  # MariaDB's times are whole seconds
        moment = server.query("SELECT UNIX_TIMESTAMP()")[0][0]
        database.execute("INSERT INTO t VALUES (1)", "FLUSH BINARY LOGS", "INSERT INTO t VALUES (2)")
        utc = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(moment))
        first = found(config, "--at", utc)
        assert first["gtids"] == before["gtids"]
        assert first["transaction"]["committed_at_us"] >= moment * 1_000_000
        assert found(config, "--gtid", first["transaction"]["gtid"]) == first
        assert found(config, "--gtids", first["gtids"]) == first
        end = found(config)
        assert (end["file"], end["at_end"]) == (server.query("SHOW BINARY LOGS")[-1][0], True)
        FileOffsetStore(offsets, "shop", "shop").save(SourceOffset(end["file"], end["pos"], end["gtids"]))
        again = found(config, "--gtid", first["transaction"]["gtid"])
        assert again["misses"] is None
        assert again["repeats"].startswith(first["transaction"]["gtid"].rpartition("-")[0] or "-")
        assert "a start there    repeats" in run(config, "--gtid", first["transaction"]["gtid"]).output
        assert "repeats and misses nothing" in run(config).output
        database.execute("INSERT INTO t VALUES (3)")
        assert found(config)["misses"] is not None
        assert found(config, "--without-stored")["stored"] is None
