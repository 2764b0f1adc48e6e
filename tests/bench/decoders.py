"""Decoder processes: the same binlog files through 0, 1, 2 … processes, as lines for /dev/null and as records.

    python -m tests.bench.decoders [--binlog FOLDER | --load NAME --rows THOUSANDS] [--processes N,N] [--rounds N]

The numbers of processes are measured one after the other in each round, so that other work on the machine slows all of
them. The processes are started before the measurement. ``parent`` is what the connector's process does itself, which is
the serial part: the processes share all the rest.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rowtide.connector.engine.decoding.forms import LineForm, Lines, RecordForm
from rowtide.connector.engine.decoding.lines import write_lines
from rowtide.connector.engine.decoding.processes import DecoderProcesses
from rowtide.connector.engine.replay import replay_as
from rowtide.connector.records.batch import Batch
from tests.bench.measure import cpu_seconds
from tests.bench.stages import FORMS, LOADS, make, quiet, settings


@dataclass(frozen=True, slots=True)
class Measured:
    """One replay.

    Attributes:
        records: number of records.
        seconds: from its start to its end.
        parent_s: processor time of this process.
        children_s: processor time of the decoder processes.
    """

    records: int
    seconds: float
    parent_s: float
    children_s: float


def replayed(folder: Path, chosen: Any, form: Any, number: int) -> Measured:
    """Replay the files of a folder with a number of processes."""
    decoders = None
    pids: list[int] = []
    if number:
        decoders = DecoderProcesses(number, chosen, form, time.time_ns)
        decoders.start()
        decoders.wait_until_ready()
        pids = decoders.pids
    before, wall, own = sum(map(cpu_seconds, pids)), time.perf_counter(), time.process_time()
    records = 0
    with Path("/dev/null").open("wb") as sink:
        for made in replay_as(form, folder, chosen, None, processes=decoders):
            if isinstance(made, Lines):
                write_lines(sink.fileno(), made.packed)
                records += made.records
            else:
                records += sum(len(one.messages) for one in made if isinstance(one, Batch))
    found = Measured(
        records, time.perf_counter() - wall, time.process_time() - own, sum(map(cpu_seconds, pids)) - before
    )
    if decoders is not None:
        decoders.close()
    return found


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binlog", type=Path, help="a folder with binlog files")
    parser.add_argument("--load", choices=sorted(LOADS), default="repeating")
    parser.add_argument("--rows", type=int, default=200, help="size of the load, in thousands of rows of each table")
    parser.add_argument("--processes", default="0,1,2", help="the numbers of processes")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    quiet()
    numbers = [int(number) for number in options.processes.split(",")]
    with tempfile.TemporaryDirectory() as made:
        folder = options.binlog or Path(made)
        if options.binlog is None:
            make(LOADS[options.load](few=options.rows), folder)
        print(
            "| output | processes | records/s | times | parent µs | processes µs |\n"
            "| --- | --: | --: | --: | --: | --: |"
        )
        for kind, form in (("lines", LineForm()), ("records", RecordForm())):
            for name in FORMS:
                found: dict[int, list[Measured]] = {number: [] for number in numbers}
                for _ in range(options.rounds):
                    for number in numbers:
                        found[number].append(replayed(folder, settings(name), form, number))
                alone = min(one.seconds for one in found[numbers[0]])
                for number, rounds in found.items():
                    best = min(one.seconds for one in rounds)
                    parent, children = (
                        min(getattr(one, part) for one in rounds) for part in ("parent_s", "children_s")
                    )
                    each = 1e6 / rounds[0].records
                    print(
                        f"| {kind} {name} | {number} | {rounds[0].records / best:.0f} | {alone / best:.2f} "
                        f"| {parent * each:.2f} | {children * each:.2f} |",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
