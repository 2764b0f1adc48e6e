"""Incremental snapshots of tables with random keys on real servers: each row is read exactly once."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING

import pymysql
import pytest

from rowtide.connector.records.batch import Batch
from tests.support.incremental_stream import BesideStream
from tests.support.mysql.key_types import MARIADB_TYPES, TYPES

if TYPE_CHECKING:
    from rowtide_stack import Database

pytestmark = pytest.mark.servers

TEXTS = "'', 'a', 'A', 'ä', 'Ä', 'ae', 'ss', 'ß', 'z', 'Z', 'a b', 'a-b', 'ab', 'o', 'ö', 'Ö', 'oe', 'é', 'e', '0', '_'"
COLLATIONS = [
    "varchar(9) character set utf8mb4 collate utf8mb4_bin",
    "varchar(9) character set utf8mb4 collate utf8mb4_unicode_ci",
    "varchar(9) character set utf8mb4 collate utf8mb4_unicode_520_ci",
    "varchar(9) character set latin1 collate latin1_german2_ci",
    "varchar(9) character set latin1 collate latin1_german1_ci",
    "varchar(9) character set latin1 collate latin1_swedish_ci",
    "varchar(9) character set latin1 collate latin1_bin",
    "varchar(9) character set utf8mb3 collate utf8mb3_german2_ci",
    "char(6) character set utf8mb4 collate utf8mb4_bin",
    "char(6) character set latin1 collate latin1_german2_ci",
]
MYSQL_COLLATIONS = ["utf8mb4_0900_ai_ci", "utf8mb4_0900_as_cs", "utf8mb4_0900_bin", "utf8mb4_de_pb_0900_ai_ci"]
MARIADB_COLLATIONS = ["utf8mb4_uca1400_ai_ci", "utf8mb4_nopad_bin", "utf8mb4_uca1400_nopad_as_cs", "utf8mb4_swedish_ci"]
TABLES = 20


def values(rows: str) -> list[str]:
    """The values of a list of rows of one column."""
    return [row.strip()[1:].removesuffix(")") for row in rows.split("), ")]


def kinds(database: Database) -> dict[str, list[str]]:
    """The types of columns with some of their values."""
    mariadb = database.server.name == "mariadb"
    found = {kind: values(rows) for kind, rows in (TYPES | (MARIADB_TYPES if mariadb else {})).items()}
    own = MARIADB_COLLATIONS if mariadb else MYSQL_COLLATIONS
    texts = [*COLLATIONS, *(f"varchar(9) character set utf8mb4 collate {name}" for name in own)]
    return found | dict.fromkeys(texts, TEXTS.split(", "))


def make(database: Database, chance: random.Random, name: str) -> str | None:
    """Make a table of a random key and random rows; returns the surrogate key if it has no other."""
    known = kinds(database)
    chosen = [chance.choice(list(known)) for _ in range(chance.choice((1, 1, 2, 3)))]
    surrogate = len(chosen) == 1 and chance.random() < 0.5
    null = "NULL" if surrogate else "NOT NULL"
    columns = ", ".join(f"k{place} {kind} {null}" for place, kind in enumerate(chosen))
    down = [chance.choice(("", "", " DESC")) for _ in chosen]
    key = ", ".join(f"k{place}{way}" for place, way in enumerate(down))
    index = chance.choice(("", ", KEY (k0)")) if surrogate else f", PRIMARY KEY ({key})"
    with database.server.connect(database.name) as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION sql_mode = ''")
        cursor.execute(f"CREATE TABLE {name} ({columns}, n INT NOT NULL{index})")
        for number in range(chance.choice((0, 1, 7, 25))):
            row = [chance.choice([*known[kind], *(("NULL", "NULL") if surrogate else ())]) for kind in chosen]
            with suppress(pymysql.err.IntegrityError):  # the key is there already
                cursor.execute(f"INSERT INTO {name} VALUES ({', '.join(row)}, {number})")
        connection.commit()
    return "k0" if surrogate else None


@pytest.mark.timeout(3600)
def test_each_row_of_random_tables_is_read_once(database: Database) -> None:
    for seed in range(int(os.environ.get("ROWTIDE_CAMPAIGN", "1"))):
        check(database, seed)


def check(database: Database, seed: int) -> None:
    chance = random.Random(seed)
    surrogates = {f"t{seed}_{number}": make(database, chance, f"t{seed}_{number}") for number in range(TABLES)}
    size, threads = chance.choice((1, 2, 3)), chance.choice((1, 2, 4))
    beside = BesideStream(database, chunk_size=size, threads=threads, notification_topic="notices")
    try:
        for name, surrogate in surrogates.items():
            beside.execute(rf"{database.name}\.{name}", **({"surrogate-key": surrogate} if surrogate else {}))
        beside.run(lambda: not beside.snapshots.active)
    finally:
        beside.close()
    read: dict[str, Counter[int]] = {name: Counter() for name in surrogates}
    for output in beside.outputs:
        if isinstance(output, Batch) and (table := output.topic.rpartition(".")[2]) in read:
            read[table].update(json.loads(value or b"")["after"]["n"] for _key, value, _headers in output.messages)
    for name in surrogates:
        assert sorted(read[name].elements()) == sorted(row[0] for row in database.query(f"SELECT n FROM {name}")), (
            seed, database.query(f"SHOW CREATE TABLE {name}")[0][1],
        )  # fmt: skip
    statuses = {one["additional_data"].get("status") for one in beside.notifications()}
    assert statuses == {None, "SUCCEEDED", "EMPTY"}
