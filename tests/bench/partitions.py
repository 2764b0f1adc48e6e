"""What a message costs in the delivery as the partitions of its topic grow, with a real broker.

    python -m tests.bench.partitions [--rows THOUSANDS] [--rounds N]

The messages of made events are sent to topics of 1, 10 and 100 partitions in turn, which librdkafka chooses by the key.
The processor time is that of this process; the broker's is not counted.
"""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "docker"), str(ROOT / "tests/support")]

from rowtide_stack import Kafka  # noqa: E402 - after the path
from topic_tools import Topics  # noqa: E402

from rowtide.connector.records.batch import Batch  # noqa: E402
from rowtide.topics.settings import TopicSettings  # noqa: E402
from tests.bench.delivery_stages import delivery_seconds  # noqa: E402
from tests.bench.growth import Shape, events, started  # noqa: E402

_PARTITIONS = 1, 10, 100


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100, help="thousands of rows")
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    batches = made(Shape(rows=options.rows * 1000, text=200))
    least: dict[int, dict[str, float]] = {}
    with Kafka() as kafka:
        topics = Topics(kafka.bootstrap)
        topics.admin.ensure("offsets", TopicSettings(1, 1, {}))
        for _ in range(options.rounds):
            for partitions in _PARTITIONS:
                topic = topics.new(partitions)
                placed = [batch._replace(topic=topic) for batch in batches]
                seconds = delivery_seconds(placed, exactly_once=False, servers={"bootstrap.servers": kafka.bootstrap})
                before = least.get(partitions, seconds)
                least[partitions] = min(before, seconds, key=lambda one: sum(one.values()))
    print("| partitions | " + " | ".join(least[1]) + " | together |\n| --: |" + " --: |" * (len(least[1]) + 1))
    for partitions, parts in least.items():
        figures = [seconds / (options.rows * 1000) * 1e6 for seconds in (*parts.values(), sum(parts.values()))]
        print(f"| {partitions} | " + " | ".join(f"{figure:.2f}" for figure in figures) + " |")


def made(shape: Shape) -> list[Batch]:
    """The batches of a shape."""
    pipeline = started(shape)
    steps = (step for packet in events(shape) for step in pipeline.receive(packet))
    return [output for step in steps for output in step if isinstance(output, Batch)]


if __name__ == "__main__":
    main()
