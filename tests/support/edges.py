"""The edges: the modules of rowtide that touch the world outside, and what each of them touches.

The heart of rowtide does no input or output: bytes and rows go in, records come out. A module that talks to a server,
starts threads, reads a clock or a file is an edge. Edges are few and short, and each is named in `EDGES`: a new one is
a decision, and is made here. `test_architecture.py` compares this list with the code.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

from source_tree import Module

__all__ = ["EDGES", "WORLD", "allowed", "touched"]

WORLD = {
    "clock": {"time", "sched"},
    "files": {"os", "pathlib", "shutil", "tempfile", "glob"},
    "kafka": {"aiokafka", "confluent_kafka"},
    "mysql": {"pymysql", "pymysqlreplication"},
    "network": {"aiohttp", "http", "socket", "socketserver", "ssl", "urllib"},
    "processes": {"multiprocessing", "signal", "subprocess"},
    "spark": {"delta", "py4j", "pyspark"},
    "threads": {"asyncio", "concurrent", "queue", "selectors", "threading"},
    "worker": {"faust", "mode"},
    "zookeeper": {"kazoo"},
}
"""What is outside, and the modules that lead there."""

EDGES = {
    "rowtide.connector.assembly": "clock",
    "rowtide.connector.attempt": "clock threads",
    "rowtide.connector.binlog_end": "clock mysql threads",
    "rowtide.connector.binlog_folder": "files",
    "rowtide.connector.binlog_statements": "files",
    "rowtide.connector.check": "mysql",
    "rowtide.connector.check.broker": "kafka",
    "rowtide.connector.check.server": "mysql",
    "rowtide.connector.config.files": "files",
    "rowtide.connector.config.load": "files",
    "rowtide.connector.current_structure": "clock mysql",
    "rowtide.connector.database": "mysql",
    "rowtide.connector.delivery": "clock threads",
    "rowtide.connector.event_store": "clock threads",
    "rowtide.connector.heartbeat": "clock",
    "rowtide.connector.kafka_errors": "kafka",
    "rowtide.connector.kafka_sink": "clock kafka",
    "rowtide.connector.parts": "files",
    "rowtide.connector.reader": "clock threads",
    "rowtide.connector.record_producer": "clock kafka threads",
    "rowtide.connector.replay": "clock files",
    "rowtide.connector.replay_cli": "clock files",
    "rowtide.connector.snapshot.availability": "mysql",
    "rowtide.connector.snapshot.labels": "mysql",
    "rowtide.connector.snapshot.listing": "mysql",
    "rowtide.connector.snapshot.result_set": "mysql",
    "rowtide.connector.snapshot.session": "mysql",
    "rowtide.connector.snapshot.view": "mysql",
    "rowtide.connector.stream": "clock mysql network",
    "rowtide.connector.task": "clock threads",
    "rowtide.connector.tls": "files network",
    "rowtide.connector.worker": "clock files processes threads worker",
    "rowtide.connector.xa_search": "clock",
    "rowtide.schema_history.file": "files",
    "rowtide.schema_history.file_summaries": "files",
    "rowtide.schema_history.kafka_summaries": "kafka",
    "rowtide.schema_history.topic_reader": "clock kafka",
    "rowtide.schema_history.topic_writer": "kafka",
    "rowtide.schema_cli": "files",
    "rowtide.schema_sources": "files",
    "rowtide.spark_consumers.batch": "spark",
    "rowtide.spark_consumers.changes": "spark",
    "rowtide.spark_consumers.driver": "spark",
    "rowtide.spark_consumers.files": "spark",
    "rowtide.spark_consumers.fold": "spark",
    "rowtide.spark_consumers.formats": "spark",
    "rowtide.spark_consumers.formats.base": "spark",
    "rowtide.spark_consumers.formats.delta": "spark",
    "rowtide.spark_consumers.formats.parquet": "spark",
    "rowtide.spark_consumers.job": "clock spark threads",
    "rowtide.spark_consumers.records": "spark",
    "rowtide.spark_consumers.schemaless": "spark",
    "rowtide.spark_consumers.segments": "spark",
    "rowtide.spark_consumers.session": "spark",
    "rowtide.spark_consumers.source": "spark",
    "rowtide.tables_cli": "files processes",
    "rowtide.topics.admin": "clock kafka threads",
}
"""The edges, and what each may touch. A name with a star stands for the modules that are not named themselves."""


def touched(module: Module) -> set[str]:
    """The parts of the world that a module touches."""
    roots = {name.split(".")[0] for name in module.imports(for_types=False)}
    return {part for part, leads in WORLD.items() if roots & leads}


def allowed(name: str) -> set[str]:
    """What `EDGES` lets a module touch."""
    if name in EDGES:
        return set(EDGES[name].split())
    return {part for pattern, parts in EDGES.items() if fnmatchcase(name, pattern) for part in parts.split()}
