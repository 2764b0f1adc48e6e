"""Records of topics as Python values: ``rowtide.Decoder``, beside the JSON parser of Python alone.

    python -m tests.bench.topic_values [--binlog FOLDER | --load NAME --rows THOUSANDS] [--rounds N]

The records of a load are made in memory, and each is decoded in one thread. ``json.loads`` is what a program does at
least that reads Debezium's records by hand; it has neither types nor decimals, dates and bytes as values.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import rowtide
from rowtide.connector.engine.replay import replay
from rowtide.connector.records.batch import Batch
from tests.bench.stages import FORMS, LOADS, make, quiet, settings

Record = tuple[str, bytes | None, bytes]

JSON_FORMS = tuple(form for form in FORMS if form != "Avro")
"""The forms of records that need no schema registry."""


def records_of(folder: Path, form: str) -> list[Record]:
    """The records of the files of a folder, without tombstones and changes of structures."""
    return [
        (output.topic, key, value)
        for output in replay(folder, settings(form), None)
        if isinstance(output, Batch)
        for key, value, *_headers in output.messages
        if value is not None and output.topic != "bench"  # which has changes of structures
    ]


def with_decoder(records: list[Record]) -> None:
    """Decode records with rowtide."""
    decode = rowtide.Decoder().decode
    for topic, key, value in records:
        change = decode(topic, key, value)
        assert change is not None
        change.before, change.after, change.key  # noqa: B018 - made when they are read


def with_json(records: list[Record]) -> None:
    """Parse records with Python's JSON parser."""
    for _topic, key, value in records:
        if key is not None:
            json.loads(key)
        json.loads(value)


READERS: dict[str, Callable[[list[Record]], None]] = {"rowtide.Decoder": with_decoder, "json.loads": with_json}


def rates(records: list[Record], rounds: int) -> dict[str, list[float]]:
    """Records a second of each reader, in each round."""
    found: dict[str, list[float]] = {name: [] for name in READERS}
    for _ in range(rounds):
        for name, read in READERS.items():
            begin = time.process_time()
            read(records)
            found[name].append(len(records) / (time.process_time() - begin))
    return found


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binlog", type=Path, help="a folder with binlog files")
    parser.add_argument("--load", choices=sorted(LOADS), default="repeating")
    parser.add_argument("--rows", type=int, default=20, help="size of the load, in thousands of rows of each table")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    quiet()
    with tempfile.TemporaryDirectory() as made:
        folder = options.binlog or Path(made)
        if options.binlog is None:
            make(LOADS[options.load](few=options.rows), folder)
        print("| records | reader | records/s of processor time |\n| --- | --- | --: |")
        for form in JSON_FORMS:
            for name, found in rates(records_of(folder, form), options.rounds).items():
                print(f"| {form} | {name} | {', '.join(f'{rate:,.0f}' for rate in found)} |", flush=True)


if __name__ == "__main__":
    main()
