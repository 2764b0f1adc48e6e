"""The first steps: programs, servers, the shop, and the check of the connector's configuration."""

from rowtide_stack import Kafka, MySQL, Server
from rowtide_stack.programs import catalogue
from rowtide_stack.runners.runner import provider

from rowtide_demo.connector_properties import create_account, properties
from rowtide_demo.shop.loading import load
from rowtide_demo.shop.schema import TABLES
from rowtide_demo.steps.context import Stage

__all__ = ["UTC", "check", "fetch_programs", "fill_shop", "start_servers"]

UTC = "SET time_zone = '+00:00'"
"""Of every session: TIMESTAMP is written and read as it is kept."""


def fetch_programs(stage: Stage) -> None:
    """Download what is not in the cache yet."""
    local = ["kafka", "mysql"] if provider() == "local" else []
    with stage.screen.step("programs") as step:
        for name in ["java", *local, "spark"]:
            step.update(name)
            catalogue.PROGRAMS[name]()
            stage.interruption.check()
        step.result = "Java, MySQL, Kafka and Spark's jars are here"


def start_servers(stage: Stage) -> tuple[MySQL, Kafka]:
    """Start MySQL and Kafka, to be ended with the stage; their logs are kept if something fails."""
    mysql = MySQL({"binlog_row_metadata": "FULL", "innodb_buffer_pool_size": "256M"})
    kafka = Kafka()
    with stage.screen.step("servers") as step:
        for server in (mysql, kafka):
            step.update(f"starting {type(server).__name__}")
            stage.stack.enter_context(server)
            stage.stack.callback(_keep_log, stage, server)
            stage.interruption.check()
        step.result = f"MySQL {mysql.version} at {mysql.address}, Kafka at {kafka.address}"
    return mysql, kafka


def _keep_log(stage: Stage, server: Server) -> None:
    stage.log(server.name).write_text(server.log())


def fill_shop(stage: Stage, mysql: MySQL) -> None:
    """Make the shop's tables with their rows, and rowtide's account."""
    total = stage.sizes.total
    with stage.screen.step("shop") as step, mysql.connect(init_command=UTC) as connection:

        def told(done: int) -> None:
            stage.interruption.check()
            step.update(f"{done:,} rows", done, total)

        load(connection, stage.sizes, told)
        stage.facts.load_seconds = step.seconds
        create_account(mysql)
        step.result = f"{total:,} rows in {len(TABLES)} tables"


def check(stage: Stage, mysql: MySQL, kafka: Kafka) -> None:
    """``rowtide check`` of the configuration."""
    stage.config.write_text(properties(mysql, kafka))
    with stage.screen.step("check") as step:
        stage.finish(stage.start("rowtide check", [stage.rowtide, "check", stage.config]))
        step.result = "rowtide check: " + stage.log("check").read_text().splitlines()[-1]
