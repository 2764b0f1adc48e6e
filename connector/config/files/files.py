"""Edge: reads configuration files, and the files and variables that references name."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rowtide.connector.config.errors import ConfigurationError
from rowtide.connector.config.files.config_providers import Provider
from rowtide.connector.config.files.properties_file import PropertiesSyntaxError, parse_properties

_JSON = frozenset({".json"})
_YAML = frozenset({".yaml", ".yml"})


def read_file(path: Path) -> dict[str, str]:
    """Read a configuration file: JSON or YAML by its suffix, everything else as ``.properties``.

    JSON and YAML may nest keys (``database: {port: 3306}``) or write them out (``database.port: 3306``), and may have
    the format of Kafka Connect's REST interface, ``{"name": …, "config": {…}}``.

    Raises:
        ConfigurationError: the file cannot be read, or has a syntax error. The message names line and column and never
            shows the line, which may contain a secret.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigurationError([(str(path), f"cannot be read: {error.strerror or error}")]) from None
    try:
        if path.suffix.lower() in _JSON:
            return flattened(_json(content))
        if path.suffix.lower() in _YAML:
            return flattened(_yaml(content))
        return dict(parse_properties(_text(content)))
    except PropertiesSyntaxError as error:
        raise ConfigurationError([(str(path), str(error))]) from None
    except (ValueError, RecursionError) as error:
        raise ConfigurationError([(str(path), f"is not valid: {error}")]) from None


def _text(content: bytes) -> str:
    """The text of a properties file: UTF-8, or else Latin-1, which Java reads."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def _unicode(content: bytes) -> str:
    """The text of a JSON or YAML file."""
    encoding = json.detect_encoding(content)
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        before = content[: error.start].decode(encoding, "replace")
        raise ValueError(f"not {encoding} text at {_place(before, len(before))}") from None


def _place(text: str, at: int) -> str:
    return f"line {text.count(chr(10), 0, at) + 1}, column {at - text.rfind(chr(10), 0, at)}"


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"duplicate key {name!r}")
        found[name] = value
    return found


def _json(content: bytes) -> Any:
    text = _unicode(content)
    try:
        return json.loads(text, object_pairs_hook=_unique)
    except json.JSONDecodeError as error:
        raise ValueError(f"JSON syntax error at {_place(text, error.pos)}") from None


def _yaml(content: bytes) -> Any:
    try:
        import yaml  # noqa: PLC0415 - only needed for YAML
    except ModuleNotFoundError:
        raise ValueError("YAML needs the package pyyaml: pip install 'rowtide[connector]'") from None

    def check_keys(node: Any) -> None:
        if isinstance(node, yaml.MappingNode):
            for key, _ in node.value:
                if not isinstance(key, yaml.ScalarNode):
                    place = _place(text, key.start_mark.index)
                    raise ValueError(f"a key is not plain text at {place}")  # noqa: TRY004 - the file is wrong
            _unique([(key.value, value) for key, value in node.value])
            for _, value in node.value:
                check_keys(value)

    text = _unicode(content)
    try:
        # The base loader keeps every scalar as text, so that 'off' and 007 stay as written.
        loader = yaml.BaseLoader(text)
        node = loader.get_single_node()
        check_keys(node)
        return None if node is None else loader.construct_document(node)
    except yaml.reader.ReaderError as error:
        raise ValueError(f"a character that YAML does not allow at {_place(text, error.position)}") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise ValueError(f"YAML syntax error at {_place(text, mark.index if mark else 0)}") from None


def flattened(document: Any) -> dict[str, str]:
    """Flatten a document to one text per dotted name.

    Raises:
        ValueError: the document is not a map, or a name is a duplicate.
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
        raise ValueError(f"duplicate property {name!r}")
    if isinstance(value, bool):
        flat[name] = "true" if value else "false"
    elif isinstance(value, list):
        if any(isinstance(item, Mapping | list) for item in value):
            raise ValueError(f"{name}: a list may only hold plain values")
        flat[name] = ",".join(map(str, value))
    else:
        flat[name] = str(value)


def providers(environ: Mapping[str, str]) -> dict[str, Provider]:
    """The providers of references: Kafka's FileConfigProvider, EnvVarConfigProvider and DirectoryConfigProvider."""
    known: dict[str, dict[str, str]] = {}

    def from_file(path: str, key: str) -> str:
        if not path:
            raise LookupError("it needs a path and a key: ${file:/path/to/file:key}")
        if path not in known:
            try:
                known[path] = dict(parse_properties(_text(_read(Path(path)))))
            except PropertiesSyntaxError as error:
                raise LookupError(f"{path}: {error}") from None
        if key not in known[path]:
            raise LookupError(f"the file {path} has no key {key!r}")
        return known[path][key]

    def from_environment(path: str, key: str) -> str:
        if path or key not in environ:
            raise LookupError(f"the environment has no variable {key!r}")
        return environ[key]

    def from_directory(path: str, key: str) -> str:
        if not path or "/" in key:
            raise LookupError("it needs a directory and the name of a file in it: ${dir:/path/to/directory:file}")
        return _text(_read(Path(path) / key))

    return {"file": from_file, "env": from_environment, "dir": from_directory}


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise LookupError(f"{path} cannot be read: {error.strerror or error}") from None
