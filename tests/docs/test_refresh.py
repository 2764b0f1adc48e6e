"""The generated parts of the Markdown files are fresh, and committed: a reader needs no tool to see them."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest

from tests.support.source_tree import ROOT

SCRIPT = ROOT / "docs/refresh.py"
PARTS = {
    "commands": "rowtide --help",
    "configuration": "rowtide properties --markdown",
    "architecture": "packages",
    "library": "examples/audit.py",
}
"""By page, the source of one of its generated parts."""


def test_every_generated_part_is_fresh() -> None:
    done = subprocess.run([sys.executable, SCRIPT, "--check"], capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("", 0), f"{done.stdout}{done.stderr}"


def test_no_page_waits_for_a_tool_to_fill_it_in() -> None:
    texts = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("tests/**/*.md")]
    assert len(texts) > 20
    assert [path.name for path in texts if "{{" in path.read_text()] == []


@pytest.mark.parametrize(("page", "source"), PARTS.items())
def test_a_stale_part_is_written_again(page: str, source: str) -> None:
    spec = importlib.util.spec_from_file_location("refresh", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    refresh = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(refresh)
    fresh = (ROOT / f"docs/{page}.md").read_text()
    marker = f"<!-- generated: {source} -->\n"
    assert fresh.count(marker) == 1
    assert refresh.refreshed(fresh.replace(marker, f"{marker}stale\n")) == fresh
