"""The command line of the local stack: ``docker/stack``, which also creates ``.venv`` if it is missing."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator

import click

from rowtide_stack.errors import StackError
from rowtide_stack.ports import is_free
from rowtide_stack.programs.catalogue import PROGRAMS
from rowtide_stack.servers.brokers import Kafka, ZooKeeper
from rowtide_stack.servers.registry import Registry
from rowtide_stack.servers.server import Server
from rowtide_stack.servers.spark import Spark
from rowtide_stack.servers.sql import MariaDB, MySQL, SqlServer

__all__ = ["main"]

SERVERS: dict[str, Callable[[], Server]] = {
    "kafka": Kafka,
    "mariadb": MariaDB,
    "mysql": MySQL,
    "registry": Registry,
    "spark": Spark,
    "zookeeper": ZooKeeper,
}
PORTS = {"kafka": 9092, "mariadb": 3306, "mysql": 3306, "registry": 8081, "spark": 7077, "zookeeper": 2181}
"""The default ports of the servers' clients."""


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Run local servers for trying rowtide: MySQL, MariaDB, Kafka, ZooKeeper, a schema registry, a Spark cluster."""


@main.command()
@click.argument("names", metavar="SERVER...", nargs=-1, required=True, type=click.Choice(sorted(SERVERS)))
@click.option(
    "--default-ports", is_flag=True, help="Use the default ports (3306, 9092, 8081, 7077, 2181) instead of free ones."
)
def up(names: tuple[str, ...], *, default_ports: bool) -> None:
    """Start servers, print their addresses, and run them until Ctrl-C.

    To start two servers of a kind, give its name twice. The data of the servers is removed at the end.
    """
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    with contextlib.ExitStack() as stack, _errors_reported():
        for name in names:
            if not stopped.is_set():
                server = SERVERS[name]()
                if default_ports:
                    server.port = _default_port(name)
                click.echo(_description(name, stack.enter_context(server)))
        if not stopped.is_set():
            click.echo("Ctrl-C stops them.")
        while not stopped.wait(1):
            pass  # on some systems, a signal does not interrupt a wait without a timeout


@main.command()
@click.argument("names", metavar="[PROGRAM]...", nargs=-1, type=click.Choice(sorted(PROGRAMS)))
def install(names: tuple[str, ...]) -> None:
    """Download programs into the cache before their first use.

    Without PROGRAM, downloads all of them.
    """
    with _errors_reported():
        for name in names or sorted(PROGRAMS):
            PROGRAMS[name]()
            click.echo(f"{name} is installed")


def _default_port(name: str) -> int:
    port = PORTS[name]
    if not is_free(port):
        raise StackError(f"port {port} of {name} is in use: stop what listens there, or omit --default-ports")
    return port


def _description(name: str, server: Server) -> str:
    account = f"  user {server.user}, password {server.password}" if isinstance(server, SqlServer) else ""
    address = server.url if isinstance(server, Registry | Spark) else server.address
    return f"{name:10} {address}{account}"


@contextlib.contextmanager
def _errors_reported() -> Iterator[None]:
    try:
        yield
    except StackError as error:
        raise click.ClickException(str(error)) from error


if __name__ == "__main__":
    main(prog_name="docker/stack")
