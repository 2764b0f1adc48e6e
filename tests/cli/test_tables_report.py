"""The report of ``rowtide tables``."""

import io

from rich.console import Console

from rowtide.cli.tables_report import line, print_report
from rowtide.spark_consumers.kafka.naming import TableName
from rowtide.spark_consumers.outcome import Outcome


def test_errors_notes_and_names_are_shown_as_they_are_and_without_markup() -> None:
    name = TableName("p.shop.a[b]", "shop", "a[b]")
    broken = Outcome(name, error="p.shop.a[b]: no [such] file")
    well = Outcome(name, ranges={0: (0, 2)}, notes=["column [x] was read"])
    console = Console(file=io.StringIO(), width=200)
    console.print(line(broken))
    console.print(line(well))
    print_report(console, [broken, well])
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert "failed  shop.a[b]" in shown
    assert "done  shop.a[b]: 0 records" in shown
    assert "error  p.shop.a[b]: no [such] file" in shown
    assert "note  column [x] was read" in shown
    assert "[red]" not in shown
