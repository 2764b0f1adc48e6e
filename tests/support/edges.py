"""The kinds of input and output, and the imports that show them."""

from __future__ import annotations

from tests.support.source_tree import Module

__all__ = ["WORLD", "touched"]

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


def touched(module: Module) -> set[str]:
    """The kinds of input and output that a module does."""
    roots = {name.split(".")[0] for name in module.imports(for_types=False)}
    return {part for part, leads in WORLD.items() if roots & leads}
