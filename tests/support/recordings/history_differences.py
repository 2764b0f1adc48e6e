"""The known differences between rowtide's schema history and the recorded one."""

TABLES = {
    "damaged-by-statements": {
        "alter table t add v": "SET DEFAULT NULL leaves no default",
        "alter table t alter v": "SET DEFAULT NULL leaves no default",
    },
    "ddl-and-filters": {"create table `we``ird`": "the character set of the database is utf8mb4 at this time"},
    "defaults-in-schemas": {
        "create table t2": "defaults as in the server",
        "alter table t alter i1": "defaults as in the server",
        "alter table t modify i2": "defaults as in the server",
    },
    "fails-backtick-in-column-name": {"alter table u drop column `q``t`": "the column is dropped"},
    "mariadb-damaged-by-statements": {"alter table w add column": "the second of two columns is nullable"},
    "mariadb-ddl": {
        "alter table t add column if not exists w": "an existing column is not changed",
        "alter table t drop column if exists nosuch": "an existing column was not changed",
        "rename table t9 to r": "an existing column was not changed",
    },
    "mariadb-fails-create-or-replace": {"create or replace table t": "the table is replaced"},
    "weird-names": {"create table `Ünï db`.`😀x`": "the server stores a question mark in its name"},
}
"""By case: the start of a record's statement, and why the tables in the record differ."""

MORE = {
    "ddl-only-captured": {"create database if not exists dd", "DROP TABLE IF EXISTS `dd`.`z3`"},
    "mariadb-ddl-only-captured": {
        "create database if not exists dd",
        "create database other character set latin1",
        "drop database other",
        "DROP TABLE IF EXISTS `dd`.`z3`",
    },
    "snapshot-no-data": {"DROP TABLE IF EXISTS `nd`.`late1`"},
}
"""By case: statements about databases are stored also with store.only.captured.tables.ddl, because new tables inherit
from them; Debezium stores them only in snapshots. So is the end of a captured table that gets a name that is not
captured: another one may get its name later."""

UNCHECKED = {
    "mariadb-fails-executable-comment": "Debezium ignores /*M! */ and stops soon after",
}

GTID_SETS = {"gtid-sources", "gtid-sources-without-dml-filter"}
"""Positions with the GTIDs of several servers: rowtide writes them in MySQL's order and form, Debezium as they came."""
