"""Scripts and instructions for the servers that ``--keep`` leaves running."""

import shlex
from pathlib import Path

from rowtide_stack import Kafka, MySQL, Registry
from rowtide_stack.programs import catalogue
from rowtide_stack.runners.runner import provider

from rowtide_demo.steps.context import Context
from rowtide_demo.steps.tables import environment, tables_command

__all__ = ["instructions", "next_steps", "write_scripts"]


def write_scripts(context: Context, mysql: MySQL) -> list[tuple[str, str]]:
    """Write the scripts, and return the path and a description of each."""
    folder = context.folder
    spark = " ".join(f"{name}={shlex.quote(value)}" for name, value in environment(folder).items())
    scripts = [("update-tables", f"env {spark} {shlex.join(tables_command(context))}", "update the Delta tables")]
    if provider() == "local":
        client = [*catalogue.mysql_command("bin/mysql"), f"--host={mysql.host}", f"--port={mysql.port}"]
        client += [f"--user={mysql.user}", f"--password={mysql.password}", "shop"]
        scripts.insert(0, ("mysql", shlex.join(client), "MySQL's client, connected to the shop"))
    for name, command, _ in scripts:
        path = folder / name
        path.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        path.chmod(0o700)
    return [(str(folder / name), what) for name, _, what in scripts]


def instructions(context: Context, mysql: MySQL, kafka: Kafka, registry: Registry | None, pid: int) -> str:
    """How to use the running servers, and how to stop them."""
    lines = ["Everything is still running. Change a row, then update the tables:", ""]
    lines += [f"  {path:<44} {what}" for path, what in write_scripts(context, mysql)]
    lines += [
        "",
        f"  MySQL     {mysql.host}:{mysql.port}, user {mysql.user}, password {mysql.password}, database shop",
        f"  Kafka     {kafka.bootstrap}, topics shop.shop.customers ...",
        *([] if registry is None else [f"  registry  {registry.url}/subjects"]),
        f"  rowtide   configuration {context.config}, log {context.log('run')}",
        f"  web       http://127.0.0.1:{context.web_port}/health and /metrics",
        f"  tables    {context.folder / 'tables'} (Delta Lake)",
        "",
        f"Ctrl-C here, or kill {pid}, stops everything and removes {context.folder}.",
    ]
    return "\n".join(lines)


def next_steps(root: Path) -> str:
    """What to try after a demo that has removed everything."""
    demo = root / "docker/demo"
    shown = demo.relative_to(Path.cwd()) if demo.is_relative_to(Path.cwd()) else demo
    return (
        "What to try next:\n"
        f"  {shown} --keep            the same, and everything keeps running\n"
        f"  {shown} --rows 20000      a smaller shop\n"
        f"  {shown} --avro            records in Avro, with a schema registry\n"
        f"  {shown} --canal           the server for Canal's clients\n"
        "  docs/start.md                 rowtide step by step, and with your own servers"
    )
