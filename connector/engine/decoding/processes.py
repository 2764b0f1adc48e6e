"""The decoder processes of a parent.

A process that ends unexpectedly is replaced, and the parent processes its chunks.
"""

import contextlib
import logging
import os
import pickle
import subprocess
import sys
import time
from array import array
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from rowtide.connector.engine.decoding.chunks import EventChunk
from rowtide.connector.engine.decoding.forms import Form
from rowtide.connector.engine.decoding.memory import SLOTS, SharedMemory, memory_file
from rowtide.connector.engine.decoding.messages import ChunkPart, ChunkRequest, Continue, Ready, Setup
from rowtide.connector.protocol.events.log_events import FormatDescription
from rowtide.connector.records.settings import PipelineSettings
from rowtide.schema_history.model import Table

log = logging.getLogger(__name__)

_MAX_DEFAULT = 8
_MAX_ENDED = 5
"""After this many processes have ended unexpectedly, no further ones are started."""
_MAX_SENT = 10_000
"""Tables that a process is known to have; it then receives them again."""
_STOP_S = 5.0
_UNUSED_S = 60.0
_CHILD = (
    "import sys; sys.path[:] = {path!r}; from rowtide.connector.engine.decoding.worker import main; "
    "main({connection}, {memory})"
)
"""The code of a process. It is not a ``multiprocessing.Process``, which would import the parent's main module first."""


class ArrivedPart(NamedTuple):
    """A part of a chunk.

    Attributes:
        part: the message.
        data: the outputs.
        release: called with the part when the outputs have been read.
    """

    part: ChunkPart
    data: memoryview
    release: Callable[[ChunkPart], None]


@dataclass(eq=False, slots=True)
class Task:
    """A chunk that a process decodes.

    Attributes:
        chunk: the chunk.
        parts: the parts that have arrived.
        declined: whether no further part comes, and the parent has to process the rest.
        events: the number of its events in parts that were read.
        output_bytes: bytes of these parts.
        wanted: whether the parts are still wanted.
    """

    chunk: EventChunk
    parts: deque[ArrivedPart] = field(default_factory=deque)
    declined: bool = False
    events: int = 0
    output_bytes: int = 0
    wanted: bool = True

    @property
    def is_ready(self) -> bool:
        """Whether the parent has something to do."""
        return bool(self.parts) or self.declined

    def drop(self) -> None:
        """Discard further parts."""
        self.wanted = False
        for arrived in self.parts:
            arrived.release(arrived.part)
        self.parts.clear()


def default_number() -> int:
    """Return the number of useful processes on this machine: none on up to two cores."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return 0 if cores <= 2 else min(cores - 1, _MAX_DEFAULT)


def decoder_processes(
    number: int, settings: PipelineSettings, form: Form[Any], clock: Callable[[], int] = time.time_ns
) -> "DecoderProcesses | None":
    """Return decoder processes, which start with the first large chunk, or ``None`` if none are wanted.

    Post-processors can have a connection to the server or a state, so with them rows are decoded in this process.

    Args:
        number: the number of processes.
        settings: of the pipeline.
        form: of the outputs.
        clock: for the processing times, in ns since the epoch.
    """
    post_processed = settings.transforms is not None and settings.transforms.processors
    if not number or settings.changes or post_processed:
        return None
    # They receive no rows of tables on which foreign keys depend, and do not have all tables.
    return DecoderProcesses(number, replace(settings, derive_cascades=False), form, clock)


@contextlib.contextmanager
def decoding(number: int, settings: PipelineSettings, form: Form[Any]) -> Iterator["DecoderProcesses | None"]:
    """Start the processes for a context, and end them when it ends."""
    processes = decoder_processes(number, settings, form)
    try:
        yield processes
    finally:
        if processes is not None:
            processes.close()


class DecoderProcesses:
    """A number of decoder processes.

    Args:
        number: the number of processes.
        settings: of the pipeline.
        form: of the outputs.
        clock: for the processing times, in ns since the epoch.
    """

    def __init__(self, number: int, settings: PipelineSettings, form: Form[Any], clock: Callable[[], int]) -> None:
        self._number = number
        self._setup = pickle.dumps(Setup(replace(settings, on_notification=None), form, clock))
        self._processes: list[_Process] = []
        self._ended = 0
        self._used = 0.0

    def start(self) -> None:
        """Start the processes that are not running. They are ready for chunks after about half a second."""
        self._used = time.monotonic()
        while len(self._processes) < self._number and self._ended <= _MAX_ENDED:
            try:
                self._processes.append(_Process(self._setup))
            except OSError as error:
                self._ended = _MAX_ENDED + 1
                log.warning(
                    "no further decoder process can be started: %s; %d are running, and the connector decodes the rest "
                    "itself",
                    error, len(self._processes),
                )  # fmt: skip

    def wait_until_ready(self) -> None:
        """Wait for all processes."""
        while not all(process.ready for process in self._processes):
            self.receive()

    @property
    def pids(self) -> list[int]:
        """The ids of the processes."""
        return [process.pid for process in self._processes]

    @property
    def free(self) -> bool:
        """Whether a process is ready for a chunk."""
        return any(process.is_free for process in self._processes)

    def submit(self, chunk: EventChunk, form: FormatDescription) -> Task:
        """Pass a chunk to a process; one must be free.

        Args:
            chunk: the chunk.
            form: the FORMAT_DESCRIPTION of its events.
        """
        process = min((one for one in self._processes if one.is_free), key=lambda one: len(one.tasks))
        task = Task(chunk)
        try:
            process.submit(task, form)
        except OSError as error:
            self._lost(process, error)
        return task

    def receive(self, *, wait: bool = True) -> None:
        """Process the messages that have arrived; with ``wait``, at least one."""
        from multiprocessing.connection import wait as wait_for  # noqa: PLC0415 - most connectors have no processes

        connections = [process.connection for process in self._processes]
        ready = wait_for(connections, None if wait else 0)
        for process in [process for process in self._processes if process.connection in ready]:
            try:
                process.receive()
            except (EOFError, OSError) as error:
                self._lost(process, error)

    def close_unused(self) -> None:
        """End the processes if there has been little to decode for some time."""
        if self._processes and time.monotonic() - self._used > _UNUSED_S:
            self.close()

    def close(self) -> None:
        """End all processes. They can be started again."""
        processes, self._processes = self._processes, []
        for process in processes:
            process.close()

    def _lost(self, process: "_Process", error: Exception) -> None:
        self._processes.remove(process)
        code = process.close()
        self._ended += 1
        log.warning(
            "decoder process %d ended unexpectedly with code %s (%s); the connector decodes its events itself, and %s",
            process.pid, code, error or type(error).__name__,
            "starts another one" if self._ended <= _MAX_ENDED else "starts no further one",
        )  # fmt: skip
        self.start()


def start_process(connection: int, memory: int) -> "subprocess.Popen[bytes]":
    """Start a process with these descriptors. It is a new Python interpreter, because threads do not survive a fork."""
    code = _CHILD.format(path=sys.path, connection=connection, memory=memory)
    command = [sys.executable, "-c", code]
    descriptors = connection, memory
    return subprocess.Popen(command, pass_fds=descriptors, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


class _Process:
    """One process, and its chunks.

    Attributes:
        pid: its id.
        connection: to it.
        ready: whether it has started.
        tasks: the chunks that it has not completed, by slot.
    """

    def __init__(self, setup: bytes) -> None:
        from multiprocessing.connection import Pipe  # noqa: PLC0415 - as above

        self.ready = False
        self.tasks: dict[int, Task] = {}
        self._free = list(range(SLOTS))
        self._sent: dict[bytes, Table | None] = {}
        self.connection, connection = Pipe()
        file = memory_file()
        try:
            self._memory = SharedMemory(file)
            descriptors = connection.fileno(), file
            self._process = start_process(*descriptors)
        finally:
            connection.close()
            os.close(file)
        self.pid = self._process.pid
        self.connection.send_bytes(setup)

    @property
    def is_free(self) -> bool:
        return self.ready and bool(self._free)

    def submit(self, task: Task, form: FormatDescription) -> None:
        chunk = task.chunk
        slot = self._free.pop()
        self.tasks[slot] = task
        data = b"".join(chunk.packets)
        self._memory.input(slot)[: len(data)] = data
        tables = []
        for body, found in chunk.tables.items():
            table = None if found.captured is None else found.captured.table
            if self._sent.get(body, self) is not table:
                tables.append((found.structure, table))
                self._sent[body] = table
        if len(self._sent) > _MAX_SENT:
            self._sent.clear()
        sizes = array("I", map(len, chunk.packets))
        request = ChunkRequest(slot, sizes, chunk.start, chunk.head, chunk.events, chunk.position, tables, form)
        self.connection.send_bytes(pickle.dumps(request, pickle.HIGHEST_PROTOCOL))

    def receive(self) -> None:
        message = pickle.loads(self.connection.recv_bytes())
        if isinstance(message, Ready):
            self.ready = True
            return
        task = self.tasks[message.slot]
        if not isinstance(message, ChunkPart):
            self._sent.clear()
            task.declined = True
            self._free.append(message.slot)
        elif task.wanted:
            task.parts.append(ArrivedPart(message, self._memory.output(message.slot)[: message.size], self.release))
        else:
            self.release(message)
        if task.declined or message.last:
            del self.tasks[message.slot]

    def release(self, part: ChunkPart) -> None:
        """Let the process overwrite a part that has been read."""
        if part.last:
            self._free.append(part.slot)
            return
        with contextlib.suppress(OSError):  # it has ended, which is noticed where it is read from
            self.connection.send_bytes(pickle.dumps(Continue()))

    def close(self) -> int | None:
        """End the process, and return its exit code."""
        self.connection.close()
        if not self.ready:
            self._process.kill()
        for task in self.tasks.values():
            task.declined = True
        self.tasks.clear()
        self._memory.close()
        try:
            return self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()
