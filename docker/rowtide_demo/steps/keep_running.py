"""What ``--keep`` leaves in the user's hand: small scripts for the running stack."""

import shlex
from pathlib import Path

from rowtide_stack import Kafka, MySQL
from rowtide_stack.programs import catalogue
from rowtide_stack.runners.runner import provider

from rowtide_demo.steps.context import Stage
from rowtide_demo.steps.tables import environment, tables_command

__all__ = ["advice", "next_steps", "write"]


def write(stage: Stage, mysql: MySQL) -> list[tuple[str, str]]:
    """Write the scripts; gives each with what it does."""
    folder = stage.folder
    spark = " ".join(f"{name}={shlex.quote(value)}" for name, value in environment(folder).items())
    scripts = [
        ("update-tables", f"env {spark} {shlex.join(tables_command(stage))}", "bring the Delta tables up to date")
    ]
    if provider() == "local":
        client = [*catalogue.mysql_command("bin/mysql"), f"--host={mysql.host}", f"--port={mysql.port}"]
        client += [f"--user={mysql.user}", f"--password={mysql.password}", "shop"]
        scripts.insert(0, ("mysql", shlex.join(client), "MySQL's client, in the shop"))
    for name, command, _ in scripts:
        path = folder / name
        path.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        path.chmod(0o700)
    return [(str(folder / name), what) for name, _, what in scripts]


def advice(stage: Stage, mysql: MySQL, kafka: Kafka, pid: int) -> str:
    """How to reach what is running, what to try, and how to stop it."""
    lines = ["Everything is still running. Try a change and see it arrive:", ""]
    lines += [f"  {path:<44} {what}" for path, what in write(stage, mysql)]
    lines += [
        "",
        f"  MySQL     {mysql.host}:{mysql.port}, user {mysql.user}, password {mysql.password}, database shop",
        f"  Kafka     {kafka.bootstrap}, topics shop.shop.customers ...",
        f"  rowtide   configuration {stage.config}, log {stage.log('run')}",
        f"  web       http://127.0.0.1:{stage.web_port}/health and /metrics",
        f"  tables    {stage.folder / 'tables'} (Delta Lake)",
        "",
        f"Ctrl-C here, or kill {pid}, stops everything and removes {stage.folder}.",
    ]
    return "\n".join(lines)


def next_steps(root: Path) -> str:
    """What to try after a demo that has been cleaned up."""
    demo = root / "docker/demo"
    shown = demo.relative_to(Path.cwd()) if demo.is_relative_to(Path.cwd()) else demo
    return (
        "What to try next:\n"
        f"  {shown} --keep            the same, and everything stays up to play with\n"
        f"  {shown} --rows 20000      a smaller shop, or a larger one\n"
        '  README.md, "Quick start"      rowtide with a MySQL of your own'
    )
