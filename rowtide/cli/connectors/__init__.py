"""The commands of a connector, ``rowtide check`` and ``rowtide run``, and how commands read its configuration."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar

import click

from rowtide.connector.config import Configuration, ConfigurationError, load
from rowtide.connector.config.conflicts import conflicts

__all__ = [
    "CONFIG",
    "IGNORE_UNSUPPORTED",
    "config_argument",
    "ignore_unsupported_option",
    "read_configuration",
    "read_configurations",
]

CONFIG = click.Path(exists=True, dir_okay=False)
"""The type of arguments and options that name configuration files."""

F = TypeVar("F", bound=Callable[..., Any])


def config_argument(*, required: bool = True) -> Callable[[F], F]:
    """The argument CONFIG..., one or more configuration files."""
    return click.argument("config", metavar="CONFIG...", nargs=-1, required=required, type=CONFIG)


IGNORE_UNSUPPORTED = {"rowtide.ignore.unsupported": "true"}
"""The property that the option sets."""


def ignore_unsupported_option(function: F) -> F:
    """The option --ignore-unsupported."""
    return click.option(
        "--ignore-unsupported",
        is_flag=True,
        help="Leave out properties of Debezium that rowtide does not support, where all records stay the same, and "
        "list them.",
    )(function)


def read_configurations(
    common: Sequence[str], connectors: Sequence[str], more: Mapping[str, str]
) -> dict[str, Configuration]:
    """Read the configurations of one or several connectors.

    Args:
        common: files with the properties of all connectors, or of the only one.
        connectors: a file for each of several connectors, which overrides the common ones.
        more: properties from options, which override those of the files.

    Returns:
        The configurations, by their files.

    Raises:
        click.ClickException: there is no file, or the configurations have errors; the message lists all of them.
    """
    if not common and not connectors:
        raise click.UsageError("a configuration is needed: CONFIG... or --connector FILE")
    found: dict[str, Configuration] = {}
    problems: list[str] = []
    for one in dict.fromkeys(connectors) or [""]:
        files = [*common, *([one] if one else [])]
        try:
            found[one or files[-1]] = load(files, more=more)
        except ConfigurationError as error:
            problems.append(f"{one}: {error}" if one else str(error))
    if len(set(connectors)) < len(connectors):
        problems.append("--connector: the same file is given twice")
    if clash := conflicts(found):
        problems.append(str(ConfigurationError(clash)))
    if problems:
        raise click.ClickException("\n".join(problems))
    return found


def read_configuration(
    paths: Sequence[str], not_required: Collection[str] = (), more: Mapping[str, str] | None = None
) -> Configuration:
    """Read the configuration of a command.

    Args:
        paths: the configuration files; each overrides those before it.
        not_required: names of required properties that this command does not need.
        more: properties from options, which override those of the file.

    Raises:
        click.ClickException: the configuration has errors; the message lists all of them.
    """
    try:
        return load(paths, not_required=not_required, more=more)
    except ConfigurationError as error:
        raise click.ClickException(str(error)) from None
