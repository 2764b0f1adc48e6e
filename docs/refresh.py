"""Regenerates parts of the Markdown files: ``.venv/bin/python docs/refresh.py``.

A part is between ``<!-- generated: SOURCE -->`` and ``<!-- end -->``, where SOURCE is a name of `SOURCES` or a file
of the checkout. `WHOLE` has the files that are generated as a whole. With ``--check``, nothing is written: the stale
files are named, and the exit code is 1.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from textwrap import dedent

import click

from rowtide import cli
from rowtide.connector.config.property_reference import markdown as properties

ROOT = Path(__file__).parents[1]
FOLDERS = ("connector", "schema_history", "envelope", "topics", "spark_consumers", "rowtide/cli")
_LANGUAGES = {".properties": "properties", ".py": "python"}
_PART = re.compile(r"^(<!-- generated: (.+) -->\n)(?:.*\n)*?(<!-- end -->)$", re.MULTILINE)
_ROLE = re.compile(r":\w+:`~?(?:[\w.]+\.)?(\w+)`")


def refreshed(markdown: str) -> str:
    """Return a text with its generated parts made again."""
    return _PART.sub(lambda part: f"{part[1]}\n{content_of(part[2])}\n\n{part[3]}", markdown)


def content_of(source: str) -> str:
    """Return the Markdown of a source.

    Raises:
        FileNotFoundError: the source does not exist.
    """
    if source in SOURCES:
        return SOURCES[source]()
    text = (ROOT / source).read_text(encoding="utf-8")
    return f"```{_LANGUAGES[Path(source).suffix]}\n{text}```"


def commands() -> str:
    """Return the help of every command."""
    return "\n\n".join(f"## {path}\n\n```text\n{text}\n```" for path, text in _helps(cli.main, None, "rowtide"))


def _helps(command: click.Command, parent: click.Context | None, name: str) -> Iterator[tuple[str, str]]:
    context = click.Context(command, parent=parent, info_name=name, terminal_width=80, **command.context_settings)
    yield context.command_path, command.get_help(context)
    if isinstance(command, click.Group):
        for child in command.list_commands(context):
            found = command.get_command(context, child)
            assert found is not None, f"{name} lists {child}"
            yield from _helps(found, context, child)


def drawing() -> str:
    """Return the drawing in the docstring of ``connector``."""
    text = docstring(ROOT / "connector")
    (found,) = re.findall(r"::\n\n((?:    .*\n|\n)+)", text)
    return f"```text\n{dedent(found).strip()}\n```"


def packages() -> str:
    """Return each folder's modules and packages at its first level, with the first sentence of their docstrings."""
    sections = ((folder, _sentence(docstring(ROOT / folder)), _table(folder)) for folder in FOLDERS)
    return "\n\n".join(f"### {folder}/\n\n{sentence}\n\n{table}" for folder, sentence, table in sections)


def _table(folder: str) -> str:
    rows = ["| module or package | what it is for |", "| --- | --- |"]
    for path in sorted((ROOT / folder).iterdir()):
        is_listed = (path / "__init__.py").exists() or (path.suffix == ".py" and path.stem != "__init__")
        if is_listed:
            name = f"{path.name}/" if path.is_dir() else path.stem
            rows.append(f"| `{name}` | {_sentence(docstring(path))} |")
    return "\n".join(rows)


def _sentence(text: str) -> str:
    """Return the first sentence of a docstring, as Markdown in a cell."""
    first = re.split(r"(?<=\.)\s", " ".join(text.split("\n\n", maxsplit=1)[0].split()), maxsplit=1)[0]
    return _ROLE.sub(r"`\1`", first).replace("``", "`").replace("|", "\\|")


def docstring(path: Path) -> str:
    """Return the docstring of a module or of a package's folder."""
    tree = ast.parse(((path / "__init__.py") if path.is_dir() else path).read_text(encoding="utf-8"))
    return ast.get_docstring(tree) or ""


def compatibility() -> str:
    """Return the list of properties and types next to Debezium's, which the tests' recordings prove."""
    command = [sys.executable, "-m", "tests.support.compatibility"]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


SOURCES: Mapping[str, Callable[[], str]] = {
    "rowtide properties --markdown": properties,
    "rowtide --help": commands,
    "drawing": drawing,
    "packages": packages,
}
WHOLE: Mapping[str, Callable[[], str]] = {"COMPATIBILITY.md": compatibility}


def main(*, check: bool) -> int:
    """Refresh the files, or name the stale ones, and return the exit code."""
    stale = []
    for path in sorted({*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")}):
        if path.is_symlink():  # such as docs/changelog.md: the file itself is in the list, or has no generated parts
            continue
        old = path.read_text(encoding="utf-8")
        new = WHOLE[path.name]() if path.name in WHOLE else refreshed(old)
        if new != old:
            stale.append(path.relative_to(ROOT).as_posix())
            if not check:
                path.write_text(new, encoding="utf-8")
    if stale:
        sys.stdout.write(f"{'stale, run docs/refresh.py' if check else 'written'}: {', '.join(stale)}\n")
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main(check="--check" in sys.argv[1:]))
