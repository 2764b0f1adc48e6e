"""``rowtide snapshot``: the state of a connector's snapshots."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, TextIO

import click

from rowtide.cli.connectors import config_argument, one_connector_option, read_connector, worker_options
from rowtide.connector.worker.reports.summary import counted


@click.group()
def snapshot() -> None:
    """Show the state of a running connector's snapshots.

    Snapshots are started and stopped by signals: see rowtide signal.
    """


@snapshot.command()
@config_argument(required=False)
@one_connector_option
@worker_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def status(
    config: tuple[str, ...],
    *,
    connector: str | None,
    web: str | None,
    web_token_file: TextIO | None,
    as_json: bool,
) -> None:
    """Show the progress of the snapshot of each table.

    The last notification of each kind of snapshot follows. Initial and blocking snapshots have notifications of the
    same kind, as in Debezium.
    """
    from rowtide.cli.connectors.worker_client import WorkerClient  # noqa: PLC0415 - needs the extra

    worker = WorkerClient.of(read_connector(config, connector).name, web, web_token_file)
    now = worker.snapshot()
    last = {one["aggregate_type"]: one for one in worker.notifications() if _is_about_snapshot(one)}
    if as_json:
        click.echo(json.dumps({**now, "notifications": list(last.values())}, indent=2, ensure_ascii=False))
        return
    click.echo("\n".join(_lines(now, last)))


def _is_about_snapshot(notification: Mapping[str, Any]) -> bool:
    """Return whether a snapshot was taken: as in Debezium, each start without one sends a notification ``SKIPPED``."""
    return bool(notification["aggregate_type"] != "Signal" and notification["type"] != "SKIPPED")


def _lines(now: Mapping[str, Any], last: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    yield f"connector {now['connector']}: {now['state']}"
    tables = now["tables"]
    width = max(map(len, tables), default=0)
    for name, table in tables.items():
        state, rows, estimated = table["state"].lower(), table["rows"], table["estimated_rows"]
        amount = counted(rows, "row")
        if estimated is not None and state != "finished":
            amount = f"{rows:,} of about {counted(max(rows, estimated), 'row')}"
        if state == "reading" and table["rows_per_second"]:
            amount = f"{amount}, {table['rows_per_second']:,.0f} rows/s"
        yield f"  {name:<{width}}  {state:<8}  {amount}"
        if table.get("problem"):
            yield f"  {'':<{width}}  {table['problem']}"
    for aggregate, one in last.items():
        data = ", ".join(f"{key}={text}" for key, text in one["additional_data"].items() if key != "connector_name")
        state = one["type"].lower().replace("_", " ")
        kind = "initial or blocking snapshot" if aggregate == "Initial Snapshot" else aggregate.lower()
        yield f"{kind}, last notification (id {one['id']}): {state}{f' ({data})' if data else ''}"
    if not tables and not last:
        yield "no snapshot was taken since the worker was started"
