"""Translates settings of Kafka clients to librdkafka's names; Java's and librdkafka's names are both accepted. Pure.

A setting of the Java client without a counterpart is a problem that names the reason.
"""

import enum
import errno
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rowtide.connector.config.errors import Problem
from rowtide.connector.config.kafka.librdkafka import ALIASES, SETTINGS
from rowtide.schema_history.store.client_limits import CLIENT_LIMITS

Translated = Mapping[str, str] | str
"""librdkafka's settings for one of Java's, or the reason why there are none."""


class ClientKind(enum.StrEnum):
    """The kinds of Kafka clients."""

    PRODUCER = "producer"
    CONSUMER = "consumer"
    ADMIN = "admin"


class ClientSettings(dict[str, str]):
    """Settings with librdkafka's names, without synonyms. ``str()`` and ``repr()`` contain names only, no values."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"ClientSettings({', '.join(sorted(self))})"

    __str__ = __repr__

    def over(self, defaults: Mapping[str, str]) -> "ClientSettings":
        """Return these settings, with defaults for those that are not set."""
        return ClientSettings({**defaults, **self})


DEFAULTS = ClientSettings({"reconnect.backoff.ms": "10", **CLIENT_LIMITS})
"""For all clients. A new one does not look for its broker again before half of this time, which is 50 ms by default.

The wait doubles with each attempt that fails, up to ``reconnect.backoff.max.ms``.
"""


def _kibibytes(value: str) -> Translated:
    return {"queue.buffering.max.kbytes": str(max(1, -(-int(value) // 1024)))}


def _buffer(name: str) -> Callable[[str], Translated]:
    return lambda value: {name: "0" if value.strip() == "-1" else value}


def _renamed(name: str) -> Callable[[str], Translated]:
    return lambda value: {name: value}


def _identification(value: str) -> Translated:
    return {"ssl.endpoint.identification.algorithm": value.strip().lower() or "none"}


def _partitioner(value: str) -> Translated:
    known = {"org.apache.kafka.clients.producer.internals.DefaultPartitioner": "murmur2_random"}
    return (
        {"partitioner": known[value]}
        if value in known
        else "Java classes cannot be loaded; see librdkafka's partitioner"
    )


_JAAS_OPTION = re.compile(r"(\w+)\s*=\s*(?:\"((?:[^\"\\]|\\.)*)\"|'((?:[^'\\]|\\.)*)'|([^\s;\"']+))")


def _jaas(value: str) -> Translated:
    """Return user and password, or keytab and principal, from the configuration of a JAAS login module."""
    match = re.fullmatch(r"\s*([\w.$]+)\s+(?:required|requisite|sufficient|optional)\b(.*?);?\s*", value, re.DOTALL)
    if match is None:
        return "it is not of the form 'LoginModule required name=\"value\" …;'"
    module = match[1].rpartition(".")[2]
    options = {
        option[1]: re.sub(r"\\(.)", r"\1", next(text for text in option.groups()[1:] if text is not None))
        for option in _JAAS_OPTION.finditer(match[2])
    }
    if module in ("PlainLoginModule", "ScramLoginModule"):
        if not {"username", "password"} <= options.keys():
            return f"{module} needs username and password"
        return {"sasl.username": options["username"], "sasl.password": options["password"]}
    if module == "Krb5LoginModule":
        names = {"keyTab": "sasl.kerberos.keytab", "principal": "sasl.kerberos.principal"}
        return {name: options[option] for option, name in names.items() if option in options}
    if module == "OAuthBearerLoginModule":
        names = {
            "clientId": "sasl.oauthbearer.client.id",
            "clientSecret": "sasl.oauthbearer.client.secret",
            "scope": "sasl.oauthbearer.scope",
        }
        found = {name: options[option] for option, name in names.items() if option in options}
        return {"sasl.oauthbearer.method": "oidc", **found} if found else {}
    return f"the login module {match[1]} is not supported; PlainLoginModule, ScramLoginModule, Krb5LoginModule are"


_NO_JAVA = "it names a Java class, which cannot be loaded"
_MONITORING = "io.confluent.monitoring."


def _interceptors(value: str) -> Translated:
    """Accept Confluent's monitoring, which changes no record; reject other interceptors, which could."""
    return {} if all(name.strip().startswith(_MONITORING) for name in value.split(",") if name.strip()) else _NO_JAVA


_STORES = "only PEM files can be read, not Java key stores; convert it: keytool -exportcert -rfc -keystore …"

_JAVA: dict[str, Callable[[str], Translated]] = {
    "buffer.memory": _kibibytes,
    "max.request.size": _renamed("message.max.bytes"),
    "compression.gzip.level": _renamed("compression.level"),
    "compression.lz4.level": _renamed("compression.level"),
    "compression.zstd.level": _renamed("compression.level"),
    "fetch.max.wait.ms": _renamed("fetch.wait.max.ms"),
    "send.buffer.bytes": _buffer("socket.send.buffer.bytes"),
    "receive.buffer.bytes": _buffer("socket.receive.buffer.bytes"),
    "ssl.endpoint.identification.algorithm": _identification,
    "ssl.truststore.certificates": _renamed("ssl.ca.pem"),
    "ssl.keystore.certificate.chain": _renamed("ssl.certificate.pem"),
    "ssl.keystore.key": _renamed("ssl.key.pem"),
    "sasl.jaas.config": _jaas,
    "partitioner.class": _partitioner,
    "key.serializer": lambda _: "rowtide writes the bytes that key.converter makes",
    "value.serializer": lambda _: "rowtide writes the bytes that value.converter makes",
    "key.deserializer": lambda _: "rowtide reads bytes",
    "value.deserializer": lambda _: "rowtide reads bytes",
    "interceptor.classes": _interceptors,
    "sasl.client.callback.handler.class": lambda _: _NO_JAVA,
    "sasl.login.class": lambda _: _NO_JAVA,
    "ssl.engine.factory.class": lambda _: _NO_JAVA,
    "security.providers": lambda _: _NO_JAVA,
}

_WITHOUT_EFFECT = frozenset(
    {
        "max.block.ms",
        "metadata.max.idle.ms",
        "metrics.sample.window.ms",
        "metrics.num.samples",
        "metrics.recording.level",
        "metric.reporters",
        "partitioner.adaptive.partitioning.enable",
        "partitioner.availability.timeout.ms",
        "partitioner.ignore.keys",
        "socket.connection.setup.timeout.max.ms",
        "default.api.timeout.ms",
        "exclude.internal.topics",
        "ssl.protocol",
        "ssl.provider",
        "ssl.enabled.protocols",
        "ssl.keymanager.algorithm",
        "ssl.trustmanager.algorithm",
        "ssl.secure.random.implementation",
        "ssl.truststore.password",
        "ssl.truststore.type",
        "ssl.keystore.type",
        "sasl.login.callback.handler.class",
        "sasl.login.refresh.window.factor",
        "sasl.login.refresh.window.jitter",
        "sasl.login.refresh.min.period.seconds",
        "sasl.login.refresh.buffer.seconds",
        "sasl.login.connect.timeout.ms",
        "sasl.login.read.timeout.ms",
        "sasl.login.retry.backoff.ms",
        "sasl.login.retry.backoff.max.ms",
        "sasl.kerberos.ticket.renew.window.factor",
        "sasl.kerberos.ticket.renew.jitter",
        "transaction.two.phase.commit.enable",
        "config.providers",
        "share.acquire.mode",
    }
)
"""Settings of the Java client that librdkafka does not need; they are ignored."""


@dataclass(slots=True)
class _Translator:
    kind: ClientKind
    prefix: str
    strict: bool
    found: dict[str, str] = field(default_factory=dict)
    origin: dict[str, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def problem(self, name: str, message: str) -> None:
        self.problems.append(Problem(self.prefix + name, message))

    def set(self, name: str, setting: str, value: str) -> None:
        setting = ALIASES.get(setting, setting)
        reason = invalid(setting, value)
        if reason:
            self.problem(name, reason)
        elif self.found.setdefault(setting, value) != value:
            self.problem(name, f"contradicts {self.prefix}{self.origin[setting]}, which is the same setting")
        else:
            self.origin.setdefault(setting, name)

    def translate(self, name: str, value: str, given: Mapping[str, str]) -> None:
        if name in ("ssl.truststore.location", "ssl.keystore.location"):
            self.store(name, value, given)
        elif name == "request.timeout.ms" and self.kind is not ClientKind.PRODUCER:
            self.set(name, "socket.timeout.ms", value)
        elif name in _JAVA:
            self.java(name, value)
        elif name in _WITHOUT_EFFECT or name.startswith("confluent.monitoring."):
            return
        elif (setting := ALIASES.get(name, name)) in SETTINGS:
            if self.applies(setting):
                self.set(name, setting, value)
            elif self.strict:
                self.problem(name, f"is not a setting of a {self.kind}")
        else:
            self.problem(name, f"is not a setting of Kafka's clients{nearest_setting(name)}")

    def java(self, name: str, value: str) -> None:
        try:
            translated = _JAVA[name](value)
        except ValueError:
            self.problem(name, "must be a whole number")
            return
        if isinstance(translated, str):
            self.problem(name, f"has no counterpart here: {translated}")
            return
        for setting, text in translated.items():
            if self.applies(setting):
                self.set(name, setting, text)
            elif self.strict:
                self.problem(name, f"is not a setting of a {self.kind}")

    def applies(self, setting: str) -> bool:
        scope = SETTINGS[setting][0]
        return scope in ("*", {"producer": "P", "consumer": "C", "admin": "*"}[self.kind])

    def store(self, name: str, value: str, given: Mapping[str, str]) -> None:
        """Return a trust store or key store: PEM files, or PKCS#12 for a key store, which librdkafka reads itself."""
        which = name.split(".")[1]
        kind = given.get(f"ssl.{which}.type", "").strip().upper() or _store_kind(value)
        if kind == "PKCS12" and which == "keystore":
            self.set(name, "ssl.keystore.location", value)
        elif kind != "PEM" and not Path(value).exists():
            self.problem(name, f"{value} cannot be read: {os.strerror(errno.ENOENT)}")
        elif kind != "PEM":
            self.problem(name, f"{value!r} looks like a {kind} store: {_STORES}")
        elif which == "truststore":
            self.set(name, "ssl.ca.location", value)
        else:
            self.set(name, "ssl.certificate.location", value)
            self.set(name, "ssl.key.location", value)


def _store_kind(path: str) -> str:
    ending = path.rpartition(".")[2].lower()
    return {"pem": "PEM", "crt": "PEM", "cer": "PEM", "p12": "PKCS12", "pfx": "PKCS12"}.get(ending, "JKS")


def invalid(setting: str, value: str) -> str | None:
    """Return the reason why librdkafka would reject the value of a setting, or ``None``."""
    allowed = SETTINGS[setting][1]
    if setting == "acks" and value.strip().lower() == "all":
        return None
    if match := re.fullmatch(r"(-?\d+) \.\. (-?\d+)", allowed):
        try:
            number = int(value)
        except ValueError:
            return f"must be a whole number from {match[1]} to {match[2]}"
        return None if int(match[1]) <= number <= int(match[2]) else f"must be from {match[1]} to {match[2]}"
    if allowed and setting not in ("debug", "isolation.level") and "," in allowed:
        choices = [choice.strip() for choice in allowed.split(",")]
        if value.strip().lower() not in choices:
            return f"must be one of {', '.join(choices)}"
    return None


def nearest_setting(name: str) -> str:
    """Return a hint with the most similar known names, or an empty text."""
    import difflib  # noqa: PLC0415 - only after a mistake

    known = [*SETTINGS, *ALIASES, *_JAVA, *_WITHOUT_EFFECT]
    near = difflib.get_close_matches(name, known, n=2, cutoff=0.7)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def translate(
    kind: ClientKind, prefix: str, given: Mapping[str, str], *, strict: bool = True
) -> tuple[ClientSettings, list[Problem]]:
    """Translate settings with Java's or librdkafka's names.

    Args:
        kind: the kind of client.
        prefix: the prefix of the properties, for problems.
        given: the settings, by their names without the prefix.
        strict: report settings that do not apply to this kind of client, instead of ignoring them.
    """
    translator = _Translator(kind, prefix, strict)
    for name, value in given.items():
        translator.translate(name, value, given)
    return ClientSettings(translator.found), translator.problems


def layers(properties: Mapping[str, str], *prefixes: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield each prefix and its properties by the rest of their names; the longest matching prefix applies."""
    for prefix in prefixes:
        longer = [other for other in prefixes if other != prefix and other.startswith(prefix)]
        yield (
            prefix,
            {
                name.removeprefix(prefix): value
                for name, value in properties.items()
                if name.startswith(prefix) and not name.startswith(tuple(longer))
            },
        )
