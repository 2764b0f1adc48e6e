"""The code of docs/transforms.md and docs/converters.md runs."""

import re
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from rowtide.envelope.schema import Schema, struct
from rowtide.envelope.transforms import ConnectRecord
from rowtide.testing import RelationalColumn, convert

PAGES = Path(__file__).parents[2] / "docs"


def code(page: str, first_line: str = "") -> list[str]:
    """The blocks of code in Python of a page that begin with a line."""
    blocks = re.findall(r"```python\n(.*?)```", (PAGES / page).read_text(encoding="utf-8"), re.DOTALL)
    return [block for block in blocks if block.startswith(first_line)]


def test_the_examples_run(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("shop_transforms")
    monkeypatch.setitem(sys.modules, "shop_transforms", module)
    blocks = code("transforms.md")
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


def test_the_column_converter_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("shop_converters")
    monkeypatch.setitem(sys.modules, "shop_converters", module)
    converter, test = code("converters.md", "# shop_converters.py") + code("converters.md", "from rowtide.testing")
    exec(converter, module.__dict__)
    exec(test, {})
    wide = RelationalColumn("paid", "shop.orders", "TINYINT", length=4)
    assert convert(module.Flags(), wide, 1) is None
    assert convert(module.Flags(), replace(wide, length=1, table="x.y"), 1, {"tables": "shop."}) is None
