"""Random DDL of rarer kinds: valid foreign keys, periods, sequences, IF EXISTS, nested statements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.support.ddl.random_words import TABLES, Words

Table = tuple[str, Mapping[str, Any]]
Makers = Sequence[tuple[int, Callable[[], str]]]


class RareWords(Words):
    """Generates rare statements and rare actions of ALTER TABLE."""

    def rare(self) -> str:
        """A rare statement."""
        found = self.table()
        if found is None:
            return f"DROP TABLE IF EXISTS {self.one(TABLES)}, {self.one(TABLES)}"
        common: Makers = (
            (4, lambda: self.child(found)),
            (2, lambda: self.swap(found)),
            (2, lambda: f"CREATE TABLE {self.new_table()} LIKE {found[0]}"),
            (2, lambda: self.one_in_another(found)),
            (1, lambda: f"DROP TABLE {found[0]}, {self.one(TABLES)}"),
            (1, lambda: f"ALTER TABLE {found[0]} PARTITION BY KEY () PARTITIONS 2"),
            (1, lambda: f"ALTER TABLE {found[0]} REMOVE PARTITIONING"),
            (4, lambda: self.temporary(found)),
        )
        return self.choose((*common, *(self._rare_mariadb(found) if self.mariadb else self._rare_mysql(found))))

    def choose(self, makers: Makers) -> str:
        """What a randomly chosen maker returns."""
        return self.rng.choices([maker for _, maker in makers], [weight for weight, _ in makers])[0]()

    def _rare_mariadb(self, found: Table) -> Makers:
        part = self.column(found[1])
        return (
            (3, lambda: f"CREATE OR REPLACE UNIQUE INDEX {self.one(('i1', 'i2'))} ON {found[0]} ({part})"),
            (2, lambda: f"CREATE UNIQUE INDEX IF NOT EXISTS i1 ON {found[0]} ({part})"),
            (1, lambda: f"DROP INDEX IF EXISTS {self.one(('i1', 'i2'))} ON {found[0]}"),
            (4, self.with_period),
            (2, self.versioned),
            (1, lambda: f"CREATE OR REPLACE SEQUENCE s1{self.maybe(self.one(('AS INT UNSIGNED', 'AS SMALLINT')))}"),
            (1, lambda: f"ALTER SEQUENCE s1 {self.one(('AS TINYINT', 'RESTART 7', 'AS BIGINT'))}"),
            (1, lambda: f"CREATE OR REPLACE TABLE {self.new_table()} LIKE {found[0]}"),
            (1, lambda: f"SET binlog_alter_two_phase = {self.rng.randint(0, 1)}"),
        )

    def _rare_mysql(self, found: Table) -> Makers:
        keys = sorted(found[1]["unique_keys"]) or ["k1"]
        return (
            (1, lambda: f"ALTER TABLE {found[0]} ALTER INDEX {self.name(self.one(keys))} INVISIBLE"),
            (1, lambda: f"ALTER TABLE {found[0]} ALTER CHECK ck NOT ENFORCED"),
            (2, lambda: f"ALTER TABLE {found[0]} ADD {self.new_name()} {self.definition()}, ALGORITHM=INSTANT"),
        )

    def child(self, parent: Table) -> str:
        """A table with a foreign key to the primary key of another table."""
        known = {column["name"]: column for column in parent[1]["columns"]}
        key = parent[1]["primary_key"][:1] or [self.one(list(known))]
        data_type = known[key[0]]["column_type"] if key[0] in known else "INT"
        column, name = self.new_name(), self.name(key[0])
        elements = [f"{column} {data_type}{self.maybe('NOT NULL', 0.3)}{self.maybe('UNIQUE', 0.2)}"]
        reference = f"REFERENCES {parent[0]} ({name})"
        if self.often(0.3):
            elements[0] += f" {reference}"
        else:
            elements.append(
                f"{self.maybe('CONSTRAINT fkc', 0.3)} FOREIGN KEY{self.maybe('fk', 0.3)} ({column}) {reference}"
            )
        elements += [f"{self.maybe('CONSTRAINT', 0.2)} UNIQUE{self.maybe('uk', 0.3)} ({column})"] * self.often(0.4)
        return f"CREATE TABLE {self.new_table()} ({', '.join(elements)})"

    def swap(self, found: Table) -> str:
        """RENAME TABLE that swaps the names of two tables."""
        other = self.table()
        if other is None or other[0] == found[0] or self.hides_renaming():
            return f"TRUNCATE TABLE {found[0]}"
        return f"RENAME TABLE {found[0]} TO between, {other[0]} TO {found[0]}, between TO {other[0]}"

    def hides_renaming(self) -> bool:
        """Whether RENAME TABLE might affect a temporary table: MariaDB logs it even if it did not log the table."""
        return self.mariadb and self.shadowed

    def one_in_another(self, found: Table) -> str:
        """A statement that is executed by another statement."""
        inner = f"ALTER TABLE {found[0]} ADD {self.new_name()} {self.definition()}"
        if self.mariadb:
            return f"EXECUTE IMMEDIATE {self.quoted(inner)}"
        self.next = ["EXECUTE p"]
        return f"PREPARE p FROM {self.quoted(inner)}"

    def temporary(self, found: Table) -> str:
        """A temporary table, which often hides another table. Some binlog formats log it."""
        name = self.one((self.new_table(), found[0]))
        # Not later, because then statements would be logged about tables whose creation was not.
        if not self.shadowed and self.often(0.3):
            return f"SET binlog_format = {self.one(('STATEMENT', 'MIXED', 'ROW'))}"
        self.shadowed = True
        return self.one(
            (
                f"CREATE TEMPORARY TABLE {name} ({self.new_name()} {self.definition()}, z {self.definition()})",
                f"CREATE TEMPORARY TABLE {name} LIKE {found[0]}",
                f"DROP TEMPORARY TABLE IF EXISTS {name}",
            )
        )

    def with_period(self) -> str:
        """A table of MariaDB with an application-time period."""
        data_type = self.one(("DATE", "TIMESTAMP", "DATETIME(3)", "TIMESTAMP(6) NULL"))
        elements = [f"id {self.definition()}", f"f {data_type}", f"u {data_type}", "PERIOD FOR p (f, u)"]
        elements += ["x TIMESTAMP"] * self.often(0.3)
        key = self.one(("", "UNIQUE (id, p WITHOUT OVERLAPS)", "PRIMARY KEY (id, p WITHOUT OVERLAPS)", "UNIQUE (f)"))
        self.rng.shuffle(elements)
        return f"CREATE OR REPLACE TABLE {self.new_table()} ({', '.join([*elements, *([key] if key else [])])})"

    def versioned(self) -> str:
        """A system-versioned table of MariaDB."""
        without = self.one(("WITHOUT SYSTEM VERSIONING", "WITH SYSTEM VERSIONING", ""))
        self.next = ["SET system_versioning_alter_history = KEEP"]
        end = self.maybe("WITH SYSTEM VERSIONING", 0.8)
        return (
            f"CREATE OR REPLACE TABLE {self.new_table()} (id {self.definition()}, v {self.definition()} {without}){end}"
        )

    def rare_action(self, table: Mapping[str, Any]) -> str:
        """A rare action of ALTER TABLE."""
        column = self.column(table)
        common: Makers = (
            (2, lambda: f"DROP FOREIGN KEY {self.one(('t1_ibfk_1', 't2_ibfk_1', 't6_ibfk_1', 'fk', 'fkc'))}"),
            (
                2,
                lambda: f"DROP CONSTRAINT {self.one(('fk', 'fkc', 'ck', 'con', 't1_ibfk_1', 't2_ibfk_2', 't1_chk_1'))}",
            ),
            (1, lambda: f"ADD SPATIAL INDEX ({column})"),
            (1, lambda: f"ADD CONSTRAINT UNIQUE KEY{self.maybe('uk')} ({column}, {self.column(table)} DESC)"),
        )
        mariadb: Makers = (
            (2, lambda: f"RENAME COLUMN IF EXISTS {column} TO {self.new_name()}"),
            (2, lambda: f"CHANGE COLUMN IF EXISTS {column} {self.new_name()} {self.definition()}"),
            (2, lambda: f"ALTER COLUMN IF EXISTS {column} SET DEFAULT {self.default()}"),
            (2, lambda: f"ADD UNIQUE INDEX IF NOT EXISTS {self.one(('uk', 'i1'))} ({column})"),
            (1, lambda: f"ADD CONSTRAINT IF NOT EXISTS ck CHECK ({column} IS NOT NULL)"),
            (1, lambda: f"DROP INDEX IF EXISTS {self.one(('uk', 'i1', 'k1'))}"),
            (1, lambda: f"DROP CONSTRAINT IF EXISTS {self.one(('uk', 'ck', 'con'))}"),
            (1, lambda: "ADD PERIOD FOR p (f, u)"),
            (1, lambda: "DROP PERIOD FOR p"),
            (1, lambda: f"MODIFY {column} VARCHAR(40) COMPRESSED{self.maybe('NOT NULL')}"),
            (1, lambda: f"ADD {self.new_name()} BLOB COMPRESSED{self.maybe('DEFAULT 5')}"),
            (1, lambda: f"ADD {self.new_name()} {self.definition()} WITHOUT SYSTEM VERSIONING"),
        )
        return self.choose((*common, *mariadb) if self.mariadb else common)
