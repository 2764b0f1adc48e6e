"""The first steps: download the programs, start the servers, fill the shop, check the configuration."""

from rowtide_stack import Kafka, MySQL, Registry, Server
from rowtide_stack.programs import catalogue
from rowtide_stack.runners.runner import provider

from rowtide_demo.connector_properties import create_account, properties
from rowtide_demo.shop.rows import load
from rowtide_demo.shop.schema import TABLES
from rowtide_demo.steps.context import Context

__all__ = ["UTC", "check", "fetch_programs", "fill_shop", "start_registry", "start_servers"]

UTC = "SET time_zone = '+00:00'"
"""Executed in every session, so that TIMESTAMP values are written and read as they are stored."""


def fetch_programs(context: Context, *, spark: bool, avro: bool = False) -> None:
    """Download the programs that are not in the cache, those of Spark and the registry only if they are needed."""
    servers = ["kafka", "mysql", *(["registry"] if avro else [])]
    local = servers if provider() == "local" else []
    with context.screen.step("programs") as step:
        for name in ["java", *local, *(["spark"] if spark else [])]:
            step.update(name)
            catalogue.PROGRAMS[name]()
            context.interruption.check()
        step.result = f"Java, MySQL{', Kafka and Spark' if spark else ' and Kafka'} are installed"


def start_servers(context: Context) -> tuple[MySQL, Kafka]:
    """Start MySQL and Kafka. They are stopped with the context, and their logs are kept if a step fails."""
    mysql = MySQL({"binlog_row_metadata": "FULL", "innodb_buffer_pool_size": "256M"})
    kafka = Kafka()
    with context.screen.step("servers") as step:
        for server in (mysql, kafka):
            step.update(f"starting {type(server).__name__}")
            context.stack.enter_context(server)
            context.stack.callback(_keep_log, context, server)
            context.interruption.check()
        step.result = f"MySQL {mysql.version} at {mysql.address}, Kafka at {kafka.address}"
    return mysql, kafka


def start_registry(context: Context) -> Registry:
    """Start a schema registry, which is stopped with the context."""
    registry = Registry()
    context.stack.enter_context(registry)
    context.stack.callback(_keep_log, context, registry)
    return registry


def _keep_log(context: Context, server: Server) -> None:
    context.log(server.name).write_text(server.log())


def fill_shop(context: Context, mysql: MySQL) -> None:
    """Create the tables with their initial rows, and the account of rowtide."""
    total = context.sizes.total
    with context.screen.step("shop") as step, mysql.connect(init_command=UTC) as connection:

        def report(done: int) -> None:
            context.interruption.check()
            step.update(f"{done:,} rows", done, total)

        load(connection, context.sizes, report)
        context.results.load_seconds = step.seconds
        create_account(mysql)
        step.result = f"{total:,} rows in {len(TABLES)} tables"


def check(context: Context, mysql: MySQL, kafka: Kafka, registry: Registry | None) -> None:
    """Write the configuration and run ``rowtide check``."""
    context.config.write_text(properties(mysql, kafka, registry))
    with context.screen.step("check") as step:
        context.finish(context.start("rowtide check", [context.rowtide, "check", context.config]))
        step.result = "rowtide check: " + context.log("check").read_text().splitlines()[-1]
