"""``rowtide signal``: sends a signal to a running connector, and waits for the result."""

import json
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TextIO

import click

from rowtide.cli.connectors import config_argument, one_connector_option, read_connector, worker_options
from rowtide.cli.option_types import FiniteRange
from rowtide.connector.config import Configuration

if TYPE_CHECKING:
    from rowtide.cli.connectors.worker_client import WorkerClient

CHANNELS = "http", "source", "kafka", "file"
TYPES = (
    *("execute-snapshot", "stop-snapshot", "pause-snapshot", "resume-snapshot"),
    *("log", "schema-changes", "set-binlog-position", "rowtide-set-table-include-list", "rowtide-reread-rows"),
)
"""The types of signals, without users' own."""
_POLL_S = 0.5
_LAST = frozenset({"COMPLETED", "ABORTED", "FAILED"})
_READ = frozenset({"SUCCEEDED", "EMPTY"})
"""The status of a table that a snapshot has read."""


def _types(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the types with a prefix, for shell completion."""
    return [kind for kind in TYPES if kind.startswith(incomplete)]


@click.command()
@click.argument("kind", metavar="TYPE", shell_complete=_types)
@config_argument(required=False)
@one_connector_option
@click.option("--data", metavar="JSON", default="{}", help="The parameters of the signal, as a JSON object.")
@click.option("--id", "signal_id", help="The id of the signal, which its notifications have.  [default: a new one]")
@click.option(
    "--channel",
    type=click.Choice(CHANNELS),
    help="How the signal is sent.  [default: the first enabled one of source, kafka and file, otherwise http]",
)
@click.option("--wait/--no-wait", default=True, show_default=True, help="Wait for the result, and print notifications.")
@click.option(
    "--timeout",
    type=FiniteRange(min=0),
    metavar="SECONDS",
    default=60.0,
    show_default=True,
    help="How long to wait for the next notification.",
)
@worker_options
def signal(
    kind: str,
    config: tuple[str, ...],
    *,
    connector: str | None,
    data: str,
    signal_id: str | None,
    channel: str | None,
    wait: bool,
    timeout: float,
    web: str | None,
    web_token_file: TextIO | None,
) -> None:
    """Send a signal to the connector of CONFIG.

    \b
    TYPE is one of these, or your own action:
      execute-snapshot, stop-snapshot, pause-snapshot, resume-snapshot,
      log, schema-changes, set-binlog-position,
      rowtide-set-table-include-list, rowtide-reread-rows

    The result comes from the web server of the worker (rowtide run), regardless of the channel.

    The exit code is 0 if the signal is carried out (for an incremental snapshot, when every table has been read), and 1
    if it is refused or if no result arrives in time.
    """  # noqa: D301 - Click's mark of a paragraph
    from rowtide.cli.connectors import signal_channels  # noqa: PLC0415 - needs the extra
    from rowtide.cli.connectors.worker_client import WorkerClient  # noqa: PLC0415

    configuration = read_connector(config, connector)
    fields: dict[str, Any] = {"id": signal_id or str(uuid.uuid4()), "type": kind, "data": _parsed(data)}
    worker = WorkerClient.of(configuration.name, web, web_token_file)
    chosen = channel or enabled_channel(configuration)
    if wait:
        worker.require_connector()  # nothing is sent if its result could not be read
    signal_channels.send(configuration, fields, chosen, worker)
    click.echo(f"sent signal {fields['id']} by channel {chosen}", err=True)
    if not wait:
        return
    end = result_of(fields, worker, timeout, lambda one: click.echo(json.dumps(one, ensure_ascii=False)))
    if end["type"] != "COMPLETED":
        raise SystemExit(1)


def result_of(
    fields: Mapping[str, Any], worker: "WorkerClient", timeout: float, show: Callable[[Mapping[str, Any]], None]
) -> Mapping[str, Any]:
    """Wait for the last notification about a signal, and return it.

    Args:
        fields: of the signal.
        worker: the worker that runs the connector.
        timeout: seconds to wait for the next notification.
        show: called with each notification.

    Raises:
        click.ClickException: no notification arrives, or a table was not read.
    """
    unread: list[str] = []
    for one in _notifications(lambda: worker.notifications(fields["id"]), timeout):
        show(one)
        unread += _unread(one)
        if _is_result(one, fields):
            if unread:
                raise click.ClickException(
                    "not every table was read:\n" + "\n".join(f"  - {reason}" for reason in unread)
                )
            return one
    raise click.ClickException(
        f"no result in {timeout:g} s: look at the log of the connector, or at GET /connectors/{worker.connector}/"
        "notifications. A signal waits while the connector starts or takes its initial snapshot"
    )


def _parsed(data: str) -> dict[str, Any]:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise click.BadParameter(f"it is not JSON: {error}", param_hint="--data") from None
    if not isinstance(found, dict):
        raise click.BadParameter("it must be a JSON object", param_hint="--data")
    return found


def enabled_channel(config: Configuration) -> str:
    """Return the first enabled channel of source, kafka and file; http if there is none."""
    if config.signals.source and config.capture.tables.always:
        return "source"
    if config.signals.topic is not None:
        return "kafka"
    return "http" if config.signals.file is None else "file"


def _unread(notification: Mapping[str, Any]) -> list[str]:
    """Return the reason why a snapshot has not read a table, if a notification reports this."""
    data = notification["additional_data"]
    if notification["type"] != "TABLE_SCAN_COMPLETED" or data.get("status") in _READ:
        return []
    return [notification.get("error") or f"table {data.get('scanned_collection')}: {data.get('status')}"]


def _is_result(notification: Mapping[str, Any], fields: Mapping[str, Any]) -> bool:
    """Return whether no further notification is expected: a snapshot continues after its signal is carried out."""
    if notification["type"] not in _LAST:
        return False
    continues = fields["type"] in ("execute-snapshot", "rowtide-reread-rows")
    return not (continues and notification["aggregate_type"] == "Signal" and notification["type"] == "COMPLETED")


def _notifications(read: Callable[[], list[dict[str, Any]]], timeout: float) -> Iterator[dict[str, Any]]:
    """Yield the notifications as they arrive, until none has arrived within the time limit."""
    seen: list[dict[str, Any]] = []
    left = timeout
    while True:
        found = read()
        new = [one for one in found if one not in seen]
        seen = found
        yield from new
        if new:
            left = timeout
        elif left <= 0:
            return
        pause = min(_POLL_S, max(left, 0.0))
        time.sleep(pause)
        left -= pause
