"""The commands of a connector, ``rowtide check`` and ``rowtide run``, and how commands read its configuration."""

from collections.abc import Collection, Mapping

import click

from rowtide.connector.config import Configuration, ConfigurationError, load

__all__ = ["CONFIG", "read_configuration"]

CONFIG = click.Path(exists=True, dir_okay=False)
"""The argument that names a configuration file."""


def read_configuration(
    path: str, not_required: Collection[str] = (), more: Mapping[str, str] | None = None
) -> Configuration:
    """Read the configuration of a command.

    Args:
        path: the configuration file.
        not_required: names of required properties that this command does not need.
        more: properties from options, which override those of the file.

    Raises:
        click.ClickException: the configuration has errors; the message lists all of them.
    """
    try:
        return load(path, not_required=not_required, more=more)
    except ConfigurationError as error:
        raise click.ClickException(str(error)) from None
