"""Loads a configuration from a file, the environment and the files that references name."""

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from rowtide.connector.config.catalogue import PROPERTIES
from rowtide.connector.config.catalogue.connection import RENEWED
from rowtide.connector.config.errors import ConfigurationError, Problem
from rowtide.connector.config.files.config_providers import names_files, resolve
from rowtide.connector.config.files.environment import overrides
from rowtide.connector.config.files.files import providers, read_bytes, read_files
from rowtide.connector.config.files.layers import Layer
from rowtide.connector.config.kafka.java_stores import without_stores
from rowtide.connector.config.model import Configuration, Properties
from rowtide.connector.config.sections.connector import build

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
"""A configuration file, or several, each of which overrides those before it."""


def load(
    paths: Paths,
    environ: Mapping[str, str] = os.environ,
    not_required: Collection[str] = (),
    more: Mapping[str, str] | None = None,
) -> Configuration:
    """Load configuration files, apply overrides from the environment, and resolve references.

    Args:
        paths: ``.properties``, ``.json``, ``.yaml``, ``.yml`` or ``.env``.
        environ: the environment, for ``ROWTIDE_…`` overrides and ``${env:…}``.
        not_required: names of properties that may be absent, or whose references may be unresolvable.
        more: properties that override those of the files.

    Raises:
        ConfigurationError: with all problems.
    """
    configuration, problems = _load(paths, environ, not_required, more or {})
    if problems:
        raise ConfigurationError(problems)
    return configuration


def load_invalid(paths: Paths, more: Mapping[str, str] | None = None) -> tuple[Configuration, tuple[Problem, ...]]:
    """Load configuration files that may have problems, as ``load`` does.

    Returns:
        The configuration, in which invalid properties have their defaults, and all problems.

    Raises:
        ConfigurationError: a file cannot be read, or has a syntax error.
    """
    return _load(paths, os.environ, (), more or {})


def read_properties(
    paths: Paths, environ: Mapping[str, str] = os.environ
) -> tuple[dict[str, str], tuple[Problem, ...]]:
    """Read the properties of files and the environment without checking them.

    Returns:
        The values with references resolved, and the problems of unresolvable references, which stay as written.

    Raises:
        ConfigurationError: a file cannot be read, or has a syntax error.
    """
    _, resolved, _, _, problems = _resolved(_files(paths).properties, environ)
    return resolved, tuple(Problem(*problem) for problem in problems)


def read_written_properties(paths: Paths, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Read the properties of files and the environment as they are written, with references.

    Raises:
        ConfigurationError: a file cannot be read, or has a syntax error.
    """
    written, _, _, _, _ = _resolved(_files(paths).properties, environ)
    return written


def from_properties(
    properties: Mapping[str, str], environ: Mapping[str, str] | None = None, not_required: Collection[str] = ()
) -> Configuration:
    """Build a configuration from properties.

    Args:
        properties: texts by name; they may contain references.
        environ: the environment, for ``ROWTIDE_…`` overrides and ``${env:…}``; empty by default.
        not_required: names of properties that may be absent, or whose references may be unresolvable.

    Raises:
        ConfigurationError: with all problems.
    """
    configuration, problems = _read(properties, environ or {}, not_required)
    if problems:
        raise ConfigurationError(problems)
    return configuration


def _files(paths: Paths) -> Layer:
    several = [paths] if isinstance(paths, str | os.PathLike) else paths
    return read_files([Path(path) for path in several], PROPERTIES)


def _load(
    paths: Paths, environ: Mapping[str, str], not_required: Collection[str], more: Mapping[str, str]
) -> tuple[Configuration, tuple[Problem, ...]]:
    files = _files(paths)
    configuration, problems = _read({**files.properties, **more}, environ, not_required)
    configuration = replace(configuration, warnings=(*files.notes, *configuration.warnings))
    return configuration, (*(Problem(*problem) for problem in files.problems), *problems)


def _read(
    properties: Mapping[str, str], environ: Mapping[str, str], not_required: Collection[str]
) -> tuple[Configuration, tuple[Problem, ...]]:
    written, resolved, file_values, sources, problems = _resolved(properties, environ)
    problems = [problem for problem in problems if problem[0] not in not_required]
    unresolved = {name for name, _ in problems}  # what else is wrong with their values does not matter
    configuration, more = build(resolved, written, not_required)
    configuration = replace(configuration, file_values=file_values)
    more = [_as_written(problem, written, resolved) for problem in more if problem.property not in unresolved]
    return configuration, tuple(Problem(_named(name, sources), message) for name, message in [*problems, *more])


def _as_written(problem: Problem, written: Mapping[str, str], resolved: Mapping[str, str]) -> Problem:
    """Return a problem that shows a reference instead of its value, which may be a secret."""
    name, message = problem
    given, value = written.get(name, ""), resolved.get(name, "")
    if given == value or not value:
        return problem
    return Problem(name, message.replace(value, given).replace(repr(value)[1:-1], given))


def _resolved(
    properties: Mapping[str, str], environ: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str], Properties, dict[str, str], list[tuple[str, str]]]:
    """Return texts as written and as resolved, those read from files, the overriding variables, and problems."""
    written = dict(properties)
    sources: dict[str, str] = {}
    for name, (variable, value) in overrides(environ, [*properties, *PROPERTIES]).items():
        written[name] = value
        sources[name] = variable
    resolved, problems = resolve(written, providers(environ))
    files = {name: resolved[name] for name in written.keys() - RENEWED if names_files(written[name], written)}
    resolved, more = without_stores(resolved, read_bytes)
    problems += more
    return written, resolved, Properties(files), sources, problems


def _named(name: str, sources: Mapping[str, str]) -> str:
    return f"{name} (from {sources[name]})" if name in sources else name
