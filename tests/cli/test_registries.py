"""The schema registry of ``rowtide tables``."""

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka.schema_registry.error import SchemaRegistryError

from rowtide.cli import registries
from rowtide.cli.registries import RetryingRegistry
from rowtide.spark_consumers.errors import RegistryError


class Source:
    """A registry that fails some times before it answers."""

    def __init__(self, *errors: Exception) -> None:
        self.errors, self.asked = list(errors), 0

    def get_schema(self, _number: int) -> Any:
        self.asked += 1
        if self.errors:
            raise self.errors.pop(0)
        return SimpleNamespace(schema_type=None, schema_str='"string"')

    def get_schema_by_guid(self, _guid: str) -> Any:
        return self.get_schema(0)


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registries, "_WAITS_S", (0, 0))


def test_a_registry_that_comes_back_is_asked_again() -> None:
    source = Source(OSError("refused"), SchemaRegistryError(503, 50301, "busy"))
    assert RetryingRegistry(source, "http://r:1")(7) == ("AVRO", '"string"')
    assert source.asked == 3


def test_a_registry_that_stays_away_is_an_error_with_its_place() -> None:
    source = Source(*(OSError("refused") for _ in range(3)))
    with pytest.raises(RegistryError, match=r"http://r:1: .* registry did not return schema 7: OSError: refused"):
        RetryingRegistry(source, "http://r:1")(7)
    assert source.asked == 3


def test_a_missing_schema_is_not_asked_for_again() -> None:
    source = Source(SchemaRegistryError(404, 40403, "Schema not found"))
    with pytest.raises(RegistryError, match="does not have schema 7"):
        RetryingRegistry(source, "http://r:1")(7)
    assert source.asked == 1
