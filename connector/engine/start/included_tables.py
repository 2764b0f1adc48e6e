"""``rowtide-set-table-include-list``: a signal that replaces ``table.include.list`` without a restart of the process.

Every offset carries the list until ``table.include.list`` changes in the configuration. The connector begins a new run
with it at the position after the signal. Pure.
"""

import json
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from rowtide.connector.config import Configuration
from rowtide.connector.errors import SignalError
from rowtide.connector.records.batch import Output
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.signals.signal import Signal, SignalContext
from rowtide.topics.filters import Patterns, Selection
from rowtide.topics.java_regex import InvalidPatternError

log = logging.getLogger(__name__)

SET_INCLUDE_LIST = "rowtide-set-table-include-list"
"""The type of the signal."""
_FIELD = "rowtide_signal_tables"
_LIST = "table.include.list"


class CapturedTablesChanged(Exception):
    """A run has ended because a signal has changed the captured tables; a new run begins with them."""


@dataclass(frozen=True, slots=True)
class IncludedTables:
    """The list of a signal.

    Attributes:
        signal_id: the id of the signal.
        include: the expressions of the list.
        configured: the expressions in the configuration when the signal arrived; ``None`` without a list.
    """

    signal_id: str
    include: tuple[str, ...]
    configured: tuple[str, ...] | None

    def carried(self, others: Mapping[str, Any] | None) -> Mapping[str, Any]:
        """Return the fields of all later offsets: those of ``others``, and this one."""
        fields = {"signal": self.signal_id, "include": self.include, "configured": self.configured}
        return {**(others or {}), _FIELD: json.dumps(fields, separators=(",", ":"), ensure_ascii=False)}

    @classmethod
    def from_carried(cls, fields: Mapping[str, Any] | None) -> "IncludedTables | None":
        """Return the list in an offset; ``None`` if it has none."""
        text = (fields or {}).get(_FIELD)
        if text is None:
            return None
        try:
            found = json.loads(text)
            configured = found["configured"]
            return cls(
                str(found["signal"]), _texts(found["include"]), None if configured is None else _texts(configured)
            )
        except (KeyError, TypeError, ValueError):
            log.exception("the list of captured tables that a signal has set cannot be read: %.500s", text)
            return None

    def applies_to(self, config: Configuration) -> bool:
        """Return whether the list still replaces that of a configuration, which has not changed since the signal."""
        tables = config.capture.tables.tables
        return tables.exclude is None and _sources(tables) == self.configured

    def applied(self, config: Configuration) -> Configuration:
        """Return the configuration with this list."""
        tables = replace(config.capture.tables, tables=Selection(include=Patterns.of(self.include)))
        return replace(config, capture=replace(config.capture, tables=tables))

    @property
    def note(self) -> str:
        """The log message of each start."""
        return (
            f"signal {self.signal_id!r} has replaced {_LIST} by {','.join(self.include)!r}; the configuration applies "
            f"again when its {_LIST} is changed"
        )


def with_included_tables(
    config: Configuration, earlier: IncludedTables | None, stored: SourceOffset | None
) -> tuple[Configuration, IncludedTables | None, SourceOffset | None]:
    """Return a run's configuration, the list that a signal has set, if it applies, and the position that carries it.

    Args:
        config: the configuration from the files.
        earlier: the list of an earlier run of this process: a position after its signal may not be stored yet.
        stored: the stored position.
    """
    carried = {} if stored is None else dict(stored.carried or {})
    found = earlier or IncludedTables.from_carried(carried)
    if found is not None and found.applies_to(config):
        return found.applied(config), found, stored and replace(stored, carried=found.carried(carried))
    carried.pop(_FIELD, None)
    return config, None, stored and replace(stored, carried=carried or None)


def set_include_list(
    config: Configuration, on_change: Callable[[IncludedTables], None], signal: Signal, context: SignalContext
) -> Iterable[Output]:
    """Carry out the signal.

    Args:
        config: the configuration from the files.
        on_change: called if the captured tables change.
        signal: with ``table.include.list`` in its data.
        context: the context of the signal.

    Raises:
        SignalError: the data has no list, or an invalid one, or the connector has ``table.exclude.list``.
    """
    text = signal.text(_LIST)
    if not text or not text.strip():
        raise SignalError(f"{_LIST!r} is missing from the data: regular expressions with commas between them")
    configured = config.capture.tables.tables
    if configured.exclude is not None:
        raise SignalError(f"the connector has table.exclude.list, so it cannot have {_LIST}. Change the configuration")
    try:
        found = IncludedTables(signal.id, Patterns.parse(text).sources, _sources(configured))
    except InvalidPatternError as error:
        raise SignalError(f"{_LIST!r} has an item that is not a regular expression: {error}") from error
    known = IncludedTables.from_carried(context.progress.carried)
    now = known.include if known is not None else _sources(configured)
    if now == found.include:
        log.info("signal %r has no effect: %s is already %r", signal.id, _LIST, text)
        return ()
    context.progress.carried = found.carried(context.progress.carried)
    on_change(found)
    return ()


def _sources(selection: Selection) -> tuple[str, ...] | None:
    return None if selection.include is None else selection.include.sources


def _texts(values: Iterable[Any]) -> tuple[str, ...]:
    return tuple(map(str, values))
