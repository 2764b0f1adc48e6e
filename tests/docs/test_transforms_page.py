"""The code of docs/transforms.md and docs/converters.md runs."""

import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from rowtide.envelope.column_converters import Registration, RelationalColumn
from rowtide.envelope.schema import BOOLEAN, Schema, struct
from rowtide.envelope.transforms import ConnectRecord

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


def test_the_column_converter_runs() -> None:
    found: dict[str, Any] = {}
    (block,) = code("converters.md", "# shop_converters.py")
    exec(block, found)
    converter = found["Flags"]()
    converter.configure({"tables": "shop."})
    for column, registered in (
        (RelationalColumn("flag", "shop.orders", "TINYINT", length=1), (BOOLEAN, bool)),
        (RelationalColumn("flag", "shop.orders", "TINYINT", length=4), None),
        (RelationalColumn("flag", "other.orders", "TINYINT", length=1), None),
    ):
        registration = Registration()
        converter.converter_for(column, registration)
        assert registration.registered == registered
