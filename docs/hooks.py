"""What pages take over when they are built, so that it is written in one place: a line ``{{ source }}`` in a page.

A source is a name of `SOURCES`, or a file of the checkout.
"""

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from textwrap import dedent
from typing import Any

import click

from rowtide import cli
from rowtide.connector.config.property_reference import markdown as properties

ROOT = Path(__file__).parents[1]
FOLDERS = ("connector", "schema_history", "envelope", "topics", "spark_consumers", "rowtide/cli")
_LANGUAGES = {".properties": "properties", ".py": "python"}
_MARKER = re.compile(r"^\{\{ (.+) \}\}$", re.MULTILINE)
_ROLE = re.compile(r":\w+:`~?(?:[\w.]+\.)?(\w+)`")


def on_page_markdown(markdown: str, **_page: Any) -> str:
    """Put each source in the place of its line; MkDocs calls this for every page."""
    return _MARKER.sub(lambda marker: content_of(marker[1]), markdown)


def content_of(source: str) -> str:
    """The Markdown that a line stands for.

    Raises:
        FileNotFoundError: there is no such source.
    """
    if source in SOURCES:
        return SOURCES[source]()
    text = (ROOT / source).read_text(encoding="utf-8")
    language = _LANGUAGES.get(Path(source).suffix)
    return f"```{language}\n{text}```" if language else text


def commands() -> str:
    """The help of every command."""
    return "\n\n".join(f"## {path}\n\n```text\n{text}\n```" for path, text in _helps(cli.main, None, "rowtide"))


def _helps(command: click.Command, parent: click.Context | None, name: str) -> Iterator[tuple[str, str]]:
    context = click.Context(command, parent=parent, info_name=name, terminal_width=80)
    yield context.command_path, command.get_help(context)
    if isinstance(command, click.Group):
        for child in command.list_commands(context):
            found = command.get_command(context, child)
            assert found is not None, f"{name} lists {child}"
            yield from _helps(found, context, child)


def drawing() -> str:
    """The drawing in the docstring of ``connector``."""
    text = docstring(ROOT / "connector")
    (found,) = re.findall(r"::\n\n((?:    .*\n|\n)+)", text)
    return f"```text\n{dedent(found).strip()}\n```"


def rooms() -> str:
    """Every folder's modules and folders at its first level, with the first sentence of their docstrings."""
    sections = ((folder, _sentence(docstring(ROOT / folder)), _table(folder)) for folder in FOLDERS)
    return "\n\n".join(f"### {folder}/\n\n{sentence}\n\n{table}" for folder, sentence, table in sections)


def _table(folder: str) -> str:
    rows = ["| room | what it is for |", "| --- | --- |"]
    for path in sorted((ROOT / folder).iterdir()):
        is_room = (path / "__init__.py").exists() or (path.suffix == ".py" and path.stem != "__init__")
        if is_room:
            name = f"{path.name}/" if path.is_dir() else path.stem
            rows.append(f"| `{name}` | {_sentence(docstring(path))} |")
    return "\n".join(rows)


def _sentence(text: str) -> str:
    """The first sentence of a docstring, as Markdown in a cell."""
    first = re.split(r"(?<=\.)\s", " ".join(text.split("\n\n", maxsplit=1)[0].split()), maxsplit=1)[0]
    return _ROLE.sub(r"`\1`", first).replace("``", "`").replace("|", "\\|")


def docstring(path: Path) -> str:
    """The docstring of a module or of a package's folder."""
    tree = ast.parse(((path / "__init__.py") if path.is_dir() else path).read_text(encoding="utf-8"))
    return ast.get_docstring(tree) or ""


SOURCES: Mapping[str, Callable[[], str]] = {
    "rowtide properties --markdown": properties,
    "rowtide --help": commands,
    "drawing": drawing,
    "rooms": rooms,
}
