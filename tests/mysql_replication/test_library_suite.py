"""mysql-replication's own test suite, from its source distribution, with rowtide's reader in place of its own."""

from __future__ import annotations

import importlib.metadata
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

if TYPE_CHECKING:
    from rowtide_stack import SqlServer

pytestmark = [pytest.mark.servers, pytest.mark.nightly]

FAILS = {
    "test_connection_stream_lost_event": "uses _stream_connection",
    "test_event_validation": "uses _ctl_connection",
    "test_fetch_column_names_from_schema": "expects that the names of columns are missing",
    "test_end_log_pos": "has positions of another version of the server; fails with mysql-replication, too",
}
FAILS_ON = {
    "mysql": {"test_format_description_event": "has lengths of another version; fails with mysql-replication, too"},
    "mariadb": {
        "test_json_update": "expects a document: MariaDB's JSON is a text. It passes where names are missing",
        "test_ignore_decode_errors": "expects UnicodeDecodeError, where rowtide has U+FFFD",
        "test_binlog_checkpoint_event": "needs an encrypted binlog; fails with mysql-replication, too",
        "test_start_encryption_event": "needs an encrypted binlog; fails with mysql-replication, too",
    },
}
"""The tests that fail, and why: see docs/mysql-replication.md."""


def source_distribution(folder: Path) -> Path:
    """The source distribution of the installed version."""
    name = f"mysql-replication=={importlib.metadata.version('mysql-replication')}"
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary", ":all:", "--no-build-isolation"]
    subprocess.run([*command, "--dest", str(folder), name], check=True)
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as files:
        files.extractall(folder, filter="data")
    (found,) = folder.glob("*/pymysqlreplication/tests")
    return found


@pytest.mark.parametrize("kind", ["mysql", "mariadb"])
def test_the_suite_passes_but_for_the_listed_tests(kind: str, tmp_path: Path) -> None:
    from rowtide_stack import MariaDB, MySQL

    suite = tmp_path / "library_suite"
    suite.mkdir()
    for path in source_distribution(tmp_path).glob("*.py"):
        text = path.read_text().replace("pymysqlreplication.tests", "library_suite")
        ours = "from rowtide.mysql_replication import BinLogStreamReader"
        (suite / path.name).write_text(text.replace("from pymysqlreplication import BinLogStreamReader", ours))
    with (MySQL if kind == "mysql" else MariaDB)() as server:
        failed, passed = run(suite, server)
    assert failed == FAILS.keys() | FAILS_ON[kind].keys()
    assert passed > 100


def run(suite: Path, server: SqlServer) -> tuple[set[str], int]:
    """Run the suite; the names of the tests that fail, and how many pass."""
    address = {"host": server.host, "port": server.port, "user": server.user, "passwd": server.password}
    database = {**address, "use_unicode": True, "db": "pymysqlreplication_test"}
    (suite / "config.json").write_text(json.dumps({"server": database}))
    report = suite / "report.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, "--rootdir", str(suite.parent), str(suite)]
    options = ["--db", "server", "--timeout", "60", "--junitxml", str(report)]
    subprocess.run(
        [*command, *options], cwd=suite.parent, env={**os.environ, "PYTHONPATH": str(suite.parent)}, check=False
    )
    cases = ET.parse(report).findall(".//testcase")
    failed = {
        case.attrib["name"] for case in cases if case.find("failure") is not None or case.find("error") is not None
    }
    return failed, sum(not len(case) for case in cases)
