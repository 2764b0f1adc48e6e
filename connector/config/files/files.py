"""Reads configuration files, and the files and variables that references name."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from rowtide.connector.config.errors import ConfigurationError, Problem
from rowtide.connector.config.files.config_providers import Provider
from rowtide.connector.config.files.container_environment import is_environment, parse_environment_file
from rowtide.connector.config.files.container_environment import translate as translate_environment
from rowtide.connector.config.files.debezium_server import is_debezium_server
from rowtide.connector.config.files.debezium_server import translate as translate_debezium_server
from rowtide.connector.config.files.documents import json_document, layer_of, yaml_documents
from rowtide.connector.config.files.layers import Layer, merged
from rowtide.connector.config.files.properties_file import PropertiesSyntaxError, parse_properties

_JSON = frozenset({".json"})
_YAML = frozenset({".yaml", ".yml"})
_VARIABLES = frozenset({".env"})
SUFFIXES = _JSON | _YAML | _VARIABLES | {".properties"}
"""The suffixes of configuration files."""


def read_files(paths: Iterable[Path], known: Iterable[str] = ()) -> Layer:
    """Read configuration files; each overrides those before it. See ``layers.merged`` for converters.

    Args:
        paths: the files.
        known: names of properties, whose upper-case letters are restored in names of variables.

    Raises:
        ConfigurationError: files cannot be read, or have syntax errors.
    """
    layers: list[Layer] = []
    problems: list[Problem] = []
    for path in paths:
        try:
            layers.append(read_file(path, known))
        except ConfigurationError as error:
            problems += error.problems
    if problems:
        raise ConfigurationError(problems)
    return merged(layers) if len(layers) > 1 else layers[0]


def read_file(path: Path, known: Iterable[str] = ()) -> Layer:
    """Read a configuration file: JSON, YAML or variables (``.env``) by its suffix, everything else as ``.properties``.

    JSON and YAML may nest keys (``database: {port: 3306}``) or use full names (``database.port: 3306``), and may have
    the format of Kafka Connect's REST interface, ``{"name": …, "config": {…}}``, or be resources of Strimzi.
    Configurations of Debezium Server and the variables of containers are translated.

    Raises:
        ConfigurationError: the file cannot be read, or has a syntax error. The message names line and column and never
            shows the line, which may contain a secret.
    """
    try:
        content = path.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: the path contains a zero byte
        raise ConfigurationError(
            [(str(path), f"cannot be read: {getattr(error, 'strerror', None) or error}")]
        ) from None
    try:
        layer = _parsed(path, content)
    except PropertiesSyntaxError as error:
        raise ConfigurationError([(str(path), str(error))]) from None
    except (ValueError, RecursionError) as error:
        raise ConfigurationError([(str(path), f"is not valid: {error}")]) from None
    if is_environment(layer.properties):
        layer = _after(layer, translate_environment(layer.properties, known))
    if is_debezium_server(layer.properties):
        layer = _after(layer, translate_debezium_server(layer.properties))
    return layer


def _after(first: Layer, then: Layer) -> Layer:
    """Return a translated layer, with the notes of the original."""
    return then._replace(notes=(*first.notes, *then.notes))


def _parsed(path: Path, content: bytes) -> Layer:
    suffix = path.suffix.lower() or path.name.lower()
    if suffix in _JSON:
        return layer_of(json_document(content))
    if suffix in _YAML:
        return merged([layer_of(document) for document in yaml_documents(content)])
    if suffix in _VARIABLES:
        return Layer(parse_environment_file(_text(content)))
    return Layer(dict(parse_properties(_text(content))))


def _text(content: bytes) -> str:
    """Return the text of a properties file: UTF-8, or else Latin-1, which Java reads."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def providers(environ: Mapping[str, str]) -> dict[str, Provider]:
    """Return the providers of references: Kafka's for files, variables of the environment and directories."""
    known: dict[str, dict[str, str]] = {}

    def from_file(path: str, key: str) -> str:
        if not path:
            raise LookupError("it needs a path and a key: ${file:/path/to/file:key}")
        if path not in known:
            try:
                known[path] = dict(parse_properties(_text(read_bytes(path))))
            except PropertiesSyntaxError as error:
                raise LookupError(f"{path}: {error}") from None
        if key not in known[path]:
            raise LookupError(f"the file {path} has no key {key!r}")
        return known[path][key]

    def from_environment(path: str, key: str) -> str:
        if path or key not in environ:
            raise LookupError(f"the environment variable {key} is not set")
        return environ[key]

    def from_directory(path: str, key: str) -> str:
        if not path or "/" in key:
            raise LookupError("it needs a directory and the name of a file in it: ${dir:/path/to/directory:file}")
        return _text(read_bytes(Path(path) / key))

    return {"file": from_file, "env": from_environment, "dir": from_directory}


def read_bytes(path: str | Path) -> bytes:
    """Return the content of a file that a property names.

    Raises:
        LookupError: it cannot be read.
    """
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:  # ValueError: the path contains a zero byte
        raise LookupError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
