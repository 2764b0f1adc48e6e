"""Resolves references such as ``${file:/etc/secrets.properties:password}`` in values, as Kafka's ConfigProviders do.

Pure: the caller passes the functions that read files and the environment.
"""

import re
from collections.abc import Callable, Mapping
from typing import Protocol

REFERENCE = re.compile(r"\$\{([^}:]*):(?:([^}]*):)?([^}:]*)\}")
"""Groups: provider, path (optional), key."""

CLASSES = {
    "org.apache.kafka.common.config.provider.FileConfigProvider": "file",
    "org.apache.kafka.common.config.provider.EnvVarConfigProvider": "env",
    "org.apache.kafka.common.config.provider.DirectoryConfigProvider": "dir",
}
"""Kafka's providers and the names under which they are always available."""


_UNKNOWN = "names an unknown provider; known are {}. A Kubernetes secret that is mounted as files is ${{dir:/path:key}}"


class Provider(Protocol):
    """Looks up the value of a reference."""

    def __call__(self, path: str, key: str) -> str:
        """Return the value. Raises ``LookupError`` with a message that names what is missing, without secrets."""
        ...


def provider_names(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the names that references may use: file, env, dir, and those defined by ``config.providers``."""
    found = {name: name for name in CLASSES.values()}
    for name in filter(None, (item.strip() for item in properties.get("config.providers", "").split(","))):
        kind = CLASSES.get(properties.get(f"config.providers.{name}.class", ""))
        if kind is not None:
            found[name] = kind
    return found


def names_files(value: str, properties: Mapping[str, str]) -> bool:
    """Return whether all references in a value, and at least one, are to the content of files.

    Args:
        value: the value.
        properties: the properties, which may define providers.
    """
    names = provider_names(properties)
    kinds = {names.get(match[1]) for match in REFERENCE.finditer(value)}
    return bool(kinds) and kinds <= {"file", "dir"}


def resolve(
    properties: Mapping[str, str], providers: Mapping[str, Provider]
) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """Replace every reference by its value.

    Args:
        properties: values with references.
        providers: functions by kind: ``file``, ``env``, ``dir``.

    Returns:
        The properties, and the problems as (property, message). An unresolvable reference stays in its value.
    """
    names = provider_names(properties)
    problems: list[tuple[str, str]] = []

    def replacement(name: str) -> Callable[[re.Match[str]], str]:
        def value(match: re.Match[str]) -> str:
            kind = names.get(match[1])
            if kind is None:
                problems.append((name, f"{match[0]} {_UNKNOWN.format(', '.join(names))}"))
                return match[0]
            try:
                return providers[kind](match[2] or "", match[3])
            except LookupError as error:
                problems.append((name, f"{match[0]} cannot be resolved: {error.args[0]}"))
                return match[0]

        return value

    resolved = {
        name: value if name.startswith("config.providers") else REFERENCE.sub(replacement(name), value)
        for name, value in properties.items()
    }
    return resolved, problems
