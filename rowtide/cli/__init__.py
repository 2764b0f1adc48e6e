"""The command line ``rowtide``, which imports a command's module only when that command is called.

``rowtide --help`` therefore works with the base installation, and a command whose packages are missing names the extra
to install.
"""

import contextlib
import gc
import importlib
import os
import signal
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import click
from click.shell_completion import CompletionItem

from rowtide._version import __version__, commit

__all__ = ["importing", "main"]


class Command(NamedTuple):
    """A command that is not imported yet.

    Attributes:
        module: the module that defines it.
        name: its name in the module.
        extra: the extra of the distribution that installs the packages it needs.
        summary: its line in the list of commands.
    """

    module: str
    name: str
    extra: str
    summary: str


COMMANDS = {
    "canal": Command("rowtide.cli.connectors.canal", "canal", "connector", "Serve Canal's clients, or feed Kafka."),
    "completion": Command("rowtide.cli.completion", "completion", "", "Print the completion script of a shell."),
    "databus": Command(
        "rowtide.cli.connectors.databus",
        "databus",
        "connector,databus",
        "Publish changes in the form of mysql-databus.",
    ),
    "deadletters": Command(
        "rowtide.cli.dead_letters", "dead_letters", "connector", "Show and replay records that could not be sent."
    ),
    "mirror": Command("rowtide.cli.binlog.mirror", "mirror", "connector", "Copy a server's binlog files."),
    "peek": Command("rowtide.cli.peek", "peek", "connector", "Print records of a topic."),
    "position": Command("rowtide.cli.binlog.position", "position", "connector", "Find a position in a binlog."),
    "replay": Command("rowtide.cli.binlog.replay", "replay", "connector", "Convert binlog files on disk to records."),
    "check": Command("rowtide.cli.connectors.check", "check", "connector", "Check whether a connector can start."),
    "runway": Command(
        "rowtide.cli.binlog.runway", "runway", "connector", "Show how long the server keeps the binlog that is needed."
    ),
    "schema": Command("rowtide.cli.schema", "schema", "connector", "Look up table structures and their history."),
    "tables": Command("rowtide.cli.tables", "tables", "spark", "Update Spark tables from the topics."),
    "run": Command("rowtide.cli.connectors.run", "run", "connector", "Run a connector until it is stopped."),
    "signal": Command("rowtide.cli.connectors.signal", "signal", "connector", "Send a signal to a running connector."),
    "snapshot": Command(
        "rowtide.cli.connectors.snapshot", "snapshot", "connector", "Show the state of a connector's snapshots."
    ),
    "verify": Command(
        "rowtide.cli.connectors.verify", "verify", "connector", "Prove that source, topics and tables are equal."
    ),
    "worker": Command(
        "rowtide.cli.connectors.worker", "worker", "connector", "Run connectors as one of a fleet's workers."
    ),
    "properties": Command(
        "rowtide.cli.properties", "properties", "connector", "Show the reference of configuration properties."
    ),
}


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run the command line."""
        open_standard_streams()
        return super().main(*args, **kwargs)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands. Nothing is imported."""
        return sorted({*super().list_commands(ctx), *COMMANDS})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command.

        Raises:
            click.ClickException: a package that the command needs is not installed.
        """
        command = COMMANDS.get(cmd_name)
        if command is None:
            return super().get_command(ctx, cmd_name)
        try:
            with importing():
                found = getattr(importlib.import_module(command.module), command.name)
        except ModuleNotFoundError as error:
            raise missing(error, cmd_name, command.extra) from error
        if not isinstance(found, click.Command):
            raise TypeError(f"{command.module}.{command.name} is not a command")
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Look up a command. The error for an unknown name suggests the nearest one."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            near = nearest(args[0]) if args else None
            if near is not None:
                error.message += f" Did you mean '{near}'?"
            raise

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command, and report a lack of a package, memory, open files, or disk space in one line."""
        end_at_sigterm()
        try:
            return super().invoke(ctx)
        except ModuleNotFoundError as error:
            command = COMMANDS.get(ctx.invoked_subcommand or "")
            if command is None or (error.name or "").startswith("rowtide"):
                raise
            raise missing(error, str(ctx.invoked_subcommand), command.extra) from error
        except (MemoryError, OSError, RuntimeError) as error:
            from rowtide.connector.errors import exhausted  # noqa: PLC0415 - few calls need it

            used_up = exhausted(error)
            if used_up is None:
                raise
            raise click.ClickException(used_up) from error

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the commands that start with a text, without importing them."""
        found = [CompletionItem(name, help=COMMANDS[name].summary) for name in COMMANDS if name.startswith(incomplete)]
        return found + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands with their summaries, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name].summary) for name in self.list_commands(ctx)])


def open_standard_streams() -> None:
    """Open the null device in place of standard streams that are closed (``2>&-``).

    Otherwise the next file or connection gets their descriptor, and libraries that print write into it.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # it gets the lowest free descriptor: this one
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)


def end_at_sigterm() -> None:
    """Install a SIGTERM handler, because the kernel ignores signals without one in the first process of a container.

    A command that shuts down gracefully replaces the handler while it runs.
    """
    if os.getpid() == 1:
        signal.signal(signal.SIGTERM, lambda number, _frame: os._exit(128 + number))


@contextlib.contextmanager
def importing() -> Iterator[None]:
    """Collect no garbage during imports, and none of the imported objects later: this saves an eighth of the time."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def nearest(name: str) -> str | None:
    """Return the command with the most similar name, if one is similar enough."""
    import difflib  # noqa: PLC0415 - only after a mistake

    return next(iter(difflib.get_close_matches(name, COMMANDS, n=1, cutoff=0.6)), None)


def missing(error: ModuleNotFoundError, command: str, extra: str) -> click.ClickException:
    """Return the error for a package that is not installed."""
    from rowtide.errors import needs_package  # noqa: PLC0415 - only then

    return click.ClickException(f"'rowtide {command}' {needs_package(error, extra)}")


def show_version(ctx: click.Context, _option: click.Parameter, value: bool) -> None:
    """Print the version, and whether events, rows and Kafka's record batches are handled by compiled code or Python."""
    if value:
        from rowtide.connector.kafka_producer.batches.native import (  # noqa: PLC0415 - only for this
            implementation as batches,
        )
        from rowtide.connector.protocol.native import usual_events  # noqa: PLC0415
        from rowtide.connector.rows.native import implementation as rows  # noqa: PLC0415

        found = commit()
        version = __version__ if found is None else f"{__version__} ({found})"
        click.echo(
            f"rowtide, version {version}, events: {usual_events.NAME}, rows: {rows.NAME}, "
            f"native Kafka producer: {batches.NAME}"
        )
        ctx.exit()


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=show_version,
    help="Show the version, and what is compiled.",
)
def main() -> None:
    """Change data capture for MySQL and MariaDB.

    rowtide reads the binlog of a server and writes every row change to Kafka, in Debezium's format. Spark jobs turn
    the topics into tables.
    """
