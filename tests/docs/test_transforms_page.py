"""The code of docs/transforms.md, docs/converters.md and docs/post_processors.md runs."""

import re
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from rowtide.envelope.post_processors import PythonPostProcessor, post_processors
from rowtide.envelope.schema import STRING, Schema, struct
from rowtide.envelope.transforms import ConnectRecord, Plugin
from rowtide.testing import RelationalColumn, change, convert

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


def test_the_post_processor_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("shop_processors")
    monkeypatch.setitem(sys.modules, "shop_processors", module)
    exec(code("post_processors.md", "# shop_processors.py")[0], module.__dict__)
    options = {"columns": "street,city"}
    (made,) = post_processors([Plugin("addresses", "python:shop_processors.Addresses", options)])
    assert isinstance(made, PythonPostProcessor)
    row = {"street": STRING, "city": STRING.with_optional(True), "zip": STRING}
    record = change(row, after={"street": "a", "city": None, "zip": "b"})
    assert made.apply([record]) == [None]
    assert record.value["after"] == {"street": "***", "city": None, "zip": "b"}
