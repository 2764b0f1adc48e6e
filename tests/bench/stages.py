"""Where the time of a message goes: the stages from the bytes of a binlog file to acknowledged records.

    python -m tests.bench.stages [--binlog FOLDER | --load NAME --rows THOUSANDS] [--rounds N]

Without ``--binlog`` a MySQL server is started once to make the load's binlog. Every stage is repeated alone on the same
events, and its processor time is divided by the number of messages, or of the snapshot's rows. The broker is
librdkafka's mock broker. ``ROWTIDE_PURE_PYTHON=1`` measures the rows in Python.
"""

from __future__ import annotations

import argparse
import gc
import logging
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar
from unittest.mock import patch

Result = TypeVar("Result")
ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docker"))

from rowtide.connector.config import from_properties  # noqa: E402 - after the path
from rowtide.connector.engine import converters  # noqa: E402
from rowtide.connector.engine.pipeline_settings import pipeline_settings  # noqa: E402
from rowtide.connector.engine.replay import replay  # noqa: E402
from rowtide.connector.pipeline.row_writer import RowWriter  # noqa: E402
from rowtide.connector.protocol.binlog_file import binlog_packets  # noqa: E402
from rowtide.connector.protocol.decoder import EventDecoder  # noqa: E402
from rowtide.connector.protocol.events.classes import Rows  # noqa: E402
from rowtide.connector.records.batch import Batch  # noqa: E402
from rowtide.connector.records.codecs.rows import RowsCodec  # noqa: E402
from rowtide.connector.records.transforms import Transformer  # noqa: E402
from rowtide.envelope.converters.registry import RegisteredSchema, SchemaKind  # noqa: E402
from tests.bench.delivery_stages import delivery_seconds, store_and_release  # noqa: E402
from tests.bench.load import Load  # noqa: E402
from tests.bench.snapshot_stages import snapshot_stages  # noqa: E402
from tests.bench.unique import Large, Many, Unique, Wide  # noqa: E402

LOADS: dict[str, Callable[..., Any]] = {"repeating": Load, "unique": Unique, "wide": Wide, "large": Large, "many": Many}
_JSON = "org.apache.kafka.connect.json.JsonConverter"  # schemas.enable applies only to a converter that is named
FORMS = {
    f"{form} schemas": {
        "key.converter": _JSON,
        "value.converter": _JSON,
        "key.converter.schemas.enable": enabled,
        "value.converter.schemas.enable": enabled,
    }
    for form, enabled in (("with", "true"), ("without", "false"))
} | {
    "Avro": {
        **dict.fromkeys(("key.converter", "value.converter"), "io.confluent.connect.avro.AvroConverter"),
        **dict.fromkeys(("key.converter.schema.registry.url", "value.converter.schema.registry.url"), "http://none"),
    }
}


class Registry:
    """A schema registry in memory."""

    def registered(self, _subject: str, _kind: SchemaKind, text: str) -> RegisteredSchema:
        """Give every schema the same id."""
        return RegisteredSchema(1, text)


@dataclass
class Recorded:
    """What one replay did: its messages, and the calls of codecs, to repeat them."""

    messages: int = 0
    made: list[Batch] = field(default_factory=list)
    contexts: list[tuple[RowWriter, Any]] = field(default_factory=list)
    rows: list[tuple[RowsCodec[Any, Any], Rows]] = field(default_factory=list)
    batches: list[tuple[Any, ...]] = field(default_factory=list)
    transformed: list[tuple[Transformer, Batch]] = field(default_factory=list)


def settings(form: str, options: Mapping[str, str] = MappingProxyType({})) -> Any:
    """The pipeline's settings for a form of messages, with further properties."""
    properties = {
        "name": "bench",
        "connector.class": "io.debezium.connector.mysql.MySqlConnector",
        "topic.prefix": "bench",
        "database.hostname": "none",
        "database.user": "none",
        "database.password": "none",
        "database.server.id": "1",
        "schema.history.internal.kafka.bootstrap.servers": "none:9092",
        "schema.history.internal.kafka.topic": "none",
        "bootstrap.servers": "none:9092",
        "table.exclude.list": r".*\.seq",
        **FORMS[form],
        **options,
    }
    with patch.object(converters, "_registry", lambda _config: Registry()):
        return pipeline_settings(from_properties(properties), "")


def record(folder: Path, chosen: Any) -> Recorded:
    """Replay once with these settings, and record the calls."""
    recorded = Recorded()
    rows, batch, context = RowsCodec.rows, RowsCodec.batch, RowWriter._context
    transform = Transformer.batch

    def recording_rows(self: RowsCodec[Any, Any], event: Rows) -> Any:
        recorded.rows.append((self, event))
        return rows(self, event)

    def recording_batch(self: RowsCodec[Any, Any], *arguments: Any) -> Any:
        recorded.batches.append((self, *arguments))
        return batch(self, *arguments)

    def recording_context(self: RowWriter, captured: Any) -> Any:
        recorded.contexts.append((self, captured))
        return context(self, captured)

    def recording_transforms(self: Transformer, given: Batch) -> Batch:
        recorded.transformed.append((self, given))
        return transform(self, given)

    with (
        patch.object(Transformer, "batch", recording_transforms),
        patch.object(RowsCodec, "rows", recording_rows),
        patch.object(RowsCodec, "batch", recording_batch),
        patch.object(RowWriter, "_context", recording_context),
    ):
        for output in replay(folder, chosen, None):
            if isinstance(output, Batch) and output.messages:
                recorded.made.append(output)
                recorded.messages += len(output.messages)
    return recorded


def packets(folder: Path) -> Iterator[bytes]:
    """All events of the files."""
    for path in sorted(folder.iterdir()):
        with path.open("rb") as stream:
            yield from binlog_packets(stream, path.name, active=True)


def reader_stages(folder: Path, form: str, recorded: Recorded) -> dict[str, Callable[[], None]]:
    """The stages of the reader by name; the last one contains all others, and the resume positions."""

    def read() -> None:
        for _packet in packets(folder):
            pass

    events = list(packets(folder))

    def decode() -> None:
        decoder = EventDecoder()
        for packet in events:
            decoder.decode(packet)

    def rows() -> None:
        for codec, event in recorded.rows:
            codec.rows(event)

    def messages() -> None:
        for codec, *arguments in recorded.batches:
            codec.batch(*arguments)

    def contexts() -> None:
        for writer, captured in recorded.contexts:
            writer._context(captured)

    def converted() -> None:
        for transformer, batch in recorded.transformed:
            transformer.batch(batch)

    def everything() -> None:
        for _output in replay(folder, settings(form), None):
            pass

    return {
        "read the file": read,
        "event header, checksum, table map": decode,
        "rows to JSON text": rows,
        "what the messages of an event share": contexts,
        "messages from the text": messages,
        **({"messages to Avro": converted} if form == "Avro" else {}),
        "all of it, from the file": everything,
    }


def processor_times(stage: Callable[[], Result], rounds: int) -> tuple[list[Result], list[float]]:
    """What a stage returned, and its processor time, in each round."""
    results, seconds = [], []
    for _ in range(rounds):
        gc.collect()
        begin = time.process_time()
        results.append(stage())
        seconds.append(time.process_time() - begin)
    return results, seconds


def measured(folder: Path, form: str, rounds: int, snapshot_rows: int = 100_000) -> Iterator[tuple[str, float]]:
    """Every stage with its µs of processor time for each message, or row of the snapshot."""
    recorded = record(folder, settings(form))
    named = reader_stages(folder, form, recorded) | {"event store": lambda: store_and_release(recorded.made)}
    for name, stage in named.items():
        yield name, min(processor_times(stage, rounds)[1]) / recorded.messages * 1e6
    for mode, exactly_once in (("at least once", False), ("exactly once", True)):
        found = [delivery_seconds(recorded.made, exactly_once=exactly_once) for _ in range(rounds)]
        for name in found[0]:
            yield f"{mode}: {name}", min(one[name] for one in found) / recorded.messages * 1e6
    for name, stage in snapshot_stages(settings(form), snapshot_rows).items():
        yield name, min(processor_times(stage, rounds)[1]) / snapshot_rows * 1e6


def quiet() -> None:
    """Leave out the connector's warnings of the load's types, which would stand between the rows of a table."""
    logging.disable(logging.WARNING)


def make(load: Any, folder: Path) -> None:
    """Let a MySQL server write the binlog of a load into a folder."""
    from rowtide_stack import MySQL

    with MySQL() as server, server.database("bench") as database:
        database.execute(*load.setup())
        database.execute(*load.changes())
        source = Path(server.query("SELECT @@log_bin_basename")[0][0]).parent
        for name, *_rest in server.query("SHOW BINARY LOGS"):
            shutil.copy(source / name, folder / name)


def main() -> None:
    """Measure, and print a table for each form."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binlog", type=Path, help="a folder with binlog files")
    parser.add_argument("--load", choices=sorted(LOADS), default="repeating")
    parser.add_argument("--rows", type=int, default=50, help="size of the load, in thousands of rows of each table")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    quiet()
    with tempfile.TemporaryDirectory() as made:
        folder = options.binlog or Path(made)
        if options.binlog is None:
            make(LOADS[options.load](few=options.rows), folder)
        for form in FORMS:
            print(f"\n{form}\n\n| stage | µs/message |\n| --- | --: |")
            for name, micros in measured(folder, form, options.rounds):
                print(f"| {name} | {micros:.2f} |", flush=True)


if __name__ == "__main__":
    main()
