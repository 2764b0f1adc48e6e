"""The command line ``rowtide``: finds a command's module only when the command is called.

So ``rowtide --help`` works with the base installation, and a command that needs more tells which extra to install.
"""

import importlib
from typing import Any, NamedTuple

import click

from rowtide import __version__

__all__ = ["main"]


class Command(NamedTuple):
    """Where a command is, and what it needs.

    Attributes:
        module: the module that has it.
        name: its name there.
        extra: the extra of the distribution that brings its packages.
        summary: the line in the list of commands.
    """

    module: str
    name: str
    extra: str
    summary: str


COMMANDS = {
    "replay": Command("rowtide.cli.replay", "replay", "connector", "Make records of binlog files on disk."),
    "check": Command("rowtide.cli.connector", "check", "connector", "Check that a connector could start."),
    "schema": Command(
        "rowtide.cli.schema", "schema", "connector", "Ask for tables' structures, and what changed them."
    ),
    "tables": Command("rowtide.cli.tables", "tables", "spark", "Bring Spark tables up to date from the topics."),
    "run": Command("rowtide.cli.connector", "run", "connector", "Run a connector until it is told to stop."),
    "properties": Command("rowtide.cli.connector", "properties", "connector", "Look up what can be configured."),
}


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, without importing anything."""
        return sorted({*super().list_commands(ctx), *COMMANDS})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command.

        Raises:
            click.ClickException: a package that it needs is not installed.
        """
        command = COMMANDS.get(cmd_name)
        if command is None:
            return super().get_command(ctx, cmd_name)
        try:
            found = getattr(importlib.import_module(command.module), command.name)
        except ModuleNotFoundError as error:
            raise missing(error, cmd_name, command.extra) from error
        if not isinstance(found, click.Command):
            raise TypeError(f"{command.module}.{command.name} is not a command")
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command of a call, or suggest the nearest one."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            near = nearest(args[0]) if args else None
            if near is not None:
                error.message += f" Did you mean '{near}'?"
            raise

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; a package that it lacks only when it runs is told in the same way."""
        try:
            return super().invoke(ctx)
        except ModuleNotFoundError as error:
            command = COMMANDS.get(ctx.invoked_subcommand or "")
            if command is None or (error.name or "").startswith("rowtide"):
                raise
            raise missing(error, str(ctx.invoked_subcommand), command.extra) from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, from their summaries here."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name].summary) for name in self.list_commands(ctx)])


def nearest(name: str) -> str | None:
    """The command whose name is nearest."""
    import difflib  # noqa: PLC0415 - only after a mistake

    return next(iter(difflib.get_close_matches(name, COMMANDS, n=1, cutoff=0.6)), None)


def missing(error: ModuleNotFoundError, command: str, extra: str) -> click.ClickException:
    """What to say when a package is not installed."""
    return click.ClickException(
        f"'rowtide {command}' needs the package {error.name}, which is not installed: pip install 'rowtide[{extra}]'"
    )


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="rowtide")
def main() -> None:
    """Change data capture for MySQL and MariaDB.

    rowtide reads a server's binlog and writes every change of a row to Kafka, in the format of Debezium; Spark
    jobs turn those topics into tables.
    """
