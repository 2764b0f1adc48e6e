"""Converts the stores of Java's Kafka clients to PEM, which librdkafka reads; pure: the caller reads the files."""

import re
from collections.abc import Callable, Mapping

from rowtide.connector.config.files.key_stores import kind_of, pem, read_key_store

_LOCATION = re.compile(r"(?P<prefix>|.*\.)ssl\.(?P<which>truststore|keystore)\.location")
_PEM = (".pem", ".crt", ".cer", ".p12", ".pfx")


def without_stores(
    properties: Mapping[str, str], read: Callable[[str], bytes]
) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """Replace the locations of Java's stores by their content, under the names that Java's clients use for PEM.

    Key stores in PKCS#12 stay: librdkafka reads them itself.

    Args:
        properties: properties with references resolved.
        read: reads a file; raises ``LookupError`` with a message.

    Returns:
        The properties, and the problems as (property, message).
    """
    found = dict(properties)
    problems: list[tuple[str, str]] = []
    for name, location in properties.items():
        match = _LOCATION.fullmatch(name)
        if match is None or not location.strip():
            continue
        prefix, which = match["prefix"], match["which"]
        store = f"{prefix}ssl.{which}."
        try:
            content = read(location)
        except LookupError as error:
            if not location.lower().endswith(_PEM):  # else librdkafka reports it
                problems.append((name, str(error.args[0])))
                del found[name]
            continue
        kind = kind_of(content)
        if kind == "PEM" or (kind == "PKCS12" and which == "keystore"):
            found[f"{store}type"] = kind
            continue
        for gone in ("location", "password", "type"):
            found.pop(f"{store}{gone}", None)
        try:
            passwords = properties.get(f"{store}password"), properties.get(f"{prefix}ssl.key.password")
            keys = read_key_store(content, *passwords)
        except ValueError as error:
            problems.append((name, f"{location} cannot be used: {error}"))
            continue
        if which == "truststore":
            found[f"{store}certificates"] = "".join(pem("CERTIFICATE", one) for one in keys.certificates)
        elif keys.key is None:
            problems.append((name, f"{location} has no private key, or {store}password is missing"))
        else:
            found.pop(f"{prefix}ssl.key.password", None)
            found[f"{store}certificate.chain"] = "".join(pem("CERTIFICATE", one) for one in keys.chain)
            found[f"{store}key"] = pem("PRIVATE KEY", keys.key)
    return found, problems
