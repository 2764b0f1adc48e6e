"""Work in threads: each result comes, whatever the others do."""

from __future__ import annotations

import threading

import pytest

from rowtide.verify.parallel import in_parallel


class Worker:
    """A worker that works until it is closed, if the item says so."""

    def __init__(self) -> None:
        self.closed = threading.Event()

    def work(self, item: str) -> str:
        if item == "bad":
            raise ValueError(item)
        if item == "long":
            self.closed.wait()
        return item.upper()

    def close(self) -> None:
        self.closed.set()


@pytest.mark.parametrize("number", [0, 1, 3, 9])
def test_each_item_has_its_result(number: int) -> None:
    workers = [Worker() for _ in range(number)]
    items = [str(i) for i in range(20)] if number else []
    found = list(in_parallel(items, workers, Worker.work, Worker.close))
    assert sorted(found) == sorted(items)
    assert all(worker.closed.is_set() for worker in workers)


def test_items_are_worked_on_at_the_same_time() -> None:
    together = threading.Barrier(3)

    def work(_worker: Worker, item: int) -> int:
        together.wait(60)
        return item

    assert sorted(in_parallel(range(3), [Worker() for _ in range(3)], work, Worker.close)) == [0, 1, 2]


def test_a_failure_does_not_lose_the_results_of_others() -> None:
    found = list[str]()
    results = in_parallel(["a", "bad", "c", "d"], [Worker(), Worker()], Worker.work, Worker.close)
    with pytest.raises(ValueError, match="bad"):
        found.extend(results)
    assert sorted(found) == ["A", "C", "D"]


def test_the_end_stops_what_still_runs() -> None:
    workers = [Worker(), Worker()]
    results = in_parallel(["a", "long", "long", "long"], workers, Worker.work, Worker.close)
    assert next(results) == "A"
    results.close()
    assert all(worker.closed.is_set() for worker in workers)
    assert not [one for one in threading.enumerate() if one.name.endswith("(run)")]
