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
    help="Initial number of rows, in four tables.",
)
@click.option("--keep", is_flag=True, help="Keep everything running at the end, until Ctrl-C.")
@click.option("--canal", is_flag=True, help="Show rowtide canal: Canal's messages in Kafka, and tables made of them.")
@click.option("--avro", is_flag=True, help="Write the records in Avro, with a schema registry.")
def main(rows: int, *, keep: bool, canal: bool, avro: bool) -> None:
    """Copy a shop's tables from MySQL through Kafka to Delta tables, and prove that nothing is lost.

    Starts MySQL and Kafka, fills the tables, runs rowtide (first the snapshot, then streaming while the tables change),
    builds Delta tables from the topics with Spark, and compares every row in MySQL, Kafka and the tables. At the end,
    or after Ctrl-C, all programs are stopped and their data is removed.
    """
    if canal and avro:
        raise click.UsageError("--canal and --avro cannot be used together: Canal's messages are JSON")
    with interruptible() as interruption:
        try:
            from rowtide_demo.scenario import run  # noqa: PLC0415 - slow; the signal handlers are installed first

            code = run(rows, keep=keep, canal=canal, avro=avro, interruption=interruption)
        except Interrupted:
            code = interruption.exit_code
    sys.exit(code)


if __name__ == "__main__":
    main(prog_name="docker/demo")
