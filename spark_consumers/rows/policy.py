"""The effect of structure changes on a table: the behaviors of Flink CDC, for the kinds that are not excluded."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from rowtide.spark_consumers.errors import SchemaChangeError
from rowtide.spark_consumers.rows.evolution import Evolution
from rowtide.spark_consumers.settings import ChangeKind, ChangePolicy


def required(table: str, policy: ChangePolicy, changes: Collection[tuple[ChangeKind, str]]) -> None:
    """Refuse the changes that must not happen.

    Args:
        table: its name.
        policy: of the run.
        changes: the kinds, and the changed objects.

    Raises:
        SchemaChangeError: a change of a kind that stops the table occurred.
    """
    refused = [(kind, what) for kind, what in changes if policy.refuses(kind)]
    if refused:
        raise SchemaChangeError(table, ", ".join(f"{kind} ({what})" for kind, what in refused), refused[0][0])


def changes_of(evolution: Evolution, gone: Collection[str], own: Collection[str] = ()) -> list[tuple[ChangeKind, str]]:
    """Return the changes of an existing table's columns.

    Args:
        evolution: of the table.
        gone: the columns that MySQL has dropped.
        own: the columns that MySQL does not have, such as metadata.
    """
    if evolution.before is None:
        return []
    return [
        *((ChangeKind.RENAME_COLUMN, f"{old} to {new}") for old, new in evolution.renames.names.items()),
        *((ChangeKind.ADD_COLUMN, f"{name} {kind}") for name, kind in evolution.added if name not in own),
        *((ChangeKind.ALTER_COLUMN_TYPE, f"{name} {old} to {new}") for name, old, new in evolution.widened),
        *((ChangeKind.DROP_COLUMN, name) for name in gone),
    ]


def without_ignored(
    table: str,
    evolution: Evolution,
    policy: ChangePolicy,
    keys: Collection[str],
    gone: Collection[str],
    own: Collection[str] = (),
) -> Evolution:
    """Return the evolution without new columns that the table must not get, and without dropped ones.

    Args:
        table: its name, for errors.
        evolution: of the table.
        policy: of the run.
        keys: the columns of keys, in lower case.
        gone: the columns that are dropped, in lower case.
        own: the columns that MySQL does not have, such as metadata.

    Raises:
        SchemaChangeError: the key needs a column that would be ignored.
    """
    ignored: list[str] = []
    if policy.ignores(ChangeKind.ADD_COLUMN):
        ignored = [name for name, _ in evolution.added if name not in own]
        if needed := [name for name in ignored if name.lower() in keys]:
            raise SchemaChangeError(table, f"{ChangeKind.ADD_COLUMN} ({needed[0]}, a column of the key)", None)
        evolution = replace(evolution, fills={})
    left = {*gone, *(name.lower() for name in ignored)}
    return replace(
        evolution,
        after=tuple(column for column in evolution.after if column[0].lower() not in left),
        fills={name: value for name, value in evolution.fills.items() if name.lower() not in left},
        notes=(*evolution.notes, *(f"{table}: the new column {name} is ignored" for name in ignored)),
    )


def dropped(structures: Sequence[Collection[str]], newest: Collection[str], keys: Collection[str]) -> set[str]:
    """Return the columns, in lower case, that older structures have, and neither the newest one nor a key."""
    return {name.lower() for structure in structures for name in structure} - {
        name.lower() for name in (*newest, *keys)
    }
