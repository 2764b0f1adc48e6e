"""The texts of the documentation, and their code blocks and tables."""

from __future__ import annotations

import re

from source_tree import ROOT

__all__ = ["PAGES", "TEXTS", "blocks", "table"]

PAGES = {path.stem: path.read_text() for path in sorted((ROOT / "docs").glob("*.md"))}
"""The pages in ``docs``, by name."""

TEXTS = {**PAGES, **{name: (ROOT / f"{name}.md").read_text() for name in ("README", "CONTRIBUTING", "SECURITY")}}
"""The pages, and the texts at the root of the checkout."""


def blocks(name: str, language: str) -> list[str]:
    """The code blocks of a text in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", TEXTS[name], re.MULTILINE | re.DOTALL)


def table(name: str, first: str) -> list[list[str]]:
    """The rows of the table whose first column has this title."""
    (text,) = re.findall(rf"^\| {first} \|.*\n\| ---.*\n((?:\|.*\n)+)", TEXTS[name], re.MULTILINE)
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in text.splitlines()]
