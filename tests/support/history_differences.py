"""The known differences between rowtide's schema history and the recorded one."""

TABLES = {
    "damaged-by-statements": {
        "alter table t add v": "SET DEFAULT NULL leaves no default",
        "alter table t alter v": "SET DEFAULT NULL leaves no default",
    },
    "ddl-and-filters": {"create table `we``ird`": "the database's character set is utf8mb4 at that moment"},
    "defaults-in-schemas": {
        "create table t2": "defaults as the server has them",
        "alter table t alter i1": "defaults as the server has them",
        "alter table t modify i2": "defaults as the server has them",
    },
    "fails-backtick-in-column-name": {"alter table u drop column `q``t`": "the column is gone"},
    "mariadb-damaged-by-statements": {"alter table w add column": "the second of two columns can be null"},
    "mariadb-ddl": {
        "alter table t add column if not exists w": "a column that exists is left as it is",
        "alter table t drop column if exists nosuch": "a column that existed was left as it was",
        "rename table t9 to r": "a column that existed was left as it was",
    },
    "mariadb-fails-create-or-replace": {"create or replace table t": "the table is replaced"},
    "weird-names": {"create table `Ünï db`.`😀x`": "the server's own name of it has a question mark"},
}
"""By case: the start of a record's statement, and why the tables in the record differ."""

MORE = {
    "ddl-only-captured": {"create database if not exists dd"},
    "mariadb-ddl-only-captured": {
        "create database if not exists dd",
        "create database other character set latin1",
        "drop database other",
    },
}
"""By case: statements about databases are stored also with store.only.captured.tables.ddl, because new tables inherit
from them; Debezium stores them only in snapshots."""

UNCHECKED = {
    "mariadb-fails-executable-comment": "Debezium passes over /*M! */ and stops soon after",
}
