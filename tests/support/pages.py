"""The texts of the documentation, and their code blocks and tables."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.source_tree import ROOT

__all__ = ["PAGES", "TEXTS", "blocks", "table"]

_GENERATED = re.compile(r"^(<!-- generated: .+ -->\n)(?:.*\n)*?(<!-- end -->)$", re.MULTILINE)


def _written(path: Path) -> str:
    return "" if path.is_symlink() else _GENERATED.sub(r"\1\2", path.read_text())


PAGES = {path.stem: _written(path) for path in sorted((ROOT / "docs").glob("*.md"))}
"""The pages in ``docs``, by name: what is written by hand. A page that is a link to another text is empty."""

TEXTS = {**PAGES, **{name: (ROOT / f"{name}.md").read_text() for name in ("README", "CONTRIBUTING", "SECURITY")}}
"""The pages, and the texts at the root of the checkout."""


def blocks(name: str, language: str) -> list[str]:
    """The code blocks of a text in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", TEXTS[name], re.MULTILINE | re.DOTALL)


def table(name: str, first: str) -> list[list[str]]:
    """The rows of the table whose first column has this title."""
    (text,) = re.findall(rf"^\| {first} \|.*\n\| ---.*\n((?:\|.*\n)+)", TEXTS[name], re.MULTILINE)
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in text.splitlines()]
