"""Decides what a start does: whether it reads structures and rows, and where streaming resumes. Pure.

The rules are those of Debezium's snapshotters. Where Debezium would lose changes or stop without need, the rule
differs, and the message states it.
"""

from dataclasses import dataclass, replace

from rowtide.connector.config.choices import SnapshotMode
from rowtide.connector.config.model import SnapshotFlags
from rowtide.connector.errors import HistoryMissing, PositionPurged, SnapshotError
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.snapshot.incremental.state import SnapshotState
from rowtide.connector.source.position.rules import PositionCheck


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision of a start.

    Attributes:
        structure: whether it reads the structure of all tables into the schema history.
        rows: whether it reads the rows of captured tables.
        position: the stored position at which streaming resumes; ``None`` for the position of the snapshot.
        stream: whether it reads the binlog afterwards.
        continues: whether it reads the rest of an interrupted initial snapshot alongside the stream.
        notes: messages for the log about the decision.
    """

    structure: bool
    rows: bool
    position: SourceOffset | None
    stream: bool
    notes: tuple[str, ...] = ()
    continues: bool = False

    @property
    def snapshot(self) -> bool:
        """Whether the start takes a snapshot."""
        return self.structure or self.rows


@dataclass(frozen=True, slots=True)
class _Policy:
    """The rules of a mode, with the terms of Debezium's snapshotters.

    Attributes:
        rows: when to read rows: at ``every`` start, at the ``first`` start, or ``never``.
        structure: when structures are read, with the same values.
        stream: whether the binlog is read afterwards.
        on_schema_error: whether a missing schema history is rebuilt.
        on_data_error: whether a new snapshot is taken if the server no longer has the binlog at the stored position.
    """

    rows: str
    structure: str
    stream: bool = True
    on_schema_error: bool = False
    on_data_error: bool = False


_POLICIES = {
    SnapshotMode.INITIAL: _Policy("first", "first"),
    SnapshotMode.INITIAL_ONLY: _Policy("first", "first", stream=False),
    SnapshotMode.WHEN_NEEDED: _Policy("first", "first", on_data_error=True),
    SnapshotMode.NO_DATA: _Policy("never", "first"),
    SnapshotMode.ALWAYS: _Policy("every", "every"),
    SnapshotMode.RECOVERY: _Policy("never", "every", on_schema_error=True),
}


def decide(
    mode: SnapshotMode,
    offset: SourceOffset | None,
    *,
    history_exists: bool,
    position: PositionCheck | None,
    flags: SnapshotFlags | None = None,
    resumable: bool = False,
) -> Decision:
    """Decide what a start does.

    Args:
        mode: ``snapshot.mode``.
        offset: the stored position; ``None`` at the first start.
        history_exists: whether the schema history has records.
        position: whether the server can stream from ``offset``; ``None`` means yes.
        flags: the flags of mode ``configuration_based``.
        resumable: whether an interrupted initial snapshot continues, if possible.

    Raises:
        SnapshotError: the mode does not allow the action that the stored position requires.
        PositionPurged: the server no longer has the binlog at the position, and the mode takes no new snapshot.
        HistoryMissing: there is no schema history, and the mode does not rebuild it.
    """
    policy = _policy(mode, flags)
    if offset is None:
        return _first_start(mode, policy, history_exists=history_exists)
    if offset.snapshot == "INITIAL" or offset.continues_snapshot:
        left = SnapshotState.from_carried(offset.carried)
        if left.unfinished and resumable and policy.stream and policy.rows != "never" and history_exists:
            return _continued(policy, offset, left, position)
        return _after_interruption(mode, policy, left)
    if policy.rows == "every":
        return Decision(structure=True, rows=True, position=None, stream=policy.stream)
    if not policy.stream:
        note = f"the snapshot was completed before; with snapshot.mode={mode} there is nothing left to do"
        return Decision(structure=False, rows=False, position=offset, stream=False, notes=(note,))
    return _resumed(policy, offset, history_exists=history_exists, position=position)


def _policy(mode: SnapshotMode, flags: SnapshotFlags | None) -> _Policy:
    if mode is not SnapshotMode.CONFIGURATION_BASED:
        return _POLICIES[mode]
    if flags is None:
        raise ValueError("snapshot.mode=configuration_based needs flags")
    return _Policy(
        "every" if flags.data else "never",
        "every" if flags.schema else "never",
        flags.stream,
        flags.on_schema_error,
        flags.on_data_error,
    )


def _first_start(mode: SnapshotMode, policy: _Policy, *, history_exists: bool) -> Decision:
    if mode is SnapshotMode.RECOVERY:
        raise SnapshotError(
            "Could not find existing redo log information while attempting schema only recovery snapshot: no position "
            "is stored for this connector (name, topic.prefix), so there is nothing to recover. Use "
            "snapshot.mode=initial or no_data"
        )
    rows, structure = policy.rows != "never", policy.structure != "never"
    if not rows and not structure and not history_exists:
        raise HistoryMissing(_history_missing("no position is stored either"))
    notes: tuple[str, ...] = ()
    if not rows:
        notes = ("existing rows are not read; the first record is that of the next change",)
    return Decision(structure=structure or rows, rows=rows, position=None, stream=policy.stream, notes=notes)


def _continued(policy: _Policy, offset: SourceOffset, left: SnapshotState, position: PositionCheck | None) -> Decision:
    """Continue an incomplete initial snapshot: stream from its position, and read the rest alongside the stream."""
    if position is not None and not position.available:
        where = (
            "an interrupted snapshot cannot continue, because the server no longer has the binlog since "
            f"{offset.position_json()}: {position.reason}"
        )
        if not policy.on_data_error:
            raise PositionPurged(
                f"{where}. Take the snapshot again from the beginning: set rowtide.snapshot.resumable=false for one "
                "start, or snapshot.mode=when_needed. Rows that were deleted in between stay in the topics"
            )
        note = f"{where}. It begins again; rows that were deleted in between stay in the topics"
        return Decision(structure=True, rows=True, position=None, stream=True, notes=(note,))
    note = f"an earlier snapshot was interrupted: {len(left.tables)} tables are read together with the stream"
    start = replace(offset, snapshot=None)
    return Decision(structure=False, rows=False, position=start, stream=True, notes=(note,), continues=True)


def _after_interruption(mode: SnapshotMode, policy: _Policy, left: SnapshotState) -> Decision:
    """Start an incomplete initial snapshot again from the beginning, because the view of its rows no longer exists."""
    if mode is SnapshotMode.RECOVERY or (policy.rows == "never" and policy.structure == "never"):
        raise SnapshotError(
            "The connector previously stopped while taking a snapshot, but now the connector is configured to never "
            f"allow snapshots (snapshot.mode={mode}). Reconfigure the connector to use snapshots initially or when "
            "needed, otherwise the remaining rows would be missing"
        )
    notes = ["an earlier snapshot was interrupted: it starts again from the beginning, so records may be repeated"]
    rows = policy.rows != "never"
    if left.unfinished:
        notes.append(
            "it could continue with the missing rows with rowtide.snapshot.resumable=true, a snapshot.mode that "
            "reads rows and streams, and its schema history"
        )
    if not rows:
        notes.append(f"with snapshot.mode={mode}, the rows that it did not read are not read now either")
    return Decision(structure=True, rows=rows, position=None, stream=policy.stream, notes=tuple(notes))


def _resumed(
    policy: _Policy, offset: SourceOffset, *, history_exists: bool, position: PositionCheck | None
) -> Decision:
    if position is not None and not position.available:
        where = f"the position {offset.position_json()} is no longer available on the server: {position.reason}"
        if policy.on_data_error:
            note = f"{where}. All captured tables are read again; records of changes in between are missing"
            return Decision(structure=True, rows=True, position=None, stream=True, notes=(note,))
        raise PositionPurged(
            f"The connector is trying to read change stream starting at {offset.position_json()}, but this is no "
            f"longer available on the server: {position.reason}. Reconfigure the connector to use a snapshot mode when "
            "needed (snapshot.mode=when_needed reads all captured tables again), or read from a mirror that has it "
            "(--from-mirror)"
        )
    if policy.structure == "every":
        note = (
            "the current structure of all tables is taken as that at the stored position, which is right only if no "
            "table was altered since then"
        )
        return Decision(structure=True, rows=False, position=offset, stream=True, notes=(note,))
    if history_exists:
        return Decision(structure=False, rows=False, position=offset, stream=True)
    if not policy.on_schema_error:
        raise HistoryMissing(_history_missing(f"the stored position is {offset.position_json()}"))
    note = "the schema history is missing; it is rebuilt from the current structure of the tables"
    return Decision(structure=True, rows=False, position=offset, stream=True, notes=(note,))


def _history_missing(where: str) -> str:
    return (
        f"The db history topic is missing ({where}): without it, the structure of the tables at the stored position "
        "is not known. You may attempt to recover it by reconfiguring the connector to recovery "
        "(snapshot.mode=recovery, right if no table was altered since), or check that "
        "schema.history.internal.kafka.topic or schema.history.internal.file.filename names the history that was "
        "used before"
    )
