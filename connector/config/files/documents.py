"""Reads JSON and YAML documents of configuration files as properties; pure."""

import json
from collections.abc import Mapping
from typing import Any

from rowtide.connector.config.files.layers import Layer
from rowtide.connector.config.files.strimzi import is_resource, properties_of

_REST = frozenset({"name", "config", "initial_state", "tasks", "type"})
"""The fields of a connector in requests to Kafka Connect's REST interface, and in its answers."""


def _unicode(content: bytes) -> str:
    """Return the text of a JSON or YAML file."""
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


def json_document(content: bytes) -> Any:
    """Return the document of a JSON file.

    Raises:
        ValueError: it has a syntax error or a duplicate key; the message names the place and never shows the text.
    """
    text = _unicode(content)
    try:
        return json.loads(text, object_pairs_hook=_unique)
    except json.JSONDecodeError as error:
        raise ValueError(f"JSON syntax error at {_place(text, error.pos)}") from None


def yaml_documents(content: bytes) -> list[Any]:
    """Return the documents of a YAML file, with every scalar as text.

    Raises:
        ValueError: as for JSON, or the package for YAML is not installed.
    """
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
        documents: list[Any] = []
        while loader.check_node():
            node = loader.get_node()
            check_keys(node)
            documents.append(loader.construct_document(node))
    except yaml.reader.ReaderError as error:
        raise ValueError(f"a character that YAML does not allow at {_place(text, error.position)}") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise ValueError(f"YAML syntax error at {_place(text, mark.index if mark else 0)}") from None
    else:
        return documents or [None]


def layer_of(document: Any) -> Layer:
    """Return the properties of a document, which may be a Kubernetes resource.

    Raises:
        ValueError: as for :func:`flattened`.
    """
    if is_resource(document):
        found, notes = properties_of(document)
        return Layer(flattened(found), tuple(notes))
    if isinstance(document, Mapping) and {"apiVersion", "kind"} <= set(document):
        return Layer({}, (f"skipped, because it has no properties of a connector: the {document['kind']}",))
    return Layer(flattened(document))


def flattened(document: Any) -> dict[str, str]:
    """Flatten a document to one text per dotted name.

    Raises:
        ValueError: the document is not a map, or a name is a duplicate.
    """
    if not isinstance(document, Mapping):
        raise ValueError("it must be a map of properties")  # noqa: TRY004 - the file is wrong, not an argument's type
    if set(document) <= _REST and isinstance(document.get("config"), Mapping):
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
