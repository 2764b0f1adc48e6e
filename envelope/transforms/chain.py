"""The chain of transforms that ``transforms=…`` and ``predicates=…`` configure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from rowtide.envelope.transforms.extract_new_record_state import ExtractNewRecordState
from rowtide.envelope.transforms.extraction import ExtractField, ValueToKey
from rowtide.envelope.transforms.fields import InsertField, MaskField, ReplaceField
from rowtide.envelope.transforms.logical_table_router import ByLogicalTableRouter
from rowtide.envelope.transforms.options import Options, Problem, TransformConfigurationError, suggestion
from rowtide.envelope.transforms.outbox import EventRouter
from rowtide.envelope.transforms.predicates import HasHeaderKey, RecordIsTombstone, TopicNameMatches
from rowtide.envelope.transforms.record import ConnectRecord, Predicate, Transform, TransformError
from rowtide.envelope.transforms.routing import Filter, RegexRouter
from rowtide.envelope.transforms.timezone_converter import TimezoneConverter

_KAFKA = "org.apache.kafka.connect.transforms."
_DEBEZIUM = "io.debezium.transforms."

TRANSFORMS: Mapping[str, Callable[[Options], Transform]] = {
    _DEBEZIUM + "ExtractNewRecordState": ExtractNewRecordState.from_options,
    _DEBEZIUM + "ByLogicalTableRouter": ByLogicalTableRouter.from_options,
    _DEBEZIUM + "outbox.EventRouter": EventRouter.from_options,
    _DEBEZIUM + "TimezoneConverter": TimezoneConverter.from_options,
    _KAFKA + "RegexRouter": RegexRouter.from_options,
    _KAFKA + "Filter": Filter.from_options,
    _KAFKA + "InsertField$Key": partial(InsertField.from_options, "key"),
    _KAFKA + "InsertField$Value": partial(InsertField.from_options, "value"),
    _KAFKA + "ReplaceField$Key": partial(ReplaceField.from_options, "key"),
    _KAFKA + "ReplaceField$Value": partial(ReplaceField.from_options, "value"),
    _KAFKA + "ValueToKey": ValueToKey.from_options,
    _KAFKA + "ExtractField$Key": partial(ExtractField.from_options, "key"),
    _KAFKA + "ExtractField$Value": partial(ExtractField.from_options, "value"),
    _KAFKA + "MaskField$Key": partial(MaskField.from_options, "key"),
    _KAFKA + "MaskField$Value": partial(MaskField.from_options, "value"),
}
"""The transforms, by the class name in ``type``."""

PREDICATES: Mapping[str, Callable[[Options], Predicate]] = {
    _KAFKA + "predicates.RecordIsTombstone": RecordIsTombstone.from_options,
    _KAFKA + "predicates.HasHeaderKey": HasHeaderKey.from_options,
    _KAFKA + "predicates.TopicNameMatches": TopicNameMatches.from_options,
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
        """Whether the transform is applied to a record."""
        return self.predicate is None or self.predicate.test(record) != self.negate


@dataclass(frozen=True, slots=True)
class TransformChain:
    """Transforms that are applied one after the other."""

    steps: tuple[ConditionalTransform, ...] = ()

    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        """Return the transformed record, ``None`` if a transform drops it.

        Raises:
            TransformError: a transform cannot process the record.
        """
        result: ConnectRecord | None = record
        for step in self.steps:
            if result is None:
                break
            if step.applies_to(result):
                try:
                    result = step.transform.apply(result)
                except TransformError as error:
                    raise TransformError(
                        f"transforms.{step.name}: a record of topic {record.topic}: {error}"
                    ) from error
        return result


def transform_chain(transforms: Sequence[Plugin], predicates: Sequence[Plugin] = ()) -> TransformChain:
    """Build the transforms.

    Args:
        transforms: their configurations in order.
        predicates: the configurations of the predicates that ``transforms.<name>.predicate`` refers to.

    Raises:
        TransformConfigurationError: classes, options or predicates are unknown, or values are invalid; it lists all.
    """
    problems: list[Problem] = []
    known: dict[str, Predicate | None] = {}
    for plugin in predicates:
        known[plugin.name] = _build(PREDICATES, plugin, Options(f"predicates.{plugin.name}.", plugin.options), problems)
    steps = []
    for plugin in transforms:
        options = Options(f"transforms.{plugin.name}.", plugin.options)
        predicate_name = options.optional_text("predicate")
        negate = options.boolean("negate", default=False)
        if predicate_name is not None and predicate_name not in known:
            options.problem(
                "predicate", f"there is no predicate {predicate_name!r}" + suggestion(predicate_name, known)
            )
        transform = _build(TRANSFORMS, plugin, options, problems)
        if transform is not None:
            steps.append(ConditionalTransform(plugin.name, transform, known.get(predicate_name or ""), negate))
    if problems:
        raise TransformConfigurationError(problems)
    return TransformChain(tuple(steps))


def chain_from_properties(properties: Mapping[str, str]) -> TransformChain:
    """Build the transforms of a connector's properties; other properties are ignored.

    Raises:
        TransformConfigurationError: see :func:`transform_chain`.
    """
    return transform_chain(_plugins(properties, "transforms"), _plugins(properties, "predicates"))


T = TypeVar("T")


def _build(
    classes: Mapping[str, Callable[[Options], T]], plugin: Plugin, options: Options, problems: list[Problem]
) -> T | None:
    """Build a plugin, and add its problems to ``problems``."""
    make = classes.get(plugin.type) or _by_simple_name(classes, plugin.type)
    if make is None:
        message = (
            "is required" if not plugin.type else f"rowtide has no {plugin.type}" + suggestion(plugin.type, classes)
        )
        options.problem("type", message)
        problems.extend(options.problems)
        return None
    plugin_object = make(options)
    problems.extend(options.problems)
    problems.extend(options.unknown())
    return plugin_object


def _by_simple_name(classes: Mapping[str, Callable[[Options], T]], name: str) -> Callable[[Options], T] | None:
    """Find a class by its name without the package, which Kafka Connect accepts too."""
    return next((make for full, make in classes.items() if full.rpartition(".")[2] == name), None)


def _plugins(properties: Mapping[str, str], kind: str) -> list[Plugin]:
    plugins = []
    for name in dict.fromkeys(item.strip() for item in properties.get(kind, "").split(",") if item.strip()):
        prefix = f"{kind}.{name}."
        options = {key.removeprefix(prefix): value for key, value in properties.items() if key.startswith(prefix)}
        plugins.append(Plugin(name, options.pop("type", "").strip(), options))
    return plugins
