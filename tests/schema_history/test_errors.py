"""Statements in error messages and log lines: structure and names, but no literals."""

import pytest

from rowtide.schema_history.errors import InconsistentDdl, UnparsedStatement, without_literals


@pytest.mark.parametrize(
    ("sql", "shown"),
    [
        ("CREATE TABLE `a'b` (c varchar(20) DEFAULT 'se''cret')", "CREATE TABLE `a'b` (c varchar(?) DEFAULT ?)"),
        ("INSERT INTO t1.t2 VALUES (-5, 1.5e3, .5, 0xAB, x'00')", "INSERT INTO t1.t2 VALUES (-?, ?, ?, ?, ?)"),
        ("SELECT _utf8mb4'a', N'b', \"c\"", "SELECT ?, ?, ?"),
        ("SELECT 'not closed", "SELECT ?"),
        ("UPDATE t SET a='x\\', 'secret' WHERE b=1", "UPDATE t SET a=? …"),
        ("DROP TABLE t /* secret */ -- secret\n# secret", "DROP TABLE t    \n "),
        ("/*!50100 PARTITION BY HASH (a) PARTITIONS 4 */", "/*!50100 PARTITION BY HASH (a) PARTITIONS ? */"),
    ],
)
def test_literals_and_comments_are_omitted(sql: str, shown: str) -> None:
    assert without_literals(sql) == shown


@pytest.mark.parametrize(
    "error",
    [
        UnparsedStatement("ALTER TABLE t ADD c int DEFAULT 'secret' WHAT", "expected the end of the statement", 31),
        InconsistentDdl("ALTER TABLE t ALTER c SET DEFAULT 'secret'", "table d.t is not known"),
    ],
)
def test_errors_show_literals_on_request_only(error: UnparsedStatement | InconsistentDdl) -> None:
    assert "secret" not in str(error)
    assert "ALTER TABLE t" in str(error)
    assert "'secret'" in error.message(literals=True)
