"""Renders the catalogue of properties: one property for the command line, all of them as Markdown for the docs."""

import enum
from collections.abc import Iterator
from typing import Any

from rowtide.connector.config.catalogue import SECTIONS, entries
from rowtide.connector.config.catalogue.property import Family, Property, Status
from rowtide.schema_history.server.query_event import Flavor
from rowtide.topics.filters import Patterns

Entry = Property[Any] | Family


def name_of(entry: Entry) -> str:
    """Return the name of a property, or the name pattern of a family."""
    return entry.name if isinstance(entry, Property) else entry.form


def default_of(entry: Entry) -> str:
    """Return a property's default as written in a file; empty if there is none."""
    if isinstance(entry, Family) or entry.required:
        return ""
    return _written(entry.default) if entry.default_text is None else entry.default_text


def exact_default_of(entry: Entry) -> str:
    """Return a property's default with exact values (``rowtide.values``), if it differs; otherwise empty."""
    return "" if isinstance(entry, Family) or entry.exact is None else _written(entry.exact)


def _written(value: object) -> str:
    if isinstance(value, enum.Enum):
        return str(value.value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Patterns):
        return ",".join(value.sources)
    if isinstance(value, tuple):
        return ",".join(value)
    return "" if value is None else str(value)


def status_of(entry: Entry) -> str:
    """Return the support of a property, in a few words."""
    if entry.status is Status.SUPPORTED:
        return "supported"
    return f"{entry.status.value}: {entry.reason}"


def servers_of(entry: Entry) -> str:
    """Return the servers that the property exists for; empty for all."""
    if isinstance(entry, Family) or len(entry.flavors) == len(Flavor):
        return ""
    return ", ".join(sorted(flavor.value for flavor in entry.flavors))


def describe(entry: Entry) -> str:
    """Return the description of one property, for a terminal."""
    lines = [name_of(entry), f"  {entry.doc}"]
    if isinstance(entry, Property):
        lines.append(f"  type:    {entry.kind.label}")
        lines.append(f"  default: {'none, it is required' if entry.required else _default(entry) or 'none'}")
    if servers_of(entry):
        lines.append(f"  only:    {servers_of(entry)}")
    lines.append(f"  status:  {status_of(entry)}")
    if isinstance(entry, Property):
        lines += [f"  {value} is refused: {reason}" for value, reason in entry.refused.items()]
    return "\n".join(lines)


def _default(entry: Entry) -> str:
    exact = exact_default_of(entry)
    return f"{default_of(entry)}; {exact} with rowtide.values=exact" if exact else default_of(entry)


def markdown() -> str:
    """Return the whole catalogue as Markdown tables, a heading for each section."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    for number, section in enumerate(SECTIONS):
        yield from ([""] if number else [])
        yield f"### {section.TITLE}"
        yield ""
        yield "| property | default | meaning | status |"
        yield "| --- | --- | --- | --- |"
        for entry in entries(section):
            default = "**required**" if isinstance(entry, Property) and entry.required else _code(default_of(entry))
            if exact := exact_default_of(entry):
                default += f"; {_code(exact)} with exact values"
            only = f" ({servers_of(entry)} only)" if servers_of(entry) else ""
            yield f"| {_code(name_of(entry))} | {default} | {_cell(entry.doc)}{only} | {_cell(status_of(entry))} |"


def _code(text: str) -> str:
    return f"`{_cell(text)}`" if text else ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
