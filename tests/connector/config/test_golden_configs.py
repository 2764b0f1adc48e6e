"""The configurations of the recorded Debezium runs are accepted."""

import json
from pathlib import Path

import pytest

from rowtide.connector.config import ConfigurationError, Problem, from_properties

GOLDEN = Path(__file__).parents[2] / "golden"
NOT_YET = ("incremental.",)
"""Prefixes of properties in some cases that rowtide may refuse with a message."""


@pytest.mark.parametrize("case", sorted(path.parent.name for path in GOLDEN.glob("*/case.json")))
def test_a_recorded_configuration_is_accepted(case: str, valid: dict[str, str]) -> None:
    recorded = json.loads((GOLDEN / case / "case.json").read_text())
    properties = {**valid, "database.flavor": recorded["server"], "topic.prefix": case, **recorded.get("config", {})}
    properties = {name: text.replace("$KAFKA", "127.0.0.1:9092") for name, text in properties.items()}
    for change in sorted((GOLDEN / case).glob("*.config.json")):
        properties |= json.loads(change.read_text())
    problems: tuple[Problem, ...] = ()
    try:
        from_properties(properties)
    except ConfigurationError as error:
        problems = error.problems
    assert [problem for problem in problems if not problem.property.startswith(NOT_YET)] == []
    assert all("does not support yet" in problem.message for problem in problems)
