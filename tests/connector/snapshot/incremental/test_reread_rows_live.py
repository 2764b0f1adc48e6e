"""``rowtide-reread-rows`` on real servers: rows come again, and only rows that do not exist are deleted."""

from __future__ import annotations

import json
import os
import random
from typing import TYPE_CHECKING

import pytest

from rowtide.connector.errors import SignalError
from rowtide.connector.records.batch import Batch
from tests.connector.snapshot.incremental.test_incremental_live import check_state, fill, loads, records, run_for
from tests.support.incremental_stream import BesideStream

if TYPE_CHECKING:
    from rowtide_stack import Database

pytestmark = pytest.mark.servers

KEYS = {
    "plain": (["id"], lambda number: [str(number)]),
    "words": (["b", "a"], lambda number: [str(number), "aBcD"[number % 4]]),
    "large": (["id"], lambda number: [str(2**64 - 1 - number)]),
    "bytes": (["id"], lambda number: [f"{number:04x}"]),
}


def row(table: str, key: list[str]) -> str:
    """The condition for one row by its primary key, which locks no other row."""
    literals = [f"x'{text}'" if table == "bytes" else f"'{text}'" for text in key]
    return " AND ".join(f"{name} = {text}" for name, text in zip(KEYS[table][0], literals, strict=True))


def campaign(database: Database, seed: int, rounds: int) -> None:
    """Lose rows and changes without the binlog, and read them again, while others change them."""
    chance = random.Random(seed)
    fill(database)
    beside = BesideStream(database, threads=1 + seed % 3, lag_s=0.1 * (seed % 2))
    try:
        beside.execute(rf"{database.name}\.(plain|words|large|bytes)")
        with loads(database, seed, ddl=seed % 2 > 0):
            for _ in range(rounds):
                lost = {table: chance.sample(range(130), 40) for table in KEYS}
                for table, numbers in lost.items():
                    columns, key_of = KEYS[table]
                    database.execute(
                        "SET SESSION sql_log_bin = 0",
                        *(f"DELETE FROM {table} WHERE {row(table, key_of(number))}" for number in numbers[:5]),
                        "SET SESSION sql_log_bin = 1",
                    )
                    beside.reread(f"{database.name}.{table}", columns, [key_of(number) for number in numbers])
                if seed % 2:
                    run_for(beside, chance.random() / 2)
                    beside.crash(len(beside.outputs))
                beside.run(lambda: not beside.snapshots.active)
        for table, (columns, key_of) in KEYS.items():  # a row that came between the loss and the read was lost for good
            beside.reread(f"{database.name}.{table}", columns, [key_of(number) for number in range(130)])
        beside.run_to_end()
        check_state(database, beside.outputs)
        assert check_deletions(beside) > rounds
    finally:
        beside.close()


def check_deletions(beside: BesideStream) -> int:
    """No row is deleted that exists at that place of the stream; returns the number of deletions."""
    gone, deletions = set[tuple[str, str]](), 0
    for topic, key, value in records(beside.outputs):
        if value is None:
            continue
        if value["op"] == "d" and value["source"]["snapshot"] == "incremental":
            gone.add((topic, key))
            deletions += 1
        else:
            assert value["op"] in "cr" or (topic, key) not in gone, (topic, key, value)
            gone.discard((topic, key))
    return deletions


def test_rows_are_read_again_and_deleted_while_they_change(database: Database) -> None:
    campaign(database, 3, 4)


@pytest.mark.nightly
@pytest.mark.timeout(7200)
def test_campaign(database: Database) -> None:
    for seed in range(int(os.environ.get("ROWTIDE_CAMPAIGN", "30"))):
        with database.server.database() as one:
            campaign(one, seed, 10)


TYPES = """
CREATE TABLE types (
    id VARCHAR(20) CHARACTER SET latin1 COLLATE latin1_general_ci, at TIMESTAMP(3), bin BINARY(4), dec1 DECIMAL(20,5),
    big BIGINT UNSIGNED, tiny TINYINT, yes BOOLEAN, bits BIT(13), e ENUM('a','b,c'), s SET('x','y z'), t TIME(6),
    dt DATETIME(2), da DATE, y YEAR, blb VARBINARY(9), c CHAR(5) CHARACTER SET utf16,
    n INT NOT NULL, txt TEXT NOT NULL, j JSON, d DOUBLE NOT NULL, moment TIMESTAMP NOT NULL DEFAULT '2024-01-01',
    PRIMARY KEY (id, at, bin, dec1, big, tiny, yes, bits, e, s, t, dt, da, y, blb, c)
)"""
NAMES = ["id", "at", "bin", "dec1", "big", "tiny", "yes", "bits", "e", "s", "t", "dt", "da", "y", "blb", "c"]
ROW = r"""INSERT INTO types VALUES ('é', '2024-01-02 03:04:05.678', x'01020000', -123.5, 9223372036854775807, -1, 1,
    b'1010', 'b,c', 'x,y z', '-838:59:58.999999', '9999-12-31 23:59:59.99', '1000-01-01', 1901, x'00ff', 'ab', 1, 'txt',
    '[]', 1.5, '2024-01-01')"""
TEXTS = [
    "é", "2024-01-02T03:04:05.678000+00:00", "0102", "-123.5", "9223372036854775807", "-1", "1", "10", "b,c", "x,y z",
    "-3020398999999", "9999-12-31T23:59:59.990000", "1000-01-01", "1901", "00ff", "ab",
]  # fmt: skip


@pytest.mark.parametrize("values", ["exact", "debezium"])
def test_a_record_of_deletion_has_the_bytes_of_the_key(values: str, database: Database) -> None:
    database.execute("SET SESSION sql_mode = '', time_zone = '+00:00'", TYPES, ROW)
    beside = BesideStream(database, {"rowtide.values": values})
    try:
        beside.reread(f"{database.name}.types", NAMES, [TEXTS])
        beside.run(lambda: not beside.snapshots.active)
        database.execute("SET SESSION sql_log_bin = 0", "DELETE FROM types", "SET SESSION sql_log_bin = 1")
        beside.reread(f"{database.name}.types", NAMES, [TEXTS])
        beside.run(lambda: not beside.snapshots.active)
    finally:
        beside.close()
    (read, deleted, tombstone) = [
        one for output in beside.outputs if isinstance(output, Batch) and output.topic.endswith(".types")
        for one in output.messages
    ]  # fmt: skip
    assert read[0] == deleted[0] == tombstone[0]
    assert tombstone[1] is None
    found, before = json.loads(deleted[1] or b""), json.loads(read[1] or b"")["after"]
    assert (found["op"], found["after"], found["source"]["snapshot"]) == ("d", None, "incremental")
    assert {name: found["before"][name] for name in NAMES} == {name: before[name] for name in NAMES}
    assert [name for name in ("n", "txt", "d", "moment") if found["before"][name] is None] == [], "NOT NULL"


def test_python_gets_deletions_as_changes(mysql_db: Database) -> None:
    mysql_db.execute(
        "CREATE TABLE t (id INT PRIMARY KEY, n INT NOT NULL, txt TEXT)", "INSERT INTO t VALUES (1, 5, 'a')"
    )
    beside = BesideStream(mysql_db, changes=True)
    try:
        beside.reread(f"{mysql_db.name}.t", ["id"], [["1"], ["2"]])
        beside.run(lambda: not beside.snapshots.active)
    finally:
        beside.close()
    read, deleted = [one for output in beside.outputs if isinstance(output, Batch) for one in output.changes]
    assert (read.op, dict(read.after or {}), read.before) == ("r", {"id": 1, "n": 5, "txt": "a"}, None)
    assert (deleted.op, dict(deleted.key or {}), deleted.after) == ("d", {"id": 2}, None)
    assert deleted.before is not None
    assert deleted.before["id"] == 2
    assert '"op":"d"' in deleted.to_debezium()


def test_keys_that_cannot_name_rows_are_refused(mysql_db: Database) -> None:
    mysql_db.execute(
        "CREATE TABLE t (id INT, f FLOAT, at DATETIME, PRIMARY KEY (id, at))", "CREATE TABLE keyless (id INT)",
        "CREATE TABLE floats (f FLOAT PRIMARY KEY)",
    )  # fmt: skip
    beside = BesideStream(mysql_db)
    name = mysql_db.name
    try:
        for table, columns, keys, reason in (
            ("t", ["id"], [["1"]], "each key must have a value of id, at"),
            ("t", ["id", "at"], [["1 OR 1", "2024-01-01T00:00:00"]], "'1 OR 1' is not a value of id"),
            ("t", ["id", "at"], [["1", "2024-01-01"]], "is not a value of at|is not the form of a key"),
            ("t", ["id", "at"], [["01", "2024-01-01T00:00:00"]], "is not the form of a key here: write"),
            ("keyless", ["id"], [["1"]], "no primary key"),
            ("floats", ["f"], [["1"]], "cannot be looked up"),
            ("absent", ["f"], [["1"]], "is not captured"),
        ):
            with pytest.raises(SignalError, match=reason):
                beside.reread(f"{name}.{table}", columns, keys)
        assert not beside.snapshots.active
    finally:
        beside.close()


AMBIGUOUS = {
    "DATE": ("'0000-00-00'", "1970-01-01", []),
    "DATETIME": ("'0000-00-00'", "1970-01-01T00:00:00", []),
    "TIMESTAMP": ("'0000-00-00'", "1970-01-01T00:00:00+00:00", []),
    "DATETIME(6)": ("'0001-02-03 04:05:06'", "2001-02-03T04:05:06", ["r"]),
    "BIGINT UNSIGNED": ("18446744073709551615", "-1", ["r"]),
    "ENUM('x,y')": ("'x,y'", r"x\,y", []),
}
"""What a key with Debezium's values may hold, the key that its records have, and what is sent if it is read again."""


@pytest.mark.parametrize("kind", AMBIGUOUS)
def test_a_row_that_has_this_key_in_records_only_is_never_deleted(kind: str, mysql_db: Database) -> None:
    """The server does not find it by the value that its records have."""
    stored, text, sent = AMBIGUOUS[kind]
    created = f"CREATE TABLE t (k {kind} NOT NULL PRIMARY KEY)"
    mysql_db.execute("SET SESSION sql_mode = ''", created, f"INSERT INTO t VALUES ({stored})")
    beside = BesideStream(mysql_db)
    try:
        beside.reread(f"{mysql_db.name}.t", ["k"], [[text]])
        beside.run(lambda: not beside.snapshots.active)
    finally:
        beside.close()
    assert [value["op"] for _topic, _key, value in records(beside.outputs) if value is not None] == sent
