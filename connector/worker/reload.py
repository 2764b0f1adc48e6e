"""Reads the configuration files of a worker again, and finds the changes in them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from rowtide.connector.config import Configuration, ConfigurationError, load
from rowtide.connector.config.conflicts import conflicts

Found = Mapping[str, Configuration | ConfigurationError]
"""The configuration in each connector's file, or what is wrong with it."""


@dataclass(frozen=True, slots=True)
class ConfigurationFiles:
    """The configuration files of a worker, one for each connector, and those of all connectors.

    Attributes:
        read: reads all of them, without deleted files of a directory. It raises ``ConfigurationError`` for errors that
            do not concern a single connector.
        running: the connector of each file, by name.
        several: whether connectors may be added.
    """

    read: Callable[[], Found]
    running: dict[str, str]
    several: bool = False


@dataclass(slots=True)
class Changes:
    """The changes, by file.

    Attributes:
        removed: the files that were deleted, or that have another connector now.
        changed: the connectors whose configuration has changed.
        added: the new connectors.
        rejected: the files with errors, which change nothing.
        unchanged: the number of the others.
    """

    removed: list[str] = field(default_factory=list)
    changed: dict[str, Configuration] = field(default_factory=dict)
    added: dict[str, Configuration] = field(default_factory=dict)
    rejected: dict[str, ConfigurationError] = field(default_factory=dict)
    unchanged: int = 0


def read_each(files: Mapping[str, Sequence[str]], more: Mapping[str, str] | None = None) -> Found:
    """Read the configurations of several connectors.

    Args:
        files: the files of each connector, by the name of its own file.
        more: properties from options, which override those of the files.
    """
    found: dict[str, Configuration | ConfigurationError] = {}
    for name, paths in files.items():
        try:
            found[name] = load(paths, more=more)
        except ConfigurationError as error:
            found[name] = error
    return found


def changes(running: Mapping[str, Configuration], found: Found) -> Changes:
    """Compare the current configurations with those in the files.

    Args:
        running: the current ones, by file.
        found: those in the files.

    Raises:
        ConfigurationError: the connectors could not run in one process.
    """
    result = Changes(removed=[file for file in running if file not in found])
    for file, config in found.items():
        used = running.get(file)
        if isinstance(config, ConfigurationError):
            result.rejected[file] = config
        elif used is None:
            result.added[file] = config
        elif used.name != config.name:
            result.removed.append(file)
            result.added[file] = config
        elif used.fingerprint != config.fingerprint:
            result.changed[file] = config
        else:
            result.unchanged += 1
    kept = {file: config for file, config in running.items() if file not in result.removed}
    if clash := conflicts({**kept, **result.changed, **result.added}):
        raise ConfigurationError(clash)
    return result
