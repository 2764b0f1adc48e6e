"""The edges: the modules that do input or output, and the kinds of input and output that each may do.

All other modules are pure: bytes and rows go in, records come out. A module that connects to a server, starts threads,
or reads a clock or a file is an edge. Edges are few and short, and each is listed in `EDGES`, so that a new one is
a deliberate decision. `test_architecture.py` compares this list with the code.
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
"""The kinds of input and output, and the imports that show them."""

EDGES = {
    "rowtide.canal.configuration.load": "files",
    "rowtide.canal.configuration.model": "files",
    "rowtide.canal.configuration.reader": "files",
    "rowtide.canal.instance.client_positions": "files threads",
    "rowtide.canal.instance.instance": "files threads",
    "rowtide.canal.instance.kafka": "files threads",
    "rowtide.canal.instance.reading": "clock files mysql threads",
    "rowtide.canal.instance.snapshot": "clock",
    "rowtide.canal.instance.source": "clock files threads",
    "rowtide.canal.mq.messages": "clock",
    "rowtide.canal.replay": "clock files",
    "rowtide.canal.server.destination": "threads",
    "rowtide.cli.connectors.signal": "clock",
    "rowtide.cli.connectors.signal_channels": "files kafka mysql",
    "rowtide.cli.connectors.worker_client": "files network",
    "rowtide.cli.peek": "clock kafka",
    "rowtide.canal.server.news": "threads",
    "rowtide.canal.server.tcp": "network threads",
    "rowtide.canal.service": "files threads",
    "rowtide.cli.connectors.canal": "files processes threads",
    "rowtide.cli.binlog.mirror": "files processes",
    "rowtide.cli.binlog.position": "files",
    "rowtide.cli.binlog.replay": "clock files",
    "rowtide.databus.client.aio": "threads",
    "rowtide.databus.client.client": "clock threads",
    "rowtide.databus.client.dump": "clock network",
    "rowtide.databus.client.offset_file": "files",
    "rowtide.databus.client.settings": "files",
    "rowtide.databus.client.topic": "kafka",
    "rowtide.databus.zookeeper": "zookeeper",
    "rowtide.cli.schema": "files",
    "rowtide.cli.schema_sources": "files",
    "rowtide.cli.table_schemas": "threads",
    "rowtide.cli.tables": "files processes",
    "rowtide.connector.check": "mysql",
    "rowtide.connector.check.broker": "kafka",
    "rowtide.connector.check.kafka_access": "kafka",
    "rowtide.connector.check.server": "mysql",
    "rowtide.connector.config.files.files": "files",
    "rowtide.connector.config.load": "files",
    "rowtide.connector.delivery.event_store": "clock threads",
    "rowtide.connector.delivery.file_offset_store": "files",
    "rowtide.connector.delivery.kafka.errors": "kafka",
    "rowtide.connector.delivery.kafka.producer": "clock kafka threads",
    "rowtide.connector.delivery.kafka.second_writer": "clock kafka threads",
    "rowtide.connector.delivery.kafka.sink": "clock kafka",
    "rowtide.connector.delivery.kafka.writer": "clock files",
    "rowtide.connector.delivery.delivery_loop": "clock threads",
    "rowtide.connector.delivery.sinks.http": "network threads",
    "rowtide.connector.delivery.sinks.json_lines": "files",
    "rowtide.connector.engine.engine": "clock files threads",
    "rowtide.connector.engine.pipeline_settings": "clock",
    "rowtide.connector.engine.reader": "clock",
    "rowtide.connector.engine.signals.channel": "threads",
    "rowtide.connector.engine.signals.file_channel": "clock files",
    "rowtide.connector.engine.signals.kafka_channel": "kafka",
    "rowtide.connector.engine.signals.signalling": "clock files",
    "rowtide.connector.engine.replay": "clock files",
    "rowtide.connector.engine.run": "clock threads",
    "rowtide.connector.engine.start.position": "clock mysql",
    "rowtide.connector.engine.task": "clock threads",
    "rowtide.connector.engine.topic_guard": "clock threads",
    "rowtide.connector.engine.start.table_lookup": "mysql",
    "rowtide.connector.engine.start.written_snapshot": "threads",
    "rowtide.connector.engine.wiring": "files",
    "rowtide.connector.records.heartbeat": "clock",
    "rowtide.connector.rows.native.implementation": "files",
    "rowtide.connector.snapshot.blocking.snapshots": "clock mysql",
    "rowtide.connector.snapshot.chunks.parallel_reading": "mysql threads",
    "rowtide.connector.snapshot.incremental.chunk_reader": "clock mysql threads",
    "rowtide.connector.snapshot.incremental.watermarks": "clock",
    "rowtide.connector.snapshot.view.committed_position": "clock mysql",
    "rowtide.connector.snapshot.view.prepared_xa": "mysql",
    "rowtide.connector.snapshot.view.consistent_view": "clock mysql",
    "rowtide.connector.source.binlog_end": "clock mysql threads",
    "rowtide.connector.source.files.folder": "files",
    "rowtide.connector.source.search.binlog_search": "clock",
    "rowtide.connector.source.files.statements": "files",
    "rowtide.connector.source.binlog_stream": "clock mysql network",
    "rowtide.connector.source.connection.client": "clock mysql network",
    "rowtide.connector.source.connection.errors": "mysql network",
    "rowtide.connector.source.connection.login": "mysql",
    "rowtide.connector.source.connection.result_set": "mysql",
    "rowtide.connector.source.connection.tls": "files network",
    "rowtide.connector.source.current_structure": "clock mysql",
    "rowtide.connector.source.enum_labels": "mysql",
    "rowtide.connector.source.mirror.folder": "files",
    "rowtide.connector.source.mirror.reader": "files threads",
    "rowtide.connector.source.mirror.streams": "files",
    "rowtide.connector.source.mirror.mirror": "clock mysql threads",
    "rowtide.connector.source.position.check": "mysql",
    "rowtide.connector.source.search.places": "clock files",
    "rowtide.connector.source.server_queries": "mysql",
    "rowtide.connector.source.stream_reader": "threads",
    "rowtide.connector.source.session": "mysql",
    "rowtide.connector.worker.base_app": "worker",
    "rowtide.connector.worker.connectors": "threads worker",
    "rowtide.connector.worker.faust_app": "files threads",
    "rowtide.connector.worker.process": "files processes threads worker",
    "rowtide.connector.worker.reports.reporter": "worker",
    "rowtide.connector.worker.service": "clock files threads worker",
    "rowtide.connector.worker.systemd": "files network worker",
    "rowtide.connector.worker.web.address": "files network",
    "rowtide.connector.worker.web.connect_rest": "network",
    "rowtide.connector.worker.web.pages": "network threads",
    "rowtide.connector.worker.web.server": "network worker",
    "rowtide.connector.worker.web.signals": "network",
    "rowtide.schema_history.compaction.kafka_summary_store": "kafka",
    "rowtide.schema_history.compaction.summary_store": "files",
    "rowtide.schema_history.store.file": "files",
    "rowtide.schema_history.store.topic_reader": "clock kafka",
    "rowtide.schema_history.store.topic_writer": "kafka",
    "rowtide.spark_consumers.batch": "spark",
    "rowtide.spark_consumers.formats": "spark",
    "rowtide.spark_consumers.formats.base": "spark",
    "rowtide.spark_consumers.formats.delta": "spark",
    "rowtide.spark_consumers.formats.parquet": "spark",
    "rowtide.spark_consumers.job": "clock spark threads",
    "rowtide.spark_consumers.jvm.driver": "spark",
    "rowtide.spark_consumers.jvm.files": "files network spark",
    "rowtide.spark_consumers.jvm.session": "files spark",
    "rowtide.spark_consumers.kafka.source": "spark",
    "rowtide.spark_consumers.messages.records": "spark",
    "rowtide.spark_consumers.messages.schemaless": "spark",
    "rowtide.spark_consumers.messages.segments": "spark",
    "rowtide.spark_consumers.rows.changes": "spark",
    "rowtide.spark_consumers.rows.last": "spark",
    "rowtide.spark_consumers.rows.multiset": "spark",
    "rowtide.topics.admin": "clock kafka threads",
}
"""The edges and what each may do. A name with a star matches the modules that are not listed themselves."""


def touched(module: Module) -> set[str]:
    """The kinds of input and output that a module does."""
    roots = {name.split(".")[0] for name in module.imports(for_types=False)}
    return {part for part, leads in WORLD.items() if roots & leads}


def allowed(name: str) -> set[str]:
    """The kinds of input and output that `EDGES` allows a module."""
    if name in EDGES:
        return set(EDGES[name].split())
    return {part for pattern, parts in EDGES.items() if fnmatchcase(name, pattern) for part in parts.split()}
