"""The schema registry of converters, through Confluent's API, which Apicurio and Karapace also have.

The client is that of confluent-kafka. This module adds time limits, certificates as text, and errors that name the
subject, the version and the field, and say what to do.
"""

import contextlib
import json
import logging
import os
import tempfile
import uuid
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.error import SchemaRegistryError

from rowtide.connector.config.model import RegistryConfig
from rowtide.connector.config.secret import Secret
from rowtide.connector.errors import RegistryError, RegistryUnreachable
from rowtide.envelope.avro.differences import SchemaDifference, differences
from rowtide.envelope.converters.registry import RegisteredSchema, SchemaKind

log = logging.getLogger(__name__)

_RETRIES = 2
"""Requests after one that failed. After the last, the connector starts again as after any lost connection."""
_WAIT_MS = 200
_DENIED = (401, 403)
_INCOMPATIBLE = 409
_INVALID = 42201
_NOT_FOUND = 404
_MISSING = range(40400, 40500)
"""Error codes of a registry that does not have a subject, version or schema. Any web server has a 404 without them."""
_NO_REGISTRY = AssertionError, AttributeError, KeyError, TypeError, json.JSONDecodeError
"""The errors of the client for an answer that is not from a registry."""
_AWAY = frozenset({408, 429, 500, 502, 503, 504})
_MOST_KNOWN = 10_000
"""Schemas that are not requested again: heartbeats and snapshots make their converters' functions again."""
_MAX_TEXT = 2000
"""Characters of a schema in a message."""


class SchemaRegistry:
    """A schema registry. It can be pickled: decoder processes connect to it themselves.

    Args:
        config: its configuration.
    """

    def __init__(self, config: RegistryConfig) -> None:
        self._config = config
        self._setting = f"{config.prefix}schema.registry.url"
        self._known: dict[tuple[str, str], RegisteredSchema] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the configuration with its secrets, which only go to child processes of this one."""
        config = self._config
        secrets = [None if one is None else one.reveal() for one in (config.user_info, config.token)]
        plain = {name: getattr(config, name) for name in config.__dataclass_fields__ if name not in _SECRETS}
        return _restored, (plain, dict(zip(_SECRETS, secrets, strict=True)))

    @cached_property
    def client(self) -> SchemaRegistryClient:
        """The client, made when it is first needed.

        Raises:
            RegistryError: TLS cannot be set up.
        """
        config = self._config
        settings: dict[str, Any] = {
            "url": ",".join(config.urls),
            "timeout": config.timeout_s,
            "max.retries": _RETRIES,
            "retries.wait.ms": _WAIT_MS,
        }
        if config.user_info is not None:
            settings["basic.auth.user.info"] = config.user_info.reveal()
        if config.token is not None:
            settings["bearer.auth.credentials.source"] = "STATIC_TOKEN"
            settings["bearer.auth.token"] = config.token.reveal()
            settings["bearer.auth.logical.cluster"] = ""  # the client wants one; only Confluent's cloud does, too
        with contextlib.ExitStack() as files:
            settings |= {name: files.enter_context(one) for name, one in _tls_files(config.tls)}
            try:
                return SchemaRegistryClient(settings)
            except (OSError, ValueError) as error:
                raise RegistryError(f"{self._setting}: TLS cannot be set up: {error}") from error

    def close(self) -> None:
        """Close the connection."""
        if "client" in self.__dict__:
            self.client.close()

    def registered(self, subject: str, kind: SchemaKind, text: str) -> RegisteredSchema:
        """Return a schema with its id; see :class:`~rowtide.envelope.converters.registry.Registry`.

        Raises:
            RegistryUnreachable: the registry does not answer.
            RegistryError: it refuses the schema, or lacks it and ``auto.register.schemas`` is false.
        """
        known = self._known.get((subject, text))
        if known is None:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            known = self._known[subject, text] = self._requested(subject, kind, text)
        return known

    def _requested(self, subject: str, kind: SchemaKind, text: str) -> RegisteredSchema:
        config, schema = self._config, Schema(text, kind)
        with self._errors(subject, text, kind):
            if config.auto_register:
                found = self.client.register_schema_full_response(subject, schema, config.normalize)
                log.info("schema registry: %s has the id %d", subject, found.schema_id)
            elif config.latest_version:
                found = self.client.get_latest_version(subject)
                text = found.schema.schema_str or text
            else:
                found = self.client.lookup_schema(subject, schema, config.normalize)
            if found.schema_id is None:
                raise KeyError("id")
            return RegisteredSchema(found.schema_id, text, None if found.guid is None else uuid.UUID(found.guid))

    def incompatibilities(self, subject: str, kind: SchemaKind, text: str) -> list[SchemaDifference]:
        """Return the reasons why a schema could not be registered, without registering it.

        A new subject accepts every schema.

        Raises:
            RegistryUnreachable: the registry does not answer.
            RegistryError: it refuses the request.
        """
        with self._errors(subject, text, kind):
            try:
                return self._refusals(subject, kind, text)
            except SchemaRegistryError as error:
                if error.error_code in _MISSING:
                    return []
                raise

    def _refusals(self, subject: str, kind: SchemaKind, text: str) -> list[SchemaDifference]:
        """Return why a schema is incompatible with the latest version of a subject; empty if it is compatible."""
        schema = Schema(text, kind)
        if self.client.test_compatibility(subject, schema):
            return []
        latest = self.client.get_latest_version(subject)
        known = latest.schema.schema_str if latest.schema is not None else None
        found = differences(known, text) if known is not None and kind == "AVRO" else []
        version = f"version {latest.version}"
        return [SchemaDifference(one.kind, f"{version}: {one}") for one in found] or [SchemaDifference(None, version)]

    @contextlib.contextmanager
    def _errors(self, subject: str, text: str, kind: SchemaKind) -> Iterator[None]:
        """Turn the client's errors into the connector's."""
        from confluent_kafka.schema_registry.common._httpx_compat import httpx  # noqa: PLC0415 - with the client

        place = ", ".join(url.rpartition("@")[2] for url in self._config.urls)
        try:
            yield
        except httpx.HTTPError as error:
            raise RegistryUnreachable(
                f"the schema registry at {place} cannot be reached: {error or type(error).__name__}. Check "
                f"{self._setting}"
            ) from error
        except SchemaRegistryError as error:
            raise self._error(error, place, subject, text, kind) from error
        except _NO_REGISTRY as error:
            raise RegistryError(
                f"{place} is not a schema registry: its answers are not those of Confluent's API. Check {self._setting}"
            ) from error

    def _error(
        self, error: SchemaRegistryError, place: str, subject: str, text: str, kind: SchemaKind
    ) -> RegistryError:
        status, message = error.http_status_code, str(error.error_message).strip().rstrip(".")
        shown = text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]} …"
        prefix = self._config.prefix
        if status in _AWAY:
            return RegistryUnreachable(f"the schema registry at {place} answers {status}: {message} ({self._setting})")
        if status in _DENIED:
            return RegistryError(
                f"the schema registry at {place} denies access to subject {subject}: {message or status}. Check "
                f"{prefix}basic.auth.user.info or bearer.auth.token, and the account's rights"
            )
        if status == _INCOMPATIBLE:
            reasons = self._reasons(subject, kind, text)
            if reasons == []:
                return RegistryUnreachable(
                    f"the schema registry at {place} answers 409: {message}. The schema is compatible with subject "
                    f"{subject}, so another request registers one at this moment ({self._setting})"
                )
            known = "; ".join(map(str, reasons or ())) or f"an earlier version: {message}"
            return RegistryError(
                f"the schema registry refuses the new schema of subject {subject}, because it is incompatible with "
                f"{known}. Set another compatibility level for the subject (PUT "
                f"{self._config.urls[0].rpartition('@')[2]}/config/{subject}), and restart the connector"
            )
        if status == _NOT_FOUND and error.error_code not in _MISSING:
            return RegistryError(
                f"{place} is not a schema registry: it answers 404: {message}. Check {self._setting}; the one for "
                "Confluent's converters of Apicurio's registry ends in /apis/ccompat/v7"
            )
        if status == _NOT_FOUND:
            return RegistryError(
                f"the schema registry at {place} does not have this schema under subject {subject}: {message}. "
                f"Register it, or set {prefix}auto.register.schemas=true: {shown}"
            )
        if error.error_code == _INVALID:
            return RegistryError(
                f"the schema registry at {place} cannot read the schema of subject {subject}: {message}. If a name is "
                f"the reason, set schema.name.adjustment.mode=avro and field.name.adjustment.mode=avro: {shown}"
            )
        return RegistryError(f"the schema registry at {place} refuses subject {subject}: {message} ({status})")

    def _reasons(self, subject: str, kind: SchemaKind, text: str) -> list[SchemaDifference] | None:
        """Return the reasons why a schema was refused; ``None`` if they cannot be determined."""
        try:
            return self._refusals(subject, kind, text)
        except Exception:  # noqa: BLE001 - the refusal itself is reported
            return None


_SECRETS = ("user_info", "token")


def _restored(plain: dict[str, Any], secrets: dict[str, str | None]) -> SchemaRegistry:
    hidden: dict[str, Any] = {name: None if text is None else Secret(text) for name, text in secrets.items()}
    return SchemaRegistry(RegistryConfig(**plain, **hidden))


_FILES = {"ssl.ca": "ssl.ca.location", "ssl.certificate": "ssl.certificate.location", "ssl.key": "ssl.key.location"}


def _tls_files(tls: dict[str, str]) -> Iterator[tuple[str, contextlib.AbstractContextManager[str]]]:
    """Yield the settings of the client; texts become files as long as the client reads them."""
    for name, setting in _FILES.items():
        if f"{name}.pem" in tls:
            yield setting, _file(tls[f"{name}.pem"])
        elif f"{name}.location" in tls:
            yield setting, contextlib.nullcontext(tls[f"{name}.location"])
    if "ssl.key.password" in tls:
        yield "ssl.key.password", contextlib.nullcontext(tls["ssl.key.password"])


@contextlib.contextmanager
def _file(content: str) -> Iterator[str]:
    handle, path = tempfile.mkstemp(suffix=".pem")  # only its owner can read it
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(content)
        yield path
    finally:
        os.unlink(path)  # noqa: PTH108
