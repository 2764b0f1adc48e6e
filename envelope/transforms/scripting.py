"""Debezium's ``Filter`` and ``ContentBasedRouter``, with expressions in Python's syntax instead of Java's scripts."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from rowtide.envelope.transforms.expressions import ExpressionError, compile_expression
from rowtide.envelope.transforms.groovy import NotTranslatableError, translated
from rowtide.envelope.transforms.options import Options
from rowtide.envelope.transforms.record import ConnectRecord, TransformError
from rowtide.topics.java_regex import Pattern, compile_java

LANGUAGE = "python"
_PAGE = 'See "Filter and route by content" in docs/transforms.md'
_KEEP, _DROP, _EVALUATE = "keep", "drop", "evaluate"
_TOPIC = compile_java("[a-zA-Z0-9._-]{1,249}")


@dataclass(frozen=True, slots=True)
class Script:
    """An expression and the records for which it is evaluated.

    Attributes:
        option: the name of the option with the expression.
        text: the expression.
        boolean: whether the result is true or false; otherwise, it is a string or null.
        nulls: ``null.handling.mode``: ``keep``, ``drop`` or ``evaluate`` records without a value.
        topics: ``topic.regex``: other records stay unchanged; ``None`` for all topics.
        exact: a null stays null where the schema has a default.
    """

    option: str
    text: str
    boolean: bool
    nulls: str = _KEEP
    topics: Pattern | None = None
    exact: bool = False
    _evaluate: Callable[[ConnectRecord], Any] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        evaluate = compile_expression(self.text, boolean=self.boolean, exact=self.exact)
        object.__setattr__(self, "_evaluate", evaluate)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle it without the compiled expression."""
        return Script, (self.option, self.text, self.boolean, self.nulls, self.topics, self.exact)

    def concerns(self, record: ConnectRecord) -> bool:
        """Return whether the expression is evaluated for a record; if not, :meth:`drops` decides."""
        if self.topics is not None and not self.topics.fullmatch(record.topic):
            return False
        return record.value is not None or self.nulls == _EVALUATE

    def drops(self, record: ConnectRecord) -> bool:
        """Return whether a record that the expression does not concern is dropped."""
        selected = self.topics is None or self.topics.fullmatch(record.topic) is not None
        return selected and record.value is None and self.nulls == _DROP

    def result(self, record: ConnectRecord) -> Any:
        """Evaluate the expression.

        Raises:
            TransformError: it has no value, or an invalid one, for this record.
        """
        try:
            return self._evaluate(record)
        except TransformError as error:
            raise TransformError(f"{self.option}: {error}") from None


@dataclass(frozen=True, slots=True)
class Filter:
    """``io.debezium.transforms.Filter``: keeps the records for which a condition is true."""

    script: Script

    @classmethod
    def from_options(cls, options: Options) -> "Filter":
        """Read the options of Debezium."""
        return cls(_script(options, "condition", boolean=True))

    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        """Return the record, ``None`` to drop it."""
        if not self.script.concerns(record):
            return None if self.script.drops(record) else record
        return record if self.script.result(record) else None


@dataclass(frozen=True, slots=True)
class ContentBasedRouter:
    """``io.debezium.transforms.ContentBasedRouter``: an expression returns the topic, or null to keep it."""

    script: Script

    @classmethod
    def from_options(cls, options: Options) -> "ContentBasedRouter":
        """Read the options of Debezium."""
        return cls(_script(options, "topic.expression", boolean=False))

    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        """Return the record in its topic, ``None`` to drop it."""
        if not self.script.concerns(record):
            return None if self.script.drops(record) else record
        topic = self.script.result(record)
        if topic is None:
            return record
        if not _TOPIC.fullmatch(topic) or topic in (".", ".."):
            raise TransformError(
                f"{self.script.option}: gave a string that is not a valid topic name: Kafka allows 1 to 249 letters, "
                "digits "
                "and ._-"
            )
        return replace(record, topic=topic)


def _script(options: Options, name: str, *, boolean: bool) -> Script:
    """Read the options of a script; errors become problems."""
    language, text = options.required_text("language").strip(), options.required_text(name)
    topics = options.pattern("topic.regex") if options.optional_text("topic.regex") else None
    nulls = options.choice("null.handling.mode", (_KEEP, _DROP, _EVALUATE), _KEEP)
    if language.startswith(("jsr223.", "wasm.")):
        options.problem(
            "language",
            f"must be {LANGUAGE}, because rowtide does not run {language}{_way_out(name, text, boolean=boolean)}",
        )
    elif language and language != LANGUAGE:
        options.problem("language", f"must be {LANGUAGE}, not {language!r}")
    elif text and language:
        try:
            return Script(name, text, boolean, nulls, topics, options.exact)
        except ExpressionError as error:
            options.problem(name, f"{error}{_suggestion(text, boolean=boolean)}")
    return Script(name, "True" if boolean else "None", boolean)


def _translation(text: str, *, boolean: bool) -> str:
    """Return the expression for one in Groovy or JavaScript.

    Raises:
        ValueError: there is none; the message says what the user must rewrite.
    """
    found = translated(text)
    compile_expression(found, boolean=boolean)
    return found


def _way_out(name: str, text: str, *, boolean: bool) -> str:
    if not text:
        return ""
    try:
        return f". Write {name}={_translation(text, boolean=boolean)}"
    except (NotTranslatableError, ExpressionError) as error:
        return f". Write {name} again as an expression in Python's syntax; {error}. {_PAGE}"


def _suggestion(text: str, *, boolean: bool) -> str:
    """Return a suggestion to append if an expression is one in Groovy."""
    try:
        return f". Did you mean {_translation(text, boolean=boolean)}?"
    except (NotTranslatableError, ExpressionError):
        return f". {_PAGE}"
