"""The configurations of the recorded Debezium runs are accepted."""

import json
from pathlib import Path

import pytest

from rowtide.connector.config import from_properties

GOLDEN = Path(__file__).parents[2] / "golden"


@pytest.mark.parametrize("case", sorted(path.parent.name for path in GOLDEN.glob("*/case.json")))
def test_a_recorded_configuration_is_accepted(case: str, valid: dict[str, str]) -> None:
    recorded = json.loads((GOLDEN / case / "case.json").read_text())
    properties = {**valid, "database.flavor": recorded["server"], "topic.prefix": case, **recorded.get("config", {})}
    properties = {name: text.replace("$KAFKA", "127.0.0.1:9092") for name, text in properties.items()}
    for change in sorted((GOLDEN / case).glob("*.config.json")):
        properties |= json.loads(change.read_text())
    from_properties(properties)
