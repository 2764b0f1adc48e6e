"""Configuration files in every format, and the messages about invalid ones."""

from pathlib import Path

import pytest

from rowtide.connector.config import ConfigurationError, load
from rowtide.connector.config.files.documents import flattened
from rowtide.connector.config.files.files import read_file

WANTED = {
    "name": "shop",
    "database.hostname": "db",
    "database.port": "3306",
    "table.include.list": "shop\\.a,shop\\.b",
    "include.schema.changes": "false",
    "schema.history.internal.memory.optimization": "off",
}
FILES = {
    "c.properties": r"""name=shop
database.hostname=db
database.port=3306
table.include.list=shop\\.a,shop\\.b
include.schema.changes=false
schema.history.internal.memory.optimization=off
""",
    "flat.json": r"""{"name": "shop", "database.hostname": "db", "database.port": 3306, "include.schema.changes": false,
 "table.include.list": "shop\\.a,shop\\.b", "schema.history.internal.memory.optimization": "off", "x": null}""",
    "rest.json": r"""{"name": "shop", "config": {"database": {"hostname": "db", "port": 3306},
 "include.schema.changes": false, "table.include.list": ["shop\\.a", "shop\\.b"],
 "schema.history": {"internal.memory.optimization": "off"}}}""",
    "c.yaml": r"""
name: shop
database:
  hostname: db
  port: 3306
table.include.list: [shop\.a, shop\.b]
include.schema.changes: false
schema.history.internal: {memory.optimization: off}
""",
}


@pytest.mark.parametrize("name", FILES)
def test_every_format_yields_the_same_properties(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(FILES[name])
    assert read_file(path).properties == WANTED


def test_a_property_may_also_be_a_map() -> None:
    nested = {"snapshot.select.statement.overrides": {"": "a.b", "a": {"b": "select 1"}}}
    assert flattened(nested) == {
        "snapshot.select.statement.overrides": "a.b",
        "snapshot.select.statement.overrides.a.b": "select 1",
    }


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("c.json", b'{"a": ', "is not valid"),
        ("c.json", b"[1]", "must be a map"),
        ("c.json", b'{"a": 1, "a": 2}', "duplicate key 'a'"),
        ("c.json", b'{"a.b": 1, "a": {"b": 2}}', "duplicate property 'a.b'"),
        ("c.json", b'{"a": [[1]]}', "plain values"),
        ("c.yml", b"a: [1", "is not valid"),
        ("c.yml", b"- a", "must be a map"),
        ("c.yml", b"a: 1\na: 2", "duplicate key 'a'"),
        ("c.yml", b"a: {b: 1, c: 2, b: 3}", "duplicate key 'b'"),
        ("c.properties", b"a=\\u12", "line 1: malformed"),
    ],
)
def test_an_invalid_file_is_named_with_the_reason(name: str, content: bytes, reason: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ConfigurationError, match=reason) as caught:
        load(path, {})
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "place"),
    [
        ("c.yaml", b"name: shop\ndatabase.password: @hunter2\n", "line 2, column 20"),
        ("c.yaml", b"database.password: hunter2: hunter2\n", "line 1, column 27"),
        ("c.yaml", b"database.password: *hunter2\n", "line 1, column 20"),
        ("c.yaml", b"name: shop\ndatabase.password: 'hunter2\n", "line 3, column 1"),
        ("c.yaml", b"database.password: hunter2\x01\n", "line 1, column 27"),
        ("c.yaml", b"name: shop\ndatabase.password: hunter2\xff\n", "line 2, column 27"),
        ("c.yaml", b"? [database.password, hunter2]\n: 1\n? [database.password, hunter2]\n: 2\n", "line 1, column 3"),
        ("c.json", b'{"name": "shop",\n "database.password": "hunter2" "}', "line 2, column 33"),
        ("c.json", b'{"database.password": "hunter2\\h"}', "line 1, column 31"),
        ("c.json", b'{"database.password": "hunter2\xff"}', "line 1, column 31"),
        ("c.properties", b"name=shop\ndatabase.password=hunter\\u2hunter2\n", "line 2"),
    ],
)
def test_a_syntax_error_names_line_and_column_and_shows_no_value(
    name: str, content: bytes, place: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ConfigurationError) as caught:
        load(path, {})
    message = str(caught.value)
    assert f"{path}: " in message
    assert place in message
    assert "hunter" not in message


def test_a_syntax_error_in_a_referenced_file_is_a_problem_of_the_property(tmp_path: Path) -> None:
    secrets = tmp_path / "secrets.properties"
    secrets.write_bytes(b"password=hunter\\u2\n")
    path = tmp_path / "c.properties"
    path.write_text(f"database.password=${{file:{secrets}:password}}\n")
    with pytest.raises(
        ConfigurationError, match=r"database\.password: .*secrets\.properties: line 1: malformed"
    ) as caught:
        load(path, {})
    assert "hunter" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="No such file"):
        load(tmp_path / "none.properties", {})


def test_latin_1_and_utf_8_are_both_read(tmp_path: Path) -> None:
    for encoding in ("latin-1", "utf-8", "utf-8-sig"):
        path = tmp_path / encoding
        path.write_bytes("name=café".encode(encoding))
        assert read_file(path).properties == {"name": "café"}
