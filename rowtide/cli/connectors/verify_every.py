"""``rowtide verify --every``: verifies repeatedly, keeps the last proof of each table, and serves metrics."""

import fcntl
import json
import signal
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

import click
import pymysql

from rowtide.cli.metrics_server import Labels, metric, served
from rowtide.connector.source.connection import DatabaseUnreachableError
from rowtide.errors import ConnectorError
from rowtide.schema_history.store.topic_reader import TopicReadError
from rowtide.spark_consumers.errors import TablesError
from rowtide.synced_files import replace_file
from rowtide.verify.errors import Undecided
from rowtide.verify.run import Found
from rowtide.verify.tables import TableResult
from rowtide.verify.verification import Result

Round = Callable[[Collection[str]], Iterator[Found]]
"""Verifies all tables but some; yields their results."""

_FAILURES = (ConnectorError, TopicReadError, TablesError, pymysql.MySQLError, OSError, click.ClickException)
_VERSION = 1
_OUTCOMES = "equal", "undecided", "different"


class Proofs:
    """The last proof of each table, and the file that stores them.

    Args:
        connector: the name of the connector.
        path: the file; ``None`` to keep it in memory only.

    Raises:
        click.ClickException: the file cannot be read or written, or belongs to another connector.
    """

    def __init__(self, connector: str, path: Path | None) -> None:
        self.connector, self._path = connector, path
        self.tables: dict[str, dict[str, Any]] = {}
        self.begun: float | None = None
        self.ended: float | None = None
        self.error: str | None = None
        if path is not None and path.exists():
            self._load(path)
        self.store()

    def _load(self, path: Path) -> None:
        way_out = "name another file, or delete it to start over"
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            connector, version = found["connector"], found["version"]
            self.tables, self.begun, self.ended = found["tables"], found["begun"], found["ended"]
            self.error = found["error"]
            for moment in (self.begun, self.ended):
                _text(moment or 0)
            for sides in self.tables.values():
                _check({"topic": sides["topic"], **sides}.values())
        except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
            raise click.ClickException(f"--proofs {path} cannot be read ({error!r}): {way_out}") from None
        if (connector, version) != (self.connector, _VERSION):
            raise click.ClickException(
                f"--proofs {path} belongs to connector {connector}, version {version}: {way_out}"
            )

    def store(self) -> None:
        """Write the file."""
        if self._path is None:
            return
        fields = {"connector": self.connector, "version": _VERSION, "begun": self.begun, "ended": self.ended}
        text = json.dumps({**fields, "error": self.error, "tables": self.tables}, indent=2, ensure_ascii=False)
        try:
            replace_file(self._path, text.encode())
        except OSError as error:
            raise click.ClickException(f"--proofs {self._path} cannot be written: {error.strerror or error}") from None

    def begin(self, interval_s: float) -> set[str]:
        """Begin a round, or continue an unfinished one, and return the tables that it has already verified.

        Args:
            interval_s: the seconds after which an unfinished round is too old to continue.
        """
        if self.begun is not None and self.ended is None and time.time() < self.begun + interval_s:
            return {name for name, one in self.tables.items() if one["topic"]["checked"] >= self.begun}
        self.begun, self.ended = time.time(), None
        self.store()
        return set()

    def add(self, found: Found) -> None:
        """Add the results of a table."""
        result, tables = found
        begun = result.begun
        before = self.tables.get(result.table, {})
        now: dict[str, Any] = {"topic": _proof(result, before.get("topic"), begun)}
        if tables:
            worst = max(tables, key=lambda one: _OUTCOMES.index(one.outcome))
            now["table"] = _proof(worst, before.get("table"), begun)
        self.tables[result.table] = now
        self.store()

    def end(self, error: str | None, seen: Iterable[str] | None = None) -> None:
        """End a round.

        Args:
            error: the reason for its failure.
            seen: the tables that it has verified; others are forgotten.
        """
        self.ended, self.error = time.time(), error
        if seen is not None:
            kept = {*seen}
            self.tables = {name: one for name, one in self.tables.items() if name in kept}
        self.store()


@contextmanager
def only_user(path: Path | None) -> Iterator[None]:
    """Lock a file of proofs, so that no second command overwrites it.

    Raises:
        click.ClickException: another command uses it, or it cannot be locked.
    """
    if path is None:
        yield
        return
    if not path.name:
        raise click.ClickException("--proofs names no file")
    lock = path.with_name(path.name + ".lock")
    try:
        stream = lock.open("a")
    except OSError as error:
        raise click.ClickException(
            f"{lock} cannot be written, the lock of --proofs: {error.strerror or error}"
        ) from None
    with stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            reason = "another command uses it" if isinstance(error, BlockingIOError) else error.strerror or error
            raise click.ClickException(f"--proofs {path} cannot be locked: {reason}. Name another file") from None
        yield


def _check(sides: Iterable[Mapping[str, Any]]) -> None:
    """Raise ``TypeError``, ``KeyError`` or ``ValueError`` if proofs are damaged."""
    for one in sides:
        position = one["position"] or {}
        moments = one["checked"], one["known"], one["proved"] or 0
        numbers = one["differences"], one.get("repaired", 0), position.get("pos", 0), *one["rows"].values()
        if one["outcome"] not in _OUTCOMES or not all(isinstance(number, int) for number in numbers):
            raise ValueError(f"damaged: {one}"[:200])
        _number(position.get("file", ""))
        for moment in moments:
            _text(moment)


def _proof(result: Result | TableResult, before: Mapping[str, Any] | None, begun: float) -> dict[str, Any]:
    found: dict[str, Any] = {
        "outcome": result.outcome,
        "reason": result.reason or None,
        "differences": len(result.differences),
        "checked": begun,
        "known": before["known"] if before else begun,
        "proved": begun if result.outcome == "equal" else before and before["proved"],
        "position": before and before["position"],
    }
    if isinstance(result, Result):
        found |= {"rows": {"source": result.source_rows, "topic": result.topic_rows}, "repaired": len(result.repaired)}
        if result.outcome == "equal" and result.start is not None:
            found["position"] = result.start.to_map()
    else:
        found["rows"] = {"topic": result.topic_rows, "table": result.table_rows}
    return found


class VerifySchedule:
    """Runs the rounds.

    Args:
        proofs: the last proofs.
        interval_s: the time from the start of a round to that of the next one, in seconds.
        show: shows the results of a round, or the reason for its failure.
    """

    def __init__(self, proofs: Proofs, interval_s: int, show: Callable[[list[Found], str | None, float], None]) -> None:
        self._proofs, self._interval, self._show = proofs, interval_s, show
        self._rounds = {"finished": 0, "failed": 0}
        self._running = False

    def run(self, once: Round, address: tuple[str, int] | None) -> None:
        """Verify until a signal ends the process, which then has the exit code 0.

        Args:
            once: verifies the tables.
            address: the address for metrics; ``None`` for no metrics.

        Raises:
            click.ClickException: the configuration is wrong, so that no round can succeed.
        """
        signal.signal(signal.SIGTERM, _stop)
        signal.signal(signal.SIGINT, _stop)
        with ExitStack() as stack:
            if address is not None:
                try:
                    url = stack.enter_context(served(address, self.metrics, self.health))
                except OSError as error:
                    where = f"--web-bind {address[0]} --web-port {address[1]}"
                    raise click.ClickException(f"{where}: {error.strerror or error}") from None
                click.echo(f"metrics: {url}", err=True)
            while True:
                wait = 0.0 if self._proofs.ended is None else self._next - time.time()
                if wait > 0:
                    threading.Event().wait(wait)
                self._round(once)

    @property
    def _next(self) -> float:
        # A round cannot have begun later than now, even if the clock was set back.
        return min(self._proofs.begun or 0.0, time.time()) + self._interval

    def _round(self, once: Round) -> None:
        proofs = self._proofs
        done, results, error = set[str](), list[Found](), None
        self._running = True
        try:
            done = proofs.begin(self._interval)
            for found in once(done):
                results.append(found)
                proofs.add(found)
        except _FAILURES as problem:
            if isinstance(problem, Undecided) or (
                isinstance(problem, DatabaseUnreachableError) and not problem.retriable
            ):
                raise click.ClickException(f"no round can succeed with this configuration: {problem}") from None
            error = problem.message if isinstance(problem, click.ClickException) else str(problem)
        finally:
            self._running = False
        try:
            proofs.end(error, None if error else {*done, *(result.table for result, _ in results)})
        except click.ClickException as problem:  # the disk may have space in the next round
            proofs.error = error = error or problem.message
        self._rounds["failed" if error else "finished"] += 1
        self._show(results, error, max(self._next, time.time()))

    # --- metrics and health
    # --------------------------------------------------------------------------------------------

    def _all(self) -> Iterator[tuple[Labels, dict[str, Any]]]:
        for table, sides in self._proofs.tables.copy().items():
            for of, one in sides.items():
                yield (("connector", self._proofs.connector), ("table", table), ("of", of)), one

    def metrics(self) -> str:
        """Return the metrics in Prometheus' text format."""
        proofs, now, every = self._proofs, time.time(), [*self._all()]
        own: Labels = (("connector", proofs.connector),)
        proved = [(labels, one) for labels, one in every if one["proved"]]
        at = [(labels[:2], one["position"]) for labels, one in every if one["position"]]
        lines = [
            metric("rowtide_verified_timestamp_seconds", "gauge", "When the last proof of the table began.",
                   {labels: one["proved"] for labels, one in proved}),
            metric("rowtide_verified_age_seconds", "gauge", "Age of the last proof; without one, since it is verified.",
                   {labels: round(now - (one["proved"] or one["known"]), 3) for labels, one in every}),
            metric("rowtide_verified_file_number", "gauge", "Number of the binlog file of the proved position.",
                   {labels: _number(position["file"]) for labels, position in at if position.get("file")}),
            metric("rowtide_verified_position", "gauge", "Offset of the proved position in that file.",
                   {labels: position["pos"] for labels, position in at if position.get("file")}),
            metric("rowtide_verified_differences", "gauge", "Differences that the last round found and did not repair.",
                   {labels: one["differences"] for labels, one in every}),
            metric("rowtide_verified_undecided", "gauge", "1 if the last round could not compare the table.",
                   {labels: int(one["outcome"] == "undecided") for labels, one in every}),
            metric("rowtide_verified_rows", "gauge", "Rows of each side in the last round.",
                   {(*labels, ("side", side)): rows for labels, one in every for side, rows in one["rows"].items()}),
            metric("rowtide_verified_repaired_rows", "gauge", "Rows that the last round repaired.",
                   {labels: one["repaired"] for labels, one in every if "repaired" in one}),
            metric("rowtide_verify_interval_seconds", "gauge", "The value of --every.", {own: self._interval}),
            metric("rowtide_verify_running", "gauge", "1 while a round runs.", {own: int(self._running)}),
            metric("rowtide_verify_failed", "gauge", "1 if the last round failed.",
                   {own: int(proofs.error is not None)}),
            metric("rowtide_verify_rounds_total", "counter", "Rounds since the start.",
                   {(*own, ("result", result)): number for result, number in self._rounds.items()}),
        ]  # fmt: skip
        return "".join(line for one in lines for line in one)

    def health(self) -> tuple[int, str]:
        """Return the status code and the JSON text of /health.

        503 if a table is different, or the last round failed.
        """
        outcomes = {f"{labels[1][1]} ({labels[2][1]})": one["outcome"] for labels, one in self._all()}
        is_down = self._proofs.error is not None or "different" in outcomes.values()
        found = {
            "status": "DOWN" if is_down else "UP",
            "connector": self._proofs.connector,
            "error": self._proofs.error,
            "next_round": None if self._running else _text(self._next),
            "tables": outcomes,
        }
        return 503 if is_down else 200, json.dumps(found, ensure_ascii=False)


def _stop(_number: int, _frame: object) -> NoReturn:
    raise SystemExit(0)


def _number(file: str) -> int:
    number = file.rpartition(".")[2]
    return int(number) if number.isdecimal() else 0


def _text(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def round_line(error: str | None, following: float) -> str:
    """Return the line after the report of a round."""
    failed = "" if error is None else f"the round failed: {error}. "
    return f"{_text(time.time())}: {failed}The next round begins at {_text(following)}"
