"""A short campaign with a fixed seed for every target, and the campaign's own rules."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from random import Random

import pytest

from tests.fuzz.campaign import Failure, minimised, problem, search
from tests.fuzz.mutators import mutated, mutated_json
from tests.fuzz.targets import TARGETS
from tests.fuzz.targets.both_decoders import BothDecoders
from tests.fuzz.targets.canal import CanalEntries
from tests.fuzz.targets.ddl import Statements
from tests.fuzz.targets.rows import RowEvents

SEED = 20
COUNTS = {
    "packets": 12_000, "rows": 1500, "json": 2500, "files": 800, "ddl": 1000, "offsets": 4000, "history": 700,
    "summaries": 250, "canal": 1000, "search": 3000, "log-in": 3000, "results": 1000,
    "both decoders": 600,
}  # fmt: skip
"""Inputs of each target: about a second each on a quiet machine."""
ROW_CASES = ("numeric-types", "temporal-types", "mariadb-types", "json-partial-update", "enum-set-json")


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Warnings of the code under test say nothing here."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("name", TARGETS)
def test_damaged_input_raises_declared_errors_only(name: str) -> None:
    smaller = {
        "rows": lambda: RowEvents(ROW_CASES),
        "both decoders": lambda: BothDecoders(ROW_CASES),
        "canal": lambda: CanalEntries(ROW_CASES),
        "ddl": lambda: Statements(files=6),
    }
    target = smaller.get(name, TARGETS[name])()
    found = [failure for failure in search(name, target, SEED, range(COUNTS[name])) if failure]
    assert not found, "\n".join(map(str, found[:3]))


class Fragile:
    """Fails on inputs that contain two letters; refuses those that begin with a third."""

    declared = (ValueError,)

    def make(self, random: Random) -> bytes:
        return mutated(random, b"-" * 50, (b"a", b"b"))

    def run(self, data: bytes) -> None:
        if data.startswith(b"!"):
            raise ValueError("declared")
        if b"a" in data and b"b" in data:
            raise KeyError("undeclared")


def test_an_undeclared_error_is_found_and_its_input_is_shortened() -> None:
    target = Fragile()
    found = [failure for failure in search("fragile", target, 1, range(500)) if failure]
    assert len({failure.kind for failure in found}) == 1
    failure = minimised(target, found[0])
    assert sorted(failure.data) == sorted(b"ab")
    assert "KeyError" in str(failure)
    assert f"seed 1, input {found[0].number}" in str(failure)


def test_declared_errors_need_a_message() -> None:
    class Silent(Fragile):
        def run(self, data: bytes) -> None:
            raise ValueError

    assert problem(Fragile(), b"!ab") is None
    assert problem(Silent(), b"") == ("an error without a message", "ValueError()")


def test_an_input_depends_on_seed_and_number_only() -> None:
    def inputs(seed: int, numbers: range) -> list[Failure | None]:
        return list(search("fragile", Fragile(), seed, numbers))

    assert inputs(1, range(50))[30:] == inputs(1, range(30, 50))
    assert inputs(1, range(500)) != inputs(2, range(500))


def test_json_values_are_damaged_without_changing_the_original() -> None:
    value = {"a": [1, {"b": None}], "c": "d"}
    changed = [mutated_json(Random(seed), value) for seed in range(50)]
    assert value == {"a": [1, {"b": None}], "c": "d"}
    assert sum(other != value for other in changed) > 40
