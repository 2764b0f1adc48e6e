"""Writes classes for the rows of the captured tables, as they currently are on the server."""

import os
from contextlib import closing
from pathlib import Path

from rowtide.connector.config import Configuration, ConfigurationError, load
from rowtide.connector.config.catalogue.connect import SINK
from rowtide.connector.engine.changes import calls
from rowtide.connector.engine.pipeline_settings import pipeline_settings
from rowtide.connector.errors import SnapshotError
from rowtide.connector.records.codecs.builder import table_schema
from rowtide.connector.records.row_classes import classes_module
from rowtide.connector.snapshot.structure import plan
from rowtide.connector.snapshot.structure.current_table import current_table
from rowtide.connector.source import server_queries
from rowtide.connector.source.session import Session
from rowtide.envelope.table import TableSchema


def models(
    config: str | os.PathLike[str] | Configuration,
    path: str | os.PathLike[str] | None = None,
    *,
    pydantic: bool = False,
) -> str:
    """Write a Python module with a class for the rows of each captured table: dataclasses, or pydantic models.

    The classes have the types of the changes from an ``Engine`` and a ``Decoder``, without the columns that the
    connector excludes. ``change.after_as(Customer)`` creates objects of these classes.

    Args:
        config: the connector's configuration, or its file.
        path: the path of the module; by default it is only returned.
        pydantic: write pydantic models.

    Returns:
        The source of the module.

    Raises:
        ConfigurationError: the configuration has problems.
        DatabaseUnreachableError: the server cannot be reached.
        SnapshotError: a structure may not be read, or no table is captured.
    """
    read = config if isinstance(config, Configuration) else _read(config)
    text = classes_module(_captured(read), read.name, pydantic=pydantic)
    if path is not None:
        Path(path).write_text(text, encoding="utf-8")
    return text


def _read(path: str | os.PathLike[str]) -> Configuration:
    """Return the configuration of a worker, or of an engine, which needs no Kafka."""
    calls.require_paths((path,))
    try:
        return load([os.fspath(path)])
    except ConfigurationError as error:
        try:
            return load([os.fspath(path)], more={SINK.name: "python"})
        except ConfigurationError:
            raise error from None


def _captured(config: Configuration) -> list[TableSchema]:
    settings = pipeline_settings(config, "models", changes=True)
    found = []
    with closing(Session(config.database, mariadb=config.mariadb)) as session:
        listed = server_queries.tables(session, list(server_queries.databases(session)))
        for table in plan.captured_tables(listed, settings):
            name = (table.database, table.table)
            structure, _ = current_table(session, table)
            if structure is None:
                raise SnapshotError(f"the structure of {table} cannot be parsed")
            topic, augment = settings.naming.data_change(*name), settings.naming.key_augment(*name)
            found.append(table_schema(structure, topic, settings.rules, "snapshot", augment=augment))
    if not found:
        raise SnapshotError("no table is captured: see table.include.list and database.include.list")
    return found
