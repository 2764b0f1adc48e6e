"""``rowtide verify --repair``: sends its signals to the connector."""

import uuid
from collections.abc import Mapping
from typing import Any

import click

from rowtide.cli.connectors import signal_channels
from rowtide.cli.connectors.signal import enabled_channel, result_of
from rowtide.cli.connectors.worker_client import WorkerClient
from rowtide.connector.config import Configuration
from rowtide.verify.repair import RepairError, RepairSignals

_RESULT_S = 60.0
_DRY_BYTES = 2_000


def repair_by_signals(
    config: Configuration, worker: WorkerClient, channel: str | None, *, dry_run: bool
) -> RepairSignals:
    """Return the sender of the signals, after checking that they can be sent and will be carried out.

    Args:
        config: of the connector.
        worker: the worker that runs it, which reports the results.
        channel: the channel; by default the first one that is enabled.
        dry_run: whether to only show the signals, without any check.

    Raises:
        click.ClickException: the connector does not run, or the channel cannot be used.
    """
    chosen = channel or enabled_channel(config)

    def send(signal: Mapping[str, Any]) -> None:
        fields = {"id": str(uuid.uuid4()), **signal}
        try:
            signal_channels.send(config, fields, chosen, worker)
            end = result_of(fields, worker, _RESULT_S, lambda _one: None)
        except click.ClickException as error:
            raise RepairError(f"signal {fields['id']} by channel {chosen}: {error.message}") from None
        if end["type"] != "COMPLETED":
            data = end["additional_data"]
            reason = data.get("error") or f"the snapshot ended with {end['type']}"
            raise RepairError(f"the connector did not carry out signal {fields['id']} (channel {chosen}): {reason}")

    if dry_run:
        return RepairSignals(send, _DRY_BYTES, dry_run=True)
    state = worker.snapshot()["state"]
    if state not in ("RUNNING", "RECONNECTING"):
        raise click.ClickException(
            f"--repair needs a connector that reads the binlog, but {config.name} is {state}: start or resume it, or "
            "wait until its snapshot is complete"
        )
    largest = signal_channels.require(config, chosen)
    _refuse_other_channel(config, chosen, worker.properties())
    return RepairSignals(send, largest)


def _refuse_other_channel(config: Configuration, channel: str, running: Mapping[str, str]) -> None:
    """Refuse a channel that the running connector does not read, because it was started with other properties."""
    signals = config.signals
    name, wanted = {
        "source": ("signal.data.collection", ".".join(min(config.capture.tables.always, default=("", "")))),
        "kafka": ("signal.kafka.topic", signals.topic or ""),
        "file": ("signal.file", signals.file or ""),
    }.get(channel, ("", ""))
    channels = [one.strip() for one in running.get("signal.enabled.channels", "source").split(",")]
    if channel != "http" and (channel not in channels or wanted not in running.get(name, wanted)):
        raise click.ClickException(
            f"the running connector {config.name} does not read signals from {wanted} ({name}), as this configuration "
            "says: it was started with another one. Restart it, or send the signals with --channel http"
        )
