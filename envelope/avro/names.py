"""Names in Avro: which ones are valid, and how ``scrub.invalid.names`` changes the others.

Source: ``AvroData`` of Confluent's Avro converter 7.0, and ``org.apache.avro.Schema`` 1.11, which does not check
namespaces.
"""

import re
import string
from typing import NamedTuple

_VALID = re.compile(r"[^\W\d]\w*")  # Java's letters and digits of any alphabet, and the underscore


class AvroName(NamedTuple):
    """The name of a record."""

    namespace: str
    name: str

    @property
    def full(self) -> str:
        """The name with its namespace."""
        return f"{self.namespace}.{self.name}" if self.namespace else self.name


def record_name(name: str, *, scrub: bool) -> AvroName:
    """Return the Avro name of a Connect schema's name: its namespace is everything before the last dot.

    Raises:
        ValueError: the last part is not a valid name, and is not scrubbed.
    """
    namespace, _, last = name.rpartition(".")
    if scrub:
        return AvroName(".".join(map(scrubbed, namespace.split("."))) if namespace else "", scrubbed(last))
    _check(last, f"the schema name {name!r}", "schema.name.adjustment.mode")
    return AvroName(namespace, last)


def checked_field_name(name: str) -> str:
    """Return the name of a field.

    Raises:
        ValueError: it is not valid.
    """
    _check(name, f"the field {name!r}", "field.name.adjustment.mode")
    return name


def scrubbed(name: str, first: str = string.digits) -> str:
    """Return the name with invalid characters replaced (``scrub.invalid.names``).

    Characters that a URL keeps or writes as ``+`` (``-``, ``.``, ``*`` and a blank) become ``_``; other invalid ones
    become ``_`` and the hexadecimal digits of each of their bytes in UTF-8.

    Args:
        name: the name.
        first: characters that ``x`` precedes at the beginning.
    """
    if name and name[0] in first:
        name = "x" + name
    return re.sub(r"[^A-Za-z0-9_]", _replaced, name)


def _replaced(match: re.Match[str]) -> str:
    character = match.group()
    if character in "-.* ":
        return "_"
    return "".join(f"_{byte:02X}" for byte in character.encode("utf-8", "replace"))


def _check(name: str, subject: str, setting: str) -> None:
    if _VALID.fullmatch(name) is None:
        raise ValueError(
            f"{subject} is not valid in Avro: a name has letters, digits and underscores, and does not begin with a "
            f"digit. Set {setting}=avro or avro_unicode"
        )
