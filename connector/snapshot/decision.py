"""What happens at a start: whether structure and rows are read, and from where streaming goes on. Pure.

The rules are Debezium's snapshotters; where Debezium would lose changes or stop without need, the difference is said
here and in the message.
"""

from dataclasses import dataclass

from rowtide.connector.config.choices import SnapshotMode
from rowtide.connector.config.model import SnapshotFlags
from rowtide.connector.errors import HistoryMissing, PositionPurged, SnapshotError
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.source.position_rules import PositionCheck


@dataclass(frozen=True, slots=True)
class Decision:
    """What is done at this start.

    Attributes:
        structure: read the structure of all tables into the schema history.
        rows: read the rows of captured tables.
        position: the stored position to go on from; ``None`` for the server's position at the snapshot.
        stream: read the binlog afterwards.
        notes: what the log must say about the choice.
    """

    structure: bool
    rows: bool
    position: SourceOffset | None
    stream: bool
    notes: tuple[str, ...] = ()

    @property
    def snapshot(self) -> bool:
        """Whether a snapshot is taken at all."""
        return self.structure or self.rows


@dataclass(frozen=True, slots=True)
class _Policy:
    """A mode, as Debezium's snapshotters answer its questions.

    Attributes:
        rows: at every start, at the first start, or never.
        structure: the same.
        stream: whether the binlog is read afterwards.
        on_schema_error: whether a missing schema history is rebuilt.
        on_data_error: whether a position that is gone leads to a new snapshot.
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
) -> Decision:
    """Decide what to do at a start.

    Args:
        mode: ``snapshot.mode``.
        offset: the stored position; ``None`` at the first start.
        history_exists: whether the schema history has records.
        position: whether the server can stream from ``offset``; ``None`` counts as yes.
        flags: of mode ``configuration_based``.

    Raises:
        SnapshotError: the mode does not fit what was left behind.
        PositionPurged: the position is gone, and the mode takes no new snapshot.
        HistoryMissing: the schema history is gone, and the mode does not rebuild it.
    """
    policy = _policy(mode, flags)
    if offset is None:
        return _first_start(mode, policy, history_exists=history_exists)
    if offset.snapshot == "INITIAL":
        return _after_interruption(mode, policy)
    if policy.rows == "every":
        return Decision(structure=True, rows=True, position=None, stream=policy.stream)
    if not policy.stream:
        note = f"the snapshot was completed before; with snapshot.mode={mode} there is nothing more to do"
        return Decision(structure=False, rows=False, position=offset, stream=False, notes=(note,))
    return _continued(policy, offset, history_exists=history_exists, position=position)


def _policy(mode: SnapshotMode, flags: SnapshotFlags | None) -> _Policy:
    if mode is not SnapshotMode.CONFIGURATION_BASED:
        return _POLICIES[mode]
    if flags is None:
        raise ValueError("snapshot.mode=configuration_based comes with flags")
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
        notes = ("rows that are in the tables already are not read; records begin with the next change",)
    return Decision(structure=structure or rows, rows=rows, position=None, stream=policy.stream, notes=notes)


def _after_interruption(mode: SnapshotMode, policy: _Policy) -> Decision:
    """An initial snapshot that did not end is begun anew: its rows were read in a view that is gone."""
    if mode is SnapshotMode.RECOVERY or (policy.rows == "never" and policy.structure == "never"):
        raise SnapshotError(
            "The connector previously stopped while taking a snapshot, but now the connector is configured to never "
            f"allow snapshots (snapshot.mode={mode}). Reconfigure the connector to use snapshots initially or when "
            "needed, otherwise the rows that were not read yet would be missing"
        )
    notes = ["an earlier snapshot was interrupted: it starts again from the beginning, records may come twice"]
    rows = policy.rows != "never"
    if not rows:
        notes.append(f"with snapshot.mode={mode} the rows that it did not read are not read now either")
    return Decision(structure=True, rows=rows, position=None, stream=policy.stream, notes=tuple(notes))


def _continued(
    policy: _Policy, offset: SourceOffset, *, history_exists: bool, position: PositionCheck | None
) -> Decision:
    if position is not None and not position.available:
        where = f"the position {offset.to_json()} is no longer available on the server: {position.reason}"
        if policy.on_data_error:
            note = f"{where}. All captured tables are read anew; changes between are in the new state only"
            return Decision(structure=True, rows=True, position=None, stream=True, notes=(note,))
        raise PositionPurged(
            f"The connector is trying to read change stream starting at {offset.to_json()}, but this is no longer "
            f"available on the server: {position.reason}. Reconfigure the connector to use a snapshot mode when needed "
            "(snapshot.mode=when_needed reads all captured tables anew)"
        )
    if policy.structure == "every":
        note = (
            "the structure of all tables is read anew and taken for the one at the stored position; this is right "
            "only if no table was changed since then"
        )
        return Decision(structure=True, rows=False, position=offset, stream=True, notes=(note,))
    if history_exists:
        return Decision(structure=False, rows=False, position=offset, stream=True)
    if not policy.on_schema_error:
        raise HistoryMissing(_history_missing(f"the stored position is {offset.to_json()}"))
    note = "the schema history is missing; it is rebuilt from the tables as they are now"
    return Decision(structure=True, rows=False, position=offset, stream=True, notes=(note,))


def _history_missing(where: str) -> str:
    return (
        f"The db history topic is missing ({where}): without it the structure of the tables at the stored position is "
        "not known. You may attempt to recover it by reconfiguring the connector to recovery "
        "(snapshot.mode=recovery, right if no table was changed since), or check that "
        "schema.history.internal.kafka.topic names the topic that was used before"
    )
