"""Transforms in their order, made from ``transforms=…`` and ``predicates=…``."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

from rowtide.envelope.transforms.extract_new_record_state import ExtractNewRecordState
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
    _KAFKA + "MaskField$Key": partial(MaskField.from_options, "key"),
    _KAFKA + "MaskField$Value": partial(MaskField.from_options, "value"),
}
"""The transforms that there are, by the class that ``type`` names."""

PREDICATES: Mapping[str, Callable[[Options], Predicate]] = {
    _KAFKA + "predicates.RecordIsTombstone": RecordIsTombstone.from_options,
    _KAFKA + "predicates.HasHeaderKey": HasHeaderKey.from_options,
    _KAFKA + "predicates.TopicNameMatches": TopicNameMatches.from_options,
}
"""The predicates that there are, by the class that ``type`` names."""


class PluginOptions(Protocol):
    """A transform or predicate as it was configured."""

    @property
    def name(self) -> str:
        """The name in the list."""
        ...

    @property
    def type(self) -> str:
        """The class."""
        ...

    @property
    def options(self) -> Mapping[str, str]:
        """Its options, by their names behind ``transforms.<name>.``; ``type`` is not among them."""
        ...


@dataclass(frozen=True, slots=True)
class Plugin:
    """A transform or predicate as properties describe it; see :class:`PluginOptions`."""

    name: str
    type: str
    options: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ConditionalTransform:
    """A transform with its condition.

    Attributes:
        name: its name in the configuration.
        transform: what it does.
        predicate: the records that it is for, ``None`` for all.
        negate: for the other records instead.
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
    """Transforms, each working on what the one before it gave. Without any, records stay as they are."""

    steps: tuple[ConditionalTransform, ...] = ()

    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        """What is left of a record, ``None`` if one of them drops it.

        Raises:
            TransformError: one of them cannot work on the record.
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


def transform_chain(transforms: Sequence[PluginOptions], predicates: Sequence[PluginOptions] = ()) -> TransformChain:
    """Make the transforms.

    Args:
        transforms: in their order.
        predicates: those that ``transforms.<name>.predicate`` may name.

    Raises:
        TransformConfigurationError: unknown classes, options or predicates, or values that are wrong: all of them.
    """
    problems: list[Problem] = []
    known: dict[str, Predicate | None] = {}
    for plugin in predicates:
        known[plugin.name] = _made(PREDICATES, plugin, Options(f"predicates.{plugin.name}.", plugin.options), problems)
    steps = []
    for plugin in transforms:
        options = Options(f"transforms.{plugin.name}.", plugin.options)
        predicate_name = options.optional_text("predicate")
        negate = options.boolean("negate", default=False)
        if predicate_name is not None and predicate_name not in known:
            options.problem(
                "predicate", f"there is no predicate {predicate_name!r}" + suggestion(predicate_name, known)
            )
        transform = _made(TRANSFORMS, plugin, options, problems)
        if transform is not None:
            steps.append(ConditionalTransform(plugin.name, transform, known.get(predicate_name or ""), negate))
    if problems:
        raise TransformConfigurationError(problems)
    return TransformChain(tuple(steps))


def chain_from_properties(properties: Mapping[str, str]) -> TransformChain:
    """The transforms that a connector's properties name; other properties are ignored.

    Raises:
        TransformConfigurationError: as for :func:`transform_chain`.
    """
    return transform_chain(_plugins(properties, "transforms"), _plugins(properties, "predicates"))


T = TypeVar("T")


def _made(
    classes: Mapping[str, Callable[[Options], T]], plugin: PluginOptions, options: Options, problems: list[Problem]
) -> T | None:
    """The plugin, with all that is wrong with it added to ``problems``."""
    make = classes.get(plugin.type) or _by_simple_name(classes, plugin.type)
    if make is None:
        what = "is required" if not plugin.type else f"rowtide has no {plugin.type}" + suggestion(plugin.type, classes)
        options.problem("type", what)
        problems.extend(options.problems)
        return None
    made = make(options)
    problems.extend(options.problems)
    problems.extend(options.unknown())
    return made


def _by_simple_name(classes: Mapping[str, Callable[[Options], T]], name: str) -> Callable[[Options], T] | None:
    """A class by its name without the package, which Kafka Connect accepts too."""
    return next((make for full, make in classes.items() if full.rpartition(".")[2] == name), None)


def _plugins(properties: Mapping[str, str], kind: str) -> list[Plugin]:
    plugins = []
    for name in dict.fromkeys(item.strip() for item in properties.get(kind, "").split(",") if item.strip()):
        prefix = f"{kind}.{name}."
        options = {key.removeprefix(prefix): value for key, value in properties.items() if key.startswith(prefix)}
        plugins.append(Plugin(name, options.pop("type", "").strip(), options))
    return plugins
