"""The code of docs/transforms.md runs."""

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from rowtide.envelope.schema import Schema, struct
from rowtide.envelope.transforms import ConnectRecord

PAGE = Path(__file__).parents[2] / "docs" / "transforms.md"


def test_the_examples_run(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("shop_transforms")
    monkeypatch.setitem(sys.modules, "shop_transforms", module)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 5
    for block in blocks:
        exec(block, module.__dict__)
    row = struct("orders.Value", {"country": Schema("string")})
    record = ConnectRecord("orders", None, None, None, row, {"country": "DE"})
    assert module.Suffix({"suffix": ".copy"}).apply(record).topic == "orders.copy"
    assert module.with_region(record).value == {"country": "DE", "region": "EU"}
    deleted = ConnectRecord("orders", None, None, None, None, {"before": {"country": "DE"}, "after": None})
    assert module.by_country(deleted).topic == "orders.DE"
    assert module.by_country(ConnectRecord("orders", None, None, None, None, None)) is None
    change = ConnectRecord("orders", None, None, None, None, {"source": {"ts_ms": 5}})
    assert module.stamped(change).timestamp == 5
