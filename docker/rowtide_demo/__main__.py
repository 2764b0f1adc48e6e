"""The command line of the demo: ``docker/demo``."""

import sys

import click

from rowtide_demo.runtime.interruption import Interrupted, interruptible

__all__ = ["main"]


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--rows",
    type=click.IntRange(min=1000),
    default=240_000,
    show_default=True,
    help="Rows of the shop at first, in four tables.",
)
@click.option("--keep", is_flag=True, help="Leave everything running at the end, until Ctrl-C.")
def main(rows: int, *, keep: bool) -> None:
    """See rowtide at work, from an empty machine to a proof.

    Starts MySQL and Kafka, fills a shop's tables, runs rowtide (snapshot, then changes as they happen), lets Spark make
    Delta tables of the topics, and compares every column of every table with MySQL's. Then everything is stopped and
    removed. Ctrl-C does so at any time.
    """
    with interruptible() as interruption:
        try:
            from rowtide_demo.scenario import run  # noqa: PLC0415 - signals are handled before the slow part

            code = run(rows, keep=keep, interruption=interruption)
        except Interrupted:
            code = interruption.exit_code
    sys.exit(code)


if __name__ == "__main__":
    main(prog_name="docker/demo")
