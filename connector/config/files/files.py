"""Edge: reads configuration files and what they refer to."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rowtide.connector.config.errors import ConfigurationError
from rowtide.connector.config.files.properties_file import PropertiesSyntaxError, parse_properties
from rowtide.connector.config.files.references import Provider

_JSON = frozenset({".json"})
_YAML = frozenset({".yaml", ".yml"})


def read_file(path: Path) -> dict[str, str]:
    """Read a configuration file: JSON or YAML by its ending, anything else as ``.properties``.

    JSON and YAML may nest keys (``database: {port: 3306}``) or write them out (``database.port: 3306``), and may have
    the form of Kafka Connect's REST interface, ``{"name": …, "config": {…}}``.

    Raises:
        ConfigurationError: the file cannot be read, or is not of its format.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigurationError([(str(path), f"cannot be read: {error.strerror or error}")]) from None
    try:
        if path.suffix.lower() in _JSON:
            return flattened(json.loads(content, object_pairs_hook=_no_repetition))
        if path.suffix.lower() in _YAML:
            return flattened(_yaml(content))
        return dict(parse_properties(_text(content)))
    except PropertiesSyntaxError as error:
        raise ConfigurationError([(str(path), str(error))]) from None
    except (ValueError, RecursionError) as error:
        raise ConfigurationError([(str(path), f"is not valid: {error}")]) from None


def _text(content: bytes) -> str:
    """Java reads Latin-1; files that are UTF-8 mean UTF-8."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def _no_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"the key {name!r} is there twice")
        found[name] = value
    return found


def _yaml(content: bytes) -> Any:
    try:
        import yaml  # noqa: PLC0415 - only needed for YAML
    except ModuleNotFoundError:
        raise ValueError("YAML needs the package pyyaml: pip install 'rowtide[connector]'") from None

    def look_for_repetition(node: Any) -> None:
        if isinstance(node, yaml.MappingNode):
            _no_repetition([(str(key.value), value) for key, value in node.value])
            for _, value in node.value:
                look_for_repetition(value)

    try:
        # The base loader keeps every scalar a text, so that 'off' and 007 stay what was written.
        loader = yaml.BaseLoader(content)
        node = loader.get_single_node()
        look_for_repetition(node)
        return None if node is None else loader.construct_document(node)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None


def flattened(document: Any) -> dict[str, str]:
    """One text per dotted name.

    Raises:
        ValueError: not a map at the top, or a name that is there twice.
    """
    if not isinstance(document, Mapping):
        raise ValueError("it must be a map of properties")  # noqa: TRY004 - the file is wrong, not an argument's type
    if set(document) <= {"name", "config"} and isinstance(document.get("config"), Mapping):
        document = {**document["config"], **({"name": document["name"]} if "name" in document else {})}
    flat: dict[str, str] = {}
    _flatten(document, "", flat)
    return flat


def _flatten(value: Any, name: str, flat: dict[str, str]) -> None:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            _flatten(inner, f"{name}.{key}" if name and key else name or str(key), flat)
        return
    if value is None:
        return
    if name in flat:
        raise ValueError(f"the property {name!r} is there twice")
    if isinstance(value, bool):
        flat[name] = "true" if value else "false"
    elif isinstance(value, list):
        if any(isinstance(item, Mapping | list) for item in value):
            raise ValueError(f"{name}: a list may only hold plain values")
        flat[name] = ",".join(map(str, value))
    else:
        flat[name] = str(value)


def providers(environ: Mapping[str, str]) -> dict[str, Provider]:
    """Kafka's FileConfigProvider, EnvVarConfigProvider and DirectoryConfigProvider."""
    known: dict[str, dict[str, str]] = {}

    def from_file(path: str, key: str) -> str:
        if not path:
            raise LookupError("it needs a path and a key: ${file:/path/to/file:key}")
        if path not in known:
            known[path] = dict(parse_properties(_text(_read(Path(path)))))
        if key not in known[path]:
            raise LookupError(f"the file {path} has no key {key!r}")
        return known[path][key]

    def from_environment(path: str, key: str) -> str:
        if path or key not in environ:
            raise LookupError(f"the environment has no variable {key!r}")
        return environ[key]

    def from_directory(path: str, key: str) -> str:
        if not path or "/" in key:
            raise LookupError("it needs a folder and the name of a file in it: ${dir:/path/to/folder:file}")
        return _text(_read(Path(path) / key))

    return {"file": from_file, "env": from_environment, "dir": from_directory}


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise LookupError(f"{path} cannot be read: {error.strerror or error}") from None
