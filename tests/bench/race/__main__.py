"""From the same binlog files to rows: rowtide beside other decoders, without servers.

    python -m tests.bench.race [--binlog FOLDER | --load NAME --rows THOUSANDS] [--rounds N] [--go] [--canal FOLDER]

Without ``--binlog`` a MySQL server is started once to make the load's binlog. Every reader runs in a process of its
own, one after the other, and measures its processor time, all threads together; the least of its rounds counts.
``--go`` builds a program with go-mysql, which needs Go; ``--canal`` names a folder with the jars of Canal 1.1.7, which
needs Java.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
sys.path.insert(0, str(ROOT / "docker"))

from tests.bench.race.readers import READERS  # noqa: E402 - after the path
from tests.bench.stages import LOADS, make, processor_times  # noqa: E402

PURE = {"ROWTIDE_PURE_PYTHON": "1"}
ONE_CORE = {"GOMAXPROCS": "1"}


def measured(command: list[str], extra: dict[str, str]) -> dict[str, Any]:
    """Run a reader; its last line of output has the number of row images and the processor time of each round."""
    environment = {**os.environ, **extra}
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def commands(folder: Path, made: Path, options: argparse.Namespace) -> dict[str, tuple[list[str], dict[str, str]]]:
    """The command of each reader, and what it adds to the environment."""
    found = {}
    for name in READERS:
        command = [sys.executable, "-m", "tests.bench.race", "--read", name, "--binlog", str(folder)]
        command += ["--rounds", str(options.rounds)]
        if name == "mysql-replication":
            found[name] = (command, {})
        else:
            found[f"rowtide, {name}, Python"] = (command, PURE)
            found[f"rowtide, {name}, compiled"] = (command, {"ROWTIDE_PURE_PYTHON": ""})
    files = [str(path) for path in sorted(folder.iterdir())]
    if options.go:
        subprocess.run(["go", "build", "-o", str(made / "race"), "."], cwd=HERE / "go_mysql", check=True)
        found["go-mysql"] = ([str(made / "race"), str(options.rounds), *files], ONE_CORE)
    if options.canal is not None:
        (made / "logback.xml").write_text("<configuration/>")  # no log: one line for each event would be most of it
        java = ["java", "-Xmx1g", f"-Dlogback.configurationFile={made / 'logback.xml'}", "-cp", f"{options.canal}/*"]
        # the code is compiled while it runs: the first rounds are slow
        found["Canal"] = ([*java, str(HERE / "CanalRows.java"), str(4 * options.rounds), *files], {})
    return found


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binlog", type=Path, help="a folder with binlog files")
    parser.add_argument("--load", choices=sorted(LOADS), default="repeating")
    parser.add_argument("--rows", type=int, default=50, help="size of the load, in thousands of rows of each table")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--go", action="store_true", help="with go-mysql")
    parser.add_argument("--canal", type=Path, help="a folder with Canal's jars")
    parser.add_argument("--read", choices=sorted(READERS), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read:
        counts, seconds = processor_times(READERS[options.read](options.binlog), options.rounds)
        print(json.dumps({"rows": counts[-1], "cpu": seconds}))
        return
    with tempfile.TemporaryDirectory() as made:
        folder = options.binlog or Path(made) / "binlog"
        if options.binlog is None:
            folder.mkdir()
            make(LOADS[options.load](few=options.rows), folder)
        print("| reader | row images | µs for each | images/s and core |\n| --- | --: | --: | --: |")
        for name, (command, environment) in commands(folder, Path(made), options).items():
            one = measured(command, environment)
            least = min(one["cpu"])
            cells = (name, one["rows"], f"{least / one['rows'] * 1e6:.2f}", f"{one['rows'] / least:.0f}")
            print("| " + " | ".join(map(str, cells)) + " |", flush=True)


if __name__ == "__main__":
    main()
