"""COMPATIBILITY.md is up to date with the catalogue of properties and the recorded cases."""

from pathlib import Path

from tests.support import compatibility

DOCUMENT = Path(__file__).parent.parent / "COMPATIBILITY.md"


def test_the_document_is_what_is_derived() -> None:
    assert DOCUMENT.read_text() == compatibility.render(), "write it anew: .venv/bin/python docs/refresh.py"


def test_every_difference_stands_where_it_belongs() -> None:
    words = [word for own in compatibility.ABOUT.values() for word in own]
    assert [reason for reason in compatibility.reasons() if not any(word in reason for word in words)] == []
    assert [word for word in words if not any(word in reason for reason in compatibility.reasons())] == []


def test_every_type_is_recorded_on_its_server() -> None:
    found = compatibility.types()
    assert found["mysql"].keys() >= {"json", "vector", "geometry", "bit", "year", "timestamp", "set", "longblob"}
    assert found["mariadb"].keys() >= {"uuid", "inet4", "inet6", "geometry", "year", "timestamp"}


def test_a_property_that_debezium_lacks_is_not_called_equal() -> None:
    lines = compatibility.render().splitlines()
    states = {line.split("`")[1]: line.split(" | ")[1] for line in lines if line.startswith("| `")}
    own = {"rowtide.values", "databus.topic", "zero.date.handling.mode", "binlog.row.image.minimal.allowed"}
    own |= {"database.flavor", "database.server.public.key.file", "schema.history.internal.compact.interval"}
    assert {states[name] for name in own} == {"rowtide only"}
    assert {states[name] for name in ("topic.prefix", "bootstrap.servers", "decimal.handling.mode")} == {"equal"}
