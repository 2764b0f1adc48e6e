"""Canal's clients under kills of the server: ``python -m tests.canal.clients --help`` from the checkout's root."""

from __future__ import annotations

import contextlib
import sys
import tempfile
from pathlib import Path

import click

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "docker"))  # neither is installed

from rowtide_stack import MariaDB, MySQL, ZooKeeper  # noqa: E402

from tests.canal.clients.campaign import Round, run_round  # noqa: E402
from tests.canal.clients.clients import CLIENTS  # noqa: E402

SERVERS = {"mysql": MySQL, "mariadb": MariaDB}


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--flavor", type=click.Choice([*SERVERS]), default="mysql", show_default=True)
@click.option("--client", "clients", type=click.Choice([*CLIENTS]), multiple=True, help="One or several; default all.")
@click.option("--cluster", is_flag=True, help="Two servers with ZooKeeper, for the cluster client of Java.")
@click.option("--changes", default=200_000, show_default=True, help="Row changes.")
@click.option("--kills", default=20, show_default=True, help="How often the server is killed.")
@click.option("--seed", default=1, show_default=True, help="Of the load and of the moments of the kills.")
@click.option("--gtids", is_flag=True, help="With canal.instance.gtidon.")
@click.option("--entries", is_flag=True, help="With fetch sizes that count entries (ITEMSIZE).")
@click.option("--keep", type=click.Path(path_type=Path), help="A folder for logs and what the clients write.")
def main(flavor: str, clients: tuple[str, ...], keep: Path | None, **options: bool | int) -> None:
    """Let Canal's clients read a live load while ``rowtide canal`` is killed, and account for every change.

    Each client has a destination of its own. The exit code is 1 if a change was lost, came out of order, or came again
    from before the stored position.
    """
    wanted = clients or (("java",) if options["cluster"] else tuple(CLIENTS))
    counts_entries = bool(options.pop("entries"))
    chosen = Round(clients=wanted, counts_entries=counts_entries, **options)  # type: ignore[arg-type]
    for client in wanted:
        CLIENTS[client]()
    with contextlib.ExitStack() as stack:
        folder = keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        database = stack.enter_context(stack.enter_context(SERVERS[flavor]()).database())
        zookeeper = stack.enter_context(ZooKeeper()) if chosen.cluster else None
        click.echo(f"{database.server.name} {database.server.version}: {chosen}")
        outcome = run_round(chosen, database, zookeeper, folder, click.echo)
    for client, found in outcome.received.items():
        click.echo(
            f"{client}: {found.changes} changes, {found.repeated} came again in {found.rewinds} rewinds, "
            f"{found.connections} connections"
        )
    for problem in outcome.problems:
        click.echo(f"PROBLEM {problem}")
    click.echo(f"{outcome.changes} changes, {chosen.kills} kills, {outcome.seconds:.0f} s")
    sys.exit(bool(outcome.problems))


main()
