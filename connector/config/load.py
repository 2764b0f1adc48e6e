"""From a file and the environment to a configuration."""

import os
from collections.abc import Collection, Mapping
from pathlib import Path

from rowtide.connector.config.build import build
from rowtide.connector.config.catalogue import PROPERTIES
from rowtide.connector.config.environment import overrides
from rowtide.connector.config.errors import ConfigurationError
from rowtide.connector.config.files import providers, read_file
from rowtide.connector.config.model import Configuration
from rowtide.connector.config.references import resolve


def load(
    path: str | os.PathLike[str], environ: Mapping[str, str] = os.environ, unneeded: Collection[str] = ()
) -> Configuration:
    """Read a configuration file, with overrides from the environment and references resolved.

    Args:
        path: ``.properties``, ``.json``, ``.yaml`` or ``.yml``.
        environ: for ``ROWTIDE_…`` overrides and ``${env:…}``.
        unneeded: names of required properties that may be left out for once.

    Raises:
        ConfigurationError: with every problem that was found.
    """
    return from_properties(read_file(Path(path)), environ, unneeded)


def from_properties(
    properties: Mapping[str, str], environ: Mapping[str, str] | None = None, unneeded: Collection[str] = ()
) -> Configuration:
    """Make a configuration of properties that are at hand.

    Args:
        properties: by name, values may have references.
        environ: for ``ROWTIDE_…`` overrides and ``${env:…}``; by default nothing.
        unneeded: names of required properties that may be left out for once.

    Raises:
        ConfigurationError: with every problem that was found.
    """
    environ = environ or {}
    written = dict(properties)
    sources: dict[str, str] = {}
    for name, (variable, value) in overrides(environ, [*properties, *PROPERTIES]).items():
        written[name] = value
        sources[name] = variable
    resolved, problems = resolve(written, providers(environ))
    try:
        configuration = build(resolved, written, unneeded)
    except ConfigurationError as error:
        problems += error.problems
    if problems:
        raise ConfigurationError((_named(name, sources), message) for name, message in problems)
    return configuration


def _named(name: str, sources: Mapping[str, str]) -> str:
    return f"{name} (from {sources[name]})" if name in sources else name
