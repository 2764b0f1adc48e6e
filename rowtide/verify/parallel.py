"""Does independent work in threads, and yields each result when it is ready."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TypeVar

Item = TypeVar("Item")
Worker = TypeVar("Worker")
Output = TypeVar("Output")

_END_S = 5.0


def in_parallel(
    items: Iterable[Item],
    workers: Sequence[Worker],
    work: Callable[[Worker, Item], Output],
    close: Callable[[Worker], None],
) -> Iterator[Output]:
    """Yield the result of each item, in the order in which they are made; each worker works on one item at a time.

    A worker that fails takes no further item. The others finish all remaining items, and the first error is raised
    after all results. Workers are closed in the end; a single one works in the calling thread.

    Args:
        items: the items.
        workers: the workers, each of which belongs to one thread.
        work: processes an item.
        close: closes a worker, and stops its current work.
    """
    if len(workers) == 1:
        try:
            yield from (work(workers[0], item) for item in items)
        finally:
            close(workers[0])
        return
    waiting, made = SimpleQueue[Item](), SimpleQueue[Output | BaseException | None]()
    for item in items:
        waiting.put(item)

    def run(worker: Worker) -> None:
        try:
            with suppress(Empty):
                while True:
                    made.put(work(worker, waiting.get_nowait()))
        except BaseException as error:  # noqa: BLE001 - the calling thread raises it
            made.put(error)
        finally:
            made.put(None)

    threads = [Thread(target=run, args=[worker], daemon=True) for worker in workers]
    errors = list[BaseException]()
    try:
        for thread in threads:
            thread.start()
        left = len(threads)
        while left:
            match made.get():
                case None:
                    left -= 1
                case BaseException() as error:
                    errors.append(error)
                case output:
                    yield output
    finally:  # even if the process is about to end: work that still runs is stopped
        with suppress(Empty):
            while True:
                waiting.get_nowait()
        for worker in workers:
            close(worker)
        for thread in threads:
            thread.join(_END_S)
    if errors:
        raise errors[0]
