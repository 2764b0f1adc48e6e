"""The report of ``rowtide tables``."""

import io

from rich.console import Console

from rowtide.cli.tables_report import Bars, line, print_report
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


def test_each_table_has_a_bar_while_it_is_updated() -> None:
    console = Console(file=io.StringIO(), width=100, force_terminal=True, color_system=None)
    plain = Console(file=io.StringIO(), width=100)
    first, second = TableName("p.shop.a[b]", "shop", "a[b]"), TableName("p.shop.c", "shop", "c")

    def shown(bars: Bars) -> list[str]:
        with plain.capture() as capture:
            plain.print(bars._progress.get_renderable())
        return [" ".join(part.split()) for part in capture.get().splitlines() if "records" in part]

    with Bars(console) as bars:
        bars.show(first, 0, 5000)
        bars.show(second, 0, 7)
        bars.show(first, 2000, 5000)
        found = shown(bars)
        assert [text.split()[0] for text in found] == ["shop.a[b]", "shop.c"]
        assert "2,000 of 5,000 records" in found[0]
        assert "7 records" in found[1]
        bars.remove(second)
        bars.remove(second)
        assert len(shown(bars)) == 1


def test_elsewhere_than_on_a_terminal_there_are_no_bars() -> None:
    console = Console(file=io.StringIO(), width=100)
    with Bars(console) as bars:
        bars.show(TableName("p.shop.c", "shop", "c"), 0, 7)
    assert console.file.getvalue() == ""  # type: ignore[attr-defined]


def test_snapshot_records_of_a_table_without_a_key_that_had_rows_are_noted() -> None:
    name = TableName("p.shop.bag", "shop", "bag")
    console = Console(file=io.StringIO(), width=400)
    print_report(console, [Outcome(name, ranges={0: (0, 2)}, reread=1200)])
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert "note  shop.bag has no key, and 1,200 snapshot records (op r) were added to its existing rows" in shown
    assert "docs/spark.md" in shown
