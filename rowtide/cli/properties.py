"""``rowtide properties``: the reference of the configuration properties."""

import difflib
from fnmatch import fnmatchcase

import click

from rowtide.connector.config.catalogue import FAMILIES, PROPERTIES, SECTIONS, entries
from rowtide.connector.config.property_reference import Entry, default_of, describe, markdown, name_of
from rowtide.connector.config.sections.property_reader import family_of

__all__ = ["properties"]


def _names(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in PROPERTIES if name.startswith(incomplete)]


@click.command()
@click.argument("name", required=False, shell_complete=_names)
@click.option("--markdown", "as_markdown", is_flag=True, help="Print the whole reference as Markdown.")
def properties(name: str | None, *, as_markdown: bool) -> None:
    """Show the reference of configuration properties.

    NAME is a property's name, a part of a name, or a pattern in which * stands for any characters and ? for one.
    For each match, prints its meaning, type and default, and whether rowtide supports it. Without NAME, lists the
    names and defaults of all properties.

    \b
    Examples:
      rowtide properties snapshot.mode
      rowtide properties heartbeat
      rowtide properties 'transforms.*'
    """  # noqa: D301 - a backspace is Click's mark of a paragraph that is not to be wrapped
    if as_markdown:
        click.echo(markdown(), nl=False)
    elif name is None:
        _list_all()
    else:
        found = _matches(name)
        if not found:
            raise click.ClickException(f"there is no property {name!r}{_suggestion(name)}")
        click.echo("\n\n".join(describe(entry) for entry in found))


def _list_all() -> None:
    for section in SECTIONS:
        click.secho(section.TITLE, bold=True)
        for entry in entries(section):
            default = default_of(entry)
            click.echo(f"  {name_of(entry)}{f' = {default}' if default else ''}")


def _matches(name: str) -> list[Entry]:
    """Return the one property or family with this name; otherwise all that match it as a pattern or contain it."""
    exact = PROPERTIES.get(name) or next((family for family in FAMILIES if family.form == name), None)
    exact = exact or family_of(name)
    if exact is not None:
        return [exact]
    pattern = name.lower() if "*" in name or "?" in name else f"*{name.lower()}*"
    return [entry for section in SECTIONS for entry in entries(section) if fnmatchcase(name_of(entry).lower(), pattern)]


def _suggestion(name: str) -> str:
    near = difflib.get_close_matches(name, PROPERTIES, n=3, cutoff=0.5)
    return f"; did you mean {', '.join(near)}?" if near else ""
