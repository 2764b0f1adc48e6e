"""The examples of the page Library, each run as a program with a server."""

from __future__ import annotations

import http.server
import json
import os
import re
import shutil
import signal
import sqlite3
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from rowtide_stack import MySQL

from tests.support.pages import blocks
from tests.support.processes.terminal import finished, terminal
from tests.support.processes.worker_process import eventually
from tests.support.source_tree import ROOT

pytestmark = pytest.mark.servers

EXAMPLES = ROOT / "examples"
SNAPSHOT_ONLY = {"ROWTIDE_SNAPSHOT_MODE": "initial_only"}
SOON_STORED = {"ROWTIDE_HEARTBEAT_INTERVAL_MS": "500"}
"""Without heartbeats, a position without rows, such as the one after a commit, is stored after a minute."""


@pytest.fixture(scope="module")
def server() -> Iterator[MySQL]:
    """Its own MySQL, for the account."""
    with MySQL() as mysql:
        yield mysql


@pytest.fixture
def mysql(server: MySQL) -> MySQL:
    """The tables and the account of the page Start, as they are there at the beginning."""
    (script,) = re.findall(r"<<'END'\n(.*?)^END$", blocks("start", "bash")[0], re.MULTILINE | re.DOTALL)
    execute(server, "DROP DATABASE IF EXISTS shop", "DROP USER IF EXISTS rowtide")
    execute(server, *(statement for statement in script.split(";") if statement.strip()))
    return server


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the examples."""
    return Path(shutil.copytree(EXAMPLES, tmp_path / "examples"))


def execute(server: MySQL, *statements: str) -> None:
    with server.connect() as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        connection.commit()


def command(name: str) -> list[str]:
    return [sys.executable, f"{name}.py"]


def environment(server: MySQL, **more: str) -> dict[str, str]:
    return {**os.environ, "MYSQL_PORT": str(server.port), "PYTHONUNBUFFERED": "1", **SOON_STORED, **more}


def until_all_is_acknowledged(server: MySQL, folder: Path) -> None:
    """Wait until the stored position is after everything that the server has executed."""
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT @@gtid_executed")
        ((executed,),) = cursor.fetchall()
    offsets = folder / "library.offsets"
    eventually(lambda: offsets.exists() and str(executed).encode() in offsets.read_bytes(), f"a position at {executed}")


def test_five_lines_print_the_snapshot_and_then_every_change(mysql: MySQL, folder: Path) -> None:
    with terminal(command("five_lines"), folder, environment(mysql)) as program:
        assert program.stdout is not None
        lines = [program.stdout.readline() for _ in range(2)]
        execute(mysql, "UPDATE shop.customers SET spent = spent + 7 WHERE name = 'Anna'")
        lines.append(program.stdout.readline())
    old, new = (f"{{'id': 1, 'name': 'Anna', 'spent': Decimal('{spent}')}}" for spent in ("12.50", "19.50"))
    assert lines[0] == f"r customers {{'id': 1}} None {old}\n"
    assert lines[2] == f"u customers {{'id': 1}} {old} {new}\n"


def test_the_program_in_the_readme_works_by_copy_and_paste(mysql: MySQL, tmp_path: Path) -> None:
    """Only the port differs, which the environment sets: the README assumes a server at its default port."""
    (tmp_path / "library.properties").write_text(blocks("README", "properties")[1])
    (tmp_path / "library.py").write_text(blocks("README", "python")[0])
    port = {"ROWTIDE_DATABASE_PORT": str(mysql.port), "SHOP_PASSWORD": "a password"}
    with terminal(command("library"), tmp_path, environment(mysql, **port)) as program:
        assert program.stdout is not None
        lines = [program.stdout.readline() for _ in range(2)]
    assert [line.partition(" {")[0] for line in lines] == ["r customers", "r customers"]


def test_rows_are_objects_of_classes_that_rowtide_writes(mysql: MySQL, folder: Path) -> None:
    write = 'import rowtide; rowtide.models("library.properties", "shop_tables.py")'
    finished([sys.executable, "-c", write], folder, environment(mysql))
    said = finished(command("typed_rows"), folder, environment(mysql, **SNAPSHOT_ONLY))
    assert said == "Anna has spent 12.50\nZoë has spent 0.00\n"


def test_batches_become_frames_of_pandas(mysql: MySQL, folder: Path) -> None:
    pytest.importorskip("pandas", reason="pandas is not installed: run docker/setup")
    execute(mysql, "CREATE TABLE shop.other (id INT PRIMARY KEY)", "INSERT INTO shop.other VALUES (1)")
    said = finished(command("pandas_frames"), folder, environment(mysql, **SNAPSHOT_ONLY))
    assert said == "shop.customers 2 changes, spent: {'r': Decimal('12.50')}\n"


def test_the_notebook_runs_from_its_first_cell_to_its_last(mysql: MySQL, folder: Path) -> None:
    pytest.importorskip("pandas", reason="pandas is not installed: run docker/setup")
    cells = json.loads((folder / "changes.ipynb").read_text())["cells"]
    program = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    said = finished([sys.executable, "-c", program], folder, environment(mysql)).splitlines()
    assert [line.split() for line in said[:3]] == [
        ["id", "name", "spent"],
        ["1", "Anna", "12.50"],
        ["2", "Zoë", "0.00"],
    ]
    assert said[3] == "Customers(id=1, name='Anna', spent=Decimal('12.50'))"


def test_a_table_of_duckdb_follows(mysql: MySQL, folder: Path) -> None:
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed: run docker/setup")
    with terminal(command("duckdb_table"), folder, environment(mysql)):
        until_all_is_acknowledged(mysql, folder)
        execute(
            mysql,
            "DELETE FROM shop.customers WHERE name = 'Zoë'",
            "UPDATE shop.customers SET id = 7 WHERE name = 'Anna'",
            "INSERT INTO shop.customers (id, name) VALUES (8, 'Bo')",
        )
        until_all_is_acknowledged(mysql, folder)
    with duckdb.connect(str(folder / "shop.duckdb")) as database:
        rows = database.execute("SELECT id, name, CAST(spent AS TEXT) FROM customers ORDER BY id").fetchall()
    assert rows == [(7, "Anna", "12.50"), (8, "Bo", "0.00")]


def test_records_are_posted_to_a_webhook(mysql: MySQL, folder: Path) -> None:
    posts: list[tuple[str | None, bytes]] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            posts.append((self.headers["Authorization"], body))
            self.send_response(503 if len(posts) == 1 else 204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Be silent."""

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as hook:
        threading.Thread(target=hook.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{hook.server_port}/changes"
        finished(command("webhook"), folder, environment(mysql, WEBHOOK=url, **SNAPSHOT_ONLY))
        hook.shutdown()
    assert {authorization for authorization, _ in posts} == {"Bearer secret"}
    assert posts[0] == posts[1], "what was refused for the moment is sent again"
    records = [json.loads(line) for _, body in posts[1:] for line in body.splitlines()]
    rows = [record["value"]["payload"]["after"]["name"] for record in records if record["topic"].endswith("customers")]
    assert rows == ["Anna", "Zoë"]


def test_an_audit_has_every_change_once_although_the_program_is_killed(mysql: MySQL, folder: Path) -> None:
    audit = folder / "audit.sqlite"

    def rows() -> list[tuple[str, str]]:
        if not audit.exists():
            return []
        with sqlite3.connect(audit, timeout=60) as database:
            records = database.execute("SELECT op, record FROM audit ORDER BY file, pos, row").fetchall()
        database.close()
        return [(op, json.loads(record)["payload"]["after"]["spent"]) for op, record in records]

    for killed in range(4):
        stop = signal.SIGINT if killed == 3 else signal.SIGKILL
        with terminal(command("audit"), folder, environment(mysql), stop):
            if not killed:
                until_all_is_acknowledged(mysql, folder)
            before = len(rows())
            execute(mysql, *("UPDATE shop.customers SET spent = spent + 1 WHERE id = 1" for _ in range(20)))
            eventually(lambda: len(rows()) > before, "the audit grows")  # noqa: B023 - it is called in this round
            if killed == 3:
                until_all_is_acknowledged(mysql, folder)
    found = rows()
    assert len(found) == 80
    assert len(set(found)) == 80, "a change comes twice"


def test_structures_are_printed_where_they_begin(mysql: MySQL, folder: Path) -> None:
    with terminal(command("structures"), folder, environment(mysql)) as program:
        assert program.stdout is not None
        lines = [program.stdout.readline()]
        execute(
            mysql,
            "UPDATE shop.customers SET spent = 1 WHERE id = 1",
            "ALTER TABLE shop.customers ADD COLUMN city VARCHAR(50)",
            "UPDATE shop.customers SET spent = 2 WHERE id = 1",
        )
        lines.append(program.stdout.readline())
    columns = [line.partition(": ")[2] for line in lines]
    assert columns[0] == "id int, name varchar(100), spent decimal(10,2)\n"
    assert columns[1] == "id int, name varchar(100), spent decimal(10,2), city varchar(50)\n"


def test_the_structure_at_a_position_is_printed(mysql: MySQL, folder: Path) -> None:
    with terminal(command("structures"), folder, environment(mysql)) as program:
        assert program.stdout is not None
        position = program.stdout.readline().partition(" at ")[2].partition(": ")[0]
        execute(
            mysql,
            "ALTER TABLE shop.customers ADD COLUMN city VARCHAR(50) NOT NULL",
            "UPDATE shop.customers SET spent = 2 WHERE id = 1",
        )
        program.stdout.readline()
    before = finished([*command("table_at"), position], folder, environment(mysql)).splitlines()
    after = finished([*command("table_at"), "end"], folder, environment(mysql)).splitlines()
    assert [line.split()[0] for line in before] == ["id", "name", "spent"]
    assert after == [*before, "city varchar(50) NOT NULL"]
