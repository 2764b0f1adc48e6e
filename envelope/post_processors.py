"""Post-processors: they change the values of change events before transforms (``post.processors=masker``).

They are Debezium's ``PostProcessor``: ``masker.type=python:package.module.Class`` names a class whose
``apply(key, value)`` changes the envelope in place. Debezium's ReselectColumnsPostProcessor needs the server, so
:mod:`rowtide.connector.engine.reselect_columns` builds it from the options that are read here.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from rowtide.envelope.transforms.chain import Plugin
from rowtide.envelope.transforms.options import Options, TransformConfigurationError
from rowtide.envelope.transforms.python_hook import configured_object, unchangeable
from rowtide.envelope.transforms.record import ConnectRecord, SchemaCache, TransformError
from rowtide.envelope.transforms.validation import Check, schema_check
from rowtide.topics.filters import Patterns, Selection
from rowtide.topics.java_regex import InvalidPatternError

log = logging.getLogger(__name__)

RESELECT = "io.debezium.processors.reselect.ReselectColumnsPostProcessor"


class PostProcessor(Protocol):
    """Changes the records of an event, in place."""

    def apply(self, records: Sequence[ConnectRecord]) -> Sequence[TransformError | None]:
        """Change the records of one table, and return for each the reason why it cannot be processed.

        Raises:
            ConnectorError: the connector must stop, or reconnect.
        """
        ...

    def close(self) -> None:
        """Release its resources."""
        ...


@dataclass(frozen=True, slots=True)
class ReselectOptions:
    """The options of ReselectColumnsPostProcessor.

    Attributes:
        name: its name in ``post.processors``.
        columns: ``reselect.columns.include.list`` or ``exclude.list``, for ``database.table:column``.
        unavailable_values: ``reselect.unavailable.values``: read values that the binlog omits.
        null_values: ``reselect.null.values``: read null values again.
        use_event_key: ``reselect.use.event.key``: look rows up by the key of the record, not by the primary key.
        fails: ``reselect.error.handling.mode=fail``: stop if a row cannot be read.
    """

    name: str
    columns: Selection
    unavailable_values: bool
    null_values: bool
    use_event_key: bool
    fails: bool


@dataclass(frozen=True, slots=True)
class PythonPostProcessor:
    """Calls a custom method for each record.

    Attributes:
        name: its name in ``post.processors``.
        type: the class, as it was configured.
        function: its method ``apply``.
        release: its method ``close``, if it has one.
    """

    name: str
    type: str
    function: Callable[[Any, dict[str, Any]], object]
    release: Callable[[], object] | None = None
    _checks: SchemaCache[Check] = field(default_factory=SchemaCache, repr=False, compare=False)

    def apply(self, records: Sequence[ConnectRecord]) -> Sequence[TransformError | None]:
        """Call the function for each record."""
        return [self._failure(record) for record in records]

    def _failure(self, record: ConnectRecord) -> TransformError | None:
        place = f"post.processors: {self.name}: a record of topic {record.topic}: {self.type}"
        try:
            result = self.function(unchangeable(record.key), record.value)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the user's code may raise anything
            return TransformError(f"{place} raised {type(error).__name__}", str(error))
        if result is not None:
            return TransformError(f"{place} returned a {type(result).__name__}: change the value in place instead")
        assert record.value_schema is not None
        try:
            self._checks.get(schema_check, record.value_schema)(record.value, "value")
        except ValueError as error:
            failure = TransformError(f"{place} left {error}")
            failure.__cause__ = error
            return failure
        return None

    def close(self) -> None:
        """Call the object's ``close``; if it fails, the rest of the run still ends gracefully."""
        if self.release is not None:
            try:
                self.release()
            except (Exception, SystemExit):
                log.warning("post.processors: %s: close() of %s failed", self.name, self.type, exc_info=True)


def post_processors(plugins: Sequence[Plugin]) -> list[PythonPostProcessor | ReselectOptions]:
    """Make the post-processors of a configuration; those of Debezium are their options.

    Raises:
        TransformConfigurationError: a class or its options cannot be used; it lists all problems.
    """
    found: list[PythonPostProcessor | ReselectOptions] = []
    problems: list[Any] = []
    for plugin in plugins:
        options = Options(f"{plugin.name}.", plugin.options)
        made = _reselect(plugin.name, options) if plugin.type == RESELECT else _python(plugin, options)
        problems += options.problems
        if made is not None:
            found.append(made)
    if problems:
        raise TransformConfigurationError(problems)
    return found


def _reselect(name: str, options: Options) -> ReselectOptions:
    lists = {kind: _patterns(options, f"reselect.columns.{kind}.list") for kind in ("include", "exclude")}
    made = ReselectOptions(
        name,
        Selection(**lists),
        options.boolean("reselect.unavailable.values", default=True),
        options.boolean("reselect.null.values", default=True),
        options.boolean("reselect.use.event.key", default=False),
        options.choice("reselect.error.handling.mode", ("warn", "fail"), "warn") == "fail",
    )
    options.problems += options.unknown()
    return made


def _patterns(options: Options, name: str) -> Patterns | None:
    text = options.text(name, "").strip()
    try:
        return Patterns.parse(text) if text else None
    except InvalidPatternError as error:
        options.problem(name, str(error))
        return None


def _python(plugin: Plugin, options: Options) -> PythonPostProcessor | None:
    """Return the user's object; errors become problems."""
    made = configured_object(plugin.type, options, "apply(key, value)", [RESELECT])
    return (
        None
        if made is None
        else PythonPostProcessor(plugin.name, plugin.type, made.apply, getattr(made, "close", None))
    )


def first_failures(
    processors: Sequence[PostProcessor], records: Sequence[ConnectRecord]
) -> Mapping[int, TransformError]:
    """Apply post-processors to the change events among the records of an event, one processor after the other.

    Returns:
        The first error of each record that could not be processed, by its place.
    """
    places = [place for place, record in enumerate(records) if record.is_envelope and record.value is not None]
    failures: dict[int, TransformError] = {}
    for processor in processors:
        if not places:
            break
        found = zip(places, processor.apply([records[place] for place in places]), strict=True)
        failures.update((place, failure) for place, failure in found if failure is not None)
        places = [place for place in places if place not in failures]
    return failures
