"""Carries out signals: finds the action, and answers a wrong signal with a log line and a notification."""

import logging
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from rowtide.connector.errors import SignalError
from rowtide.connector.records.batch import Output
from rowtide.connector.records.notifications import Notifier
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.settings import PipelineSettings
from rowtide.connector.signals.binlog_position import (
    is_repeated,
    next_start,
    restart_position,
    with_restart_position,
)
from rowtide.connector.signals.schema_changes import schema_changes
from rowtide.connector.signals.signal import Signal, SignalContext
from rowtide.connector.signals.snapshot_requests import rows_request, snapshot_request, stop_request
from rowtide.connector.signals.snapshots import SnapshotsOnDemand

log = logging.getLogger(__name__)

AGGREGATE = "Signal"
"""``aggregate_type`` of notifications about signals; Debezium has none."""

SignalHook = Callable[[Signal], None]
"""A user's action; it is called in the reader's thread, and what it raises refuses the signal."""


SignalAction = Callable[[Signal, SignalContext], Iterable[Output]]
"""Carries out a signal and returns its outputs; raises ``SignalError`` if it cannot be carried out."""


class Signals:
    """The actions, by type of signal. Used only in the reader's thread.

    Args:
        settings: of the records.
        clock: nanoseconds since the epoch.
        snapshots: carries out the signals about snapshots.
        hooks: users' own actions by type; one with the type of a built-in action replaces it.
        from_table: whether signals of the signal table are carried out (the channel ``source``).
        more: further built-in actions by type.

    Attributes:
        snapshots: carries out the signals about snapshots.
        from_table: whether signals of the signal table are carried out.
    """

    def __init__(
        self,
        settings: PipelineSettings,
        clock: Callable[[], int],
        snapshots: SnapshotsOnDemand,
        hooks: Mapping[str, SignalHook] | None = None,
        *,
        from_table: bool = True,
        more: Mapping[str, SignalAction] | None = None,
    ) -> None:
        self.snapshots = snapshots
        self.from_table = from_table
        self._notifier = Notifier(settings, clock)
        self._hooks = {} if hooks is None else hooks
        self._actions: Mapping[str, SignalAction] = {
            "log": _log,
            "schema-changes": partial(schema_changes, settings, clock),
            "set-binlog-position": partial(_set_binlog_position, settings.connector),
            "execute-snapshot": lambda signal, context: snapshots.execute(snapshot_request(signal), context.at),
            "rowtide-reread-rows": lambda signal, context: snapshots.reread(rows_request(signal), context.at),
            "stop-snapshot": lambda signal, context: snapshots.stop(stop_request(signal), context.at),
            "pause-snapshot": lambda signal, context: snapshots.pause(signal, context.at),
            "resume-snapshot": lambda signal, context: snapshots.resume(signal, context.at),
            **(more or {}),
        }

    def execute(self, signal: Signal, context: SignalContext) -> list[Output]:
        """Carry out a signal; an invalid one is refused, without raising."""
        log.info("signal %r of type %s was received through channel %s", signal.id, signal.type, signal.channel)
        try:
            outputs = list(self._action(signal)(signal, context))
        except SignalError as error:
            error.signal_id, error.signal_type = signal.id, signal.type
            return self.refuse(error, signal.channel, context.at)
        data = {"channel": signal.channel, "signal_type": signal.type, **context.answer}
        self._notifier.keep(AGGREGATE, "COMPLETED", data, signal.id)
        return outputs

    def refuse(self, error: SignalError, channel: str, at: SourceOffset) -> list[Output]:
        """Answer a signal that cannot be carried out, or cannot even be read.

        Args:
            error: the error; it names the signal as far as it is known.
            channel: the channel that brought it.
            at: the resume position before it.
        """
        name = f"signal {error.signal_id!r}" if error.signal_id else "a signal"
        of_type = f" of type {error.signal_type}" if error.signal_type else ""
        log.error("%s%s, received through channel %s, is not carried out: %s", name, of_type, channel, error)
        data = {"channel": channel, "signal_type": error.signal_type, "error": str(error)}
        return list(self._notifier.notify(AGGREGATE, "FAILED", data, at, signal_id=error.signal_id or None))

    def _action(self, signal: Signal) -> SignalAction:
        hook = self._hooks.get(signal.type)
        if hook is not None:
            return partial(_call, hook)
        action = self._actions.get(signal.type)
        if action is None:
            known = ", ".join(sorted({*self._actions, *self._hooks}))
            raise SignalError(f"there is no action of type {signal.type!r}; the types are {known}")
        return action


def _call(hook: SignalHook, signal: Signal, _context: SignalContext) -> Iterable[Output]:
    try:
        hook(signal)
    except SignalError:
        raise
    except Exception as error:
        log.exception("the action of signal %r has failed", signal.id)
        raise SignalError(f"its action has failed: {error!r}") from error
    return ()


def _log(signal: Signal, context: SignalContext) -> Iterable[Output]:
    """Log the message; ``{}`` in it stands for the resume position."""
    message = signal.text("message")
    if not message:
        raise SignalError("'message' is missing from the data")
    log.info("%s", message.replace("{}", context.after.position_json(), 1))
    return ()


def _set_binlog_position(connector: str, signal: Signal, context: SignalContext) -> Iterable[Output]:
    """Let the next start resume from the position in the data; see :func:`restart_position`."""
    carried, start = context.progress.carried, restart_position(signal, connector, context.after)
    if is_repeated(carried, signal):
        log.info("signal %r was carried out before: its row is read again", signal.id)
        return ()
    context.progress.carried = with_restart_position(carried, start, signal)
    context.answer["next_start"] = reads = next_start(start, context.after, connector)
    log.warning("signal %r has set a different position: %s", signal.id, reads)
    return ()
