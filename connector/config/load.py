"""From a file and the environment to a configuration."""

import os
from collections.abc import Collection, Mapping
from pathlib import Path

from rowtide.connector.config.catalogue import PROPERTIES
from rowtide.connector.config.errors import ConfigurationError, Problem
from rowtide.connector.config.files.environment import overrides
from rowtide.connector.config.files.files import providers, read_file
from rowtide.connector.config.files.references import resolve
from rowtide.connector.config.model import Configuration
from rowtide.connector.config.sections.connector import build


def load(
    path: str | os.PathLike[str],
    environ: Mapping[str, str] = os.environ,
    unneeded: Collection[str] = (),
    more: Mapping[str, str] | None = None,
) -> Configuration:
    """Read a configuration file, with overrides from the environment and references resolved.

    Args:
        path: ``.properties``, ``.json``, ``.yaml`` or ``.yml``.
        environ: for ``ROWTIDE_…`` overrides and ``${env:…}``.
        unneeded: names of properties that may be left out, or refer to what is not there, for once.
        more: properties over those of the file.

    Raises:
        ConfigurationError: with every problem that was found.
    """
    return from_properties({**read_file(Path(path)), **(more or {})}, environ, unneeded)


def read_properties(
    path: str | os.PathLike[str], environ: Mapping[str, str] = os.environ
) -> tuple[dict[str, str], tuple[Problem, ...]]:
    """Read the properties that a file and the environment give, without checking them.

    Returns:
        The values, with references resolved, and the problems of those that could not be; these are left as written.

    Raises:
        ConfigurationError: the file cannot be read, or is not of its format.
    """
    _, resolved, _, problems = _resolved(read_file(Path(path)), environ)
    return resolved, tuple(Problem(*problem) for problem in problems)


def from_properties(
    properties: Mapping[str, str], environ: Mapping[str, str] | None = None, unneeded: Collection[str] = ()
) -> Configuration:
    """Make a configuration of properties that are at hand.

    Args:
        properties: by name, values may have references.
        environ: for ``ROWTIDE_…`` overrides and ``${env:…}``; by default nothing.
        unneeded: names of properties that may be left out, or refer to what is not there, for once.

    Raises:
        ConfigurationError: with every problem that was found.
    """
    written, resolved, sources, problems = _resolved(properties, environ or {})
    problems = [problem for problem in problems if problem[0] not in unneeded]
    try:
        configuration = build(resolved, written, unneeded)
    except ConfigurationError as error:
        problems += error.problems
    if problems:
        raise ConfigurationError((_named(name, sources), message) for name, message in problems)
    return configuration


def _resolved(
    properties: Mapping[str, str], environ: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str], dict[str, str], list[tuple[str, str]]]:
    """Values as written and resolved, variables that overrode some, and problems of references."""
    written = dict(properties)
    sources: dict[str, str] = {}
    for name, (variable, value) in overrides(environ, [*properties, *PROPERTIES]).items():
        written[name] = value
        sources[name] = variable
    resolved, problems = resolve(written, providers(environ))
    return written, resolved, sources, problems


def _named(name: str, sources: Mapping[str, str]) -> str:
    return f"{name} (from {sources[name]})" if name in sources else name
