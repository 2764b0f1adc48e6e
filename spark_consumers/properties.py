"""What ``rowtide tables`` takes from a connector's configuration file: where Kafka is, and the topics' prefix."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from rowtide.spark_consumers.errors import SettingsError

_CLIENT = ("security.", "sasl.", "ssl.")


def read_properties(path: Path) -> dict[str, str]:
    """Properties of a Java ``.properties`` file, a JSON object or a YAML mapping.

    Raises:
        SettingsError: the file cannot be read or is something else.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise SettingsError(f"cannot read {path}: {error.strerror}") from error
    if path.suffix == ".json":
        return _from_json(path, text)
    if path.suffix in {".yaml", ".yml"}:
        return _from_yaml(path, text)
    return dict(_from_java(text))


def _from_json(path: Path, text: str) -> dict[str, str]:
    try:
        content = json.loads(text)
    except ValueError as error:
        raise SettingsError(f"{path} is not JSON: {error}") from error
    return _strings(path, content)


def _from_yaml(path: Path, text: str) -> dict[str, str]:
    try:
        import yaml  # noqa: PLC0415 - comes with the connector, not with Spark
    except ModuleNotFoundError as error:
        raise SettingsError(
            f"{path}: YAML needs the package pyyaml, which is not installed. Install it, or give --bootstrap-servers "
            f"and --topic-prefix"
        ) from error
    try:
        return _strings(path, yaml.safe_load(text))
    except yaml.YAMLError as error:
        raise SettingsError(f"{path} is not YAML: {error}") from error


def _strings(path: Path, content: object) -> dict[str, str]:
    if isinstance(content, dict) and isinstance(content.get("config"), dict):
        content = content["config"]  # as it is posted to Kafka Connect
    if not isinstance(content, dict):
        raise SettingsError(f"{path} holds no object of properties")
    return {str(name): str(value) for name, value in content.items()}


def _from_java(text: str) -> Iterator[tuple[str, str]]:
    joined = text.replace("\\\r\n", "\n").replace("\\\n", "\0")
    for raw in joined.splitlines():
        line = "".join(part.lstrip() for part in raw.split("\0"))
        if line and line[0] not in "#!":
            cut = min((place for mark in "=:" if (place := line.find(mark)) >= 0), default=len(line))
            yield line[:cut].strip(), line[cut + 1 :].strip()


def client_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Those that a Kafka client needs.

    Raises:
        SettingsError: one of them is a reference, which only the worker resolves.
    """
    found = {
        name: value for name, value in properties.items() if name.startswith(_CLIENT) or name == "bootstrap.servers"
    }
    for name, value in found.items():
        if "${" in value:
            raise SettingsError(f"property {name} is a reference; give it here with --kafka-property {name}=...")
    return found
