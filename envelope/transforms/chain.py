"""The chain of transforms that ``transforms=…`` and ``predicates=…`` configure."""

import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from rowtide.envelope.transforms.options import OptionProblem, Options, TransformConfigurationError, suggestion
from rowtide.envelope.transforms.python_hook import PREFIX, PythonTransform
from rowtide.envelope.transforms.record import ConnectRecord, Predicate, Transform, TransformError

_KAFKA = "org.apache.kafka.connect.transforms."
_DEBEZIUM = "io.debezium.transforms."

T = TypeVar("T")


class _Class(Generic[T]):
    """Creates objects of a class from options. Its module is imported on first use, because few connectors need one.

    Args:
        module: the name of its module in this package.
        name: its name.
        side: ``key`` or ``value``, for a class that changes either.
    """

    def __init__(self, module: str, name: str, *side: str) -> None:
        self._module = f"{__package__}.{module}"
        self._name = name
        self._side = side

    def __call__(self, options: Options) -> T:
        made: T = getattr(importlib.import_module(self._module), self._name).from_options(*self._side, options)
        return made


def _of_key_or_value(module: str, name: str) -> dict[str, Callable[[Options], Transform]]:
    return {f"{_KAFKA}{name}${side.title()}": _Class(module, name, side) for side in ("key", "value")}


TRANSFORMS: Mapping[str, Callable[[Options], Transform]] = {
    _DEBEZIUM + "ExtractNewRecordState": _Class("extract_new_record_state", "ExtractNewRecordState"),
    _DEBEZIUM + "ByLogicalTableRouter": _Class("logical_table_router", "ByLogicalTableRouter"),
    _DEBEZIUM + "outbox.EventRouter": _Class("outbox", "EventRouter"),
    _DEBEZIUM + "ExtractChangedRecordState": _Class("changes", "ExtractChangedRecordState"),
    _DEBEZIUM + "partitions.PartitionRouting": _Class("partition_routing", "PartitionRouting"),
    _DEBEZIUM + "SchemaChangeEventFilter": _Class("changes", "SchemaChangeEventFilter"),
    "io.debezium.connector.mysql.transforms.ReadToInsertEvent": _Class("changes", "ReadToInsertEvent"),
    _DEBEZIUM + "TimezoneConverter": _Class("timezone_converter", "TimezoneConverter"),
    _DEBEZIUM + "HeaderToValue": _Class("headers", "HeaderToValue"),
    _DEBEZIUM + "SwapGeometryCoordinates": _Class("geometry", "SwapGeometryCoordinates"),
    _DEBEZIUM + "GeometryFormatTransformer": _Class("geometry", "GeometryFormatTransformer"),
    _DEBEZIUM + "VectorToJsonConverter": _Class("vectors", "VectorToJsonConverter"),
    _KAFKA + "RegexRouter": _Class("routing", "RegexRouter"),
    _KAFKA + "Filter": _Class("routing", "Filter"),
    **_of_key_or_value("fields", "InsertField"),
    **_of_key_or_value("fields", "ReplaceField"),
    _KAFKA + "ValueToKey": _Class("extraction", "ValueToKey"),
    **_of_key_or_value("extraction", "ExtractField"),
    **_of_key_or_value("extraction", "HoistField"),
    **_of_key_or_value("fields", "SetSchemaMetadata"),
    **_of_key_or_value("headers", "HeaderFrom"),
    _KAFKA + "InsertHeader": _Class("headers", "InsertHeader"),
    _KAFKA + "DropHeaders": _Class("headers", "DropHeaders"),
    **_of_key_or_value("fields", "MaskField"),
    **_of_key_or_value("cast", "Cast"),
    **_of_key_or_value("extraction", "Flatten"),
    **_of_key_or_value("timestamps", "TimestampConverter"),
    _KAFKA + "TimestampRouter": _Class("timestamps", "TimestampRouter"),
    _DEBEZIUM + "Filter": _Class("scripting", "Filter"),  # last: the name without a package is that of Kafka Connect's
    _DEBEZIUM + "ContentBasedRouter": _Class("scripting", "ContentBasedRouter"),
}
"""The transforms, by the class name in ``type``."""

_ROUTERS = {"ByLogicalTableRouter", "EventRouter", "RegexRouter", "TimestampRouter", "ContentBasedRouter"}
_IN_PYTHON = "write a transform in Python, and name it by python:module.function"
INSTEAD: Mapping[str, str] = {
    _DEBEZIUM + "EnforceRecordSize": "it cuts values off. Set rowtide.large.records, which loses nothing, or "
    "column.truncate.to.<length>.chars",
    _DEBEZIUM + "ExtractSchemaToNewRecord": _IN_PYTHON,
    _DEBEZIUM + "tracing.ActivateTracingSpan": "traces are made without it (rowtide.opentelemetry.enabled), but "
    f"without the context of the application. Remove it, or {_IN_PYTHON}",
    _DEBEZIUM + "openlineage.OpenLineage": "topics are reported without it, with "
    "openlineage.integration.enabled=true. Remove it",
}
"""What to do without the other transforms of Debezium."""

PREDICATES: Mapping[str, Callable[[Options], Predicate]] = {
    _KAFKA + "predicates.RecordIsTombstone": _Class("routing", "RecordIsTombstone"),
    _KAFKA + "predicates.HasHeaderKey": _Class("routing", "HasHeaderKey"),
    _KAFKA + "predicates.TopicNameMatches": _Class("routing", "TopicNameMatches"),
}
"""The predicates, by the class name in ``type``."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """The configuration of a transform or predicate.

    Attributes:
        name: the name in ``transforms`` or ``predicates``.
        type: the class name.
        options: the options, by their names without ``transforms.<name>.`` and without ``type``.
    """

    name: str
    type: str
    options: Mapping[str, str]

    @property
    def may_rename_topics(self) -> bool:
        """Whether the transform can send a record to a topic other than that of its table."""
        routes = self.type.startswith(PREFIX) or _simple_name(self.type) in _ROUTERS
        return routes or "route.by.field" in self.options


@dataclass(frozen=True, slots=True)
class ConditionalTransform:
    """A transform with its predicate.

    Attributes:
        name: its name in the configuration.
        transform: the transform.
        predicate: selects the records to transform; ``None`` for all.
        negate: transform the records that the predicate does not select.
    """

    name: str
    transform: Transform
    predicate: Predicate | None = None
    negate: bool = False

    def applies_to(self, record: ConnectRecord) -> bool:
        """Return whether the transform is applied to a record."""
        return self.predicate is None or self.predicate.test(record) != self.negate


@dataclass(frozen=True, slots=True)
class TransformChain:
    """A sequence of transforms."""

    steps: tuple[ConditionalTransform, ...] = ()

    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        """Return the first record of :meth:`records`, ``None`` if there is none."""
        return next(iter(self.records(record)), None)

    def records(self, record: ConnectRecord) -> list[ConnectRecord]:
        """Return the records that result from the transforms: none, one, or several in order.

        Raises:
            TransformError: the transform cannot process the record.
        """
        found = [record]
        for step in self.steps:
            found = [made for one in found for made in self._step(step, one)]
        return found

    def _step(self, step: ConditionalTransform, record: ConnectRecord) -> Iterable[ConnectRecord]:
        if not step.applies_to(record):
            return (record,)
        try:
            result = step.transform.apply(record)
        except TransformError as error:
            raise TransformError(f"transforms.{step.name}: a record of topic {record.topic}: {error}") from error
        if result is None:
            return ()
        return (result,) if isinstance(result, ConnectRecord) else result


def transform_chain(
    transforms: Sequence[Plugin], predicates: Sequence[Plugin] = (), *, exact: bool = False
) -> TransformChain:
    """Build the transforms.

    Args:
        transforms: their configurations in order.
        predicates: the configurations of the predicates that ``transforms.<name>.predicate`` refers to.
        exact: whether they keep nulls unless an option says otherwise (``rowtide.values=exact``).

    Raises:
        TransformConfigurationError: classes, options or predicates are unknown, or values are invalid; it lists all.
    """
    problems: list[OptionProblem] = []
    known: dict[str, Predicate | None] = {}
    for plugin in predicates:
        known[plugin.name] = _build(PREDICATES, plugin, Options(f"predicates.{plugin.name}.", plugin.options), problems)
    steps = []
    for index, plugin in enumerate(transforms):
        options = Options(f"transforms.{plugin.name}.", plugin.options, exact=exact)
        predicate_name = options.optional_text("predicate")
        negate = options.boolean("negate", default=False)
        if predicate_name is not None and predicate_name not in known:
            options.problem(
                "predicate", f"there is no predicate {predicate_name!r}" + suggestion(predicate_name, known)
            )
        if _simple_name(plugin.type) == "TimestampRouter" and not any(map(_sets_timestamps, transforms[:index])):
            options.problem(
                "type",
                "no record has a timestamp here, as in Debezium, so each would fail: put EventRouter or a Python "
                "transform that sets one before it, or choose the topics by a Python transform",
            )
        if plugin.type.startswith(PREFIX):
            transform: Transform | None = PythonTransform.from_type(plugin.type.removeprefix(PREFIX), options)
            problems.extend(options.problems)
        else:
            transform = _build(TRANSFORMS, plugin, options, problems)
        if transform is not None:
            steps.append(ConditionalTransform(plugin.name, transform, known.get(predicate_name or ""), negate))
    if problems:
        raise TransformConfigurationError(problems)
    return TransformChain(tuple(steps))


def _sets_timestamps(plugin: Plugin) -> bool:
    return plugin.type.startswith(PREFIX) or _simple_name(plugin.type) == "EventRouter"


def _simple_name(type_: str) -> str:
    return type_.rpartition(".")[2]


def _build(
    classes: Mapping[str, Callable[[Options], T]], plugin: Plugin, options: Options, problems: list[OptionProblem]
) -> T | None:
    """Build a plugin, and add its problems to ``problems``."""
    make = classes.get(plugin.type) or _by_simple_name(classes, plugin.type)
    if make is None:
        if not plugin.type:
            message = "is required"
        elif plugin.type in INSTEAD:
            message = f"rowtide has no {plugin.type}: {INSTEAD[plugin.type]}"
        else:
            message = f"rowtide has no {plugin.type}" + suggestion(plugin.type, classes, of_class=True)
        options.problem("type", message)
        problems.extend(options.problems)
        return None
    plugin_object = make(options)
    problems.extend(options.problems)
    problems.extend(options.unknown())
    return plugin_object


def _by_simple_name(classes: Mapping[str, Callable[[Options], T]], name: str) -> Callable[[Options], T] | None:
    """Find a class by its name without the package, which Kafka Connect accepts too."""
    return next((make for full, make in classes.items() if _simple_name(full) == name), None)
